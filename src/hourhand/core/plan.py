"""Which runs a clock's members get, and what becomes of the times that were missed.

Pure. A clock has one time, `next_at`: everything before it is planned. Planning goes on from there to
the horizon; when the clock is behind, each group of members with the same misfire policy gets what that
policy says, and the rest is recorded as one gap of the clock.
"""

from collections.abc import Iterable, Sequence
from enum import StrEnum

import msgspec

from hourhand.core.instant import SECOND_US
from hourhand.core.model import FOREVER, JobSpec, Misfire, MisfirePolicy, OnceTiming, Version
from hourhand.core.schedule import Rule
from hourhand.core.specification import MAX_JITTER_US

MAX_TIMES_PER_STEP = 1_000  # a clock that is further behind goes on in the next step
MAX_GRACE_TIMES = 5_000  # of more times within the grace, the older ones count as missed
MAX_LEAD_US = 30 * SECOND_US  # how far ahead of its due time a run may be taken, at most
_NEAR_US = MAX_LEAD_US + MAX_JITTER_US  # from here on, a time is due before the next can be taken ahead


class MisfireGroup(msgspec.Struct, frozen=True, array_like=True):
    """Members of a clock that miss alike: one policy, and one end where that lies among what was missed."""

    policy: MisfirePolicy
    grace_us: int
    limit: int
    until: int = FOREVER


class Selector(msgspec.Struct, frozen=True, array_like=True):
    """Which members a planned time is for: those of one group, by when they joined."""

    group: MisfireGroup
    since_from: int  # since_from <= member.since < since_below
    since_below: int


class PlannedTime(msgspec.Struct, frozen=True, kw_only=True):
    """One nominal time to insert for a clock's members."""

    scheduled_at: int
    room_us: int  # distance to the next nominal time: jitter stays below it
    after_at: int | None = None  # the nominal time directly before it, where that is near
    background: bool = False
    only: Selector | None = None


class Gap(msgspec.Struct, frozen=True, kw_only=True):
    """What members under one policy missed while nobody planned: [from_at, to_at] and what ran of it."""

    from_at: int
    to_at: int
    policy: MisfirePolicy
    grace_us: int
    limit: int
    missed: int
    ran: int


class MissedTimes(msgspec.Struct, frozen=True, kw_only=True):
    """A clock's gap as one of its members met it."""

    version: int
    from_at: int
    to_at: int
    missed: int
    ran: int
    policy: MisfirePolicy


class ClockPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The step a planner wants a clock to take; applied only if `expected_next_at` still holds."""

    clock_id: int
    expected_next_at: int
    new_next_at: int | None  # None: the rule has no further time
    times: tuple[PlannedTime, ...]
    gaps: tuple[Gap, ...] = ()
    late_to: int | None = None  # the newest missed time, where the clock was behind
    groups: tuple[MisfireGroup, ...] = ()  # then it holds only if all members belong to one of these
    fence: int | None = None  # of the clock's segment, as the planner holds it; None: nobody shares segments


class Lateness(StrEnum):
    """What becomes of a scheduled run that is past its grace when somebody looks at it."""

    RUN = "run"
    SKIP = "skip"
    BACKGROUND = "background"


def plan_clock(
    clock_id: int,
    rule: Rule,
    next_at: int,
    now_at: int,
    horizon_at: int,
    misfires: tuple[MisfireGroup, ...],
) -> ClockPlan:
    """Plan one clock from `next_at` to the horizon.

    `misfires` are the groups of its members; only needed when it is behind.
    """
    missed_to = rule.newest_in(next_at - 1, now_at)
    if missed_to is None or _all_in_time(rule, next_at, now_at, misfires):
        return _on_time(clock_id, rule, next_at, horizon_at)
    groups = _distinct_groups(misfires, missed_to)
    times: list[PlannedTime] = []
    gaps: list[Gap] = []
    for group in groups:
        late, gap = _late_times(rule, next_at, now_at, missed_to, group)
        times += late
        gaps += gap
    coming = _on_time(clock_id, rule, missed_to, horizon_at, after=True)
    return ClockPlan(
        clock_id=clock_id,
        expected_next_at=next_at,
        new_next_at=coming.new_next_at,
        times=(*times, *coming.times),
        gaps=tuple(gaps),
        late_to=missed_to,
        groups=groups,
    )


def plan_leaver(
    rule: Rule, next_at: int, now_at: int, last_at: int, since: int, group: MisfireGroup
) -> tuple[list[PlannedTime], list[Gap]]:
    """What a member that leaves its clock still gets of the times from `next_at` to `last_at`."""
    times: list[PlannedTime] = []
    gaps: list[Gap] = []
    at: int | None = next_at
    while at is not None and at <= last_at:
        step = plan_clock(0, rule, at, now_at, last_at, (group,))
        times += [time for time in step.times if _is_for(time, since, group.until)]
        gaps += step.gaps
        at = step.new_next_at
    return times, gaps


def near_before(rule: Rule, at: int) -> int | None:
    """The nominal time directly before another, where it is so near that both may be claimed ahead of time.

    Whoever takes a run ahead of time then looks first whether the one before it still waits.
    """
    return rule.newest_in(at - _NEAR_US, at - 1)


def with_near_before(rule: Rule, times: Sequence[int]) -> list[tuple[int, int | None]]:
    """Times of a rule that follow one another, each with the one directly before it, where that is near."""
    linked: list[tuple[int, int | None]] = []
    for at in times:
        before_at = linked[-1][0] if linked else near_before(rule, at)
        linked.append((at, before_at if before_at is not None and at - before_at < _NEAR_US else None))
    return linked


def judge_late(rule: Rule | None, spec: JobSpec, scheduled_at: int, until: int, now_at: int) -> Lateness:
    """The same policy for one run that was planned in time but not claimed within its grace."""
    if rule is None:
        return _lateness(spec, newer=0)
    last_at = min(now_at, until)
    if spec.misfire.policy is MisfirePolicy.CATCH_UP:
        return _lateness(spec, newer=rule.count(scheduled_at, last_at))
    return _lateness(spec, newer=0 if rule.newest_in(scheduled_at, last_at) is None else 1)


def judge_late_by_versions(
    versions: list[Version], spec: JobSpec, scheduled_at: int, now_at: int
) -> Lateness:
    """The same for a run that an earlier version of its job promised."""
    newer = expected_times(versions, scheduled_at, now_at, spec.misfire.limit)
    return _lateness(spec, newer=len(newer))


def beyond_limit(misfire: Misfire, waiting: Iterable[int]) -> list[int]:
    """Of missed times that wait for a slot, the oldest that are more than the policy makes up for."""
    return sorted(waiting)[: -misfire.limit]


def last_time(spec: JobSpec, rule: Rule | None, since: int, used: int, *, paused: bool = False) -> int:
    """The last nominal time a job may have: `ends_at` and `max_runs` in one number.

    `used` counts the nominal times of its earlier active versions. A paused version uses up none.
    """
    ends_at = FOREVER if spec.ends_at is None else spec.ends_at
    if spec.max_runs is None or rule is None:
        return ends_at
    left = spec.max_runs - used
    if left <= 0:
        return min(ends_at, since)
    last = None if paused else rule.nth(since, left)
    return ends_at if last is None else min(ends_at, last)


def used_runs(versions: list[Version]) -> int:
    """How many nominal times the active versions of a job have had, skipped ones included."""
    total = 0
    for version in versions:
        rule = version.spec.rule
        if version.paused or rule is None or version.to_at is None:
            continue
        total += rule.count(first_since(version.spec, version.from_at), min(version.to_at, version.until))
    return total


def first_since(spec: JobSpec, from_at: int) -> int:
    """The instant after which a version's nominal times lie: its beginning, or just before `starts_at`."""
    return from_at if spec.starts_at is None else max(from_at, spec.starts_at - 1)


def missed_times(version: Version, gaps: Sequence[Gap]) -> list[MissedTimes]:
    """What a version of a job missed of the gaps of its clock: those of its policy, within its time."""
    rule = version.spec.rule
    if rule is None or version.paused or version.deleted:
        return []
    misfire = version.spec.misfire
    since = first_since(version.spec, version.from_at)
    last_at = min(version.until, FOREVER if version.to_at is None else version.to_at)
    found = []
    for gap in gaps:
        if (gap.policy, gap.grace_us, gap.limit) != (misfire.policy, misfire.grace_us, misfire.limit):
            continue
        missed = rule.count(max(gap.from_at - 1, since), min(gap.to_at, last_at))
        if missed > 0:
            found.append(
                MissedTimes(
                    version=version.version,
                    from_at=max(gap.from_at, since + 1),
                    to_at=min(gap.to_at, last_at),
                    missed=missed,
                    ran=min(gap.ran, missed),
                    policy=gap.policy,
                )
            )
    return found


def expected_times(versions: Sequence[Version], after_at: int, until_at: int, limit: int) -> list[int]:
    """The nominal times in (after_at, until_at] by the versions in force, oldest first.

    A one-time job's time is expected even of a paused version: passing unrun, it ends as skipped.
    """
    times: list[int] = []
    for version in versions:
        if version.deleted:
            continue
        end = min(until_at, FOREVER if version.to_at is None else version.to_at)
        rule = version.spec.rule
        if isinstance(version.spec.timing, OnceTiming):
            times += [version.spec.timing.at] if after_at < version.spec.timing.at <= end else []
        elif rule is not None and not version.paused:
            start = max(after_at, first_since(version.spec, version.from_at))
            times += rule.times(start, min(end, version.until), limit - len(times))
        if len(times) >= limit:
            break
    return sorted(set(times))


def _on_time(clock_id: int, rule: Rule, start_at: int, horizon_at: int, after: bool = False) -> ClockPlan:
    """All times from `start_at` (or after it) to the horizon, for every member alike."""
    times: list[PlannedTime] = []
    at = rule.next(start_at) if after else start_at
    after_at = near_before(rule, at) if at is not None and at <= horizon_at else None
    while at is not None and at <= horizon_at and len(times) < MAX_TIMES_PER_STEP:
        following = rule.next(at)
        room_us = FOREVER if following is None else following - at
        times.append(PlannedTime(scheduled_at=at, room_us=room_us, after_at=after_at))
        at, after_at = following, at if room_us < _NEAR_US else None
    return ClockPlan(clock_id=clock_id, expected_next_at=start_at, new_next_at=at, times=tuple(times))


def _all_in_time(rule: Rule, next_at: int, now_at: int, misfires: tuple[MisfireGroup, ...]) -> bool:
    """Whether no member is past its grace; groups may be unknown where the clock fell behind just now."""
    if not misfires:
        return rule.count(next_at - 1, now_at) <= MAX_TIMES_PER_STEP
    return next_at + min(group.grace_us for group in misfires) >= now_at


def _distinct_groups(misfires: tuple[MisfireGroup, ...], missed_to: int) -> tuple[MisfireGroup, ...]:
    """An end that lies after everything that was missed makes no group of its own."""
    return tuple(
        dict.fromkeys(
            group if group.until < missed_to else msgspec.structs.replace(group, until=FOREVER)
            for group in misfires
        )
    )


def _late_times(
    rule: Rule, next_at: int, now_at: int, late_to: int, group: MisfireGroup
) -> tuple[list[PlannedTime], list[Gap]]:
    """What one group of members gets of [next_at, late_to].

    The pivot is the newest time that is past the grace. Members who joined at or after it missed
    nothing beyond their grace and get all later times; for the others the policy speaks.
    """
    missed_to = rule.newest_in(next_at - 1, min(late_to, group.until))
    if missed_to is None:
        return [], []
    pivot = _pivot(rule, next_at, missed_to, now_at - group.grace_us - 1)
    if pivot is None:
        everyone = Selector(group, 0, FOREVER)
        return _late(rule, _walk(rule, next_at - 1, missed_to), everyone), []
    within_grace = _walk(rule, pivot, missed_to)
    times = _late(rule, within_grace, Selector(group, pivot, FOREVER))
    chosen = _chosen(rule, next_at, missed_to, group, within_grace)
    background = group.policy is MisfirePolicy.CATCH_UP
    times += _late(rule, chosen, Selector(group, 0, pivot), background)
    gap = Gap(
        from_at=next_at,
        to_at=missed_to,
        policy=group.policy,
        grace_us=group.grace_us,
        limit=group.limit,
        missed=rule.count(next_at - 1, missed_to),
        ran=len(chosen),
    )
    return times, [gap]


def _chosen(
    rule: Rule, next_at: int, missed_to: int, group: MisfireGroup, within_grace: list[int]
) -> list[int]:
    """What a policy runs of the times that members behind the pivot missed."""
    match group.policy:
        case MisfirePolicy.SKIP:
            return within_grace
        case MisfirePolicy.RUN_ONCE:
            return [missed_to]
        case MisfirePolicy.CATCH_UP:
            return _newest(rule, next_at, missed_to, group.limit)


def _pivot(rule: Rule, next_at: int, missed_to: int, overdue_at: int) -> int | None:
    """The newest missed time that is past the grace, or that has too many after it."""
    pivot = rule.newest_in(next_at - 1, min(missed_to, overdue_at))
    after_at = next_at - 1 if pivot is None else pivot
    surplus = rule.count(after_at, missed_to) - MAX_GRACE_TIMES
    return rule.nth(after_at, surplus) if surplus > 0 else pivot


def _late(rule: Rule, ats: Sequence[int], only: Selector, background: bool = False) -> list[PlannedTime]:
    """Missed times that follow one another; those in the background are beside the schedule, in no order."""
    times = []
    for at, after_at in with_near_before(rule, ats):
        following = rule.next(at)
        times.append(
            PlannedTime(
                scheduled_at=at,
                room_us=FOREVER if following is None else following - at,
                after_at=None if background else after_at,
                background=background,
                only=only,
            )
        )
    return times


def _is_for(time: PlannedTime, since: int, until: int) -> bool:
    """Whether a planned time is one member's, who is of the only group there is."""
    joined = time.only is None or time.only.since_from <= since < time.only.since_below
    return joined and since < time.scheduled_at <= until


def _lateness(spec: JobSpec, newer: int) -> Lateness:
    """What becomes of a late run with so many newer ones."""
    match spec.misfire.policy:
        case MisfirePolicy.SKIP:
            return Lateness.SKIP
        case MisfirePolicy.RUN_ONCE:
            return Lateness.SKIP if newer else Lateness.RUN
        case MisfirePolicy.CATCH_UP:
            return Lateness.BACKGROUND if newer < spec.misfire.limit else Lateness.SKIP


def _walk(rule: Rule, after_at: int, until_at: int) -> list[int]:
    return rule.times(after_at, until_at, MAX_GRACE_TIMES)


def _newest(rule: Rule, from_at: int, to_at: int, limit: int) -> list[int]:
    """The newest `limit` times of [from_at, to_at], oldest first, walking back from the end."""
    found: list[int] = []
    at: int | None = to_at
    while at is not None and len(found) < limit:
        found.append(at)
        at = rule.newest_in(from_at - 1, at - 1)
    return found[::-1]
