"""A cron rule: wall times in a zone under a DST policy, as an ordered set of instants.

Searches go straight to the answer from either side, and counting goes by months. Text becomes a rule in
`expression`; which wall times there are is `wall`'s; what zone changes make of them is `windows`'.
"""

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from hourhand.core.instant import SECOND_US
from hourhand.core.schedule.days import Days
from hourhand.core.schedule.fields import LAST, format_values
from hourhand.core.schedule.wall import WallTimes
from hourhand.core.schedule.windows import Fold, Gap, Windows, windows
from hourhand.core.schedule.words import describe_cron
from hourhand.core.schedule.zone import ENDLESS

CYCLE_S = 146_097 * 86_400
"""The Gregorian calendar repeats after 400 years: what does not fire within them never does."""

CHANGE_MARGIN_S = 2 * 86_400
"""More than any zone's distance from UTC."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cron:
    """Fires when the wall clock of its zone shows one of its times. Made by `parse_cron` or `parse_key`.

    A rule that follows real time is one that skips gaps and fires in both passes of a fold, so it needs no
    field of its own; where policies cannot matter they are brought to one form. Equal rules are equal.
    """

    wall: WallTimes
    zone: str
    gap: Gap
    fold: Fold
    key: str = field(init=False, compare=False)
    _near: Windows = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", _key(self.wall, self.zone, self.gap, self.fold))
        object.__setattr__(self, "_near", windows(self.zone, self.gap, self.fold, far=False))

    def next(self, after: int) -> int | None:
        """The first time after an instant; None if there is none within 400 years."""
        second = after // SECOND_US
        view = self._near
        if second < view.end:
            k = bisect_right(view.starts, second) - 1
            if second >= view.made_up_until[k]:
                offset = view.offsets[k]
                wall = self.wall.at_or_after(max(second + 1 + offset, view.wall_from[k]))
                if wall < view.wall_to[k]:
                    return (wall - offset) * SECOND_US
        found = self._next_from(second)
        return None if found is None else found * SECOND_US

    def latest(self, until: int) -> int | None:
        """The last time up to and including an instant; None if there is none within 400 years."""
        second = until // SECOND_US
        view = self._near
        if second < view.end:
            k = bisect_right(view.starts, second) - 1
            offset = view.offsets[k]
            wall = self.wall.at_or_before(min(second + offset, view.wall_to[k] - 1))
            if wall >= view.wall_from[k] and wall - offset > view.made_up_until[k]:
                return (wall - offset) * SECOND_US
        found = self._last_until(second)
        return None if found is None else found * SECOND_US

    def newest_in(self, after: int, until: int) -> int | None:
        """The last time in (after, until]."""
        found = self.latest(until)
        return found if found is not None and found > after else None

    def times(self, after: int, until: int, limit: int) -> list[int]:
        """The times in (after, until] in order, at most `limit` of them."""
        found: list[int] = []
        at = self.next(after)
        while at is not None and at <= until and len(found) < limit:
            found.append(at)
            at = self.next(at)
        return found

    def count(self, after: int, until: int) -> int:
        """How many times there are in (after, until]."""
        first, last = after // SECOND_US + 1, until // SECOND_US
        if last < first:
            return 0
        view = self._view(last)
        total = 0
        for k in range(bisect_right(view.starts, first) - 1, bisect_right(view.starts, last)):
            total += self._count_in(view, k, first, last)
        return total

    def nth(self, after: int, n: int) -> int | None:
        """The n-th time after an instant, counted from 1, found by counting, not by walking."""
        if n < 1:
            raise ValueError(f"times are counted from 1, got {n}")
        first = after // SECOND_US + 1
        for view, k in self._stretches_from(first):
            endless = view.end == ENDLESS and k == len(view.starts) - 1
            here = n if endless else self._count_in(view, k, first, ENDLESS)
            if n <= here:
                found = self._nth_in(view, k, first, n)
                return found * SECOND_US if found < ENDLESS else None
            n -= here
        return None

    def min_gap(self) -> int:
        """No two of its wall times lie closer; beside a zone change two fires may."""
        return _min_gap_us(self.wall)

    def describe(self) -> str:
        """The rule in words."""
        return describe_cron(self.wall, self.zone)

    def _next_from(self, second: int) -> int | None:
        """Stretch by stretch; once a whole one was empty, straight on to where the next wall time lies."""
        view = self._view(second)
        k = first_k = bisect_right(view.starts, second) - 1
        while view.starts[k] <= second + CYCLE_S:
            found = self._first_in(view, k, second + 1)
            if found is not None:
                return found
            if k > first_k:
                wall = self.wall.at_or_after(view.wall_to[k])
                k = max(k, bisect_right(view.starts, wall - CHANGE_MARGIN_S) - 2)
            k += 1
            if k == len(view.starts):
                if view.end == ENDLESS:
                    return None
                view, end = windows(self.zone, self.gap, self.fold, far=True), view.end
                first_k = k = bisect_right(view.starts, end) - 1
                if view.end == end:
                    return None
        return None

    def _last_until(self, second: int) -> int | None:
        """The mirror image of `_next_from`."""
        view = self._view(second)
        k = first_k = bisect_right(view.starts, second) - 1
        while k >= 0:
            found = self._last_in(view, k, second)
            if found is not None:
                return found
            if view.starts[k] < second - CYCLE_S:
                return None
            if k < first_k:
                wall = self.wall.at_or_before(view.wall_from[k] - 1)
                k = min(k, bisect_right(view.starts, wall + CHANGE_MARGIN_S))
            k -= 1
        return None

    def _stretches_from(self, second: int) -> Iterator[tuple[Windows, int]]:
        """Each stretch from the one that holds this second, going over to the far windows only if needed."""
        view = self._near
        if second < view.end:
            k = bisect_right(view.starts, second) - 1
            for i in range(k, len(view.starts)):
                yield view, i
            if view.end == ENDLESS:
                return
            second = view.end
        view = windows(self.zone, self.gap, self.fold, far=True)
        for i in range(bisect_right(view.starts, second) - 1, len(view.starts)):
            yield view, i

    def _view(self, second: int) -> Windows:
        return self._near if second < self._near.end else windows(self.zone, self.gap, self.fold, far=True)

    def _first_in(self, view: Windows, k: int, first: int) -> int | None:
        """The first fire of stretch k from second `first` on."""
        offset = view.offsets[k]
        wall = self.wall.at_or_after(max(first + offset, view.wall_from[k]))
        found = wall - offset if wall < view.wall_to[k] else None
        if first <= view.made_up_until[k]:
            made_up = next((at for at in self._made_up(view, k) if at >= first), None)
            if made_up is not None and (found is None or made_up < found):
                return made_up
        return found

    def _last_in(self, view: Windows, k: int, last: int) -> int | None:
        """The last fire of stretch k up to second `last`."""
        offset = view.offsets[k]
        wall = self.wall.at_or_before(min(last + offset, view.wall_to[k] - 1))
        found = wall - offset if wall >= view.wall_from[k] else None
        if found is None or found < view.made_up_until[k]:
            made_up = max((at for at in self._made_up(view, k) if at <= last), default=None)
            if made_up is not None and (found is None or made_up > found):
                return made_up
        return found

    def _count_in(self, view: Windows, k: int, first: int, last: int) -> int:
        """How many fires of stretch k lie in [first, last]."""
        offset = view.offsets[k]
        wall_from = max(first + offset, view.wall_from[k])
        total = self.wall.count(wall_from, min(last + 1 + offset, view.wall_to[k]))
        if first <= view.made_up_until[k]:
            total += sum(first <= at <= last for at in self._made_up(view, k))
        return total

    def _nth_in(self, view: Windows, k: int, first: int, n: int) -> int:
        """The n-th fire of stretch k from second `first` on; there must be so many."""
        offset = view.offsets[k]
        wall_from = max(first + offset, view.wall_from[k])
        passed = 0
        if first <= view.made_up_until[k]:
            for at in self._made_up(view, k):
                if at >= first:
                    passed += 1
                    rank = passed + self.wall.count(wall_from, at + offset)
                    if rank == n:
                        return at
                    if rank > n:
                        passed -= 1
                        break
        return self.wall.nth(wall_from, n - passed) - offset

    def _made_up(self, view: Windows, k: int) -> list[int]:
        """When the missing times of the gap before stretch k fire, where nothing fires anyway."""
        start, gap_to = view.starts[k], view.gap_to[k]
        wall = self.wall.at_or_after(view.gap_from[k])
        if wall >= gap_to:
            return []
        if self.gap is Gap.AFTER:
            return [] if self.wall.at_or_after(gap_to) == gap_to else [start]
        length = gap_to - view.gap_from[k]
        found = []
        while wall < gap_to:
            if self.wall.at_or_after(wall + length) != wall + length:
                found.append(start + wall - view.gap_from[k])
            wall = self.wall.at_or_after(wall + 1)
        return found


@lru_cache(maxsize=16_384)
def _min_gap_us(wall: WallTimes) -> int:
    """Asked for every job that is created, and many jobs have the same rule."""
    return wall.shortest_distance() * SECOND_US


def _key(wall: WallTimes, zone: str, gap: Gap, fold: Fold) -> str:
    days = wall.days
    words = (
        "cron",
        format_values(wall.seconds, 0, 59),
        format_values(wall.minutes, 0, 59),
        format_values(wall.hours, 0, 23),
        _day_of_month_text(days),
        format_values(days.months, 1, 12),
        _day_of_week_text(days),
        "or" if days.either else "and",
        zone,
        gap,
        fold,
    )
    return " ".join(words)


def _day_of_month_text(days: Days) -> str:
    parts = [format_values(days.of_month, 1, 31)] if days.of_month else []
    parts += ["L"] * days.last_day + ["LW"] * days.last_weekday
    return ",".join(parts)


def _day_of_week_text(days: Days) -> str:
    parts = [format_values(days.of_week, 0, 6)] if days.of_week else []
    parts += [f"{day}L" if n == LAST else f"{day}#{n}" for day, n in sorted(days.nth_weekdays)]
    return ",".join(parts)
