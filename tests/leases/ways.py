"""Ways to real lease servers, whose time a test has in hand: nobody waits for a lease to run out.

Leases there are a thousand times as long as the test's, so that no stall of the machine ends one; and when a
test lets its time pass, a thousand times as much is taken from them. Each node has a client of its own, as each
process has. Whether servers end leases by themselves is tested apart.
"""

import contextlib
import itertools
import os
from collections.abc import Collection

from redis.asyncio import Redis
from redis.exceptions import RedisError

from hourhand.clock import Clock
from hourhand.leases.board import Away, Board, View
from hourhand.leases.etcd import EtcdBoard
from hourhand.leases.etcd_gateway import EtcdGateway
from hourhand.leases.redis import RedisBoard, connect

PATIENCE_S = 1.0
STRETCH = 1_000

_names = itertools.count(1)


class Ways:
    """To one server; all boards are the same one, under a name that no other test has."""

    def __init__(self, url: str, clock: Clock, patience_s: float = PATIENCE_S) -> None:
        self.url = url
        self.name = f"test-{os.getpid()}-{os.urandom(4).hex()}:{next(_names)}"
        self._clock = clock
        self._patience_s = patience_s
        self._clients: list[Redis] = []
        self._boards: list[DatedBoard] = []
        self._gateways: list[EtcdGateway] = []

    def board(self, lease_us: int, url: str | None = None) -> Board:
        """One more client, perhaps by another way to the same server."""
        url = url or self.url
        stretched_us = lease_us * STRETCH
        if url.startswith("redis"):
            client = connect(url, self._patience_s)
            self._clients.append(client)
            return RedisBoard(
                client, url=url, name=self.name, lease_us=stretched_us, patience_s=self._patience_s
            )
        self._gateways.append(EtcdGateway(url, self._patience_s))
        board = DatedBoard(self._gateways[-1], name=self.name, lease_us=stretched_us)
        board.date(self._clock, lease_us)
        self._boards.append(board)
        return board

    async def pass_time(self, us: int) -> None:
        """Take so much from every lease, after the clock has moved on; a server that is away forgets about it."""
        with contextlib.suppress(RedisError):
            if self._clients:
                client = self._clients[0]
                key = f"{{hh:{self.name}}}:leases:members"
                for member in await client.zrange(key, 0, -1):
                    await client.zincrby(key, -us * STRETCH / 1000, member)
        for board in self._boards:
            await board.end_if_over(self._gateways[0])

    async def close(self) -> None:
        for client in self._clients:
            await client.aclose()
        for gateway in self._gateways:
            await gateway.close()


class DatedBoard(EtcdBoard):
    """Knows when its lease would be over on the test's clock, and then has the server end it as it would itself."""

    def date(self, clock: Clock, lease_us: int) -> None:
        self._clock = clock
        self._lease_us = lease_us
        self._over_at: int | None = None

    async def enter(self, node_id: int, claims: Collection[int]) -> View:
        view = await super().enter(node_id, claims)
        self._over_at = self._clock.now() + self._lease_us
        return view

    async def renew(self, node_id: int) -> View:
        self._read_at = None  # what the watch would do soon
        view = await super().renew(node_id)
        self._over_at = self._clock.now() + self._lease_us
        return view

    async def end_if_over(self, gateway: EtcdGateway) -> None:
        if self._over_at is not None and self._over_at <= self._clock.now():
            self._over_at = None
            with contextlib.suppress(Away):
                await gateway.ask("lease/revoke", ID=self._lease_id)
