"""The stores on which pairs of operations are stepped: PostgreSQL by statement, SQLite by transaction.

On SQLite one thread writes, so a transaction is never interrupted: what can be interleaved is the transactions of
operations that have several (a planner that looks, then plans), and readers with writers.
"""

import copy
from typing import Any, Protocol

import asyncpg

from hourhand.clock import ManualClock
from hourhand.stores.postgres import PostgresStore
from hourhand.stores.postgres.statements import statements
from tests.contract.harness import KEEP_US, LEAD_US, START_AT, Harness, SqliteMemoryHarness
from tests.contract.postgres_harness import PostgresHarness
from tests.contract.scene import Scene
from tests.interleavings.explorer import Sides
from tests.interleavings.footprints import PASSING, TABLES
from tests.interleavings.stepper import Observer, Side, SteppedEngine, step_by_statement

_KEPT = {"meta", "segments", "pools"}
_CLEAR = "; ".join(f"DELETE FROM {table}" for table in sorted(TABLES - _KEPT))


class World(Protocol):
    """A store with two more doors whose users are stepped."""

    observer: Observer | None

    async def begin(self) -> Scene:
        """An empty store at its beginning, seen from beside."""
        ...

    async def sides(self) -> tuple[Sides, tuple[Scene, Scene]]:
        """Two sides, each with the store as it sees it."""
        ...

    async def close(self) -> None:
        """Let go."""
        ...


class _Door:
    """The store as one side sees it, with the time that all share."""

    def __init__(self, store: Any, harness: Harness, side: Side) -> None:
        self.store = store
        self._harness = harness
        self._side = side

    async def let_pass(self, us: int) -> None:
        """Time passes, as a step of its own."""
        await self._side.stop("time passes", PASSING)
        self._harness.advance(us)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._harness, name)


def _scene(store: Any, harness: Any, side: Side, first_node: int) -> Scene:
    scene = Scene(_Door(store, harness, side))  # type: ignore[arg-type]
    scene._nodes = first_node
    return scene


class PostgresWorld:
    """Three stores on one database: one from beside, two that are stepped."""

    def __init__(self, url: str) -> None:
        self._url = url
        self.observer: Observer | None = None
        self._connection: Any = None
        self._harness = PostgresHarness(url)
        self._doors: list[PostgresStore] = []
        self._real: list[Any] = []

    async def open(self) -> "PostgresWorld":
        self._connection = await asyncpg.connect(self._url)
        # two that wait for each other are to be parted soon
        await self._connection.execute(
            f"ALTER DATABASE {self._url.rpartition('/')[2]} SET deadlock_timeout = '20ms'"
        )
        self.observer = _Locks(self._connection)
        await self._harness.open()
        for _ in range(2):
            store = await PostgresStore.open(
                self._url, clock=self._harness.clock, lead_us=LEAD_US, keep_us=KEEP_US, pool_size=2
            )
            self._doors.append(store)
            self._real.append(store._engine._connection)
        return self

    async def begin(self) -> Scene:
        await self._connection.execute(_CLEAR)
        self._harness.set_now(START_AT)
        for store in (self._harness.store, *self._doors):
            store._known_clocks = {}
        return Scene(self._harness)

    async def sides(self) -> tuple[Sides, tuple[Scene, Scene]]:
        sides = (Side("L"), Side("R"))
        for store, real, side in zip(self._doors, self._real, sides, strict=True):
            store._engine._connection = real  # type: ignore[method-assign]
            step_by_statement(store, side)
        left, right = self._doors
        return sides, (
            _scene(left, self._harness, sides[0], 1_000),
            _scene(right, self._harness, sides[1], 2_000),
        )

    async def close(self) -> None:
        for store in self._doors:
            await store.close()
        await self._harness.close()
        await self._connection.close()


class _Locks:
    def __init__(self, connection: Any) -> None:
        self._connection = connection

    async def is_blocked(self, pid: int) -> bool:
        return bool(await self._connection.fetchval("SELECT cardinality(pg_blocking_pids($1)) > 0", pid))


class SqliteWorld:
    """A store in memory; each beginning is a new one."""

    observer: Observer | None = None

    def __init__(self) -> None:
        self._harness: SqliteMemoryHarness | None = None

    async def begin(self) -> Scene:
        await self.close()
        self._harness = SqliteMemoryHarness()
        assert isinstance(self._harness.clock, ManualClock)
        return Scene(self._harness)

    async def sides(self) -> tuple[Sides, tuple[Scene, Scene]]:
        assert self._harness is not None
        sides = (Side("L"), Side("R"))
        doors = []
        for side in sides:
            door = copy.copy(self._harness.store)
            door._engine = SteppedEngine(door._engine, side)  # type: ignore[assignment]
            doors.append(door)
        return sides, (
            _scene(doors[0], self._harness, sides[0], 1_000),
            _scene(doors[1], self._harness, sides[1], 2_000),
        )

    async def close(self) -> None:
        if self._harness is not None:
            await self._harness.close()


def named(story: list[str]) -> list[str]:
    """Steps by the names of their statements."""
    names = {statement.text: name for name, statement in statements().items()}
    return [f"{step[0]} {names.get(step[2:], step[2:])}" for step in story]
