"""Whether everything that was answered is so for ever, and what was not answered happened wholly or not at all (I9)."""

from collections import Counter
from itertools import pairwise
from typing import Any

from hourhand.core.lifecycle import State
from hourhand.core.model import Version
from tests.contract.harness import Tables
from tests.sim.people import changed_spec, rewired_spec

_EXAMPLES = 20


def check_promises(world: Any, tables: Tables, jobs: dict[int, list[Version]]) -> list[str]:
    """All that is wrong, some of each kind."""
    found = _changes(world, jobs)[:_EXAMPLES]
    found += _runs(world, tables)[:_EXAMPLES]
    found += _letters(world)[:_EXAMPLES]
    found += _others(world, tables, jobs)[:_EXAMPLES]
    found += _wholeness(world, jobs)[:_EXAMPLES]
    return found


def _changes(world: Any, jobs: dict[int, list[Version]]) -> list[str]:
    """Every version that somebody was told of is there."""
    found = []
    for ack in world.people.acks:
        numbers = {version.version: version for version in jobs.get(ack.job_id, ())}
        if ack.version not in numbers and not (
            ack.what == "delete" and any(v.deleted for v in numbers.values())
        ):
            found.append(f"I9 {ack.what} of {ack.job_id} was acknowledged and is gone")
    return found


def _runs(world: Any, tables: Tables) -> list[str]:
    """Every run that somebody asked for by hand and was told of is somewhere."""
    rows = (tables.planned, tables.blocked, tables.running, tables.dead, tables.history)
    present = {(row.job_id, row.scheduled_at) for table in rows for row in table}
    return [
        f"I9 {what} gave {key} and it is gone"
        for what, key in world.people.given_runs
        if tuple(key) not in present
    ]


def _letters(world: Any) -> list[str]:
    """Dead letters went back or away as often as somebody was told so, and cancelled is cancelled."""
    found = []
    for what, happened in (("requeue", world.requeued), ("discard", world.discarded)):
        told = Counter(tuple(key) for said, key in world.people.given_letters if said == what)
        found += [
            f"I9 {what} of {key} was acknowledged {count} times and happened {happened[key]} times"
            for key, count in told.items()
            if happened[key] < count
        ]
    for key in world.people.cancelled:
        seen = world.watch.runs[tuple(key)]
        if seen.state is not State.CANCELLED:
            found.append(f"I9 {key} was said to be cancelled and is {seen.state}")
    return found


def _others(world: Any, tables: Tables, jobs: dict[int, list[Version]]) -> list[str]:
    """Backfills are there; a time that was to be skipped did not run, where nobody changed the job or the mark."""
    execute = world.connection.execute
    known = {row[0] for row in execute("SELECT id FROM backfills")}
    found = [
        f"I9 backfill {one} was acknowledged and is gone"
        for one in world.people.backfills
        if one not in known
    ]
    marks = {tuple(row) for row in execute("SELECT job_id, scheduled_at FROM skips")}
    ends = {(line.job_id, line.scheduled_at): line.state for line in tables.history}
    for job_id, at in world.people.skipped:
        untouched = len(jobs.get(job_id, ())) == 1 and job_id not in world.people.unskipped
        if untouched and (job_id, at) not in marks and ends.get((job_id, at)) is not State.SKIPPED:
            found.append(f"I9 the skip of {at} of {job_id} was acknowledged; it is {ends.get((job_id, at))}")
    return found


def _wholeness(world: Any, jobs: dict[int, list[Version]]) -> list[str]:
    """Each version is the one before it with one request's change made wholly, whether that was answered or not."""
    found = []
    names = {f"job-{name}": name for name in world.people.wanted}
    for job_id, versions in jobs.items():
        first = versions[0]
        name = names.get(first.spec.name or "")
        if name is None:
            continue  # one of the checker's own
        if first.spec != world.people.wanted[name]:
            found.append(f"I9 {job_id} was not created as it was asked for")
        requests = world.people.requests.get(name, [])
        for before, after in pairwise(versions):
            if not _explained(before, after, requests):
                found.append(f"I9 version {after.version} of {job_id} is nothing that anybody asked for")
    return found


def _explained(before: Version, after: Version, requests: list[tuple[str, dict[str, Any]]]) -> bool:
    if after.deleted:
        return any(what == "delete" for what, _ in requests)
    if after.spec == before.spec:
        return True  # paused, resumed, or changed to what it was; a pause of the final calm is among them
    if after.paused != before.paused:
        return False
    return any(
        after.spec == changed_spec(before.spec, args["spec"], args["part"])
        if what == "update"
        else what == "rewire" and after.spec == rewired_spec(before.spec, args["parents"])
        for what, args in requests
    )
