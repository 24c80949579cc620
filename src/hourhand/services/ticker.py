"""Calls a tick when its next timer runs out: the one place where the event loop's timers are used.

`tick(now) -> when to call me again` is called late rather than early, and at least once a second while
anything is pending, so that a clock which was set anew is noticed.
"""

import asyncio
from collections.abc import Callable

from hourhand.clock import Clock
from hourhand.core.instant import SECOND_US
from hourhand.telemetry import logger

_LONGEST_US = SECOND_US

_log = logger("hourhand.ticker")


class Ticker:
    """Keeps one timer of the event loop for a whole wheel."""

    def __init__(self, tick: Callable[[int], int | None], clock: Clock) -> None:
        self._tick = tick
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None

    def wake(self) -> None:
        """Something was added: look again soon."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later(0, self._ring)

    def stop(self) -> None:
        """Ring no more."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None

    def _ring(self) -> None:
        self._timer = None
        try:
            next_at = self._tick(self._clock.now())
        except Exception:  # a callback that raises is only printed; timers would stand still from then on
            _log.exception("tick failed")
            next_at = self._clock.now() + _LONGEST_US
        if next_at is None or self._timer is not None:
            return
        wait_us = min(max(0, next_at - self._clock.now()), _LONGEST_US)
        self._timer = self._loop.call_later(wait_us / SECOND_US, self._ring)
