"""What is Kafka's own: topics are made, whole messages on request, others' messages passed over, windows replayed."""

import asyncio
import contextlib
import json
from typing import NamedTuple

import msgspec
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from hourhand.core.model import HttpTarget, Job, JobSpec, OnceTiming
from hourhand.core.offer import Offer
from hourhand.errors import Unavailable
from hourhand.queues.kafka import ensure_topics, read_window, topic_states
from tests.queues.brokers import KafkaBroker
from tests.queues.reading import DEADLINE_S, HIGH, LOW, MEDIUM, ROOM, jobs_of, offer_of, read_many, read_until

FAR_AT = 250_000_000_000_000_000


async def test_topics_are_made_checked_and_grown(
    kafka: KafkaBroker, kafka_url: str, kafka_topics: str
) -> None:
    names = list(kafka.address.all_topics)
    assert [state.finding for state in topic_states(kafka.address)] == [
        f"the topic {name} does not exist: `hourhand migrate up` makes it" for name in names
    ]
    assert ensure_topics(kafka.address) == [f"topic {name}" for name in names]
    assert ensure_topics(kafka.address) == []
    assert [(state.partitions, state.finding) for state in topic_states(kafka.address)] == [(4, None)] * 3
    wide = KafkaBroker(kafka_url, kafka_topics, partitions=6).address
    assert "has 4 partitions, 6 are asked for" in (topic_states(wide)[0].finding or "")
    assert ensure_topics(wide) == []
    assert ensure_topics(wide, grow=True) == [f"topic {name}: 4 to 6 partitions" for name in names]


async def test_deleted_topics_come_back(kafka: KafkaBroker) -> None:
    offers, feed = kafka.offers(), kafka.feed()
    await offers.offer([offer_of(1)])
    await read_many(feed, 1)
    admin = AdminClient(kafka.address.configuration())
    for answer in admin.delete_topics(list(kafka.address.all_topics)).values():
        answer.result(DEADLINE_S)
    job = 100

    async def offer_on() -> None:
        nonlocal job
        while True:
            with contextlib.suppress(Unavailable):
                await offers.offer([offer_of(job)])
                job += 1
            await asyncio.sleep(0.05)

    offering = asyncio.create_task(offer_on())
    try:
        await read_until(feed, lambda found: any(job >= 100 for job in jobs_of(found)))
    finally:
        offering.cancel()


async def test_whole_messages_tell_the_job_but_none_that_is_too_large(kafka: KafkaBroker) -> None:
    def carrying(job_id: int, payload: bytes) -> Offer:
        spec = JobSpec(
            timing=OnceTiming(at=5),
            target=HttpTarget(url="https://example.com"),
            payload=msgspec.Raw(payload),
        )
        job = Job(id=job_id, tenant="acme", spec=spec, since=0, created_at=0, updated_at=0)
        return msgspec.structs.replace(offer_of(job_id), job=job)

    offers = kafka.offers(full_messages=True)
    assert offers.wants_jobs
    await offers.offer([carrying(1, b'"small"'), carrying(2, b'"' + b"x" * 1_500_000 + b'"')])
    feed = kafka.feed()
    found = await read_many(feed, 2)
    assert sorted(jobs_of(found)) == [1, 2]
    assert all(message.offer.job is None for message in found)
    told = {one["job_id"]: one for one in (json.loads(message.value) for message in await written(kafka))}
    assert told["J-0000000000001"]["payload"] == "small"
    assert told["J-0000000000001"]["target"]["url"] == "https://example.com"
    assert "payload" not in told["J-0000000000002"]


async def test_what_is_not_ours_is_passed_over_and_committed(kafka: KafkaBroker) -> None:
    ensure_topics(kafka.address)
    producer = Producer(kafka.address.configuration())
    for n in range(20):
        producer.produce(kafka.address.topic(MEDIUM), b"not an offer", key=str(n))
    producer.produce(kafka.address.topic(MEDIUM), None, key=b"a tombstone")
    producer.flush(DEADLINE_S)
    await kafka.offers().offer([offer_of(5)])
    feed = kafka.feed()
    found = await read_many(feed, 1)
    assert jobs_of(found) == [5]
    await feed.ack(found)
    group = kafka.address.group(MEDIUM, "default")
    async with asyncio.timeout(
        DEADLINE_S
    ):  # ours may have come before some of the others, by another partition
        while await asyncio.to_thread(lag, kafka, group, MEDIUM):
            assert await feed.read(ROOM) == []


async def test_a_window_is_read_again_without_moving_anybody(kafka: KafkaBroker) -> None:
    offers, feed = kafka.offers(), kafka.feed()
    await offers.offer([offer_of(job, HIGH if job % 2 else LOW) for job in range(30)])
    await read_many(feed, 30)
    first_ms = (await newest(kafka)).at_ms
    while (await newest(kafka)).at_ms == first_ms:
        await offers.offer([offer_of(50)])
    await offers.offer([offer_of(100 + job) for job in range(10)])

    async def jobs(from_at: int, to_at: int) -> list[int]:
        pages = await asyncio.to_thread(lambda: list(read_window(kafka.address, from_at, to_at)))
        return sorted(offer.job_id for page in pages for offer in page.offers)

    middle_at = (first_ms + 1) * 1_000
    assert await jobs(0, middle_at) == list(range(30))
    assert [job for job in await jobs(middle_at, FAR_AT) if job != 50] == list(range(100, 110))
    assert await jobs(middle_at - 1_000_000, middle_at) == list(range(30))
    assert await jobs(FAR_AT - 1, FAR_AT) == []
    rest = await read_until(feed, lambda found: len(set(jobs_of(found))) == 11)
    assert set(jobs_of(rest)) == {50, *range(100, 110)}


class Written(NamedTuple):
    """A message as it lies in a topic."""

    at_ms: int
    value: bytes


async def written(kafka: KafkaBroker) -> list[Written]:
    """Everything in the topics, oldest first."""
    return await asyncio.to_thread(_written, kafka)


async def newest(kafka: KafkaBroker) -> Written:
    """The last of it."""
    return (await written(kafka))[-1]


def _written(kafka: KafkaBroker) -> list[Written]:
    settings = {"group.id": "looks", "auto.offset.reset": "earliest", "enable.partition.eof": True}
    reader = Consumer({**kafka.address.configuration(), **settings})
    places = [
        TopicPartition(name, partition, OFFSET_BEGINNING)
        for name in kafka.address.all_topics
        for partition in range(kafka.address.partitions)
    ]
    reader.assign(places)
    found, ended = [], 0
    while ended < len(places):
        message = reader.poll(DEADLINE_S)
        assert message is not None
        error = message.error()
        if error is None:
            found.append(Written(message.timestamp()[1], message.value() or b""))
        else:
            assert error.code() == KafkaError._PARTITION_EOF, error
            ended += 1
    reader.close()
    return sorted(found)


def lag(kafka: KafkaBroker, group: str, run_class: int) -> int:
    """How many messages of a class a group has not committed."""
    reader = Consumer({**kafka.address.configuration(), "group.id": group})
    places = [TopicPartition(kafka.address.topic(run_class), n) for n in range(kafka.address.partitions)]
    behind = 0
    for place in reader.committed(places, timeout=DEADLINE_S):
        _, high = reader.get_watermark_offsets(place, timeout=DEADLINE_S)
        behind += high - max(place.offset, 0)
    reader.close()
    return behind
