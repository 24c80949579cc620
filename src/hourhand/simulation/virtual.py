"""An event loop whose time passes only while everything waits: days of timers in milliseconds.

Services run on it as they are. Its clock starts where it is told, and can be set anew, as people do.
"""

import asyncio
import selectors
from collections.abc import Callable
from typing import Any

_ROUNDING_US = 1e-3  # a sum of floats may fall short of a whole microsecond


class Stuck(AssertionError):
    """Everything waits for something that no timer will bring."""


class _Selector(selectors.DefaultSelector):
    """Instead of waiting, it tells those who wait for rest, and then moves the time on."""

    def __init__(self) -> None:
        super().__init__()
        self.passed_s = 0.0
        self.resting: Callable[[], bool] = lambda: False

    def select(self, timeout: float | None = None) -> list[Any]:
        found = super().select(0)
        if found or (timeout is not None and timeout <= 0) or self.resting():
            return found
        if timeout is None:
            raise Stuck("everything waits for something that will never happen")
        self.passed_s += timeout
        return found


class VirtualLoop(asyncio.SelectorEventLoop):
    """asyncio's own loop on the time of its selector; one of another kind may count time its own way."""

    def __init__(self, selector: Any = None) -> None:
        self._virtual = selector or _Selector()
        self._virtual.resting = self._tell_rest
        self._resting: list[asyncio.Future[None]] = []
        super().__init__(self._virtual)

    def time(self) -> float:
        """Seconds since it began."""
        passed_s: float = self._virtual.passed_s
        return passed_s

    async def rest(self) -> None:
        """Until nothing can go on without time passing."""
        future = self.create_future()
        self._resting.append(future)
        await future

    def _tell_rest(self) -> bool:
        resting, self._resting = self._resting, []
        for future in resting:
            if not future.done():
                future.set_result(None)
        return bool(resting)


class LoopClock:
    """The wall clock of a virtual loop."""

    def __init__(self, loop: VirtualLoop, start_at: int) -> None:
        self._loop = loop
        self._start_at = start_at
        self.offset_us = 0

    def now(self) -> int:
        """The present instant."""
        return self._start_at + int(self._loop.time() * 1_000_000 + _ROUNDING_US) + self.offset_us

    def set(self, at: int) -> None:
        """Jump there without living through the time between."""
        self.offset_us += at - self.now()
