"""Instants and durations as whole microseconds, and their spellings.

Everything inside hourhand counts int microseconds since the Unix epoch in UTC. This module owns the
spellings at the edges: RFC 3339, the compact form in run ids, and durations such as `1h30m`. It reads
no clock; zones are the caller's.
"""

import math
import re
from datetime import UTC, datetime, timedelta, tzinfo

SECOND_US = 1_000_000
MINUTE_US = 60 * SECOND_US
HOUR_US = 60 * MINUTE_US
DAY_US = 24 * HOUR_US

LONGEST_DURATION_US = 36_525 * DAY_US
"""A hundred years: nothing that is scheduled or awaited takes longer."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_BARE_EPOCH = _EPOCH.replace(tzinfo=None)  # what is printed has no offset of its own
_MICROSECOND = timedelta(microseconds=1)

FIRST_GIVEN_YEAR, LAST_GIVEN_YEAR = 102, 9898
"""The years of times that people give. What is computed from them, at most the longest duration away, then still
lies in the years 2 to 9998, which can be printed in every zone."""

GIVEN_YEARS = f"the years {FIRST_GIVEN_YEAR:04d} to {LAST_GIVEN_YEAR:04d} in UTC"

_PRINTED_FROM = (datetime.min.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND
_PRINTED_TO = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND
_GIVEN_FROM = (datetime(FIRST_GIVEN_YEAR, 1, 1, tzinfo=UTC) - _EPOCH) // _MICROSECOND
_GIVEN_TO = (datetime(LAST_GIVEN_YEAR + 1, 1, 1, tzinfo=UTC) - _EPOCH) // _MICROSECOND - 1

_RFC3339 = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d):(\d\d)(?:\.(\d{1,6})0*)?([Zz]|[+-]\d\d:\d\d(?::\d\d)?)?",
    re.ASCII,
)
_COMPACT = re.compile(r"(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)(?:\.(\d{6}))?Z", re.ASCII)

_UNITS_US = {
    "w": 7 * DAY_US,
    "d": DAY_US,
    "h": HOUR_US,
    "m": MINUTE_US,
    "s": SECOND_US,
    "ms": 1_000,
    "us": 1,
}
_DURATION_PART = re.compile(r"(\d{1,18})(?:\.(\d{1,6}))?(ms|us|µs|[wdhms])", re.ASCII)
_DURATION_NUMBER = re.compile(r"(\d{1,18})(?:\.(\d{1,6}))?", re.ASCII)
_DURATION_ALLOWED = (
    'a number of seconds or units w, d, h, m, s, ms, us from large to small, such as "1h30m", "90s" or "250ms", '
    "from 0 to 100 years"
)


class OutOfYears(ValueError):
    """A time that is well spelled, but too far away."""


def parse_instant(text: str) -> int:
    """The instant an RFC 3339 time names; it must say its offset, for a time without one is ambiguous.

    This reads whatever is printed here; times that people give are read by `parse_given_instant`.
    """
    match = _RFC3339.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{_shown(text)} is not an RFC 3339 time such as 2026-11-16T08:00:00Z")
    offset = match[8]
    if offset is None:
        raise ValueError(
            f"{_shown(text)} has no offset, so it names no instant: "
            "end it with Z or an offset such as 2026-11-16T08:00:00+01:00"
        )
    at = _from_parts(text, match) - _offset_us(text, offset)
    if not _PRINTED_FROM <= at <= _PRINTED_TO:
        raise OutOfYears(f"{_shown(text)} lies outside of {GIVEN_YEARS}")
    return at


def parse_given_instant(text: str) -> int:
    """The instant that somebody outside names; `OutOfYears` where there is no room to compute around it."""
    at = parse_instant(text)
    if not may_be_given(at):
        raise OutOfYears(f"{_shown(text)} lies outside of {GIVEN_YEARS}")
    return at


def may_be_given(at: int) -> bool:
    """Whether an instant lies in the years of times that people give."""
    return _GIVEN_FROM <= at <= _GIVEN_TO


def format_instant(at: int) -> str:
    """RFC 3339 in UTC, with a fraction only where there is one."""
    return _to_the_second(at) + _fraction(at) + "Z"


def format_in_zone(at: int, zone: tzinfo) -> str:
    """RFC 3339 as people in `zone` read it, with its numeric offset at that instant."""
    local = (_EPOCH + timedelta(microseconds=at)).astimezone(zone)
    return local.isoformat(timespec="microseconds" if at % SECOND_US else "seconds")


def compact_instant(at: int) -> str:
    """The form used in run ids, `20261116T080000Z`: typeable, and sorts by time within one length."""
    digits = _to_the_second(at).replace("-", "").replace(":", "")
    return digits + _fraction(at, digits=6) + "Z"


def parse_compact_instant(text: str) -> int:
    """The inverse of `compact_instant`; each instant has exactly one spelling, and others are refused."""
    match = _COMPACT.fullmatch(text)
    if match is None or match[7] == "000000":
        raise ValueError(f"{_shown(text)} is not a compact time such as 20261116T080000Z")
    return _from_parts(text, match)


def parse_duration(value: str | float) -> int:
    """Microseconds of `"1h30m"`, `"250ms"`, `90` or `0.5` (plain numbers are seconds)."""
    match value:
        case str():
            length_us = _parse_duration_text(value)
        case bool():
            length_us = None
        case _:
            length_us = _duration_of_number(value)
    if length_us is None or not 0 <= length_us <= LONGEST_DURATION_US:
        raise ValueError(f"{_shown(value)} is not a duration: expected {_DURATION_ALLOWED}")
    return length_us


def format_duration(length_us: int) -> str:
    """The shortest exact spelling in our units: `1h30m`, `1s500ms`, `0s`. `parse_duration` reads it back."""
    if length_us < 0:
        raise ValueError(f"a duration is not negative, got {length_us} us")
    parts = []
    rest = length_us
    for unit, unit_us in _UNITS_US.items():
        if unit == "w" and rest % unit_us:
            continue  # 10 days read better than 1w3d
        count, rest = divmod(rest, unit_us)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"


def _from_parts(text: str, match: re.Match[str]) -> int:
    year, month, day, hour, minute, second = (int(match[i]) for i in range(1, 7))
    microsecond = int((match[7] or "").ljust(6, "0"))
    try:
        wall = datetime(year, month, day, hour, minute, second, microsecond, tzinfo=UTC)
    except ValueError as error:
        raise ValueError(f"{_shown(text)} is not a time that exists: {error}") from None
    return (wall - _EPOCH) // _MICROSECOND


def _offset_us(text: str, offset: str) -> int:
    if offset in "Zz":
        return 0
    # Seconds are no part of RFC 3339, but local mean times before about 1900 have them, and we print them.
    hours, minutes, seconds = int(offset[1:3]), int(offset[4:6]), int(offset[7:] or 0)
    if hours > 23 or minutes > 59 or seconds > 59:
        raise ValueError(f"{_shown(text)} has the offset {offset}, expected one within -23:59 to +23:59")
    length_us = hours * HOUR_US + minutes * MINUTE_US + seconds * SECOND_US
    return -length_us if offset[0] == "-" else length_us


def _to_the_second(at: int) -> str:
    return (_BARE_EPOCH + timedelta(microseconds=at)).isoformat(timespec="seconds")  # strftime is slow


def _fraction(at: int, digits: int = 0) -> str:
    fraction_us = at % SECOND_US
    if not fraction_us:
        return ""
    text = f"{fraction_us:06d}"
    return "." + (text if digits else text.rstrip("0"))


def _duration_of_number(seconds: float) -> int | None:
    if not math.isfinite(seconds):
        return None
    return round(seconds * SECOND_US) if abs(seconds) < 1e12 else None


def _parse_duration_text(text: str) -> int | None:
    text = text.strip()
    number = _DURATION_NUMBER.fullmatch(text)
    if number is not None:
        return _scaled(number[1], number[2], SECOND_US)
    total_us, position, last_unit_us = 0, 0, LONGEST_DURATION_US + 1
    while position < len(text):
        part = _DURATION_PART.match(text, position)
        if part is None:
            return None
        unit_us = _UNITS_US[part[3].replace("µ", "u")]
        scaled_us = _scaled(part[1], part[2], unit_us)
        if scaled_us is None or unit_us >= last_unit_us:
            return None
        total_us, position, last_unit_us = total_us + scaled_us, part.end(), unit_us
    return total_us if position else None


def _scaled(whole: str, fraction: str | None, unit_us: int) -> int | None:
    """`whole.fraction` units; None where that is not a whole number of microseconds."""
    if not fraction:
        return int(whole) * unit_us
    scaled, rest = divmod(int(whole + fraction) * unit_us, int(10 ** len(fraction)))
    return None if rest else scaled


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
