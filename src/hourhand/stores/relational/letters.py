"""Operations on dead letters; cancelling one run wherever it is, and repeating one that has ended."""

from collections.abc import Sequence
from typing import Any

from hourhand.core.deeds import Act
from hourhand.core.identity import RunKey
from hourhand.core.lifecycle import FINAL, Reason, State
from hourhand.core.model import FOREVER, Trigger
from hourhand.core.run import TRIGGER_CODES, TRIGGERS, DeadLetter, RunView
from hourhand.errors import Conflict
from hourhand.ports.reading import DeadGroup, DeadPage, DeadQuery
from hourhand.ports.store import Hint
from hourhand.stores.relational.deeds import note_deed, note_runs
from hourhand.stores.relational.descents import drop_waits
from hourhand.stores.relational.endings import end_unstarted
from hourhand.stores.relational.holding import unplanned_from
from hourhand.stores.relational.jobs import add_beside, hold, load, run_of_request
from hourhand.stores.relational.membership import Settings
from hourhand.stores.relational.quotas import take_runs
from hourhand.stores.relational.reading import get_run
from hourhand.stores.relational.rows import UnstartedRow
from hourhand.stores.relational.slots import hand_on
from hourhand.stores.relational.tx import ChangedMeanwhile, Tx
from hourhand.stores.relational.waves import reopen_wave

_END = (FOREVER, FOREVER, FOREVER)


async def dead_letters(tx: Tx, tenant: str, query: DeadQuery) -> DeadPage:
    """A page of dead letters, newest first."""
    failed_at, job, scheduled_at = query.before or _END
    name = "dead_page" if query.job_id is None else "dead_page_of"
    parameters = {
        "tenant": tenant,
        "failed_at": failed_at,
        "job": job,
        "scheduled_at": scheduled_at,
        "fingerprint": query.fingerprint,
        "failed_from": query.failed_from or 0,
        "failed_to": FOREVER if query.failed_to is None else query.failed_to,
        "limit": query.limit,
    }
    if query.job_id is not None:
        parameters["job_id"] = query.job_id
    letters = tuple(_letter(row) for row in await tx.all(name, parameters))
    last = letters[-1] if len(letters) == query.limit else None
    return DeadPage(
        letters=letters,
        next_before=None if last is None else (last.failed_at, last.job_id, last.scheduled_at),
    )


async def dead_groups(tx: Tx, tenant: str, by: str, limit: int) -> list[DeadGroup]:
    """Dead letters counted by cause or by job."""
    rows = await tx.all("dead_by_job" if by == "job" else "dead_by_error", (tenant, limit))
    return [DeadGroup(value=row[0], count=row[1], sample=_letter(row[2:])) for row in rows]


async def requeue(
    tx: Tx, settings: Settings, tenant: str, keys: Sequence[RunKey], downstream: bool = False
) -> list[RunKey]:
    """The same runs go on: fence kept, tries reset, due now; with what was skipped because of them if asked for."""
    moved = []
    sizes: list[int | None] = []  # how many runs each came to, where more than itself were asked for
    for key in keys:
        record = await load(tx, tenant, key.job_id)
        dead = None if record is None else await tx.one("take_dead", (key.job_id, key.scheduled_at, tenant))
        if record is None or dead is None:
            continue
        requeued = TRIGGER_CODES[Trigger.REQUEUED]
        row = (key.scheduled_at, key.job_id, record.lane, tx.now_at, requeued, dead[0], 0)
        await tx.insert("add_planned", [row])
        below = await reopen_wave(tx, tenant, key.job_id, key.scheduled_at) if downstream else 0
        sizes.append(1 + below if downstream else None)
        moved.append(key)
    await note_runs(
        tx, tenant, Act.DEAD_REQUEUE, [(*key, size) for key, size in zip(moved, sizes, strict=True)]
    )
    if moved:
        await take_runs(tx, settings, tenant, len(moved))
        tx.hints.add(Hint.RUNS)
    return moved


async def discard(tx: Tx, tenant: str, keys: Sequence[RunKey]) -> list[RunKey]:
    """Remove dead letters; their history stays."""
    taken = [
        key for key in keys if await tx.one("take_dead", (key.job_id, key.scheduled_at, tenant)) is not None
    ]
    await note_runs(tx, tenant, Act.DEAD_DISCARD, [(*key, None) for key in taken])
    return taken


async def rerun(
    tx: Tx, settings: Settings, tenant: str, key: RunKey, request_key: str | None
) -> RunKey | None:
    """A new run of the job as it is now, which names the one that it repeats."""
    record = await hold(tx, tenant, key.job_id)
    run = None if record is None else await get_run(tx, tenant, key)
    if record is None or run is None:
        return None
    if run.state not in FINAL:
        raise Conflict(f"the run is {run.state} and has not ended; wait for it, or cancel it")
    if request_key is not None:
        request_key = (
            f"rerun {key.scheduled_at} {request_key}"  # the same key may also have asked for other runs
        )
    known = await run_of_request(tx, key.job_id, request_key)
    if known is not None:
        return known
    made, _ = await add_beside(tx, settings, record, Trigger.RERUN, request_key)
    link = {"job_id": key.job_id, "scheduled_at": made.scheduled_at, "of_at": key.scheduled_at}
    await tx.run("add_rerun", {**link, "made_at": tx.now_at})
    await note_deed(tx, tenant, Act.RUN_RERUN, job_id=key.job_id, scheduled_at=key.scheduled_at)
    return made


async def cancel_run(tx: Tx, tenant: str, key: RunKey) -> RunView | None:
    """Cancel at once where nobody executes it, else ask its worker."""
    run = await get_run(tx, tenant, key)
    if run is None:
        return None
    if run.state in (State.SUCCEEDED, State.FAILED, State.SKIPPED, State.CANCELLED):
        raise Conflict(f"the run has already ended as {run.state}")
    if run.skip_asked:
        await _refuse_unplanned(tx, tenant, key)
    rows = (
        await tx.all("take_planned_row", (key.scheduled_at, key.job_id))
        or await tx.all("take_blocked", (key.job_id, key.scheduled_at))
        or await tx.all("take_idle_row", (key.job_id, key.scheduled_at))
        or await _take_waiting(tx, key)
    )
    if rows:
        unstarted = [UnstartedRow(*row) for row in rows]
        if run.skip_asked:
            await tx.all("drop_skips", (key.job_id, tx.array([key.scheduled_at])))
        await end_unstarted(tx, key.job_id, unstarted, State.CANCELLED, {"reason": Reason.ASKED.value})
        await hand_on(tx, [key.job_id])
    elif await tx.run("ask_cancel_run", (key.job_id, key.scheduled_at)):
        tx.hints.add(Hint.CANCEL)
    else:
        raise ChangedMeanwhile  # it was executed when it was looked for elsewhere, and is no longer
    if rows or not run.cancel_asked:  # to ask its worker once more changes nothing
        await note_deed(tx, tenant, Act.RUN_CANCEL, job_id=key.job_id, scheduled_at=key.scheduled_at)
    return await get_run(tx, tenant, key)


async def _refuse_unplanned(tx: Tx, tenant: str, key: RunKey) -> None:
    """What is marked as skipped keeps its place until its clock has come past it, or it would be planned again."""
    record = await load(tx, tenant, key.job_id)
    unplanned = None if record is None else await unplanned_from(tx, record)
    if unplanned is not None and key.scheduled_at >= unplanned:
        raise Conflict("that time is skipped already and will not run; there is nothing to cancel")


async def _take_waiting(tx: Tx, key: RunKey) -> list[tuple[int, ...]]:
    row = await tx.one("waiting_at", (key.job_id, key.scheduled_at))
    if row is None:
        return []
    await drop_waits(tx, [(key.job_id, key.scheduled_at)])
    return [(key.scheduled_at, 0, key.scheduled_at, row[5], row[4], 0)]


def _letter(row: Sequence[Any]) -> DeadLetter:
    return DeadLetter(
        job_id=row[0],
        scheduled_at=row[1],
        tenant=row[2],
        job_name=row[3],
        failed_at=row[4],
        tries=row[5],
        fence=row[6],
        trigger=TRIGGERS[row[7]],
        error=row[8],
        fingerprint=row[9],
    )
