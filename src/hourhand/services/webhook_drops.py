"""Says in the log whose deliveries were dropped: each webhook at most once a minute, however many they are."""

from hourhand.core.instant import MINUTE_US
from hourhand.core.webhooks import format_webhook_id
from hourhand.telemetry import logger

TOLD_EVERY_US = MINUTE_US

_log = logger("hourhand.webhooks")


class DropLog:
    """Counts by webhook what was not said yet; knows only those of whom something was said of late."""

    def __init__(self) -> None:
        self._unsaid: dict[int, int] = {}
        self._said_at: dict[int, int] = {}

    def add(self, webhook_id: int, count: int) -> None:
        """Some were dropped."""
        self._unsaid[webhook_id] = self._unsaid.get(webhook_id, 0) + count

    def tell(self, now_at: int) -> None:
        """Say what may be said now; the rest is said with what follows, or when its minute is over."""
        # what was said later than now was said before the clock was set back
        self._said_at = {one: at for one, at in self._said_at.items() if at <= now_at < at + TOLD_EVERY_US}
        for webhook_id in self._unsaid.keys() - self._said_at.keys():
            _log.warning(
                "deliveries of a webhook were dropped: too many or too old",
                webhook=format_webhook_id(webhook_id),
                count=self._unsaid.pop(webhook_id),
            )
            self._said_at[webhook_id] = now_at
