"""Operations that change jobs: edit, pause, resume, delete, tend. Each is one transaction.

The order of an edit is the design's: the job and its clock first, then its planned rows, and only then
the cut after which the new version plans. What lies before the cut stays the old version's.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from hourhand.core.dag import GraphJob
from hourhand.core.deeds import Act
from hourhand.core.identity import BACKGROUND, SKIP_LANE, background_lane, class_of_lane
from hourhand.core.instant import HOUR_US
from hourhand.core.lifecycle import Reason, State
from hourhand.core.model import AfterTiming, Job, JobState, OnceTiming, Trigger
from hourhand.core.plan import expected_times, first_since, last_time, used_runs
from hourhand.core.run import TRIGGER_CODES
from hourhand.core.tending import Care, attend_at, care_for
from hourhand.errors import Conflict, check_version
from hourhand.ports.store import Changed, Decide, Hint, JobEdit
from hourhand.stores.relational.backfills import end_with_job
from hourhand.stores.relational.deeds import note_deed
from hourhand.stores.relational.descents import Wait, end_wait
from hourhand.stores.relational.edges import (
    check_change,
    graph_refusal,
    has_children,
    lock_graph,
    other_roots,
    refuse_if_followed,
    rewire,
)
from hourhand.stores.relational.endings import write_endings
from hourhand.stores.relational.jobs import enrol, hold, join_sets, leave_set, load
from hourhand.stores.relational.membership import (
    MAX_COMPUTED,
    Enrolment,
    Settings,
    coming_times,
    hold_clocks,
    job_jitter,
    leave,
    planned_to,
)
from hourhand.stores.relational.quotas import check_edit
from hourhand.stores.relational.rows import (
    JobRecord,
    UnstartedRow,
    ending,
    job_of,
    job_values,
    lane_for,
    to_json,
    versions_of,
)
from hourhand.stores.relational.skips import forget_skips, keep_skips
from hourhand.stores.relational.tidings import DELETED, change_kind, note_jobs
from hourhand.stores.relational.tx import ChangedMeanwhile, Tx

_SCHEDULED = TRIGGER_CODES[Trigger.SCHEDULED]


async def change_job(tx: Tx, settings: Settings, tenant: str, job_id: int, decide: Decide) -> Changed | None:
    """Make the next version of a job from what `decide` says of the present one."""
    record = await _hold(tx, settings, tenant, job_id, decide)
    if record is None:
        return None
    old = job_of(record)
    edit = decide(old, tx.now_at)
    await _check_key(tx, old, edit)
    if await _touches_graph(tx, old, edit):
        await check_change(tx, tenant, [_graph_job(old.id, edit)])
    return await _apply(tx, settings, record, old, edit, await _cut(tx, settings, record))


async def change_roots(
    tx: Tx, settings: Settings, tenant: str, job_id: int, decide: Decide
) -> Changed | None:
    """The same, and the other roots of the job's graph get its new times in the same moment."""
    await lock_graph(tx, tenant)
    seen = await load(tx, tenant, job_id)
    if seen is None:
        return None
    ids = [job_id, *await other_roots(tx, tenant, job_id)]
    olds = {one: job_of(JobRecord(*row)) for one, row in await _rows_of(tx, ids)}
    edits = _edits_of_roots(olds, job_id, decide, tx.now_at)
    await hold_clocks(tx, settings, [*olds.values(), *(_as_edited(olds[one], edits[one]) for one in olds)])
    records = {one: await hold(tx, tenant, one) for one in sorted(olds)}
    if any(record is None or record.version != olds[one].version for one, record in records.items()):
        raise ChangedMeanwhile
    edits = _edits_of_roots(olds, job_id, decide, tx.now_at)
    await _check_key(tx, olds[job_id], edits[job_id])
    await check_change(tx, tenant, [_graph_job(one, edit) for one, edit in edits.items()])
    held = {one: record for one, record in records.items() if record is not None}
    cut = max([await _cut(tx, settings, record) for record in held.values()])
    changed = {
        one: await _apply(tx, settings, record, olds[one], edits[one], cut) for one, record in held.items()
    }
    return changed[job_id]


async def delete_job(
    tx: Tx,
    settings: Settings,
    tenant: str,
    job_id: int,
    cancel_running: bool,
    version: int | None = None,
) -> Changed | None:
    """Remove a job with everything that is not under way; its versions stay."""
    record = await _hold(tx, settings, tenant, job_id, None)
    if record is None:
        return None
    check_version(record.version, version)
    await refuse_if_followed(tx, tenant, job_id)
    job = job_of(record)
    cut = await _cut(tx, settings, record)
    await end_with_job(tx, tenant, job_id)
    await forget_skips(tx, record, cut)
    await _drop_coming(tx, record, job, cut)
    await leave(tx, record, job, cut)  # what it was still to get ends as cancelled, like all that is planned
    await _end_paused(tx, record, cut)
    await tx.all(
        "hold_slots", (tx.array([job_id]),)
    )  # a claim that found it full has blocked its run by then
    ended = [UnstartedRow(*row) for row in await tx.all("drop_blocked_of", (job_id,))]
    ended += [UnstartedRow(*row) for row in await tx.all("drop_idle_of", (job_id,))]
    if cancel_running:  # of what waits for its report nobody needs to be asked
        ended += [UnstartedRow(*row) for row in await tx.all("drop_reported_of", (job_id,))]
    waits = [Wait(*row) for row in await tx.all("drop_waiting_of", (job_id,))]
    await tx.run("drop_signals_of", (job_id,))
    reason = {"reason": Reason.DELETED.value}
    endings = [ending(job_id, row, State.CANCELLED, tx.now_at, reason, record.version) for row in ended]
    endings += [end_wait(tx, wait, record, State.CANCELLED, reason) for wait in waits]
    await write_endings(tx, endings)
    await rewire(tx, job_id, job.spec.timing, OnceTiming(at=0), cut)
    await tx.run("drop_dead_of", (job_id,))
    if cancel_running:
        await tx.run("cancel_running_of", (job_id,))
        tx.hints.add(Hint.CANCEL)
    await _keep_version(tx, record)
    tombstone = (job_id, record.version + 1, tenant, cut, record.until, record.paused, 1, None, record.spec)
    await tx.insert("add_version", [tombstone])
    await leave_set(tx, job)
    await note_jobs(tx, DELETED, [msgspec.structs.replace(job, version=record.version + 1)])
    await note_deed(tx, tenant, Act.JOB_DELETE, job_id=job_id, version=record.version + 1)
    await tx.run("drop_job", (job_id,))  # last, for it holds what is counted of the tenant
    return Changed(job=job, effective_from=cut)


async def jobs_to_tend(tx: Tx, limit: int) -> tuple[list[int], int | None]:
    """Which jobs want care now, and when the next one does."""
    ids = [row[0] for row in await tx.all("jobs_to_tend", (tx.now_at, limit))]
    return ids, (await tx.one("next_attend"))[0]


async def tend_job(tx: Tx, settings: Settings, job_id: int) -> None:
    """Give a job the care it needs."""
    seen = await tx.one("get_job", (job_id,))
    record = None if seen is None else await _hold(tx, settings, seen[1], job_id, None)
    if record is None:
        return
    job = job_of(record)
    match care_for(job, tx.now_at, settings.keep_us):
        case Care.RESUME:
            await _resume(tx, settings, record, job)
            return
        case Care.SKIP_AS_PAUSED:
            await _skip_as_paused(tx, record)
        case Care.LEAVE_CLOCK:
            await leave(tx, record, job, job.until)
            await tx.run("forget_clock", (job.id,))
        case Care.FORGET:
            if not await tx.one("run_is_live", {"job_id": job.id, "scheduled_at": record.once_at}):
                await delete_job(tx, settings, job.tenant, job.id, cancel_running=False)
            else:
                await tx.run("attend_later", (tx.now_at + settings.keep_us, job.id))
            return
        case Care.NOTHING:
            pass
    await tx.run("attend_later", (attend_at(job, settings.keep_us, tx.now_at), job.id))


async def _resume(tx: Tx, settings: Settings, record: JobRecord, job: Job) -> None:
    """A pause that was to end gives back the times from its end on, however late somebody looks."""
    assert job.paused_until is not None
    cut = max(job.paused_until - 1, record.version_from)
    await _apply(tx, settings, record, job, JobEdit(spec=job.spec, paused=False), cut)


async def _apply(tx: Tx, settings: Settings, record: JobRecord, old: Job, edit: JobEdit, cut: int) -> Changed:
    enrolment = Enrolment(tx, settings)
    lane = await lane_for(tx, edit.spec, old.tenant, enrolment.pools)
    if lane != record.lane or edit.spec.jitter_us != old.spec.jitter_us:
        await _move_rows(tx, record, old, edit, lane)
    if _moves_times(old, edit):
        job, clock_id = await _retime(tx, enrolment, record, old, edit, lane, cut)
        await rewire(tx, old.id, old.spec.timing, edit.spec.timing, cut)
    else:
        job, clock_id = await _keep_times(tx, enrolment, record, old, edit, lane)
    attend = attend_at(job, settings.keep_us)
    await _keep_version(tx, record)
    if job.spec.set_name != old.spec.set_name:
        await leave_set(tx, old)
        await join_sets(tx, [job])
    await enrolment.write()
    await note_jobs(tx, change_kind(old, job), [job])
    note = job.note if job.note != old.note else None
    await note_deed(tx, job.tenant, edit.act, job_id=job.id, version=job.version, note=note)
    values = job_values(job, clock_id=clock_id, attend_at=attend, lane=lane)
    await tx.run("replace_job", values)  # last, for it holds what is counted of the tenant
    await check_edit(tx, settings, job.tenant, record.spec, values["spec"])
    tx.hints |= {Hint.JOBS, Hint.RUNS}
    return Changed(job=job, effective_from=job.version_from)


def _moves_times(old: Job, edit: JobEdit) -> bool:
    before, after = old.spec, edit.spec
    timing = (before.timing, before.starts_at, before.ends_at, before.max_runs)
    return timing != (after.timing, after.starts_at, after.ends_at, after.max_runs) or (
        edit.paused != (old.state is JobState.PAUSED)
    )


async def _retime(
    tx: Tx, enrolment: Enrolment, record: JobRecord, old: Job, edit: JobEdit, lane: int, cut: int
) -> tuple[Job, int | None]:
    """The new version fires at other times: remove what lies after the cut and plan anew from there."""
    await _drop_coming(tx, record, old, cut)
    await leave(tx, record._replace(lane=lane), old, cut)
    versions = await versions_of(tx, old.id, record)
    versions[-1] = msgspec.structs.replace(versions[-1], to_at=cut)
    since = first_since(edit.spec, cut)
    until = last_time(edit.spec, edit.spec.rule, since, used_runs(versions), paused=edit.paused)
    job = _next_version(tx, old, edit, from_at=cut, since=since, until=until)
    await keep_skips(tx, job, cut)
    timing = edit.spec.timing
    if timing != old.spec.timing:
        await _end_paused(tx, record, cut)
    if isinstance(timing, OnceTiming):
        if await tx.one("run_exists", {"job_id": old.id, "scheduled_at": timing.at}):
            return job, None
        if timing == old.spec.timing and timing.at <= min(cut, tx.now_at):
            await _skip_as_paused(
                tx, record
            )  # its time passed while it was paused, and nobody had looked yet
            return job, None
    await enrolment.foresee([job])
    return job, enrol(enrolment, job, lane)


async def _keep_times(
    tx: Tx, enrolment: Enrolment, record: JobRecord, old: Job, edit: JobEdit, lane: int
) -> tuple[Job, int | None]:
    """The new version fires at the same times."""
    from_at = max(tx.now_at, old.version_from)
    job = _next_version(tx, old, edit, from_at=from_at, since=old.since, until=old.until)
    if record.clock_id is not None:
        await tx.run("drop_member", (record.clock_id, old.id))
        enrolment.add_member(record.clock_id, job, lane)
    return job, record.clock_id


def _next_version(tx: Tx, old: Job, edit: JobEdit, *, from_at: int, since: int, until: int) -> Job:
    return msgspec.structs.replace(
        old,
        spec=edit.spec,
        version=old.version + 1,
        version_from=from_at,
        state=JobState.PAUSED if edit.paused else JobState.ACTIVE,
        note=edit.note,
        paused_until=edit.paused_until,
        since=since,
        until=until,
        updated_at=tx.now_at,
    )


async def _keep_version(tx: Tx, record: JobRecord) -> None:
    row = (record.id, record.version, record.tenant, record.version_from, record.until, record.paused)
    await tx.insert("add_version", [(*row, 0, record.note, record.spec)])


async def _hold(
    tx: Tx, settings: Settings, tenant: str, job_id: int, decide: Decide | None
) -> JobRecord | None:
    """Lock a job for a change: first the clocks that it leaves and joins, then the job itself.

    Which clocks that are is only known from the job, so it is read before; if it changed meanwhile, the
    operation starts over.
    """
    seen = await load(tx, tenant, job_id)
    if seen is None:
        return None
    jobs = [job_of(seen)]
    if decide is not None:
        edit = decide(jobs[0], tx.now_at)
        if await _touches_graph(tx, jobs[0], edit):
            await lock_graph(tx, tenant)
        jobs.append(_as_edited(jobs[0], edit))
    await hold_clocks(tx, settings, jobs)
    record = await hold(tx, tenant, job_id)
    if record is not None and record.version != seen.version:
        raise ChangedMeanwhile
    return record


async def _touches_graph(tx: Tx, old: Job, edit: JobEdit) -> bool:
    """Whether an edit may change who follows whom, or the times of a graph."""
    before, after = old.spec.timing, edit.spec.timing
    if before == after:
        return False
    return isinstance(before, AfterTiming) or isinstance(after, AfterTiming) or await has_children(tx, old.id)


def _edits_of_roots(olds: dict[int, Job], job_id: int, decide: Decide, now_at: int) -> dict[int, JobEdit]:
    """What is asked of one root, and of the others nothing but its times."""
    edit = decide(olds[job_id], now_at)
    if isinstance(edit.spec.timing, AfterTiming):
        raise graph_refusal("only roots have times that others can share")
    edits = {job_id: edit}
    for one, old in olds.items():
        if one != job_id:
            edits[one] = JobEdit(
                spec=msgspec.structs.replace(old.spec, timing=edit.spec.timing),
                paused=old.state is JobState.PAUSED,
                note=old.note,
                paused_until=old.paused_until,
            )
    return edits


async def _rows_of(tx: Tx, ids: Sequence[int]) -> list[tuple[int, Sequence[Any]]]:
    return [(row[0], row) for row in await tx.all("get_jobs", (tx.array(ids),))]


def _as_edited(job: Job, edit: JobEdit) -> Job:
    state = JobState.PAUSED if edit.paused else JobState.ACTIVE
    return msgspec.structs.replace(job, spec=edit.spec, state=state)


def _graph_job(job_id: int, edit: JobEdit) -> GraphJob:
    return GraphJob(id=job_id, name=edit.spec.name, timing=edit.spec.timing, key=edit.spec.key)


async def _check_key(tx: Tx, old: Job, edit: JobEdit) -> None:
    if edit.spec.key != old.spec.key and edit.spec.key is not None:
        holder = await tx.one("job_by_key", (old.tenant, edit.spec.key))
        if holder is not None:
            raise Conflict(f"the key {edit.spec.key!r} belongs to another job")


async def _cut(tx: Tx, settings: Settings, record: JobRecord) -> int:
    """Nothing that ran, or that a worker may hold, lies after it; nor what an earlier edit promised."""
    coming = await coming_times(tx, record, job_of(record), min(tx.now_at, record.version_from) - HOUR_US)
    await tx.all("lock_planned", (record.id, tx.array(coming)))
    await tx.look_at_clock()  # a claim that was waited for may have taken time
    newest = (await tx.one("newest_run", {"job_id": record.id}))[0] or 0
    return max(tx.now_at + settings.lead_us, record.version_from, newest)


async def _drop_coming(tx: Tx, record: JobRecord, job: Job, cut: int) -> None:
    await tx.all("drop_planned", (record.id, tx.array(await coming_times(tx, record, job, cut))))


async def _move_rows(tx: Tx, record: JobRecord, old: Job, edit: JobEdit, lane: int) -> None:
    """Unstarted rows follow to another lane, scheduled ones also to another spread of due times."""
    rule = old.spec.rule
    new = msgspec.structs.replace(old, spec=edit.spec)
    moves = []
    rows = await tx.all("planned_at", (old.id, tx.array(await _nominals(tx, record, old))))
    for row in map(UnstartedRow._make, rows + await tx.all("planned_beside", (old.id,))):
        if row.lane == SKIP_LANE:
            continue
        shift = 0
        if row.trigger == _SCHEDULED:
            shift = job_jitter(new, rule, row.scheduled_at) - job_jitter(old, rule, row.scheduled_at)
        in_background = class_of_lane(row.lane) == BACKGROUND
        moves.append((row.scheduled_at, background_lane(lane) if in_background else lane, row.due_at + shift))
    await tx.run("move_planned", {"job_id": old.id, "moves": to_json(moves)})
    for name in ("move_running", "move_blocked"):
        await tx.run(name, {"job_id": old.id, "lane": lane, "background": background_lane(lane)})


async def _nominals(tx: Tx, record: JobRecord, job: Job) -> list[int]:
    """The nominal times for which a job may have planned rows, also those that nobody has claimed.

    Rows past their grace are judged and go, all but the newest: so that and the grace are looked back on.
    """
    rule = job.spec.rule
    versions = await versions_of(tx, job.id, record)
    look_back = tx.now_at - job.spec.misfire.grace_us - HOUR_US
    times = set(
        expected_times(versions, look_back, max(await planned_to(tx, record), tx.now_at), MAX_COMPUTED)
    )
    newest = job.spec.timing.at if isinstance(job.spec.timing, OnceTiming) else None
    if rule is not None:
        newest = rule.latest(min(tx.now_at, record.until))
    return sorted(times if newest is None else {*times, newest})


async def _end_paused(tx: Tx, record: JobRecord, cut: int) -> None:
    """The time of a paused one-time job is still the version's that ends, if it lies before the cut."""
    if record.paused and record.once_at is not None and record.once_at <= cut:
        await _skip_as_paused(tx, record)


async def _skip_as_paused(tx: Tx, record: JobRecord) -> None:
    assert record.once_at is not None
    if await tx.one("run_exists", {"job_id": record.id, "scheduled_at": record.once_at}):
        return
    row = UnstartedRow(record.once_at, record.lane, record.once_at, _SCHEDULED, 0, 0)
    reason = {"reason": Reason.PAUSED.value, "note": record.note}
    await write_endings(tx, [ending(record.id, row, State.SKIPPED, tx.now_at, reason, record.version)])
