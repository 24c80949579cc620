"""Spellings of instants and durations: each reads back, and each wrong one is refused in words."""

import math
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hourhand.core.instant import (
    DAY_US,
    HOUR_US,
    LONGEST_DURATION_US,
    MINUTE_US,
    SECOND_US,
    compact_instant,
    format_duration,
    format_in_zone,
    format_instant,
    parse_compact_instant,
    parse_duration,
    parse_given_instant,
    parse_instant,
)

YEAR_1 = -62_135_596_800 * SECOND_US
YEAR_10000 = 253_402_300_800 * SECOND_US
instants = st.integers(YEAR_1, YEAR_10000 - 1)


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("2026-11-16T08:00:00Z", 1_794_816_000 * SECOND_US),
        ("2026-11-16t08:00:00z", 1_794_816_000 * SECOND_US),
        ("2026-11-16 09:00:00+01:00", 1_794_816_000 * SECOND_US),
        ("2026-11-16T02:30:00-05:30", 1_794_816_000 * SECOND_US),
        ("1969-12-31T23:59:59.999999Z", -1),
        ("1970-01-01T00:00:00.5Z", 500_000),
        ("1970-01-01T00:00:00.123456000Z", 123_456),
        ("1880-01-01T00:00:00-04:56:02", -2_840_140_800 * SECOND_US + 17_762 * SECOND_US),
    ],
)
def test_parse_instant(text: str, at: int) -> None:
    assert parse_instant(text) == at


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("2026-11-16T08:00:00", "has no offset"),
        ("2026-11-16", "RFC 3339"),
        ("2026-02-30T08:00:00Z", "not a time that exists"),
        ("2026-11-16T24:00:00Z", "not a time that exists"),
        ("2026-11-16T08:00:00+24:00", "offset"),
        ("2026-11-16T08:00:00.1234567Z", "RFC 3339"),
        ("٢٠٢٦-11-16T08:00:00Z", "RFC 3339"),
        ("", "RFC 3339"),
        ("tomorrow", "RFC 3339"),
    ],
)
def test_parse_instant_refuses(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        parse_instant(text)


@pytest.mark.parametrize(
    "text", ["9999-12-31T23:59:59-23:59", "0001-01-01T00:00:00+23:59", "0001-01-01T00:00:00+00:00:01"]
)
def test_what_cannot_be_printed_is_not_read(text: str) -> None:
    with pytest.raises(ValueError, match="outside of the years"):
        parse_instant(text)


@pytest.mark.parametrize(
    ("first", "beyond"),
    [
        ("0102-01-01T00:00:00Z", "0101-12-31T23:59:59.999999Z"),
        ("9898-12-31T23:59:59.999999Z", "9899-01-01T00:00:00Z"),
        ("9899-01-01T00:30:00+01:00", "9898-12-31T23:30:00-01:00"),
    ],
)
def test_given_times_leave_room_to_compute_around_them(first: str, beyond: str) -> None:
    at = parse_given_instant(first)
    for there in (at - LONGEST_DURATION_US, at + LONGEST_DURATION_US):
        for zone in ("Pacific/Kiritimati", "Pacific/Pago_Pago"):
            assert parse_instant(format_in_zone(there, ZoneInfo(zone))) == there
    with pytest.raises(ValueError, match="outside of the years 0102 to 9898"):
        parse_given_instant(beyond)


@given(instants)
def test_instants_read_back(at: int) -> None:
    assert parse_instant(format_instant(at)) == at
    assert parse_compact_instant(compact_instant(at)) == at


@given(instants, instants)
def test_compact_instants_of_one_length_sort_by_time(a: int, b: int) -> None:
    a, b = a - a % SECOND_US, b - b % SECOND_US
    assert (compact_instant(a) < compact_instant(b)) == (a < b)


@given(
    st.integers(0, 4_000_000_000 * SECOND_US),
    st.sampled_from(["Europe/Berlin", "Australia/Lord_Howe", "UTC"]),
)
def test_local_spelling_names_the_same_instant(at: int, zone: str) -> None:
    assert parse_instant(format_in_zone(at, ZoneInfo(zone))) == at


@pytest.mark.parametrize(
    ("at", "compact", "plain"),
    [
        (1_794_816_000 * SECOND_US, "20261116T080000Z", "2026-11-16T08:00:00Z"),
        (1_794_816_000 * SECOND_US + 120_000, "20261116T080000.120000Z", "2026-11-16T08:00:00.12Z"),
        (YEAR_1, "00010101T000000Z", "0001-01-01T00:00:00Z"),
    ],
)
def test_spellings(at: int, compact: str, plain: str) -> None:
    assert (compact_instant(at), format_instant(at)) == (compact, plain)


@pytest.mark.parametrize(
    "text", ["20261116T080000", "20261116T080000.12Z", "20261116T080000.000000Z", "20261316T080000Z", ""]
)
def test_parse_compact_instant_knows_one_spelling(text: str) -> None:
    with pytest.raises(ValueError, match="time"):
        parse_compact_instant(text)


@pytest.mark.parametrize(
    ("value", "length_us"),
    [
        ("1h30m", HOUR_US + 30 * MINUTE_US),
        ("90s", 90 * SECOND_US),
        ("250ms", 250_000),
        ("7us", 7),
        ("7µs", 7),
        ("2d", 2 * DAY_US),
        ("1w", 7 * DAY_US),
        ("1.5h", 90 * MINUTE_US),
        (" 15m ", 15 * MINUTE_US),
        ("90", 90 * SECOND_US),
        ("0.25", 250_000),
        (90, 90 * SECOND_US),
        (0.25, 250_000),
        (0, 0),
        ("0s", 0),
        ("36525d", LONGEST_DURATION_US),
    ],
)
def test_parse_duration(value: str | float, length_us: int) -> None:
    assert parse_duration(value) == length_us


@pytest.mark.parametrize(
    "value",
    [
        "",
        " ",
        "-1s",
        "1h-5m",
        "1m1h",
        "5m5m",
        "1x",
        "h",
        "1 h",
        "1e3",
        "36526d",
        "0.5us",
        "٣s",
        "1.2.3s",
        -1,
        -0.5,
        math.nan,
        math.inf,
        -math.inf,
        1e300,
        36_526 * 86_400,
        True,
    ],
)
def test_parse_duration_refuses(value: str | float) -> None:
    with pytest.raises(ValueError, match="from 0 to 100 years"):
        parse_duration(value)


@given(st.integers(0, LONGEST_DURATION_US))
def test_durations_read_back(length_us: int) -> None:
    assert parse_duration(format_duration(length_us)) == length_us


@pytest.mark.parametrize(
    ("length_us", "text"),
    [
        (0, "0s"),
        (5_400 * SECOND_US, "1h30m"),
        (1_500_000, "1s500ms"),
        (7 * DAY_US, "1w"),
        (10 * DAY_US, "10d"),
    ],
)
def test_format_duration(length_us: int, text: str) -> None:
    assert format_duration(length_us) == text


def test_format_duration_refuses_what_is_negative() -> None:
    with pytest.raises(ValueError, match="negative"):
        format_duration(-1)
