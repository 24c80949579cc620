"""The times that a cron rule names on the wall clock, as whole seconds since 1970 without any zone.

Joins the days of `days` with the times of day. What a zone's changes make of these times is `cron`'s
business.
"""

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise

from hourhand.core.schedule.days import Days

DAY_S = 86_400
HOUR_S = 3_600


@dataclass(frozen=True, slots=True, kw_only=True)
class WallTimes:
    """An endless, ordered set of wall times, searched from either side without walking."""

    days: Days
    hours: tuple[int, ...]
    minutes: tuple[int, ...]
    seconds: tuple[int, ...]
    in_hour: tuple[int, ...] = field(init=False, repr=False, compare=False)
    per_day: int = field(init=False, repr=False, compare=False)
    _first: int = field(init=False, repr=False, compare=False)
    _last: int = field(init=False, repr=False, compare=False)
    _hours_before: tuple[int, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        in_hour = _seconds_of_hour(self.minutes, self.seconds)
        object.__setattr__(self, "in_hour", in_hour)
        object.__setattr__(self, "per_day", len(self.hours) * len(in_hour))
        object.__setattr__(self, "_first", self.hours[0] * HOUR_S + in_hour[0])
        object.__setattr__(self, "_last", self.hours[-1] * HOUR_S + in_hour[-1])
        object.__setattr__(self, "_hours_before", tuple(bisect_left(self.hours, h) for h in range(26)))

    def at_or_after(self, wall: int) -> int:
        """The first wall time from `wall` on."""
        day, second = divmod(wall, DAY_S)
        match_day = self.days.at_or_after(day)
        if match_day != day or second <= self._first:
            return match_day * DAY_S + self._first
        if second > self._last:
            return self.days.at_or_after(day + 1) * DAY_S + self._first
        hour, rest = divmod(second, HOUR_S)
        i = self._hours_before[hour]
        if self.hours[i] == hour:
            if rest <= self.in_hour[-1]:
                return wall - rest + self.in_hour[bisect_left(self.in_hour, rest)]
            i += 1
        return day * DAY_S + self.hours[i] * HOUR_S + self.in_hour[0]

    def at_or_before(self, wall: int) -> int:
        """The last wall time up to `wall`."""
        day, second = divmod(wall, DAY_S)
        match_day = self.days.at_or_before(day)
        if match_day != day or second >= self._last:
            return match_day * DAY_S + self._last
        if second < self._first:
            return self.days.at_or_before(day - 1) * DAY_S + self._last
        hour, rest = divmod(second, HOUR_S)
        i = self._hours_before[hour + 1] - 1
        if self.hours[i] == hour:
            if rest >= self.in_hour[0]:
                return wall - rest + self.in_hour[bisect_right(self.in_hour, rest) - 1]
            i -= 1
        return day * DAY_S + self.hours[i] * HOUR_S + self.in_hour[-1]

    def count(self, start: int, end: int) -> int:
        """How many lie in [start, end)."""
        if start >= end:
            return 0
        first_day, from_second = divmod(start, DAY_S)
        last_day, to_second = divmod(end, DAY_S)
        total = self.days.count(first_day, last_day) * self.per_day
        if self.days.matches(first_day):
            total -= self._count_before(from_second)
        if to_second and self.days.matches(last_day):
            total += self._count_before(to_second)
        return total

    def nth(self, start: int, n: int) -> int:
        """The n-th from `start` on, counted from 1."""
        day, second = divmod(start, DAY_S)
        if self.days.matches(day):
            n += self._count_before(second)
        day_index, index = divmod(n - 1, self.per_day)
        hour_index, in_hour_index = divmod(index, len(self.in_hour))
        match_day = self.days.nth(day, day_index + 1)
        return match_day * DAY_S + self.hours[hour_index] * HOUR_S + self.in_hour[in_hour_index]

    def shortest_distance(self) -> int:
        """No two lie closer than this, in seconds."""
        hours, in_hour = self.hours, self.in_hour
        edge = in_hour[0] - in_hour[-1]
        distances = [b - a for a, b in pairwise(in_hour)]
        distances += [(b - a) * HOUR_S + edge for a, b in pairwise(hours)]
        distances.append(self.days.shortest_distance() * DAY_S + self._first - self._last)
        return min(distances)

    def _count_before(self, second: int) -> int:
        hour, rest = divmod(second, HOUR_S)
        i = self._hours_before[hour]
        total = i * len(self.in_hour)
        if i < len(self.hours) and self.hours[i] == hour:
            total += bisect_left(self.in_hour, rest)
        return total


@lru_cache(maxsize=1024)
def _seconds_of_hour(minutes: tuple[int, ...], seconds: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(minute * 60 + second for minute in minutes for second in seconds)
