"""Which days a cron rule names, as arithmetic on days since the epoch.

A month has one of four lengths and begins on one of seven weekdays, so its matching days are one of 28
bit masks, made once per rule. Searching walks months, never days, and whether any date matches at all
is read off the masks: in the 400-year cycle every month begins on every weekday, leap Februaries too.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date
from functools import lru_cache

from hourhand.core.schedule.fields import LAST, FieldValues

NEVER = 1 << 50
"""A day, or second, later than any; its negative is earlier than any."""

ALL_DAYS = frozenset(range(1, 32))
ALL_MONTHS = frozenset(range(1, 13))
ALL_WEEKDAYS = frozenset(range(7))

_EPOCH_ORDINAL = date(1970, 1, 1).toordinal()
_FIRST_YEAR, _LAST_YEAR = 2, 9998  # a year inside what can be printed, so that it can be in any zone
FIRST_DAY = date(_FIRST_YEAR, 1, 1).toordinal() - _EPOCH_ORDINAL
LAST_DAY = date(_LAST_YEAR, 12, 31).toordinal() - _EPOCH_ORDINAL

_LENGTHS = (0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_NO_DAYS = (0,) * 7
_WEEKDAYS_OF_MONTH = tuple(sum(1 << (day + 7 * week) for week in range(5)) for day in range(7))

_from_ordinal = date.fromordinal


@dataclass(frozen=True, slots=True, kw_only=True)
class Days:
    """The days that match; made by `days_of`, which brings equal sets to equal fields."""

    of_month: frozenset[int]
    last_day: bool
    last_weekday: bool
    months: frozenset[int]
    of_week: frozenset[int]
    nth_weekdays: frozenset[tuple[int, int]]
    either: bool  # day of month or day of week suffices; else both must match
    every_day: bool = field(init=False, repr=False, compare=False)
    _masks: tuple[tuple[int, ...], ...] = field(init=False, repr=False, compare=False)
    _leap_february: tuple[int, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        by_length = {
            length: tuple(self._mask(length, first) for first in range(7)) for length in (28, 29, 30, 31)
        }
        masks = tuple(by_length[_LENGTHS[m]] if m in self.months else _NO_DAYS for m in range(1, 13))
        object.__setattr__(self, "_masks", (_NO_DAYS, *masks))
        object.__setattr__(self, "_leap_february", by_length[29] if 2 in self.months else _NO_DAYS)
        free = not self.either and self.of_month == ALL_DAYS and self.of_week == ALL_WEEKDAYS
        object.__setattr__(self, "every_day", free and self.months == ALL_MONTHS)

    @property
    def any_match(self) -> bool:
        """Whether there is a date at all that matches."""
        return any(map(any, self._masks)) or any(self._leap_february)

    def matches(self, day: int) -> bool:
        """Whether this day matches."""
        return self.at_or_after(day) == day

    def at_or_after(self, day: int) -> int:
        """The first matching day from `day` on; NEVER past the year 9998."""
        if not FIRST_DAY <= day <= LAST_DAY:
            if day > LAST_DAY:
                return NEVER
            day = FIRST_DAY
        if self.every_day:
            return day
        on = _from_ordinal(day + _EPOCH_ORDINAL)
        year, month, first = on.year, on.month, day - on.day + 1
        leap = month == 2 and _is_leap(year)
        mask = (self._leap_february if leap else self._masks[month])[(first + 4) % 7] >> (day - first)
        if mask:
            return day + (mask & -mask).bit_length() - 1
        for later, mask in self._months_from(year, month + 1, first + _LENGTHS[month] + leap):
            if mask:
                return later + (mask & -mask).bit_length() - 1
        return NEVER

    def at_or_before(self, day: int) -> int:
        """The last matching day up to `day`; -NEVER before the year 2."""
        if not FIRST_DAY <= day <= LAST_DAY:
            if day < FIRST_DAY:
                return -NEVER
            day = LAST_DAY
        if self.every_day:
            return day
        on = _from_ordinal(day + _EPOCH_ORDINAL)
        first = day - on.day + 1
        year, month = on.year, on.month
        mask = self._mask_of(year, month, first) & ((2 << (day - first)) - 1)
        while not mask:
            month -= 1
            if month == 0:
                year, month = year - 1, 12
            if year < _FIRST_YEAR:
                return -NEVER
            first -= _LENGTHS[month] + (month == 2 and _is_leap(year))
            mask = self._mask_of(year, month, first)
        return first + mask.bit_length() - 1

    def count(self, start: int, end: int) -> int:
        """How many days of [start, end) match."""
        start, end = max(start, FIRST_DAY), min(end, LAST_DAY + 1)
        if start >= end:
            return 0
        if self.every_day:
            return end - start
        on = _from_ordinal(start + _EPOCH_ORDINAL)
        total = 0
        for first, mask in self._months_from(on.year, on.month, start - on.day + 1):
            if first >= end:
                break
            if first < start:
                mask = mask >> (start - first) << (start - first)
            if end - first < 31:
                mask &= (1 << (end - first)) - 1
            total += mask.bit_count()
        return total

    def nth(self, start: int, n: int) -> int:
        """The n-th matching day from `start` on, counted from 1; NEVER past the year 9998."""
        start = max(start, FIRST_DAY)
        if start > LAST_DAY:
            return NEVER
        if self.every_day:
            return start + n - 1 if start + n - 1 <= LAST_DAY else NEVER
        on = _from_ordinal(start + _EPOCH_ORDINAL)
        for first, mask in self._months_from(on.year, on.month, start - on.day + 1):
            if first < start:
                mask = mask >> (start - first) << (start - first)
            here = mask.bit_count()
            if n <= here:
                for _ in range(n - 1):
                    mask &= mask - 1
                return first + (mask & -mask).bit_length() - 1
            n -= here
        return NEVER

    def shortest_distance(self) -> int:
        """No two matching days lie closer than this (in days; never above 28)."""
        shortest = 28
        for month in range(1, 13):
            for length in (28, 29) if month == 2 else (_LENGTHS[month],):
                for first in range(7):
                    shortest = min(shortest, self._distance_from(month, length, first))
        return shortest

    def _distance_from(self, month: int, length: int, first: int) -> int:
        here = (self._leap_february if length == 29 else self._masks[month])[first]
        if not here:
            return 28
        following = self._masks[month % 12 + 1][(first + length) % 7]
        both = here | following << length
        distance = 1
        while distance < 28 and not both & (both >> distance):
            distance += 1
        return distance

    def _months_from(self, year: int, month: int, first: int) -> Iterator[tuple[int, int]]:
        """(its first day, mask) of each month from this one to the end of the year 9998."""
        masks = self._masks
        while True:
            if month == 13:
                year, month = year + 1, 1
            if year > _LAST_YEAR:
                return
            if month == 2 and _is_leap(year):
                yield first, self._leap_february[(first + 4) % 7]
                first += 29
            else:
                yield first, masks[month][(first + 4) % 7]
                first += _LENGTHS[month]
            month += 1

    def _mask_of(self, year: int, month: int, first: int) -> int:
        leap = month == 2 and _is_leap(year)
        return (self._leap_february if leap else self._masks[month])[(first + 4) % 7]

    def _mask(self, length: int, first: int) -> int:
        """Bit d-1 is set where day d matches, in a month of this length that begins on this weekday."""
        by_month = sum(1 << (day - 1) for day in self.of_month)
        if self.last_day:
            by_month |= 1 << (length - 1)
        if self.last_weekday:
            weekday = (first + length - 1) % 7
            by_month |= 1 << (length - 1 - {6: 1, 0: 2}.get(weekday, 0))
        by_week = 0
        for weekday in self.of_week:
            by_week |= _WEEKDAYS_OF_MONTH[(weekday - first) % 7]
        for weekday, n in self.nth_weekdays:
            earliest = (weekday - first) % 7
            weeks = (length - 1 - earliest) // 7 if n == LAST else n - 1
            by_week |= 1 << (earliest + 7 * weeks)
        return (by_month | by_week if self.either else by_month & by_week) & ((1 << length) - 1)


@lru_cache(maxsize=4096)
def days_of(of_month: FieldValues, months: frozenset[int], of_week: FieldValues, *, either: bool) -> Days:
    """The days of three fields, with what does not matter brought to one form."""
    free_month = of_month.values == ALL_DAYS
    free_week = of_week.values == ALL_WEEKDAYS
    if either and (free_month or free_week):
        free_month = free_week = True
    return Days(
        of_month=ALL_DAYS if free_month else of_month.values,
        last_day=of_month.last_day and not free_month,
        last_weekday=of_month.last_weekday and not free_month,
        months=months,
        of_week=ALL_WEEKDAYS if free_week else of_week.values,
        nth_weekdays=frozenset() if free_week else of_week.nth_weekdays,
        either=either and not free_month and not free_week,
    )


def _is_leap(year: int) -> bool:
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
