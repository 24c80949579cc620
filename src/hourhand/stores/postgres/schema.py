"""The schema of a database: its numbered steps, forward only, and whether this version may work on it.

Each step is one transaction. A process of the version before goes on working while a step is made and after
it, so a step only adds; what it makes superfluous is removed by a later one. `meta` says whose database this
is, which step it is at, and the oldest step whose code may still run on it.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import msgspec

from hourhand.clock import Clock
from hourhand.core.instant import SECOND_US
from hourhand.errors import CannotStart, Unavailable
from hourhand.stores.postgres.faults import translated
from hourhand.stores.postgres.statements import steps

APPLICATION = "hourhand"
OLDEST_CODE = 1  # the step of the oldest code that can run beside the newest step
_LOCK = 0x68_6F_75_72  # everybody who changes the schema waits for this one
_CONNECT_S = 10.0
_STEP_S = 600.0
_LOCK_TRIES = 20
_LOCK_PAUSE_S = 0.5
_WHOLE = re.compile(r"\d{1,9}", re.ASCII)
_MAKE_META = """
CREATE TABLE IF NOT EXISTS meta (key text COLLATE "C" PRIMARY KEY, value text NOT NULL);
INSERT INTO meta (key, value) VALUES ('application', 'hourhand'), ('schema', '0') ON CONFLICT DO NOTHING;
"""
_MARK = "INSERT INTO meta (key, value) VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET value = excluded.value"


class SchemaStatus(msgspec.Struct, frozen=True, kw_only=True):
    """Where a database stands."""

    version: int
    newest: int  # that this code knows
    oldest_code: int
    pending: tuple[str, ...]

    @property
    def is_newer(self) -> bool:
        """Whether it was made by a version that this one does not know."""
        return self.version > self.newest


async def status(url: str) -> SchemaStatus:
    """Look, and touch nothing; CannotStart when the database belongs to something else."""
    async with connected(url) as connection:
        return await read_status(connection)


async def skew_s(url: str, clock: Clock) -> float:
    """How far the server's clock is beside another, seen over one round trip."""
    async with connected(url) as connection:
        asked_at = clock.now()
        server_at = await connection.fetchval(
            "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
        )
        return float(server_at - (asked_at + clock.now()) // 2) / SECOND_US


async def up(url: str, *, only_to: int | None = None) -> list[str]:
    """Make the steps that are missing; answers their names."""
    done = []
    async with connected(url) as connection:
        before = await read_status(connection)
        if before.is_newer:
            raise CannotStart(newer_text(before))
        await _in_step(connection, _MAKE_META)
        last = len(steps()) if only_to is None else only_to
        for number, (name, script) in enumerate(steps()[:last], 1):
            if await _step(connection, number, script):
                done.append(name)
    return done


async def read_status(connection: Any) -> SchemaStatus:
    """Where the database of a connection stands."""
    newest = len(steps())
    tables = await connection.fetch(
        "SELECT c.relname FROM pg_class AS c WHERE c.relnamespace = current_schema()::regnamespace"
        " AND c.relkind IN ('r', 'p', 'v', 'm') LIMIT 1000"
    )
    meta: dict[str, str] = {}
    if any(row[0] == "meta" for row in tables):
        try:
            meta = dict(await connection.fetch("SELECT key, value FROM meta"))
        except (asyncpg.UndefinedColumnError, TypeError, ValueError):
            meta = {}
    if tables and meta.get("application") != APPLICATION:
        raise CannotStart(
            "the database belongs to something else (it has tables, but none of hourhand's); it was not"
            " touched. Give a database of its own in store.url"
        )
    version = _number(meta, "schema", 0)
    return SchemaStatus(
        version=version,
        newest=newest,
        oldest_code=_number(meta, "oldest_code", 1),
        pending=tuple(name for name, _ in steps()[version:]),
    )


def check(found: SchemaStatus) -> None:
    """Refuse to work on a database that this version does not fit."""
    if found.version < found.newest:
        state = "has no schema yet" if found.version == 0 else f"is at step {found.version}"
        raise CannotStart(
            f"the database {state}, this version needs step {found.newest}: run `hourhand migrate up` first"
        )
    if found.version > found.newest + 1 or (found.is_newer and found.oldest_code > found.newest):
        raise CannotStart(newer_text(found))


def newer_text(found: SchemaStatus) -> str:
    """What to tell somebody whose hourhand is too old."""
    return (
        f"the database was made by a newer hourhand (step {found.version}, this one knows {found.newest});"
        " it was not touched. Upgrade hourhand"
    )


def _number(meta: Mapping[str, str], key: str, default: int) -> int:
    text = meta.get(key, str(default))
    if not _WHOLE.fullmatch(text):
        raise CannotStart(
            f"meta.{key} of the database is {text[:40]!r}, expected a whole number; somebody changed it. Nothing"
            " was touched; restore the value that it had"
        )
    return int(text)


async def _step(connection: Any, number: int, script: str) -> bool:
    """Make one step, unless somebody else has; waits for its turn with short tries, so that nobody waits for it."""
    return await _in_step(connection, script, number)


async def _in_step(connection: Any, script: str, number: int | None = None) -> bool:
    for _ in range(_LOCK_TRIES):
        try:
            async with connection.transaction():
                await connection.execute(
                    f"SET LOCAL lock_timeout = '2s'; SELECT pg_advisory_xact_lock({_LOCK})"
                )
                if number is not None:
                    applied = await connection.fetchval("SELECT value FROM meta WHERE key = 'schema'")
                    if int(applied) >= number:
                        return False
                await connection.execute(script)
                if number is not None:
                    marks = [("schema", str(number)), ("oldest_code", str(OLDEST_CODE))]
                    await connection.executemany(_MARK, marks)
                return True
        except asyncpg.LockNotAvailableError:  # somebody works on the table: let them, and try again
            await asyncio.sleep(_LOCK_PAUSE_S)
    raise Unavailable("the schema could not be changed: other transactions hold its tables; try again")


@asynccontextmanager
async def connected(url: str) -> AsyncIterator[Any]:
    try:
        connection = await asyncpg.connect(
            url, timeout=_CONNECT_S, command_timeout=_STEP_S, statement_cache_size=0
        )
    except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError, TimeoutError, ValueError) as error:
        raise translated(error) from error
    try:
        yield connection
    except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError, TimeoutError) as error:
        raise translated(error) from error
    finally:
        connection.terminate()
