"""Runs operations on the server: a pool of connections, a transaction each, errors in our words.

An operation that loses a race (deadlock, serialisation, a key that somebody else took meanwhile) is
started over on the spot. Anything wrong with the connection or the server is `Unavailable`: the verb then
happened fully or not at all, and may be repeated. A verb ends within its time whatever the server does.
Behind a pooler that shares connections between transactions nothing is kept on a connection: no prepared
statements, no settings beyond the transaction.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

import asyncpg

from hourhand.clock import Clock
from hourhand.errors import Unavailable
from hourhand.ids import draw
from hourhand.ports.acting import Actor, actor
from hourhand.stores.postgres.faults import (
    CONNECTION_FAULTS,
    is_about_values,
    must_reconnect,
    translated,
    unavailable,
)
from hourhand.stores.postgres.server_clock import ServerClock
from hourhand.stores.postgres.statements import statements
from hourhand.stores.relational.answers import marked
from hourhand.stores.relational.faults import unkeepable
from hourhand.stores.relational.tx import ChangedMeanwhile, Operation, Parameters, T

POOL_SIZE = 8
_IDLE_S = 300.0  # after which a connection that nobody uses is closed
_CACHED_STATEMENTS = 500  # per connection: all of ours

# How long a verb may take in all. People and sharded lists wait for reads; a worker renews its lease of 30 s
# every 10 s, so it must learn of a dead connection in time to try another. Verbs of the background may have
# hundreds of thousands of rows to write.
READ_S = 5.0
WRITE_S = 10.0
LONG_S = 60.0
_ACQUIRE_SHARE = 0.8  # of that time; then the answer can still say what was waited for
_CONNECT_S = 5.0
_ROLL_BACK_S = 0.5  # a connection that takes longer for this is not worth keeping

_TRIES = 6
_HURRY_MS = 100  # a claim skips what others hold; what it waits for all the same is mostly a deadlock to be
_SETTINGS = {
    "application_name": "hourhand",
    "lock_timeout": "5s",
    "statement_timeout": f"{LONG_S:g}s",
    # A process that is paused in the middle of a transaction keeps others from its rows: not for long.
    "idle_in_transaction_session_timeout": "5s",
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


class PostgresTx:
    """A transaction on one connection of the pool."""

    def __init__(
        self, connection: Any, clock: Clock | None, server_clock: ServerClock, actor: Actor | None
    ) -> None:
        self._connection = connection
        self._clock = clock
        self._server_clock = server_clock
        self._statements = statements()
        self.now_at = 0
        self.actor = actor
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
        asked_us = self._server_clock.monotonic_us()
        self.now_at = await self._connection.fetchval(self._statements["now"].text)
        self._server_clock.seen(self.now_at, asked_us)

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
        self.mend: Callable[[], Awaitable[None]] | None = None  # makes what a write found missing
        settings = "; ".join(f"SET LOCAL {name} = '{value}'" for name, value in _SETTINGS.items())
        own = f"; {settings}" if pooled else ""
        self._begin = f"BEGIN{own}"
        self._begin_hurried = f"{self._begin}; SET LOCAL lock_timeout = '{_HURRY_MS}ms'"
        self._begin_reading = f"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY{own}"

    async def on_connection(
        self, work: Callable[[Any], Awaitable[T]], *, within_s: float = WRITE_S, bare: bool = False
    ) -> T:
        """Let something work with statements of its own: schema, partitions.

        In a transaction, unless it is `bare`: then it opens those that it needs, for behind a pooler every
        statement with parameters needs one.
        """
        async with self._in_words(within_s), self._connection(within_s) as connection:
            if bare:
                return await work(connection)
            async with connection.transaction():
                return await work(connection)

    async def write(
        self,
        operation: Operation[T],
        *,
        timed: bool = True,
        within_s: float = WRITE_S,
        hurried: bool = False,
    ) -> T:
        """Execute in a transaction that is durable when this returns; over again when it loses a race.

        `hurried`: it waits for nobody's rows, but starts over.
        """
        operation = marked(operation)
        async with self._in_words(within_s):
            begin = self._begin_hurried if hurried else self._begin
            for number in range(1, _TRIES):
                try:
                    return await self._execute(begin, operation, timed, within_s)
                except asyncpg.CheckViolationError as error:
                    if self.mend is None or "no partition" not in str(error):
                        raise
                    await self.mend()
                except (*_AGAIN, asyncpg.LockNotAvailableError) as error:
                    if isinstance(error, asyncpg.LockNotAvailableError) and not hurried:
                        raise
                    await asyncio.sleep(draw() * 0.01 * 2**number)
            return await self._execute(begin, operation, timed, within_s)

    async def read(self, operation: Operation[T], *, within_s: float = READ_S) -> T:
        """Execute on one snapshot."""
        async with self._in_words(within_s):
            return await self._execute(self._begin_reading, operation, timed=True, within_s=within_s)

    async def glance(self, operation: Operation[T]) -> T:
        """A read like any other: the server is another process."""
        return await self.read(operation)

    async def execute(self, text: str, *values: Any) -> None:
        """One statement outside any transaction; waits for its turn like the others."""
        async with self._in_words(WRITE_S), self._connection(WRITE_S) as connection:
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
        except (asyncpg.PostgresError, *CONNECTION_FAULTS):
            self._pool.terminate()

    async def _execute(self, begin: str, operation: Operation[T], timed: bool, within_s: float) -> T:
        async with self._connection(within_s) as connection:
            tx = PostgresTx(connection, self._clock, self._server_clock, actor())
            await connection.execute(begin)
            if timed:
                await tx.look_at_clock()
            result = await operation(tx)
            if (
                await connection.execute("COMMIT") != "COMMIT"
            ):  # a server says so where a statement had failed
                raise Unavailable("the database took back what was to be committed")
        if tx.hints:
            self._notify(tx.hints)
        return result

    @asynccontextmanager
    async def _in_words(self, within_s: float) -> AsyncIterator[None]:
        """The whole of a verb: ends in time, and what goes wrong is said in our words."""
        try:
            async with asyncio.timeout(within_s):
                yield
        except _AGAIN as error:
            raise Unavailable(f"the store is too busy with the same rows: {type(error).__name__}") from error
        except (asyncpg.PostgresError, *CONNECTION_FAULTS) as error:
            if is_about_values(error):
                raise unkeepable() from error  # waiting does not mend it
            raise unavailable(error) from error

    @asynccontextmanager
    async def _connection(self, within_s: float) -> AsyncIterator[Any]:
        if self._closed:
            raise Unavailable("the store is closed")
        pool = self._pool or await self._open_pool()
        try:
            connection = await pool.acquire(timeout=within_s * _ACQUIRE_SHARE)
        except TimeoutError as error:
            if pool.get_size() >= self._pool_size and not pool.get_idle_size():
                raise Unavailable(
                    f"all {self._pool_size} connections of this process to the database are busy"
                ) from error
            raise
        try:
            yield connection
        except BaseException as error:
            await self._give_up(pool, connection, error)
            raise
        finally:
            await _release(pool, connection)

    async def _give_up(self, pool: Any, connection: Any, error: BaseException) -> None:
        """Take back a transaction that failed; a connection that cannot even do that is closed, which does it too.

        One that does not answer, or whose server has changed its role, says the same of the others.
        """
        if _is_closed(connection):
            return
        is_good = False
        try:
            await connection.execute("ROLLBACK", timeout=_ROLL_BACK_S)
            is_good = not must_reconnect(error)
        except (asyncpg.PostgresError, *CONNECTION_FAULTS):
            pass
        finally:  # also where the caller is cancelled a second time
            if not is_good:
                _terminate(connection)
        if not is_good:
            await pool.expire_connections()

    async def _open_pool(self) -> Any:
        async with self._opening:
            if self._pool is None:
                pool = asyncpg.create_pool(
                    self._url,
                    min_size=1,
                    max_size=self._pool_size,
                    timeout=_CONNECT_S,
                    reset=_keep,
                    max_inactive_connection_lifetime=_IDLE_S,
                    statement_cache_size=0 if self.pooled else _CACHED_STATEMENTS,
                    max_cached_statement_lifetime=0,
                    server_settings={} if self.pooled else _SETTINGS,
                )
                try:
                    self._pool = await pool
                except (asyncpg.PostgresError, *CONNECTION_FAULTS) as error:
                    raise translated(error) from error
        return self._pool


def _is_closed(connection: Any) -> bool:
    """Whether a connection is gone; the pool takes those back by itself and then answers no questions."""
    try:
        return bool(connection.is_closed())
    except asyncpg.InterfaceError:
        return True


def _terminate(connection: Any) -> None:
    with suppress(asyncpg.InterfaceError):
        connection.terminate()


async def _release(pool: Any, connection: Any) -> None:
    """Give a connection back; if that is not possible it is gone, and a new one will be made."""
    with suppress(asyncpg.PostgresError, *CONNECTION_FAULTS):
        await pool.release(connection, timeout=_ROLL_BACK_S)


async def _keep(connection: Any) -> None:
    """Nothing to reset: every transaction ends before its connection is released."""
