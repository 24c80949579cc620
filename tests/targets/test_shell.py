"""Commands as real processes: what they get, what they say, how they end, and that nothing of them stays behind."""

import asyncio
import os
import signal
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from hourhand.core.log import Stream
from hourhand.core.model import NO_RETRY_CODES, ShellTarget
from hourhand.core.retry import Outcome
from hourhand.core.run import ClaimedRun
from hourhand.core.shell import RUN_VARIABLES
from hourhand.ports.target import Result
from hourhand.services.sweeper import SLACK_US
from hourhand.services.worker import ABANDON_US
from hourhand.targets import shell, shell_command
from hourhand.targets.shell import NoShell, ShellExecutor
from tests.targets.runs import WAIT_S, claimed

MANY_RUNS = 200
GRACE_S = 1.0


class KeptLog:
    """Keeps what an attempt says."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self.is_full = False
        self.closed = False
        self.said = asyncio.Event()

    def write(self, stream: Stream, text: str) -> None:
        assert stream is Stream.OUTPUT
        self._texts.append(text)
        self.said.set()

    @property
    def text(self) -> str:
        return "".join(self._texts)

    async def close(self, patience_s: float) -> None:
        self.closed = True

    async def until(self, words: str) -> None:
        async with asyncio.timeout(WAIT_S):
            while words not in self.text:
                self.said.clear()
                await self.said.wait()


class KeptLogs:
    """The logs of a test."""

    def __init__(self) -> None:
        self.last = KeptLog()

    def open(self, run: ClaimedRun) -> KeptLog:
        return self.last


@pytest.fixture
def logs() -> KeptLogs:
    return KeptLogs()


@pytest.fixture
async def executor(logs: KeptLogs) -> AsyncIterator[ShellExecutor]:
    made = ShellExecutor(logs, grace_s=GRACE_S)
    yield made
    await made.close()


def command(*argv: str, payload: Any = None, **fields: Any) -> ClaimedRun:
    return claimed(ShellTarget(argv=argv, **fields), payload, fence=3)


def script(text: str, **fields: Any) -> ClaimedRun:
    return command("sh", "-c", text, **fields)


async def outcome(executor: ShellExecutor, run: ClaimedRun) -> Result:
    return await asyncio.wait_for(executor.execute(run), WAIT_S)


async def gone(pid: int) -> None:
    """Until there is no such process."""
    async with asyncio.timeout(WAIT_S):
        while is_alive(pid):  # noqa: ASYNC110 -- nobody tells
            await asyncio.sleep(0.005)


def is_alive(pid: int) -> bool:
    """Whether a process lives; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def children() -> list[int]:
    """The children of this process, zombies included."""
    return [int(pid) for pid in Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()]


# --- how it ends


@pytest.mark.parametrize(
    ("code", "retryable"), [(1, True), (2, True), (3, True), (75, True), (255, True)]
    + [(code, False) for code in NO_RETRY_CODES],
)  # fmt: skip
async def test_exit_codes(executor: ShellExecutor, code: int, retryable: bool) -> None:
    result = await outcome(executor, script(f"exit {code}"))
    assert result.outcome is Outcome.FAILED
    assert result.detail == {"error": f"exit code {code}", "exit_code": code}
    assert (result.failure.retryable, result.failure.before_sending, result.failure.unserved) == (
        retryable,
        False,
        False,
    )


async def test_success(executor: ShellExecutor, logs: KeptLogs) -> None:
    result = await outcome(executor, command("true"))
    assert (result.outcome, result.detail) == (Outcome.SUCCEEDED, {"response": {"exit_code": 0}})
    assert (logs.last.text, logs.last.closed) == ("", True)


async def test_the_job_says_what_its_codes_mean(executor: ShellExecutor) -> None:
    fields = {"success_codes": (0, 4), "no_retry_codes": (5,)}
    assert (await outcome(executor, script("exit 4", **fields))).outcome is Outcome.SUCCEEDED
    assert not (await outcome(executor, script("exit 5", **fields))).failure.retryable
    assert (await outcome(executor, script("exit 127", **fields))).failure.retryable


async def test_a_signal_is_a_failure_that_may_pass(executor: ShellExecutor) -> None:
    result = await outcome(executor, script("kill -SEGV $$"))
    assert result.detail == {"error": "exit code 139 (SIGSEGV)", "exit_code": 139}
    assert result.failure.retryable


@pytest.mark.parametrize(
    ("argv", "cwd", "words"),
    [
        (("no-such-command",), None, "there is no command 'no-such-command' on this worker"),
        (("/dev/null",), None, "the command '/dev/null' cannot be executed: Permission denied"),
        (("/",), None, "the command '/' cannot be executed: Permission denied"),
        (
            ("true",),
            "/no/such/place",
            "the working directory '/no/such/place' cannot be entered: No such file",
        ),
    ],
)
async def test_what_cannot_be_started_is_not_tried_again(
    executor: ShellExecutor, argv: tuple[str, ...], cwd: str | None, words: str
) -> None:
    result = await outcome(executor, command(*argv, cwd=cwd))
    assert result.detail is not None
    assert result.detail["error"].startswith(f"not started: {words}")
    assert not result.failure.retryable
    assert result.failure.before_sending


async def test_a_worker_without_room_for_a_process_lets_the_run_wait(
    executor: ShellExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(shell_command.subprocess, "Popen", full)
    result = await outcome(executor, command("true"))
    assert result.failure.unserved
    assert "no room for another process" in str(result.detail)


async def test_a_worker_that_may_not_lets_the_run_wait(tmp_path: Path) -> None:
    result = await NoShell().execute(script(f"touch {tmp_path}/done"))
    assert result.failure.unserved
    assert "--allow-shell" in str(result.detail)
    assert not os.listdir(tmp_path)


# --- what it gets


async def test_the_environment_is_clean(logs: KeptLogs) -> None:
    worker = {
        "PATH": os.environ["PATH"], "HOME": "/srv/it", "TZ": "Asia/Tokyo", "LANG": "C.UTF-8",
        "DATABASE_URL": "canary", "HOURHAND_TARGETS_SIGNING_SECRET": "canary", "PYTHONPATH": "canary",
        "LD_PRELOAD": "canary", "SSH_AUTH_SOCK": "canary",
    }  # fmt: skip
    executor = ShellExecutor(logs, environment=worker)
    await outcome(executor, command("env", env={"LEVEL": "3", "TZ": "UTC"}, payload={"a": 1}))
    await executor.close()
    found = dict(line.split("=", 1) for line in logs.last.text.splitlines())
    assert found.keys() >= RUN_VARIABLES
    assert found == {
        "PATH": os.environ["PATH"],
        "HOME": "/srv/it",
        "LANG": "C.UTF-8",
        "TZ": "UTC",
        "LEVEL": "3",
        "HOURHAND_RUN_ID": "J-000000000002d@20261116T080000Z",
        "HOURHAND_IDEMPOTENCY_KEY": "J-000000000002d@20261116T080000Z",
        "HOURHAND_JOB": "J-000000000002d",
        "HOURHAND_SCHEDULED_AT": "2026-11-16T08:00:00Z",
        "HOURHAND_ATTEMPT": "3",
        "HOURHAND_DEADLINE": "2026-11-16T08:05:00Z",
        "HOURHAND_PAYLOAD": '{"a":1}',
    }


async def test_it_inherits_no_files(executor: ShellExecutor, logs: KeptLogs) -> None:
    secret = os.open("/etc/hostname", os.O_RDONLY)
    os.set_inheritable(secret, True)
    try:
        await outcome(executor, script("ls /proc/self/fd"))
    finally:
        os.close(secret)
    assert logs.last.text.split() == ["0", "1", "2", "3"]  # the last is of ls itself


async def test_it_leads_a_session_of_its_own(executor: ShellExecutor, logs: KeptLogs) -> None:
    code = "import os; print(os.getpid() == os.getpgid(0) == os.getsid(0))"
    await outcome(executor, command(sys.executable, "-c", code))
    assert logs.last.text == "True\n"


async def test_no_shell_reads_the_arguments(executor: ShellExecutor, logs: KeptLogs) -> None:
    await outcome(executor, command("printf", "%s|", "a b", "$HOME", "`id`", "*", "; exit 3", ""))
    assert logs.last.text == "a b|$HOME|`id`|*|; exit 3||"


async def test_the_working_directory(executor: ShellExecutor, logs: KeptLogs, tmp_path: Path) -> None:
    await outcome(executor, command("pwd", cwd=str(tmp_path)))
    assert logs.last.text == f"{tmp_path}\n"


@pytest.mark.parametrize("size", [1, 100_000, 1_000_000])
async def test_the_payload_is_its_stdin(executor: ShellExecutor, logs: KeptLogs, size: int) -> None:
    await outcome(executor, script("wc -c; echo ${HOURHAND_PAYLOAD-none} | wc -c", payload="x" * size))
    counted, in_environment = map(int, logs.last.text.split())
    assert counted == size + 2
    assert in_environment == (size + 3 if size <= shell.PAYLOAD_VARIABLE_BYTES else len("none\n"))


async def test_without_a_payload_stdin_is_empty(executor: ShellExecutor, logs: KeptLogs) -> None:
    await outcome(executor, script("cat; echo ${HOURHAND_PAYLOAD-none}"))
    assert logs.last.text == "none\n"


async def test_a_command_may_leave_its_stdin_alone(executor: ShellExecutor) -> None:
    assert (await outcome(executor, command("true", payload="x" * 200_000))).outcome is Outcome.SUCCEEDED


# --- what it says


async def test_both_outputs_in_the_order_of_writing(executor: ShellExecutor, logs: KeptLogs) -> None:
    await outcome(executor, script("echo 1; echo 2 >&2; echo 3; echo 4 >&2"))
    assert logs.last.text == "1\n2\n3\n4\n"


async def test_it_is_heard_while_it_runs(executor: ShellExecutor, logs: KeptLogs, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "go")
    running = asyncio.create_task(executor.execute(script(f"echo ready; cat {tmp_path}/go")))
    await logs.last.until("ready")
    assert not running.done()
    (tmp_path / "go").write_text("went\n")
    await asyncio.wait_for(running, WAIT_S)
    assert logs.last.text == "ready\nwent\n"


async def test_bytes_that_are_no_text(executor: ShellExecutor, logs: KeptLogs) -> None:
    await outcome(
        executor, script(r"printf 'a\0b\377c\303'; printf '\274'; printf '\033[31m'; printf '\303'")
    )
    assert logs.last.text == "a\ufffdb\ufffdcü\x1b[31m\ufffd"


async def test_ten_megabytes(executor: ShellExecutor, logs: KeptLogs) -> None:
    run = script("head -c 10000000 /dev/zero | tr '\\0' x")
    result = await asyncio.wait_for(
        executor.execute(run), 6 * WAIT_S
    )  # a tenth of a second on a quiet machine
    assert result.outcome is Outcome.SUCCEEDED
    assert len(logs.last.text) == 10_000_000


async def test_a_flood_that_is_not_kept_leaves_the_loop_to_others(
    executor: ShellExecutor, logs: KeptLogs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It waits for us, not we for it."""
    monkeypatch.setattr(shell_command, "_FLOOD_PAUSE_S", 0.05)
    logs.last.is_full = True
    began_s = time.perf_counter()
    flood = asyncio.create_task(executor.execute(command("yes")))
    await logs.last.until("y\n" * 100_000)
    took_s = time.perf_counter() - began_s
    reads = len(logs.last.text) / shell_command._READ_BYTES
    assert 3 < reads < took_s / 0.05 + 2
    await cancelled(flood)
    assert executor._floods.count == 0


# --- that it ends


async def cancelled(task: "asyncio.Task[Result]") -> float:
    """Cancel an attempt; how long it took to end."""
    began_s = time.perf_counter()
    task.cancel()
    await asyncio.wait({task}, timeout=WAIT_S)
    assert task.cancelled()
    return time.perf_counter() - began_s


async def test_it_is_asked_to_end_and_may_clean_up(executor: ShellExecutor, logs: KeptLogs) -> None:
    task = asyncio.create_task(
        executor.execute(
            script("trap 'echo cleaned up; exit 0' TERM; echo ready; while :; do sleep 0.01; done")
        )
    )
    await logs.last.until("ready")
    await cancelled(task)
    assert logs.last.text.endswith("cleaned up\n")
    assert logs.last.closed


async def test_a_whole_group_that_does_not_listen_is_killed(executor: ShellExecutor, logs: KeptLogs) -> None:
    text = "trap '' TERM; (trap '' TERM; sleep 1000; sleep 1000) & echo $! $$; sleep 1000; sleep 1000"
    task = asyncio.create_task(executor.execute(script(text)))
    await logs.last.until("\n")
    took_s = await cancelled(task)
    assert GRACE_S <= took_s < GRACE_S + 2
    for pid in map(int, logs.last.text.split()):
        await gone(pid)


async def test_a_child_may_clean_up_although_its_parent_is_gone(
    executor: ShellExecutor, logs: KeptLogs
) -> None:
    child = "trap 'sleep 0.1; echo cleaned up; exit' TERM; echo ready; while :; do sleep 0.01; done"
    task = asyncio.create_task(executor.execute(script(f"({child}) & wait")))
    await logs.last.until("ready")
    await cancelled(task)
    assert "cleaned up" in logs.last.text


async def test_a_second_cancellation_kills_at_once(logs: KeptLogs) -> None:
    executor = ShellExecutor(logs, grace_s=60)
    task = asyncio.create_task(executor.execute(script("trap '' TERM; echo $$; while :; do sleep 1; done")))
    await logs.last.until("\n")
    task.cancel()
    await asyncio.sleep(0.05)
    assert not task.done()
    assert await cancelled(task) < 2
    await gone(int(logs.last.text))
    await executor.close()


async def test_closing_kills_what_still_runs(logs: KeptLogs) -> None:
    executor = ShellExecutor(logs)
    task = asyncio.create_task(executor.execute(script("trap '' TERM; echo $$; sleep 1000")))
    await logs.last.until("\n")
    await executor.close()
    await asyncio.wait({task}, timeout=WAIT_S)
    assert task.result().detail == {"error": "exit code 137 (SIGKILL)", "exit_code": 137}


async def test_what_a_command_leaves_behind_ends_with_it(executor: ShellExecutor, logs: KeptLogs) -> None:
    began_s = time.perf_counter()
    result = await outcome(executor, script("sleep 1000 & echo $!"))
    assert result.outcome is Outcome.SUCCEEDED
    assert time.perf_counter() - began_s < 2
    await gone(int(logs.last.text))


async def test_what_detaches_itself_is_not_waited_for(executor: ShellExecutor, logs: KeptLogs) -> None:
    daemon = "setsid sh -c 'echo $$; exec sleep 1000' & while ! kill -0 $! 2>/dev/null; do :; done; sleep 0.1"
    result = await outcome(executor, script(daemon))
    assert result.outcome is Outcome.SUCCEEDED
    os.kill(int(logs.last.text), signal.SIGKILL)  # it was meant to live on


def test_its_grace_fits_into_the_workers_patience() -> None:
    longest_s = shell.GRACE_S + shell_command._DEAD_S + shell_command._LAST_WORDS_S + shell._LOG_S
    assert longest_s * 1_000_000 < ABANDON_US < SLACK_US


# --- what stays behind


async def test_nothing_stays_behind(executor: ShellExecutor) -> None:
    await outcome(executor, command("true"))
    files, processes = len(os.listdir("/proc/self/fd")), children()
    for _ in range(MANY_RUNS // 40):
        runs = [
            command("true", payload=[1]),
            script("exit 3"),
            command("no-such-command"),
            command("true", cwd="/no"),
        ]
        await asyncio.gather(*(outcome(executor, run) for run in runs * 10))
    tasks = [asyncio.create_task(executor.execute(command("sleep", "1000"))) for _ in range(10)]
    await asyncio.sleep(0.05)
    for task in tasks:
        await cancelled(task)
    assert len(os.listdir("/proc/self/fd")) == files
    assert children() == processes  # the watcher alone
    assert not executor._commands
    assert not executor._guard._groups


async def test_a_place_is_waited_for(executor: ShellExecutor, monkeypatch: pytest.MonkeyPatch) -> None:
    executor._places = asyncio.Semaphore(2)
    tasks = [asyncio.create_task(executor.execute(command("sleep", "1000"))) for _ in range(3)]
    async with asyncio.timeout(WAIT_S):
        while len(executor._commands) < 2:  # noqa: ASYNC110
            await asyncio.sleep(0)
    await asyncio.sleep(0.02)
    assert len(executor._commands) == 2
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks, timeout=WAIT_S)
    assert not executor._commands
