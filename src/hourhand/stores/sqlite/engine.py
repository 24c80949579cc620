"""Runs operations on the file: one writer thread with group commit, a few readers beside it.

An operation is a coroutine of a `Tx` that never waits. Operations that arrive while a commit is on its way to the
disk share the next one; each is whole or not at all, and its future resolves after the commit.
`InlineEngine` does the same on the caller's thread, for simulations on a virtual clock.
"""

import asyncio
import queue
import sqlite3
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec

from hourhand.clock import Clock
from hourhand.errors import HourhandError, StorageFull, Unavailable
from hourhand.ports.acting import Actor, actor
from hourhand.stores.relational.answers import marked
from hourhand.stores.relational.faults import unkeepable
from hourhand.stores.relational.tx import Operation, Parameters, T
from hourhand.stores.sqlite.statements import repeated, statements

MAX_GROUP = 64  # operations that share one commit
_MAX_WAITING = 10_000
_ROWS_PER_STEP = (200, 20, 1)
_READERS = 2
_UNKEEPABLE = (OverflowError, UnicodeEncodeError)  # as the driver says it
_DRIVER_ERRORS = (sqlite3.Error, *_UNKEEPABLE)
WRITER_CACHE_KIB = 32 * 1024
_READER_CACHE_KIB = 4 * 1024
_CHECKPOINT_PAGES = 32_000  # 128 MB of log, then pages move to the file; a busy hour rewrites the same ones

Asked = tuple[Operation[Any], Actor | None]  # what is to be done, and on whose behalf


class SqliteTx:
    """A transaction on one connection. Nothing in it waits, so `drive` runs an operation to its end."""

    def __init__(self, connection: sqlite3.Connection, now_at: int, actor: Actor | None = None) -> None:
        self._connection = connection
        self._statements = statements()
        self.now_at = now_at
        self.actor = actor
        self.hints: set[str] = set()

    async def run(self, name: str, parameters: Parameters = ()) -> int:
        """Execute a named statement."""
        return self._connection.execute(self._statements[name], parameters).rowcount

    async def one(self, name: str, parameters: Parameters = ()) -> Any:
        """The first row of a named query, None where there is none."""
        return self._connection.execute(self._statements[name], parameters).fetchone()

    async def all(self, name: str, parameters: Parameters = ()) -> list[Any]:
        """All rows of a named query."""
        return self._connection.execute(self._statements[name], parameters).fetchall()

    async def insert(self, name: str, rows: Sequence[Sequence[Any]]) -> None:
        """Execute a named one-row insert for many rows, in as few steps as possible."""
        start = 0
        for size in _ROWS_PER_STEP:
            while len(rows) - start >= size:
                chunk = rows[start : start + size]
                self._connection.execute(repeated(name, size), [value for row in chunk for value in row])
                start += size

    def array(self, values: Sequence[int] | Sequence[str]) -> Any:
        """A text for json_each."""
        return msgspec.json.encode(list(values)).decode()

    async def look_at_clock(self) -> None:
        """There is one writer: no time passes in waiting for locks."""


def drive(operation: Operation[T], tx: SqliteTx) -> T:
    """Run an operation to its end on this thread."""
    steps = operation(tx).__await__()
    try:
        next(steps)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
    raise RuntimeError("an operation waited for something other than its transaction")


def connect(path: str, cache_kib: int) -> sqlite3.Connection:
    """Open a connection with the settings every one of ours has."""
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, cached_statements=512)
    for pragma in (
        "journal_mode = WAL",
        "synchronous = FULL",
        "temp_store = MEMORY",
        f"cache_size = -{cache_kib}",
        f"wal_autocheckpoint = {_CHECKPOINT_PAGES}",
        f"journal_size_limit = {_CHECKPOINT_PAGES * 4096}",
        "busy_timeout = 10000",
    ):
        connection.execute(f"PRAGMA {pragma}")
    return connection


def translated(error: Exception) -> HourhandError:
    """A driver's error in our words."""
    if isinstance(error, _UNKEEPABLE):
        return unkeepable()
    text = str(error)
    if "full" in text:
        return StorageFull("the disk that holds the store is full; nothing was written")
    return Unavailable(f"the store cannot do that right now: {text}")


class ThreadedEngine:
    """One writer thread and a few readers on a file."""

    def __init__(
        self, path: Path, writer: sqlite3.Connection, clock: Clock, notify: Callable[[Iterable[str]], None]
    ) -> None:
        self._path = str(path)
        self._clock = clock
        self._notify = notify
        self._loop = asyncio.get_running_loop()
        self._waiting: queue.SimpleQueue[tuple[Asked, asyncio.Future[Any]] | None] = queue.SimpleQueue()
        self._writer = writer
        self._local = threading.local()
        self._readers = ThreadPoolExecutor(_READERS, thread_name_prefix="hourhand-read")
        self._reader_connections: list[sqlite3.Connection] = []
        self._thread = threading.Thread(target=self._work, name="hourhand-write", daemon=True)
        self._closed = False
        self._thread.start()

    async def write(self, operation: Operation[T]) -> T:
        """Queue an operation for the writer thread, with whoever asks for it, and wait for its commit."""
        if self._closed:
            raise Unavailable("the store is closed")
        if self._waiting.qsize() >= _MAX_WAITING:
            raise Unavailable("too many operations wait for the store")
        future: asyncio.Future[T] = self._loop.create_future()
        self._waiting.put(((marked(operation), actor()), future))
        return await future

    async def read(self, operation: Operation[T]) -> T:
        """Run an operation on a reader's connection."""
        if self._closed:
            raise Unavailable("the store is closed")
        return await self._loop.run_in_executor(self._readers, self._read, operation)

    async def glance(self, operation: Operation[T]) -> T:
        """Run an operation of a few rows by their keys on the loop's own thread; readers do not wait for writers."""
        if self._closed:
            raise Unavailable("the store is closed")
        return self._read(operation)

    async def close(self) -> None:
        """Let the writer finish its queue, then close every connection."""
        if self._closed:
            return
        self._closed = True
        self._waiting.put(None)
        await self._loop.run_in_executor(None, self._thread.join)
        self._readers.shutdown(wait=True)
        for connection in self._reader_connections:
            connection.close()
        self._writer.close()

    def _read(self, operation: Operation[T]) -> T:
        connection = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._local.connection = connect(self._path, _READER_CACHE_KIB)
            self._reader_connections.append(connection)
        try:
            connection.execute("BEGIN")
            try:
                return drive(operation, SqliteTx(connection, self._clock.now()))
            finally:
                connection.execute("COMMIT")
        except _DRIVER_ERRORS as error:
            raise translated(error) from error

    def _work(self) -> None:
        while True:
            first = self._waiting.get()
            if first is None:
                return
            group = [first]
            last = False
            while len(group) < MAX_GROUP and not self._waiting.empty():
                item = self._waiting.get()
                if item is None:
                    last = True
                    break
                group.append(item)
            results, hints = execute_group(self._writer, self._clock, [asked for asked, _ in group])
            answers = list(zip((future for _, future in group), results, strict=True))
            self._loop.call_soon_threadsafe(self._answer, answers, hints)
            if last:
                return

    def _answer(self, answers: list[tuple[asyncio.Future[Any], Any]], hints: set[str]) -> None:
        for future, result in answers:
            if future.done():  # its caller was cancelled; the commit stands
                continue
            if isinstance(result, BaseException):
                future.set_exception(result)
            else:
                future.set_result(result)
        if hints:
            self._notify(hints)


class InlineEngine:
    """The same on the caller's thread; every operation is its own commit."""

    def __init__(
        self, connection: sqlite3.Connection, clock: Clock, notify: Callable[[Iterable[str]], None]
    ) -> None:
        self._connection = connection
        self._clock = clock
        self._notify = notify

    async def write(self, operation: Operation[T]) -> T:
        """Execute and commit at once."""
        results, hints = execute_group(self._connection, self._clock, [(marked(operation), actor())])
        if hints:
            self._notify(hints)
        if isinstance(results[0], BaseException):
            raise results[0]
        return results[0]  # type: ignore[no-any-return]

    async def read(self, operation: Operation[T]) -> T:
        """Execute at once."""
        try:
            return drive(operation, SqliteTx(self._connection, self._clock.now()))
        except _DRIVER_ERRORS as error:
            raise translated(error) from error

    async def glance(self, operation: Operation[T]) -> T:
        """Execute at once."""
        return await self.read(operation)

    async def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def execute_group(
    connection: sqlite3.Connection, clock: Clock, asked: Sequence[Asked]
) -> tuple[list[Any], set[str]]:
    """Execute operations in one transaction; each answers its result or its error, none undoes another."""
    try:
        connection.execute("BEGIN IMMEDIATE")
        results: list[Any] = []
        hints: set[str] = set()
        for one in asked:
            results.append(_execute(connection, clock, one, hints))
        connection.execute("COMMIT")
    except sqlite3.Error as error:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        return [translated(error)] * len(asked), set()
    return results, hints


def _execute(connection: sqlite3.Connection, clock: Clock, asked: Asked, hints: set[str]) -> Any:
    """One operation behind a savepoint. An error that ended the whole transaction is passed on."""
    operation, actor = asked
    tx = SqliteTx(connection, clock.now(), actor)
    connection.execute("SAVEPOINT operation")
    try:
        result = drive(operation, tx)
    except Exception as error:
        if not connection.in_transaction:  # a full disk or a broken file ends the transaction itself
            raise (
                error if isinstance(error, sqlite3.Error) else sqlite3.OperationalError(str(error))
            ) from error
        connection.execute("ROLLBACK TO operation")
        connection.execute("RELEASE operation")
        return translated(error) if isinstance(error, _DRIVER_ERRORS) else error
    connection.execute("RELEASE operation")
    hints |= tx.hints
    return result
