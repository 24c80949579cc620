"""The life of a process: its event loop, the signals that end it, and the pauses between vain attempts."""

import asyncio
import gc
import signal
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import uvloop

from hourhand import ids
from hourhand.cli.text import plural
from hourhand.core.instant import SECOND_US
from hourhand.services.node import Node

# A herd in hand is hundreds of thousands of objects without a cycle; with the default of 700 new objects
# the collector walks them again and again just when all are to be started.
_COLLECT_AFTER = (10_000, 20, 50)
_LAST_TASKS_S = 1.0  # what is left of the loop's tasks may end, once everything is committed
_FIRST_PAUSE_S = 0.25
_LONGEST_PAUSE_S = 5.0

draw: Callable[[], float] = ids.draw  # the jitter of pauses


def run_loop(main: Coroutine[Any, Any, int]) -> int:
    """Run a process' whole life on a loop of its own; answers the exit code."""
    runner = asyncio.Runner(loop_factory=uvloop.new_event_loop)
    try:
        return runner.run(main)
    finally:
        _close(runner)


def farewell(in_hand: int, drain_us: int) -> str:
    """What a process says when it was told to end."""
    if not in_hand:
        return "stopping"
    return f"stopping: waiting for {plural(in_hand, 'run')} in hand (at most {drain_us // SECOND_US} s)"


def _close(runner: asyncio.Runner) -> None:
    """Close the loop; a function that ignores its cancellation must not hold that up for ever."""
    loop = runner.get_loop()
    left = asyncio.all_tasks(loop)
    for task in left:
        task.cancel()
    if left:
        loop.run_until_complete(asyncio.wait(left, timeout=_LAST_TASKS_S))
    if not asyncio.all_tasks(loop):
        runner.close()


def quiet_collector() -> None:
    """Let the collector ignore what exists now, since it stays, and look at the rest less often."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_COLLECT_AFTER)


class Ending:
    """Whether the process was told to end: once, to finish what runs; again, to wait no longer."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.hurried = asyncio.Event()

    def heed_signals(self) -> None:
        """Let SIGINT and SIGTERM ask."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self.ask)

    def ask(self) -> None:
        """Tell it to end."""
        if self.asked.is_set():
            self.hurried.set()
        self.asked.set()

    async def asked_within(self, seconds: float) -> bool:
        """Wait, but not beyond the moment when it is told to end; says whether it was."""
        try:
            async with asyncio.timeout(seconds):
                await self.asked.wait()
        except TimeoutError:
            return False
        return True


async def stop_nodes(nodes: Sequence[Node], patience_us: int, ending: Ending) -> None:
    """Let nodes drain, all at once; whoever asks a second time cuts that short."""

    async def hurry() -> None:
        await ending.hurried.wait()
        for node in nodes:
            node.cut_short()

    hurrying = asyncio.create_task(hurry())
    try:
        await asyncio.gather(*(node.stop(patience_us) for node in nodes))
    finally:
        hurrying.cancel()


class Pauses:
    """Growing pauses with jitter, so that processes that lost the same server do not come back as one."""

    def __init__(self, *, first_s: float = _FIRST_PAUSE_S, longest_s: float = _LONGEST_PAUSE_S) -> None:
        self._first_s = first_s
        self._longest_s = longest_s
        self._count = 0

    def next_s(self) -> float:
        """The pause after one more vain attempt."""
        pause_s: float = min(self._first_s * 2**self._count, self._longest_s)
        self._count += self._count < 20
        return pause_s * (1 + draw()) / 2

    def reset(self) -> None:
        """It worked: begin small again."""
        self._count = 0
