"""Planning as a pure decision, held against a model that walks every time of every member.

The model knows only the words of the design: within the grace nothing was missed; beyond it, run_once runs
the newest, skip runs what is within the grace, catch_up the newest `limit` in the background.
"""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hourhand.core.instant import DAY_US, HOUR_US, SECOND_US, parse_instant
from hourhand.core.model import (
    FOREVER,
    CronTiming,
    EveryTiming,
    JobSpec,
    Misfire,
    MisfirePolicy,
    OnceTiming,
    PythonTarget,
    Version,
)
from hourhand.core.plan import (
    MAX_GRACE_TIMES,
    MAX_TIMES_PER_STEP,
    ClockPlan,
    Lateness,
    MisfireGroup,
    Selector,
    expected_times,
    first_since,
    judge_late,
    judge_late_by_versions,
    last_time,
    near_before,
    plan_clock,
    plan_leaver,
    used_runs,
    with_near_before,
)
from hourhand.core.schedule import Every, Rule, parse_cron

RUN_ONCE, SKIP, CATCH_UP = MisfirePolicy.RUN_ONCE, MisfirePolicy.SKIP, MisfirePolicy.CATCH_UP
TEN = Every(interval_us=10)

groups = st.builds(
    MisfireGroup,
    st.sampled_from(MisfirePolicy),
    st.sampled_from([0, 3, 25, 300, 5_000]),
    st.integers(1, 8),
    st.just(FOREVER) | st.integers(0, 1_500),
)


def times_for(plan: ClockPlan, since: int, group: MisfireGroup) -> dict[int, bool]:
    """What one member gets of a plan, and whether in the background; nothing twice."""
    found: dict[int, bool] = {}
    for time in plan.times:
        at = time.scheduled_at
        if time.only is not None:
            of_group = msgspec.structs.replace(group, until=time.only.group.until) == time.only.group
            until = time.only.group.until
            mine = group.until >= (plan.late_to or 0) if until == FOREVER else group.until == until
            if not (of_group and mine and time.only.since_from <= since < time.only.since_below):
                continue
        if since < at <= group.until:
            assert at not in found, f"{at} twice"
            found[at] = time.background
    return found


def model(
    rule: Rule, next_at: int, now: int, horizon: int, since: int, group: MisfireGroup
) -> dict[int, bool]:
    """The same, walked."""
    mine: list[int] = []
    at = rule.next(next_at - 1)
    while at is not None and at <= horizon:
        if since < at <= group.until:
            mine.append(at)
        at = rule.next(at)
    missed = [at for at in mine if at <= now]
    coming = {at: False for at in mine if at > now}
    if not missed or now - missed[0] <= group.grace_us:
        return dict.fromkeys(missed, False) | coming
    match group.policy:
        case MisfirePolicy.RUN_ONCE:
            return {missed[-1]: False} | coming
        case MisfirePolicy.SKIP:
            return {at: False for at in missed if now - at <= group.grace_us} | coming
        case MisfirePolicy.CATCH_UP:
            return dict.fromkeys(missed[-group.limit :], True) | coming


@given(
    st.integers(5, 40),
    st.integers(0, 40),
    st.integers(0, 1_000),
    st.integers(0, 1_500),
    st.integers(0, 100),
    st.lists(st.tuples(st.integers(0, 1_500), groups), min_size=1, max_size=6),
)
def test_every_member_gets_what_its_policy_says(
    interval: int, phase: int, start: int, now: int, ahead: int, members: list[tuple[int, MisfireGroup]]
) -> None:
    rule = Every(interval_us=interval, phase_us=phase)
    next_at = rule.next(start)
    assert next_at is not None
    horizon = now + ahead
    present = tuple(dict.fromkeys(group for _, group in members if group.until >= next_at))
    plan = plan_clock(1, rule, next_at, now, horizon, present)
    assert plan.expected_next_at == next_at
    assert plan.new_next_at == (next_at if next_at > horizon else rule.next(horizon))
    for since, group in members:
        since = min(since, now)  # nobody joins in the future
        expected = model(rule, next_at, now, horizon, since, group)
        assert times_for(plan, since, group) == expected
        covered = {at for gap in plan.gaps for at in range(gap.from_at, gap.to_at + 1)}
        for at in rule.times(max(since, next_at - 1), min(now, group.until), 10_000):
            assert at in expected or at in covered


@given(
    st.integers(0, 1_000),
    st.integers(0, 1_500),
    st.integers(0, 60),
    st.integers(0, 1_500),
    groups,
)
def test_who_leaves_gets_what_staying_would_have_given(
    start: int, now: int, ahead: int, since: int, group: MisfireGroup
) -> None:
    next_at = TEN.next(start)
    assert next_at is not None
    since = min(since, now)
    times, gaps = plan_leaver(TEN, next_at, now, now + ahead, since, group)
    found = {time.scheduled_at: time.background for time in times}
    assert len(found) == len(times)
    assert found == model(TEN, next_at, now, now + ahead, since, group)
    assert all(gap.from_at <= gap.to_at for gap in gaps)


def test_a_step_is_bounded_and_goes_on() -> None:
    plan = plan_clock(1, TEN, 0, 0, 10 * 2_500, ())
    assert len(plan.times) == MAX_TIMES_PER_STEP
    assert plan.new_next_at == 10 * MAX_TIMES_PER_STEP
    seen = []
    next_at: int | None = 0
    while next_at is not None and next_at <= 25_000:
        step = plan_clock(1, TEN, next_at, 0, 25_000, ())
        seen += [time.scheduled_at for time in step.times]
        next_at = step.new_next_at
    assert seen == list(range(0, 25_001, 10))


def test_room_is_the_distance_to_the_next_time() -> None:
    rule = parse_cron("0 9,17 * * *")
    plan = plan_clock(1, rule, 9 * 3_600 * SECOND_US, 0, DAY_US, ())
    assert [time.room_us // (3_600 * SECOND_US) for time in plan.times] == [8, 16]


def test_a_gap_says_what_was_missed_and_what_ran() -> None:
    group = MisfireGroup(CATCH_UP, 5, 3)
    plan = plan_clock(1, TEN, 10, 105, 105, (group,))
    [gap] = plan.gaps
    assert (gap.from_at, gap.to_at, gap.missed, gap.ran) == (10, 100, 10, 3)
    assert (gap.policy, gap.grace_us, gap.limit) == (CATCH_UP, 5, 3)
    assert (plan.late_to, plan.groups) == (100, (group,))


def test_groups_whose_end_lies_beyond_are_one() -> None:
    found = plan_clock(1, TEN, 10, 105, 105, (MisfireGroup(SKIP, 0, 1, 100), MisfireGroup(SKIP, 0, 1, 2_000)))
    assert found.groups == (MisfireGroup(SKIP, 0, 1, FOREVER),)
    apart = plan_clock(1, TEN, 10, 105, 105, (MisfireGroup(SKIP, 0, 1, 99), MisfireGroup(SKIP, 0, 1, 2_000)))
    assert len(apart.groups) == 2


def test_a_clock_just_behind_with_unknown_members_plans_for_all() -> None:
    plan = plan_clock(1, TEN, 10, 12, 30, ())
    assert [(time.scheduled_at, time.only) for time in plan.times] == [(10, None), (20, None), (30, None)]
    assert plan.late_to is None


def test_a_clock_far_behind_with_unknown_members_promises_nothing_for_them() -> None:
    """It holds only if there really are none, which the store checks."""
    plan = plan_clock(1, TEN, 10, 10_000_000, 10_000_000, ())
    assert (plan.times, plan.groups, plan.late_to) == ((), (), 10_000_000)
    assert plan.new_next_at == 10_000_010


@pytest.mark.parametrize("policy", list(MisfirePolicy))
@pytest.mark.parametrize("rule", [Every(interval_us=SECOND_US), parse_cron("* * * * * *")])
def test_a_hundred_years_behind_are_no_walk(policy: MisfirePolicy, rule: Rule) -> None:
    now = 36_500 * DAY_US
    plan = plan_clock(1, rule, SECOND_US, now, now, (MisfireGroup(policy, 60 * SECOND_US, 100),))
    assert len(plan.times) <= 162
    assert plan.gaps[0].missed == 36_500 * 86_400


def test_more_times_within_the_grace_than_can_be_planned_count_as_missed() -> None:
    group, impatient = MisfireGroup(SKIP, DAY_US, 1), MisfireGroup(SKIP, 0, 1)
    rule = Every(interval_us=SECOND_US)
    plan = plan_clock(1, rule, SECOND_US, 10_000 * SECOND_US, 10_000 * SECOND_US, (group, impatient))
    mine = times_for(plan, 0, group)
    assert len(mine) == MAX_GRACE_TIMES
    assert max(mine) == 10_000 * SECOND_US
    assert {gap.missed for gap in plan.gaps if gap.grace_us == DAY_US} == {10_000}


def test_selectors_tell_members_apart_by_when_they_joined() -> None:
    plan = plan_clock(1, TEN, 10, 105, 105, (MisfireGroup(RUN_ONCE, 35, 1),))
    selectors = {time.scheduled_at: time.only for time in plan.times if time.only and time.only.since_from}
    assert set(selectors) == {70, 80, 90, 100}
    assert selectors[80] == Selector(MisfireGroup(RUN_ONCE, 35, 1), 60, FOREVER)


# --- one late run


def spec(policy: MisfirePolicy = RUN_ONCE, limit: int = 3, **fields: object) -> JobSpec:
    fields.setdefault("timing", EveryTiming(interval_us=10, phase_at=0))
    misfire = Misfire(policy=policy, grace_us=0, limit=limit)
    return JobSpec(target=PythonTarget(function="f"), misfire=misfire, **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("policy", "at", "until", "now", "verdict"),
    [
        (SKIP, 50, FOREVER, 51, Lateness.SKIP),
        (RUN_ONCE, 50, FOREVER, 59, Lateness.RUN),
        (RUN_ONCE, 50, FOREVER, 60, Lateness.SKIP),
        (RUN_ONCE, 50, 59, 1_000, Lateness.RUN),  # it was the last
        (RUN_ONCE, 50, 60, 1_000, Lateness.SKIP),
        (CATCH_UP, 50, FOREVER, 79, Lateness.BACKGROUND),
        (CATCH_UP, 50, FOREVER, 80, Lateness.SKIP),  # three newer ones are the limit
        (CATCH_UP, 50, 70, 1_000, Lateness.BACKGROUND),
    ],
)
def test_a_late_run(policy: MisfirePolicy, at: int, until: int, now: int, verdict: Lateness) -> None:
    one = spec(policy)
    assert judge_late(one.rule, one, at, until, now) is verdict


@pytest.mark.parametrize(
    ("policy", "verdict"), [(SKIP, Lateness.SKIP), (RUN_ONCE, Lateness.RUN), (CATCH_UP, Lateness.BACKGROUND)]
)
def test_a_late_one_time_run(policy: MisfirePolicy, verdict: Lateness) -> None:
    assert judge_late(None, spec(policy, timing=OnceTiming(at=5)), 5, FOREVER, 10**9) is verdict


@given(st.integers(0, 50), st.sampled_from(MisfirePolicy), st.integers(0, 500), st.integers(1, 60))
def test_a_late_run_is_judged_alike_by_its_rule_and_by_its_only_version(
    n: int, policy: MisfirePolicy, now: int, limit: int
) -> None:
    one = spec(policy, limit)
    versions = [version(one, 0)]
    assert judge_late(one.rule, one, n * 10, FOREVER, now) is judge_late_by_versions(
        versions, one, n * 10, now
    )


def test_a_run_of_an_earlier_version_is_judged_by_what_came_after_it() -> None:
    earlier, later = spec(), spec(timing=EveryTiming(interval_us=1, phase_at=0))
    versions = [version(earlier, 0, to_at=35), version(later, 35, paused=True)]
    assert judge_late_by_versions(versions, later, 20, 1_000) is Lateness.SKIP
    assert judge_late_by_versions(versions, later, 30, 1_000) is Lateness.RUN


# --- versions


def version(
    one: JobSpec,
    from_at: int,
    to_at: int | None = None,
    *,
    paused: bool = False,
    until: int = FOREVER,
    deleted: bool = False,
) -> Version:
    return Version(
        job_id=1,
        version=1,
        spec=one,
        paused=paused,
        note=None,
        from_at=from_at,
        until=until,
        to_at=to_at,
        deleted=deleted,
    )


def test_times_are_each_versions_own() -> None:
    versions = [
        version(spec(), 0, 25),
        version(spec(timing=EveryTiming(interval_us=3, phase_at=0)), 25, 36),
        version(spec(), 36, 100, paused=True),
        version(spec(starts_at=120), 100, 160),
        version(spec(), 160, 200, until=175),
        version(spec(), 200, None, deleted=True),
    ]
    expected = [10, 20, 27, 30, 33, 36, 120, 130, 140, 150, 160, 170]
    assert expected_times(versions, 0, 10_000, 100) == expected
    assert expected_times(versions, 20, 140, 100) == [27, 30, 33, 36, 120, 130, 140]
    assert expected_times(versions, 0, 10_000, 4) == expected[:4]
    assert expected_times([], 0, 10_000, 4) == []


@pytest.mark.parametrize(
    ("versions", "expected"),
    [
        ([version(spec(timing=OnceTiming(at=50)), 0)], [50]),
        ([version(spec(timing=OnceTiming(at=50)), 80)], [50]),  # in the past: it fires at its creation
        ([version(spec(timing=OnceTiming(at=50)), 0, 49), version(spec(), 49, paused=True)], []),
        ([version(spec(timing=OnceTiming(at=50)), 0, 50), version(spec(), 50, paused=True)], [50]),
        ([version(spec(timing=OnceTiming(at=50)), 0, paused=True)], [50]),  # skipped, but not forgotten
        ([version(spec(timing=OnceTiming(at=50)), 0, 30), version(spec(timing=OnceTiming(at=70)), 30)], [70]),
        ([version(spec(timing=OnceTiming(at=50)), 0, 60), version(spec(timing=OnceTiming(at=50)), 60)], [50]),
    ],
)
def test_the_time_of_a_one_time_job(versions: list[Version], expected: list[int]) -> None:
    assert expected_times(versions, 0, 1_000, 10) == expected


@given(
    st.lists(st.tuples(st.integers(0, 300), st.booleans(), st.integers(3, 30)), min_size=1, max_size=6),
    st.integers(1, 60),
)
def test_max_runs_is_a_promise_over_all_versions(drawn: list[tuple[int, bool, int]], max_runs: int) -> None:
    """However often a job is edited or paused, it gets its number of times in the end, and no more."""
    versions: list[Version] = []
    cut = 0
    for length, paused, interval in [*drawn, (100_000, False, 7)]:
        one = spec(timing=EveryTiming(interval_us=interval, phase_at=0), max_runs=max_runs)
        until = last_time(one, one.rule, cut, used_runs(versions), paused=paused)
        versions.append(version(one, cut, cut + length, paused=paused, until=until))
        cut += length
    assert used_runs(versions) == max_runs
    assert len(expected_times(versions, 0, 10**6, 10**6)) == max_runs


@pytest.mark.parametrize(
    ("fields", "used", "paused", "last"),
    [
        ({}, 0, False, FOREVER),
        ({"ends_at": 55}, 0, False, 55),
        ({"max_runs": 3}, 0, False, 30),
        ({"max_runs": 3}, 2, False, 10),
        ({"max_runs": 3}, 3, False, 0),
        ({"max_runs": 3}, 9, False, 0),
        ({"max_runs": 3, "ends_at": 25}, 0, False, 25),
        ({"max_runs": 3, "ends_at": 500}, 0, False, 30),
        ({"max_runs": 3}, 2, True, FOREVER),
        ({"max_runs": 3}, 3, True, 0),
        ({"max_runs": 3, "ends_at": 25}, 0, True, 25),
        ({"timing": OnceTiming(at=5), "max_runs": 3}, 0, False, FOREVER),
    ],
)
def test_the_last_time(fields: dict[str, object], used: int, paused: bool, last: int) -> None:
    one = spec(**fields)  # type: ignore[arg-type]
    assert last_time(one, one.rule, 0, used, paused=paused) == last


def test_a_version_begins_at_its_cut_or_just_before_its_start() -> None:
    assert first_since(spec(), 50) == 50
    assert first_since(spec(starts_at=40), 50) == 50
    assert first_since(spec(starts_at=60), 50) == 59
    cron = spec(timing=CronTiming(expression="0 * * * *"), starts_at=3_600 * SECOND_US)
    rule = cron.rule
    assert rule is not None
    assert rule.next(first_since(cron, 0)) == 3_600 * SECOND_US


# --- the time before, where it is near

SPRING_AT = parse_instant("2026-03-29T01:00:00Z")  # 02:00 becomes 03:00 in Berlin
AUTUMN_AT = parse_instant("2026-10-25T01:00:00Z")  # 03:00 becomes 02:00
ORDINARY_AT = parse_instant("2026-06-01T12:00:00Z")
RULES = [
    Every(interval_us=SECOND_US),
    Every(interval_us=59 * SECOND_US),
    Every(interval_us=60 * SECOND_US),
    parse_cron("* * * * *"),
    parse_cron("* * * * * *"),
    parse_cron("0,1,30 * * * * *"),
    parse_cron("50 59 * * * *"),
    parse_cron("0,59 0,59 1,3 * * *", tz="Europe/Berlin"),  # an hour and a second apart, in spring a second
    parse_cron("30 30 2 * * *", tz="Europe/Berlin", gap="after"),
    parse_cron("0,30 0,30 2,3 * * *", tz="Europe/Berlin", gap="shift"),
    parse_cron("0,20 30,59 2 * * *", tz="Europe/Berlin", fold="both"),
]


def walked_before(rule: Rule, at: int) -> int | None:
    """The time directly before another, walked; None if a claim cannot have both ahead of their time."""
    before = [other for other in rule.times(at - 60 * SECOND_US, at, 100) if other < at]
    return before[-1] if before else None


@pytest.mark.parametrize("around_at", [SPRING_AT, AUTUMN_AT, ORDINARY_AT])
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.key)
def test_each_planned_time_knows_the_near_one_before_it(rule: Rule, around_at: int) -> None:
    """Whatever the steps: also the first of a step, whose time before was planned by the step before."""
    at = rule.next(around_at - 2 * HOUR_US)
    steps = 0
    seen: list[int] = []
    while at is not None and at < around_at + 2 * HOUR_US:
        plan = plan_clock(1, rule, at, at - 1, at + 17 * SECOND_US, ())
        for time in plan.times:
            assert (
                time.after_at
                == walked_before(rule, time.scheduled_at)
                == near_before(rule, time.scheduled_at)
            )
            seen.append(time.scheduled_at)
        at = plan.new_next_at
        steps += 1
    assert seen == rule.times(around_at - 2 * HOUR_US, seen[-1], 100_000) if seen else True
    assert with_near_before(rule, seen) == [(found, walked_before(rule, found)) for found in seen]


@pytest.mark.parametrize("policy", list(MisfirePolicy))
def test_late_times_know_the_one_before_them_but_for_the_background(policy: MisfirePolicy) -> None:
    rule, now = Every(interval_us=SECOND_US), 1_000 * SECOND_US
    group = MisfireGroup(policy, 5 * SECOND_US, 3)
    plan = plan_clock(1, rule, 900 * SECOND_US, now, now + 3 * SECOND_US, (group,))
    assert {time.scheduled_at > now for time in plan.times} == {True, False}
    for time in plan.times:
        assert time.after_at == (None if time.background else time.scheduled_at - SECOND_US)


def test_the_first_time_there_is_has_none_before_it() -> None:
    assert near_before(parse_cron("0 0 1 1 *"), parse_instant("2027-01-01T00:00:00Z")) is None
    assert with_near_before(TEN, []) == []
