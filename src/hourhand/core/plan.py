"""Which runs a clock's members get, and what becomes of the times that were missed.

Pure. A clock has one time, `next_at`: everything before it is planned. Planning goes on from there to
the horizon; when the clock is behind, each group of members with the same misfire policy gets what that
policy says, and the rest is recorded as one gap of the clock.
"""

from enum import StrEnum

import msgspec

from hourhand.core.model import FOREVER, JobSpec, MisfirePolicy, OnceTiming, Version
from hourhand.core.schedule import Rule

MAX_TIMES_PER_STEP = 1_000  # a clock that is further behind goes on in the next step
MAX_GRACE_TIMES = 5_000


class Selector(msgspec.Struct, frozen=True, array_like=True):
    """Which members a planned time is for: those with this misfire policy, by when they joined."""

    policy: MisfirePolicy
    grace_us: int
    limit: int
    since_from: int  # since_from <= member.since < since_below
    since_below: int


class PlannedTime(msgspec.Struct, frozen=True, kw_only=True):
    """One nominal time to insert for a clock's members."""

    scheduled_at: int
    room_us: int  # distance to the next nominal time: jitter stays below it
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


class ClockPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The step a planner wants a clock to take; applied only if `expected_next_at` still holds."""

    clock_id: int
    expected_next_at: int
    new_next_at: int | None  # None: the rule has no further time
    times: tuple[PlannedTime, ...]
    gaps: tuple[Gap, ...] = ()


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
    misfires: tuple[tuple[str, int, int], ...],
) -> ClockPlan:
    """Plan one clock from `next_at` to the horizon.

    `misfires` are the distinct (policy, grace, limit) of its members; only needed when it is behind.
    """
    missed_to = rule.newest_in(next_at - 1, now_at)
    smallest_grace = min((grace for _, grace, _ in misfires), default=0)
    if missed_to is None or next_at + smallest_grace >= now_at:
        return _on_time(clock_id, rule, next_at, horizon_at)
    times: list[PlannedTime] = []
    gaps: list[Gap] = []
    for policy, grace_us, limit in misfires:
        group = (MisfirePolicy(policy), grace_us, limit)
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
    )


def judge_late(rule: Rule | None, spec: JobSpec, scheduled_at: int, until: int, now_at: int) -> Lateness:
    """The same policy for one run that was planned in time but not claimed within its grace."""
    misfire = spec.misfire
    last_at = min(now_at, until)
    match misfire.policy:
        case MisfirePolicy.SKIP:
            return Lateness.SKIP
        case MisfirePolicy.RUN_ONCE:
            newer = rule.newest_in(scheduled_at, last_at) if rule else None
            return Lateness.RUN if newer is None else Lateness.SKIP
        case MisfirePolicy.CATCH_UP:
            newer_count = rule.count(scheduled_at, last_at) if rule else 0
            return Lateness.BACKGROUND if newer_count < misfire.limit else Lateness.SKIP


def last_time(spec: JobSpec, rule: Rule | None, since: int, used: int) -> int:
    """The last nominal time a job may have: `ends_at` and `max_runs` in one number.

    `used` counts the nominal times of its earlier active versions.
    """
    ends_at = FOREVER if spec.ends_at is None else spec.ends_at
    if spec.max_runs is None or rule is None:
        return ends_at
    left = spec.max_runs - used
    if left <= 0:
        return min(ends_at, since)
    last = rule.nth(since, left)
    return ends_at if last is None else min(ends_at, last)


def used_runs(versions: list[Version]) -> int:
    """How many nominal times the active versions of a job have had, skipped ones included."""
    total = 0
    for version in versions:
        rule = version.spec.rule
        if version.paused or rule is None or version.to_at is None:
            continue
        total += rule.count(version.from_at, min(version.to_at, version.until))
    return total


def expected_times(versions: list[Version], after_at: int, until_at: int, limit: int) -> list[int]:
    """The nominal times in (after_at, until_at] by the versions in force, oldest first."""
    times: list[int] = []
    for version in versions:
        start = max(after_at, version.from_at)
        end = min(until_at, version.until, FOREVER if version.to_at is None else version.to_at)
        if version.paused or version.deleted:
            continue
        rule = version.spec.rule
        if rule is not None:
            if start < end:
                times += rule.times(start, end, limit - len(times))
        elif isinstance(version.spec.timing, OnceTiming) and after_at < version.spec.timing.at <= until_at:
            times.append(version.spec.timing.at)
        if len(times) >= limit:
            break
    return sorted(set(times))


def _on_time(clock_id: int, rule: Rule, start_at: int, horizon_at: int, after: bool = False) -> ClockPlan:
    """All times from `start_at` (or after it) to the horizon, for every member alike."""
    times: list[PlannedTime] = []
    at = rule.next(start_at) if after else start_at
    while at is not None and at <= horizon_at and len(times) < MAX_TIMES_PER_STEP:
        following = rule.next(at)
        times.append(PlannedTime(scheduled_at=at, room_us=FOREVER if following is None else following - at))
        at = following
    return ClockPlan(clock_id=clock_id, expected_next_at=start_at, new_next_at=at, times=tuple(times))


def _late_times(
    rule: Rule, next_at: int, now_at: int, missed_to: int, group: tuple[MisfirePolicy, int, int]
) -> tuple[list[PlannedTime], list[Gap]]:
    """What one group of members gets of [next_at, missed_to].

    The pivot is the newest time that is past the grace. Members who joined at or after it missed
    nothing beyond their grace and get all later times; for the others the policy speaks.
    """
    policy, grace_us, limit = group
    pivot = rule.newest_in(next_at - 1, now_at - grace_us - 1)
    if pivot is None:
        return [
            _late(rule, at, Selector(*group, 0, FOREVER)) for at in _walk(rule, next_at - 1, missed_to)
        ], []
    within_grace = _walk(rule, pivot, missed_to)
    times = [_late(rule, at, Selector(*group, pivot, FOREVER)) for at in within_grace]
    behind = Selector(*group, 0, pivot)
    match policy:
        case MisfirePolicy.SKIP:
            chosen = within_grace
        case MisfirePolicy.RUN_ONCE:
            chosen = [missed_to]
        case MisfirePolicy.CATCH_UP:
            chosen = _newest(rule, next_at, missed_to, limit)
    background = policy is MisfirePolicy.CATCH_UP
    times += [_late(rule, at, behind, background) for at in chosen]
    gap = Gap(
        from_at=next_at,
        to_at=missed_to,
        policy=policy,
        grace_us=grace_us,
        limit=limit,
        missed=rule.count(next_at - 1, missed_to),
        ran=len(chosen),
    )
    return times, [gap]


def _late(rule: Rule, at: int, only: Selector, background: bool = False) -> PlannedTime:
    following = rule.next(at)
    room_us = FOREVER if following is None else following - at
    return PlannedTime(scheduled_at=at, room_us=room_us, background=background, only=only)


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
