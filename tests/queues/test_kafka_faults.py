"""Kafka frozen and gone: both sides say so at once, and go on by themselves; members come and go."""

import asyncio
import inspect
from collections.abc import Callable

import pytest

from hourhand.errors import Unavailable
from hourhand.ports.queue import Feed, Offers
from hourhand.queues.kafka.offers import PATIENCE_S
from tests.queues.brokers import KafkaBroker
from tests.queues.reading import (
    DEADLINE_S,
    ROOM,
    jobs_of,
    offer_of,
    read_until,
    reading,
    until,
    why_unavailable,
)
from tests.servers.kafka import KafkaServer

REFUSED_WITHIN_S = 5.0
CLOSED_WITHIN_S = 10.0
TAKES_HALF_WITHIN_S = 5.0


async def test_a_server_that_is_frozen_or_killed_is_missed_at_once(
    own_kafka: Callable[..., KafkaServer],
) -> None:
    server = await asyncio.to_thread(own_kafka)
    async with KafkaBroker(server.url, "faults") as kafka:
        offers, feed = kafka.offers(patience_s=PATIENCE_S), kafka.feed()
        await goes_through(offers, feed, 1)
        await asyncio.to_thread(server.pause)
        await refuses(offers)
        await asyncio.to_thread(server.resume)
        await goes_through(offers, feed, 2)
        late = kafka.feed()
        await read_until(late, lambda found: late.assigned == 6)
        await asyncio.to_thread(server.pause)
        async with asyncio.timeout(CLOSED_WITHIN_S):
            await late.close()
        await asyncio.to_thread(server.resume)
        await asyncio.to_thread(server.kill)
        await refuses(offers)
        await why_unavailable(lambda: feed.read(ROOM))


async def test_what_was_never_there_is_refused(kafka_topics: str) -> None:
    async with KafkaBroker("kafka://127.0.0.1:1", kafka_topics) as kafka:
        await refuses(kafka.offers(patience_s=PATIENCE_S))
        feed = kafka.feed()
        error = await why_unavailable(lambda: feed.read(ROOM))
        assert "127.0.0.1:1" in error.message


async def test_a_second_worker_takes_over_half(kafka: KafkaBroker) -> None:
    offers, first, second = kafka.offers(), kafka.feed(), kafka.feed()
    await goes_through(offers, first, 1)
    loop = asyncio.get_running_loop()
    began_s = loop.time()
    async with reading(first) as ours, reading(second) as theirs:
        await until(lambda: first.assigned == second.assigned == 6)
        took_s = loop.time() - began_s
        await offers.offer([offer_of(job) for job in range(1_000, 2_000)])
        await until(lambda: len(ours) + len(theirs) == 1_000)
    assert sorted(ours + theirs) == list(range(1_000, 2_000))
    assert min(len(ours), len(theirs)) > 250
    assert took_s < TAKES_HALF_WITHIN_S


async def goes_through(offers: Offers, feed: Feed, job: int) -> None:
    """From offer to ack, as soon as the server lets it."""

    async def offered() -> bool:
        try:
            await offers.offer([offer_of(job)])
        except Unavailable:
            await asyncio.sleep(0.02)
            return False
        return True

    async with asyncio.timeout(DEADLINE_S):
        while not await offered():
            pass
    found = await read_until(feed, lambda found: job in jobs_of(found))
    await feed.ack(found)


async def refuses(offers: Offers) -> None:
    """The first refusal comes soon, the next one without waiting for anything."""
    await why_unavailable(lambda: offers.offer([offer_of(1_000_000)]), REFUSED_WITHIN_S)
    again = offers.offer([offer_of(1_000_000)])
    assert inspect.iscoroutine(again)
    with pytest.raises(Unavailable):
        again.send(None)
