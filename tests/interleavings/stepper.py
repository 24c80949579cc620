"""Two operations that stop before each of their steps until they are let go on, one step at a time.

A step is a statement on PostgreSQL and a transaction on SQLite. A side that has been let go comes to its next step,
ends, or waits for a lock that the other one holds; the last is asked of the server, not guessed from the time it takes.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Protocol

from tests.interleavings.footprints import COMMIT, WHOLE, Footprint, committed, footprint

DEADLINE_S = 30.0
_PROBE_S = 0.003  # a statement that takes longer may be waiting for a lock: the server is asked


class Observer(Protocol):
    """Who can tell whether a side waits for a lock."""

    async def is_blocked(self, pid: int) -> bool:
        """Whether this connection waits for another one."""
        ...


class Side:
    """One of the two operations, and where it stands."""

    def __init__(self, letter: str) -> None:
        self.letter = letter
        self.task: asyncio.Task[Any] | None = None
        self.text: str | None = None  # of the step it stands before
        self.step: Footprint = WHOLE
        self.pid: int | None = None
        self.done_steps: list[str] = []
        self._writes: frozenset[str] = frozenset()
        self._go: asyncio.Future[None] | None = None
        self._news = asyncio.Event()
        self._is_dead = False

    def begin(self, operation: Callable[[], Awaitable[Any]]) -> None:
        """Start the operation; it comes to its first step by itself."""

        async def work() -> Any:
            try:
                return await operation()
            finally:
                self._news.set()

        self.task = asyncio.create_task(work())

    @property
    def is_over(self) -> bool:
        """Whether the operation has ended, well or not."""
        return self.task is not None and self.task.done()

    @property
    def stands(self) -> bool:
        """Whether it waits to be let go on."""
        return self._go is not None

    async def stop(self, text: str, step: Footprint, pid: int | None = None) -> None:
        """Called by the operation before each step."""
        if self._is_dead:
            raise ConnectionResetError
        self.text, self.step, self.pid = text, step, pid
        self._go = asyncio.get_running_loop().create_future()
        self._news.set()
        try:
            await self._go
        finally:
            self._go = None

    async def before_statement(self, text: str, pid: int) -> None:
        """Stop before a statement, in the knowledge of what its transaction has written."""
        step = committed(self._writes) if text == COMMIT else footprint(text)
        await self.stop(text, step, pid)
        self._writes = frozenset() if text == COMMIT else self._writes | step.writes

    def begins_transaction(self) -> None:
        """What an earlier try wrote is taken back."""
        self._writes = frozenset()

    def let_go(self) -> None:
        """Allow the step that it stands before."""
        assert self._go is not None
        assert self.text is not None
        self.done_steps.append(self.text)
        self._news.clear()
        go, self._go = self._go, None
        go.set_result(None)

    async def come_to_rest(self, observer: Observer | None) -> bool:
        """Wait until it stands, is over, or waits for a lock; answers whether it is the last."""
        while not self.stands and not self.is_over:
            try:
                async with asyncio.timeout(None if observer is None else _PROBE_S):
                    await self._news.wait()
                    self._news.clear()
                    await asyncio.sleep(0)
            except TimeoutError:
                assert observer is not None
                if self.pid is not None and await observer.is_blocked(self.pid) and not self.stands:
                    return True
        return False

    async def die(self) -> None:
        """Be gone where it stands, as a process that is killed: what was not committed is taken back."""
        assert self.task is not None
        self._is_dead = True
        if self._go is not None and not self._go.done():
            self._go.set_exception(ConnectionResetError())
        else:
            self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)


class SteppedConnection:
    """A connection to PostgreSQL whose statements are a side's steps.

    BEGIN is none: what a transaction sees begins with its first statement. Nor is ROLLBACK, which follows a failure, nor
    what is told to other processes: that is said behind the operation's back, and may be lost.
    """

    def __init__(self, connection: Any, side: Side) -> None:
        self._connection = connection
        self._side = side

    def __getattr__(self, name: str) -> Any:
        verb = getattr(self._connection, name)
        if name not in ("execute", "fetch", "fetchrow", "fetchval"):
            return verb

        async def step(text: str, *values: Any, **options: Any) -> Any:
            if text.startswith("BEGIN"):
                self._side.begins_transaction()
            elif text != "ROLLBACK" and "pg_notify" not in text:
                await self._side.before_statement(text, self._connection.get_server_pid())
            return await verb(text, *values, **options)

        return step


def step_by_statement(store: Any, side: Side) -> None:
    """Make the statements of a PostgreSQL store a side's steps."""
    real = store._engine._connection

    @asynccontextmanager
    async def connection(within_s: float) -> AsyncIterator[Any]:
        async with real(within_s) as found:
            yield SteppedConnection(found, side)

    store._engine._connection = connection


class SteppedEngine:
    """An engine of SQLite whose transactions are a side's steps."""

    def __init__(self, engine: Any, side: Side) -> None:
        self._engine = engine
        self._side = side

    async def write(self, operation: Any) -> Any:
        await self._side.stop("write", WHOLE)
        return await self._engine.write(operation)

    async def read(self, operation: Any) -> Any:
        await self._side.stop("read", WHOLE)
        return await self._engine.read(operation)

    async def glance(self, operation: Any) -> Any:
        return await self.read(operation)
