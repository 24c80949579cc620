"""The scheduler's side: offers become messages of an idempotent producer that waits for all replicas.

One thread of its own talks to the client, so that nothing blocks the event loop. A server that does not answer
costs one short wait; from then on offers are refused at once, until a probe finds the server back.
"""

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from hourhand.core.offer import Offer
from hourhand.core.trigger import encode_reference, encode_trigger, trigger_key
from hourhand.errors import Unavailable
from hourhand.queues.kafka.address import KafkaAddress
from hourhand.queues.kafka.topics import away, ensure_topics

PATIENCE_S = 0.5  # a run is offered two seconds ahead of its time, and others wait behind it
_FIRST_PATIENCE_S = 2.0  # to connect, and to learn of the topics
_LEAST_TIMEOUT_S = 2.0  # of the client's own tries; what comes late is passed over
_PROBE_S = 0.5
_PROBE_PATIENCE_S = 2.0
_MOST_BYTES = 900_000  # of a message, below the servers' default
_PRODUCER = {
    "enable.idempotence": True,
    "acks": "all",
    "partitioner": "murmur2_random",  # as other clients do it
    "compression.type": "lz4",
    "linger.ms": 2,
    "queue.buffering.max.messages": 100_000,
    "queue.buffering.max.kbytes": 65_536,
    "delivery.report.only.error": True,
}


class KafkaOffers:
    """Hands offers to the topics of their classes."""

    def __init__(self, address: KafkaAddress, *, patience_s: float = PATIENCE_S) -> None:
        """`patience_s`: how long a batch may take, before the server counts as away."""
        self.wants_jobs = address.full_messages
        self._address = address
        self._patience_s = patience_s
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="kafka-offers")
        self._producer: Producer | None = None  # touched by the thread only
        self._failures: list[KafkaError] = []
        self._away: Unavailable | None = None
        self._probing: asyncio.Task[None] | None = None
        self._closed = False

    async def offer(self, offers: Sequence[Offer]) -> None:
        """Hand over a batch; Unavailable when some were not taken."""
        if self._closed:
            raise Unavailable("this side of Kafka has been closed")
        if self._away is not None:
            raise Unavailable(self._away.message)
        try:
            await asyncio.get_running_loop().run_in_executor(self._thread, self._send, offers)
        except Unavailable as error:
            self._go_away(error)
            raise

    async def close(self) -> None:
        """Let go; never raises."""
        if self._closed:
            return
        self._closed = True
        if self._probing is not None:
            self._probing.cancel()
        self._thread.submit(self._end)
        self._thread.shutdown(wait=False)

    def _go_away(self, error: Unavailable) -> None:
        self._away = error
        if self._probing is None and not self._closed:
            self._probing = asyncio.create_task(self._probe())

    async def _probe(self) -> None:
        """Until the server answers and has taken or given up what it was handed."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(_PROBE_S)
            try:
                if await loop.run_in_executor(self._thread, self._is_back):
                    break
            except Unavailable as error:
                self._away = error
        self._away, self._probing = None, None

    # What follows runs in the thread.

    def _send(self, offers: Sequence[Offer]) -> None:
        patience_s = self._patience_s
        if self._producer is None:
            patience_s = max(patience_s, _FIRST_PATIENCE_S)
            ensure_topics(self._address, patience_s=patience_s)
            timeout_ms = int(1000 * max(self._patience_s, _LEAST_TIMEOUT_S))
            settings = {**_PRODUCER, "message.timeout.ms": timeout_ms}
            self._producer = Producer({**self._address.configuration(), **settings})
        producer = self._producer
        self._failures.clear()
        by_class: dict[int, list[dict[str, bytes]]] = {}
        for offer in offers:
            message = {"value": self._written(offer), "key": trigger_key(offer)}
            by_class.setdefault(offer.run_class, []).append(message)
        taken = 0
        for run_class in sorted(by_class):
            topic = self._address.topic(run_class)
            taken += producer.produce_batch(topic, by_class[run_class], on_delivery=self._not_delivered)
        left = producer.flush(patience_s)
        if self._failures:
            self._lose(self._failures)
        if left or taken < len(offers):
            raise Unavailable(f"Kafka at {self._address.servers} does not take what it is offered")

    def _written(self, offer: Offer) -> bytes:
        if offer.job is None or not self.wants_jobs:
            return encode_reference(offer)
        whole = encode_trigger(offer)
        return whole if len(whole) <= _MOST_BYTES else encode_reference(offer)

    def _not_delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self._failures.append(error)

    def _lose(self, errors: Sequence[KafkaError]) -> None:
        if any(
            error.fatal() for error in errors
        ):  # the client is of no use any more: the next offer makes another
            self._producer = None
        raise away(self._address, KafkaException(errors[0]))

    def _is_back(self) -> bool:
        ensure_topics(self._address, patience_s=_PROBE_PATIENCE_S)
        return self._producer is None or self._producer.flush(_PROBE_PATIENCE_S) == 0

    def _end(self) -> None:
        if self._producer is not None:
            self._producer.flush(PATIENCE_S)
            self._producer.purge()
            self._producer = None
