"""The exceptions that a claim and the sweeper meet: late runs, and due ones whose job is full.

They come one by one, each judged by pure policy; what the policy says is written here.
"""

from typing import Any

from hourhand.core.lifecycle import Reason, State
from hourhand.core.model import Trigger
from hourhand.core.overlap import when_full
from hourhand.core.plan import Lateness, judge_late, judge_late_by_versions
from hourhand.core.run import TRIGGER_CODES
from hourhand.ports.store import Hint
from hourhand.stores.relational.rows import JobRecord, UnstartedRow, decode_spec, versions_of
from hourhand.stores.relational.slots import end_unstarted, hand_on
from hourhand.stores.relational.tx import Tx

_SCHEDULED = TRIGGER_CODES[Trigger.SCHEDULED]


async def judge_late_run(tx: Tx, job_id: int, row: UnstartedRow) -> Lateness:
    """Apply the misfire policy to one late planned run."""
    record = JobRecord(*await tx.one("get_job", (job_id,)))
    spec = decode_spec(record.spec)
    if row.scheduled_at > record.since:
        verdict = judge_late(spec.rule, spec, row.scheduled_at, record.until, tx.now_at)
    else:  # an earlier version's, so the present rule does not say what came after it
        versions = await versions_of(tx, job_id, record)
        verdict = judge_late_by_versions(versions, spec, row.scheduled_at, tx.now_at)
    if verdict is Lateness.BACKGROUND:
        await tx.run("to_background", (row.scheduled_at, job_id))
        tx.hints.add(Hint.RUNS)
    elif verdict is Lateness.SKIP and await tx.all("take_planned_row", (row.scheduled_at, job_id)):
        detail = {"reason": Reason.MISFIRE.value, "policy": spec.misfire.policy.value}
        await end_unstarted(tx, job_id, [row], State.SKIPPED, detail, record.version)
    return verdict


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
