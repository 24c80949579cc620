"""A cluster of three shards for each test."""

from collections.abc import AsyncIterator

import pytest

from tests.stores.sharded.cluster import Cluster


@pytest.fixture
async def cluster() -> AsyncIterator[Cluster]:
    made = Cluster()
    yield made
    for shard in made.shards:
        shard.away = False
    await made.store.close()
