"""`make up` and signals: Ctrl-C on a terminal drains and ends with 0, and no signal leaves the command behind.

The real Makefile runs a stand-in for the command, which says what signals it gets and drains.
"""

import os
import pty
import selectors
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DEADLINE_S = 20

STAND_IN = f"""#!{sys.executable}
import os, signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
seen = []
def stop(number, frame):
    seen.append(signal.Signals(number).name)
signal.signal(signal.SIGINT, stop)
signal.signal(signal.SIGTERM, stop)
print("args", *sys.argv[1:], flush=True)
print(os.getpid(), "ready", flush=True)
while not seen:
    signal.pause()
if "DRAINS_UNTIL_TOLD" in os.environ:
    signal.sigwait([signal.SIGUSR1])
print("drained after", *seen, flush=True)
"""

# Makes the inherited descriptor 0 the controlling terminal, as a terminal emulator does before it starts a shell.
TAKE_TERMINAL = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execvp(sys.argv[1], sys.argv[1:])
"""

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="needs make")


@dataclass(slots=True)
class Started:
    """A `make up` whose output is read by waiting for a word, with a deadline."""

    process: subprocess.Popen[bytes]
    output: int
    text: str = ""

    def wait_for(self, word: str) -> str:
        with selectors.DefaultSelector() as selector:
            selector.register(self.output, selectors.EVENT_READ)
            while word not in self.text:
                assert selector.select(DEADLINE_S), f"no {word!r} within {DEADLINE_S} s in: {self.text}"
                chunk = read_or_end(self.output)
                assert chunk, f"ended without {word!r}: {self.text}"
                self.text += chunk.decode()
        return self.text

    def status(self) -> int:
        return self.process.wait(DEADLINE_S)


def read_or_end(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 4096)
    except OSError:  # Linux answers EIO when the last holder of the terminal's other end has gone
        return b""


@pytest.fixture
def make_up(tmp_path: Path) -> list[str]:
    (tmp_path / "python").symlink_to(sys.executable)
    (tmp_path / "hourhand").write_text(STAND_IN)
    (tmp_path / "hourhand").chmod(0o755)
    # --assume-old: the environment is not what is tested here.
    return [
        "make",
        "--no-print-directory",
        "--assume-old=.venv/base.stamp",
        "up",
        f"BIN={tmp_path}",
        "ARGS=--port 9",
    ]


@pytest.fixture
def on_terminal(make_up: list[str]) -> Iterator[tuple[Started, int]]:
    keyboard, screen = pty.openpty()
    command = [sys.executable, "-c", TAKE_TERMINAL, *make_up]
    with subprocess.Popen(
        command,
        cwd=ROOT,
        stdin=screen,
        stdout=screen,
        stderr=screen,
        start_new_session=True,
        env=environment(),
    ) as process:
        os.close(screen)
        yield Started(process, keyboard), keyboard
        process.kill()
    os.close(keyboard)


def environment() -> dict[str, str]:
    """Without what an outer `make test` hands down to its children."""
    return {
        name: value for name, value in os.environ.items() if name not in {"MAKEFLAGS", "MAKELEVEL", "MFLAGS"}
    }


def test_ctrl_c_drains_once_and_ends_with_zero(on_terminal: tuple[Started, int]) -> None:
    started, keyboard = on_terminal
    assert "args up --port 9" in started.wait_for("ready")
    os.write(keyboard, b"\x03")
    text = started.wait_for("drained after SIGINT")
    assert started.status() == 0
    assert "***" not in text


def test_terminating_make_drains_the_command(on_terminal: tuple[Started, int]) -> None:
    started, _ = on_terminal
    started.wait_for("ready")
    started.process.send_signal(signal.SIGTERM)
    started.wait_for("drained after SIGTERM")
    assert started.status() == -signal.SIGTERM


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_without_a_terminal_the_group_gets_the_signal(make_up: list[str], number: signal.Signals) -> None:
    with subprocess.Popen(
        make_up,
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        start_new_session=True,
        env=environment() | {"DRAINS_UNTIL_TOLD": "1"},
    ) as process:
        assert process.stdout is not None
        started = Started(process, process.stdout.fileno())
        command = int(started.wait_for("ready").split("ready")[0].split()[-1])
        os.killpg(process.pid, number)
        wait_until_handled(process.pid, number)
        os.kill(command, signal.SIGUSR1)
        started.wait_for(f"drained after {number.name}")
        assert started.status() == -number  # make's own end; the command's was 0


def wait_until_handled(make: int, number: signal.Signals) -> None:
    """Until make has begun to end. One whose command ends in that very moment says that it has lost a child."""
    state = Path(f"/proc/{make}/status")
    end_s = time.monotonic() + DEADLINE_S
    while state.exists() and time.monotonic() < end_s:
        caught = next(line for line in state.read_text().splitlines() if line.startswith("SigCgt:"))
        if not int(caught.split()[1], 16) >> (number - 1) & 1:
            return
        os.sched_yield()
    assert not state.exists(), f"make does not heed {number.name}"


def test_the_command_status_is_kept(tmp_path: Path) -> None:
    launcher = [sys.executable, str(ROOT / "tools" / "foreground.py")]
    assert subprocess.run([*launcher, "sh", "-c", "exit 7"], check=False).returncode == 7
    assert subprocess.run(launcher, check=False, capture_output=True).returncode == 2
