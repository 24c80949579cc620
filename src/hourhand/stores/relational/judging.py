"""The exceptions that a claim and the sweeper meet: late runs, and due ones whose job is full.

They come one by one, each judged by pure policy; what the policy says is written here.
"""

from collections.abc import Sequence
from typing import Any

from hourhand.core.lifecycle import Reason, State
from hourhand.core.model import Trigger
from hourhand.core.overlap import when_full
from hourhand.core.plan import Lateness, judge_late, judge_late_by_versions
from hourhand.core.run import TRIGGER_CODES
from hourhand.ports.store import Hint
from hourhand.stores.relational.rows import JobRecord, UnstartedRow, decode_spec, ending, to_json, versions_of
from hourhand.stores.relational.slots import end_unstarted, hand_on
from hourhand.stores.relational.tx import Tx

_SCHEDULED = TRIGGER_CODES[Trigger.SCHEDULED]


async def judge_late_runs(
    tx: Tx, late: Sequence[tuple[int, UnstartedRow]]
) -> dict[tuple[int, int], Lateness]:
    """Apply the misfire policy to planned runs past their grace; answers the verdict of each."""
    if not late:
        return {}
    ids = sorted({job_id for job_id, _ in late})
    records = {row[0]: JobRecord(*row) for row in await tx.all("get_jobs", (tx.array(ids),))}
    verdicts = {}
    skipped: dict[tuple[int, int], UnstartedRow] = {}
    put_back = []
    for job_id, row in late:
        record = records.get(job_id)
        if record is None:  # deleted meanwhile; whoever claims it next ends it
            continue
        verdict = verdicts[job_id, row.scheduled_at] = await _lateness(tx, record, row)
        if verdict is Lateness.SKIP:
            skipped[job_id, row.scheduled_at] = row
        elif verdict is Lateness.BACKGROUND:
            put_back.append((row.scheduled_at, job_id))
    if put_back:
        await tx.run("to_background", (to_json(put_back),))
        tx.hints.add(Hint.RUNS)
    if skipped:
        pairs = to_json([(at, job_id) for job_id, at in skipped])
        endings = []
        for job_id, at in await tx.all("take_planned_rows", (pairs,)):  # but not what was claimed meanwhile
            record = records[job_id]
            policy = decode_spec(record.spec).misfire.policy
            detail = {"reason": Reason.MISFIRE.value, "policy": policy.value}
            endings.append(
                ending(job_id, skipped[job_id, at], State.SKIPPED, tx.now_at, detail, record.version)
            )
        await tx.insert("add_ending", endings)
    return verdicts


async def judge_full_job(tx: Tx, job_id: int, row: UnstartedRow, version: int, spec_text: str) -> None:
    """Apply the overlap policy to a due run, already taken from the plan, whose job has no free slot."""
    if row.trigger != _SCHEDULED:
        await _block(tx, job_id, 1, row)
        return
    overlap = decode_spec(spec_text).overlap
    waiting = [found[0] for found in await tx.all("waiting_scheduled", (job_id,))]
    verdict = when_full(overlap, waiting, row.scheduled_at)
    skipped = []
    for at in verdict.skip_waiting:
        skipped += [UnstartedRow(*found) for found in await tx.all("take_blocked", (job_id, at))]
    if verdict.wait:
        await _block(tx, job_id, 0, row)
    else:
        skipped.append(row)
    detail = {"reason": Reason.OVERLAP.value, "policy": overlap.value}
    await end_unstarted(tx, job_id, skipped, State.SKIPPED, detail, version)
    if verdict.cancel_running:
        await _cancel_running(tx, job_id, detail)


async def end_deleted(tx: Tx, job_id: int, scheduled_at: int) -> None:
    """A run whose job is gone ends as cancelled."""
    taken = await tx.all("take_planned_row", (scheduled_at, job_id)) or await tx.all(
        "take_idle_row", (job_id, scheduled_at)
    )
    unstarted = [UnstartedRow(*row) for row in taken]
    await end_unstarted(tx, job_id, unstarted, State.CANCELLED, {"reason": Reason.DELETED.value})


async def _lateness(tx: Tx, record: JobRecord, row: UnstartedRow) -> Lateness:
    spec = decode_spec(record.spec)
    if row.scheduled_at > record.since:
        return judge_late(spec.rule, spec, row.scheduled_at, record.until, tx.now_at)
    # an earlier version's, so the present rule does not say what came after it
    versions = await versions_of(tx, record.id, record)
    return judge_late_by_versions(versions, spec, row.scheduled_at, tx.now_at)


async def _cancel_running(tx: Tx, job_id: int, detail: dict[str, Any]) -> None:
    """Ask for what a worker executes; what nobody does, such as a run between two attempts, ends at once."""
    await tx.run("ask_cancel", (job_id,))
    tx.hints.add(Hint.CANCEL)
    idle = [UnstartedRow(*row) for row in await tx.all("drop_idle_of", (job_id,))]
    await end_unstarted(tx, job_id, idle, State.CANCELLED, detail)
    await hand_on(tx, job_id)


async def _block(tx: Tx, job_id: int, rank: int, row: UnstartedRow) -> None:
    await tx.insert(
        "add_blocked",
        [(job_id, rank, row.scheduled_at, row.lane, row.due_at, row.trigger, row.fence, row.tries)],
    )
