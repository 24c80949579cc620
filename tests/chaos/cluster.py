"""A real cluster: durable PostgreSQL servers, and `hourhand api`, `scheduler` and `worker` as processes.

Every process reaches every server through a proxy of its own, so that single processes can be cut off, and
reads a wall clock that can be set wrong. Logs stay in the folder, the servers' too.
"""

import contextlib
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from tests.chaos.api import Api, now
from tests.chaos.jumping_clock import Dial
from tests.chaos.process import Command, environment, wait_for
from tests.servers.machine import free_port
from tests.servers.postgres import PostgresServer
from tests.servers.tcp_proxy import ThreadedTcpProxy

START_S = 90.0  # a dozen processes begin at once
REQUEST_S = 6.0
_DATABASE = "hourhand"


class Part(Command):
    """One process of a cluster, with its ways to the databases and its clock."""

    def __init__(
        self,
        folder: Path,
        kind: str,
        number: int,
        urls: Sequence[str],
        *,
        arguments: Sequence[str] = (),
        more: Mapping[str, str] | None = None,
    ) -> None:
        self.kind = kind
        self.spawned_at = 0
        self.port = free_port()
        self.api = Api(self.port, REQUEST_S)
        self.dial = Dial(folder / f"{kind}-{number}.clock")
        self.proxies = [ThreadedTcpProxy.to_url(url).start() for url in urls]
        listen = "HOURHAND_SERVER_LISTEN" if kind == "api" else "HOURHAND_TELEMETRY_LISTEN"
        through = [proxy.url_of(url) for proxy, url in zip(self.proxies, urls, strict=True)]
        super().__init__(
            folder,
            name=f"{kind}-{number}",
            verb=kind,
            arguments=arguments,
            probe=self.api,
            more={**_store(through), listen: f"127.0.0.1:{self.port}", **dict(more or {})},
        )
        self.launcher = self.dial.launcher

    def spawn(self, before: Callable[[], None] | None = None) -> None:
        """Begin a life; it is not ready yet."""
        super().spawn(before)
        self.spawned_at = now()

    def close(self) -> None:
        """Gone for good."""
        self.kill()
        for proxy in self.proxies:
            proxy.stop()


class Cluster:
    """Its servers and its parts; a context manager that ends them all."""

    def __init__(
        self,
        folder: Path,
        *,
        databases: int = 1,
        apis: int = 2,
        schedulers: int = 3,
        workers: int = 3,
        durable: bool = True,
        more: Mapping[str, str] | None = None,
        worker_arguments: Sequence[str] = (),
        server_settings: Mapping[str, str] | None = None,
        urls: Sequence[str] = (),
    ) -> None:
        """`urls`: databases with our schema that are there already, instead of servers of its own."""
        self.folder = folder
        self.servers = [
            PostgresServer(durable=durable, settings=server_settings or {})
            for _ in range(0 if urls else databases)
        ]
        self.urls = list(urls)
        self.parts: list[Part] = []
        self._counts = {"api": apis, "scheduler": schedulers, "worker": workers}
        self._more = dict(more or {})
        self._worker_arguments = worker_arguments

    def start(self) -> Self:
        """Servers, schema, all parts; return once every part is ready."""
        self.prepare()
        for kind, count in self._counts.items():
            for number in range(1, count + 1):
                self.add(kind, number).spawn()
        self.wait_ready()
        return self

    def prepare(self) -> None:
        """Servers with our schema, and nobody who uses them."""
        if self.urls:
            return
        for server in self.servers:
            self.urls.append(server.start().create_database(_DATABASE))
        done = subprocess.run(
            [sys.executable, "-m", "hourhand", "migrate", "up"],
            cwd=self.folder,
            env=environment(**_store(self.urls)),
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stdout + done.stderr

    def add(self, kind: str, number: int) -> Part:
        """One more process, not started yet."""
        arguments = self._worker_arguments if kind == "worker" else ()
        part = Part(self.folder, kind, number, self.urls, arguments=arguments, more=self._more)
        self.parts.append(part)
        return part

    def of(self, kind: str) -> list[Part]:
        """The parts of a kind."""
        return [part for part in self.parts if part.kind == kind]

    @property
    def api(self) -> Api:
        """Of the first."""
        return self.of("api")[0].api

    def wait_ready(self, within_s: float = START_S) -> None:
        """Return once every part says that nothing is wrong with it."""
        for part in self.parts:
            wait_for(f"{part.name} ready", part.is_ready, within_s)

    def read(self, query: str) -> list[tuple[Any, ...]]:
        """Rows of a query from all databases, around the proxies."""
        found: list[tuple[Any, ...]] = []
        for server in self.servers:
            found += [tuple(row) for row in server.query(query, database=_DATABASE)]
        return found

    def node(self, part: Part) -> tuple[int, bool]:
        """The newest node id of a process in the first database, and whether its lease runs."""
        assert part.process is not None
        rows = self.read(
            "SELECT id, lease_until > extract(epoch FROM clock_timestamp()) * 1000000 FROM nodes "
            f"WHERE name LIKE '%-{part.process.pid}' ORDER BY started_at DESC LIMIT 1"
        )
        assert rows, f"{part.name} is no node"
        return rows[0][0], rows[0][1]

    def holdings(self) -> dict[int, int]:
        """How many segments each node with a live lease holds."""
        rows = self.read(
            "SELECT s.node_id, count(*) FROM segments AS s JOIN nodes AS n ON n.id = s.node_id "
            "WHERE n.lease_until > extract(epoch FROM clock_timestamp()) * 1000000 GROUP BY 1"
        )
        return dict(rows)

    def fences(self) -> dict[int, int]:
        """Each segment's fence."""
        return dict(self.read("SELECT segment, fence FROM segments"))

    def stop(self) -> None:
        """Kill everything; what was said stays in the folder."""
        for part in self.parts:
            part.close()
        for number, server in enumerate(self.servers):
            with contextlib.suppress(RuntimeError, FileNotFoundError):
                shutil.copyfile(server.log, self.folder / f"postgres-{number}.log")
            server.stop()

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.stop()
            raise

    def __exit__(self, *_: object) -> None:
        self.stop()


def _store(urls: Sequence[str]) -> dict[str, str]:
    """The settings that name the databases."""
    if len(urls) == 1:
        return {"HOURHAND_STORE_URL": urls[0]}
    return {"HOURHAND_STORE_SHARDS": ",".join(urls)}
