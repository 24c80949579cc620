"""Operations on jobs: create, change, delete, run now, tend. Each is one transaction.

The order of an edit is the design's: the job and its clock first, then its planned rows, and only then
the cut after which the new version plans.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from hourhand.core.identity import RunKey, jitter_us, segment_of
from hourhand.core.instant import SECOND_US
from hourhand.core.lifecycle import Reason, State
from hourhand.core.model import FOREVER, MAX_QUEUED, Job, JobState, OnceTiming, Trigger
from hourhand.core.plan import last_time, used_runs
from hourhand.core.run import TRIGGER_CODES
from hourhand.core.schedule import Rule
from hourhand.core.tending import Care, attend_at, care_for
from hourhand.errors import Conflict, Overloaded
from hourhand.ports.store import Changed, Decide, Hint, JobDraft, JobEdit, Refusal
from hourhand.stores.sqlite.engine import Tx
from hourhand.stores.sqlite.rows import (
    JobRecord,
    UnstartedRow,
    ending,
    job_of,
    job_values,
    lane_for,
    to_json,
    versions_of,
)

_MAX_COMPUTED = 100_000  # planned times of one job that an edit may have to find
_SCHEDULED = TRIGGER_CODES[Trigger.SCHEDULED]


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What operations need to know of the system's settings."""

    segments: int
    lead_us: int
    keep_us: int


class _Enrolment:
    """Collects the rows of jobs that join their clocks, so that many are written in a few steps."""

    def __init__(self, tx: Tx, settings: Settings) -> None:
        self._tx = tx
        self._settings = settings
        self._clocks: dict[tuple[str, int], tuple[int, int | None]] = {}
        self.pools: dict[str, int] = {}
        self.members: list[tuple[Any, ...]] = []
        self.planned: list[tuple[Any, ...]] = []

    def join(self, job: Job, rule: Rule, lane: int) -> int | None:
        """Make a job a member of its clock and plan what the clock has already passed."""
        if rule.next(job.since) is None or job.until <= job.since:
            return None
        clock_id, next_at = self._clock(rule, segment_of(job.id, self._settings.segments))
        spec = job.spec
        misfire = spec.misfire
        self.members.append(
            (
                clock_id,
                job.id,
                lane,
                spec.jitter_us,
                job.since,
                job.until,
                misfire.policy.value,
                misfire.grace_us,
                misfire.limit,
            )
        )
        if next_at is not None and next_at > job.since:
            for at in rule.times(job.since, min(next_at - 1, job.until), _MAX_COMPUTED):
                self.planned.append((at, job.id, lane, at + _jitter(job, rule, at), _SCHEDULED, 0, 0))
        return clock_id

    def plan_once(self, job: Job, at: int, lane: int) -> None:
        """Write the one run of a one-time job; a time in the past fires now."""
        due_at = max(at, self._tx.now_at) + jitter_us(job.id, at, job.spec.jitter_us)
        self.planned.append((at, job.id, lane, due_at, _SCHEDULED, 0, 0))

    def write(self) -> None:
        """Write what was collected."""
        self._tx.insert("add_member", self.members)
        self._tx.insert("add_planned", self.planned)
        if self.members:
            self._tx.hints.add(Hint.CLOCKS)
        if self.planned:
            self._tx.hints.add(Hint.RUNS)

    def _clock(self, rule: Rule, segment: int) -> tuple[int, int | None]:
        known = self._clocks.get((rule.key, segment))
        if known is not None:
            return known
        row = self._tx.one("clock_by_rule", (rule.key, segment))
        if row is None:
            next_at = rule.next(self._tx.now_at)
            row = (int(self._tx.one("add_clock", (segment, rule.key, next_at))[0]), next_at)
        elif row[1] is None:  # asleep: it has no members, so everything before its next time is planned
            next_at = rule.next(self._tx.now_at)
            self._tx.run("wake_clock", (next_at, row[0]))
            row = (row[0], next_at)
        self._clocks[rule.key, segment] = row
        return row  # type: ignore[no-any-return]


def create_jobs(tx: Tx, settings: Settings, drafts: Sequence[JobDraft]) -> list[Job | Refusal]:
    """Store drafts, refusing those whose id or key is taken."""
    refusals = _refusals(tx, drafts)
    enrolment = _Enrolment(tx, settings)
    answers: list[Job | Refusal] = []
    rows: list[tuple[Any, ...]] = []
    for draft, refusal in zip(drafts, refusals, strict=True):
        if refusal is not None:
            answers.append(refusal)
            continue
        job = _new_job(tx, draft)
        rows.append(_job_row(tx, settings, enrolment, job))
        answers.append(job)
    tx.insert("add_job", rows)
    enrolment.write()
    tx.hints.add(Hint.JOBS)
    return answers


def change_job(tx: Tx, settings: Settings, tenant: str, job_id: int, decide: Decide) -> Changed | None:
    """Make the next version of a job from what `decide` says of the present one."""
    record = load(tx, tenant, job_id)
    if record is None:
        return None
    old = job_of(record)
    edit = decide(old, tx.now_at)
    if edit.spec.key != old.spec.key and edit.spec.key is not None:
        holder = tx.one("job_by_key", (tenant, edit.spec.key))
        if holder is not None:
            raise Conflict(f"the key {edit.spec.key!r} belongs to another job")
    enrolment = _Enrolment(tx, settings)
    lane = lane_for(tx, edit.spec, tenant, enrolment.pools)
    if _moves_times(old, edit):
        changed, clock_id, version_from = _retime(tx, settings, enrolment, record, old, edit, lane)
    else:
        changed, clock_id, version_from = _keep_times(tx, enrolment, record, old, edit, lane)
    attend = attend_at(changed.job, settings.keep_us, tx.now_at)
    values = job_values(
        changed.job, version_from=version_from, clock_id=clock_id, attend_at=attend, lane=lane
    )
    _keep_version(tx, record)
    tx.run("replace_job", values)
    enrolment.write()
    tx.hints |= {Hint.JOBS, Hint.RUNS}
    return changed


def delete_job(tx: Tx, settings: Settings, tenant: str, job_id: int, cancel_running: bool) -> Changed | None:
    """Remove a job with everything that nobody executes; its versions stay."""
    record = load(tx, tenant, job_id)
    if record is None:
        return None
    job = job_of(record)
    cut = _cut(tx, settings, record)
    _drop_coming(tx, record, job, cut)
    ended = [UnstartedRow(*row) for row in tx.all("drop_blocked_of", (job_id,))]
    ended += [UnstartedRow(*row) for row in tx.all("drop_idle_of", (job_id,))]
    reason = {"reason": Reason.DELETED.value}
    tx.insert(
        "add_ending",
        [ending(job_id, row, State.CANCELLED, tx.now_at, reason, record.version) for row in ended],
    )
    tx.run("drop_dead_of", (job_id,))
    if cancel_running:
        tx.run("cancel_running_of", (job_id,))
        tx.hints.add(Hint.CANCEL)
    if record.clock_id is not None:
        tx.run("drop_member", (record.clock_id, job_id))
    _keep_version(tx, record)
    tombstone = (job_id, record.version + 1, tenant, cut, record.until, record.paused, 1, None, record.spec)
    tx.insert("add_version", [tombstone])
    tx.run("drop_job", (job_id,))
    return Changed(job=job, effective_from=cut)


def add_run(tx: Tx, tenant: str, job_id: int, request_key: str | None) -> RunKey | None:
    """A manual run at a nominal time of its own, never on a whole second, where rules fire."""
    record = load(tx, tenant, job_id)
    if record is None:
        return None
    if request_key is not None:
        known = tx.one("request_key", (job_id, request_key))
        if known is not None:
            return RunKey(job_id, known[0])
    if tx.one("waiting_beside", {"job_id": job_id})[0] >= MAX_QUEUED:
        raise Overloaded(f"{MAX_QUEUED} runs of this job beside its schedule already wait")
    at = tx.now_at
    while at % SECOND_US == 0 or tx.one("run_exists", {"job_id": job_id, "scheduled_at": at}):
        at += 1
    manual = TRIGGER_CODES[Trigger.MANUAL]
    tx.insert("add_planned", [(at, job_id, record.lane, tx.now_at, manual, 0, 0)])
    if request_key is not None:
        tx.insert("add_request_key", [(job_id, request_key, at, tx.now_at)])
    tx.hints.add(Hint.RUNS)
    return RunKey(job_id, at)


def tend_jobs(tx: Tx, settings: Settings, limit: int) -> int | None:
    """Give each job that wants it the care it needs; answers when the next one does."""
    for row in tx.all("jobs_to_tend", (tx.now_at, limit)):
        record = JobRecord(*row)
        job = job_of(record)
        match care_for(job, tx.now_at, settings.keep_us):
            case Care.RESUME:
                change_job(
                    tx, settings, job.tenant, job.id, lambda job, _: JobEdit(spec=job.spec, paused=False)
                )
                continue
            case Care.SKIP_AS_PAUSED:
                _skip_as_paused(tx, record)
            case Care.LEAVE_CLOCK:
                if record.clock_id is not None:
                    tx.run("drop_member", (record.clock_id, job.id))
            case Care.FORGET:
                if not tx.one("run_is_live", {"job_id": job.id, "scheduled_at": record.once_at}):
                    delete_job(tx, settings, job.tenant, job.id, cancel_running=False)
                    continue
                tx.run("attend_later", (tx.now_at + settings.keep_us, job.id))
                continue
            case Care.NOTHING:
                pass
        tx.run("attend_later", (attend_at(job, settings.keep_us, tx.now_at), job.id))
    return tx.one("next_attend")[0]  # type: ignore[no-any-return]


def load(tx: Tx, tenant: str, job_id: int) -> JobRecord | None:
    """A tenant's job by id; another tenant's does not exist."""
    row = tx.one("get_job", (job_id,))
    if row is None or row[1] != tenant:
        return None
    return JobRecord(*row)


def _refusals(tx: Tx, drafts: Sequence[JobDraft]) -> list[Refusal | None]:
    taken_ids = {row[0] for row in tx.all("taken_ids", (to_json([draft.id for draft in drafts]),))}
    keys: dict[str, list[str]] = {}
    for draft in drafts:
        if draft.spec.key is not None:
            keys.setdefault(draft.tenant, []).append(draft.spec.key)
    taken_keys = {
        (tenant, row[0])
        for tenant, wanted in keys.items()
        for row in tx.all("taken_keys", (tenant, to_json(wanted)))
    }
    answers: list[Refusal | None] = []
    for draft in drafts:
        name = (draft.tenant, draft.spec.key)
        if draft.spec.key is not None and name in taken_keys:
            answers.append(Refusal.KEY_TAKEN)
        elif draft.id in taken_ids:
            answers.append(Refusal.ID_TAKEN)
        else:
            answers.append(None)
            taken_ids.add(draft.id)
            if draft.spec.key is not None:
                taken_keys.add((draft.tenant, draft.spec.key))
    return answers


def _new_job(tx: Tx, draft: JobDraft) -> Job:
    since = tx.now_at if draft.spec.starts_at is None else max(tx.now_at, draft.spec.starts_at - 1)
    return Job(
        id=draft.id,
        tenant=draft.tenant,
        spec=draft.spec,
        state=JobState.PAUSED if draft.paused else JobState.ACTIVE,
        note=draft.note,
        paused_until=draft.paused_until,
        since=since,
        until=last_time(draft.spec, draft.spec.rule, since, used=0),
        created_at=tx.now_at,
        updated_at=tx.now_at,
    )


def _job_row(tx: Tx, settings: Settings, enrolment: _Enrolment, job: Job) -> tuple[Any, ...]:
    lane = lane_for(tx, job.spec, job.tenant, enrolment.pools)
    clock_id = _enrol(enrolment, job, lane)
    attend = attend_at(job, settings.keep_us, tx.now_at - 1)
    values = job_values(job, version_from=job.since, clock_id=clock_id, attend_at=attend, lane=lane)
    return tuple(values.values())


def _enrol(enrolment: _Enrolment, job: Job, lane: int) -> int | None:
    """Join the clock or write the one run, unless the job is paused; answers the clock."""
    if job.state is not JobState.ACTIVE:
        return None
    if isinstance(job.spec.timing, OnceTiming):
        enrolment.plan_once(job, job.spec.timing.at, lane)
        return None
    rule = job.spec.rule
    return None if rule is None else enrolment.join(job, rule, lane)


def _moves_times(old: Job, edit: JobEdit) -> bool:
    before, after = old.spec, edit.spec
    timing = (before.timing, before.starts_at, before.ends_at, before.max_runs)
    return timing != (after.timing, after.starts_at, after.ends_at, after.max_runs) or (
        edit.paused != (old.state is JobState.PAUSED)
    )


def _retime(
    tx: Tx, settings: Settings, enrolment: _Enrolment, record: JobRecord, old: Job, edit: JobEdit, lane: int
) -> tuple[Changed, int | None, int]:
    """The new version fires at other times: remove what lies after the cut and plan anew from there."""
    cut = _cut(tx, settings, record)
    _drop_coming(tx, record, old, cut)
    if record.clock_id is not None:
        tx.run("drop_member", (record.clock_id, old.id))
    versions = versions_of(tx, old.id, record)
    versions[-1] = msgspec.structs.replace(versions[-1], to_at=cut)
    since = cut if edit.spec.starts_at is None else max(cut, edit.spec.starts_at - 1)
    job = _next_version(
        tx, old, edit, since=since, until=last_time(edit.spec, edit.spec.rule, since, used_runs(versions))
    )
    timing = edit.spec.timing
    exists = isinstance(timing, OnceTiming) and tx.one(
        "run_exists", {"job_id": old.id, "scheduled_at": timing.at}
    )
    if isinstance(timing, OnceTiming) and timing.at <= tx.now_at and old.spec.timing == timing and not exists:
        _skip_as_paused(tx, record)  # its time passed while it was paused, and nobody had looked yet
        exists = True
    clock_id = None if exists else _enrol(enrolment, job, lane)
    return Changed(job=job, effective_from=cut), clock_id, since


def _keep_times(
    tx: Tx, enrolment: _Enrolment, record: JobRecord, old: Job, edit: JobEdit, lane: int
) -> tuple[Changed, int | None, int]:
    """The new version fires at the same times; unstarted rows follow a change of lane or jitter."""
    job = _next_version(tx, old, edit, since=old.since, until=old.until)
    if lane != record.lane or edit.spec.jitter_us != old.spec.jitter_us:
        _move_rows(tx, record, job, lane)
    if record.clock_id is not None:
        misfire = edit.spec.misfire
        tx.run("drop_member", (record.clock_id, old.id))
        enrolment.members.append(
            (
                record.clock_id,
                job.id,
                lane,
                edit.spec.jitter_us,
                job.since,
                job.until,
                misfire.policy.value,
                misfire.grace_us,
                misfire.limit,
            )
        )
    version_from = max(tx.now_at, record.version_from)
    return Changed(job=job, effective_from=tx.now_at), record.clock_id, version_from


def _next_version(tx: Tx, old: Job, edit: JobEdit, since: int, until: int) -> Job:
    return msgspec.structs.replace(
        old,
        spec=edit.spec,
        version=old.version + 1,
        state=JobState.PAUSED if edit.paused else JobState.ACTIVE,
        note=edit.note,
        paused_until=edit.paused_until,
        since=since,
        until=until,
        updated_at=tx.now_at,
    )


def _keep_version(tx: Tx, record: JobRecord) -> None:
    tx.insert(
        "add_version",
        [
            (
                record.id,
                record.version,
                record.tenant,
                record.version_from,
                record.until,
                record.paused,
                0,
                record.note,
                record.spec,
            )
        ],
    )


def _cut(tx: Tx, settings: Settings, record: JobRecord) -> int:
    """Nothing that ran, or that a worker may hold, lies after it."""
    newest = tx.one("newest_run", {"job_id": record.id})[0] or 0
    return max(tx.now_at + settings.lead_us, record.since, newest)


def _coming_times(tx: Tx, record: JobRecord, job: Job, after_at: int) -> list[int]:
    """Nominal times after an instant for which this job may have planned rows: computed, not searched."""
    if isinstance(job.spec.timing, OnceTiming):
        return [job.spec.timing.at] if job.spec.timing.at > after_at else []
    rule = job.spec.rule
    if record.clock_id is None or rule is None:
        return []
    next_at = tx.one("clock_next", (record.clock_id,))[0]
    until = record.until if next_at is None else min(next_at, record.until)
    return [] if until >= FOREVER else rule.times(after_at, until, _MAX_COMPUTED)


def _drop_coming(tx: Tx, record: JobRecord, job: Job, cut: int) -> None:
    tx.all("drop_planned", (record.id, to_json(_coming_times(tx, record, job, cut))))


def _move_rows(tx: Tx, record: JobRecord, job: Job, lane: int) -> None:
    rule = job.spec.rule
    moves = []
    for at in _coming_times(tx, record, job, 0 if rule is None else tx.now_at):
        spread = _jitter(job, rule, at) if rule else jitter_us(job.id, at, job.spec.jitter_us)
        moves.append((at, lane, max(at, record.created_at if rule is None else at) + spread))
    moves += [(row[0], lane, row[2]) for row in tx.all("planned_beside", (job.id,))]
    tx.run("move_planned", {"job_id": job.id, "moves": to_json(moves)})
    tx.run("move_running", (lane, job.id))
    tx.run("move_blocked", (lane, job.id))


def _skip_as_paused(tx: Tx, record: JobRecord) -> None:
    assert record.once_at is not None
    if tx.one("run_exists", {"job_id": record.id, "scheduled_at": record.once_at}):
        return
    row = UnstartedRow(record.once_at, record.lane, record.once_at, _SCHEDULED, 0, 0)
    reason = {"reason": Reason.PAUSED.value, "note": record.note}
    tx.insert("add_ending", [ending(record.id, row, State.SKIPPED, tx.now_at, reason, record.version)])


def _jitter(job: Job, rule: Rule, at: int) -> int:
    if job.spec.jitter_us == 0:
        return 0
    following = rule.next(at)
    room = FOREVER if following is None else following - at
    return jitter_us(job.id, at, min(job.spec.jitter_us, room))
