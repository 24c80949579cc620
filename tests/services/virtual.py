"""An event loop whose time passes only while everything waits: hours of duties and timers in milliseconds.

The services run on it as they are, loop and ticker included. Its clock can be set anew, as people do.
"""

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from tests.services.world import START_AT

T = TypeVar("T")


class _Selector(selectors.DefaultSelector):  # type: ignore[misc,valid-type]
    """Instead of waiting, it moves the time on."""

    def __init__(self) -> None:
        super().__init__()
        self.passed_s = 0.0

    def select(self, timeout: float | None = None) -> list[Any]:
        found = super().select(0)
        if not found:
            if timeout is None:
                raise AssertionError("everything waits for something that will never happen")
            self.passed_s += max(timeout, 0.0)
        return found


class VirtualLoop(asyncio.SelectorEventLoop):
    """asyncio's own loop on the time of its selector."""

    def __init__(self, selector: Any = None) -> None:
        self._virtual = selector or _Selector()
        super().__init__(self._virtual)

    def time(self) -> float:
        return self._virtual.passed_s


class LoopClock:
    """The wall clock of a virtual loop."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop
        self.offset_us = 0
        self.reads = 0

    def now(self) -> int:
        self.reads += 1
        return START_AT + int(self._loop.time() * 1_000_000 + 1e-3) + self.offset_us

    @property
    def now_at(self) -> int:
        return self.now()


def run_virtual(main: Callable[[LoopClock], Coroutine[Any, Any, T]]) -> T:
    """Run a test's coroutine on a loop of its own."""
    loop = VirtualLoop()
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        return runner.run(main(LoopClock(loop)))


async def until(clock: LoopClock, at: int) -> None:
    """Let time pass up to an instant of the clock as it is set now."""
    await asyncio.sleep(max(0, at - clock.now()) / 1_000_000)
