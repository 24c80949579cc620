"""The use cases of webhooks: make, look at, change, test and delete them; look at deliveries and repeat one.

What a webhook may be is `core.webhooks`'; that its endpoint is called is the matter of `services.webhook_sender`.
"""

from typing import TypeVar

import msgspec

from hourhand.clock import Clock
from hourhand.core.instant import format_instant
from hourhand.core.webhooks import (
    NAMES,
    TEST,
    Delivery,
    Webhook,
    enabled_anew,
    format_webhook_id,
    rotated,
    webhook_faults,
)
from hourhand.errors import Invalid, NotFound
from hourhand.ids import IdSource, new_signing_secret
from hourhand.ports.store import Store
from hourhand.ports.webhooks import DecideWebhook, DeliveryPage, DeliveryQuery, is_disabled

T = TypeVar("T")


class Webhooks:
    """Use cases over the store; stateless, any number of instances."""

    def __init__(self, *, store: Store, ids: IdSource, clock: Clock) -> None:
        self._store = store
        self._ids = ids
        self._clock = clock

    async def create(self, webhook: Webhook, *, dry_run: bool = False) -> Webhook:
        """Store a new one, with an id and a secret of its own."""
        now_at = self._clock.now()
        made = msgspec.structs.replace(
            webhook,
            id=0 if dry_run else self._ids.job_id(),
            secrets=() if dry_run else (new_signing_secret(),),
            rotated_at=0,
            created_at=now_at,
            updated_at=now_at,
        )
        _check(made)
        if not dry_run:
            await self._store.add_webhook(made)
        return made

    async def get(self, tenant: str, webhook_id: int) -> Webhook:
        """One webhook, or NotFound."""
        return _found(await self._store.get_webhook(tenant, webhook_id), webhook_id)

    async def all_of(self, tenant: str) -> list[Webhook]:
        """A tenant's webhooks, oldest first."""
        return await self._store.list_webhooks(tenant)

    async def change(
        self, tenant: str, webhook_id: int, decide: DecideWebhook, *, dry_run: bool = False
    ) -> Webhook:
        """What `decide` makes of it. One that becomes enabled begins with a clean record."""

        def decide_checked(old: Webhook, now_at: int) -> Webhook:
            new = decide(old, now_at)
            _check(new)
            if new.enabled and not old.enabled:
                return enabled_anew(new, now_at)
            return msgspec.structs.replace(new, updated_at=now_at)

        if dry_run:
            return decide_checked(await self.get(tenant, webhook_id), self._clock.now())
        return _found(await self._store.change_webhook(tenant, webhook_id, decide_checked), webhook_id)

    async def rotate(self, tenant: str, webhook_id: int, *, dry_run: bool = False) -> Webhook:
        """Give it a new secret; the one before signs too, for some time."""
        if dry_run:
            return await self.get(tenant, webhook_id)
        secret = new_signing_secret()
        changed = await self._store.change_webhook(
            tenant, webhook_id, lambda old, now_at: rotated(old, secret, now_at)
        )
        return _found(changed, webhook_id)

    async def delete(self, tenant: str, webhook_id: int, *, dry_run: bool = False) -> None:
        """Forget it and what waits for it."""
        if dry_run:
            await self.get(tenant, webhook_id)
        elif not await self._store.delete_webhook(tenant, webhook_id):
            _found(None, webhook_id)

    async def test(self, tenant: str, webhook_id: int, *, dry_run: bool = False) -> Delivery:
        """Send it an event that says nothing, on the way that all events go."""
        now_at = self._clock.now()
        event_id = f"test-{self._ids.node_id():016x}"
        body = {
            "id": event_id,
            "type": NAMES[TEST],
            "at": format_instant(now_at),
            "job_id": None,
            "run_id": None,
            "data": {"message": "somebody asked for a test of this webhook"},
        }
        text = msgspec.json.encode(body).decode()
        if dry_run:
            await self._enabled(tenant, webhook_id)
            return Delivery(
                number=0,
                webhook_id=webhook_id,
                event_id=event_id,
                kind=TEST,
                made_at=now_at,
                due_at=now_at,
                body=text,
            )
        return _found(await self._store.deliver(tenant, webhook_id, event_id, text), webhook_id)

    async def deliveries(self, tenant: str, webhook_id: int, query: DeliveryQuery) -> DeliveryPage:
        """A page of deliveries, newest first."""
        return _found(await self._store.list_deliveries(tenant, webhook_id, query), webhook_id)

    async def delivery(self, tenant: str, webhook_id: int, event_id: str) -> Delivery:
        """One delivery, or NotFound."""
        return _told(await self._store.get_delivery(tenant, webhook_id, event_id), webhook_id)

    async def redeliver(
        self, tenant: str, webhook_id: int, event_id: str, *, dry_run: bool = False
    ) -> Delivery:
        """Send an event once more."""
        if dry_run:
            await self._enabled(tenant, webhook_id)
            return await self.delivery(tenant, webhook_id, event_id)
        return _told(await self._store.redeliver(tenant, webhook_id, event_id), webhook_id)

    async def _enabled(self, tenant: str, webhook_id: int) -> None:
        if not (await self.get(tenant, webhook_id)).enabled:
            raise is_disabled(webhook_id)


def _check(webhook: Webhook) -> None:
    faults = webhook_faults(webhook)
    if faults:
        first = faults[0]
        raise Invalid(f"{first.pointer[1:]}: expected {first.expected}, got {first.got}", faults)


def _told(delivery: Delivery | None, webhook_id: int) -> Delivery:
    if delivery is None:
        raise NotFound(f"{format_webhook_id(webhook_id)} has no delivery of this event, or no longer")
    return delivery


def _found(answer: T | None, webhook_id: int) -> T:
    if answer is None:
        raise NotFound(f"there is no webhook {format_webhook_id(webhook_id)}")
    return answer
