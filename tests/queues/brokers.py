"""Brokers as the contract suite sees them: both sides of a real server, on names that only one test has."""

import contextlib
from dataclasses import replace
from types import TracebackType
from typing import Protocol, Self

from hourhand.ports.queue import Feed, Offers
from hourhand.queues.kafka import KafkaFeed, KafkaOffers, parse_address
from hourhand.queues.redis import RedisFeed, RedisOffers
from hourhand.queues.redis import parse_address as parse_redis_address


class Broker(Protocol):
    """Makes the scheduler's and the workers' sides; everything is closed when the test is over."""

    def offers(self, *, full_messages: bool = False) -> Offers:
        """The scheduler's side."""
        ...

    def feed(self, pool: str = "default") -> Feed:
        """The side of one more worker."""
        ...


class KafkaBroker:
    """Topics of a Kafka."""

    def __init__(self, url: str, topics: str, partitions: int = 4) -> None:
        self.address = parse_address(f"{url}/{topics}?partitions={partitions}")
        self._opened = contextlib.AsyncExitStack()

    def offers(self, *, full_messages: bool = False, patience_s: float = 20.0) -> KafkaOffers:
        offers = KafkaOffers(replace(self.address, full_messages=full_messages), patience_s=patience_s)
        self._opened.push_async_callback(offers.close)
        return offers

    def feed(self, pool: str = "default") -> KafkaFeed:
        feed = KafkaFeed(self.address, pool)
        self._opened.push_async_callback(feed.close)
        return feed

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._opened.aclose()


class RedisBroker:
    """Streams of a Redis."""

    def __init__(self, url: str) -> None:
        self.address = parse_redis_address(url)
        self._opened = contextlib.AsyncExitStack()
        self._workers = 0

    def offers(self, *, full_messages: bool = False) -> RedisOffers:
        offers = RedisOffers(self.address)
        self._opened.push_async_callback(offers.close)
        return offers

    def feed(self, pool: str = "default") -> RedisFeed:
        self._workers += 1
        feed = RedisFeed(self.address, (pool,), f"worker-{self._workers}")
        self._opened.push_async_callback(feed.close)
        return feed

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._opened.aclose()
