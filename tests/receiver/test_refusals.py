"""What `exactly_once` and `forget_effects` refuse, and in which words; and how old rows go."""

import asyncio
import contextlib
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import aiosqlite
import asyncpg
import psycopg
import pytest
import sqlalchemy
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session

from hourhand import EFFECTS_DDL, exactly_once, forget_effects, forget_effects_async
from hourhand.clock import ManualClock
from hourhand.core.instant import DAY_US
from hourhand.errors import Invalid
from hourhand.receiver.once import FORGET_AT_ONCE
from tests.receiver.receivers import ON_POSTGRES, ON_SQLITE, async_dialect, dialect, prepare

NEEDS_A_TRANSACTION = "needs an open transaction"


@pytest.fixture
def memory() -> Iterator[sqlite3.Connection]:
    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        for statement in EFFECTS_DDL:
            connection.execute(statement)
        yield connection


def test_a_connection_that_commits_by_itself(memory: sqlite3.Connection) -> None:
    memory.commit()
    memory.isolation_level = None
    with pytest.raises(Invalid, match=NEEDS_A_TRANSACTION), exactly_once(memory, "k"):
        raise AssertionError("not reached")
    assert not memory.in_transaction


@pytest.mark.skipif(sys.version_info < (3, 12), reason="sqlite3 has autocommit since Python 3.12")
def test_both_of_the_newer_modes_of_sqlite3(tmp_path: Path) -> None:
    prepare(str(tmp_path / "r.db"))
    options: Any = {"autocommit": True}
    with (
        contextlib.closing(sqlite3.connect(tmp_path / "r.db", **options)) as connection,
        pytest.raises(Invalid, match=NEEDS_A_TRANSACTION),
        exactly_once(connection, "k"),
    ):
        raise AssertionError("not reached")
    options = {"autocommit": False}
    for expected in (True, False):
        with contextlib.closing(sqlite3.connect(tmp_path / "r.db", **options)) as connection:
            with exactly_once(connection, "k") as first:
                assert first is expected
            connection.commit()


def test_psycopg_without_a_transaction(postgres_url: str) -> None:
    prepare(postgres_url)
    with (
        psycopg.connect(postgres_url, autocommit=True) as connection,
        pytest.raises(Invalid, match=r"with conn.transaction\(\)"),
        exactly_once(connection, "k"),
    ):
        raise AssertionError("not reached")


def test_psycopg_in_pipeline_mode(postgres_url: str) -> None:
    """There nothing is known before the next sync: a first delivery must not be taken for a second."""
    prepare(postgres_url)
    with psycopg.connect(postgres_url) as connection:
        with (
            pytest.raises(Invalid, match=r"outside of `conn.pipeline\(\)`"),
            connection.pipeline(),
            exactly_once(connection, "k"),
        ):
            raise AssertionError("not reached")
        connection.rollback()
        with exactly_once(connection, "k") as first:
            assert first


def test_a_driver_that_does_not_say_how_many(memory: sqlite3.Connection) -> None:
    class Silent(sqlite3.Connection):
        def execute(self, statement: str, *values: Any) -> Any:
            cursor = super().execute(statement, *values)
            return type("Cursor", (), {"rowcount": -1})() if "INSERT" in statement else cursor

    with contextlib.closing(sqlite3.connect(":memory:", factory=Silent)) as connection:
        for statement in EFFECTS_DDL:
            connection.execute(statement)
        with pytest.raises(Invalid, match="cannot tell"), exactly_once(connection, "k"):
            raise AssertionError("not reached")
        connection.commit()
        assert connection.execute("SELECT count(*) FROM hourhand_effects").fetchone() == (0,)


async def test_asyncpg_without_a_transaction(postgres_url: str) -> None:
    connection = await asyncpg.connect(postgres_url)
    try:
        with pytest.raises(Invalid, match=r"async with conn.transaction\(\)"):
            async with exactly_once(connection, "k"):
                raise AssertionError("not reached")
    finally:
        await connection.close()


@pytest.mark.parametrize("on", ["sqlite", "postgres"])
def test_sqlalchemy_that_commits_by_itself(on: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    url = str(tmp_path / "r.db") if on == "sqlite" else request.getfixturevalue("postgres_url")
    prepare(url)
    engine = sqlalchemy.create_engine(dialect(url), isolation_level="AUTOCOMMIT")
    with (
        engine.connect() as connection,
        pytest.raises(Invalid, match=NEEDS_A_TRANSACTION),
        exactly_once(connection, "k"),
    ):
        raise AssertionError("not reached")
    engine.dispose()


@pytest.mark.parametrize("on", ["sqlite", "postgres"])
async def test_a_session_that_commits_by_itself(
    on: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    url = str(tmp_path / "r.db") if on == "sqlite" else request.getfixturevalue("postgres_url")
    prepare(url)
    engine = sqlalchemy.create_engine(dialect(url), isolation_level="AUTOCOMMIT")
    with Session(engine) as session:
        with pytest.raises(Invalid, match=NEEDS_A_TRANSACTION), exactly_once(session, "k"):
            raise AssertionError("not reached")
        assert not session.in_nested_transaction(), "what was begun for it is ended"
        assert session.scalar(sqlalchemy.text("SELECT count(*) FROM hourhand_effects")) == 0
    engine.dispose()
    awaited = create_async_engine(async_dialect(url), isolation_level="AUTOCOMMIT")
    async with AsyncSession(awaited) as awaiting:
        with pytest.raises(Invalid, match=NEEDS_A_TRANSACTION):
            async with exactly_once(awaiting, "k"):
                raise AssertionError("not reached")
        assert await awaiting.scalar(sqlalchemy.text("SELECT count(*) FROM hourhand_effects")) == 0
    await awaited.dispose()


async def test_the_wrong_kind_of_with(memory: sqlite3.Connection) -> None:
    with pytest.raises(TypeError, match="this connection blocks: use `with"):
        async with exactly_once(memory, "k"):
            raise AssertionError("not reached")
    with pytest.raises(TypeError, match=r"use forget_effects$"):
        await forget_effects_async(memory)
    async with aiosqlite.connect(":memory:") as connection:
        with pytest.raises(TypeError, match="use `async with"), exactly_once(connection, "k"):
            raise AssertionError("not reached")
        with pytest.raises(TypeError, match="use forget_effects_async"):
            forget_effects(connection)


def test_what_is_no_connection() -> None:
    with pytest.raises(TypeError, match=r"psycopg 3, asyncpg, sqlite3.* got builtins.dict"):
        exactly_once({}, "k")


def test_sqlalchemy_on_another_database() -> None:
    class Elsewhere(sqlalchemy.engine.Connection):
        def __init__(self) -> None:
            pass

        dialect: Any = type("Dialect", (), {"name": "mysql"})

    with (
        pytest.raises(TypeError, match="PostgreSQL and SQLite; this connection is to mysql"),
        exactly_once(Elsewhere(), "k"),
    ):
        raise AssertionError("not reached")


@pytest.mark.parametrize("call", ["", "k" * 201, {}, {"Idempotency-Key": "unsigned"}])
def test_a_call_without_a_key(memory: sqlite3.Connection, call: Any) -> None:
    with pytest.raises(Invalid, match="header webhook-id"):
        exactly_once(memory, call)


@pytest.mark.parametrize("number", ["x", "-1", "1.5", "9" * 19, "١"])
def test_an_attempt_that_is_no_number(memory: sqlite3.Connection, number: str) -> None:
    with pytest.raises(Invalid, match="Hourhand-Attempt"):
        exactly_once(memory, {"webhook-id": "k", "hourhand-attempt": number})


def test_keys_of_ones_own_have_no_attempt_unless_given(memory: sqlite3.Connection) -> None:
    for key, attempt, expected in [("a", 3, True), ("a", None, False), ("b", None, True), ("b", 1, False)]:
        with exactly_once(memory, key, attempt=attempt) as first:
            assert first is expected


def test_what_cannot_be_undone_says_so_and_lets_the_first_error_through(memory: sqlite3.Connection) -> None:
    def failing() -> None:
        with exactly_once(memory, "k"):
            memory.rollback()  # takes the savepoint away
            raise ValueError("mine")

    with pytest.raises(ValueError, match="mine") as caught:
        failing()
    assert "do not commit this transaction" in "".join(caught.value.__notes__)


async def test_a_cancelled_receiver_leaves_nothing(tmp_path: Path) -> None:
    prepare(str(tmp_path / "r.db"))
    inside = asyncio.Event()
    async with aiosqlite.connect(tmp_path / "r.db") as connection:

        async def receive() -> None:
            async with exactly_once(connection, "k"):
                inside.set()
                await asyncio.Event().wait()

        task = asyncio.create_task(receive())
        await inside.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await connection.commit()
        async with exactly_once(connection, "k") as first:
            assert first


def test_old_rows_go_oldest_first_and_a_bounded_number_at_once(memory: sqlite3.Connection) -> None:
    clock = ManualClock()
    for day in range(5):
        with exactly_once(memory, f"day {day}", clock=clock) as first:
            assert first
        clock.advance(DAY_US)
    assert forget_effects(memory, "2d", limit=2, clock=clock) == 2
    assert left(memory) == ["day 2", "day 3", "day 4"]
    assert forget_effects(memory, timedelta(days=2), clock=clock) == 1
    assert forget_effects(memory, timedelta(days=2), clock=clock) == 0
    assert left(memory) == ["day 3", "day 4"]
    with exactly_once(memory, "day 0", clock=clock) as first:
        assert first, "what is forgotten happens again"
    assert FORGET_AT_ONCE == 1_000


def left(connection: sqlite3.Connection) -> list[str]:
    return [row[0] for row in connection.execute("SELECT effect_key FROM hourhand_effects ORDER BY 1")]


async def test_old_rows_go_on_postgres(postgres_url: str) -> None:
    prepare(postgres_url)
    clock = ManualClock()
    connection = await asyncpg.connect(postgres_url)
    try:
        async with connection.transaction():
            async with exactly_once(connection, "k", clock=clock):
                pass
            assert await forget_effects_async(connection, clock=clock) == 0
            clock.advance(31 * DAY_US)
            assert await forget_effects_async(connection, clock=clock) == 1
    finally:
        await connection.close()


@pytest.mark.parametrize(("older_than", "limit"), [("23h", 1), (timedelta(0), 1), ("30d", 0)])
def test_forgetting_has_bounds(memory: sqlite3.Connection, older_than: Any, limit: int) -> None:
    with pytest.raises(Invalid):
        forget_effects(memory, older_than, limit=limit)


def test_no_driver_is_imported() -> None:
    code = (
        "import sqlite3, sys; from hourhand import exactly_once; exactly_once(sqlite3.connect(':memory:'), 'k')\n"
        "print([name for name in ('psycopg', 'asyncpg', 'aiosqlite', 'sqlalchemy', 'django') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_every_driver_that_is_named_is_tried() -> None:
    assert {"sqlite3", "aiosqlite", "SQLAlchemy session", "SQLAlchemy async session"} <= ON_SQLITE.keys()
    assert {"psycopg", "async psycopg", "asyncpg", "SQLAlchemy connection"} <= ON_POSTGRES.keys()
