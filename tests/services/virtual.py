"""Tests on a virtual loop: the product's own, with a clock that counts how often it is read."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from hourhand.simulation.virtual import LoopClock as VirtualClock
from hourhand.simulation.virtual import VirtualLoop
from tests.services.world import START_AT

T = TypeVar("T")


class LoopClock(VirtualClock):
    """The wall clock of a virtual loop."""

    def __init__(self, loop: VirtualLoop) -> None:
        super().__init__(loop, START_AT)
        self.reads = 0

    def now(self) -> int:
        self.reads += 1
        return super().now()

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
