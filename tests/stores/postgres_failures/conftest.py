"""A PostgreSQL server of these tests' own, to be stopped, killed, paused and cut off; the store object is always the same one."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from hourhand.stores.postgres import PostgresStore, schema
from tests.servers.postgres import PostgresServer, require_postgres
from tests.servers.postgres_databases import database_of
from tests.servers.tcp_proxy import TcpProxy
from tests.stores.postgres_failures.probes import CANARY, POOL_SIZE, Open


@pytest.fixture(scope="package")
def server() -> Iterator[PostgresServer]:
    require_postgres()
    with PostgresServer(settings={"deadlock_timeout": "50ms", "synchronous_commit": "on"}) as started:
        yield started


@pytest.fixture(scope="package")
def template(server: PostgresServer) -> str:
    url = server.create_database("template_of_failures")
    asyncio.run(schema.up(url))
    return url


@pytest.fixture
def url(server: PostgresServer, template: str) -> Iterator[str]:
    made = server.create_database(template=template)
    yield made
    if server.pid is None:
        server.start()
    server.resume()
    server.drop_database(made)


@pytest.fixture
async def open_store() -> AsyncIterator[Open]:
    opened: list[PostgresStore] = []

    async def open_(url: str, **options: Any) -> PostgresStore:
        store = await PostgresStore.open(url, **{"pool_size": POOL_SIZE, **options})
        opened.append(store)
        return store

    yield open_
    for store in opened:
        await store.close()


@pytest.fixture
async def store(url: str, open_store: Open) -> PostgresStore:
    return await open_store(url)


@pytest.fixture
async def proxy(url: str) -> AsyncIterator[TcpProxy]:
    async with TcpProxy.to_url(url) as started:
        yield started


@pytest.fixture
async def far_store(url: str, proxy: TcpProxy, open_store: Open) -> PostgresStore:
    """A store behind the proxy."""
    return await open_store(proxy.url_of(url), listen_url=url)


@pytest.fixture
async def guarded(server: PostgresServer) -> AsyncIterator[str]:
    """A database whose owner needs a password."""
    rules = server.data / "pg_hba.conf"
    before = rules.read_text()
    rules.write_text(f"host all guarded 127.0.0.1/32 scram-sha-256\n{before}")
    server.execute(f"CREATE ROLE guarded LOGIN PASSWORD '{CANARY}'")
    server.query("SELECT pg_reload_conf()")
    made = server.create_database()
    server.execute(f"ALTER DATABASE {database_of(made)} OWNER TO guarded")
    server.execute("ALTER SCHEMA public OWNER TO guarded", database=made)
    url = made.replace("postgres@", f"guarded:{CANARY}@")
    await schema.up(url)
    yield url
    server.drop_database(made)
    server.execute("DROP ROLE guarded")
    rules.write_text(before)
    server.query("SELECT pg_reload_conf()")
