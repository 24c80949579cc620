"""The bus of a cluster: every batch goes to this process directly, and to the others by NOTIFY."""

from collections.abc import Callable

from hourhand.ports.events import EventBatch, EventBus, decode_batch, encode_batch
from hourhand.stores.postgres.channel import EVENTS, Channel
from hourhand.telemetry import logger

_log = logger("hourhand.events")


class PostgresEvents:
    """Joins the local bus of this process with those of the others. Several databases may share one local bus."""

    def __init__(self, channel: Channel, local: EventBus) -> None:
        self._channel = channel
        self._local = local
        channel.listen(EVENTS, self._heard, self._missed)

    def publish(self, batch: EventBatch) -> None:
        """Send it on its way."""
        self._local.publish(batch)
        self._channel.notify(EVENTS, encode_batch(batch))

    def subscribe(self, heard: Callable[[EventBatch], None]) -> Callable[[], None]:
        """Hear every batch from now on; the answer ends that."""
        return self._local.subscribe(heard)

    def _heard(self, payload: str) -> None:
        try:
            batch = decode_batch(payload)
        except ValueError as error:  # a newer version's, or a stranger's
            _log.warning("a message was not understood", why=str(error))
            return
        self._local.publish(batch)

    def _missed(self) -> None:
        self._local.publish(EventBatch(gap=True))
