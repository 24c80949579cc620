"""Runs that people send down a graph: what follows a manual run, or a dead letter that is sent back.

The waiting rows of the whole wave are written at once, each for those of its parents that take part; what the
schedule brings about is not touched by it.
"""

from collections.abc import Mapping, Sequence

from hourhand.core.dag import GraphJob, levels
from hourhand.core.lifecycle import Reason, State
from hourhand.core.model import Trigger
from hourhand.core.run import TRIGGER_CODES
from hourhand.stores.relational.descents import code_of_outcome, wait_row
from hourhand.stores.relational.edges import GraphReader
from hourhand.stores.relational.rows import STATES, JobRecord, from_json, to_json
from hourhand.stores.relational.tx import Tx

_REOPENED = frozenset({Reason.UPSTREAM.value, Reason.EXPIRED.value})


async def jobs_below(tx: Tx, tenant: str, root_id: int) -> dict[int, GraphJob]:
    """All jobs that follow one, however far down."""
    reader = GraphReader(tx, tenant)
    below = await reader.below([root_id])
    return await reader.jobs(sorted(below - {root_id}))


async def any_run_at(tx: Tx, job_ids: Sequence[int], at: int) -> bool:
    """Whether any of some jobs has a run at a nominal time, wherever it is."""
    if not job_ids:
        return False
    pairs = to_json([(job_id, at) for job_id in job_ids])
    return bool(await tx.all("hold_waiting", (pairs,)) or await tx.all("runs_elsewhere", (pairs,)))


async def open_wave(tx: Tx, jobs: Mapping[int, GraphJob], root_id: int, at: int, trigger: Trigger) -> int:
    """Let all that follow a job have a run after its new one; answers how many."""
    if not jobs:
        return 0
    records = await _records(tx, jobs)
    rows = [
        wait_row(
            tx,
            records[job_id],
            at,
            [parent for parent in job.parents if parent in jobs or parent == root_id],
            trigger=TRIGGER_CODES[trigger],
        )
        for job_id, job in sorted(jobs.items())
        if job_id in records
    ]
    await tx.insert("add_waiting", rows)
    return len(rows)


async def reopen_wave(tx: Tx, tenant: str, root_id: int, at: int) -> int:
    """Let runs wait again that were skipped because of one that is sent back; answers how many."""
    jobs = await jobs_below(tx, tenant, root_id)
    records = await _records(tx, jobs)
    depth = levels({job_id: job.parents for job_id, job in jobs.items()})
    wave = {root_id}
    for job_id in sorted(jobs, key=lambda one: (depth[one], one)):
        rows = await tx.all("parents_at", (to_json([(job_id, at)]),))
        parents = [row[2] for row in rows] or list(jobs[job_id].parents)
        again = [parent for parent in parents if parent in wave]
        if not again or job_id not in records:
            continue
        if await tx.one("waiting_at", (job_id, at)) is not None:
            await tx.run("forget_signals", (job_id, at, tx.array(again)))
            wave.add(job_id)
        elif await _reopen(tx, records[job_id], at, parents, wave):
            wave.add(job_id)
    return len(wave) - 1


async def _reopen(tx: Tx, record: JobRecord, at: int, parents: list[int], wave: set[int]) -> bool:
    run = {"job_id": record.id, "scheduled_at": at}
    ended = await tx.one("ended_as", run)
    if ended is None or STATES[ended[0]] is not State.SKIPPED or await tx.one("run_is_live", run):
        return False
    if (from_json(ended[2]) or {}).get("reason") not in _REOPENED:
        return False
    requeued = TRIGGER_CODES[Trigger.REQUEUED]
    await tx.insert("add_waiting", [wait_row(tx, record, at, parents, trigger=requeued, fence=ended[1])])
    signals = []
    for parent in parents:
        other = {"job_id": parent, "scheduled_at": at}
        if parent not in wave and not await tx.one("run_is_live", other):
            state = await tx.one("ended_as", other)
            if state is not None:
                signals.append((record.id, at, parent, code_of_outcome(STATES[state[0]])))
    await tx.insert("add_signal", signals)
    return True


async def _records(tx: Tx, jobs: Mapping[int, GraphJob]) -> dict[int, JobRecord]:
    rows = await tx.all("get_jobs", (tx.array(sorted(jobs)),))
    return {row[0]: JobRecord(*row) for row in rows}
