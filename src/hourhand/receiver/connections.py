"""The user's own connection, whichever driver it is of: savepoints, and a statement in its words.

No driver is imported: a connection can only be of a driver that its owner has imported. Work is written once
for connections that block and those that are awaited, as generators that yield whatever the driver's
methods returned, a value or something to await; `once` drives them. Nothing here begins a transaction that
its owner has not asked for, and nothing commits one.
"""

import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import suppress
from typing import Any, Protocol, TypeVar

from hourhand.errors import Invalid
from hourhand.receiver.effects import with_numbers, with_percents

T = TypeVar("T")
Work = Generator[Any, Any, T]
Values = Mapping[str, object]

_SAVEPOINT = "hourhand_effect"
_NO_TRANSACTION = "25P01"  # of PostgreSQL, for a savepoint outside of one


class Connection(Protocol):
    """What is needed of a database, in a transaction that its owner has begun and will end."""

    awaits: bool  # whether what its methods yield has to be awaited

    def save(self) -> Work[None]:
        """Set a savepoint; Invalid where no transaction is open that could hold it."""
        ...

    def keep(self) -> Work[None]:
        """Let the savepoint go."""
        ...

    def undo(self) -> Work[None]:
        """Back to the savepoint, and let it go."""
        ...

    def change(self, statement: str, values: Values) -> Work[int]:
        """How many rows a statement changed."""
        ...

    def look(self, statement: str, values: Values) -> Work[Any]:
        """The first value of the first row, None without one."""
        ...


def connection_of(given: Any) -> Connection:
    """The connection behind what the user gave; TypeError names what it may be."""
    for kind, awaits, names in _KINDS:
        if any(_is_one(given, name) for name in names):
            return kind(given, awaits)
    raise TypeError(
        "exactly_once takes a connection of psycopg 3, asyncpg, sqlite3, aiosqlite or Django, or a connection or "
        f"session of SQLAlchemy; got {type(given).__module__}.{type(given).__qualname__}"
    )


class _Savepoints:
    """Savepoints by statements, where the driver has nothing better."""

    def __init__(self, given: Any, awaits: bool) -> None:
        self._given = given
        self.awaits = awaits

    def keep(self) -> Work[None]:
        yield self._given.execute(f"RELEASE SAVEPOINT {_SAVEPOINT}")

    def undo(self) -> Work[None]:
        yield self._given.execute(f"ROLLBACK TO SAVEPOINT {_SAVEPOINT}")
        yield self._given.execute(f"RELEASE SAVEPOINT {_SAVEPOINT}")


class _Psycopg(_Savepoints):
    def save(self) -> Work[None]:
        if self._given.info.pipeline_status != 0:
            raise Invalid(
                "exactly_once has to know at once whether its row is new; in pipeline mode nothing is known before "
                "the next sync. Call it outside of `conn.pipeline()`"
            )
        idle = self._given.info.transaction_status == 0
        if self._given.autocommit and idle:
            raise _no_transaction("with conn.transaction():")
        yield self._given.execute(f"SAVEPOINT {_SAVEPOINT}")

    def change(self, statement: str, values: Values) -> Work[int]:
        cursor = self._given.cursor()
        yield self._sent(cursor, statement, values)
        return int(cursor.rowcount)

    def look(self, statement: str, values: Values) -> Work[Any]:
        # Its owner may have asked for rows of another shape.
        cursor = self._given.cursor(row_factory=sys.modules["psycopg"].rows.tuple_row)
        yield self._sent(cursor, statement, values)
        row = yield cursor.fetchone()
        return row and row[0]

    def _sent(self, cursor: Any, statement: str, values: Values) -> Any:
        """By a cursor of the kind that its owner chose: a raw one takes the parameters of PostgreSQL itself."""
        if not _is_one(cursor, "psycopg.RawCursor") and not _is_one(cursor, "psycopg.AsyncRawCursor"):
            return cursor.execute(with_percents(statement), values)
        text, names = with_numbers(statement)
        return cursor.execute(text, [values[name] for name in names])


class _Sqlite(_Savepoints):
    def save(self) -> Work[None]:
        if (beginning := _beginning(self._given)) is not None:
            yield self._given.execute(beginning)
        yield self._given.execute(f"SAVEPOINT {_SAVEPOINT}")

    def change(self, statement: str, values: Values) -> Work[int]:
        cursor = yield self._given.execute(statement, values)
        return int(cursor.rowcount)

    def look(self, statement: str, values: Values) -> Work[Any]:
        cursor = yield self._given.execute(statement, values)
        cursor.row_factory = None
        row = yield cursor.fetchone()
        return row and row[0]


class _Asyncpg:
    def __init__(self, given: Any, awaits: bool) -> None:
        self._given = given
        self.awaits = awaits
        self._savepoint: Any = None

    def save(self) -> Work[None]:
        if not self._given.is_in_transaction():
            raise _no_transaction("async with conn.transaction():")
        self._savepoint = self._given.transaction()  # within another, a savepoint
        yield self._savepoint.start()

    def keep(self) -> Work[None]:
        yield self._savepoint.commit()

    def undo(self) -> Work[None]:
        yield self._savepoint.rollback()

    def change(self, statement: str, values: Values) -> Work[int]:
        text, names = with_numbers(statement)
        status = yield self._given.execute(text, *[values[name] for name in names])
        return int(status.rpartition(" ")[2])  # "INSERT 0 1"

    def look(self, statement: str, values: Values) -> Work[Any]:
        text, names = with_numbers(statement)
        return (yield self._given.fetchval(text, *[values[name] for name in names]))


class _Django:
    def __init__(self, given: Any, awaits: bool) -> None:
        self._given = given
        self.awaits = awaits
        self._savepoint: Any = None

    def save(self) -> Work[None]:
        _check_dialect(self._given.vendor)
        if not self._given.in_atomic_block:
            raise _no_transaction("with transaction.atomic():")
        self._savepoint = sys.modules["django.db.transaction"].atomic(using=self._given.alias)
        yield self._savepoint.__enter__()

    def keep(self) -> Work[None]:
        yield self._savepoint.__exit__(None, None, None)

    def undo(self) -> Work[None]:
        yield self._savepoint.__exit__(RuntimeError, RuntimeError("undone"), None)

    def change(self, statement: str, values: Values) -> Work[int]:
        with self._given.cursor() as cursor:
            yield cursor.execute(with_percents(statement), values)
            return int(cursor.rowcount)

    def look(self, statement: str, values: Values) -> Work[Any]:
        with self._given.cursor() as cursor:
            yield cursor.execute(with_percents(statement), values)
            row = yield cursor.fetchone()
            return row and row[0]


class _Sqlalchemy:
    """A connection or a session; the latter's savepoints also put its objects back."""

    def __init__(self, given: Any, awaits: bool) -> None:
        self._given = given
        self.awaits = awaits
        self._savepoint: Any = None

    def save(self) -> Work[None]:
        connection, is_session = self._given, not hasattr(self._given, "exec_driver_sql")
        if is_session:
            connection = yield self._given.connection()
        _check_dialect(connection.dialect.name)
        if connection.dialect.name == "sqlite":
            # Python's driver would begin only with the first change, and so at the savepoint begin nothing.
            raw = (yield connection.get_raw_connection()) if self.awaits else connection.connection
            if (beginning := _beginning(raw.driver_connection)) is not None:
                yield connection.exec_driver_sql(beginning)
        try:
            self._savepoint = yield self._given.begin_nested()
            if is_session:
                yield self._given.connection()  # only now it sends its savepoint
        except BaseException as error:
            if self._savepoint is not None:
                with suppress(Exception):  # what went wrong first is what its owner has to hear
                    yield self._savepoint.rollback()
            if getattr(getattr(error, "orig", None), "sqlstate", None) == _NO_TRANSACTION:
                raise _no_transaction("without the isolation level AUTOCOMMIT") from error
            raise

    def keep(self) -> Work[None]:
        yield self._savepoint.commit()

    def undo(self) -> Work[None]:
        yield self._savepoint.rollback()

    def change(self, statement: str, values: Values) -> Work[int]:
        result = yield self._given.execute(sys.modules["sqlalchemy"].text(statement), values)
        return int(result.rowcount)

    def look(self, statement: str, values: Values) -> Work[Any]:
        result = yield self._given.execute(sys.modules["sqlalchemy"].text(statement), values)
        return result.scalar()


def _beginning(connection: Any) -> str | None:
    """How the driver's implicit transaction is begun where none is open; one that writes, so that it waits its turn."""
    if connection.in_transaction:
        return None
    if connection.isolation_level is None or getattr(connection, "autocommit", None) is True:
        raise _no_transaction('conn.execute("BEGIN IMMEDIATE")')
    return "BEGIN IMMEDIATE"


def _no_transaction(words: str) -> Invalid:
    return Invalid(
        "exactly_once needs an open transaction, in which your effect is written too; this connection commits "
        f"every statement by itself. Begin one before: {words}"
    )


def _check_dialect(name: str) -> None:
    if name not in ("postgresql", "sqlite"):
        raise TypeError(f"exactly_once works on PostgreSQL and SQLite; this connection is to {name}")


def _is_one(given: Any, name: str) -> bool:
    """Whether it is an instance of this class; not where nobody has imported its module."""
    module, _, attribute = name.rpartition(".")
    kind = getattr(sys.modules.get(module), attribute, None)
    return isinstance(kind, type) and isinstance(given, kind)


_KINDS: tuple[tuple[Callable[[Any, bool], Connection], bool, tuple[str, ...]], ...] = (
    (_Psycopg, False, ("psycopg.Connection",)),
    (_Psycopg, True, ("psycopg.AsyncConnection",)),
    (_Asyncpg, True, ("asyncpg.connection.Connection",)),
    (_Sqlite, False, ("sqlite3.Connection",)),
    (_Sqlite, True, ("aiosqlite.Connection",)),
    (
        _Django,
        False,
        ("django.db.backends.base.base.BaseDatabaseWrapper", "django.utils.connection.ConnectionProxy"),
    ),
    (
        _Sqlalchemy,
        False,
        (
            "sqlalchemy.engine.Connection",
            "sqlalchemy.orm.Session",
            "sqlalchemy.orm.scoped_session",
        ),
    ),
    (
        _Sqlalchemy,
        True,
        (
            "sqlalchemy.ext.asyncio.AsyncConnection",
            "sqlalchemy.ext.asyncio.AsyncSession",
            "sqlalchemy.ext.asyncio.async_scoped_session",
        ),
    ),
)
