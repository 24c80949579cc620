"""The partitions of history, of logs and of deeds: one a day, made ahead of their time and dropped as a whole.

Neither stands in anybody's way: a new table is filled by nobody before it is attached, and an old one is
detached concurrently, then dropped when nothing refers to it any more.
"""

import re
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import asyncpg

from hourhand.core.instant import DAY_US
from hourhand.telemetry import logger

_log = logger("hourhand.postgres")

_AHEAD = 3  # days
_BEHIND = 1
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LOCK = 0x68_69_73_74
_DONE_BY_ANOTHER = (
    asyncpg.UndefinedTableError,
    asyncpg.ObjectNotInPrerequisiteStateError,  # already pending detach, or not any more
    asyncpg.WrongObjectTypeError,
    asyncpg.DeadlockDetectedError,  # each waits for what the other detaches: one of them goes on
)


class Daily(NamedTuple):
    """A table that has one partition a day, by a column that has so much in a day, and the indexes of each."""

    name: str
    indexes: str  # {day} stands for the partition
    column: str = "bucket"
    span: int = 1

    def bounds(self, day: int) -> tuple[int, int]:
        """The first value of a day, and the first of the next."""
        return day * self.span, (day + 1) * self.span


HISTORY = Daily(
    "history",
    "CREATE UNIQUE INDEX {day}_run ON {day} (job_id, scheduled_at, attempt);"
    "CREATE INDEX {day}_finished ON {day} USING brin (finished_at)"
    " WITH (pages_per_range = 32, autosummarize = on);",
)
RUN_LOG = Daily("run_log", "CREATE UNIQUE INDEX {day}_run ON {day} (job_id, scheduled_at, attempt, seq);")
DEEDS = Daily(
    "deeds",
    "CREATE INDEX {day}_newest ON {day} (tenant, at, id);"
    "CREATE INDEX {day}_job ON {day} (job_id, at, id) WHERE job_id IS NOT NULL;",
    column="at",
    span=DAY_US,
)
TABLES = (HISTORY, RUN_LOG, DEEDS)


async def make_ahead(connection: Any, now_at: int) -> None:
    """Make the partitions around the present that are missing."""
    today = now_at // DAY_US
    wanted = [day for day in range(today - _BEHIND, today + _AHEAD + 1) if day > 0]
    for table in TABLES:
        if await connection.fetchval("SELECT to_regclass($1)", table.name) is None:
            continue  # a step of the schema that is still to come
        there = {day for day, _, _ in await _partitions(connection, table)}
        for day in wanted:
            if day not in there:
                await _make(connection, table, day)


async def drop_old(connection: Any, before_at: int) -> int:
    """Drop the partitions whose runs have all finished before an instant; answers how many days of history.

    A run that ends more than a day from its time is kept elsewhere, so a day's rows end a day after it.
    Whoever still reads a day holds up only this; it goes on from where it was the next time.
    """
    days = [await _drop_old(connection, table, before_at) for table in TABLES]
    return days[0]


def name_of(day: int, table: Daily = HISTORY) -> str:
    """The table of a day."""
    return f"{table.name}_{_EPOCH + timedelta(days=day):%Y%m%d}"


async def _drop_old(connection: Any, table: Daily, before_at: int) -> int:
    dropped = 0
    try:
        for day, name, state in await _partitions(connection, table):
            if (day + 2) * DAY_US < before_at:
                await _drop(connection, table, name, state)
                dropped += 1
    except (asyncpg.LockNotAvailableError, asyncpg.QueryCanceledError):
        _log.warning("old rows are still read by somebody; they are dropped later", table=table.name)
    except _DONE_BY_ANOTHER:
        _log.debug("another process is dropping old rows", table=table.name)
    return dropped


async def _partitions(connection: Any, table: Daily = HISTORY) -> list[tuple[int, str, str]]:
    """Every day with a table, its name, and whether it is attached, detaching or detached; oldest first."""
    async with connection.transaction():
        rows = await connection.fetch(
            "SELECT c.relname, i.inhrelid IS NOT NULL, coalesce(i.inhdetachpending, false) FROM pg_class AS c"
            " LEFT JOIN pg_inherits AS i ON i.inhrelid = c.oid"
            " WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r'"
            " AND starts_with(c.relname, $1) ORDER BY c.relname",
            f"{table.name}_",
        )
    found = []
    for name, inherits, detaching in rows:
        match = re.fullmatch(rf"{table.name}_(\d{{8}})", name)
        if match is not None:
            day = (datetime.strptime(match[1], "%Y%m%d").replace(tzinfo=UTC) - _EPOCH).days
            state = "detached" if not inherits else "detaching" if detaching else "attached"
            found.append((day, name, state))
    return found


async def _drop(connection: Any, table: Daily, name: str, state: str) -> None:
    if state == "attached":  # concurrently, for else every write waits while this waits for a reader
        await connection.execute(f"ALTER TABLE {table.name} DETACH PARTITION {name} CONCURRENTLY")
    elif state == "detaching":  # somebody was interrupted in the middle of it
        await connection.execute(f"ALTER TABLE {table.name} DETACH PARTITION {name} FINALIZE")
    await connection.execute(f"DROP TABLE IF EXISTS {name}")


async def _make(connection: Any, table: Daily, day: int) -> None:
    name = name_of(day, table)
    first, end = table.bounds(day)
    async with connection.transaction():
        await connection.execute(f"SELECT pg_advisory_xact_lock({_LOCK})")
        if await connection.fetchval("SELECT to_regclass($1)", name) is not None:
            return  # somebody else was faster
        await connection.execute(
            f"CREATE TABLE {name} (LIKE {table.name});"
            f"{table.indexes.format(day=name)}"
            f"ALTER TABLE {name} ADD CONSTRAINT {name}_day CHECK ({table.column} >= {first} AND {table.column} < {end});"
            f"ALTER TABLE {table.name} ATTACH PARTITION {name} FOR VALUES FROM ({first}) TO ({end})"
        )
