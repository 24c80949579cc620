"""Chooses brokers by the scheme of their URLs, and loads only what is chosen."""

import dataclasses
import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hourhand.clock import Clock
from hourhand.config import Settings
from hourhand.errors import CannotStart
from hourhand.ids import process_name
from hourhand.ports.leases import Leases
from hourhand.ports.queue import Feed, Offers, Queue
from hourhand.ports.store import Store
from hourhand.queues.brokered import BrokerQueue
from hourhand.queues.dual import DualOffers, Route
from hourhand.queues.native import NativeQueue
from hourhand.services.dispatcher import Dispatcher
from hourhand.telemetry import Telemetry
from hourhand.wiring.kafka import address_of

if TYPE_CHECKING:
    from hourhand.queues.redis import RedisAddress


def refuse_broker(settings: Settings) -> None:
    """A store that only one process has needs no broker, and there would be nobody to share it with."""
    if settings.queue.url or settings.queue.fast_url:
        raise CannotStart(
            "queue.url is for clusters on PostgreSQL: with a SQLite file all runs are in one process anyway. "
            "Leave it out, or set store.url to a postgres:// URL"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Brokers:
    """Both sides of the configured broker, for each database of a cluster."""

    settings: Settings
    telemetry: Telemetry

    def queue(self, store: Store, clock: Clock, shard: int) -> Queue:
        """How a worker comes by the runs of one database."""
        feeds = self.feeds(shard, self.settings.worker.pools)
        if not feeds:
            return NativeQueue(store)
        return BrokerQueue(store=store, feeds=feeds, clock=clock, telemetry=self.telemetry)

    def dispatcher(self, store: Store, leases: Leases, shard: int) -> Dispatcher | None:
        """Who offers the runs of one database; None where workers ask the store."""
        offers = self.offers(shard)
        if offers is None:
            return None
        return Dispatcher(
            store=store,
            leases=leases,
            offers=offers,
            telemetry=self.telemetry,
            lead_us=self.settings.scheduler.lead_us,
            routed=bool(self.settings.queue.fast_url),
        )

    def offers(self, shard: int) -> Offers | None:
        """The scheduler's side of one database."""
        urls = broker_urls(self.settings)
        sides = [self._offers(url, shard) for url in urls]
        if len(sides) < 2:
            return sides[0] if sides else None
        route = Route(self.settings.queue.route)
        return DualOffers(lasting=sides[0], fast=sides[1], route=route, telemetry=self.telemetry)

    def feeds(self, shard: int, pools: Sequence[str]) -> list[Feed]:
        """A worker's side of one database."""
        return [feed for url in broker_urls(self.settings) for feed in self._feeds(url, shard, pools)]

    def _offers(self, url: str, shard: int) -> Offers:
        match scheme_of(url):
            case "kafka":
                from hourhand.queues.kafka import KafkaOffers, parse_address

                return KafkaOffers(address_of(parse_address(url), self.settings, shard))
            case _:
                from hourhand.queues.redis import RedisOffers

                return RedisOffers(redis_address(url, self.settings, shard))

    def _feeds(self, url: str, shard: int, pools: Sequence[str]) -> list[Feed]:
        match scheme_of(url):
            case "kafka":
                from hourhand.queues.kafka import KafkaFeed, parse_address

                address = address_of(parse_address(url), self.settings, shard)
                return [KafkaFeed(address, pool) for pool in pools]
            case _:
                from hourhand.queues.redis import RedisFeed

                return [RedisFeed(redis_address(url, self.settings, shard), pools, process_name())]


def broker_urls(settings: Settings) -> list[str]:
    """The brokers that runs go through, the lasting one first; CannotStart where they cannot be used."""
    queue = settings.queue
    if queue.fast_url and not queue.url:
        raise CannotStart("queue.fast_url is beside queue.url, which is not set: name the broker there")
    urls = [url for url in (queue.url, queue.fast_url) if url]
    for url in urls:
        _require_package(scheme_of(url))
    return urls


def redis_address(url: str, settings: Settings, shard: int) -> "RedisAddress":
    """The streams of one database: as the URL calls them where there is only one, else with its number."""
    from hourhand.queues.redis import parse_address

    address = parse_address(url)
    if len(settings.store.databases) == 1:
        return address
    return dataclasses.replace(address, name=f"{address.name}.{shard}")


def scheme_of(url: str) -> str:
    """`kafka`, `redis` or `rediss`."""
    return url.partition(":")[0]


def _require_package(scheme: str) -> None:
    extra, package = ("kafka", "confluent_kafka") if scheme == "kafka" else ("redis", "redis")
    if importlib.util.find_spec(package) is None:
        raise CannotStart(
            f"{scheme}:// queues need a package that is not installed: pip install 'hourhand[{extra}]'"
        )
