"""What tests of a failing PostgreSQL ask and do: what a verb says, whether all is well again, who holds a lock."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import pytest

from hourhand.core.instant import SECOND_US
from hourhand.core.model import Job
from hourhand.errors import Unavailable
from hourhand.ports.store import ClaimRequest
from hourhand.stores.postgres import PostgresStore
from tests.contract.builders import draft, every, spec
from tests.servers.postgres import PostgresServer
from tests.servers.postgres_databases import database_of

DEADLINE_S = 20.0
HOUR_US = 3_600 * SECOND_US
LEASE_US = SECOND_US
POOL_SIZE = 4
CANARY = "canary-swordfish"
SLACK_S = 1.5  # for a machine that is busy with other tests

Open = Callable[..., Awaitable[PostgresStore]]


async def said(verb: Awaitable[Any], within_s: float = DEADLINE_S) -> str:
    """What a verb says that must fail as unavailable, in time and without naming what is nobody's business."""
    with pytest.raises(Unavailable) as failure:
        async with asyncio.timeout(within_s):
            await verb
    text = failure.value.message
    for secret in (CANARY, "127.0.0.1", "postgresql://"):
        assert secret not in text
    return text


async def healed(store: PostgresStore) -> None:
    """The same object works again; a connection or two may have to be found dead first."""
    async with asyncio.timeout(DEADLINE_S):
        while True:
            try:
                await store.ping()
                return
            except Unavailable:
                await asyncio.sleep(0.02)


async def idle_again(server: PostgresServer, url: str, most: int = POOL_SIZE) -> None:
    """No connection is left behind, and none holds a transaction."""
    async with asyncio.timeout(DEADLINE_S):
        while True:
            rows = server.query(
                "SELECT state FROM pg_stat_activity WHERE datname = $1 AND application_name = 'hourhand'",
                database_of(url),
            )
            if len(rows) <= most and all(row[0] == "idle" for row in rows):
                return
            await asyncio.sleep(0.05)


def count(server: PostgresServer, url: str, table: str) -> int:
    return int(server.query(f"SELECT count(*) FROM {table}", database=url)[0][0])


def now_at() -> int:
    return time.time_ns() // 1000


async def create(store: PostgresStore, **fields: Any) -> Job:
    [job] = await store.create_jobs([draft(spec(every(1), **fields))])
    assert isinstance(job, Job)
    return job


async def claimed(store: PostgresStore, node_id: int = 7) -> list[Any]:
    await store.renew_node(node_id, "worker", "w", HOUR_US)
    request = ClaimRequest(node_id=node_id, pools=("default",), room=10, lead_us=2 * SECOND_US)
    return (await store.claim(request)).runs


async def until(condition: Callable[[], bool]) -> None:
    """Until something is so."""
    async with asyncio.timeout(DEADLINE_S):
        while True:
            if condition():
                return
            await asyncio.sleep(0.01)


@asynccontextmanager
async def holding(url: str, statement: str) -> AsyncIterator[None]:
    """Somebody else's transaction that has something locked."""
    other = await asyncpg.connect(url)
    try:
        async with other.transaction():
            await other.execute(statement)
            yield
    finally:
        await other.close()


async def waits_for_lock(server: PostgresServer, url: str) -> None:
    """Until one of ours waits for a lock."""
    query = (
        "SELECT 1 FROM pg_stat_activity WHERE datname = $1 AND wait_event_type = 'Lock'"
        " AND application_name = 'hourhand'"
    )
    await until(lambda: bool(server.query(query, database_of(url))))


def end_sessions(server: PostgresServer, url: str) -> None:
    server.query(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1", database_of(url)
    )
