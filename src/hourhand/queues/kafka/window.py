"""Reads what was offered in a window of time, by the topics' own timestamps, so that it can be offered once more.

Nothing happens twice by it: an offer only names a run, and a run that is claimed or over is nobody's to take.
Reads page by page and outside of every consumer group, so that no worker's place is moved. Blocks.
"""

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from hourhand.core.instant import SECOND_US
from hourhand.core.offer import NotAnOffer, Offer
from hourhand.core.trigger import decode_trigger
from hourhand.queues.kafka.address import KafkaAddress
from hourhand.queues.kafka.topics import away

_PAGE = 1_000
_PATIENCE_S = 10.0
_US_PER_MS = SECOND_US // 1_000
_CONSUMER = {
    "enable.auto.commit": False,
    "auto.offset.reset": "earliest",
    "enable.partition.eof": True,
    "fetch.wait.max.ms": 20,
    "queued.max.messages.kbytes": 16_384,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowPage:
    """A page of offers, and how many messages beside them could not be read."""

    offers: Sequence[Offer]
    unreadable: int


def read_window(address: KafkaAddress, from_at: int, to_at: int) -> Generator[WindowPage, None, None]:
    """What was offered from an instant up to another, as pages; what is offered meanwhile is left out."""
    consumer = Consumer({**address.configuration(), **_CONSUMER, "group.id": f"{address.topics}.replay"})
    try:
        for window in _windows(consumer, address, from_at, to_at):
            yield from _pages(consumer, window)
    except KafkaException as error:
        raise away(address, error) from error
    finally:
        consumer.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Window:
    """A part of one partition: from the first offset up to, and without, the last."""

    topic: str
    partition: int
    start: int
    end: int


def _windows(consumer: Consumer, address: KafkaAddress, from_at: int, to_at: int) -> list[_Window]:
    """Each partition's part of the time; partitions without one are left out."""
    keys: list[tuple[str, int]] = []
    for name in address.all_topics:
        topic = consumer.list_topics(name, timeout=_PATIENCE_S).topics[name]
        if topic.error is not None:
            raise KafkaException(topic.error)
        keys += [(name, partition) for partition in sorted(topic.partitions)]
    starts, ends = _offsets_at(consumer, keys, from_at), _offsets_at(consumer, keys, to_at)
    windows = []
    for key in keys:
        _, newest = consumer.get_watermark_offsets(TopicPartition(*key), timeout=_PATIENCE_S)
        start, end = starts.get(key, newest), min(newest, ends.get(key, newest))
        if start < end:
            windows.append(_Window(topic=key[0], partition=key[1], start=start, end=end))
    return windows


def _offsets_at(consumer: Consumer, keys: Sequence[tuple[str, int]], at: int) -> dict[tuple[str, int], int]:
    """The first offset of each partition that is not before an instant, where there is one."""
    at_ms = -(-at // _US_PER_MS)
    asked = [TopicPartition(topic, partition, at_ms) for topic, partition in keys]
    found = consumer.offsets_for_times(asked, timeout=_PATIENCE_S)
    return {(one.topic, one.partition): one.offset for one in found if one.offset >= 0}


def _pages(consumer: Consumer, window: _Window) -> Iterator[WindowPage]:
    consumer.assign([TopicPartition(window.topic, window.partition, window.start)])
    next_offset = window.start
    while next_offset < window.end:
        first = consumer.poll(_PATIENCE_S)
        if first is None:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT, "no answer while reading the window"))
        page = []
        for message in (first, *consumer.consume(_PAGE - 1, timeout=0)):
            error, offset = message.error(), message.offset()
            if error is not None:
                if error.code() != KafkaError._PARTITION_EOF:
                    raise KafkaException(error)
                next_offset = window.end  # the newest have expired meanwhile
            elif offset is not None and offset < window.end:
                page.append(message.value() or b"")
                next_offset = offset + 1
            else:
                next_offset = window.end
        yield _read(page)


def _read(texts: Sequence[bytes]) -> WindowPage:
    offers = []
    for text in texts:
        try:
            offers.append(decode_trigger(text))
        except NotAnOffer:
            continue
    return WindowPage(offers=offers, unreadable=len(texts) - len(offers))
