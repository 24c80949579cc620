"""An interval rule: phase, phase + interval, phase + 2 intervals, … in both directions, by arithmetic."""

from dataclasses import dataclass

from hourhand.core.instant import DAY_US, LONGEST_DURATION_US, format_duration
from hourhand.core.schedule.days import LAST_DAY
from hourhand.core.schedule.errors import ScheduleError
from hourhand.core.schedule.words import describe_interval

_LAST_AT = (
    LAST_DAY + 1
) * DAY_US - 1  # as for other rules, nothing comes after the years that can be printed


@dataclass(frozen=True, slots=True, kw_only=True)
class Every:
    """Fires every `interval_us`; any instant it fires at may be given as phase, and is kept modulo interval."""

    interval_us: int
    phase_us: int = 0

    def __post_init__(self) -> None:
        if not 1 <= self.interval_us <= LONGEST_DURATION_US:
            raise ScheduleError("interval", self.interval_us, "more than 0 and at most 100 years")
        object.__setattr__(self, "phase_us", self.phase_us % self.interval_us)

    @property
    def key(self) -> str:
        """Canonical text; equal rules have equal keys."""
        return f"every {self.interval_us} {self.phase_us}"

    def next(self, after: int) -> int | None:
        """The first time after an instant."""
        return self.nth(after, 1)

    def latest(self, until: int) -> int | None:
        """The last time up to and including an instant."""
        return self._latest(min(until, _LAST_AT))

    def newest_in(self, after: int, until: int) -> int | None:
        """The last time in (after, until]."""
        found = self._latest(min(until, _LAST_AT))
        return found if found > after else None

    def times(self, after: int, until: int, limit: int) -> list[int]:
        """The times in (after, until] in order, at most `limit` of them."""
        first = self._latest(after) + self.interval_us
        count = min(self.count(after, until), max(limit, 0))
        return [first + i * self.interval_us for i in range(count)]

    def count(self, after: int, until: int) -> int:
        """How many times there are in (after, until]."""
        last_at = self._latest(min(until, _LAST_AT))
        return max(0, (last_at - self._latest(after)) // self.interval_us)

    def nth(self, after: int, n: int) -> int | None:
        """The n-th time after an instant, counted from 1."""
        if n < 1:
            raise ValueError(f"times are counted from 1, got {n}")
        found = self._latest(after) + n * self.interval_us
        return found if found <= _LAST_AT else None

    def min_gap(self) -> int:
        """The distance between two times."""
        return self.interval_us

    def describe(self) -> str:
        """The rule in words."""
        words = describe_interval(self.interval_us)
        return f"{words}, offset by {format_duration(self.phase_us)}" if self.phase_us else words

    def _latest(self, until: int) -> int:
        return until - (until - self.phase_us) % self.interval_us


def parse_every_key(key: str) -> Every:
    """The rule behind an `Every.key`."""
    word, interval_us, phase_us = key.split(" ")
    if word != "every":
        raise ValueError(f"{key!r} is not the key of an interval rule")
    return Every(interval_us=int(interval_us), phase_us=int(phase_us))
