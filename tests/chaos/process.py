"""Starts, kills and starts again what is tested: the real command, and the sink beside it.

A child's output goes to files that are kept, so that a failure can be read afterwards. Waiting is always
for something that is seen from outside, with a deadline, and notices a child that ends by itself.
"""

import os
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Self, TypeVar

import hourhand
from tests.chaos.api import Api, NotSent, Unanswered
from tests.chaos.calls import SinkLog

ROOT = Path(__file__).resolve().parents[2]
SOURCE = Path(hourhand.__file__).resolve().parents[1]  # what the tests import is what they start
HERE = Path(__file__).resolve().parent
START_S = 30.0
WAIT_S = 30.0
_PAUSE_S = 0.02

T = TypeVar("T")


def wait_for(what: str, look: Callable[[], T | None], within_s: float = WAIT_S) -> T:
    """What `look` finds, as soon as it finds something."""
    never = threading.Event()
    end_s = time.monotonic() + within_s
    while not (found := look()):
        assert time.monotonic() < end_s, f"{what}: not within {within_s:g} s"
        never.wait(_PAUSE_S)
    return found


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def environment(**more: str) -> dict[str, str]:
    """The environment of children: none of ours but what Python needs, and loopback may be called."""
    kept = {
        name: os.environ[name]
        for name in ("PATH", "HOME", "LANG", "COVERAGE_PROCESS_START")
        if name in os.environ
    }
    return {
        **kept,
        "PYTHONPATH": os.pathsep.join((str(SOURCE), str(ROOT))),
        "HOURHAND_TARGETS_ALLOW_HOSTS": "127.0.0.1",
        **more,
    }


class SinkProcess:
    """The sink and its log."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "sink.jsonl"
        self.path.touch()
        self.log = SinkLog(self.path)
        self.port = 0
        self._errors = folder / "sink.log"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> "SinkProcess":
        with self._errors.open("ab") as errors:
            self._process = subprocess.Popen(
                [sys.executable, str(HERE / "sink.py"), str(self.path), str(self.port)],
                stdout=subprocess.PIPE,
                stderr=errors,
                env=environment(),
            )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, f"the sink did not start: {self._errors.read_text()}"
        self.port = int(line)
        return self

    def url(self, behaviour: str) -> str:
        """The address whose calls are answered in this way."""
        return f"http://127.0.0.1:{self.port}/{behaviour}"

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None


class Command:
    """One long-running command of ours, through as many lives as a test wants; `probe` answers its /readyz."""

    def __init__(
        self,
        folder: Path,
        *,
        name: str,
        verb: str,
        arguments: Sequence[str] = (),
        probe: Api,
        more: Mapping[str, str] | None = None,
    ) -> None:
        self.folder = folder
        self.name = name
        self.log = folder / f"{name}.log"
        self.launcher: list[str] = [sys.executable, "-m", "hourhand"]
        self.verb = verb
        self.arguments = list(arguments)
        self.environment = environment(**dict(more or {}))
        self.process: subprocess.Popen[bytes] | None = None
        self._probe = probe

    def spawn(self, before: Callable[[], None] | None = None) -> None:
        """Begin a life; it is not ready yet."""
        assert self.process is None, "it already runs"
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [*self.launcher, self.verb, *self.arguments],
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=self.environment,
                preexec_fn=before,
            )

    def start(self, within_s: float = START_S) -> Self:
        """Begin a life and wait until it is ready."""
        self.spawn()
        wait_for(f"{self.name} ready", self.is_ready, within_s)
        return self

    def is_ready(self) -> bool:
        """Whether /readyz says so; a process that has ended is a failure."""
        code = self.ended()
        assert code is None, f"{self.name} ended with {code}: {self.output()[-2000:]}"
        try:
            return self._probe.call("GET", "//readyz").status == 200
        except (NotSent, Unanswered):
            return False

    def ended(self) -> int | None:
        """The exit code once it has ended."""
        return None if self.process is None else self.process.poll()

    def send(self, number: signal.Signals) -> None:
        """Send a signal to a process that runs."""
        assert self.process is not None
        self.process.send_signal(number)

    def kill(self) -> None:
        """kill -9, and wait until it is gone."""
        if self.process is not None:
            self.process.kill()
            self.process.wait(WAIT_S)
            self.process = None

    def stop(self, number: signal.Signals = signal.SIGTERM, within_s: float = WAIT_S) -> int:
        """Ask it to end; its exit code."""
        self.send(number)
        return self.wait(within_s)

    def wait(self, within_s: float = WAIT_S) -> int:
        """Wait for its end; its exit code."""
        assert self.process is not None
        code = self.process.wait(within_s)
        self.process = None
        return code

    def output(self) -> str:
        """Everything that it ever said."""
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def limit_files(self, size: int) -> None:
        """From now on, no file of the running process may grow beyond this many bytes."""
        assert self.process is not None
        resource.prlimit(self.process.pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


class Up(Command):
    """`hourhand up` on one file and one port."""

    def __init__(
        self, folder: Path, *, arguments: Sequence[str] = (), more: Mapping[str, str] | None = None
    ) -> None:
        self.data = folder / "hourhand.db"
        self.port = free_port()
        self.api = Api(self.port)
        super().__init__(
            folder,
            name="up",
            verb="up",
            arguments=["--port", str(self.port), "--data", str(self.data), "--no-demo", *arguments],
            probe=self.api,
            more=more,
        )
