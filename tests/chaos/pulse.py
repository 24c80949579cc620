"""How quick the machine itself is: a small commit again and again, around everything that is tested.

Where even that takes long, somebody else has the disk or the processors, and lateness proves nothing.
"""

import asyncio
import threading
from collections.abc import Sequence
from typing import Self

import asyncpg

from tests.chaos.api import now
from tests.chaos.calls import SECOND_US
from tests.servers.postgres import PostgresServer

SLOW_US = 400_000  # usually some milliseconds
_BETWEEN_S = 0.1
_STATEMENT = "CREATE TABLE IF NOT EXISTS pulse (at bigint)"


class Pulse:
    """Commits on servers that nobody harms meanwhile; a context manager."""

    def __init__(self, servers: Sequence[PostgresServer]) -> None:
        self._urls = [server.admin_url for server in servers]
        self._ending = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(url,), daemon=True) for url in self._urls]
        self.slow_at = 0  # when a commit last took long
        self.worst_us = 0

    def quick_for(self) -> int:
        """Microseconds since the last slow commit."""
        return now() - self.slow_at

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        for thread in self._threads:
            thread.join(10)

    def _run(self, url: str) -> None:
        asyncio.run(self._beat(url))

    async def _beat(self, url: str) -> None:
        connection = await asyncpg.connect(url, timeout=30)
        await connection.execute(_STATEMENT)
        while not self._ending.is_set():
            began_at = now()
            await connection.execute("INSERT INTO pulse VALUES (1)")
            await asyncio.sleep(_BETWEEN_S)
            took_us = now() - began_at - round(_BETWEEN_S * SECOND_US)
            self.worst_us = max(self.worst_us, took_us)
            if took_us > SLOW_US:
                self.slow_at = now()
        await connection.close()
