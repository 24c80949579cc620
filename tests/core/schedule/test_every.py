"""Interval rules against plain lists."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hourhand.core.instant import DAY_US, HOUR_US, MINUTE_US, SECOND_US, parse_instant
from hourhand.core.model import FOREVER
from hourhand.core.schedule import Every, ScheduleError, parse_key


@given(st.integers(1, 50), st.integers(-200, 200), st.integers(-200, 200), st.integers(-200, 200))
def test_every_answers_like_a_list(interval_us: int, phase_us: int, after: int, until: int) -> None:
    rule = Every(interval_us=interval_us, phase_us=phase_us)
    times = [at for at in range(-400, 400) if (at - phase_us) % interval_us == 0]
    later = [at for at in times if at > after]
    within = [at for at in later if at <= until]
    assert rule.next(after) == later[0]
    assert rule.latest(until) == [at for at in times if at <= until][-1]
    assert rule.newest_in(after, until) == (within[-1] if within else None)
    assert rule.times(after, until, 1_000) == within
    assert rule.times(after, until, 2) == within[:2]
    assert rule.count(after, until) == len(within)
    assert [rule.nth(after, n) for n in (1, 2, 3)] == later[:3]
    assert parse_key(rule.key) == rule


def test_phases_of_one_rule_are_equal() -> None:
    rule = Every(interval_us=15 * MINUTE_US, phase_us=1_794_816_000 * SECOND_US)
    assert rule == Every(interval_us=15 * MINUTE_US)
    assert rule.key == "every 900000000 0"
    assert rule.min_gap() == 15 * MINUTE_US


@pytest.mark.parametrize("interval_us", [0, -1, 36_526 * DAY_US])
def test_intervals_have_bounds(interval_us: int) -> None:
    with pytest.raises(ScheduleError, match="more than 0 and at most 100 years"):
        Every(interval_us=interval_us)


def test_ends_with_the_years_that_can_be_printed() -> None:
    rule = Every(interval_us=36_525 * DAY_US)
    last_at = parse_instant("9998-12-31T23:59:59.999999Z")
    times = rule.times(0, FOREVER, 1_000)
    assert len(times) == rule.count(0, FOREVER) == 80
    assert times[-1] == rule.latest(FOREVER) == rule.newest_in(0, FOREVER) == rule.nth(0, 80) <= last_at
    assert rule.nth(0, 81) is rule.next(times[-1]) is None


def test_nth_counts_from_one() -> None:
    with pytest.raises(ValueError, match="counted from 1"):
        Every(interval_us=1).nth(0, 0)


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        (Every(interval_us=15 * MINUTE_US), "every 15 minutes"),
        (Every(interval_us=HOUR_US, phase_us=90 * SECOND_US), "every hour, offset by 1m30s"),
        (Every(interval_us=7 * DAY_US), "every 7 days"),
        (Every(interval_us=1_500_000), "every 1s500ms"),
    ],
)
def test_words(rule: Every, words: str) -> None:
    assert rule.describe() == words
