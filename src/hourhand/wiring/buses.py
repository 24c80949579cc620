"""How events travel in a cluster's process: out through its databases, and in where there is an API to hear them."""

from collections.abc import Callable, Sequence

from hourhand.ports.events import EventBatch, EventBus, encode_batch
from hourhand.services.local_events import LocalEvents
from hourhand.stores.postgres.channel import EVENTS, Channel
from hourhand.stores.postgres.events import PostgresEvents


def bus_over(channel: Channel, local: LocalEvents, *, hears: bool) -> EventBus:
    """The bus of one database; without anybody to hear, what others say is not even read."""
    return PostgresEvents(channel, local) if hears else _Outgoing(channel, local)


class FrontBus:
    """For what an API has to tell: goes out through one of the databases, since every API listens at all."""

    def __init__(self, local: LocalEvents) -> None:
        self._local = local
        self._buses: list[tuple[Channel, EventBus]] = []

    def add(self, channel: Channel, bus: EventBus) -> None:
        """One more database answers."""
        self._buses.append((channel, bus))

    def publish(self, batch: EventBatch) -> None:
        """Send it on its way."""
        listening: Sequence[EventBus] = [bus for channel, bus in self._buses if channel.listening]
        reached = next(iter(listening), self._buses[0][1] if self._buses else self._local)
        reached.publish(batch)

    def subscribe(self, heard: Callable[[EventBatch], None]) -> Callable[[], None]:
        """Hear every batch from now on; the answer ends that."""
        return self._local.subscribe(heard)


class _Outgoing:
    """Tells others, and hears nobody but itself."""

    def __init__(self, channel: Channel, local: LocalEvents) -> None:
        self._channel = channel
        self._local = local

    def publish(self, batch: EventBatch) -> None:
        self._local.publish(batch)
        self._channel.notify(EVENTS, encode_batch(batch))

    def subscribe(self, heard: Callable[[EventBatch], None]) -> Callable[[], None]:
        return self._local.subscribe(heard)
