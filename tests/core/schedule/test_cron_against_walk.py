"""The engine against a walk through real time, for zone changes of every kind and all policies."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise, product
from random import Random

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from hourhand.core.instant import SECOND_US, parse_instant
from hourhand.core.schedule import Cron, NeverMatchesError, parse_cron, parse_key
from hourhand.core.schedule.zone import zone_names
from tests.core.schedule.reference import EPOCH, Spec, Walk, early_hours, fires, fixed_spec, specs, walk

CHANGES = [  # zone and the UTC time of a change
    ("Africa/Cairo", "2026-04-23T22:00"),  # at midnight
    ("Africa/Casablanca", "2026-02-15T02:00"),  # Ramadan: back in winter
    ("Africa/Casablanca", "2026-03-22T02:00"),
    ("Africa/Monrovia", "1972-01-07T00:44"),  # 44 minutes and 30 seconds
    ("America/Caracas", "2007-12-09T07:00"),  # half an hour back
    ("America/Caracas", "2016-05-01T07:00"),
    ("America/New_York", "2026-03-08T07:00"),
    ("America/New_York", "2026-11-01T06:00"),
    ("America/Nuuk", "2026-03-29T01:00"),
    ("America/Santiago", "2026-04-05T03:00"),  # a fold across midnight
    ("America/Santiago", "2026-09-06T04:00"),
    ("America/Sao_Paulo", "2018-02-18T02:00"),
    ("America/Sao_Paulo", "2018-11-04T03:00"),  # midnight does not exist
    ("Antarctica/Casey", "2020-10-03T16:01"),  # three hours
    ("Antarctica/Casey", "2021-03-13T13:00"),
    ("Antarctica/Troll", "2026-03-29T01:00"),  # two hours
    ("Antarctica/Troll", "2026-10-25T01:00"),
    ("Asia/Beirut", "2026-03-28T22:00"),
    ("Asia/Beirut", "2026-10-24T21:00"),
    ("Asia/Kathmandu", "1985-12-31T18:30"),  # a quarter of an hour at new year
    ("Australia/Lord_Howe", "2026-04-04T15:00"),  # half an hour
    ("Australia/Lord_Howe", "2026-10-03T15:30"),
    ("Europe/Berlin", "1945-05-24T00:00"),  # double summer time
    ("Europe/Berlin", "2026-03-29T01:00"),
    ("Europe/Berlin", "2026-10-25T01:00"),
    ("Europe/Dublin", "2026-03-29T01:00"),  # winter is the exception
    ("Europe/Dublin", "2026-10-25T01:00"),
    ("Pacific/Apia", "2011-12-30T10:00"),  # a whole day left out
    ("Pacific/Chatham", "2026-04-04T14:00"),
    ("Pacific/Kwajalein", "1969-09-30T13:00"),  # 23 hours twice
    ("Pacific/Kwajalein", "1993-08-21T12:00"),
]
GAPS = ["after", "skip", "shift"]
FOLDS = ["auto", "first", "second", "both"]
DAY_S = 86_400
INSTANTS = st.datetimes(datetime(1860, 1, 1), datetime(2230, 1, 1)).map(  # noqa: DTZ001
    lambda moment: (moment - EPOCH) // timedelta(microseconds=1)
)


@pytest.mark.parametrize(("zone", "text"), CHANGES)
def test_fixed_times_around_zone_changes(zone: str, text: str) -> None:
    at = seconds(text)
    walked = walk_around(zone, at)
    random = Random(f"{zone} {text}")
    for gap, fold in 2 * [*product(GAPS, FOLDS)]:
        spec = fixed_spec(random, hours_around(walked, at))
        expected = fires(spec, gap, fold, walked)
        rule = rule_of(spec, zone, gap, fold)
        check_window(rule, expected, at - DAY_S, at + DAY_S)
        for _ in range(5):  # asked from right beside the change too
            begin, end = sorted(at + random.randrange(-7_200, 10_800) for _ in range(2))
            check_window(rule, expected, begin, end)


@pytest.mark.parametrize(("zone", "text"), CHANGES[3::6])
def test_fixed_seconds_around_zone_changes(zone: str, text: str) -> None:
    at = seconds(text)
    walked = walk(zone, at - 4 * 3_600, at + 4 * 3_600, 1)
    random = Random(f"{zone} {text}")
    for gap, fold in product(GAPS, FOLDS):
        spec = fixed_spec(random, hours_around(walked, at), seconds=True)
        expected = fires(spec, gap, fold, walked)
        check_window(rule_of(spec, zone, gap, fold), expected, at - 3_600, at + 3_600)


@given(
    specs(hours=early_hours) | specs(),
    st.sampled_from(CHANGES),
    st.sampled_from(GAPS),
    st.sampled_from(FOLDS),
)
@settings(max_examples=200)
def test_minutes_around_zone_changes(spec: Spec, change: tuple[str, str], gap: str, fold: str) -> None:
    zone, text = change
    at = seconds(text)
    expected = fires(spec, gap, fold, walk_around(zone, at))
    check_window(rule_of(spec, zone, gap, fold), expected, at - DAY_S, at + DAY_S)


@given(
    specs(seconds=True, hours=early_hours),
    st.sampled_from([change for change in CHANGES if not change[0].startswith(("Pacific/A", "Pacific/K"))]),
    st.sampled_from(GAPS),
    st.sampled_from(FOLDS),
)
@settings(max_examples=30)
def test_seconds_around_zone_changes(spec: Spec, change: tuple[str, str], gap: str, fold: str) -> None:
    zone, text = change
    at = seconds(text)
    expected = fires(spec, gap, fold, walk(zone, at - 4 * 3_600, at + 4 * 3_600, 1))
    check_window(rule_of(spec, zone, gap, fold), expected, at - 1_200, at + 1_200)


@settings(max_examples=50)
@given(specs(), INSTANTS)
def test_minutes_in_utc(spec: Spec, at: int) -> None:
    start = at // SECOND_US // 60 * 60
    expected = fires(spec, "after", "auto", walk("UTC", start, start + 2 * DAY_S, 60))
    check_window(rule_of(spec, "UTC"), expected, start - 1, start + 2 * DAY_S - 1)


@settings(max_examples=50)
@given(specs(), st.dates(datetime(1600, 1, 1).date(), datetime(2400, 1, 1).date()))  # noqa: DTZ001
def test_days_of_three_years(spec: Spec, start: object) -> None:
    spec = Spec(**{**vars(spec), "texts": ("0", "0", "12", *spec.texts[3:]), "hour": {12}, "minute": {0}})
    first = round((datetime.fromisoformat(f"{start}T12:00:00") - EPOCH).total_seconds())
    noons = range(first, first + 1_100 * DAY_S, DAY_S)
    expected = [noon for noon in noons if spec.matches_day(EPOCH + timedelta(seconds=noon))]
    check_window(rule_of(spec, "UTC"), expected, first - 1, first + 1_100 * DAY_S - 1)


@given(specs(), st.sampled_from(zone_names()), INSTANTS, st.sampled_from(GAPS))
@settings(max_examples=100)
@example(Spec(("0", "0", "0", "29", "2", "*/7"), *[frozenset()] * 6), "Europe/Berlin", 0, "after")
def test_laws_of_a_rule(spec: Spec, zone: str, at: int, gap: str) -> None:
    rule = rule_of(spec, zone, gap, "auto")
    following, before = rule.next(at), rule.latest(at)
    assert following is not None
    assert following > at
    assert rule.latest(following) == following
    assert rule.next(following - 1) == following
    assert rule.latest(following - 1) == before
    assert rule.newest_in(at, following) == following
    assert rule.newest_in(at, following - 1) is None
    assert rule.nth(at, 1) == following
    assert before is not None
    assert before <= at
    assert rule.next(before) == following
    same = parse_key(rule.key)
    assert same == rule
    assert (same.key, hash(same), same.next(at)) == (rule.key, hash(rule), following)


@settings(max_examples=50)
@given(specs(), st.sampled_from(["UTC", "Asia/Tokyo"]), INSTANTS)
def test_no_two_wall_times_lie_closer_than_min_gap(spec: Spec, zone: str, at: int) -> None:
    rule = rule_of(spec, zone)
    times = rule.times(at, 10**17, 50)
    assert all(b - a >= rule.min_gap() for a, b in pairwise(times))


@pytest.mark.parametrize(("zone", "text"), CHANGES)
def test_the_changes_walked_through_are_changes(zone: str, text: str) -> None:
    at = seconds(text)
    walked = walk_around(zone, at)
    repeated = [wall for wall, instants in walked.shown.items() if len(instants) > 1]
    assert walked.gaps or repeated
    assert all(instant == at for _, _, instant in walked.gaps) or "Monrovia" in zone


def walk_around(zone: str, at: int) -> Walk:
    """Two days to either side, in the coarsest step that hits every wall minute."""
    return walk(zone, at - 2 * DAY_S, at + 2 * DAY_S, 30 if zone == "Africa/Monrovia" else 60)


def hours_around(walked: Walk, at: int) -> range:
    """The hours that the wall clock shows before, during and after a change."""
    (before,) = [wall for wall, instants in walked.shown.items() if at - 3_600 in instants]
    return range(before // 3_600 % 24, before // 3_600 % 24 + 4)


def seconds(text: str) -> int:
    return parse_instant(f"{text}:00Z") // SECOND_US


def rule_of(spec: Spec, zone: str, gap: str = "after", fold: str = "auto") -> Cron:
    try:
        return parse_cron(spec.expression, tz=zone, gap=gap, fold=fold)
    except NeverMatchesError:
        day = datetime(1970, 1, 1, tzinfo=UTC)
        assert not any(spec.matches_day(day + timedelta(days=n)) for n in range(40 * 366))
        assume(False)
        raise


def check_window(rule: Cron, expected_s: list[int], after_s: int, until_s: int) -> None:
    """Every question about (after, until] has the answer that the walk gives."""
    expected = [at * SECOND_US for at in expected_s if after_s < at <= until_s]
    after, until = after_s * SECOND_US, until_s * SECOND_US
    times = rule.times(after, until, len(expected) + 10)
    assert times == expected
    assert rule.count(after, until) == len(expected)
    assert rule.newest_in(after, until) == (expected[-1] if expected else None)
    backwards = []
    at = rule.newest_in(after, until)
    while at is not None:
        backwards.append(at)
        at = rule.newest_in(after, at - 1)
    assert backwards == expected[::-1]
    for n in {1, 2, len(expected) // 2, len(expected)} - {0}:
        if n <= len(expected):
            assert rule.nth(after, n) == expected[n - 1]
            assert rule.count(after, expected[n - 1]) == n
            assert rule.count(expected[n - 1], until) == len(expected) - n
