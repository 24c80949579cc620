"""The adapters that the contract suite of leases is run on."""

from collections.abc import AsyncIterator

import pytest

from hourhand.clock import ManualClock
from hourhand.stores.postgres import PostgresStore
from hourhand.stores.sqlite import SqliteStore
from tests.leases.harness import START_AT, LeasesHarness, MemoryHarness, NativeHarness, ServerHarness


@pytest.fixture(params=["native-sqlite", "native-postgres", "memory", "redis", "etcd"])
async def harness(request: pytest.FixtureRequest) -> AsyncIterator[LeasesHarness]:
    """Fresh leases of each adapter."""
    made: LeasesHarness
    clock = ManualClock(START_AT)
    match request.param:
        case "native-sqlite":
            made = NativeHarness(SqliteStore.in_memory(clock=clock), clock)
        case "native-postgres":
            url = request.getfixturevalue("migrated_url")
            made = NativeHarness(await PostgresStore.open(url, clock=clock, pool_size=4), clock)
        case "memory":
            made = MemoryHarness()
        case server:
            made = ServerHarness(request.getfixturevalue(f"{server}_url"))
    yield made
    await made.close()
