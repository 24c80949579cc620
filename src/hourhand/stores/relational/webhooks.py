"""Operations on webhooks: keep them, make deliveries of what was noted, hand deliveries out, keep what calls came to.

Each is one transaction. A webhook is in one sender's hand at a time, under a fence; what a call means for its delivery
and its endpoint is `core.webhooks`'. What happened is noted by `stores.relational.tidings` and by each store's finish.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from hourhand.core.deeds import Act
from hourhand.core.lifecycle import State
from hourhand.core.webhooks import (
    KEEP_US,
    KEPT_DELIVERIES,
    MAX_BACKLOG,
    MAX_WEBHOOKS,
    NAMES,
    TEST,
    Delivery,
    DeliveryState,
    Health,
    Tried,
    Webhook,
    after_calls,
    after_try,
    event_id_of_job,
    event_id_of_run,
    format_webhook_id,
)
from hourhand.errors import Conflict
from hourhand.ports.events import Event, EventData, EventType, cut, event_document, first_line
from hourhand.ports.store import Hint
from hourhand.ports.webhooks import (
    CallBatch,
    DecideWebhook,
    DeliveryPage,
    DeliveryQuery,
    Spread,
    Trimmed,
    WebhookWork,
    is_disabled,
)
from hourhand.stores.relational.deeds import note_deed
from hourhand.stores.relational.rows import from_json, to_json
from hourhand.stores.relational.tx import Engine, Tx

_STATES = tuple(DeliveryState)
_PENDING = _STATES.index(DeliveryState.PENDING)
_NEWEST = ((1 << 62) - 1, (1 << 62) - 1)
_RUN_STATES = {
    1: State.SUCCEEDED,
    2: State.RETRYING,
    3: State.FAILED,
    4: State.SKIPPED,
    7: State.CANCELLED,
}


class _Happened(NamedTuple):
    """A row of `webhook_events`."""

    id: int
    kind: int
    at: int
    job_id: int
    scheduled_at: int | None
    attempt: int
    version: int | None
    due_at: int | None
    started_at: int | None
    tenant: str
    name: str
    detail: str | None

    @property
    def event_id(self) -> str:
        """The same for everybody who is told."""
        if self.scheduled_at is None:
            return event_id_of_job(self.job_id, self.version or 0)
        return event_id_of_run(self.job_id, self.scheduled_at, self.attempt)


class WebhookStore:
    """The port's verbs about webhooks over an engine; see `ports.webhooks` for the contract of each."""

    _engine: Engine

    async def add_webhook(self, webhook: Webhook) -> None:
        await self._engine.write(lambda tx: add_webhook(tx, webhook))

    async def get_webhook(self, tenant: str, webhook_id: int) -> Webhook | None:
        return await self._engine.read(lambda tx: get_webhook(tx, tenant, webhook_id))

    async def list_webhooks(self, tenant: str) -> list[Webhook]:
        return await self._engine.read(lambda tx: list_webhooks(tx, tenant))

    async def change_webhook(self, tenant: str, webhook_id: int, decide: DecideWebhook) -> Webhook | None:
        return await self._engine.write(lambda tx: change_webhook(tx, tenant, webhook_id, decide))

    async def delete_webhook(self, tenant: str, webhook_id: int) -> bool:
        return await self._engine.write(lambda tx: delete_webhook(tx, tenant, webhook_id))

    async def list_deliveries(
        self, tenant: str, webhook_id: int, query: DeliveryQuery
    ) -> DeliveryPage | None:
        return await self._engine.read(lambda tx: list_deliveries(tx, tenant, webhook_id, query))

    async def get_delivery(self, tenant: str, webhook_id: int, event_id: str) -> Delivery | None:
        return await self._engine.read(lambda tx: get_delivery(tx, tenant, webhook_id, event_id))

    async def deliver(self, tenant: str, webhook_id: int, event_id: str, body: str) -> Delivery | None:
        return await self._engine.write(lambda tx: deliver(tx, tenant, webhook_id, event_id, body))

    async def redeliver(self, tenant: str, webhook_id: int, event_id: str) -> Delivery | None:
        return await self._engine.write(lambda tx: redeliver(tx, tenant, webhook_id, event_id))

    async def spread_events(self, limit: int) -> Spread:
        return await self._engine.write(lambda tx: spread_events(tx, limit))

    async def take_calls(self, webhooks: int, each: int, lease_us: int) -> list[CallBatch]:
        return await self._engine.write(lambda tx: take_calls(tx, webhooks, each, lease_us))

    async def webhook_work(self) -> WebhookWork:
        return await self._engine.read(webhook_work)

    async def record_calls(self, webhook_id: int, fence: int, tried: Sequence[Tried]) -> Webhook | None:
        return await self._engine.write(lambda tx: record_calls(tx, webhook_id, fence, tried))

    async def webhook_ids(self, after_id: int, limit: int) -> list[int]:
        return await self._engine.read(lambda tx: webhook_ids(tx, after_id, limit))

    async def trim_webhooks(self, ids: Sequence[int]) -> Trimmed:
        return await self._engine.write(lambda tx: trim_webhooks(tx, ids))


async def add_webhook(tx: Tx, webhook: Webhook) -> None:
    """Store a webhook of a tenant that has room for it."""
    others = [row[0] for row in await tx.all("webhooks_of", (webhook.tenant,)) if row[0] != webhook.id]
    if len(others) >= MAX_WEBHOOKS:
        raise Conflict(f"there are {MAX_WEBHOOKS} webhooks already; delete one, or let one serve for several")
    values = {**_values(webhook), "tenant": webhook.tenant, "created_at": webhook.created_at}
    if await tx.run("add_webhook", values):
        await _note(tx, Act.WEBHOOK_CREATE, webhook)


async def get_webhook(tx: Tx, tenant: str, webhook_id: int) -> Webhook | None:
    """A tenant's webhook; another tenant's does not exist."""
    row = await tx.one("get_webhook", (webhook_id,))
    if row is None or row[1] != tenant:
        return None
    return (await _counted(tx, [_webhook(row)]))[0]


async def list_webhooks(tx: Tx, tenant: str) -> list[Webhook]:
    """All webhooks of a tenant."""
    return await _counted(tx, [_webhook(row) for row in await tx.all("webhooks_of", (tenant,))])


async def change_webhook(tx: Tx, tenant: str, webhook_id: int, decide: DecideWebhook) -> Webhook | None:
    """What somebody makes of a webhook; whoever has it in hand goes on with what was taken."""
    old = await _hold(tx, tenant, webhook_id)
    if old is None:
        return None
    new = decide(old, tx.now_at)
    await tx.run("put_webhook", _values(new))
    await _note(tx, Act.WEBHOOK_UPDATE if new.secrets == old.secrets else Act.WEBHOOK_ROTATE, new)
    if new.enabled and not old.enabled:
        await _wake(tx, [webhook_id])
    return (await _counted(tx, [new]))[0]


async def delete_webhook(tx: Tx, tenant: str, webhook_id: int) -> bool:
    """Remove a webhook; held first, so that nobody makes deliveries for it meanwhile."""
    webhook = await _hold(tx, tenant, webhook_id)
    if webhook is None:
        return False
    await tx.run("drop_deliveries_of", (webhook_id,))
    await tx.run("drop_webhook", (webhook_id,))
    await _note(tx, Act.WEBHOOK_DELETE, webhook)
    return True


async def list_deliveries(tx: Tx, tenant: str, webhook_id: int, query: DeliveryQuery) -> DeliveryPage | None:
    """A page of a webhook's deliveries, newest first."""
    row = await tx.one("get_webhook", (webhook_id,))
    if row is None or row[1] != tenant:
        return None
    before = (query.before or _NEWEST)[:2]
    if query.state is None:
        rows = await tx.all("deliveries_page", (webhook_id, *before, query.limit))
    else:
        state = _STATES.index(query.state)
        rows = await tx.all("deliveries_page_in", (webhook_id, *before, state, query.limit))
    found = tuple(_delivery(row) for row in rows)
    onward = (found[-1].made_at, found[-1].number) if len(found) == query.limit else None
    return DeliveryPage(deliveries=found, next_before=onward)


async def get_delivery(tx: Tx, tenant: str, webhook_id: int, event_id: str) -> Delivery | None:
    """One delivery of a tenant's webhook."""
    owner = await tx.one("get_webhook", (webhook_id,))
    row = None if owner is None else await tx.one("get_delivery", (webhook_id, event_id))
    return None if row is None or owner[1] != tenant else _delivery(row)


async def deliver(tx: Tx, tenant: str, webhook_id: int, event_id: str, body: str) -> Delivery | None:
    """Make a delivery that somebody asked for."""
    if not await _hold_enabled(tx, tenant, webhook_id):
        return None
    there = await tx.one("get_delivery", (webhook_id, event_id))
    if there is not None:
        return _delivery(there)
    await tx.insert("add_delivery", [(webhook_id, event_id, TEST, tx.now_at, tx.now_at, body)])
    await _note_delivery(tx, Act.WEBHOOK_TEST, tenant, webhook_id, event_id)
    await _wake(tx, [webhook_id])
    return _delivery(await tx.one("get_delivery", (webhook_id, event_id)))


async def redeliver(tx: Tx, tenant: str, webhook_id: int, event_id: str) -> Delivery | None:
    """Let a delivery begin anew, whatever became of it."""
    if not await _hold_enabled(tx, tenant, webhook_id):
        return None
    if not await tx.run("deliver_again", (tx.now_at, webhook_id, event_id)):
        return None
    await _note_delivery(tx, Act.WEBHOOK_REDELIVER, tenant, webhook_id, event_id)
    await _wake(tx, [webhook_id])
    return _delivery(await tx.one("get_delivery", (webhook_id, event_id)))


async def spread_events(tx: Tx, limit: int) -> Spread:
    """Make deliveries of what was noted. Webhooks are held before, so that none is deleted meanwhile."""
    happened = sorted(_Happened(*row) for row in await tx.all("take_webhook_events", (limit,)))
    if not happened:
        return Spread(events=0)
    tenants = tx.array(sorted({one.tenant for one in happened}))
    by_tenant: dict[str, list[Webhook]] = {}
    for row in await tx.all("webhooks_hearing", (tenants,)):
        by_tenant.setdefault(row[1], []).append(_webhook(row))
    tags = await _tags(tx, happened, by_tenant)
    told = [
        (webhook.id, one)
        for one in happened
        for webhook in by_tenant.get(one.tenant, ())
        if webhook.hears(one.kind, one.job_id, tags.get(one.job_id, ()))
    ]
    there = await _wake(tx, sorted({webhook_id for webhook_id, _ in told}))
    bodies = {one.id: (one.event_id, _body(one)) for _, one in told}
    rows = [
        (webhook_id, bodies[one.id][0], one.kind, tx.now_at, tx.now_at, bodies[one.id][1])
        for webhook_id, one in told
        if webhook_id in there
    ]
    await tx.insert("add_delivery", rows)
    return Spread(events=len(happened), webhooks=tuple(sorted(there)))


async def take_calls(tx: Tx, webhooks: int, each: int, lease_us: int) -> list[CallBatch]:
    """Hand out what is due; who has nothing due after all is let go at once."""
    given = {"now": tx.now_at, "until": tx.now_at + lease_us, "limit": webhooks}
    taken = {row[0]: row for row in await tx.all("take_webhooks", given)}
    if not taken:
        return []
    asked = {"ids": tx.array(sorted(taken)), "now": tx.now_at, "each": each}
    due: dict[int, list[Delivery]] = {}
    for row in await tx.all("due_deliveries", asked):
        due.setdefault(row[1], []).append(_delivery(row))
    for webhook_id in sorted(taken.keys() - due.keys()):
        await tx.run("let_go_webhook", (webhook_id,))
    return [
        CallBatch(webhook=_webhook(taken[one]), fence=taken[one][-1], deliveries=tuple(due[one]))
        for one in sorted(due)
    ]


async def webhook_work(tx: Tx) -> WebhookWork:
    """What there is to do."""
    noted, due_at = await tx.one("webhook_work")
    return WebhookWork(noted=bool(noted), due_at=due_at)


async def record_calls(tx: Tx, webhook_id: int, fence: int, tried: Sequence[Tried]) -> Webhook | None:
    """Keep what calls came to, unless another sender has the webhook in hand by now."""
    row = await tx.one("lock_webhook", (webhook_id,))
    await tx.look_at_clock()
    if row is None or row[-1] != fence:
        return None
    webhook = after_calls(_webhook(row), [one.answer for one in tried], tx.now_at)
    await tx.run("put_deliveries", (to_json([_tried_values(one) for one in tried]),))
    await tx.run("put_webhook", _values(webhook))
    await tx.run("let_go_webhook", (webhook_id,))
    return webhook


async def webhook_ids(tx: Tx, after_id: int, limit: int) -> list[int]:
    """Webhooks by id."""
    return [row[0] for row in await tx.all("webhook_ids", (after_id, limit))]


async def trim_webhooks(tx: Tx, ids: Sequence[int]) -> Trimmed:
    """Forget deliveries beyond what is kept of each webhook."""
    dropped = forgotten = 0
    for webhook_id in sorted(ids):
        given = {"id": webhook_id, "before": tx.now_at - KEEP_US}
        fewer = await tx.run("drop_waiting_deliveries", {**given, "most": MAX_BACKLOG})
        if fewer:
            await tx.run("count_dropped", (fewer, webhook_id))
        dropped += fewer
        forgotten += await tx.run("drop_ended_deliveries", {**given, "most": KEPT_DELIVERIES})
    return Trimmed(dropped=dropped, forgotten=forgotten)


async def _hold(tx: Tx, tenant: str, webhook_id: int) -> Webhook | None:
    row = await tx.one("lock_webhook", (webhook_id,))
    await tx.look_at_clock()
    return None if row is None or row[1] != tenant else _webhook(row)


async def _hold_enabled(tx: Tx, tenant: str, webhook_id: int) -> bool:
    webhook = await _hold(tx, tenant, webhook_id)
    if webhook is not None and not webhook.enabled:
        raise is_disabled(webhook_id)
    return webhook is not None


async def _note(tx: Tx, act: Act, webhook: Webhook) -> None:
    """Who did it, with what people call the webhook. Addresses often carry a secret, so they are left out."""
    note = webhook.description or None
    await note_deed(tx, webhook.tenant, act, object_id=format_webhook_id(webhook.id), note=note)


async def _note_delivery(tx: Tx, act: Act, tenant: str, webhook_id: int, event_id: str) -> None:
    await note_deed(tx, tenant, act, object_id=format_webhook_id(webhook_id), note=event_id)


async def _wake(tx: Tx, ids: Sequence[int]) -> set[int]:
    """Let webhooks be looked at; says which are still there."""
    if not ids:
        return set()
    tx.hints.add(Hint.WEBHOOKS)
    return {row[0] for row in await tx.all("wake_webhooks", {"now": tx.now_at, "ids": tx.array(ids)})}


async def _tags(
    tx: Tx, happened: Sequence[_Happened], by_tenant: dict[str, list[Webhook]]
) -> dict[int, Sequence[str]]:
    """Tags of the jobs, where a webhook asks for some."""
    asking = {tenant for tenant, webhooks in by_tenant.items() if any(one.tags for one in webhooks)}
    ids = sorted({one.job_id for one in happened if one.tenant in asking})
    if not ids:
        return {}
    return {row[0]: from_json(row[1]) or () for row in await tx.all("tags_of", (tx.array(ids),))}


async def _counted(tx: Tx, webhooks: Sequence[Webhook]) -> list[Webhook]:
    ids = tx.array([one.id for one in webhooks])
    waiting = {row[0]: row[1] for row in await tx.all("webhook_backlogs", (ids,))} if webhooks else {}
    return [msgspec.structs.replace(one, backlog=waiting[one.id]) for one in webhooks]


def _body(one: _Happened) -> str:
    """The event's document; no payload and no secret is in it, and of an error its first line."""
    told = from_json(one.detail) or {}
    started_at, due_at = one.started_at, one.due_at
    is_run = one.scheduled_at is not None
    data = EventData(
        state=_RUN_STATES[one.kind].value if is_run else told["state"],
        name=cut(one.name),
        lag_ms=None if started_at is None or due_at is None else max(0, started_at - due_at) // 1000,
        took_ms=None if started_at is None else max(0, one.at - started_at) // 1000,
        attempt=one.attempt if is_run else None,
        error=first_line(told.get("error")),
        reason=first_line(told.get("reason")),
        version=one.version,
    )
    kind = EventType(NAMES[one.kind])
    event = Event(one.event_id, kind, one.tenant, one.at, one.job_id, one.scheduled_at, data)
    return to_json(event_document(event))


def _webhook(row: Sequence[Any]) -> Webhook:
    return Webhook(
        id=row[0],
        tenant=row[1],
        url=row[2],
        types=tuple(from_json(row[3])),
        jobs=tuple(from_json(row[4])),
        tags=tuple(from_json(row[5])),
        description=row[6],
        enabled=bool(row[7]),
        disabled_reason=row[8],
        secrets=tuple(from_json(row[9])),
        rotated_at=row[10],
        health=Health(
            succeeded_at=row[11],
            failed_at=row[12],
            failing_since=row[13],
            failures=row[14],
            rest_until=row[15],
            error=row[16],
        ),
        dropped=row[17],
        created_at=row[18],
        updated_at=row[19],
    )


def _values(webhook: Webhook) -> dict[str, Any]:
    health = webhook.health
    return {
        "id": webhook.id,
        "url": webhook.url,
        "types": to_json(webhook.types),
        "jobs": to_json(webhook.jobs),
        "tags": to_json(webhook.tags),
        "description": webhook.description,
        "enabled": int(webhook.enabled),
        "disabled_reason": webhook.disabled_reason,
        "secrets": to_json(webhook.secrets),
        "rotated_at": webhook.rotated_at,
        "succeeded_at": health.succeeded_at,
        "failed_at": health.failed_at,
        "failing_since": health.failing_since,
        "failures": health.failures,
        "rest_until": health.rest_until,
        "error": health.error,
        "updated_at": webhook.updated_at,
        "kinds": webhook.kinds,
    }


def _delivery(row: Sequence[Any]) -> Delivery:
    return Delivery(
        number=row[0],
        webhook_id=row[1],
        event_id=row[2],
        kind=row[3],
        state=_STATES[row[4]],
        tries=row[5],
        made_at=row[6],
        due_at=row[7],
        tried_at=row[8],
        status=row[9],
        error=row[10],
        took_ms=row[11],
        body=row[12],
    )


def _tried_values(tried: Tried) -> tuple[Any, ...]:
    after = after_try(tried)
    state = _STATES.index(after.state)
    return (
        after.number,
        state,
        after.tries,
        after.due_at,
        after.tried_at,
        after.status,
        after.error,
        after.took_ms,
    )
