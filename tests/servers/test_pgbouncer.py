"""The pooler pools by transaction: sessions of the server are fewer than clients, and are not theirs."""

from collections.abc import Callable

import asyncpg

from tests.servers.pgbouncer import PgBouncer
from tests.servers.postgres_databases import PostgresDatabases


async def test_clients_share_the_servers_sessions(
    pgbouncer: Callable[..., PgBouncer], postgres_server: PostgresDatabases, postgres_url: str
) -> None:
    url = pgbouncer(postgres_server, pool_size=1).url_of(postgres_url)
    clients = [await asyncpg.connect(url, statement_cache_size=0) for _ in range(5)]
    try:
        sessions = {await client.fetchval("SELECT pg_backend_pid()") for client in clients}
    finally:
        for client in clients:
            await client.close()
    assert len(sessions) == 1


async def test_a_transaction_keeps_its_session_for_itself(
    pgbouncer: Callable[..., PgBouncer], postgres_server: PostgresDatabases, postgres_url: str
) -> None:
    url = pgbouncer(postgres_server, pool_size=2).url_of(postgres_url)
    first = await asyncpg.connect(url, statement_cache_size=0)
    second = await asyncpg.connect(url, statement_cache_size=0)
    async with first.transaction(), second.transaction():
        of_first = await first.fetchval("SELECT pg_backend_pid()")
        assert await second.fetchval("SELECT pg_backend_pid()") != of_first
        assert await first.fetchval("SELECT pg_backend_pid()") == of_first
    await first.close()
    await second.close()
