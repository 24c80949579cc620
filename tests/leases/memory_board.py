"""A lease server in memory, on the test's clock: what Redis and etcd are to us, by the letter of the contract.

The contract suite runs on it too. It can be away, slow, emptied, and lose its answers.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping

from hourhand.clock import Clock
from hourhand.leases.board import Away, Forgotten, View
from hourhand.ports.store import LeaseLost


class MemoryServer:
    """What the boards of all nodes have in common."""

    def __init__(self, clock: Clock, lease_us: int) -> None:
        self.clock = clock
        self.lease_us = lease_us
        self.members: dict[int, int] = {}
        self.holders: dict[int, int] = {}
        self.incarnation = 1
        self.away = False
        self.answers_lost = 0  # of the next calls
        self.silence_s = 0.0  # how long a call takes to fail while it is away
        self.calls = 0

    def forget(self) -> None:
        """As FLUSHALL, or an empty replica."""
        self.members, self.holders = {}, {}
        self.incarnation += 1

    def board(self) -> "MemoryBoard":
        """As another process sees it."""
        return MemoryBoard(self)

    def tidy(self) -> None:
        now_at = self.clock.now()
        self.members = {node: until for node, until in self.members.items() if until > now_at}

    def stay(self, node_id: int) -> None:
        self.members[node_id] = self.clock.now() + self.lease_us

    def view(self) -> View:
        return View(members=frozenset(self.members), holders=dict(self.holders))


class MemoryBoard:
    """One node's way to it; `cut` is a way that leads nowhere."""

    where = "memory"

    def __init__(self, server: MemoryServer) -> None:
        self._server = server
        self._incarnation = 0
        self.cut = False
        self.closed = False

    async def enter(self, node_id: int, claims: Collection[int]) -> View:
        await self._reach()
        self._incarnation = self._server.incarnation
        self._server.stay(node_id)
        self._server.holders |= dict.fromkeys(claims, node_id)
        return self._answer()

    async def renew(self, node_id: int) -> View:
        await self._reach()
        self._require(node_id)
        return self._answer()

    async def change(self, node_id: int, gives: Collection[int], takes: Mapping[int, int]) -> View:
        await self._reach()
        self._require(node_id)
        holders, members = self._server.holders, self._server.members
        for segment in gives:
            if holders.get(segment) == node_id:
                del holders[segment]
        for segment, heir_of in takes.items():
            if holders.get(segment, 0) == heir_of and heir_of not in members:
                holders[segment] = node_id
        return self._answer()

    async def leave(self, node_id: int) -> None:
        await self._reach()
        self._server.members.pop(node_id, None)
        self._server.holders = {one: node for one, node in self._server.holders.items() if node != node_id}
        self._answer()

    def subscribe(self, wake: Callable[[], None]) -> None:
        pass

    async def close(self) -> None:
        self.closed = True

    async def _reach(self) -> None:
        self._server.calls += 1
        if self._server.away or self.cut:
            if self._server.silence_s:
                await asyncio.sleep(self._server.silence_s)
            raise Away("no answer")
        self._server.tidy()

    def _require(self, node_id: int) -> None:
        if self._incarnation != self._server.incarnation:
            raise Forgotten
        if node_id not in self._server.members:
            raise LeaseLost
        self._server.stay(node_id)

    def _answer(self) -> View:
        if self._server.answers_lost:
            self._server.answers_lost -= 1
            raise Away("the answer was lost")
        return self._server.view()
