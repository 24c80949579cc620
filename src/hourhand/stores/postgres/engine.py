"""Runs operations on the server: a pool of connections, a transaction each, errors in our words.

An operation that loses a race (deadlock, serialisation, a key that somebody else took meanwhile) is
started over on the spot. Anything wrong with the connection or the server is `Unavailable`: the verb then
happened fully or not at all, and may be repeated. Behind a pooler that shares connections between
transactions nothing is kept on a connection: no prepared statements, no settings beyond the transaction.
"""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import asyncpg

from hourhand.clock import Clock
from hourhand.errors import CannotStart, HourhandError, StorageFull, Unavailable
from hourhand.stores.postgres.server_clock import ServerClock
from hourhand.stores.postgres.statements import statements
from hourhand.stores.relational.tx import ChangedMeanwhile, Operation, Parameters, T

POOL_SIZE = 8
_TRIES = 6
_CONNECT_S = 5.0
_ACQUIRE_S = 10.0
_COMMAND_S = 30.0
_SETTINGS = {
    "application_name": "hourhand",
    "lock_timeout": "10s",
    "statement_timeout": "30s",
    "idle_in_transaction_session_timeout": "30s",
    # Hot tables are empty or full from one moment to the next: plans must not follow their statistics,
    # and every statement has an index for its one way.
    "plan_cache_mode": "force_generic_plan",
    "enable_seqscan": "off",
    "jit": "off",
}
_AGAIN = (
    asyncpg.DeadlockDetectedError,
    asyncpg.SerializationError,
    asyncpg.UniqueViolationError,
    ChangedMeanwhile,
)
_GONE = (asyncpg.PostgresConnectionError, asyncpg.InterfaceError, OSError, TimeoutError)


class PostgresTx:
    """A transaction on one connection of the pool."""

    def __init__(self, connection: Any, clock: Clock | None, server_clock: ServerClock) -> None:
        self._connection = connection
        self._clock = clock
        self._server_clock = server_clock
        self._statements = statements()
        self.now_at = 0
        self.hints: set[str] = set()

    async def run(self, name: str, parameters: Parameters = ()) -> int:
        """Execute a named statement."""
        text, values = self._bound(name, parameters)
        status = await self._connection.execute(text, *values)
        return int(status.rpartition(" ")[2])

    async def one(self, name: str, parameters: Parameters = ()) -> Any:
        """The first row of a named query, None where there is none."""
        text, values = self._bound(name, parameters)
        return await self._connection.fetchrow(text, *values)

    async def all(self, name: str, parameters: Parameters = ()) -> list[Any]:
        """All rows of a named query."""
        text, values = self._bound(name, parameters)
        return await self._connection.fetch(text, *values)  # type: ignore[no-any-return]

    async def insert(self, name: str, rows: Sequence[Sequence[Any]]) -> None:
        """Execute a named insert for many rows in one step, each column as an array."""
        if rows:
            await self._connection.execute(self._statements[name].text, *map(list, zip(*rows, strict=True)))

    def array(self, values: Sequence[int] | Sequence[str]) -> Any:
        """A list is an array."""
        return list(values)

    async def look_at_clock(self) -> None:
        """Ask the server for its time."""
        if self._clock is not None:
            self.now_at = self._clock.now()
            return
        self.now_at = await self._connection.fetchval(self._statements["now"].text)
        self._server_clock.seen(self.now_at)

    def _bound(self, name: str, parameters: Parameters) -> tuple[str, Sequence[Any]]:
        statement = self._statements[name]
        if isinstance(parameters, dict):
            return statement.text, [parameters[name] for name in statement.names]
        return statement.text, parameters


class PostgresEngine:
    """A pool of connections that reconnects by itself."""

    def __init__(
        self,
        url: str,
        *,
        pooled: bool,
        clock: Clock | None,
        server_clock: ServerClock,
        notify: Callable[[Iterable[str]], None],
        pool_size: int = POOL_SIZE,
    ) -> None:
        self._url = url
        self.pooled = pooled
        self._clock = clock
        self._server_clock = server_clock
        self._notify = notify
        self._pool_size = pool_size
        self._pool: Any = None
        self._opening = asyncio.Lock()
        self._closed = False
        self._random = random.Random()  # noqa: S311 - spreads retries, keeps no secret
        self.mend: Callable[[], Awaitable[None]] | None = None  # makes what a write found missing
        settings = "; ".join(f"SET LOCAL {name} = '{value}'" for name, value in _SETTINGS.items())
        own = f"; {settings}" if pooled else ""
        self._begin = f"BEGIN{own}"
        self._begin_reading = f"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY{own}"

    async def on_connection(self, work: Callable[[Any], Awaitable[T]]) -> T:
        """Let something work on a bare connection, outside our transactions: schema, partitions."""
        async with self._connection() as connection:
            return await work(connection)

    async def write(self, operation: Operation[T], *, timed: bool = True) -> T:
        """Execute in a transaction that is durable when this returns; over again when it loses a race."""
        for number in range(1, _TRIES):
            try:
                return await self._execute(self._begin, operation, timed)
            except asyncpg.CheckViolationError as error:
                if self.mend is None or "no partition" not in str(error):
                    raise translated(error) from error
                await self.mend()
            except _AGAIN:
                await asyncio.sleep(self._random.random() * 0.01 * 2**number)
        try:
            return await self._execute(self._begin, operation, timed)
        except _AGAIN as error:
            raise Unavailable(f"the store is too busy with the same rows: {error}") from error

    async def read(self, operation: Operation[T]) -> T:
        """Execute on one snapshot."""
        return await self._execute(self._begin_reading, operation, timed=True)

    async def execute(self, text: str, *values: Any) -> None:
        """One statement outside any transaction; waits for its turn like the others."""
        async with self._connection() as connection:
            if self.pooled:  # its parse and its execution must meet the same server
                await connection.execute(self._begin)
                await connection.execute(text, *values)
                await connection.execute("COMMIT")
            else:
                await connection.execute(text, *values)

    async def close(self) -> None:
        """Let what is under way end, for a moment, and hang up."""
        self._closed = True
        if self._pool is None:
            return
        try:
            async with asyncio.timeout(_CONNECT_S):
                await self._pool.close()
        except TimeoutError:
            self._pool.terminate()

    async def _execute(self, begin: str, operation: Operation[T], timed: bool) -> T:
        async with self._connection() as connection:
            tx = PostgresTx(connection, self._clock, self._server_clock)
            await connection.execute(begin)
            try:
                if timed:
                    await tx.look_at_clock()
                result = await operation(tx)
            except BaseException:
                await _roll_back(connection)
                raise
            await connection.execute("COMMIT")
        if tx.hints:
            self._notify(tx.hints)
        return result

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator[Any]:
        if self._closed:
            raise Unavailable("the store is closed")
        try:
            pool = self._pool or await self._open_pool()
            connection = await pool.acquire(timeout=_ACQUIRE_S)
        except (asyncpg.PostgresError, *_GONE) as error:
            raise translated(error) from error
        broken = True
        try:
            yield connection
            broken = False
        except (*_AGAIN, asyncpg.CheckViolationError):
            broken = False
            raise
        except HourhandError:
            broken = False
            raise
        except asyncpg.PostgresError as error:
            broken = _must_reconnect(error)
            raise translated(error) from error
        except _GONE as error:
            raise translated(error) from error
        finally:
            if broken:
                connection.terminate()
            await pool.release(connection)

    async def _open_pool(self) -> Any:
        async with self._opening:
            if self._pool is None:
                pool = asyncpg.create_pool(
                    self._url,
                    min_size=1,
                    max_size=self._pool_size,
                    timeout=_CONNECT_S,
                    command_timeout=_COMMAND_S,
                    reset=_keep,
                    max_inactive_connection_lifetime=300,
                    statement_cache_size=0 if self.pooled else 500,
                    max_cached_statement_lifetime=0,
                    server_settings={} if self.pooled else _SETTINGS,
                )
                self._pool = await pool
        return self._pool


def translated(error: BaseException) -> HourhandError:
    """A driver's error in our words."""
    match error:
        case asyncpg.DiskFullError():
            return StorageFull("the disk of the database is full; nothing was written")
        case asyncpg.ReadOnlySQLTransactionError():
            return Unavailable("the database is read-only (a standby, or after a failover); trying again")
        case asyncpg.TooManyConnectionsError():
            return Unavailable("the database has no connection left")
        case asyncpg.QueryCanceledError() | asyncpg.LockNotAvailableError():
            return Unavailable(f"the database took too long: {error}")
        case asyncpg.InvalidAuthorizationSpecificationError() | asyncpg.InvalidCatalogNameError():
            return CannotStart(f"the database refuses the connection: {error}")
        case TimeoutError():
            return Unavailable("the database does not answer in time")
        case _:
            return Unavailable(f"the database cannot do that right now: {str(error) or type(error).__name__}")


def _must_reconnect(error: asyncpg.PostgresError) -> bool:
    """Whether another connection may find a server that can do better."""
    kinds = (
        asyncpg.ReadOnlySQLTransactionError,
        asyncpg.OperatorInterventionError,
        asyncpg.InvalidSQLStatementNameError,
        asyncpg.InvalidCachedStatementError,
    )
    return isinstance(error, kinds)


async def _roll_back(connection: Any) -> None:
    """Give up a transaction; a connection that cannot even do that is closed, which does it too."""
    try:
        if not connection.is_closed():
            await asyncio.shield(connection.execute("ROLLBACK", timeout=_CONNECT_S))
    except (asyncpg.PostgresError, *_GONE):
        connection.terminate()


async def _keep(connection: Any) -> None:
    """Nothing to reset: every transaction ends before its connection is released."""
