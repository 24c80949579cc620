"""A real pgbouncer in transaction mode in front of a PostgreSQL server, with its own port and files.

In this mode consecutive transactions of a client run on different connections of the server: whatever a
session remembers (prepared statements, LISTEN, advisory locks, SET) is lost or belongs to somebody else.
"""

import contextlib
import functools
import os
import shutil
import socket
import subprocess
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit, urlunsplit

from tests.servers.machine import (
    Unavailable,
    free_port,
    in_ci,
    install_debian_package,
    make_directory,
    server_account,
    skip_or_fail,
    wait_until,
)
from tests.servers.postgres_databases import PostgresDatabases

_START_S = 15.0
_STOP_S = 15.0
_TRIES = 3


class PgBouncer:
    """One pooler for all databases of a server; a context manager that starts and stops it."""

    def __init__(
        self, server: PostgresDatabases, *, pool_mode: str = "transaction", pool_size: int = 10
    ) -> None:
        self._server = server
        self._pool_mode = pool_mode
        self._pool_size = pool_size
        self._home: Path | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self.port = 0

    def url_of(self, database_url: str) -> str:
        """The same database through the pooler."""
        parts = urlsplit(database_url)
        account, at, _ = parts.netloc.rpartition("@")
        return urlunsplit(parts._replace(netloc=f"{account}{at}127.0.0.1:{self.port}"))

    def start(self) -> Self:
        """Return once it accepts connections."""
        self._home = make_directory("hourhand-pgbouncer-")
        self._write("userlist.txt", self._users())
        try:
            for _ in range(_TRIES):
                if self._launch():
                    return self
            raise RuntimeError(f"pgbouncer did not start: {self._log.read_text(errors='replace')[-2000:]}")
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End it; it has nothing to lose."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(_STOP_S)
            self._process = None
        if self._home is not None:
            shutil.rmtree(self._home, ignore_errors=True)
            self._home = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def _log(self) -> Path:
        assert self._home is not None
        return self._home / "pgbouncer.log"

    def _launch(self) -> bool:
        """Whether it came up; somebody may have been quicker to take the port."""
        self.port = free_port()
        settings = self._write("pgbouncer.ini", self._settings())
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [find_pgbouncer(), settings],
                cwd=self._home,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                **server_account().popen_options(),
            )
        wait_until("pgbouncer", self._answers_or_ended, _START_S)
        return self._process.poll() is None

    def _users(self) -> str:
        parts = urlsplit(self._server.admin_url)
        return f'"{parts.username or ""}" "{parts.password or ""}"\n'

    def _settings(self) -> str:
        parts = urlsplit(self._server.admin_url)
        return (
            f"[databases]\n* = host={parts.hostname} port={parts.port or 5432}\n"
            f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {self.port}\nunix_socket_dir =\n"
            f"auth_type = trust\nauth_file = {self._home}/userlist.txt\n"
            f"pool_mode = {self._pool_mode}\ndefault_pool_size = {self._pool_size}\nmax_client_conn = 1000\n"
            # What is left of asyncpg's greeting that a pooler cannot keep for a session.
            "ignore_startup_parameters = extra_float_digits,search_path,jit\n"
        )

    def _write(self, name: str, text: str) -> Path:
        assert self._home is not None
        path = self._home / name
        path.write_text(text)
        path.chmod(0o600)
        server_account().give(path)
        return path

    def _answers_or_ended(self) -> bool:
        assert self._process is not None
        if self._process.poll() is not None:
            return True
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
            return True
        return False


@functools.cache
def find_pgbouncer() -> str:
    """The program, from the PATH or Debian's package; Unavailable says why there is none."""
    found = _on_path()
    if found is None:
        install_debian_package("pgbouncer")
        found = _on_path()
    if found is None:
        raise Unavailable("Debian's package pgbouncer was installed, but its program is not on the PATH")
    return found


def require_pgbouncer() -> None:
    """Go on only if a pgbouncer can be had; otherwise skip, and fail in CI if root could have installed it."""
    try:
        find_pgbouncer()
    except Unavailable as error:
        skip_or_fail(f"no pgbouncer: {error}", fail=in_ci() and os.geteuid() == 0)


def _on_path() -> str | None:
    return shutil.which("pgbouncer", path=os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin")))
