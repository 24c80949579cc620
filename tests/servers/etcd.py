"""A real etcd of our own, with one member: the machine's, else Debian's package.

Its elections are quick, since a lease cannot be shorter than they are, and it does not wait for the disk more
than it must.
"""

import functools
import json
import os
import shutil
import urllib.request
from typing import Any, ClassVar

from tests.servers.daemon import Daemon
from tests.servers.machine import Unavailable, install_debian_package, server_account, skip_or_fail

URL_VARIABLE = "HOURHAND_TEST_ETCD_URL"

_ANSWER_S = 5.0


class EtcdServer(Daemon):
    """One etcd that keeps its data through `halt` and `kill`; `forget` starts it again without them."""

    name: ClassVar[str] = "etcd"
    ports: ClassVar[int] = 2

    @property
    def url(self) -> str:
        """As `leases.url` has it."""
        return f"etcd://127.0.0.1:{self.port}"

    def command(self) -> list[str]:
        """One member, which is a cluster by itself."""
        if self._home is None:
            return [find_etcd()]
        client, peer = (f"http://127.0.0.1:{port}" for port in self.all_ports)
        options = {
            "name": "tests",
            "data-dir": str(self.home / "data"),
            "listen-client-urls": client,
            "advertise-client-urls": client,
            "listen-peer-urls": peer,
            "initial-advertise-peer-urls": peer,
            "initial-cluster": f"tests={peer}",
            "heartbeat-interval": "20",
            "election-timeout": "200",
            "logger": "zap",
            "log-level": "error",
        }
        return [find_etcd(), *(f"--{name}={value}" for name, value in options.items())]

    def is_ready(self) -> bool:
        """Whether it has a leader, itself."""
        try:
            return bool(ask(self.url, "maintenance/status").get("leader"))
        except OSError:
            return False

    def forget(self) -> None:
        """As one that was made anew in its place."""
        self.kill()
        shutil.rmtree(self.home / "data")
        self.start()


def ask(url: str, path: str, **body: Any) -> dict[str, Any]:
    """What the server says to one question of its JSON gateway."""
    request = urllib.request.Request(
        f"{url.replace('etcd://', 'http://')}/v3/{path}",
        data=json.dumps(body).encode(),
        headers={"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=_ANSWER_S) as answer:
        found: dict[str, Any] = json.load(answer)
        return found


def given_url() -> str | None:
    """The server that the environment names, if it does."""
    return os.environ.get(URL_VARIABLE) or None


@functools.cache
def find_etcd() -> str:
    """The program; Unavailable says what was tried."""
    found = shutil.which("etcd")
    if found is not None:
        return found
    try:
        install_debian_package("etcd-server")
    except Unavailable as error:
        raise Unavailable(
            f"no etcd: none on this machine, and {error}. Install one, or set {URL_VARIABLE}."
        ) from error
    found = shutil.which("etcd")
    if found is None:
        raise Unavailable("Debian's package etcd-server was installed, but its program is not on the PATH")
    return found


def require_etcd() -> None:
    """Go on only if a server of our own can be had; otherwise skip on a laptop and fail in CI."""
    try:
        find_etcd()
        server_account()
    except Unavailable as error:
        skip_or_fail(str(error))
