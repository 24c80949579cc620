"""A real PostgreSQL server of our own: started, restarted, paused, killed and stopped by its own pid.

A server is where its data is: everything is done through the data directory, so that another process of the
same test run can take hold of a server with `PostgresServer.running_in`. Finding the programs is left to
`postgres_binaries`, making databases to `postgres_databases`.
"""

import atexit
import contextlib
import os
import shutil
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, Self

from tests.servers.machine import (
    Unavailable,
    children_of,
    free_port,
    is_running,
    make_directory,
    server_account,
    skip_or_fail,
    wait_until,
)
from tests.servers.postgres_binaries import find_binaries
from tests.servers.postgres_databases import PostgresDatabases

URL_VARIABLE = "HOURHAND_TEST_POSTGRES_URL"

StopMode = Literal["fast", "immediate"]

_ROLE = "postgres"
_SETTINGS_FILE = "hourhand.conf"
_START_S = 60.0
_STOP_S = 60.0
_GONE_S = 20.0
_TRIES = 5  # a free port may be taken before the server listens on it
_FOR_ALL = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "log_line_prefix": "%m [%p] %d ",
    "timezone": "UTC",
    "log_timezone": "UTC",
}
# Speed for tests that ask nothing of the disk. A kill of the server is survived, a power cut would not be.
_NOT_DURABLE = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}


class PostgresServer(PostgresDatabases):
    """One server on 127.0.0.1; a context manager that starts and stops it."""

    def __init__(
        self,
        *,
        durable: bool = False,
        shared_buffers: str = "128MB",
        max_connections: int = 200,
        max_wal_size: str = "1GB",
        settings: Mapping[str, str] | None = None,
        directory: Path | None = None,
    ) -> None:
        """`directory` keeps its data when the server is stopped; without it a temporary one is used and removed."""
        self._settings = {
            **_FOR_ALL,
            **({} if durable else _NOT_DURABLE),
            "shared_buffers": shared_buffers,
            "max_connections": str(max_connections),
            "max_wal_size": max_wal_size,
            **(settings or {}),
        }
        self._durable = durable
        self._kept = directory
        self._home: Path | None = None
        self._port = 0
        self._stopped_pids: list[int] = []

    @classmethod
    def running_in(cls, home: Path, port: int) -> Self:
        """Take hold of a server that another process started; `stop` is then whoever calls it first."""
        server = cls()
        server._home, server._port = home, port
        return server

    @property
    def home(self) -> Path:
        """Holds the data directory and the log."""
        if self._home is None:
            raise RuntimeError("this server has not been started")
        return self._home

    @property
    def data(self) -> Path:
        """The data directory."""
        return self.home / "data"

    @property
    def log(self) -> Path:
        """What the server says."""
        return self.home / "postgres.log"

    @property
    def port(self) -> int:
        """The same through all restarts."""
        return self._port

    @property
    def admin_url(self) -> str:
        return f"postgresql://{_ROLE}@127.0.0.1:{self._port}/postgres"

    @property
    def _copying(self) -> str:
        # Where a checkpoint costs nothing, copying files takes half as long; versions before 15 know no other way.
        is_new = int((self.data / "PG_VERSION").read_text()) >= 15
        return "STRATEGY FILE_COPY" if is_new and not self._durable else ""

    @property
    def pid(self) -> int | None:
        """Of the postmaster, if it runs."""
        try:
            pid = int((self.data / "postmaster.pid").read_text().split()[0])
        except (FileNotFoundError, IndexError):
            return None
        return pid if is_running(pid) else None

    def start(self, *, stop_at_exit: bool = True) -> Self:
        """Make the data directory if it is not there, and return once connections are answered."""
        if self._home is None:
            self._make_home()
            self._init_data()
            if stop_at_exit:
                atexit.register(self._stop_at_exit, os.getpid())
        if self._port:
            self._launch()
            return self
        for left in reversed(range(_TRIES)):
            self._port = free_port()
            try:
                self._launch()
                return self
            except RuntimeError as error:
                self._port = 0
                if not left or "could not bind" not in str(error):
                    raise
        raise AssertionError("the last try has answered or raised")

    def restart(self, mode: StopMode = "fast") -> None:
        """Stop, as an operator (`fast`) or a crash (`immediate`) would, and start again on the same port."""
        self.halt(mode)
        self.start()

    def halt(self, mode: StopMode = "fast") -> None:
        """Stop the server and keep its data; `start` brings it back."""
        self.resume()
        if self.pid is None:
            return
        answer = self._control("stop", "-m", mode, "-t", f"{_STOP_S:g}")
        if answer.returncode != 0 and self.pid is not None:
            self.kill()

    def kill(self) -> None:
        """SIGKILL to the postmaster, then to what it leaves; nobody says goodbye to anybody. Data stay."""
        pid = self.pid
        if pid is None:
            return
        _signal([pid], signal.SIGSTOP)  # so that it starts no child while they are counted
        pids = [pid, *children_of(pid)]
        _signal(pids, signal.SIGKILL)
        self._stopped_pids.clear()
        wait_until("end of a killed PostgreSQL", lambda: not any(map(is_running, pids)), _GONE_S)
        # Where nobody collects orphans, the dead pid in this file would look alive to the next start.
        (self.data / "postmaster.pid").unlink(missing_ok=True)

    def pause(self) -> None:
        """SIGSTOP to the postmaster and all its children: connections stay open and nothing answers."""
        pid = self.pid
        if pid is None:
            raise RuntimeError("there is no running server to pause")
        _signal([pid], signal.SIGSTOP)
        # Each child leads a process group of its own, so that one signal to a group reaches none of them.
        children = children_of(pid)
        _signal(children, signal.SIGSTOP)
        self._stopped_pids = [*children, pid]

    def resume(self) -> None:
        """Undo `pause`."""
        _signal(self._stopped_pids, signal.SIGCONT)
        self._stopped_pids.clear()

    def stop(self) -> None:
        """Stop for good: a temporary directory goes away, a kept one is shut down cleanly."""
        if self._home is None:
            return
        self.halt("fast" if self._kept else "immediate")
        if not self._kept:
            shutil.rmtree(self._home, ignore_errors=True)
        self._home, self._port = None, 0

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _make_home(self) -> None:
        account = server_account()
        if self._kept is None:
            find_binaries()  # before anything is left behind
            self._home = make_directory("hourhand-postgres-", on_disk=self._durable)
            return
        self._kept.mkdir(parents=True, exist_ok=True)
        account.give(self._kept)
        if not account.can_enter(self._kept):
            raise Unavailable(f"the account that PostgreSQL runs as cannot enter {self._kept}")
        self._home = self._kept.resolve()

    def _init_data(self) -> None:
        if (self.data / "PG_VERSION").exists():
            return
        options = ["--no-sync", "--auth=trust", f"--username={_ROLE}", "--encoding=UTF8", "--locale=C"]
        answer = self._run("initdb", "-D", str(self.data), *options)
        if answer.returncode != 0:
            self.stop()
            raise RuntimeError(f"initdb failed: {answer.stderr}")
        with (self.data / "postgresql.conf").open("a") as file:
            file.write(f"\ninclude '{_SETTINGS_FILE}'\n")

    def _launch(self) -> None:
        path = self.data / _SETTINGS_FILE
        lines = (f"{name} = '{value}'\n" for name, value in {**self._settings, "port": self._port}.items())
        path.write_text("".join(lines))
        server_account().give(path)
        answer = self._control("start", "-l", str(self.log), "-t", f"{_START_S:g}")
        if answer.returncode != 0:
            said = self.log.read_text(errors="replace")[-2000:] if self.log.exists() else answer.stderr
            raise RuntimeError(f"PostgreSQL did not start: {said}")

    def _control(self, verb: str, *options: str) -> "subprocess.CompletedProcess[str]":
        return self._run("pg_ctl", verb, "-s", "-w", "-D", str(self.data), *options)

    def _run(self, program: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
        # Output goes to a file: a pipe would stay open for as long as the server that inherits it lives.
        said = self.home / f"{program}.out"
        with said.open("w+") as output:
            server_account().give(said)
            done = subprocess.run(
                [find_binaries() / program, *arguments],
                cwd=self.home,
                env={"PATH": os.environ.get("PATH", ""), "LC_ALL": "C"},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                **server_account().popen_options(),
            )
            output.seek(0)
            return subprocess.CompletedProcess(done.args, done.returncode, "", output.read())

    def _stop_at_exit(self, started_by: int) -> None:
        if os.getpid() == started_by:  # not in a fork
            self.stop()


def given_server() -> PostgresDatabases | None:
    """The server that the environment names, if it does."""
    url = os.environ.get(URL_VARIABLE)
    return PostgresDatabases(url) if url else None


def require_postgres() -> None:
    """Go on only if a server of our own can be had; otherwise skip on a laptop and fail in CI."""
    try:
        find_binaries()
        server_account()
    except Unavailable as error:
        skip_or_fail(str(error))


def _signal(pids: list[int], number: signal.Signals) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
