"""`worker --processes N`: a parent that runs N times the same command, and nothing else.

A child that dies is started again after a pause; one that refuses to start ends them all. Children are in
groups of their own, so that Ctrl-C reaches them only through the parent. They hold the end of a pipe whose
other end is the parent's: when the parent is killed they see it close, and drain.
"""

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence

from hourhand.core.instant import SECOND_US
from hourhand.telemetry import logger
from hourhand.wiring.life import Ending, Pauses

REFUSED = 78  # a child's exit code when it cannot start, so that starting it again is no use
_PIPE = "_HOURHAND_PARENT_PIPE"  # not a setting: those begin with HOURHAND_
_LONGEST_PAUSE_S = 30.0
_STEADY_S = 60.0  # a child that lived this long is started again at once
_KILL_AFTER_S = 30.0  # beyond its drain
_TERMINATED = 128 + signal.SIGTERM

_log = logger("hourhand.processes")

Environments = Callable[[int], Mapping[str, str]]


def is_child() -> bool:
    """Whether this process was started by a parent of this module."""
    return _PIPE in os.environ


def heed_parent(ending: Ending) -> None:
    """Let the parent's end, however it came, be the child's."""
    pipe = int(os.environ.get(_PIPE, -1))
    if pipe < 0:
        return
    os.set_inheritable(pipe, False)
    loop = asyncio.get_running_loop()

    def closed() -> None:
        loop.remove_reader(pipe)
        if not ending.asked.is_set():
            _log.warning("the parent process is gone; stopping")
            ending.ask()

    loop.add_reader(pipe, closed)  # nothing is ever written: it is readable when it is closed


async def run_children(
    command: Sequence[str], count: int, environment: Environments, drain_us: int, ending: Ending
) -> int:
    """Keep `count` processes of a command running until told to end; answers the worst exit code."""
    ending.heed_signals()
    reading, writing = os.pipe()  # the writing end is never written to, and closes with this process
    try:
        children = [_Child(command, index, environment, reading, ending) for index in range(count)]
        tasks = [asyncio.create_task(child.keep()) for child in children]
        stopping = asyncio.create_task(_pass_on(children, ending, drain_us))
        codes = await asyncio.gather(*tasks)
        stopping.cancel()
        return max(codes)
    finally:
        os.close(reading)
        os.close(writing)


async def _pass_on(children: Sequence["_Child"], ending: Ending, drain_us: int) -> None:
    """Tell the children to end, then to hurry; those that do neither are killed."""
    await ending.asked.wait()
    for child in children:
        child.send(signal.SIGTERM)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(drain_us / SECOND_US + _KILL_AFTER_S):
            await ending.hurried.wait()
    for child in children:
        child.send(signal.SIGTERM)
    await asyncio.sleep(_KILL_AFTER_S)
    for child in children:
        child.send(signal.SIGKILL)


class _Child:
    """One place for a process; whoever fills it now."""

    def __init__(
        self, command: Sequence[str], index: int, environment: Environments, pipe: int, ending: Ending
    ) -> None:
        self._command = command
        self._environment = {**os.environ, **environment(index), _PIPE: str(pipe)}
        self._pipe = pipe
        self._ending = ending
        self._process: asyncio.subprocess.Process | None = None

    async def keep(self) -> int:
        """Start it, and again whenever it dies; answers its last exit code once told to end."""
        pauses = Pauses(longest_s=_LONGEST_PAUSE_S)
        loop = asyncio.get_running_loop()
        while True:
            began_s = loop.time()
            code = await self._live()
            if self._ending.asked.is_set():
                return 0 if code == _TERMINATED else code  # told so before it could heed it: it had not begun
            if code == REFUSED:
                self._ending.ask()
                return 1
            if loop.time() - began_s > _STEADY_S:
                pauses.reset()
            pause_s = pauses.next_s()
            _log.error("a worker process died; starting another", exit_code=code, pause_s=round(pause_s, 2))
            if await self._ending.asked_within(pause_s):
                return 0

    def send(self, number: signal.Signals) -> None:
        """Pass a signal on."""
        if self._process is not None and self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(number)

    async def _live(self) -> int:
        process = self._process = await asyncio.create_subprocess_exec(
            *self._command,
            env=self._environment,
            pass_fds=(self._pipe,),
            process_group=0,
            stdin=asyncio.subprocess.DEVNULL,
        )
        _log.info("worker process started", pid=process.pid)
        if self._ending.asked.is_set():  # told to end while it was being started
            self.send(signal.SIGTERM)
        code = await process.wait()
        return 128 - code if code < 0 else code


def same_command(*more: str) -> list[str]:
    """The command that this process was started with, and more arguments."""
    return [sys.executable, "-m", "hourhand", *sys.argv[1:], *more]
