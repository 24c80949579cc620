"""The only place that reads the time.

Services and stores get a clock from outside, so tests and simulations own it. `SystemClock` counts on
the monotonic clock from a wall reading and follows the wall clock when that is set anew.
"""

import time
from typing import Protocol

_JUMP_US = 1_000_000  # a wall clock this far from where monotonic time says it should be was set anew


class Clock(Protocol):
    """Tells the time in microseconds since the epoch, UTC."""

    def now(self) -> int:
        """The present instant."""
        ...


def monotonic_us() -> int:
    """This machine's time that nobody sets, for distances between instants; its start means nothing."""
    return time.monotonic_ns() // 1000


def wall_us() -> int:
    """This machine's idea of the present instant, right or wrong."""
    return time.time_ns() // 1000


class SystemClock:
    """The machine's clock; small corrections never make it step back, a jump is followed."""

    def __init__(self) -> None:
        self._wall_at = wall_us()
        self._monotonic_us = monotonic_us()
        self._last_at = self._wall_at

    def now(self) -> int:
        """Wall time, monotone between jumps of over a second."""
        wall_at = time.time_ns() // 1000
        if wall_at < self._last_at:
            now_us = monotonic_us()
            expected_at = self._wall_at + now_us - self._monotonic_us
            if expected_at - wall_at < _JUMP_US:
                return self._last_at
            self._wall_at, self._monotonic_us = wall_at, now_us
        self._last_at = wall_at
        return wall_at


class ManualClock:
    """A clock that stands still until it is told otherwise. For tests and simulations."""

    def __init__(self, now_at: int = 1_800_000_000_000_000) -> None:
        self.now_at = now_at

    def now(self) -> int:
        """Where it was last set."""
        return self.now_at

    def advance(self, by_us: int) -> int:
        """Move on, and say where to."""
        self.now_at += by_us
        return self.now_at
