"""How jobs join and leave clocks: rows of members, and the near times that planning has already passed.

Joining plans what lies before the clock's `next_at`. Leaving plans what the clock has not come to yet of
the times that are still the leaving version's, so that nothing promised falls between the two.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from hourhand.core.identity import background_lane, jitter_us, segment_of
from hourhand.core.model import FOREVER, Job, JobState, OnceTiming, Trigger
from hourhand.core.plan import MisfireGroup, PlannedTime, plan_leaver, with_near_before
from hourhand.core.quota import Quota
from hourhand.core.run import TRIGGER_CODES
from hourhand.core.schedule import Rule
from hourhand.ports.store import Hint
from hourhand.stores.relational.clocks import record_gaps
from hourhand.stores.relational.rows import JobRecord, to_json
from hourhand.stores.relational.tx import Tx

MAX_COMPUTED = 100_000  # planned times of one job that a change may have to find
_SCHEDULED = TRIGGER_CODES[Trigger.SCHEDULED]
_CATCH_UP = TRIGGER_CODES[Trigger.CATCH_UP]


Place = tuple[str, int]  # a rule's key and a segment: where a clock is


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What operations need to know of the system's settings."""

    segments: int
    lead_us: int
    keep_us: int
    quota: Quota = Quota()  # of a tenant for which nobody set another
    databases: int = 1  # that share a tenant's quota


class Enrolment:
    """Collects the rows of jobs that join their clocks, so that many are written in a few steps.

    Which clock a job joins is found first; the clocks are locked last of all, when only the members are left
    to write: everybody who makes jobs with the same rules waits for that.
    """

    def __init__(self, tx: Tx, settings: Settings, known: Mapping[Place, int] | None = None) -> None:
        self._tx = tx
        self._settings = settings
        self._clock_ids: Mapping[Place, int] = known or {}
        self.pools: dict[str, int] = {}
        self._joining: list[tuple[Place, Job, Rule, int]] = []
        self._members: list[tuple[Any, ...]] = []
        self._planned: list[tuple[Any, ...]] = []

    async def foresee(self, jobs: Iterable[Job]) -> None:
        """Find the clocks that jobs are about to join, all in a few steps; those that are not there are made."""
        wanted = {
            (rule.key, segment_of(job.id, self._settings.segments)): rule
            for job in jobs
            if job.state is JobState.ACTIVE and (rule := job.spec.rule) is not None and _has_times(job, rule)
        }
        unknown = {place: rule for place, rule in wanted.items() if place not in self._clock_ids}
        if unknown:
            self._clock_ids = {**self._clock_ids, **await make_clocks(self._tx, unknown)}

    def join(self, job: Job, rule: Rule, lane: int) -> int | None:
        """Make a job a member of its clock; answers which that is."""
        if not _has_times(job, rule):
            return None
        place = (rule.key, segment_of(job.id, self._settings.segments))
        clock_id = self._clock_ids[place]
        self._joining.append((place, job, rule, lane))
        self.add_member(clock_id, job, lane)
        return clock_id

    def add_member(self, clock_id: int, job: Job, lane: int) -> None:
        """Let a clock plan for a job from now on."""
        misfire = job.spec.misfire
        policy = (misfire.policy.value, misfire.grace_us, misfire.limit)
        self._members.append((clock_id, job.id, lane, job.spec.jitter_us, job.since, job.until, *policy))

    def plan_once(self, job: Job, at: int, lane: int) -> None:
        """Write the one run of a one-time job; a time in the past fires now."""
        due_at = max(at, self._tx.now_at) + jitter_us(job.id, at, job.spec.jitter_us)
        self._planned.append((at, job.id, lane, due_at, _SCHEDULED, 0, 0, None))

    async def write(self) -> None:
        """Write what was collected, and of those who join what their clocks have already passed."""
        if self._joining:
            await self._plan_passed()
        await self._tx.insert("add_member", self._members)
        await self._tx.insert("add_scheduled", self._planned)
        if self._members:
            self._tx.hints.add(Hint.CLOCKS)
        if self._planned:
            self._tx.hints.add(Hint.RUNS)

    async def _plan_passed(self) -> None:
        """Lock the clocks, everybody in the same order; one that sleeps is woken."""
        rules = {place: rule for place, _, rule, _ in self._joining}
        next_ats: dict[Place, int | None] = {}
        for key, segment, clock_id, next_at in await self._tx.all("lock_clocks", (to_json(list(rules)),)):
            if next_at is None:  # asleep: it has no members, so everything before its next time is planned
                next_at = rules[key, segment].next(self._tx.now_at)
                await self._tx.run("wake_clock", (next_at, clock_id))
            next_ats[key, segment] = next_at
        for place, job, rule, lane in self._joining:
            next_at = next_ats[place]
            if next_at is not None and next_at > job.since:
                passed = rule.times(job.since, min(next_at - 1, job.until), MAX_COMPUTED)
                for at, after_at in with_near_before(rule, passed):
                    due_at = at + job_jitter(job, rule, at)
                    self._planned.append((at, job.id, lane, due_at, _SCHEDULED, 0, 0, after_at))


async def make_clocks(tx: Tx, wanted: Mapping[Place, Rule]) -> dict[Place, int]:
    """The clocks of rules, each in its segment; those that are not there are made."""
    found = await _find_clocks(tx, wanted)
    missing = [place for place in wanted if place not in found]
    if missing:
        rows = [(segment, key, wanted[key, segment].next(tx.now_at)) for key, segment in missing]
        await tx.insert("add_clock", rows)  # somebody else may make the same: then that one counts
        found |= await _find_clocks(tx, missing)
    return found


async def _find_clocks(tx: Tx, places: Iterable[Place]) -> dict[Place, int]:
    rows = await tx.all("find_clocks", (to_json(list(places)),))
    return {(row[0], row[1]): row[2] for row in rows}


async def hold_clocks(tx: Tx, settings: Settings, jobs: Iterable[Job]) -> None:
    """Lock the clocks of jobs as they are and as they are to be, so that nobody plans them meanwhile."""
    places = {
        (rule.key, segment_of(job.id, settings.segments))
        for job in jobs
        if (rule := job.spec.rule) is not None
    }
    if places:
        await tx.all("lock_clocks", (to_json(sorted(places)),))


def _has_times(job: Job, rule: Rule) -> bool:
    return job.until > job.since and rule.next(job.since) is not None


async def leave(tx: Tx, record: JobRecord, job: Job, last_at: int) -> None:
    """Take a job off its clock; times up to `last_at` that the clock has not come to are planned here."""
    if record.clock_id is None:
        return
    await tx.run("drop_member", (record.clock_id, job.id))
    next_at = (await tx.one("clock_next", (record.clock_id,)))[0]
    rule = job.spec.rule
    if rule is None or next_at is None or next_at > last_at:
        return
    misfire = job.spec.misfire
    group = MisfireGroup(misfire.policy, misfire.grace_us, misfire.limit, job.until)
    times, gaps = plan_leaver(rule, next_at, tx.now_at, last_at, job.since, group)
    await tx.insert("add_scheduled", [_planned_row(job, time, record.lane) for time in times])
    await record_gaps(tx, record.clock_id, gaps)
    tx.hints.add(Hint.RUNS)


def job_jitter(job: Job, rule: Rule | None, at: int) -> int:
    """How long after its nominal time a scheduled run of a job is due."""
    if job.spec.jitter_us == 0:
        return 0
    following = None if rule is None else rule.next(at)
    room_us = FOREVER if following is None else following - at
    return jitter_us(job.id, at, min(job.spec.jitter_us, room_us))


async def planned_to(tx: Tx, record: JobRecord) -> int:
    """The last instant for which a recurring job may have planned rows."""
    next_at = None if record.clock_id is None else (await tx.one("clock_next", (record.clock_id,)))[0]
    return record.until if next_at is None else min(next_at, record.until)


async def coming_times(tx: Tx, record: JobRecord, job: Job, after_at: int) -> list[int]:
    """Nominal times after an instant for which this job may have planned rows: computed, not searched."""
    if isinstance(job.spec.timing, OnceTiming):
        return [job.spec.timing.at] if job.spec.timing.at > after_at else []
    rule = job.spec.rule
    last_at = await planned_to(tx, record)
    if rule is None or record.paused or last_at == FOREVER:
        return []
    return rule.times(after_at, last_at, MAX_COMPUTED)  # none for who left, unless time went back since


def _planned_row(job: Job, time: PlannedTime, lane: int) -> tuple[Any, ...]:
    at = time.scheduled_at
    due_at = at + jitter_us(job.id, at, min(job.spec.jitter_us, time.room_us))
    if time.background:
        return (at, job.id, background_lane(lane), due_at, _CATCH_UP, 0, 0, time.after_at)
    return (at, job.id, lane, due_at, _SCHEDULED, 0, 0, time.after_at)
