"""One member of the consumer group of a topic and a pool, in a thread of its own: reads, waits, and commits.

Only this thread touches the client. It hands readable messages of its pool to the feed and passes over those of
others. Partitions move cooperatively: those that stay are read on meanwhile, and of one that goes nothing that was
not yet handed on is kept, since its new reader gets that again. Each topic has a group of its own because a group
shares out all its partitions by number: with one for all, a worker could be left with those of one class.
"""

import contextlib
import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka import Message as KafkaMessage

from hourhand.core.offer import NotAnOffer
from hourhand.core.trigger import decode_trigger
from hourhand.errors import Unavailable
from hourhand.ports.queue import Message
from hourhand.queues.kafka.address import KafkaAddress
from hourhand.queues.kafka.offsets import Offsets
from hourhand.queues.kafka.topics import ensure_topics

NEW_GROUP_READS = 10_000  # of each partition, the newest: a new pool has no use for what is long over

_BATCH = 500
_POLL_S = 0.05
_PATIENCE_S = 2.0
_PAUSE_S = 0.5
_TAIL = -2_000  # how the client spells "from so many before the end"
_CONSUMER = {
    "enable.auto.commit": False,
    "partition.assignment.strategy": "cooperative-sticky",
    "auto.offset.reset": "earliest",  # of a group whose place has expired; a new one is placed by itself
    "session.timeout.ms": 6_000,  # the least that servers accept
    "heartbeat.interval.ms": 1_000,  # and so the time in which a member learns of another
    "queued.min.messages": 2_000,
    "queued.max.messages.kbytes": 16_384,
    "fetch.wait.max.ms": 100,
    "fetch.queue.backoff.ms": 20,
    "fetch.error.backoff.ms": 100,
}

Place = tuple[Offsets, int]
Handed = Callable[[Sequence[Message]], None]


class GroupMember:
    """Reads until it is told to end. What it hands on, and what it asks, is called from its thread."""

    def __init__(
        self, address: KafkaAddress, run_class: int, pool: str, *, hand: Handed, full: Callable[[], bool]
    ) -> None:
        self._address = address
        self._topic = address.topic(run_class)
        self._group = address.group(run_class, pool)
        self._pool = pool
        self._hand = hand
        self._full = full
        self._partitions: dict[int, Offsets] = {}
        self._acked: deque[Place] = deque()  # never longer than what was handed on
        self._held_back = False
        self._committing = False
        self._mend = True  # topics are to be looked at
        self._ending = threading.Event()
        # A server that hangs keeps no process alive.
        self._thread = threading.Thread(target=self._run, name=f"kafka-{self._topic}", daemon=True)
        self.away: str | None = None  # why nothing comes, while nothing can

    @property
    def assigned(self) -> int:
        """How many partitions it reads."""
        return len(self._partitions)

    def start(self) -> None:
        """Begin; connecting goes on in the thread."""
        self._thread.start()

    def ack(self, places: Iterable[Place]) -> None:
        """These may be committed; done with the next round. From any thread."""
        self._acked.extend(places)

    def end(self, patience_s: float) -> None:
        """Leave the group; blocks until that is done, or for as long as there is patience."""
        self._ending.set()
        if self._thread.ident is not None:
            self._thread.join(patience_s)

    def _run(self) -> None:
        while not self._ending.is_set():
            try:
                self._live()
            except (KafkaException, Unavailable, RuntimeError) as error:  # begin again with a new client
                self._troubled(str(error))
                self._ending.wait(_PAUSE_S)

    def _live(self) -> None:
        consumer = Consumer(
            {
                **self._address.configuration(),
                **_CONSUMER,
                "group.id": self._group,
                "error_cb": lambda error: self._troubled(error.str()),
                "on_commit": self._committed,
            }
        )
        try:
            self._mend_topics()
            consumer.subscribe([self._topic], on_assign=self._got, on_revoke=self._gave, on_lost=self._lost)
            while not self._ending.is_set():
                self._turn(consumer)
        finally:
            consumer.close()  # gives up the partitions, each with its last commit
            self._forget(list(self._partitions))

    def _turn(self, consumer: Consumer) -> None:
        """One round: messages in, backpressure, commits."""
        first = consumer.poll(_POLL_S)
        if first is not None:
            self._read([first, *consumer.consume(_BATCH - 1, timeout=0)])
        elif self.away is not None:
            self._look(consumer)
        if self._mend:
            self._mend_topics()
        full = self._full()
        if full != self._held_back:
            self._hold_back(consumer, full)
        if not self._committing:
            self._commit(consumer)

    def _read(self, messages: Sequence[KafkaMessage]) -> None:
        found = []
        for message in messages:
            error = message.error()
            if error is not None:
                self._failed(error)
                continue
            offsets = self._partitions.get(message.partition() or 0)
            offset = message.offset()
            if offsets is None or offset is None:
                continue  # of a partition that is somebody else's by now
            try:
                offer = decode_trigger(message.value() or b"")
            except NotAnOffer:
                offsets.read(offset, done=True)
                continue
            ours = offer.pool == self._pool
            offsets.read(offset, done=not ours)
            if ours:
                found.append(Message(offer, (offsets, offset)))
        self.away = None
        if found:
            self._hand(found)

    def _failed(self, error: KafkaError) -> None:
        if error.fatal():
            raise KafkaException(error)
        if error.code() in (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC):
            self._mend = True

    def _look(self, consumer: Consumer) -> None:
        """Whether the server answers again; without messages nobody would know."""
        try:
            consumer.list_topics(self._topic, timeout=_PATIENCE_S)
        except KafkaException:
            return
        self.away = None

    def _mend_topics(self) -> None:
        ensure_topics(self._address, patience_s=_PATIENCE_S)
        self._mend = False

    def _hold_back(self, consumer: Consumer, full: bool) -> None:
        """Stop reading while there is no room, and go on once there is."""
        self._held_back = full
        places = [TopicPartition(self._topic, partition) for partition in self._partitions]
        if full:
            consumer.pause(places)
        else:
            consumer.resume(places)

    def _commit(self, consumer: Consumer) -> None:
        places = self._positions(self._partitions)
        if places:
            self._committing = True
            consumer.commit(offsets=places, asynchronous=True)

    def _positions(self, partitions: Iterable[int]) -> list[TopicPartition]:
        while self._acked:
            offsets, offset = self._acked.popleft()
            offsets.ack(offset)
        places = []
        for partition in partitions:
            position = self._partitions[partition].position()
            if position is not None:
                places.append(TopicPartition(self._topic, partition, position))
        return places

    def _committed(self, error: KafkaError | None, places: Sequence[TopicPartition]) -> None:
        """What could not be committed is told again to somebody, which changes nothing."""
        self._committing = False

    def _got(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        try:
            known = consumer.committed(partitions, timeout=_PATIENCE_S)
        except KafkaException:
            known = partitions
        for place in known:
            if place.offset < 0:
                place.offset = _TAIL - NEW_GROUP_READS
            self._partitions[place.partition] = Offsets()
        consumer.incremental_assign(known)
        if self._held_back:
            consumer.pause(known)
        self.away = None

    def _gave(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        numbers = [one.partition for one in partitions if one.partition in self._partitions]
        places = self._positions(numbers)
        if places:
            with contextlib.suppress(KafkaException):  # told again to its new reader, which changes nothing
                consumer.commit(offsets=places, asynchronous=False)
        self._forget(numbers)

    def _lost(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._forget([one.partition for one in partitions])

    def _forget(self, partitions: Iterable[int]) -> None:
        for partition in partitions:
            offsets = self._partitions.pop(partition, None)
            if offsets is not None:
                offsets.lost = True

    def _troubled(self, why: str) -> None:
        self.away = why
