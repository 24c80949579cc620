"""Operations on coming times that shall not run: mark, unmark, keep through edits, end when they come.

A mark is a row in `skips`, and while the job is active also its run's row in `planned`, in a lane that no
worker claims: planners leave it alone as they do every run that is there already.
"""

from collections.abc import Sequence

from hourhand.core.deeds import Act
from hourhand.core.fault import Fault
from hourhand.core.identity import SKIP_LANE
from hourhand.core.instant import format_instant
from hourhand.core.lifecycle import Reason, State
from hourhand.core.model import Job, JobState, OnceTiming, Trigger
from hourhand.core.run import TRIGGER_CODES
from hourhand.core.skipping import MAX_SKIPS, NoSuchTime, Skip, has_time, time_to_skip
from hourhand.errors import Conflict, check_version
from hourhand.ports.store import Hint
from hourhand.stores.relational.deeds import note_deed
from hourhand.stores.relational.endings import write_endings
from hourhand.stores.relational.holding import hold_with_clock, unplanned_from
from hourhand.stores.relational.jobs import load
from hourhand.stores.relational.membership import Settings, job_jitter
from hourhand.stores.relational.rows import JobRecord, UnstartedRow, ending, job_of, to_json
from hourhand.stores.relational.tx import Tx

_SCHEDULED = TRIGGER_CODES[Trigger.SCHEDULED]


async def skip_time(
    tx: Tx,
    settings: Settings,
    tenant: str,
    job_id: int,
    at: int | None,
    note: str | None,
    version: int | None = None,
) -> Skip | None:
    """Mark a coming time of a job as one that will not run."""
    record = await hold_with_clock(tx, settings, tenant, job_id)
    if record is None:
        return None
    check_version(record.version, version)
    job = job_of(record)
    if job.state is not JobState.ACTIVE:
        raise Conflict("the job is paused and makes no runs; there is nothing to skip")
    marked = {skip.scheduled_at: skip.note for skip in await skips_of(tx, job_id)}
    at = time_to_skip(job, at, tx.now_at, frozenset(marked))
    if at not in marked:
        if len(marked) >= MAX_SKIPS:
            raise Conflict(f"{MAX_SKIPS} coming times of this job are skipped already; pause it instead")
        await _mark(tx, job, at)
    await tx.run("add_skip", {"job_id": job_id, "scheduled_at": at, "made_at": tx.now_at, "note": note})
    if at not in marked or marked[at] != note:
        await note_deed(tx, tenant, Act.JOB_SKIP, job_id=job_id, scheduled_at=at, note=note)
    return Skip(job_id=job_id, scheduled_at=at, note=note, made_at=tx.now_at)


async def unskip_time(
    tx: Tx, settings: Settings, tenant: str, job_id: int, at: int | None, version: int | None = None
) -> Skip | None:
    """Take a mark back; the time runs as if it had never been marked."""
    record = await hold_with_clock(tx, settings, tenant, job_id)
    if record is None:
        return None
    check_version(record.version, version)
    marked = {skip.scheduled_at: skip for skip in await skips_of(tx, job_id)}
    skip = marked.get(min(marked, default=0) if at is None else at)
    if skip is None:
        got = "none" if at is None else format_instant(at)
        hint = "skipped are " + ", ".join(map(format_instant, sorted(marked)[:3])) if marked else None
        raise NoSuchTime(Fault(pointer="/at", expected="a time that is skipped", got=got, hint=hint))
    await tx.all("drop_skips", (job_id, tx.array([skip.scheduled_at])))
    await _unmark(tx, record, job_of(record), skip.scheduled_at)
    await note_deed(tx, tenant, Act.JOB_UNSKIP, job_id=job_id, scheduled_at=skip.scheduled_at)
    return skip


async def skips(tx: Tx, tenant: str, job_id: int) -> list[Skip]:
    """The coming times of a job that will not run."""
    return [] if await load(tx, tenant, job_id) is None else await skips_of(tx, job_id)


async def keep_skips(tx: Tx, job: Job, cut: int) -> None:
    """After an edit: times that the job still has stay marked, those of other schedules are forgotten.

    A paused job keeps its marks, but nothing stands in the plan for them until it goes on. Must come before
    the new version's own times are planned.
    """
    marked = [row[0] for row in await tx.all("skips_of", (job.id, cut))]
    if not marked:
        return
    await tx.run("drop_markers", (job.id, tx.array(marked)))
    if job.state is JobState.PAUSED:
        return
    kept = [at for at in marked if has_time(job, at)]
    await tx.insert("add_planned", [_marker(job.id, at) for at in kept])
    await tx.all("drop_skips", (job.id, tx.array([at for at in marked if at not in kept])))


async def forget_skips(tx: Tx, record: JobRecord, cut: int) -> None:
    """A job that is deleted has no times after the cut; those before it that nobody has ended yet end now.

    What its clock has not come to is not ended here: the job gets it when it leaves its clock.
    """
    job_id = record.id
    notes = {row[0]: row[1] for row in await tx.all("skips_of", (job_id, 0))}
    if not notes:
        return
    unplanned = await unplanned_from(tx, record)
    passed = [at for at in notes if at <= cut and (unplanned is None or at < unplanned)]
    await tx.all("drop_skips_of", (job_id,))
    pairs = to_json([(at, job_id) for at in passed])
    rows = [UnstartedRow(*row) for row in await tx.all("take_markers", (pairs,))]
    await _end(tx, job_id, rows, notes, record.version)
    await tx.run("drop_markers", (job_id, tx.array(sorted(notes))))


async def end_skips(tx: Tx, limit: int) -> int:
    """Marked times that have come end as skipped; those of a job that was paused over them are forgotten."""
    due = await tx.all("due_skips", (tx.now_at, limit))
    by_job: dict[int, dict[int, str | None]] = {}
    for job_id, at, note in due:
        by_job.setdefault(job_id, {})[at] = note
    versions = {row[0]: row[2] for row in await tx.all("get_jobs", (tx.array(sorted(by_job)),))}
    for job_id, notes in sorted(by_job.items()):
        dropped = await tx.all("drop_skips", (job_id, tx.array(sorted(notes))))
        pairs = to_json([(row[0], job_id) for row in dropped])
        rows = [UnstartedRow(*row) for row in await tx.all("take_markers", (pairs,))]
        await _end(tx, job_id, rows, notes, versions.get(job_id))
    return len(due)


async def skips_of(tx: Tx, job_id: int) -> list[Skip]:
    return [
        Skip(job_id=job_id, scheduled_at=row[0], note=row[1], made_at=row[2])
        for row in await tx.all("skips_of", (job_id, tx.now_at))
    ]


async def _mark(tx: Tx, job: Job, at: int) -> None:
    await tx.all("lock_planned", (job.id, tx.array([at])))
    if await tx.all("planned_at", (job.id, tx.array([at]))):
        await tx.run("move_planned", {"job_id": job.id, "moves": to_json([(at, SKIP_LANE, at)])})
    elif await tx.one("run_exists", {"job_id": job.id, "scheduled_at": at}):
        raise Conflict("a worker holds that run already, or it has ended; cancel it instead")
    else:
        await tx.insert("add_planned", [_marker(job.id, at)])


async def _unmark(tx: Tx, record: JobRecord, job: Job, at: int) -> None:
    """Back into the plan, unless the job's clock will still plan it, or a pause keeps it from being planned.

    What an earlier version promised is in nobody's hands but ours.
    """
    unplanned = await unplanned_from(tx, record)
    is_ours = isinstance(job.spec.timing, OnceTiming) or unplanned is None or at < unplanned
    if at > job.since and (job.state is JobState.PAUSED or not is_ours):
        await tx.run("drop_markers", (job.id, tx.array([at])))
        return
    due_at = at + job_jitter(job, job.spec.rule, at)
    await tx.run("move_planned", {"job_id": job.id, "moves": to_json([(at, record.lane, due_at)])})
    tx.hints.add(Hint.RUNS)


async def _end(
    tx: Tx, job_id: int, rows: Sequence[UnstartedRow], notes: dict[int, str | None], version: int | None
) -> None:
    endings = []
    for row in rows:
        detail = {"reason": Reason.ASKED.value, "note": notes[row.scheduled_at]}
        endings.append(ending(job_id, row, State.SKIPPED, tx.now_at, detail, version))
    await write_endings(tx, endings)


def _marker(job_id: int, at: int) -> tuple[int, ...]:
    return (at, job_id, SKIP_LANE, at, _SCHEDULED, 0, 0)
