"""The watcher of commands: a worker that is killed takes its commands with it, and a lost watcher is replaced."""

import asyncio
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from hourhand.targets.shell_guard import Guard
from tests.targets.runs import WAIT_S
from tests.targets.test_shell import is_alive

WORKER = """
import asyncio
from hourhand.core.model import ShellTarget
from hourhand.targets.shell import ShellExecutor
from tests.targets.runs import claimed

class Log:
    is_full = False
    def write(self, stream, text):
        print(text, end="", flush=True)
    async def close(self, patience_s):
        pass

class Logs:
    def open(self, run):
        return Log()

TEXT = "trap '' TERM HUP; (trap '' TERM HUP; echo $$; sleep 1000; sleep 1000) & echo $!; sleep 1000; sleep 1000"

async def main():
    executor = ShellExecutor(Logs())
    await executor.execute(claimed(ShellTarget(argv=("sh", "-c", TEXT))))

asyncio.run(main())
"""


def wait_until_gone(*pids: int) -> None:
    for pid in pids:
        try:
            handle = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        with open(handle, closefd=True):
            ended, _, _ = select.select([handle], [], [], WAIT_S)
        assert ended, f"{pid} still lives"


@pytest.fixture
def groups() -> Iterator[list[int]]:
    """Two commands, each a group of its own."""
    made = [subprocess.Popen(["sleep", "1000"], start_new_session=True) for _ in range(2)]
    yield [process.pid for process in made]
    for process in made:
        process.kill()
        process.wait()


def test_a_worker_that_is_killed_takes_its_commands_with_it() -> None:
    with subprocess.Popen([sys.executable, "-c", WORKER], stdout=subprocess.PIPE) as worker:
        assert worker.stdout is not None
        pids = [int(worker.stdout.readline()) for _ in range(2)]
        assert all(map(is_alive, pids))
        worker.send_signal(signal.SIGKILL)
        wait_until_gone(*pids)


def test_what_has_ended_is_left_alone(groups: list[int]) -> None:
    guard = Guard()
    for group in groups:
        guard.begin(group)
    guard.end(groups[0])
    guard.close()
    wait_until_gone(groups[1])
    assert is_alive(groups[0])


def test_a_watcher_that_is_gone_is_replaced(groups: list[int]) -> None:
    guard = Guard()
    guard.begin(groups[0])
    assert guard._watcher is not None
    first = guard._watcher
    first.kill()
    first.wait()
    guard.begin(groups[1])
    assert guard._watcher is not first
    guard.close()
    wait_until_gone(*groups)


def test_a_watcher_heeds_no_signals(groups: list[int]) -> None:
    guard = Guard()
    guard.begin(groups[0])
    watcher = guard._watcher
    assert watcher is not None
    assert os.getpgid(watcher.pid) == watcher.pid  # Ctrl-C does not even reach it
    guard.close()
    wait_until_gone(groups[0])


def test_without_commands_there_is_no_watcher() -> None:
    guard = Guard()
    guard.close()
    assert guard._watcher is None


async def test_one_that_cannot_be_started_does_no_harm(
    groups: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    guard = Guard()
    guard.begin(groups[0])
    guard.end(groups[0])
    guard.close()
    await asyncio.sleep(0)
