"""The store's verbs about webhooks, and who carries a call. The verbs are part of `ports.store`.

What happens to runs and jobs is noted for those tenants that have an enabled webhook for it, in the transaction
in which it happens: what a store has answered is told at least once, and what it took back never. No order is
promised. An event's id is the same on every repetition, and for every webhook.
"""

from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec

from hourhand.core.webhooks import Answered, Delivery, DeliveryState, Tried, Webhook, format_webhook_id
from hourhand.errors import Conflict

DecideWebhook = Callable[[Webhook, int], Webhook]  # of the webhook and the store's time


def is_disabled(webhook_id: int) -> Conflict:
    """Nothing can be sent to a webhook that is disabled."""
    return Conflict(f"{format_webhook_id(webhook_id)} is disabled; enable it first")


class DeliveryQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which deliveries of a webhook to list; newest first, after a place."""

    state: DeliveryState | None = None
    before: tuple[int, ...] | None = None  # made_at and number; and a shard, where there are several
    limit: int = 50


class DeliveryPage(msgspec.Struct, frozen=True, kw_only=True):
    """Some deliveries, and where to go on."""

    deliveries: tuple[Delivery, ...]
    next_before: tuple[int, ...] | None
    missing: tuple[int, ...] = ()  # shards that did not answer


class WebhookWork(msgspec.Struct, frozen=True, kw_only=True):
    """What there is to do for webhooks."""

    noted: bool  # events of which nobody has made deliveries
    due_at: int | None  # when a delivery may be due; None when none waits


class Spread(msgspec.Struct, frozen=True, kw_only=True):
    """What became of noted events."""

    events: int  # how many were taken up
    webhooks: tuple[int, ...] = ()  # who gets some of them


class CallBatch(msgspec.Struct, frozen=True, kw_only=True):
    """Deliveries of one webhook that one sender has in hand."""

    webhook: Webhook
    fence: int
    deliveries: tuple[Delivery, ...]


class Trimmed(msgspec.Struct, frozen=True, kw_only=True):
    """What was forgotten of some webhooks."""

    dropped: int = 0  # deliveries that still waited
    forgotten: int = 0  # deliveries that were over


class WebhookVerbs(Protocol):
    """Webhooks and their deliveries."""

    async def add_webhook(self, webhook: Webhook) -> None:
        """Store one; Conflict when the tenant has too many. Storing the same id twice changes nothing."""
        ...

    async def get_webhook(self, tenant: str, webhook_id: int) -> Webhook | None:
        """One webhook, with how many deliveries wait."""
        ...

    async def list_webhooks(self, tenant: str) -> list[Webhook]:
        """All of a tenant, oldest first."""
        ...

    async def change_webhook(self, tenant: str, webhook_id: int, decide: DecideWebhook) -> Webhook | None:
        """Apply `decide(webhook, now)` under its lock; None when there is none.

        What waits stays while it is disabled, and goes on when it is enabled.
        """
        ...

    async def delete_webhook(self, tenant: str, webhook_id: int) -> bool:
        """Remove it with its deliveries; False when there is none."""
        ...

    async def list_deliveries(
        self, tenant: str, webhook_id: int, query: DeliveryQuery
    ) -> DeliveryPage | None:
        """A page of a webhook's deliveries, newest first; None when there is no such webhook."""
        ...

    async def get_delivery(self, tenant: str, webhook_id: int, event_id: str) -> Delivery | None:
        """One delivery; None when it is not known."""
        ...

    async def deliver(self, tenant: str, webhook_id: int, event_id: str, body: str) -> Delivery | None:
        """Make a delivery that no event brought about; None when there is no such webhook.

        Conflict while it is disabled.
        """
        ...

    async def redeliver(self, tenant: str, webhook_id: int, event_id: str) -> Delivery | None:
        """Send an event once more, from the first try on; None when it is not known. Conflict while disabled."""
        ...

    async def spread_events(self, limit: int) -> Spread:
        """Make deliveries of noted events, the oldest first, for each webhook that wants them."""
        ...

    async def take_calls(self, webhooks: int, each: int, lease_us: int) -> list[CallBatch]:
        """Take due deliveries of some enabled webhooks that nobody has in hand, under a raised fence.

        Who does not record within the lease loses them to the next.
        """
        ...

    async def webhook_work(self) -> WebhookWork:
        """What there is to do, cheaply."""
        ...

    async def record_calls(self, webhook_id: int, fence: int, tried: Sequence[Tried]) -> Webhook | None:
        """Keep what calls came to and let go of the webhook; None, with nothing changed, under another fence."""
        ...

    async def webhook_ids(self, after_id: int, limit: int) -> list[int]:
        """Webhooks of all tenants by id."""
        ...

    async def trim_webhooks(self, ids: Sequence[int]) -> Trimmed:
        """Forget deliveries that are too many or too old; those that still waited count as dropped."""
        ...


class Caller(Protocol):
    """Carries one call to an endpoint. Raises nothing but the cancellation; follows no redirects."""

    async def call(self, webhook: Webhook, delivery: Delivery) -> Answered:
        """Send it, signed, and say what came of it; within the time that one call has."""
        ...

    async def close(self) -> None:
        """Hang up."""
        ...
