"""The bus within one process, and the last stretch of every bus between processes."""

from collections.abc import Callable

from hourhand.ports.events import EventBatch
from hourhand.telemetry import logger

_log = logger("hourhand.events")


class LocalEvents:
    """Hands each batch on at once, to whoever subscribed in this process."""

    def __init__(self) -> None:
        self._subscribers: dict[object, Callable[[EventBatch], None]] = {}

    def publish(self, batch: EventBatch) -> None:
        """Tell every subscriber here and now; one that fails does not keep it from the others."""
        for heard in list(self._subscribers.values()):
            try:
                heard(batch)
            except Exception:
                _log.exception("events could not be delivered")

    def subscribe(self, heard: Callable[[EventBatch], None]) -> Callable[[], None]:
        """Hear every batch from now on; the answer ends that."""
        key = object()
        self._subscribers[key] = heard

        def unsubscribe() -> None:
            self._subscribers.pop(key, None)

        return unsubscribe
