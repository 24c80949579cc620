"""Rows of another scheduler's database: SQLite by path or URL, opened to read only, or PostgreSQL by URL."""

import asyncio
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from hourhand.cli.failures import Usage
from hourhand.core.url import masked_store_url
from hourhand.errors import Unavailable

MAX_ROWS = 100_000
CONNECT_S = 10
STATEMENT_S = 60
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)?")
_SQLITE = b"SQLite format 3\0"

Row = dict[str, Any]


def is_database(source: str) -> bool:
    """Whether a source is a URL, or a file that SQLite wrote."""
    if "://" in source:
        return True
    try:
        with Path(source).open("rb") as file:
            return file.read(len(_SQLITE)) == _SQLITE
    except OSError:
        return False


def shown(source: str) -> str:
    """A source without a password."""
    return masked_store_url(source) if "://" in source else source


def read_tables(source: str, *tables: str) -> list[list[Row]]:
    """All rows of some tables; Usage where one is not there, or has too many."""
    for table in tables:
        if not _NAME.fullmatch(table):
            raise Usage(f"{table!r} is no name of a table")
    scheme, _, rest = source.partition("://")
    if "://" not in source or scheme.partition("+")[0] == "sqlite":
        path = unquote(rest.removeprefix("/").partition("?")[0]) if "://" in source else source
        return _from_sqlite(path, tables)
    if scheme.partition("+")[0] in ("postgres", "postgresql"):
        return asyncio.run(_from_postgres(f"postgresql://{rest}", tables))
    raise Usage(f"{shown(source)}: SQLite and PostgreSQL are read; export the others to SQLite first")


def has_table(path: str, table: str) -> bool:
    """Whether a SQLite file has a table."""
    with closing(_opened(path)) as database:
        found = database.execute("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", (table,))
        return found.fetchone() is not None


def _opened(path: str) -> sqlite3.Connection:
    if not Path(path).is_file():
        raise Usage(f"there is no file {path}")
    try:
        database = sqlite3.connect(f"file:{quote(str(Path(path).resolve()))}?mode=ro", uri=True)
    except sqlite3.Error as error:
        raise Usage(f"cannot open {path}: {error}") from None
    database.row_factory = sqlite3.Row
    return database


def _from_sqlite(path: str, tables: tuple[str, ...]) -> list[list[Row]]:
    with closing(_opened(path)) as database:
        try:
            return [
                _whole(table, [dict(row) for row in database.execute(_statement(table))]) for table in tables
            ]
        except sqlite3.Error as error:
            raise Usage(f"cannot read {path}: {error}") from None


async def _from_postgres(url: str, tables: tuple[str, ...]) -> list[list[Row]]:
    try:
        import asyncpg
    except ImportError:
        raise Usage("PostgreSQL needs: pip install 'hourhand[postgres]'") from None

    try:
        connection = await asyncpg.connect(url, timeout=CONNECT_S, command_timeout=STATEMENT_S)
    except (OSError, TimeoutError, asyncpg.PostgresError, ValueError) as error:
        raise Unavailable(f"cannot connect to {masked_store_url(url)}: {error}") from None
    try:
        return [
            _whole(table, [dict(row) for row in await connection.fetch(_statement(table))])
            for table in tables
        ]
    except asyncpg.PostgresError as error:
        raise Usage(f"cannot read {masked_store_url(url)}: {error}") from None
    finally:
        await connection.close()


def _statement(table: str) -> str:
    """One row more than is taken, since a table that was cut off must not look like a whole one."""
    return f"SELECT * FROM {table} LIMIT {MAX_ROWS + 1}"  # noqa: S608 -- a checked name


def _whole(table: str, rows: list[Row]) -> list[Row]:
    if len(rows) > MAX_ROWS:
        raise Usage(
            f"{table} has more than {MAX_ROWS:,} rows, and no more are read at once; nothing was imported"
        )
    return rows
