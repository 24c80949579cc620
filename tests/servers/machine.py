"""What every real server needs of the machine: an account it agrees to run under, a place, a port, a package.

Servers such as PostgreSQL refuse to run as root, so root starts them as somebody else, in a directory that
this account can reach. Nothing here knows a particular server.
"""

import contextlib
import functools
import os
import pwd
import random
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import pytest

_ACCOUNTS = ("postgres", "nobody")
_PORTS = (20_000, 32_000)
_INSTALL_S = 300.0
_PAUSE_S = 0.02


class Unavailable(Exception):
    """A server cannot be had here; its text says why and what would help."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """Whom a server runs as; without ids it is whoever runs the tests."""

    uid: int | None = None
    gid: int | None = None

    def popen_options(self) -> dict[str, Any]:
        """Arguments of `subprocess` that make the child this account's."""
        if self.uid is None:
            return {}
        return {"user": self.uid, "group": self.gid, "extra_groups": ()}

    def give(self, path: Path) -> None:
        """Make a file or directory this account's own."""
        if self.uid is not None and self.gid is not None:
            os.chown(path, self.uid, self.gid)

    def can_enter(self, directory: Path) -> bool:
        """Whether the account reaches this directory through all its parents."""
        answer = subprocess.run(
            ["/bin/sh", "-c", 'cd "$1"', "sh", str(directory)],
            cwd="/",
            capture_output=True,
            **self.popen_options(),
        )
        return answer.returncode == 0


@functools.cache
def server_account() -> Account:
    """The tests' own account, or for root one without rights."""
    if os.geteuid() != 0:
        return Account()
    for name in _ACCOUNTS:
        try:
            found = pwd.getpwnam(name)
        except KeyError:
            continue
        return Account(uid=found.pw_uid, gid=found.pw_gid)
    raise Unavailable(f"root may not run this server, and there is no account {' or '.join(_ACCOUNTS)}")


def make_directory(prefix: str, *, on_disk: bool = False) -> Path:
    """A new directory that belongs to the servers' account, in the first temporary place it can reach.

    `on_disk` prefers the place that is not in memory: what is synced there is really written.
    """
    account = server_account()
    places = [Path(tempfile.gettempdir()), Path("/tmp"), Path("/var/tmp")]
    for parent in dict.fromkeys(reversed(places) if on_disk else places):
        if parent.is_dir() and account.can_enter(parent):
            made = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
            account.give(made)
            return made
    raise Unavailable("the account of servers can enter no temporary directory")


def free_port() -> int:
    """A port of 127.0.0.1 that nobody listens on; another may take it first, so be ready to try again.

    Not one that the system gives to outgoing connections: while a server is down, a client that tries again
    and again could be given the server's port as its own, and even connect to itself.
    """
    draw = random.SystemRandom()  # workers with the same seed must not get the same ports
    while True:
        port = draw.randrange(*_PORTS)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def install_debian_package(name: str) -> None:
    """Have apt install a package; only for root on Debian and its kin."""
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise Unavailable(f"{name} is not installed, and only root on a Debian may install it")
    install = ["apt-get", "install", "-y", "--no-install-recommends", "-o", "DPkg::Lock::Timeout=120", name]
    commands = (install, ["apt-get", "update"], install)  # the lists of a fresh image are empty
    said = ""
    for command in commands:
        try:
            answer = subprocess.run(
                command,
                env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=_INSTALL_S,
            )
        except subprocess.TimeoutExpired:
            raise Unavailable(f"{' '.join(command)} took longer than {_INSTALL_S:g} s") from None
        if answer.returncode == 0 and command is install:
            return
        said = answer.stderr.strip() or said
    raise Unavailable(f"apt-get could not install {name}: {said[-500:]}")


def skip_or_fail(reason: str, *, fail: bool | None = None) -> NoReturn:
    """A missing server skips on a laptop; in CI, where it must be there, it fails."""
    if in_ci() if fail is None else fail:
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


def in_ci() -> bool:
    """Whether the environment says that this is CI."""
    return os.environ.get("CI", "").lower() not in ("", "0", "false")


def wait_until(what: str, holds: Callable[[], bool], within_s: float) -> None:
    """Return once it holds; TimeoutError names what did not come."""
    never = threading.Event()
    end_s = time.monotonic() + within_s
    while not holds():
        if time.monotonic() > end_s:
            raise TimeoutError(f"{what}: not within {within_s:g} s")
        never.wait(_PAUSE_S)


def is_running(pid: int) -> bool:
    """Whether a process still does something: one that nobody has collected yet is over."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    stat = Path(f"/proc/{pid}/stat")
    try:
        return stat.read_text(errors="replace").rpartition(")")[2].split()[0] not in ("Z", "X")
    except (FileNotFoundError, ProcessLookupError):
        return not stat.parent.parent.joinpath("self").exists()  # no /proc at all: the signal's word counts


def is_paused(pid: int) -> bool:
    """Whether all threads of a process stand still; they do so one after the other once it is told to."""
    threads = Path(f"/proc/{pid}/task")
    if not threads.exists():
        return True  # no /proc to look at, or it is gone
    states = []
    for stat in threads.glob("*/stat"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            states.append(stat.read_text(errors="replace").rpartition(")")[2].split()[0])
    return all(state in "TtZX" for state in states)


def children_of(pid: int) -> list[int]:
    """The direct children of a process."""
    return [child for child, parent in _processes() if parent == pid]


def _processes() -> Iterator[tuple[int, int]]:
    """Every process and its parent."""
    if not Path("/proc/self/stat").exists():
        answer = subprocess.run(["ps", "-A", "-o", "pid=,ppid="], capture_output=True, text=True, check=True)
        yield from ((int(row.split()[0]), int(row.split()[1])) for row in answer.stdout.splitlines())
        return
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            yield int(stat.parent.name), int(stat.read_text(errors="replace").rpartition(")")[2].split()[1])
