"""Webhooks over several databases: every shard has a copy of each, since it notes what happens on it by itself.

A change goes to all shards, one after another, and needs all of them to answer; what was done on some only is
completed by repeating it. Who asked is kept by one shard only. Each shard sends and counts for itself, so how a webhook stands is put together from all.
"""

from collections.abc import Awaitable, Callable, Sequence

import msgspec

from hourhand.core.webhooks import Delivery, Health, Webhook
from hourhand.errors import Unavailable
from hourhand.ports.acting import acting_for, actor
from hourhand.ports.store import Store
from hourhand.ports.webhooks import DecideWebhook, DeliveryPage, DeliveryQuery
from hourhand.stores.sharded.asking import Shards, T, named, some_answers_of
from hourhand.stores.sharded.merging import merge_ordered


class ShardedWebhooks:
    """The verbs about webhooks that the API asks for; see `ports.webhooks` for the contract of each."""

    _shards: Shards

    async def add_webhook(self, webhook: Webhook) -> None:
        """On all shards or, as far as that can be taken back, on none. The last to be asked keeps who asked."""
        done, count = [], len(self._shards)
        try:
            for index in range(count):
                with acting_for(actor() if index == count - 1 else None):
                    await self._shards.ask(index, lambda shard: shard.add_webhook(webhook))
                done.append(index)
        except Exception:
            for index in done:
                await self._forget(index, webhook)
            raise

    async def get_webhook(self, tenant: str, webhook_id: int) -> Webhook | None:
        found = await self._all(lambda shard: shard.get_webhook(tenant, webhook_id))
        return merged([one for one in found if one is not None])

    async def list_webhooks(self, tenant: str) -> list[Webhook]:
        by_id: dict[int, list[Webhook]] = {}
        for part in await self._all(lambda shard: shard.list_webhooks(tenant)):
            for one in part:
                by_id.setdefault(one.id, []).append(one)
        found = [merged(by_id[one]) for one in sorted(by_id)]
        return [one for one in found if one is not None]

    async def change_webhook(self, tenant: str, webhook_id: int, decide: DecideWebhook) -> Webhook | None:
        """A shard that has no copy, since it was away when one was made, gets one."""
        if (
            await self.get_webhook(tenant, webhook_id) is None
        ):  # asks all, so that all are there to be changed
            return None
        changed = await self._each(lambda shard: shard.change_webhook(tenant, webhook_id, decide))
        webhook = merged([one for one in changed if one is not None])
        if webhook is not None and None in changed:
            copy = msgspec.structs.replace(webhook, health=Health(), dropped=0, backlog=0)
            with acting_for(None):  # it was changed, not made
                await self._each(lambda shard: shard.add_webhook(copy))
        return webhook

    async def delete_webhook(self, tenant: str, webhook_id: int) -> bool:
        return any(await self._each(lambda shard: shard.delete_webhook(tenant, webhook_id)))

    async def list_deliveries(
        self, tenant: str, webhook_id: int, query: DeliveryQuery
    ) -> DeliveryPage | None:
        """Newest first, and of the same moment and number by shard: numbers are each shard's own."""

        async def read(index: int) -> DeliveryPage | None:
            part = msgspec.structs.replace(query, before=_place_in(query.before, index))
            return await self._shards.ask(
                index, lambda shard: shard.list_deliveries(tenant, webhook_id, part)
            )

        found = await some_answers_of({index: read(index) for index in range(len(self._shards))})
        pages = {index: page for index, page in found.items() if page is not None}
        if not pages:
            return None
        placed = [
            (
                [((one.made_at, one.number, index), one) for one in page.deliveries],
                None if page.next_before is None else (page.next_before[0], page.next_before[1], index),
            )
            for index, page in pages.items()
        ]
        deliveries, onward = merge_ordered(placed, lambda item: item[0], query.limit)
        return DeliveryPage(
            deliveries=tuple(one for _, one in deliveries),
            next_before=onward,
            missing=self._shards.missing(found),
        )

    async def get_delivery(self, tenant: str, webhook_id: int, event_id: str) -> Delivery | None:
        found = await self._all(lambda shard: shard.get_delivery(tenant, webhook_id, event_id))
        return next((one for one in found if one is not None), None)

    async def deliver(self, tenant: str, webhook_id: int, event_id: str, body: str) -> Delivery | None:
        """By the first shard, since it is about none of them."""
        return await self._shards.ask(0, lambda shard: shard.deliver(tenant, webhook_id, event_id, body))

    async def redeliver(self, tenant: str, webhook_id: int, event_id: str) -> Delivery | None:
        found = await self._each(lambda shard: shard.redeliver(tenant, webhook_id, event_id))
        return next((one for one in found if one is not None), None)

    async def _each(self, verb: Callable[[Store], Awaitable[T]]) -> list[T]:
        """One shard after another, so that a change stops where one is away. The first that changes something keeps who asked."""
        found: list[T] = []
        for index in range(len(self._shards)):
            with acting_for(None if any(found) else actor()):
                found.append(await self._shards.ask(index, verb))
        return found

    async def _all(self, verb: Callable[[Store], Awaitable[T]]) -> list[T]:
        found = await self._shards.ask_all(verb)
        missing = self._shards.missing(found)
        if missing:
            raise Unavailable(f"how webhooks stand cannot be said while {named(missing)} cannot be reached")
        return list(found.values())

    async def _forget(self, index: int, webhook: Webhook) -> None:
        try:
            with acting_for(None):
                await self._shards.ask(index, lambda shard: shard.delete_webhook(webhook.tenant, webhook.id))
        except Unavailable:
            return  # a copy without the others: it is listed, and can be deleted


def _place_in(before: tuple[int, ...] | None, index: int) -> tuple[int, ...] | None:
    """Where a shard goes on: shards below the one at which a page ended may have the same place still to come."""
    if before is None:
        return None
    made_at, number, *shard = before
    return (made_at, number + 1) if shard and index < shard[0] else (made_at, number)


def merged(copies: Sequence[Webhook]) -> Webhook | None:
    """One webhook from the copies that shards have: what was written is alike, how it stands is added up."""
    if not copies:
        return None
    newest = max(copies, key=lambda one: one.updated_at)
    failing = [one.health for one in copies if one.health.failing_since is not None]
    health = min(failing, key=lambda one: one.failing_since or 0) if failing else newest.health
    disabled = [one for one in copies if not one.enabled]
    return msgspec.structs.replace(
        newest,
        enabled=not disabled,
        disabled_reason=next((one.disabled_reason for one in disabled if one.disabled_reason), None),
        health=msgspec.structs.replace(
            health,
            succeeded_at=max((one.health.succeeded_at or 0 for one in copies), default=0) or None,
            failed_at=max((one.health.failed_at or 0 for one in copies), default=0) or None,
        ),
        dropped=sum(one.dropped for one in copies),
        backlog=sum(one.backlog for one in copies),
    )
