"""Cron rules by table: the DST policies on known days, rare dates, old and far times, and the ends of time."""

import time

import pytest

from hourhand.core.instant import DAY_US, SECOND_US, format_in_zone, format_instant, parse_instant
from hourhand.core.schedule import Cron, parse_cron, zone_info

FOREVER = (1 << 62) - 1


def local_times(rule: Cron, after: str, count: int) -> list[str]:
    zone = zone_info(rule.zone)
    return [format_in_zone(at, zone) for at in rule.times(parse_instant(after), FOREVER, count)]


GAP_CASES = [  # zone, expression, gap policy, asked after, the next times
    ("Europe/Berlin", "30 2 * * *", "after", ["2026-03-29T03:00:00+02:00", "2026-03-30T02:30:00+02:00"]),
    ("Europe/Berlin", "30 2 * * *", "shift", ["2026-03-29T03:30:00+02:00", "2026-03-30T02:30:00+02:00"]),
    ("Europe/Berlin", "30 2 * * *", "skip", ["2026-03-30T02:30:00+02:00", "2026-03-31T02:30:00+02:00"]),
    ("Europe/Berlin", "*/20 2 * * *", "after", ["2026-03-30T02:00:00+02:00"]),
    ("Europe/Berlin", "0-59/20 2 * * *", "after", ["2026-03-29T03:00:00+02:00", "2026-03-30T02:00:00+02:00"]),
    ("Europe/Berlin", "0 2,3 * * *", "after", ["2026-03-29T03:00:00+02:00", "2026-03-30T02:00:00+02:00"]),
    ("Europe/Berlin", "0 2,3 * * *", "shift", ["2026-03-29T03:00:00+02:00", "2026-03-30T02:00:00+02:00"]),
    ("Europe/Berlin", "15 30 2 * * *", "after", ["2026-03-29T03:00:00+02:00", "2026-03-30T02:30:15+02:00"]),
    ("Europe/Berlin", "15 30 2 * * *", "shift", ["2026-03-29T03:30:15+02:00", "2026-03-30T02:30:15+02:00"]),
]


@pytest.mark.parametrize(("zone", "expression", "gap", "expected"), GAP_CASES)
def test_gaps(zone: str, expression: str, gap: str, expected: list[str]) -> None:
    rule = parse_cron(expression, tz=zone, gap=gap)
    assert local_times(rule, "2026-03-28T23:00:00Z", len(expected)) == expected


@pytest.mark.parametrize(
    ("expression", "fold", "expected"),
    [
        ("30 2 * * *", "auto", ["2026-10-25T02:30:00+02:00", "2026-10-26T02:30:00+01:00"]),
        ("30 2 * * *", "first", ["2026-10-25T02:30:00+02:00", "2026-10-26T02:30:00+01:00"]),
        ("30 2 * * *", "second", ["2026-10-25T02:30:00+01:00", "2026-10-26T02:30:00+01:00"]),
        ("30 2 * * *", "both", ["2026-10-25T02:30:00+02:00", "2026-10-25T02:30:00+01:00"]),
        ("30 * * * *", "auto", ["2026-10-25T02:30:00+02:00", "2026-10-25T02:30:00+01:00"]),
        ("30 * * * *", "first", ["2026-10-25T02:30:00+02:00", "2026-10-25T03:30:00+01:00"]),
        ("30 * * * *", "second", ["2026-10-25T02:30:00+01:00", "2026-10-25T03:30:00+01:00"]),
        ("0 3 * * *", "auto", ["2026-10-25T03:00:00+01:00", "2026-10-26T03:00:00+01:00"]),
    ],
)
def test_folds(expression: str, fold: str, expected: list[str]) -> None:
    rule = parse_cron(expression, tz="Europe/Berlin", fold=fold)
    assert local_times(rule, "2026-10-24T23:45:00Z", 2) == expected


def test_rare_times_are_found_in_the_other_pass_of_a_fold() -> None:
    rule = parse_cron("30 2 25 10 *", tz="Europe/Berlin", fold="both")
    first, second = parse_instant("2026-10-25T02:30:00+02:00"), parse_instant("2026-10-25T02:30:00+01:00")
    assert rule.next(first) == rule.next(first + 900 * SECOND_US) == second
    assert rule.latest(second - 1) == rule.latest(second - 900 * SECOND_US) == first


@pytest.mark.parametrize(
    ("zone", "expression", "after", "expected"),
    [
        # half an hour: the fold of 01:30 to 02:00, the gap of 02:00 to 02:30
        ("Australia/Lord_Howe", "45 1 * * *", "2026-04-04T12:00:00Z", ["2026-04-05T01:45:00+11:00"]),
        ("Australia/Lord_Howe", "45 1 * * *", "2026-04-04T14:50:00Z", ["2026-04-06T01:45:00+10:30"]),
        ("Australia/Lord_Howe", "15 2 * * *", "2026-10-03T12:00:00Z", ["2026-10-04T02:30:00+11:00"]),
        # midnight that does not exist, and that comes twice
        ("America/Sao_Paulo", "0 0 * * *", "2018-11-03T12:00:00Z", ["2018-11-04T01:00:00-02:00"]),
        ("Asia/Beirut", "15 0 * * sun", "2026-03-28T12:00:00Z", ["2026-03-29T01:00:00+03:00"]),
        ("America/Santiago", "30 23 * * sat", "2026-04-04T12:00:00Z", ["2026-04-04T23:30:00-03:00", "2026-04-11T23:30:00-04:00"]),
        # a day left out is not made up for
        ("Pacific/Apia", "0 12 * * *", "2011-12-29T12:00:00Z", ["2011-12-29T12:00:00-10:00", "2011-12-31T12:00:00+14:00"]),
        ("Pacific/Apia", "0 0 30 12 *", "2011-12-01T00:00:00Z", ["2012-12-30T00:00:00+14:00"]),
        ("Pacific/Kwajalein", "0 9 * * *", "1993-08-20T12:00:00Z", ["1993-08-20T09:00:00-12:00", "1993-08-22T09:00:00+12:00"]),
        # three hours still are
        ("Antarctica/Casey", "30 1 * * *", "2020-10-03T15:00:00Z", ["2020-10-04T03:01:00+11:00"]),
        # year ends, leap days, the 31st
        ("Pacific/Auckland", "0 0 1 1 *", "2026-06-01T00:00:00Z", ["2027-01-01T00:00:00+13:00"]),
        ("UTC", "59 59 23 31 12 *", "2026-12-31T23:59:58Z", ["2026-12-31T23:59:59+00:00", "2027-12-31T23:59:59+00:00"]),
        ("UTC", "0 0 29 2 *", "2096-03-01T00:00:00Z", ["2104-02-29T00:00:00+00:00"]),
        ("UTC", "0 0 29 2 */7", "2072-01-01T00:00:00Z", ["2088-02-29T00:00:00+00:00", "2128-02-29T00:00:00+00:00"]),
        ("UTC", "0 0 31 * *", "2026-01-31T00:00:00Z", ["2026-03-31T00:00:00+00:00", "2026-05-31T00:00:00+00:00"]),
        ("UTC", "0 0 LW 2,5 *", "2026-01-01T00:00:00Z", ["2026-02-27T00:00:00+00:00", "2026-05-29T00:00:00+00:00"]),
        # before 1970, and local mean time with seconds
        ("Europe/London", "0 12 * * *", "1916-05-20T12:00:00Z", ["1916-05-21T12:00:00+01:00"]),
        ("America/New_York", "0 12 * * *", "1880-01-01T00:00:00Z", ["1880-01-01T12:00:00-04:56:02"]),
        ("Europe/Amsterdam", "0 0 1 1 *", "1930-06-01T00:00:00Z", ["1931-01-01T00:00:00+00:00"]),
        # beyond the years that are kept ready
        ("Europe/Berlin", "30 2 29-31 3 0L", "3000-01-01T00:00:00Z", ["3000-03-29T02:30:00+01:00"]),
        ("Europe/Berlin", "0 9 1 7 *", "2200-01-01T00:00:00Z", ["2200-07-01T09:00:00+02:00", "2201-07-01T09:00:00+02:00"]),
    ],
)  # fmt: skip
def test_times_in_zones(zone: str, expression: str, after: str, expected: list[str]) -> None:
    assert local_times(parse_cron(expression, tz=zone), after, len(expected)) == expected


def test_a_time_that_dst_always_drops_is_never_found_but_soon_given_up() -> None:
    rule = parse_cron("30 2 * 3 0#2", tz="America/New_York", gap="skip")
    after = parse_instant("2026-01-01T00:00:00Z")
    began = time.perf_counter()
    assert rule.next(after) is None
    assert rule.nth(after, 1) is None
    assert time.perf_counter() - began < 5
    assert format_instant(rule.latest(after) or 0) == "2006-03-12T07:30:00Z"


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin"])
def test_the_ends_of_time(zone: str) -> None:
    rule = parse_cron("0 0 1 * *", tz=zone)
    assert rule.next(FOREVER) is None
    assert rule.latest(-FOREVER) is None
    assert rule.nth(0, 10**9) is None
    assert rule.times(0, 0, 5) == []
    assert rule.times(0, FOREVER, 0) == []
    assert rule.count(100, 50) == 0
    first = rule.next(-FOREVER)
    assert first is not None
    assert format_instant(first)[:4] in ("0001", "0002")
    last = rule.latest(parse_instant("9999-12-31T00:00:00Z"))
    assert last is not None
    assert format_in_zone(last, zone_info(zone)).startswith("9998-1")


def test_nth_counts_from_one() -> None:
    with pytest.raises(ValueError, match="counted from 1"):
        parse_cron("* * * * *").nth(0, 0)


def test_long_spans_are_counted_and_not_walked() -> None:
    rule = parse_cron("* * * * * *", tz="Europe/Berlin")
    century_us = 36_525 * DAY_US
    began = time.perf_counter()
    assert rule.count(0, century_us) == century_us // SECOND_US
    assert rule.nth(0, 3_155_760_000) == century_us
    assert rule.latest(century_us + 5) == century_us
    assert time.perf_counter() - began < 2


def test_fractions_of_a_second() -> None:
    rule = parse_cron("* * * * * *")
    assert [rule.next(-1), rule.next(0), rule.next(1), rule.next(SECOND_US - 1)] == [
        0,
        SECOND_US,
        SECOND_US,
        SECOND_US,
    ]
    assert [rule.latest(-1), rule.latest(0), rule.latest(1)] == [-SECOND_US, 0, 0]


@pytest.mark.parametrize(
    ("expression", "gap_s"),
    [
        ("* * * * * *", 1),
        ("*/7 * * * * *", 4),
        ("* * * * *", 60),
        ("*/7 * * * *", 240),
        ("59 * * * *", 3_600),
        ("0 9,17 * * *", 8 * 3_600),
        ("0 0 * * *", 86_400),
        ("0 0 * * 1", 7 * 86_400),
        ("0 0 31 * *", 28 * 86_400),
        ("0 0 1,L * *", 86_400),
        ("59,1 0,23 * * *", 120),
        ("0 0 1,31 1,2 *", 86_400),
        ("0 0 1,31 1,3 *", 28 * 86_400),
    ],
)
def test_min_gap(expression: str, gap_s: int) -> None:
    assert parse_cron(expression).min_gap() == gap_s * SECOND_US


def test_rules_are_values() -> None:
    rule = parse_cron("0 9 * * mon-fri", tz="Europe/Berlin")
    same = parse_cron("0 9 * * 1,2,3,4,5", tz="europe/berlin", fold="first")
    assert rule == same
    assert len({rule, same, parse_cron("0 9 * * 1-5")}) == 2
    with pytest.raises(AttributeError):
        rule.zone = "UTC"  # type: ignore[misc]
