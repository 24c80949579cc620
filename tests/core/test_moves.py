"""What a change does to fires, against sets of all of them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hourhand.core.instant import DAY_US, HOUR_US, MINUTE_US, SECOND_US
from hourhand.core.model import (
    CronTiming,
    EveryTiming,
    Job,
    JobSpec,
    JobState,
    OnceTiming,
    PythonTarget,
    Timing,
)
from hourhand.core.moves import MOST_LISTED, MOST_WALKED, PLAN_US, Fires, compared, moves
from hourhand.core.schedule import Every, Rule, parse_cron

NOW_AT = 1_794_819_600_000_000  # 2026-11-16T09:00:00Z
UNTIL = NOW_AT + PLAN_US


def job(timing: Timing, **fields: object) -> Job:
    spec = JobSpec(timing=timing, target=PythonTarget(function="a:b"))
    fields = {"since": NOW_AT, **fields}
    return Job(id=1, tenant="t", spec=spec, created_at=NOW_AT, updated_at=NOW_AT, **fields)  # type: ignore[arg-type]


def cron(expression: str, tz: str = "UTC") -> Job:
    return job(CronTiming(expression=expression, tz=tz))


def of(before: Job | None, after: Job | None) -> tuple[int | None, int | None, int | None]:
    found = moves(before, after, NOW_AT, UNTIL)
    return found.added, found.removed, found.moved


def course(rule: Rule, until: int = UNTIL) -> Fires:
    return Fires(rule=rule, after=NOW_AT, until=until)


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        (None, cron("0 8 * * *"), (7, 0, 0)),
        (cron("0 8 * * *"), None, (0, 7, 0)),
        (cron("0 8 * * *"), cron("30 8 * * *"), (0, 0, 7)),
        (cron("0 8 * * *"), cron("0 7 * * *"), (0, 0, 7)),
        (cron("0 8 * * *"), cron("0 8,20 * * *"), (7, 0, 0)),
        (cron("0 8 * * *"), cron("0 8 * * mon-fri"), (0, 2, 0)),
        (cron("*/15 * * * *"), cron("*/20 * * * *"), (0, 7 * 24, 7 * 48)),
        (cron("0 12 * * *"), cron("0 12 * * *", "Europe/Berlin"), (0, 0, 7)),
        (cron("0 8 * * *"), job(OnceTiming(at=NOW_AT + HOUR_US)), (0, 6, 1)),
        (cron("0 8 * * *"), cron("0 8 * * * *"), (7 * 23, 0, 7)),  # six fields: minute 8 of each hour
        (job(CronTiming(expression="0 8 * * *"), state=JobState.PAUSED), cron("0 8 * * *"), (7, 0, 0)),
        (cron("* * * * * *"), cron("* * * * * *"), (0, 0, 0)),
        (cron("* * * * * *"), cron("*/2 * * * * *"), (0, 302_400, 0)),
        (cron("0 8 * * *"), cron("* * * * * *"), (604_793, 0, 0)),
        (None, job(EveryTiming(interval_us=SECOND_US, phase_at=0)), (604_800, 0, 0)),
    ],
)
def test_what_comes_goes_and_moves(before: Job | None, after: Job | None, told: tuple[int, ...]) -> None:
    assert of(before, after) == told


def test_lists_are_the_first_and_bounded() -> None:
    found = moves(cron("0 * * * *"), cron("30 * * * *"), NOW_AT, UNTIL)
    assert found.moved == 168
    assert len(found.moved_at) == MOST_LISTED
    assert found.moved_at[0] == (NOW_AT + HOUR_US, NOW_AT + HOUR_US // 2)
    found = moves(None, cron("* * * * * *"), NOW_AT, UNTIL)
    assert found.added_at == tuple(NOW_AT + n * SECOND_US for n in range(1, MOST_LISTED + 1))


def test_what_fires_before_the_new_version_holds_is_left_out() -> None:
    new = job(CronTiming(expression="30 * * * *"), since=NOW_AT + 10 * HOUR_US)
    assert of(cron("0 * * * *"), new) == (0, 0, 158)


def test_too_many_to_tell_is_no_guess() -> None:
    found = moves(cron("*/2 * * * * *"), cron("*/3 * * * * *"), NOW_AT, UNTIL)
    assert (found.before, found.after) == (302_400, 201_600)
    assert (found.added, found.removed, found.moved) == (None, None, None)
    found = moves(cron("0 * * * *"), cron("30 * * * *"), NOW_AT, UNTIL, most=10)
    assert (found.before, found.after, found.moved) == (168, 168, None)


intervals = st.integers(1, 40).map(lambda n: n * 250_000)


@given(intervals, st.integers(0, 40), intervals, st.integers(0, 40))
def test_intervals_by_arithmetic(first: int, phase: int, second: int, other_phase: int) -> None:
    until = NOW_AT + 2 * HOUR_US
    rules = (
        Every(interval_us=first, phase_us=phase * 250_000),
        Every(interval_us=second, phase_us=other_phase * 250_000),
    )
    old, new = (set(rule.times(NOW_AT, until, 1_000_000)) for rule in rules)
    found = compared(course(rules[0], until), course(rules[1], until), most=0)
    assert (found.before, found.after) == (len(old), len(new))
    assert (found.added, found.removed) == (len(new - old), len(old - new))


EXPRESSIONS = ["*/7 * * * *", "0 */2 * * *", "30 1-3 * * *", "15 2 * * *", "0 0 * * sun", "5,10 2 * * *"]


@given(
    st.sampled_from(EXPRESSIONS),
    st.sampled_from(EXPRESSIONS),
    st.sampled_from(["UTC", "Europe/Berlin", "Australia/Lord_Howe"]),
    st.integers(0, 400),
)
def test_walked_ones_add_up(first: str, second: str, zone: str, day: int) -> None:
    from_at = NOW_AT + day * DAY_US
    rules = parse_cron(first, tz=zone), parse_cron(second)
    courses = [Fires(rule=rule, after=from_at, until=from_at + PLAN_US) for rule in rules]
    old, new = (set(one.times()) for one in courses)
    found = compared(*courses)
    assert None not in (found.added, found.removed, found.moved)
    assert (found.added or 0) + (found.moved or 0) == len(new - old)
    assert (found.removed or 0) + (found.moved or 0) == len(old - new)
    for goes, comes in found.moved_at:
        low, high = sorted((goes, comes))
        assert goes in old - new
        assert comes in new - old
        assert not any(low < at < high for at in old | new)


def test_one_a_minute_before_and_after_is_walked() -> None:
    assert 2 * PLAN_US // MINUTE_US == MOST_WALKED
