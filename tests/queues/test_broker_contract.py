"""What every broker does for offers: told to one worker of the pool, again until acknowledged, class by class."""

import asyncio

from tests.queues.brokers import Broker
from tests.queues.reading import (
    HIGH,
    LOW,
    MEDIUM,
    ROOM,
    is_silent,
    jobs_of,
    offer_of,
    read_many,
    read_until,
    reading,
    until,
)


async def test_what_is_offered_is_read_as_it_was(broker: Broker) -> None:
    offers = [offer_of(7, HIGH), offer_of(8, MEDIUM), offer_of(2**62 + 5, LOW)]
    feed = broker.feed()
    await broker.offers().offer(offers)
    found = await read_many(feed, 3)
    assert sorted((message.offer for message in found), key=lambda one: one.run_class) == offers


async def test_what_was_acknowledged_is_not_told_again_and_the_rest_is(broker: Broker) -> None:
    offers, first = broker.offers(), broker.feed()
    await offers.offer([offer_of(job) for job in range(40)])
    found = await read_many(first, 40)
    kept = {job for job in range(40) if job % 10 == 3}
    await first.ack([message for message in found if message.offer.job_id not in kept])
    await first.close()
    second = broker.feed()
    again = await read_until(second, lambda found: kept <= set(jobs_of(found)))
    await second.ack(again)
    await second.close()
    assert await is_silent(broker.feed())


async def test_a_class_without_room_is_left_alone(broker: Broker) -> None:
    offers, feed = broker.offers(), broker.feed()
    await offers.offer(
        [*(offer_of(job, LOW) for job in range(50)), *(offer_of(100 + job, HIGH) for job in range(5))]
    )
    found = await read_many(feed, 5, {int(HIGH): 10})
    assert sorted(jobs_of(found)) == [100, 101, 102, 103, 104]
    assert await feed.read({int(HIGH): 10}) == []
    some = await read_many(feed, 7, {int(LOW): 7})
    assert len(some) == 7
    rest = await read_many(feed, 43)
    assert sorted(jobs_of(some) + jobs_of(rest)) == list(range(50))


async def test_each_pool_gets_its_own(broker: Broker) -> None:
    offers = broker.offers()
    plain, special = broker.feed(), broker.feed("gpu")
    await offers.offer([offer_of(job, pool="gpu" if job % 2 else "default") for job in range(20)])
    ours, theirs = await asyncio.gather(read_many(plain, 10), read_many(special, 10))
    assert sorted(jobs_of(ours)) == list(range(0, 20, 2))
    assert sorted(jobs_of(theirs)) == list(range(1, 20, 2))


async def test_one_job_keeps_its_order(broker: Broker) -> None:
    offers, feed = broker.offers(), broker.feed()
    times = [1_000_000 * n for n in range(1, 60)]
    for start in range(0, len(times), 20):
        await offers.offer([offer_of(7, at=at) for at in times[start : start + 20]])
    found = await read_many(feed, len(times))
    assert [message.offer.scheduled_at for message in found] == times


async def test_workers_of_a_pool_share(broker: Broker) -> None:
    offers = broker.offers()
    async with reading(broker.feed()) as ours, reading(broker.feed()) as theirs:
        offered: list[int] = []
        while not ours or not theirs:
            batch = range(len(offered), len(offered) + 50)
            await offers.offer([offer_of(job) for job in batch])
            offered.extend(batch)
            await until(lambda: set(offered) == {*ours, *theirs})
    # Told twice is allowed while workers come and go, but is not the rule.
    assert len(ours) + len(theirs) < 2 * len(offered)


async def test_a_full_buffer_is_no_reason_to_lose_anything(broker: Broker) -> None:
    offers, feed = broker.offers(), broker.feed()
    await read_until(feed, lambda found: True)
    for start in range(0, 10_000, 1_000):
        await offers.offer([offer_of(job, LOW) for job in range(start, start + 1_000)])
    await offers.offer([offer_of(20_000, HIGH)])
    first = await read_many(feed, 1, {int(HIGH): 1})
    assert jobs_of(first) == [20_000]
    found = await read_many(feed, 10_000, ROOM)
    assert sorted(jobs_of(found)) == list(range(10_000))


async def test_closed_sides_may_be_closed_again(broker: Broker) -> None:
    feed, offers = broker.feed(), broker.offers()
    for _ in range(2):
        await feed.close()
        await offers.close()
