"""Reads a compiled zone (TZif, RFC 9636): when its offset from UTC changed, and the rule for the years after.

Owns the file format and the POSIX rule in its footer, nothing else. `zone` finds the bytes and keeps
the result.
"""

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime

_HEADER = struct.Struct(">4sc15x6l")
_TYPE = struct.Struct(">lBB")
_EPOCH_ORDINAL = date(1970, 1, 1).toordinal()
_DAY_S = 86_400

_OFFSET = r"([+-]?\d+(?::\d\d(?::\d\d)?)?)"
_FOOTER = re.compile(
    rf"(?:<[^>]+>|[A-Za-z]+){_OFFSET}(?:(?:<[^>]+>|[A-Za-z]+){_OFFSET}?,([^,/]+)(?:/{_OFFSET})?,([^,/]+)(?:/{_OFFSET})?)?"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class YearlyRule:
    """One of the two changes that the footer repeats every year."""

    day: str  # Mm.w.d, Jn or n, as POSIX writes it
    at_s: int  # wall time of the change; may be negative or over a day
    old_s: int
    new_s: int

    def instant(self, year: int) -> int:
        """When it happens in that year, in seconds since the epoch."""
        return (self._ordinal(year) - _EPOCH_ORDINAL) * _DAY_S + self.at_s - self.old_s

    def _ordinal(self, year: int) -> int:
        new_year = date(year, 1, 1).toordinal()
        if self.day.startswith("J"):  # 1 to 365, 29 February never counted
            n = int(self.day[1:])
            leap = date(year, 3, 1).toordinal() - new_year == 60
            return new_year + n - 1 + (leap and n >= 60)
        if not self.day.startswith("M"):
            return new_year + int(self.day)
        month, week, weekday = map(int, self.day[1:].split("."))
        first = date(year, month, 1).toordinal()
        found = first + (weekday - first) % 7 + 7 * (week - 1)
        following = date(year, month + 1, 1).toordinal() if month < 12 else first + 31
        return found if found < following else found - 7


@dataclass(frozen=True, slots=True, kw_only=True)
class ZoneFile:
    """Offsets in seconds east of UTC; only changes that move the clock are kept."""

    first_offset_s: int
    changes: tuple[tuple[int, int], ...]  # (instant in seconds, offset from then on)
    yearly: tuple[YearlyRule, ...]
    yearly_from: int  # the yearly rules hold after this instant

    def changes_until(self, year: int) -> Iterator[tuple[int, int]]:
        """All changes through that year, those by rule included."""
        yield from self.changes
        if not self.yearly:
            return
        offset_s = self.changes[-1][1] if self.changes else self.first_offset_s
        for y in range(datetime.fromtimestamp(self.yearly_from, UTC).year, year + 1):
            for at, new_s in sorted((rule.instant(y), rule.new_s) for rule in self.yearly):
                if at > self.yearly_from and new_s != offset_s:
                    yield at, new_s
                    offset_s = new_s


def read_zone_file(data: bytes) -> ZoneFile:
    """Decodes version 2 or later of the format."""
    magic, version, *counts = _HEADER.unpack_from(data)
    if magic != b"TZif" or version < b"2":
        raise ValueError("not a TZif file of version 2 or later")
    start = _HEADER.size + _body_size(counts, time_size=4)
    _, _, *counts = _HEADER.unpack_from(data, start)
    start += _HEADER.size
    end = start + _body_size(counts, time_size=8)
    _, _, _, times, types, _ = counts
    instants = struct.unpack_from(f">{times}q", data, start)
    indexes = data[start + 8 * times : start + 9 * times]
    offsets = [_TYPE.unpack_from(data, start + 9 * times + 6 * i)[0] for i in range(types)]
    footer = data[end:].strip(b"\n").decode("ascii")
    changes = []
    current = offsets[0]
    for at, index in zip(instants, indexes, strict=True):
        if offsets[index] != current:
            current = offsets[index]
            changes.append((at, current))
    return ZoneFile(
        first_offset_s=offsets[0],
        changes=tuple(changes),
        yearly=_parse_footer(footer),
        yearly_from=max(instants, default=0),
    )


def _body_size(counts: list[int], time_size: int) -> int:
    isut, isstd, leaps, times, types, chars = counts
    return times * (time_size + 1) + types * _TYPE.size + chars + leaps * (time_size + 4) + isstd + isut


def _parse_footer(text: str) -> tuple[YearlyRule, ...]:
    match = _FOOTER.fullmatch(text)
    if match is None:
        if text:
            raise ValueError(f"unknown zone rule {text!r}")
        return ()
    standard, summer, begin, begin_at, end, end_at = match.groups()
    if begin is None:
        return ()
    standard_s = -_seconds(standard)  # POSIX counts offsets west of Greenwich
    summer_s = -_seconds(summer) if summer else standard_s + 3_600
    return (
        YearlyRule(day=begin, at_s=_seconds(begin_at or "2"), old_s=standard_s, new_s=summer_s),
        YearlyRule(day=end, at_s=_seconds(end_at or "2"), old_s=summer_s, new_s=standard_s),
    )


def _seconds(text: str) -> int:
    sign = -1 if text.startswith("-") else 1
    hours, minutes, seconds = [*map(int, text.lstrip("+-").split(":")), 0, 0][:3]
    return sign * (hours * 3_600 + minutes * 60 + seconds)
