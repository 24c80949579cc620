"""The schema of a PostgreSQL database: made once whoever asks, refused where it does not fit, changed under load."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import asyncpg
import pytest

from hourhand.errors import CannotStart, Unavailable
from hourhand.stores.postgres import PostgresStore, schema
from hourhand.stores.postgres.statements import steps
from tests.contract.scene import LONG_LEASE_US

NAMES = [name for name, _ in steps()]
NEWEST = len(NAMES)


@asynccontextmanager
async def connected(url: str) -> AsyncIterator[Any]:
    connection = await asyncpg.connect(url)
    try:
        yield connection
    finally:
        await connection.close()


async def tables(url: str) -> list[tuple[str, str]]:
    async with connected(url) as connection:
        rows = await connection.fetch(
            "SELECT relname, relkind::text FROM pg_class WHERE relnamespace = 'public'::regnamespace ORDER BY 1"
        )
    return [tuple(row) for row in rows]


async def execute(url: str, statement: str) -> None:
    async with connected(url) as connection:
        await connection.execute(statement)


async def mark(url: str, **values: object) -> None:
    """Let the database say something else of itself."""
    async with connected(url) as connection:
        for key, value in values.items():
            await connection.execute(schema._MARK, key, str(value))


@asynccontextmanager
async def opened(url: str, **options: Any) -> AsyncIterator[PostgresStore]:
    store = await PostgresStore.open(url, **options)
    try:
        yield store
    finally:
        await store.close()


@contextmanager
def knowing(known: list[tuple[str, str]]) -> Iterator[None]:
    """Code that knows these steps; it is this code otherwise, so an older version only in what it asks for."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(schema, "steps", lambda: known)
        yield


async def refusal(url: str, **options: Any) -> str:
    with pytest.raises(CannotStart) as refused:
        async with opened(url, **options):
            pass
    return str(refused.value)


async def test_an_empty_database_gets_every_step_once(postgres_url: str) -> None:
    before = await schema.status(postgres_url)
    assert (before.version, before.newest, list(before.pending)) == (0, NEWEST, NAMES)
    assert await tables(postgres_url) == []  # looking touches nothing
    assert await schema.up(postgres_url) == NAMES
    after = await schema.status(postgres_url)
    assert (after.version, after.pending) == (NEWEST, ())
    made = await tables(postgres_url)
    assert await schema.up(postgres_url) == []
    assert await tables(postgres_url) == made


async def test_several_at_once_make_each_step_once(postgres_url: str) -> None:
    done = await asyncio.gather(*(schema.up(postgres_url) for _ in range(4)))
    assert sorted(name for names in done for name in names) == NAMES


@pytest.mark.parametrize(
    "theirs",
    [
        "CREATE TABLE customers (id integer); INSERT INTO customers VALUES (1)",
        "CREATE VIEW report AS SELECT 1 AS one",
        "CREATE TABLE meta (key text, value text); INSERT INTO meta VALUES ('application', 'another')",
        "CREATE TABLE meta (key text, value text); INSERT INTO meta VALUES ('schema', '1')",
        "CREATE TABLE meta (id integer, at timestamptz); INSERT INTO meta VALUES (1, now())",
        "CREATE TABLE meta (key integer, value json)",
    ],
    ids=["tables", "a-view", "meta-of-another", "meta-of-nobody", "other-columns", "other-types"],
)
async def test_a_database_of_something_else_is_not_touched(postgres_url: str, theirs: str) -> None:
    await execute(postgres_url, theirs)
    before = await tables(postgres_url)
    for ask in (schema.status, schema.up):
        with pytest.raises(CannotStart, match="belongs to something else"):
            await ask(postgres_url)
    assert "belongs to something else" in await refusal(postgres_url)
    assert await tables(postgres_url) == before


async def test_a_database_without_schema_says_how_to_make_it(postgres_url: str) -> None:
    assert "hourhand migrate up" in await refusal(postgres_url)
    assert await tables(postgres_url) == []


async def test_a_database_that_lacks_a_step_says_how_to_make_it(postgres_url: str) -> None:
    await schema.up(postgres_url, only_to=NEWEST - 1)
    message = await refusal(postgres_url)
    assert f"is at step {NEWEST - 1}" in message
    assert "hourhand migrate up" in message


@pytest.mark.parametrize(("ahead", "oldest_code"), [(1, NEWEST + 1), (2, 1), (7, 1)])
async def test_a_newer_database_is_refused(migrated_url: str, ahead: int, oldest_code: int) -> None:
    await mark(migrated_url, schema=NEWEST + ahead, oldest_code=oldest_code)
    assert "Upgrade hourhand" in await refusal(migrated_url)
    with pytest.raises(CannotStart, match="Upgrade hourhand"):
        await schema.up(migrated_url)
    assert (await schema.status(migrated_url)).is_newer


async def test_one_step_ahead_that_allows_this_version_works(migrated_url: str) -> None:
    await mark(migrated_url, schema=NEWEST + 1, oldest_code=NEWEST)
    async with opened(migrated_url) as store:
        await store.ping()


async def test_another_number_of_segments_is_refused(migrated_url: str) -> None:
    async with opened(migrated_url, segments=64):
        pass
    message = await refusal(migrated_url, segments=32)
    assert "64 segments" in message
    assert "32" in message


async def test_a_node_with_older_zone_data_lives_and_does_not_plan(migrated_url: str) -> None:
    async with opened(migrated_url) as newer:
        await mark(migrated_url, tzdata="9999z")
        async with opened(migrated_url) as older:
            assert await older.hold_segments(1, "scheduler", "older", LONG_LEASE_US) == {}
            held = await newer.hold_segments(2, "scheduler", "newer", LONG_LEASE_US)
            assert len(held) == 64  # nobody shares with one who does not plan
            assert {node.id for node in await newer.nodes()} == {1, 2}


async def test_newer_zone_data_is_told_to_others(migrated_url: str) -> None:
    await mark(migrated_url, tzdata="2000a")
    async with opened(migrated_url) as store:
        assert len(await store.hold_segments(1, "scheduler", "newer", LONG_LEASE_US)) == 64
    async with connected(migrated_url) as connection:
        assert await connection.fetchval("SELECT value FROM meta WHERE key = 'tzdata'") > "2000a"


async def test_a_step_that_fails_leaves_nothing(migrated_url: str) -> None:
    before = await tables(migrated_url)
    broken = ("9999_broken", "CREATE TABLE half (id integer); SELECT 1 / 0; CREATE TABLE whole (id integer)")
    with knowing([*steps(), broken]), pytest.raises(Unavailable):
        await schema.up(migrated_url)
    assert await tables(migrated_url) == before
    assert (await schema.status(migrated_url)).version == NEWEST
    with knowing([*steps(), ("9999_mended", "CREATE TABLE whole (id integer)")]):
        assert await schema.up(migrated_url) == ["9999_mended"]


async def test_a_step_that_is_interrupted_leaves_nothing(migrated_url: str) -> None:
    before = await tables(migrated_url)
    endless = ("9999_endless", "CREATE TABLE half (id integer); SELECT pg_sleep(600)")
    with knowing([*steps(), endless]):
        step = asyncio.create_task(schema.up(migrated_url))
        async with connected(migrated_url) as connection, asyncio.timeout(20):
            ended = False
            while not ended:  # once it sleeps, its process is ended as a crash would
                ended = await connection.fetchval(
                    "SELECT bool_or(pg_terminate_backend(pid)) FROM pg_stat_activity"
                    " WHERE datname = current_database() AND wait_event = 'PgSleep'"
                )
            with pytest.raises(Unavailable):
                await step
    assert await tables(migrated_url) == before
    assert (await schema.status(migrated_url)).version == NEWEST
