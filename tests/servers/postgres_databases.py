"""Databases of a PostgreSQL server that somebody else runs or that we run: made in a moment, dropped by force.

Calls block, and work whether or not the caller is on an event loop: the driver gets a loop and a thread of
its own. The driver is imported at its first use, since every test run loads this module.
"""

import asyncio
import re
import uuid
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit, urlunsplit

if TYPE_CHECKING:
    import asyncpg

T = TypeVar("T")

_CONNECT_S = 20.0
_COMMAND_S = 60.0
_NAME = re.compile(r"[a-z_][a-z0-9_]{0,62}")


class PostgresDatabases:
    """A server by the address of its maintenance database."""

    def __init__(self, admin_url: str) -> None:
        self._admin_url = admin_url

    @property
    def admin_url(self) -> str:
        """Of the database from which others are made."""
        return self._admin_url

    @property
    def _copying(self) -> str:
        """How a template is copied. Through the log, as is usual, needs no checkpoint of the whole server."""
        return ""

    def url_of(self, database: str) -> str:
        """The address of one database."""
        return urlunsplit(urlsplit(self.admin_url)._replace(path=f"/{database}"))

    def create_database(self, name: str | None = None, *, template: str = "template0") -> str:
        """Make a database and answer its URL; a template (a name or URL) must have no connections."""
        name = name or f"hourhand_{uuid.uuid4().hex[:16]}"
        made = f"CREATE DATABASE {_checked(name)} TEMPLATE {_checked(database_of(template))}"
        self.execute(f"{made} {self._copying}")
        return self.url_of(name)

    def drop_database(self, database: str) -> None:
        """Drop a database (a name or URL), whoever is connected to it; one that is gone is no error."""
        self.execute(f"DROP DATABASE IF EXISTS {_checked(database_of(database))} WITH (FORCE)")

    def has_database(self, name: str) -> bool:
        """Whether there is a database of this name."""
        return bool(self.query("SELECT 1 FROM pg_database WHERE datname = $1", name))

    def execute(self, statement: str, *, database: str | None = None) -> None:
        """Run a statement, in the maintenance database unless another is named."""
        run_apart(_execute(self._url(database), statement))

    def query(self, statement: str, *params: object, database: str | None = None) -> "list[asyncpg.Record]":
        """The rows of a statement."""
        return run_apart(_query(self._url(database), statement, params))

    def _url(self, database: str | None) -> str:
        return self.url_of(database_of(database)) if database else self.admin_url


def database_of(name_or_url: str) -> str:
    """The name of a database, given it or its URL."""
    return urlsplit(name_or_url).path.lstrip("/") if "://" in name_or_url else name_or_url


def run_apart(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end on a loop and thread of its own."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()


def _checked(name: str) -> str:
    """Names stand in statements as they are, so they must need no quotes."""
    if not _NAME.fullmatch(name):
        raise ValueError(f"a database's name is a-z, 0-9 and _, at most 63, got {name!r}")
    return name


async def _execute(url: str, statement: str) -> None:
    connection = await _connect(url)
    try:
        await connection.execute(statement)
    finally:
        await connection.close()


async def _query(url: str, statement: str, params: tuple[object, ...]) -> "list[asyncpg.Record]":
    connection = await _connect(url)
    try:
        return list(await connection.fetch(statement, *params))
    finally:
        await connection.close()


async def _connect(url: str) -> "asyncpg.Connection[asyncpg.Record]":
    import asyncpg

    return await asyncpg.connect(url, timeout=_CONNECT_S, command_timeout=_COMMAND_S)
