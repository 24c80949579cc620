"""What must hold when everything is over, computed from the jobs' versions, the acknowledgements and the world's ledger alone.

It reads the tables only to see what became of each expected time; what should be there it works out by itself. What can be seen
at each commit is held by `tests.sim.watch`; docs/proof.md says which invariant is checked where.
"""

import asyncio
import json
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from hourhand.core.dag import Missing
from hourhand.core.identity import parse_job_id, segment_of
from hourhand.core.instant import SECOND_US
from hourhand.core.lifecycle import FINAL, State
from hourhand.core.model import MAX_QUEUED, AfterTiming, Trigger, Version
from hourhand.core.run import TRIGGERS
from hourhand.errors import HourhandError
from hourhand.ports.store import JobEdit
from tests.contract.checker import assert_sound
from tests.contract.harness import Tables, sqlite_tables
from tests.sim.cluster import LEAD_US, SEGMENTS, hash_of
from tests.sim.promises import check_promises
from tests.sim.timetable import expected_times

_OVERDUE_US = 20 * SECOND_US
_HEARTBEAT_S = 12  # and a little more: a worker compares what it holds
_BY_SCHEDULE = (Trigger.SCHEDULED, Trigger.CATCH_UP)
_NATURAL = (Trigger.SCHEDULED, Trigger.CATCH_UP, Trigger.UPSTREAM)
_EXAMPLES = 3


async def calm_down(world: Any, percent: int = 85) -> None:
    """Most jobs stop making runs, so that what is left can be seen to end."""
    for tenant, job_id in world.connection.execute(
        "SELECT tenant, id FROM jobs WHERE paused = 0 ORDER BY id"
    ).fetchall():
        if hash_of("calm", job_id) % 100 < percent:
            try:
                await world.carry_out("change_job", None, (tenant, job_id, _paused), {})
            except HourhandError as error:
                world.violations.append(f"I9 a pause was refused: {error.message}")


def _paused(job: Any, now_at: int) -> JobEdit:
    return JobEdit(spec=job.spec, paused=True, note="calm")


async def wait_for_quiet(world: Any, least_s: float, most_s: float) -> None:
    """Let time pass until nothing is left to do, for as long as the promise allows (I7)."""
    begun_s = asyncio.get_running_loop().time()
    while True:
        await asyncio.sleep(5)
        passed_s = asyncio.get_running_loop().time() - begun_s
        if world.in_flight:  # a call that somebody gave up long ago has not happened yet
            begun_s = asyncio.get_running_loop().time()
        if passed_s < least_s or world.in_flight:
            continue
        left = _unfinished(world)
        if not left:
            return
        if passed_s > most_s:
            world.violations.append(
                f"I7 not at rest {most_s} s after healing: {len(left)}, such as {left[:_EXAMPLES]}"
            )
            return


def _unfinished(world: Any) -> list[Any]:
    """Runs of jobs that make no more, and anything that is overdue."""
    now_at = world.clock.now()
    return list(
        world.connection.execute(
            "SELECT 'planned', p.job_id, p.scheduled_at, p.due_at FROM planned p LEFT JOIN jobs j ON j.id = p.job_id"
            " WHERE p.lane <> 0 AND (p.due_at < :late OR (p.due_at < :now AND (j.id IS NULL OR j.paused)))"
            " UNION ALL SELECT 'running', r.job_id, r.scheduled_at, r.due_at FROM running r"
            " LEFT JOIN jobs j ON j.id = r.job_id WHERE j.id IS NULL OR j.paused"
            " OR (r.phase IN (0, 3) AND r.due_at < :late) OR r.deadline_at < :late"
            " UNION ALL SELECT 'blocked', b.job_id, b.scheduled_at, b.due_at FROM blocked b"
            " LEFT JOIN jobs j ON j.id = b.job_id WHERE j.id IS NULL OR j.paused"
            " UNION ALL SELECT 'waiting', w.job_id, w.scheduled_at, w.deadline_at FROM waiting w WHERE w.deadline_at < :late"
            " UNION ALL SELECT 'untended', id, attend_at, attend_at FROM jobs WHERE attend_at < :now"
            " ORDER BY 1, 2, 3",
            {"now": now_at, "late": now_at - _OVERDUE_US},
        )
    )


async def check(world: Any) -> list[str]:
    """Everything that is wrong."""
    found: list[str] = []
    tables: Tables = await world.real._engine.write(sqlite_tables)
    jobs = await _versions_of_all(world)
    try:
        assert_sound(tables)
    except AssertionError as error:
        found.append(f"I8 {str(error)[:300]}")
    books = _Books(world, tables)
    for job_id, versions in jobs.items():
        found += books.check_job(job_id, versions)
        found += books.check_graph(job_id, versions)
    found += _check_calls(world)
    found += _check_effects(world, tables)
    found += check_promises(world, tables, jobs)
    found += _check_refused(world, jobs)
    found += _check_missing(tables)
    found += _check_bounds(tables)
    found += await _check_hands(world)
    return found


def check_stopped(world: Any) -> list[str]:
    """After a good end nobody holds anything."""
    held = world.connection.execute("SELECT job_id, scheduled_at FROM running WHERE phase = 1").fetchall()
    return [f"I7 held by nobody who lives: {len(held)}, such as {held[:_EXAMPLES]}"] if held else []


async def _versions_of_all(world: Any) -> dict[int, list[Version]]:
    pairs = world.connection.execute(
        "SELECT id, tenant FROM jobs UNION SELECT job_id, tenant FROM versions ORDER BY 1"
    ).fetchall()
    return {job_id: await world.real.versions(tenant, job_id) for job_id, tenant in pairs}


class _Books:
    """What the tables have of each job."""

    def __init__(self, world: Any, tables: Tables) -> None:
        self._world = world
        self._now_at = world.clock.now()
        self._begins_at = world._script.mix.begins_at
        self._gaps: dict[tuple[Any, ...], list[tuple[int, int]]] = {}
        for gap in tables.gaps:
            named = (gap.rule_key, gap.segment, gap.policy, gap.grace_us, gap.limit)
            self._gaps.setdefault(named, []).append((gap.from_at, gap.to_at))
        self._present: dict[int, set[int]] = {}
        self._scheduled: dict[int, set[int]] = {}
        self._ends: dict[tuple[int, int], State] = {}
        self._triggers: dict[tuple[int, int], Trigger] = {}
        for table in (tables.planned, tables.blocked, tables.running, tables.dead, tables.history):
            for row in table:
                self._present.setdefault(row.job_id, set()).add(row.scheduled_at)
        for table in (tables.planned, tables.blocked, tables.running, tables.history):
            for row in table:
                if row.trigger in _BY_SCHEDULE:
                    self._scheduled.setdefault(row.job_id, set()).add(row.scheduled_at)
        for line in tables.history:
            self._ends[line.job_id, line.scheduled_at] = line.state
            self._triggers.setdefault((line.job_id, line.scheduled_at), line.trigger)

    def check_job(self, job_id: int, versions: Sequence[Version]) -> list[str]:
        """I1, I4, I14: every promised time is accounted for, and nothing else was ever scheduled."""
        found = []
        expected = expected_times(versions, self._begins_at, self._now_at)
        present = self._present.get(job_id, set())
        gaps = self._gaps_of(job_id, versions)
        missing = sorted(
            at for at in expected - present if not any(first <= at <= last for first, last in gaps)
        )
        if missing:
            found.append(f"I1 lost times of {job_id}: {len(missing)}, such as {missing[:_EXAMPLES]}")
        if any(isinstance(version.spec.timing, AfterTiming) for version in versions):
            return found  # its times are its parents'
        phantoms = sorted(at for at in self._scheduled.get(job_id, set()) - expected if at <= self._now_at)
        if phantoms:
            found.append(f"I4 nothing promised {job_id} at {phantoms[:_EXAMPLES]}, {len(phantoms)} in all")
        return found

    def check_graph(self, job_id: int, versions: Sequence[Version]) -> list[str]:
        """I12: where all parents have a run of the schedule, the child has one too, unless it was changed meanwhile."""
        timings = {version.spec.timing for version in versions if not version.deleted}
        if len(timings) != 1 or any(version.paused or version.deleted for version in versions):
            return []
        [timing] = timings
        if not isinstance(timing, AfterTiming):
            return []
        since = versions[0].from_at + LEAD_US
        found = []
        for at in sorted(self._present.get(timing.parents[0], set())):
            if at <= since or not all(self._ended_naturally((parent, at)) for parent in timing.parents):
                continue
            if (
                at not in self._present.get(job_id, set())
                and self._world.watch.runs.get((job_id, at)) is None
            ):
                found.append(f"I12 {job_id} has nothing at {at} although all its parents have ended")
        return found[:_EXAMPLES]

    def _ended_naturally(self, key: tuple[int, int]) -> bool:
        return self._ends.get(key) in FINAL and self._triggers.get(key) in _NATURAL

    def _gaps_of(self, job_id: int, versions: Sequence[Version]) -> list[tuple[int, int]]:
        """Recorded gaps of the clocks that a job was a member of, which account for missed times."""
        segment = segment_of(job_id, SEGMENTS)
        gaps = []
        for version in versions:
            rule, misfire = version.spec.rule, version.spec.misfire
            if rule is not None:
                mine = (rule.key, segment, misfire.policy.value, misfire.grace_us, misfire.limit)
                gaps += self._gaps.get(mine, [])
        return gaps


def _check_calls(world: Any) -> list[str]:
    """I3, I6, I12 by what the world saw begin; no attempt begins twice."""
    found = []
    seen: set[tuple[Any, int]] = set()
    runs = world.watch.runs
    for call in world.target.calls:
        if call.due_at > call.at or (
            call.key.scheduled_at > call.at and TRIGGERS[call.trigger] in _BY_SCHEDULE
        ):
            found.append(f"I3 {call.run_id} began {call.due_at - call.at} µs early")
        if not call.run_id.endswith(f"@{_compact(call.key.scheduled_at)}"):
            found.append(f"I6 {call.key} is called {call.run_id}")
        if (call.key, call.fence) in seen:
            found.append(f"I2 attempt {call.fence} of {call.run_id} began twice")
        seen.add((call.key, call.fence))
        if tuple(call.key) not in runs:
            found.append(f"I4 {call.run_id} began and was never committed")
        if TRIGGERS[call.trigger] is Trigger.UPSTREAM and not _began_after_parents(world, call):
            found.append(f"I12 {call.run_id} began before its parents had succeeded")
    return found[:20]


def _began_after_parents(world: Any, call: Any) -> bool:
    """Whether all whom a run waited for had succeeded when it began."""
    at = call.key.scheduled_at
    return any(
        all(world.succeeded.get((parent, at), 1 << 60) <= call.place for parent in json.loads(parents))
        for parents in world.watch.waits.get(tuple(call.key), ())
    )


def _check_effects(world: Any, tables: Tables) -> list[str]:
    """I2: one completion per run, none without an effect, and at most one sending where that was asked for."""
    found = []
    done = Counter(
        (line.job_id, line.scheduled_at) for line in tables.history if line.state is State.SUCCEEDED
    )
    applied = {tuple(key) for key in world.target.applied}
    for key, count in done.items():
        if count > 1:
            found.append(f"I2 {key} succeeded {count} times")
        if key not in applied:
            found.append(f"I2 {key} succeeded and did nothing")
    sent: Counter[tuple[int, int]] = Counter()
    sometimes_more = {tuple(effect.key) for effect in world.target.effects if not effect.once_only}
    for effect in world.target.effects:
        sent[tuple(effect.key)] += 1
    for key, count in sent.items():
        if key not in sometimes_more and count > 1 + world.requeued[key]:
            found.append(f"I2 {key} was sent {count} times, and was to be sent at most once")
    return found


def _check_refused(world: Any, jobs: dict[int, list[Version]]) -> list[str]:
    """I4: what was refused never was, and what was deleted does not go on."""
    found = []
    names = {versions[0].spec.name for versions in jobs.values() if versions}
    known = {f"job-{name}" for name in world.people.jobs}
    for name in sorted(world.people.refused_names & (names - known)):
        found.append(f"I4 {name} was refused and is there")
    stopped = {ack.job_id: ack.effective_from for ack in world.people.acks if ack.what == "delete"}
    for call in world.target.calls:
        stopped_at = stopped.get(call.key.job_id)
        if stopped_at is not None and call.key.scheduled_at > stopped_at:
            found.append(f"I4 {call.run_id} began, of a job deleted from {stopped_at} on")
    return found[:20]


def _check_missing(tables: Tables) -> list[str]:
    """I12: nobody was skipped because a parent had no run for that time, and it had one all the same."""
    rows = (tables.planned, tables.blocked, tables.running, tables.history)
    natural = {(row.job_id, row.scheduled_at) for table in rows for row in table if row.trigger in _NATURAL}
    found = []
    for line in tables.history:
        detail = json.loads(line.detail) if line.detail and "MISSING" in line.detail else {}
        if detail.get("outcome") == Missing.MISSING.value:
            parent = parse_job_id(detail["parent"])
            if (parent, line.scheduled_at) in natural:
                found.append(f"I12 {line.job_id} did not wait for the run of {parent} at {line.scheduled_at}")
    return found[:_EXAMPLES]


def _check_bounds(tables: Tables) -> list[str]:
    """I13: what people asked for waits for slots within bounds too; the rest is held to its own at each commit."""
    beside = Counter(row.job_id for row in tables.blocked if row.trigger not in _NATURAL)
    return [
        f"I13 {count} runs of {job_id} that people asked for wait for its slots"
        for job_id, count in beside.items()
        if count > MAX_QUEUED
    ]


async def _check_hands(world: Any) -> list[str]:
    """I7, I13: what the store thinks a worker holds is what it holds, and no more than it has room for."""
    found = []
    unknown = await _unknown_to_workers(world)
    if unknown:  # answers may be on their way
        await asyncio.sleep(_HEARTBEAT_S)
        unknown &= await _unknown_to_workers(world)
    found += [f"I7 {name} does not know that it holds {key}" for name, key in sorted(unknown)]
    for life in world.cluster.lives:
        node = life.node
        if node is None or node._worker is None:
            continue
        if node.in_hand > world._script.mix.room:
            found.append(f"I13 {life.machine.name} holds {node.in_hand} runs")
        trouble = {name: why for name, why in node.parts.items() if why is not None}
        if trouble:
            found.append(f"I7 {life.machine.name} is not well: {trouble}")
    return found


async def _unknown_to_workers(world: Any) -> set[tuple[str, tuple[int, int, int]]]:
    """What workers hold according to the store, and have not in hand."""
    unknown = set()
    for life in world.cluster.lives:
        worker = None if life.node is None else life.node._worker
        for held in () if worker is None else await world.real.held_runs(worker._node_id):
            key = (held.job_id, held.scheduled_at, held.fence)
            if key not in worker._in_hand:
                unknown.add((life.machine.name, key))
    return unknown


def _compact(at: int) -> str:
    whole, rest = divmod(at, SECOND_US)
    text = datetime.fromtimestamp(whole, UTC).strftime("%Y%m%dT%H%M%S")
    return f"{text}.{rest:06d}Z" if rest else f"{text}Z"
