"""A fresh world per test, as the services have it, and the brokers that the contract suite runs on."""

from collections.abc import AsyncIterator

import pytest

from tests.queues.brokers import Broker, KafkaBroker, RedisBroker
from tests.services.world import World


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture(params=["kafka", "redis"])
async def broker(request: pytest.FixtureRequest) -> AsyncIterator[Broker]:
    """A real server, on names that only this test has."""
    match request.param:
        case "kafka":
            url, topics = request.getfixturevalue("kafka_url"), request.getfixturevalue("kafka_topics")
            async with KafkaBroker(url, topics) as kafka:
                yield kafka
        case "redis":
            async with RedisBroker(request.getfixturevalue("redis_url")) as redis:
                yield redis


@pytest.fixture
async def kafka(kafka_url: str, kafka_topics: str) -> AsyncIterator[KafkaBroker]:
    """Topics that only this test has."""
    async with KafkaBroker(kafka_url, kafka_topics) as kafka:
        yield kafka
