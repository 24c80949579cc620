"""What servers of one process have in common: a place, a port, a pid; started, paused, killed, stopped by it.

A server is where its directory is: everything is done through the files there, so that another process of the
same test run can take hold of it with `running_in`. Which program it is, and when it is ready, its class says.
"""

import abc
import atexit
import contextlib
import os
import shutil
import signal
import subprocess
from pathlib import Path
from typing import ClassVar, Self

from tests.servers.machine import (
    Account,
    free_port,
    is_paused,
    is_running,
    make_directory,
    server_account,
    wait_until,
)

_START_S = 60.0
_STOP_S = 20.0
_TRIES = 5  # a free port may be taken before the server listens on it

# Ends a server whose owner is gone without a word: $1 is the owner, $2 the server's directory. Whoever has its pid by
# then is asked where it lives.
_GUARD = """(
while kill -0 "$1" && [ -d "$2" ]; do sleep 1; done
pid=$(cat "$2/pid") && [ "$(readlink "/proc/$pid/cwd")" = "$2" ] && kill -KILL "$pid"
rm -rf "$2"
) &"""


class Daemon(abc.ABC):
    """One server on 127.0.0.1; a context manager that starts and stops it."""

    name: ClassVar[str]
    ports: ClassVar[int] = 1

    def __init__(self) -> None:
        self._home: Path | None = None
        self._ports: tuple[int, ...] = ()
        self._process: subprocess.Popen[bytes] | None = None

    @classmethod
    def running_in(cls, home: Path, ports: tuple[int, ...]) -> Self:
        """Take hold of a server that another process started; `stop` is then whoever calls it first."""
        server = cls()
        server._home, server._ports = home, ports
        return server

    @property
    @abc.abstractmethod
    def url(self) -> str:
        """Where it answers."""

    @abc.abstractmethod
    def command(self) -> list[str]:
        """The program and its arguments, for the present directory and ports."""

    @abc.abstractmethod
    def is_ready(self) -> bool:
        """Whether it answers."""

    def account(self) -> Account:
        """Whom it runs as."""
        return server_account()

    @property
    def home(self) -> Path:
        """Holds its data and its log."""
        if self._home is None:
            raise RuntimeError("this server has not been started")
        return self._home

    @property
    def port(self) -> int:
        """Where clients connect; the same through all restarts."""
        return self._ports[0]

    @property
    def all_ports(self) -> tuple[int, ...]:
        """The clients' and what the server needs for itself."""
        return self._ports

    @property
    def log(self) -> Path:
        """What the server says."""
        return self.home / f"{self.name}.log"

    @property
    def pid(self) -> int | None:
        """Of the server, if it runs."""
        try:
            pid = int((self.home / "pid").read_text())
        except (FileNotFoundError, ValueError):
            return None
        return pid if is_running(pid) else None

    def start(self, *, owner: int | None = None) -> Self:
        """Return once it answers. After `halt` or `kill` it has the same port, and what data it kept.

        It ends with its `owner`, a process; else with this one. One that runs is left as it is: a second one would take its place in the directory, and nobody could stop it.
        """
        if self._home is not None and self.pid is not None:
            return self
        if self._home is None:
            self.command()  # whatever is missing is said before anything is left behind
            self._home = make_directory(f"hourhand-{self.name}-")
            if owner is None:
                atexit.register(self._stop_at_exit, os.getpid())
            self._guard(os.getpid() if owner is None else owner)
        if self._ports:
            if not self._launch():
                raise RuntimeError(f"{self.name} did not start again: {self._said()}")
            return self
        try:
            self._launch_first()
        except BaseException:  # an interrupted start too leaves neither a directory nor a process behind
            self.stop()
            raise
        return self

    def restart(self) -> None:
        """Stop as an operator would, and start again on the same port."""
        self.halt()
        self.start()

    def halt(self) -> None:
        """SIGTERM: stop the server and keep its directory; `start` brings it back."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """SIGKILL: nobody says goodbye to anybody."""
        self._end(signal.SIGKILL)

    def pause(self) -> None:
        """SIGSTOP: connections stay open and nothing answers."""
        self._signal(signal.SIGSTOP)
        if (pid := self.pid) is not None:
            wait_until(f"pause of {self.name}", lambda: is_paused(pid), _STOP_S)

    def resume(self) -> None:
        """Undo `pause`."""
        self._signal(signal.SIGCONT)

    def stop(self) -> None:
        """Stop for good; its directory goes away."""
        if self._home is None:
            return
        self.kill()
        shutil.rmtree(self._home, ignore_errors=True)
        self._home, self._ports = None, ()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _guard(self, owner: int) -> None:
        """See to it that nothing outlives an owner that is killed."""
        subprocess.run(
            ["/bin/sh", "-c", _GUARD, "guard", str(owner), str(self.home)],
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            check=True,
        )

    def _launch_first(self) -> None:
        """Find ports that it can have."""
        for _ in range(_TRIES):
            self._ports = tuple(free_port() for _ in range(self.ports))
            if self._launch():
                return
        raise RuntimeError(f"{self.name} did not start: {self._said()}")

    def _launch(self) -> bool:
        """Whether it came up; somebody may have been quicker to take the port."""
        with self.log.open("ab") as log:
            process = subprocess.Popen(
                self.command(),
                cwd=self.home,
                env={"PATH": os.environ.get("PATH", ""), "LC_ALL": "C"},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C is for the tests, which stop it themselves
                **self.account().popen_options(),
            )
        self._process = process
        (self.home / "pid").write_text(str(process.pid))
        wait_until(f"start of {self.name}", lambda: process.poll() is not None or self.is_ready(), _START_S)
        return process.poll() is None

    def _end(self, number: signal.Signals) -> None:
        pid = self.pid
        if pid is None:
            return
        self._signal(number)
        self.resume()
        try:
            wait_until(f"end of {self.name}", lambda: not is_running(pid), _STOP_S)
        except TimeoutError:
            self._signal(signal.SIGKILL)
            wait_until(f"end of {self.name}", lambda: not is_running(pid), _STOP_S)
        if self._process is not None:
            self._process.wait(_STOP_S)
            self._process = None

    def _signal(self, number: signal.Signals) -> None:
        pid = self.pid
        if pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def _said(self) -> str:
        return self.log.read_text(errors="replace")[-2000:] if self.log.exists() else ""

    def _stop_at_exit(self, started_by: int) -> None:
        if os.getpid() == started_by:  # not in a fork
            self.stop()
