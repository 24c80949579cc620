"""Operations on backfills: make, change, feed, count. Each is one transaction.

Feeding locks the job's clock, the job and the backfill, in this order, and inserts by one statement that
looks for each time in every table in which a run may be. Which times, and how many, is `core.backfill`'s.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from hourhand.core.backfill import (
    MAX_UNFINISHED,
    Backfill,
    BackfillAction,
    BackfillSpec,
    BackfillState,
    Order,
    Tally,
    allowance,
    next_page,
)
from hourhand.core.deeds import Act
from hourhand.core.identity import background_lane, format_backfill_id
from hourhand.core.lifecycle import FINAL, Reason, State
from hourhand.core.model import Job, JobState
from hourhand.errors import Conflict, Overloaded
from hourhand.ports.backfills import BackfillPage, BackfillQuery, DecideBackfill, Feeding
from hourhand.ports.store import Hint
from hourhand.stores.relational.deeds import note_deed
from hourhand.stores.relational.endings import end_unstarted
from hourhand.stores.relational.holding import hold_with_clock, unplanned_from
from hourhand.stores.relational.jobs import hold
from hourhand.stores.relational.membership import Settings
from hourhand.stores.relational.quotas import runs_room, take_runs
from hourhand.stores.relational.rows import STATES, JobRecord, UnstartedRow, job_of
from hourhand.stores.relational.slots import hand_on
from hourhand.stores.relational.tx import Tx

RULE_CHANGED = "the job's schedule changed; resume to go on with the times it was made for"
_STATES = tuple(BackfillState)
_NEWEST_ID = (1 << 63) - 1
_COUNTED = {
    State.SUCCEEDED: "succeeded",
    State.FAILED: "failed",
    State.SKIPPED: "skipped",
    State.CANCELLED: "cancelled",
}
_OPEN = (BackfillState.RUNNING, BackfillState.PAUSED)
_ACTS = {
    BackfillAction.PAUSE: Act.BACKFILL_PAUSE,
    BackfillAction.RESUME: Act.BACKFILL_RESUME,
    BackfillAction.CANCEL: Act.BACKFILL_CANCEL,
}
_MOST_COUNTED = 2_000  # more than may be open


async def add_backfill(tx: Tx, tenant: str, job_id: int, decide: DecideBackfill) -> Backfill | None:
    """Store a backfill of a job that has none which is not over."""
    record = await hold(tx, tenant, job_id)
    if record is None:
        return None
    backfill = decide(job_of(record), tx.now_at)
    other = await tx.one("open_backfill_of", (tenant, job_id))
    if other is not None:
        raise Conflict(
            f"the job has a backfill already, {format_backfill_id(other[0])}; wait for it or cancel it"
        )
    if (await tx.one("count_unfinished", (tenant, MAX_UNFINISHED)))[0] >= MAX_UNFINISHED:
        raise Overloaded(f"{MAX_UNFINISHED} backfills are under way already", retry_after_s=60)
    await tx.run("add_backfill", _values(backfill))
    await _note(tx, Act.BACKFILL_CREATE, backfill, count=backfill.tally.total, note=backfill.spec.note)
    tx.hints.add(Hint.BACKFILLS)
    return backfill


async def get_backfill(tx: Tx, tenant: str, backfill_id: int) -> Backfill | None:
    """One backfill of a tenant."""
    row = await tx.one("get_backfill", (backfill_id,))
    return None if row is None or row[2] != tenant else _backfill(row)


async def list_backfills(tx: Tx, tenant: str, query: BackfillQuery) -> BackfillPage:
    """A page of backfills, newest first."""
    before = _NEWEST_ID if query.before_id is None else query.before_id
    if query.job_id is None:
        rows = await tx.all("backfills_page", (tenant, before, query.limit))
    else:
        rows = await tx.all("backfills_page_of", (tenant, query.job_id, before, query.limit))
    found = tuple(_backfill(row) for row in rows)
    return BackfillPage(backfills=found, next_before_id=found[-1].id if len(found) == query.limit else None)


async def unfinished_backfills(tx: Tx, after_id: int, limit: int) -> list[int]:
    """Backfills with something left to do."""
    return [row[0] for row in await tx.all("unfinished_backfills", (after_id, limit))]


async def change_backfill(tx: Tx, tenant: str, backfill_id: int, action: BackfillAction) -> Backfill | None:
    """Pause, resume or cancel, under the lock of the job, where there still is one."""
    seen = await get_backfill(tx, tenant, backfill_id)
    if seen is None:
        return None
    record = await hold(tx, tenant, seen.job_id)
    backfill = await _hold(tx, backfill_id)
    if backfill is None:
        return None
    if backfill.state not in _OPEN:
        if action is BackfillAction.CANCEL and backfill.state is BackfillState.CANCELLED:
            return backfill
        raise Conflict(f"the backfill is {backfill.state} already")
    tx.hints.add(Hint.BACKFILLS)
    if action is BackfillAction.CANCEL:
        changed = await _cancelled(tx, backfill)
    elif action is BackfillAction.RESUME:
        changed = _resumed(backfill, record)
    else:
        changed = msgspec.structs.replace(backfill, state=BackfillState.PAUSED, reason=None)
    if changed != backfill:
        await _note(tx, _ACTS[action], backfill)
    return await _put(tx, changed)


async def feed_backfill(tx: Tx, settings: Settings, backfill_id: int) -> Feeding | None:
    """Count what has ended, and make the next runs."""
    row = await tx.one("get_backfill", (backfill_id,))
    if row is None:
        return None
    seen = _backfill(row)
    record = await hold_with_clock(tx, settings, seen.tenant, seen.job_id)
    if record is None:  # whoever deleted the job knew nothing of backfills
        await end_with_job(tx, seen.tenant, seen.job_id)
    backfill = await _hold(tx, backfill_id)
    if backfill is None:
        return None
    if record is None or backfill.finished_at is not None:
        return Feeding(backfill=backfill)
    counted = await _count(tx, backfill)
    fed, passed = counted, 0
    if counted.state is BackfillState.RUNNING:
        fed, passed = await _feed(tx, settings, record, job_of(record), counted)
    if fed != backfill:
        fed = await _put(tx, fed)
    return Feeding(
        backfill=fed,
        passed=passed,
        fed=fed.tally.fed - backfill.tally.fed,
        ended=fed.tally.ended - backfill.tally.ended,
    )


async def end_with_job(tx: Tx, tenant: str, job_id: int) -> None:
    """A job that is deleted takes its backfills with it; what of them waits ends as all of the job's runs."""
    ids = await tx.all(
        "end_backfills_of",
        {"reason": Reason.DELETED.value, "now": tx.now_at, "tenant": tenant, "job_id": job_id},
    )
    if ids:
        await tx.run("forget_backfill_runs", (tx.array([row[0] for row in ids]),))


async def _feed(
    tx: Tx, settings: Settings, record: JobRecord, job: Job, backfill: Backfill
) -> tuple[Backfill, int]:
    """Make the next runs of a backfill whose job and clock are held; how many times the mark passed."""
    rule = job.spec.rule
    if rule is None or rule.key != backfill.present_key:
        return msgspec.structs.replace(backfill, state=BackfillState.PAUSED, reason=RULE_CHANGED), 0
    if job.state is JobState.PAUSED and not backfill.while_paused:
        return backfill, 0
    limit, since = allowance(backfill, tx.now_at)
    limit = await runs_room(tx, settings, backfill.tenant, limit)
    planned_from = await unplanned_from(tx, record)
    bound_at = tx.now_at if planned_from is None else min(tx.now_at, planned_from - 1)
    page = next_page(backfill, bound_at, limit)
    made = await _insert(tx, record, backfill, page.times)
    await take_runs(tx, settings, backfill.tenant, made)
    tally = backfill.tally
    next_at = since + made * (backfill.spec.pace_us or 0)
    return (
        msgspec.structs.replace(
            backfill,
            mark=page.mark,
            next_at=next_at if made else backfill.next_at,
            tally=msgspec.structs.replace(
                tally, fed=tally.fed + made, already=tally.already + len(page.times) - made
            ),
        ),
        len(page.times),
    )


async def _insert(tx: Tx, record: JobRecord, backfill: Backfill, times: Sequence[int]) -> int:
    if not times:
        return 0
    rows = await tx.all(
        "feed_runs",
        {
            "job_id": record.id,
            "lane": background_lane(record.lane),
            "due_at": tx.now_at,
            "times": tx.array(times),
        },
    )
    await tx.insert("add_backfill_run", [(backfill.id, row[0]) for row in rows])
    if rows:
        tx.hints.add(Hint.RUNS)
    return len(rows)


async def _count(tx: Tx, backfill: Backfill) -> Backfill:
    """Add up what has ended. Only a dead letter can go on, and then it is no longer the backfill's matter."""
    open_times = [row[0] for row in await tx.all("backfill_runs_of", (backfill.id, _MOST_COUNTED))]
    if not open_times:
        return backfill
    counts = msgspec.structs.asdict(backfill.tally)
    ended = []
    for at, code in await tx.all("last_states", (backfill.job_id, tx.array(open_times))):
        if code is not None and STATES[code] in FINAL:
            counts[_COUNTED[STATES[code]]] += 1
            ended.append(at)
    if not ended:
        return backfill
    await tx.run("drop_backfill_runs", (backfill.id, tx.array(ended)))
    return msgspec.structs.replace(backfill, tally=Tally(**counts))


def _resumed(backfill: Backfill, record: JobRecord | None) -> Backfill:
    """Goes on with the job as it is now: whoever resumes agrees to another schedule, and to a pause."""
    present_key, while_paused = backfill.present_key, backfill.while_paused
    if record is not None:
        rule = job_of(record).spec.rule
        present_key = present_key if rule is None else rule.key
        while_paused = bool(record.paused)
    return msgspec.structs.replace(
        backfill,
        state=BackfillState.RUNNING,
        reason=None,
        present_key=present_key,
        while_paused=while_paused,
    )


async def _cancelled(tx: Tx, backfill: Backfill) -> Backfill:
    """What nobody ever took is taken back as if it had never been fed; fences of the rest must not be forgotten."""
    open_times = [row[0] for row in await tx.all("backfill_runs_of", (backfill.id, _MOST_COUNTED))]
    key = (backfill.job_id, tx.array(open_times))
    rows = [
        UnstartedRow(*row)
        for name in ("take_fed", "take_idle_fed", "take_waiting")
        for row in await tx.all(name, key)
    ]
    unfed = [row.scheduled_at for row in rows if row.fence == 0]
    given_back = [row for row in rows if row.fence > 0]
    await end_unstarted(tx, backfill.job_id, given_back, State.CANCELLED, {"reason": Reason.ASKED.value})
    await tx.run("drop_backfill_runs", (backfill.id, tx.array(unfed)))
    await hand_on(tx, [backfill.job_id])
    tally = msgspec.structs.replace(backfill.tally, fed=backfill.tally.fed - len(unfed))
    changed = msgspec.structs.replace(backfill, state=BackfillState.CANCELLED, reason=None, tally=tally)
    return await _count(tx, changed)


async def _put(tx: Tx, backfill: Backfill) -> Backfill:
    """Write a held backfill; it is over once all is fed and nothing open."""
    if backfill.state is BackfillState.RUNNING and backfill.is_fed and backfill.tally.open == 0:
        backfill = msgspec.structs.replace(backfill, state=BackfillState.DONE)
    is_over = backfill.state not in _OPEN and backfill.tally.open == 0
    backfill = msgspec.structs.replace(
        backfill, updated_at=tx.now_at, finished_at=tx.now_at if is_over else None
    )
    values = _values(backfill)
    await tx.run("put_backfill", {name: values[name] for name in _CHANGING})
    return backfill


async def _note(
    tx: Tx, act: Act, backfill: Backfill, *, count: int | None = None, note: str | None = None
) -> None:
    name = format_backfill_id(backfill.id)
    await note_deed(tx, backfill.tenant, act, job_id=backfill.job_id, object_id=name, count=count, note=note)


async def _hold(tx: Tx, backfill_id: int) -> Backfill | None:
    row = await tx.one("lock_backfill", (backfill_id,))
    return None if row is None else _backfill(row)


_CHANGING = (
    "id", "state", "present_rule", "while_paused", "mark", "next_at", "fed", "already", "succeeded", "failed",
    "skipped", "cancelled", "reason", "updated_at", "finished_at",
)  # fmt: skip


def _values(backfill: Backfill) -> dict[str, Any]:
    spec = backfill.spec
    return {
        "id": backfill.id,
        "job_id": backfill.job_id,
        "tenant": backfill.tenant,
        "state": _STATES.index(backfill.state),
        "from_at": spec.from_at,
        "to_at": spec.to_at,
        "newest_first": int(spec.order is Order.NEWEST),
        "pace_us": spec.pace_us,
        "max_open": spec.max_open,
        "note": spec.note,
        "rule": backfill.rule_key,
        "present_rule": backfill.present_key,
        "while_paused": int(backfill.while_paused),
        "mark": backfill.mark,
        "next_at": backfill.next_at,
        **msgspec.structs.asdict(backfill.tally),
        "reason": backfill.reason,
        "created_at": backfill.created_at,
        "updated_at": backfill.updated_at,
        "finished_at": backfill.finished_at,
    }


def _backfill(row: Sequence[Any]) -> Backfill:
    """A backfill from its row, in the order of `get_backfill`."""
    spec = BackfillSpec(
        from_at=row[4],
        to_at=row[5],
        order=Order.NEWEST if row[6] else Order.OLDEST,
        pace_us=row[7],
        max_open=row[8],
        note=row[9],
    )
    tally = Tally(
        total=row[15],
        fed=row[16],
        already=row[17],
        succeeded=row[18],
        failed=row[19],
        skipped=row[20],
        cancelled=row[21],
    )
    return Backfill(
        id=row[0],
        job_id=row[1],
        tenant=row[2],
        state=_STATES[row[3]],
        spec=spec,
        rule_key=row[10],
        present_key=row[11],
        while_paused=bool(row[12]),
        mark=row[13],
        next_at=row[14],
        tally=tally,
        reason=row[22],
        created_at=row[23],
        updated_at=row[24],
        finished_at=row[25],
    )
