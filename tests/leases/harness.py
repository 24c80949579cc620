"""What the contract suite of leases needs of an adapter: schedulers on one store, and time that passes.

`Watch` is told of every renewal and knows what must hold whatever happens: a segment that two nodes plan at once
is planned under two fences, and the newer one is the store's.
"""

import itertools
from collections.abc import Mapping
from typing import Protocol

from hourhand.clock import Clock, ManualClock
from hourhand.core.identity import SEGMENTS
from hourhand.core.instant import SECOND_US
from hourhand.ids import IdSource
from hourhand.leases.allotted import AllottedLeases
from hourhand.leases.board import Board
from hourhand.leases.native import NativeLeases
from hourhand.ports.leases import Leases
from hourhand.ports.store import Store
from hourhand.stores.sqlite import SqliteStore
from hourhand.telemetry import Telemetry
from tests.leases.memory_board import MemoryServer
from tests.leases.ways import PATIENCE_S, Ways

START_AT = 1_794_819_600_000_000  # 2026-11-16T09:00:00Z
ALL = frozenset(range(SEGMENTS))

_names = itertools.count(1)


class Watch:
    """Every fence that was ever told, and to whom."""

    def __init__(self) -> None:
        self._owners: dict[tuple[int, int], int] = {}

    def told(self, node: int, held: Mapping[int, int]) -> None:
        for place in held.items():
            owner = self._owners.setdefault(place, node)
            assert owner == node, f"segment {place[0]} under fence {place[1]} for {owner:x} and {node:x}"


class Node:
    """A scheduler without anything to plan."""

    def __init__(self, leases: Leases, watch: Watch) -> None:
        self.leases = leases
        self.id = 0
        self.held: Mapping[int, int] = {}
        self._watch = watch

    async def join(self) -> "Node":
        self.id = await self.leases.join()
        return await self._look()

    async def renew(self) -> "Node":
        await self.leases.renew()
        return await self._look()

    async def leave(self) -> None:
        await self.leases.leave()
        await self._look()

    async def _look(self) -> "Node":
        self.held = await self.leases.segments()
        self._watch.told(self.id, self.held)
        return self


class LeasesHarness(Protocol):
    """One adapter under test."""

    store: Store
    lease_us: int

    def node(self) -> Node:
        """A scheduler that has not joined."""
        ...

    async def pass_time(self, us: int) -> None:
        """Let time pass, for the store and for the lease server."""
        ...

    async def close(self) -> None:
        """Let go."""
        ...


class _Harness:
    """What all have in common."""

    lease_us = 3 * SECOND_US

    def __init__(self, store: Store, clock: Clock) -> None:
        self.store = store
        self.clock = clock
        self.ids = IdSource(clock)
        self.telemetry = Telemetry()
        self.watch = Watch()
        self.boards: list[Board] = []

    def node(self) -> Node:
        return Node(self.leases(), self.watch)

    def leases(self) -> Leases:
        raise AssertionError("each adapter makes its own")

    def allotted(self, board: Board) -> AllottedLeases:
        self.boards.append(board)
        return AllottedLeases(
            board=board,
            store=self.store,
            ids=self.ids,
            clock=self.clock,
            telemetry=self.telemetry,
            kind="scheduler",
            name=f"node {next(_names)}",
            segments=SEGMENTS,
            lease_us=self.lease_us,
        )

    async def close(self) -> None:
        for board in self.boards:
            await board.close()
        await self.store.close()


class NativeHarness(_Harness):
    """The store alone, with its time in hand."""

    def __init__(self, store: Store, clock: ManualClock) -> None:
        super().__init__(store, clock)
        self._clock = clock

    def leases(self) -> Leases:
        name = f"node {next(_names)}"
        return NativeLeases(
            store=self.store, ids=self.ids, kind="scheduler", name=name, plans=True, lease_us=self.lease_us
        )

    async def pass_time(self, us: int) -> None:
        self._clock.advance(us)


class MemoryHarness(_Harness):
    """The stand-in for a lease server, on the same clock as the store."""

    def __init__(self) -> None:
        clock = ManualClock(START_AT)
        super().__init__(SqliteStore.in_memory(clock=clock), clock)
        self._clock = clock
        self.server = MemoryServer(clock, self.lease_us)

    def leases(self) -> Leases:
        return self.allotted(self.server.board())

    async def pass_time(self, us: int) -> None:
        self._clock.advance(us)


class ServerHarness(_Harness):
    """A real lease server, by its URL."""

    def __init__(self, url: str, patience_s: float = PATIENCE_S) -> None:
        clock = ManualClock(START_AT)
        super().__init__(SqliteStore.in_memory(clock=clock), clock)
        self._clock = clock
        self.ways = Ways(url, clock, patience_s)

    def leases(self) -> Leases:
        return self.allotted(self.ways.board(self.lease_us))

    async def pass_time(self, us: int) -> None:
        self._clock.advance(us)
        await self.ways.pass_time(us)

    async def close(self) -> None:
        await super().close()
        await self.ways.close()
