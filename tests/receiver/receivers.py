"""Receivers by driver: each takes a delivery as its users would write it, in a transaction of its own, on a fresh connection.

`inside` is called in the block with whether it is the first; it may wait, and what it raises ends the
delivery. With `caught` the receiver catches that around the block, and commits what else it did.
"""

import asyncio
import contextlib
import sqlite3
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import aiosqlite
import asyncpg
import psycopg
import sqlalchemy
from psycopg.rows import dict_row
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session

from hourhand import EFFECTS_DDL, exactly_once

Call = dict[str, str]
Inside = Callable[[bool], None]
Receiver = Callable[[str, Call, Inside, bool], bool]

EFFECT = "INSERT INTO ledger (what) VALUES ('effect')"
NOTE = "INSERT INTO ledger (what) VALUES ('note')"
LEDGER = "CREATE TABLE ledger (what VARCHAR(20))"


class Broken(Exception):
    """What goes wrong in a block."""


def note(call: Call) -> str:
    """What is written after the block, unless the call wants that to go wrong."""
    if "then" in call:
        raise Broken(call["then"])
    return NOTE


def expected(caught: bool) -> Any:
    return contextlib.suppress(Broken) if caught else contextlib.nullcontext()


def by_sqlite3(url: str, call: Call, inside: Inside, caught: bool) -> bool:
    first = False
    with contextlib.closing(sqlite3.connect(url, timeout=30)) as connection, connection:
        connection.row_factory = sqlite3.Row
        with expected(caught), exactly_once(connection, call) as first:
            if first:
                connection.execute(EFFECT)
            inside(first)
        connection.execute(note(call))
    return first


def by_sqlite3_begun_by_hand(url: str, call: Call, inside: Inside, caught: bool) -> bool:
    first = False
    with contextlib.closing(sqlite3.connect(url, timeout=30, isolation_level=None)) as connection:
        connection.execute("BEGIN")
        with expected(caught), exactly_once(connection, call) as first:
            if first:
                connection.execute(EFFECT)
            inside(first)
        connection.execute(note(call))
        connection.execute("COMMIT")
    return first


def by_psycopg(url: str, call: Call, inside: Inside, caught: bool, **options: Any) -> bool:
    first = False
    with psycopg.connect(url, row_factory=dict_row, **options) as connection:
        with expected(caught), exactly_once(connection, call) as first:
            if first:
                connection.execute(EFFECT)
            inside(first)
        connection.execute(note(call))
    return first


def by_psycopg_in_a_block(url: str, call: Call, inside: Inside, caught: bool) -> bool:
    first = False
    with psycopg.connect(url, autocommit=True) as connection, connection.transaction():
        with expected(caught), exactly_once(connection, call) as first:
            if first:
                connection.execute(EFFECT)
            inside(first)
        connection.execute(note(call))
    return first


def by_raw_psycopg(url: str, call: Call, inside: Inside, caught: bool) -> bool:
    return by_psycopg(url, call, inside, caught, cursor_factory=psycopg.RawCursor)


def by_sqlalchemy(url: str, call: Call, inside: Inside, caught: bool) -> bool:
    first = False
    with engine(url) as made, made.connect() as connection:
        with expected(caught), exactly_once(connection, call) as first:
            if first:
                connection.execute(sqlalchemy.text(EFFECT))
            inside(first)
        connection.execute(sqlalchemy.text(note(call)))
        connection.commit()
    return first


def by_a_session(url: str, call: Call, inside: Inside, caught: bool) -> bool:
    first = False
    with engine(url) as made, Session(made) as session, session.begin():
        with expected(caught), exactly_once(session, call) as first:
            if first:
                session.execute(sqlalchemy.text(EFFECT))
            inside(first)
        session.execute(sqlalchemy.text(note(call)))
    return first


async def by_aiosqlite(url: str, call: Call, inside: Inside, caught: bool) -> bool:
    first = False
    async with aiosqlite.connect(url, timeout=30) as connection:
        with expected(caught):
            async with exactly_once(connection, call) as first:
                if first:
                    await connection.execute(EFFECT)
                await asyncio.to_thread(inside, first)
        await connection.execute(note(call))
        await connection.commit()
    return first


async def by_async_psycopg(url: str, call: Call, inside: Inside, caught: bool, **options: Any) -> bool:
    first = False
    async with await psycopg.AsyncConnection.connect(url, row_factory=dict_row, **options) as connection:
        with expected(caught):
            async with exactly_once(connection, call) as first:
                if first:
                    await connection.execute(EFFECT)
                await asyncio.to_thread(inside, first)
        await connection.execute(note(call))
    return first


async def by_raw_async_psycopg(url: str, call: Call, inside: Inside, caught: bool) -> bool:
    return await by_async_psycopg(url, call, inside, caught, cursor_factory=psycopg.AsyncRawCursor)


async def by_asyncpg(url: str, call: Call, inside: Inside, caught: bool) -> bool:
    connection = await asyncpg.connect(url)
    try:
        return await on_asyncpg(connection, call, inside, caught)
    finally:
        await connection.close()


async def by_a_pool_of_asyncpg(url: str, call: Call, inside: Inside, caught: bool) -> bool:
    async with asyncpg.create_pool(url, min_size=1) as pool, pool.acquire() as connection:
        return await on_asyncpg(connection, call, inside, caught)


async def on_asyncpg(connection: Any, call: Call, inside: Inside, caught: bool) -> bool:
    first = False
    async with connection.transaction():
        with expected(caught):
            async with exactly_once(connection, call) as first:
                if first:
                    await connection.execute(EFFECT)
                await asyncio.to_thread(inside, first)
        await connection.execute(note(call))
    return first


async def by_async_sqlalchemy(url: str, call: Call, inside: Inside, caught: bool) -> bool:
    first = False
    made = create_async_engine(async_dialect(url))
    try:
        async with made.begin() as connection:
            with expected(caught):
                async with exactly_once(connection, call) as first:
                    if first:
                        await connection.execute(sqlalchemy.text(EFFECT))
                    await asyncio.to_thread(inside, first)
            await connection.execute(sqlalchemy.text(note(call)))
    finally:
        await made.dispose()
    return first


async def by_an_async_session(url: str, call: Call, inside: Inside, caught: bool) -> bool:
    first = False
    made = create_async_engine(async_dialect(url))
    try:
        async with AsyncSession(made) as session, session.begin():
            with expected(caught):
                async with exactly_once(session, call) as first:
                    if first:
                        await session.execute(sqlalchemy.text(EFFECT))
                    await asyncio.to_thread(inside, first)
            await session.execute(sqlalchemy.text(note(call)))
    finally:
        await made.dispose()
    return first


@contextlib.contextmanager
def engine(url: str) -> Iterator[sqlalchemy.Engine]:
    made = sqlalchemy.create_engine(dialect(url))
    yield made
    made.dispose()


def dialect(url: str) -> str:
    if not url.startswith("postgres"):
        return f"sqlite+pysqlite:///{url}?timeout=30"
    return "postgresql+psycopg" + url[url.index("://") :]


def async_dialect(url: str) -> str:
    if not url.startswith("postgres"):
        return f"sqlite+aiosqlite:///{url}?timeout=30"
    return "postgresql+asyncpg" + url[url.index("://") :]


def blocking(receive: Callable[[str, Call, Inside, bool], Coroutine[Any, Any, bool]]) -> Receiver:
    """An async receiver on a loop of its own."""

    def received(url: str, call: Call, inside: Inside, caught: bool) -> bool:
        return asyncio.run(receive(url, call, inside, caught))

    return received


ON_SQLITE: dict[str, Receiver] = {
    "sqlite3": by_sqlite3,
    "sqlite3, begun by hand": by_sqlite3_begun_by_hand,
    "aiosqlite": blocking(by_aiosqlite),
    "SQLAlchemy connection": by_sqlalchemy,
    "SQLAlchemy session": by_a_session,
    "SQLAlchemy async connection": blocking(by_async_sqlalchemy),
    "SQLAlchemy async session": blocking(by_an_async_session),
}
ON_POSTGRES: dict[str, Receiver] = {
    "psycopg": by_psycopg,
    "psycopg, in a block": by_psycopg_in_a_block,
    "psycopg, raw cursor": by_raw_psycopg,
    "async psycopg": blocking(by_async_psycopg),
    "async psycopg, raw cursor": blocking(by_raw_async_psycopg),
    "asyncpg": blocking(by_asyncpg),
    "asyncpg pool": blocking(by_a_pool_of_asyncpg),
    "SQLAlchemy connection": by_sqlalchemy,
    "SQLAlchemy session": by_a_session,
    "SQLAlchemy async connection": blocking(by_async_sqlalchemy),
    "SQLAlchemy async session": blocking(by_an_async_session),
}


def prepare(url: str) -> None:
    """The tables of a receiver, as its migrations make them."""
    with engine(url) as made, made.begin() as connection:
        for statement in (*EFFECTS_DDL, LEDGER):
            connection.exec_driver_sql(statement)


def ledger(url: str) -> list[str]:
    """What has been committed."""
    with engine(url) as made, made.connect() as connection:
        return sorted(connection.exec_driver_sql("SELECT what FROM ledger").scalars())


def effects(url: str) -> list[tuple[str, int]]:
    """Whose effects are remembered, and by which attempt."""
    with engine(url) as made, made.connect() as connection:
        found = connection.exec_driver_sql("SELECT effect_key, attempt FROM hourhand_effects ORDER BY 1")
        return [(row[0], row[1]) for row in found]
