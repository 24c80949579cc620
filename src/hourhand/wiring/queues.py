"""Chooses brokers by the scheme of their URLs, and loads only what is chosen."""

from collections.abc import Sequence
from dataclasses import dataclass

from hourhand.clock import Clock
from hourhand.config import Settings
from hourhand.errors import CannotStart
from hourhand.ports.leases import Leases
from hourhand.ports.queue import Feed, Offers, Queue
from hourhand.ports.store import Store
from hourhand.queues.brokered import BrokerQueue
from hourhand.queues.native import NativeQueue
from hourhand.services.dispatcher import Dispatcher
from hourhand.telemetry import Telemetry
from hourhand.wiring.kafka import address_of


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
        )

    def offers(self, shard: int) -> Offers | None:
        """The scheduler's side of one database."""
        url = self.settings.queue.url
        return self._offers(url, shard) if url else None

    def feeds(self, shard: int, pools: Sequence[str]) -> list[Feed]:
        """A worker's side of one database."""
        url = self.settings.queue.url
        return self._feeds(url, shard, pools) if url else []

    def _offers(self, url: str, shard: int) -> Offers:
        match _scheme(url):
            case "kafka":
                from hourhand.queues.kafka import KafkaOffers, parse_address

                address = address_of(parse_address(url), self.settings, shard)
                return KafkaOffers(address, full_messages=self.settings.queue.full_messages)
            case scheme:
                raise _no_queue(scheme)

    def _feeds(self, url: str, shard: int, pools: Sequence[str]) -> list[Feed]:
        match _scheme(url):
            case "kafka":
                from hourhand.queues.kafka import KafkaFeed, parse_address

                address = address_of(parse_address(url), self.settings, shard)
                return [KafkaFeed(address, pool) for pool in pools]
            case scheme:
                raise _no_queue(scheme)


def _scheme(url: str) -> str:
    return url.partition(":")[0]


def _no_queue(scheme: str) -> CannotStart:
    return CannotStart(f"no queue for {scheme}:// URLs; expected kafka://")
