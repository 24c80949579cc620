"""What commands do with the topics of a configured Kafka: make, check and replay them.

Each database has topics of its own, since its workers know only its runs. Nothing here is needed to run.
"""

import asyncio
import dataclasses
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from hourhand.cli.launch import ReplayedWindow, SchemaState
from hourhand.config import Settings
from hourhand.core.model import Priority
from hourhand.errors import CannotStart, Unavailable

if TYPE_CHECKING:
    from hourhand.queues.kafka import KafkaAddress

_REPLAY_PATIENCE_S = 30.0  # nobody waits behind it


def kafka_addresses(settings: Settings) -> "list[KafkaAddress]":
    """Of each database, the topics that the settings name; empty where no queue is a Kafka."""
    urls = [url for url in (settings.queue.url, settings.queue.fast_url) if url.startswith("kafka:")]
    if not urls:
        return []
    from hourhand.queues.kafka import parse_address

    shards = range(len(settings.store.databases))
    return [address_of(parse_address(url), settings, shard) for url in urls for shard in shards]


def address_of(address: "KafkaAddress", settings: Settings, shard: int) -> "KafkaAddress":
    """The topics of one database: as the URL calls them where there is only one, else with its number."""
    if len(settings.store.databases) == 1:
        return address
    return dataclasses.replace(address, topics=f"{address.topics}.{shard}")


def topic_schemas(settings: Settings) -> list[SchemaState]:
    """How far the topics are, as `migrate status` tells it of databases: how many are as they should be."""
    found = []
    for address in kafka_addresses(settings):
        from hourhand.queues.kafka import topic_states

        states = topic_states(address)
        wrong = tuple(f"topic {state.name}" for state in states if state.finding is not None)
        found.append(
            SchemaState(
                database=_shown(address), version=len(states) - len(wrong), newest=len(states), pending=wrong
            )
        )
    return found


def topic_findings(settings: Settings) -> list[str]:
    """What is wrong with the topics; Unavailable where their servers do not answer."""
    from hourhand.queues.kafka import topic_states

    states = [state for address in kafka_addresses(settings) for state in topic_states(address)]
    return [state.finding for state in states if state.finding is not None]


def make_topics(settings: Settings, applied: Callable[[str, str], None]) -> None:
    """Make what is missing of them, and tell each."""
    for address in kafka_addresses(settings):
        from hourhand.queues.kafka import ensure_topics

        for step in ensure_topics(address, grow=True):
            applied(_shown(address), step)


def replay(settings: Settings, from_at: int, to_at: int, *, dry_run: bool) -> ReplayedWindow:
    """Offer once more what was offered in a window of time."""
    addresses = kafka_addresses(settings)
    if not addresses:
        raise CannotStart(
            "only Kafka keeps what was offered, and neither queue.url nor queue.fast_url is a kafka:// URL"
        )
    return asyncio.run(_replay(addresses, from_at, to_at, offers=not dry_run))


async def _replay(
    addresses: "Sequence[KafkaAddress]", from_at: int, to_at: int, *, offers: bool
) -> ReplayedWindow:
    from hourhand.queues.kafka import KafkaOffers, read_window

    counts = Counter({priority.name: 0 for priority in Priority})
    unreadable = 0
    for address in addresses:
        sink = KafkaOffers(address, patience_s=_REPLAY_PATIENCE_S) if offers else None
        pages = read_window(address, from_at, to_at)
        try:
            while (page := await asyncio.to_thread(next, pages, None)) is not None:
                if sink is not None and page.offers:
                    await sink.offer(page.offers)
                counts.update(Priority(offer.run_class).name for offer in page.offers)
                unreadable += page.unreadable
        except Unavailable as error:
            raise Unavailable(f"{error.message}; {counts.total():,} runs were offered before") from error
        finally:
            await asyncio.to_thread(pages.close)
            if sink is not None:
                await sink.close()
    return ReplayedWindow(by_priority=dict(counts), unreadable=unreadable)


def _shown(address: "KafkaAddress") -> str:
    return f"kafka://{address.servers}/{address.topics}"
