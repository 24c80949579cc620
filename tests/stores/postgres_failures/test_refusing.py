"""Servers that refuse: locks, deadlocks, full disks, missing databases and passwords are told apart, and mended."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from hourhand.core.lifecycle import Event
from hourhand.core.model import Job, JobState
from hourhand.errors import CannotStart, Invalid, StorageFull, Unavailable
from hourhand.ports.reading import DeadQuery
from hourhand.ports.store import JobEdit
from hourhand.stores.postgres import PostgresStore
from hourhand.stores.postgres.engine import PostgresTx
from tests.contract.builders import draft, every, once, outcome, spec
from tests.servers.postgres import PostgresServer
from tests.servers.postgres_databases import database_of
from tests.stores.postgres_failures.probes import (
    CANARY,
    DEADLINE_S,
    LEASE_US,
    POOL_SIZE,
    SLACK_S,
    Open,
    claimed,
    count,
    create,
    end_sessions,
    healed,
    holding,
    idle_again,
    now_at,
    said,
    waits_for_lock,
)


async def test_locks_of_others_and_a_busy_pool_are_told_apart(
    url: str, open_store: Open, server: PostgresServer
) -> None:
    store = await open_store(url, pool_size=1)
    job = await create(store)
    pause: Callable[[Job, int], JobEdit] = lambda job, _: JobEdit(spec=job.spec, paused=True)  # noqa: E731
    async with holding(url, f"SELECT 1 FROM jobs WHERE id = {job.id} FOR UPDATE"):
        waiting = asyncio.create_task(said(store.change_job(job.tenant, job.id, pause)))
        await waits_for_lock(server, url)
        assert "all 1 connections" in await said(store.renew_node(1, "worker", "w", LEASE_US), 1 + SLACK_S)
        assert "somebody else holds the rows" in await waiting
    changed = await store.change_job(job.tenant, job.id, pause)
    assert changed is not None
    assert (changed.job.version, changed.job.state) == (2, JobState.PAUSED)
    await idle_again(server, url, 1)


async def test_a_deadlock_is_started_over_unseen(store: PostgresStore, server: PostgresServer) -> None:
    first, second = await create(store), await create(store)
    both_hold = asyncio.Barrier(2)
    tries = 0

    async def in_order(*ids: int) -> None:
        meets = True

        async def lock(tx: PostgresTx) -> None:
            nonlocal meets, tries
            tries += 1
            await tx.one("lock_job", (ids[0],))
            if meets:
                meets = False
                await both_hold.wait()
            await tx.one("lock_job", (ids[1],))

        await store._engine.write(lock)

    async with asyncio.timeout(DEADLINE_S):
        await asyncio.gather(in_order(first.id, second.id), in_order(second.id, first.id))
    assert tries == 3


async def test_a_database_that_turned_read_only_is_read_and_written_again_later(
    store: PostgresStore, server: PostgresServer, url: str
) -> None:
    job = await create(store)
    name = database_of(url)
    server.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    end_sessions(server, url)
    assert "read-only" in await said(_second_try(lambda: store.create_jobs([draft()])))
    assert await store.get_job(job.tenant, job.id) == job
    assert "read-only" in await said(store.renew_node(1, "worker", "w", LEASE_US))
    server.execute(f"ALTER DATABASE {name} RESET default_transaction_read_only")
    await store.renew_node(1, "worker", "w", LEASE_US)
    await create(store)
    await idle_again(server, url)


async def _second_try(verb: Callable[[], Awaitable[Any]]) -> Any:
    """The first may still meet a connection that was just ended."""
    try:
        return await verb()
    except Unavailable as error:
        if "lost" not in error.message and "terminating" not in error.message:
            raise
    return await verb()


async def test_a_full_disk_is_said_to_be_one(store: PostgresStore, server: PostgresServer, url: str) -> None:
    server.execute(
        "CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN RAISE 'could not extend file' USING ERRCODE = '53100'; END $$;"
        "CREATE TRIGGER full_disk BEFORE INSERT ON planned EXECUTE FUNCTION full_disk()",
        database=url,
    )
    with pytest.raises(StorageFull, match="disk of the database is full"):
        await store.create_jobs([draft(spec(once(now_at())))])
    assert count(server, url, "jobs") == 0
    server.execute("DROP TRIGGER full_disk ON planned", database=url)
    await create(store)


async def test_a_database_that_is_dropped_and_restored(
    store: PostgresStore, server: PostgresServer, url: str, template: str
) -> None:
    await create(store)
    server.drop_database(url)
    assert "gone" in await said(_second_try(store.ping))
    server.create_database(database_of(url), template=template)
    await healed(store)
    await create(store)


async def test_a_password_that_changes_and_connections_that_run_out(
    guarded: str, server: PostgresServer, open_store: Open
) -> None:
    store = await open_store(guarded)
    server.execute("ALTER ROLE guarded PASSWORD 'another'")
    end_sessions(server, guarded)
    assert "refuses the login" in await said(_second_try(store.ping))
    with pytest.raises(CannotStart, match="refuses the connection") as failure:
        await open_store(guarded)
    assert CANARY not in str(failure.value)
    server.execute(f"ALTER ROLE guarded PASSWORD '{CANARY}' CONNECTION LIMIT 1")
    await healed(store)
    job = await create(store)
    plain = server.url_of(database_of(guarded))
    async with holding(plain, f"SELECT 1 FROM jobs WHERE id = {job.id} FOR UPDATE"):
        waiting = asyncio.create_task(store.delete_job(job.tenant, job.id, cancel_running=False))
        await waits_for_lock(server, guarded)
        assert "no connection left" in await said(store.ping())
    assert await waiting is not None
    server.execute("ALTER ROLE guarded CONNECTION LIMIT -1")
    await asyncio.gather(*(store.ping() for _ in range(POOL_SIZE)))
    await idle_again(server, guarded)


async def test_a_value_that_no_column_holds_is_no_outage(store: PostgresStore) -> None:
    with pytest.raises(Invalid, match="cannot keep"):
        await store.create_jobs([draft(spec(every(1), name="nul \0 in it"))])
    with pytest.raises(Invalid, match="64 bits"):
        await store.get_job("t", 1 << 70)
    await create(store)


async def test_an_error_text_with_odd_characters_still_becomes_a_dead_letter(store: PostgresStore) -> None:
    [job] = await store.create_jobs([draft(spec(once(now_at())))])
    assert isinstance(job, Job)
    [run] = await claimed(store)
    odd = outcome(run, Event.EXHAUST, now_at=now_at(), tries=1, detail={"error": "bytes \0 of nothing"})
    assert await store.settle("w", [odd]) == []
    [letter] = (await store.dead_letters(job.tenant, DeadQuery())).letters
    assert letter.error.startswith("bytes ")
