"""A parent and its children, as real processes: started again, told to end, cut loose when the parent is killed."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from hourhand.wiring.children import REFUSED, run_children
from hourhand.wiring.life import Ending

DEADLINE_S = 30

# Says what happens to it on the pipe that it inherits as its output.
CHILD = """
import asyncio, os, sys
from hourhand.wiring.children import heed_parent, is_child
from hourhand.telemetry import configure_logging
from hourhand.wiring.life import Ending

configure_logging("info")

def say(*words):
    os.write(1, (" ".join(map(str, words)) + "\\n").encode())

async def main():
    ending = Ending()
    ending.heed_signals()
    heed_parent(ending)
    say("began", os.getpid(), os.environ.get("PLACE", ""), is_child(), os.getpgrp() == os.getpid())
    await ending.asked.wait()
    say("asked", os.getpid())
    if "patient" in sys.argv:
        async with asyncio.timeout(20):
            await ending.hurried.wait()
        say("hurried", os.getpid())

asyncio.run(main())
sys.exit(int(os.environ.get("CODE", 0)))
"""
PARENT = """
import asyncio, sys
from hourhand.wiring.children import run_children
from hourhand.telemetry import configure_logging
from hourhand.wiring.life import Ending

configure_logging("info")
command = [sys.executable, "-c", sys.argv[1], *sys.argv[2:]]
sys.exit(asyncio.run(run_children(command, 2, lambda index: {"PLACE": str(index)}, 1_000_000, Ending())))
"""


class Parent:
    """A parent in a process of its own, and what its children say."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process

    async def hear(self, word: str) -> list[str]:
        """The next line, which must begin so."""
        assert self.process.stdout is not None
        async with asyncio.timeout(DEADLINE_S):
            line = (await self.process.stdout.readline()).decode().split()
        assert line[:1] == [word], line
        return line[1:]

    async def end(self) -> int:
        """Its exit code, once nobody holds its output any more: the children have ended too."""
        assert self.process.stdout is not None
        async with asyncio.timeout(DEADLINE_S):
            assert await self.process.stdout.read() == b""
            return await self.process.wait()


@pytest.fixture
def parent() -> Callable[..., object]:
    @asynccontextmanager
    async def started(*arguments: str, **environment: str) -> AsyncIterator[Parent]:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", PARENT, CHILD, *arguments),
            env={**os.environ, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        try:
            yield Parent(process)
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()

    return started


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_children_are_told_to_end_and_waited_for(parent, number: signal.Signals) -> None:
    async with parent() as family:
        began = [await family.hear("began") for _ in range(2)]
        assert {place for _, place, *_ in began} == {"0", "1"}
        assert [rest for _, _, *rest in began] == [["True", "True"]] * 2, (
            "known as children, in groups of their own"
        )
        family.process.send_signal(number)
        asked = [await family.hear("asked") for _ in range(2)]
        assert {pid for (pid,) in asked} == {pid for pid, *_ in began}
        assert await family.end() == 0


async def test_a_second_signal_is_passed_on_too(parent) -> None:
    async with parent("patient") as family:
        for _ in range(2):
            await family.hear("began")
        family.process.terminate()
        for _ in range(2):
            await family.hear("asked")
        family.process.terminate()
        for _ in range(2):
            await family.hear("hurried")
        assert await family.end() == 0


async def test_a_child_that_dies_is_started_again(parent) -> None:
    async with parent() as family:
        began = [await family.hear("began") for _ in range(2)]
        os.kill(int(began[0][0]), signal.SIGKILL)
        again = await family.hear("began")
        assert again[1] == began[0][1], "in the place of the one that died"
        assert again[0] != began[0][0]
        family.process.terminate()
        for _ in range(2):
            await family.hear("asked")
        assert await family.end() == 0


async def test_children_of_a_killed_parent_drain_by_themselves(parent) -> None:
    async with parent() as family:
        began = [await family.hear("began") for _ in range(2)]
        family.process.kill()
        asked = [await family.hear("asked") for _ in range(2)]
        assert {pid for (pid,) in asked} == {pid for pid, *_ in began}
        assert await family.end() == -signal.SIGKILL


async def test_the_worst_exit_code_counts(parent) -> None:
    async with parent(CODE="3") as family:
        for _ in range(2):
            await family.hear("began")
        family.process.terminate()
        for _ in range(2):
            await family.hear("asked")
        assert await family.end() == 3


async def test_a_child_that_refuses_to_start_ends_all(tmp_path: Path) -> None:
    script = """
import os, signal, sys
if os.environ["PLACE"] == "1":
    sys.exit(78)
signal.sigwait([signal.SIGTERM])
"""
    assert REFUSED == 78
    command = [sys.executable, "-c", f"import signal; signal.pthread_sigmask(0, [15])\n{script}"]
    async with asyncio.timeout(DEADLINE_S):
        code = await run_children(command, 2, lambda index: {"PLACE": str(index)}, 0, Ending())
    assert code == 1
