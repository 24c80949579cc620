"""The server's time between two round trips: this machine's monotonic clock, and how far the server's is from it.

It is never ahead of the server: what an answer says was already so when it arrived, and of several answers
the one that travelled least counts. So a wrong or jumping wall clock of a node does no harm, and nothing
that goes by this clock starts before its time.
"""

from collections.abc import Callable

from hourhand.clock import monotonic_us, wall_us

_WINDOW_US = 30_000_000  # of the last one to two windows the best answer counts; clocks drift apart slowly
_MOST_DRIFT_US = 15_000  # in a window: 500 ppm; what looks like more is answers that were all slow
_JUMP_US = 1_000_000  # a server's clock that went back this far was set anew; less is made up for by waiting

_QUICK_US = 50_000  # an answer to this is no slow one


class ServerClock:
    """Implements `clock.Clock`."""

    def __init__(
        self, monotonic_us: Callable[[], int] = monotonic_us, wall_us: Callable[[], int] = wall_us
    ) -> None:
        self.monotonic_us = monotonic_us
        began_us = monotonic_us()
        self._offset_us = wall_us() - began_us  # until the first answer
        self._asked = False
        self._best_us: int | None = None  # of this window
        self._window_end_us = began_us + _WINDOW_US
        self._last_at = 0

    def now(self) -> int:
        """The server's time, hardly late and never early; steps back only when the server's clock did."""
        now_at = self.monotonic_us() + self._offset_us
        if now_at < self._last_at < now_at + _JUMP_US:
            return self._last_at
        self._last_at = now_at
        return now_at

    def seen(self, server_at: int, asked_us: int) -> None:
        """An answer with the server's time, to a question of this monotonic moment, has just arrived."""
        arrived_us = self.monotonic_us()
        offset_us = (
            server_at - arrived_us
        )  # at least; at most what it would be had the question taken no time
        self._best_us = offset_us if self._best_us is None else max(offset_us, self._best_us)
        if not self._asked or offset_us > self._offset_us:
            self._asked = True
            self._offset_us = offset_us
        elif server_at - asked_us < self._offset_us:  # surely ahead: its clock goes slower, or was set back
            is_quick = arrived_us - asked_us < _QUICK_US
            self._offset_us = self._best_us = offset_us if is_quick else server_at - asked_us
        elif arrived_us >= self._window_end_us:  # less all the time: not slow answers, the clocks moved apart
            self._offset_us = max(self._best_us, self._offset_us - _MOST_DRIFT_US)
            self._best_us = None
            self._window_end_us = arrived_us + _WINDOW_US
