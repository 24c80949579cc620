"""The sender of webhooks, step by step, through real sockets: failures, slow and rude endpoints, crashes, two at once."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
import structlog
from aiohttp import web

from hourhand.core.instant import DAY_US, HOUR_US, MINUTE_US, SECOND_US
from hourhand.core.webhooks import Delivery, DeliveryState, Webhook, format_webhook_id
from hourhand.errors import Unavailable
from hourhand.ports.webhooks import DeliveryQuery
from hourhand.services import webhook_sender
from hourhand.services.jobs import NewJob
from hourhand.services.webhook_sender import WebhookSender
from hourhand.services.webhooks import Webhooks
from hourhand.targets.addresses import parse_allowed
from hourhand.targets.webhook_caller import WebhookCaller
from tests.services.webhook_receiver import Receiver
from tests.services.world import World, spec

TENANT = "default"


class Desk:
    """A store with webhooks, a sender and a receiver on one clock."""

    def __init__(self, world: World, receiver: Receiver) -> None:
        self.world = world
        self.receiver = receiver
        self.webhooks = Webhooks(store=world.store, ids=world.ids, clock=world.clock)
        self.senders: list[WebhookSender] = []
        self.sender = self.new_sender()

    def new_sender(self, allowed: tuple[str, ...] = ("127.0.0.1",)) -> WebhookSender:
        caller = WebhookCaller(self.world.clock, parse_allowed(allowed))
        sender = WebhookSender(
            store=self.world.store, caller=caller, clock=self.world.clock, telemetry=self.world.telemetry
        )
        self.senders.append(sender)
        return sender

    async def create(self, **fields: Any) -> Webhook:
        values = {"url": self.receiver.url, "types": ("job.created",), **fields}
        made = await self.webhooks.create(Webhook(id=0, tenant=TENANT, **values))
        self.receiver.secret = made.secrets[0]
        return made

    async def happen(self, count: int = 1) -> None:
        for _ in range(count):
            await self.world.jobs.create(TENANT, NewJob(spec=spec()))

    async def step(self, sender: WebhookSender | None = None) -> int | None:
        """Step, let the calls end, and write down what came of them; answers when to come again."""
        sender = sender or self.sender
        wake_at = await sender.step(self.world.now)
        for _ in range(200):
            await sender.idle()
            wake_at = await sender.step(self.world.now)
            if not sender._under_way and (wake_at is None or wake_at > self.world.now):
                return wake_at
        raise AssertionError("the sender does not come to rest")

    async def get(self, webhook: Webhook) -> Webhook:
        return await self.webhooks.get(TENANT, webhook.id)

    async def deliveries(self, webhook: Webhook) -> list[Delivery]:
        page = await self.webhooks.deliveries(TENANT, webhook.id, DeliveryQuery(limit=1_000))
        return list(page.deliveries)

    def metric(self, name: str, **labels: str) -> float:
        return self.world.telemetry.registry.get_sample_value(name, labels) or 0.0


@pytest.fixture
async def desk(world: World) -> AsyncIterator[Desk]:
    async with Receiver(world.clock) as receiver:
        made = Desk(world, receiver)
        yield made
        for sender in made.senders:
            await sender.close()


async def test_what_happens_is_told_signed_and_once(desk: Desk) -> None:
    webhook = await desk.create()
    await desk.happen(3)
    assert await desk.step() is None
    assert len(set(desk.receiver.event_ids)) == len(desk.receiver.told) == 3
    for told in desk.receiver.told:
        assert told.document["id"] == told.event_id
        assert told.document["type"] == "job.created"
        assert told.headers["Content-Type"] == "application/json"
        assert told.headers["User-Agent"].startswith("hourhand/")
    assert {one.state for one in await desk.deliveries(webhook)} == {DeliveryState.DELIVERED}
    assert desk.metric("hourhand_webhook_calls_total", outcome="taken") == 3


async def test_with_nothing_to_do_it_only_looks(desk: Desk) -> None:
    assert await desk.sender.step(desk.world.now) is None
    desk.world.store.calls.clear()
    assert await desk.sender.step(desk.world.now) is None
    assert dict(desk.world.store.calls) == {"webhook_work": 1}


async def test_a_failure_is_repeated_by_the_schedule_under_the_same_id(desk: Desk) -> None:
    webhook = await desk.create()
    desk.receiver.status(500)
    await desk.happen()
    waits = []
    for _ in range(3):
        wake_at = await desk.step()
        assert wake_at is not None
        waits.append(wake_at - desk.world.now)
        desk.world.go_to(wake_at)
    assert waits == [5 * SECOND_US, 5 * MINUTE_US, 30 * MINUTE_US]
    desk.receiver.status(200)
    assert await desk.step() is None
    assert len(desk.receiver.told) == 4
    assert len(set(desk.receiver.event_ids)) == 1
    [delivery] = await desk.deliveries(webhook)
    assert (delivery.state, delivery.tries, delivery.status) == (DeliveryState.DELIVERED, 4, 200)
    assert (await desk.get(webhook)).health.failing_since is None


async def test_retry_after_is_honoured(desk: Desk) -> None:
    webhook = await desk.create()
    desk.receiver.status(429, Retry_After="3600")
    await desk.happen()
    assert await desk.step() == desk.world.now + HOUR_US
    await desk.happen()  # another event does not knock before either
    desk.world.pass_time(600)
    await desk.step()
    assert len(desk.receiver.told) == 1
    assert "429" in (await desk.deliveries(webhook))[-1].error


async def test_one_that_is_gone_is_disabled(desk: Desk) -> None:
    webhook = await desk.create()
    desk.receiver.status(410)
    await desk.happen()
    assert await desk.step() is None
    after = await desk.get(webhook)
    assert (after.enabled, after.disabled_reason) == (False, "it answered 410 Gone")
    await desk.happen()
    desk.world.pass_time(3_600)
    await desk.step()
    assert len(desk.receiver.told) == 1
    assert desk.metric("hourhand_webhooks_disabled_total") == 1


async def test_one_that_fails_for_five_days_is_disabled_and_goes_on_when_mended(desk: Desk) -> None:
    webhook = await desk.create()
    desk.receiver.status(503)
    began_at = desk.world.now
    while (await desk.get(webhook)).enabled:
        await desk.happen()
        await desk.step()
        desk.world.pass_time(6 * 3_600)
        assert desk.world.now - began_at < 6 * DAY_US
    assert desk.world.now - began_at > 5 * DAY_US
    after = await desk.get(webhook)
    assert after.disabled_reason is not None
    assert "it answered 503 Service Unavailable" in after.disabled_reason
    desk.receiver.status(200)
    desk.receiver.told.clear()
    await desk.webhooks.change(
        TENANT, webhook.id, lambda old, now_at: Webhook(**{**_fields(old), "enabled": True})
    )
    for _ in range(30):
        wake_at = await desk.step()
        if wake_at is not None:
            desk.world.go_to(wake_at)
    mended = await desk.get(webhook)
    assert (mended.enabled, mended.disabled_reason, mended.backlog) == (True, None, 0)
    assert len(desk.receiver.told) > 10


def _fields(webhook: Webhook) -> dict[str, Any]:
    return {name: getattr(webhook, name) for name in webhook.__struct_fields__}


async def test_redirects_are_not_followed(desk: Desk) -> None:
    webhook = await desk.create()
    desk.receiver.status(302, Location=desk.receiver.url)
    await desk.happen()
    await desk.step()
    assert len(desk.receiver.told) == 1
    [delivery] = await desk.deliveries(webhook)
    assert delivery.error == "it answered 302 Found; redirects are not followed"


async def test_a_huge_answer_is_not_read(desk: Desk) -> None:
    webhook = await desk.create()
    sent = 0

    async def endless(request: web.Request) -> web.StreamResponse:
        nonlocal sent
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(b"x" * 65_536)
            sent += 65_536

    desk.receiver.answer = endless
    await desk.happen()
    async with asyncio.timeout(10):
        await desk.step()
    [delivery] = await desk.deliveries(webhook)
    assert delivery.state is DeliveryState.DELIVERED
    assert sent < 16 * 1024 * 1024


async def test_a_slow_endpoint_holds_up_nobody_else(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, world: World
) -> None:
    monkeypatch.setattr("hourhand.targets.webhook_caller.TIMEOUT_US", 500_000)
    slow = await desk.create(types=("job.created",))
    release = asyncio.Event()

    async def wait(request: web.Request) -> web.StreamResponse:
        await release.wait()
        return web.Response()

    desk.receiver.answer = wait
    async with Receiver(world.clock) as quick:
        made = await desk.webhooks.create(Webhook(id=0, tenant=TENANT, url=quick.url))
        quick.secret = made.secrets[0]
        await desk.happen()
        await desk.sender.step(world.now)
        async with asyncio.timeout(5):
            await quick.called.wait()
            await desk.step()
        assert len(quick.told) == 1
    [delivery] = await desk.deliveries(slow)
    assert delivery.state is DeliveryState.PENDING
    assert delivery.error is not None
    assert delivery.error.startswith("no answer from 127.0.0.1:")
    release.set()


async def test_an_address_that_is_not_allowed_is_never_called(desk: Desk) -> None:
    webhook = await desk.create()
    await desk.happen()
    careful = desk.new_sender(allowed=())
    await desk.step(careful)
    assert desk.receiver.told == []
    [delivery] = await desk.deliveries(webhook)
    assert delivery.error is not None
    assert delivery.error.startswith("not called: ")
    assert "targets.allow_hosts" in delivery.error


async def test_calls_to_one_endpoint_are_few_at_once(desk: Desk) -> None:
    await desk.create()
    await desk.happen(60)
    await desk.step()
    assert len(set(desk.receiver.event_ids)) == 60
    assert desk.receiver.most_at_once <= webhook_sender.CALLS


async def test_a_broken_endpoint_is_not_hammered_with_what_waits(desk: Desk) -> None:
    await desk.create()
    desk.receiver.status(500)
    await desk.happen(200)
    await desk.step()
    assert len(desk.receiver.told) <= webhook_sender.CALLS
    desk.world.pass_time(5)
    desk.receiver.status(200)
    desk.receiver.told.clear()
    for _ in range(5):
        await desk.step()
        desk.world.pass_time(MINUTE_US * 5 // SECOND_US)
    assert len(set(desk.receiver.event_ids)) == 200


async def test_one_event_that_is_refused_does_not_hold_up_the_others(desk: Desk) -> None:
    await desk.create()
    await desk.happen(40)
    await desk.sender._spread()
    poison = (await desk.deliveries((await desk.webhooks.all_of(TENANT))[0]))[-1].event_id

    async def picky(request: web.Request) -> web.StreamResponse:
        return web.Response(status=500 if request.headers["webhook-id"] == poison else 200)

    desk.receiver.answer = picky
    await desk.step()
    [webhook] = await desk.webhooks.all_of(TENANT)
    assert (webhook.backlog, webhook.health.failing_since) == (1, None)


async def test_who_dies_after_the_call_leaves_it_to_the_next_under_the_same_id(desk: Desk) -> None:
    webhook = await desk.create()
    await desk.happen()
    await desk.sender.step(desk.world.now)
    await desk.sender.idle()  # sent, and never written down
    assert len(desk.receiver.told) == 1
    other = desk.new_sender()
    await desk.step(other)
    assert len(desk.receiver.told) == 1
    desk.world.pass_time(webhook_sender.LEASE_US // SECOND_US)
    await desk.step(other)
    assert len(desk.receiver.told) == 2
    assert len(set(desk.receiver.event_ids)) == 1
    assert desk.receiver.told[0].document == desk.receiver.told[1].document
    await desk.sender.record()  # the dead one comes back: its word no longer counts
    [delivery] = await desk.deliveries(webhook)
    assert (delivery.state, delivery.tries) == (DeliveryState.DELIVERED, 1)


async def test_what_cannot_be_written_down_is_written_down_later(desk: Desk) -> None:
    webhook = await desk.create()
    await desk.happen()
    await desk.sender.step(desk.world.now)
    await desk.sender.idle()
    desk.world.store.fail("record_calls")
    with pytest.raises(Unavailable):
        await desk.sender.step(desk.world.now)
    await desk.step()
    assert len(desk.receiver.told) == 1
    [delivery] = await desk.deliveries(webhook)
    assert delivery.state is DeliveryState.DELIVERED


@pytest.mark.parametrize("verb", ["webhook_work", "spread_events", "take_calls", "record_calls"])
async def test_a_lost_answer_loses_no_event(desk: Desk, verb: str) -> None:
    await desk.create()
    await desk.happen(2)
    desk.world.store.lose_answer(verb)
    with pytest.raises(Unavailable):
        await desk.step()
    for _ in range(3):
        desk.world.pass_time(webhook_sender.LEASE_US // SECOND_US)
        await desk.step()
    assert len(set(desk.receiver.event_ids)) == 2


async def test_two_at_once_send_each_event_once(desk: Desk) -> None:
    await desk.create()
    await desk.happen(100)
    other = desk.new_sender()
    for _ in range(20):
        await asyncio.gather(desk.step(), desk.step(other))
    assert len(desk.receiver.event_ids) == len(set(desk.receiver.event_ids)) == 100


async def test_who_stops_writes_down_what_was_sent_and_lets_go_of_the_rest(desk: Desk) -> None:
    webhook = await desk.create()
    await desk.happen(webhook_sender.CALLS + 1)
    release = asyncio.Event()

    async def wait(request: web.Request) -> web.StreamResponse:
        if len(desk.receiver.told) > 1:
            await release.wait()
        return web.Response()

    desk.receiver.answer = wait
    await desk.sender.step(desk.world.now)
    async with asyncio.timeout(10):
        await desk.receiver.called.wait()
        await desk.sender.close()
    states = [one.state for one in await desk.deliveries(webhook)]
    assert states.count(DeliveryState.DELIVERED) == 1
    release.set()
    desk.receiver.told.clear()
    await desk.step(desk.new_sender())  # at once: no lease has to run out
    assert len(desk.receiver.told) == webhook_sender.CALLS


async def test_what_is_too_much_is_dropped_and_said(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hourhand.stores.relational.webhooks.MAX_BACKLOG", 10)
    webhook = await desk.create()
    desk.receiver.status(500)
    await desk.happen(30)
    await desk.step()
    after = await desk.get(webhook)
    assert (after.dropped, after.backlog) == (20, 10)
    assert desk.metric("hourhand_webhook_dropped_total") == 20


async def test_whose_deliveries_were_dropped_is_said_once_a_minute(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hourhand.stores.relational.webhooks.MAX_BACKLOG", 10)
    full, other = await desk.create(), await desk.create()
    await desk.create(types=("job.deleted",))  # of which nothing is to be said
    desk.receiver.status(500)

    async def said(seconds: int, events: int) -> list[tuple[str, int]]:
        desk.world.pass_time(seconds)
        with structlog.testing.capture_logs() as lines:
            await desk.happen(events)
            await desk.step()
        return sorted((one["webhook"], one["count"]) for one in lines if "were dropped" in one["event"])

    names = sorted(format_webhook_id(one.id) for one in (full, other))
    assert await said(0, 12) == [(name, 2) for name in names]
    assert [await said(1, 1) for _ in range(5)] == [[]] * 5
    assert await said(60, 1) == [(name, 6) for name in names]
    assert await said(60, 0) == []
    assert desk.metric("hourhand_webhook_dropped_total") == 16


async def test_what_was_not_said_at_once_is_said_though_nothing_follows(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hourhand.stores.relational.webhooks.MAX_BACKLOG", 1)
    await desk.create()
    desk.receiver.status(500)
    for _ in range(2):
        await desk.happen(2)
        await desk.step()
    desk.world.pass_time(61)
    with structlog.testing.capture_logs() as lines:
        await desk.step()
    assert [one["count"] for one in lines if "were dropped" in one["event"]] == [2]


async def test_old_deliveries_are_forgotten_though_nothing_happens(desk: Desk) -> None:
    webhook = await desk.create()
    await desk.happen()
    await desk.step()
    desk.world.pass_time(8 * 86_400)
    await desk.step()
    assert await desk.deliveries(webhook) == []


async def test_both_secrets_sign_for_a_day(desk: Desk) -> None:
    webhook = await desk.create()
    old = desk.receiver.secret
    rotated = await desk.webhooks.rotate(TENANT, webhook.id)
    assert rotated.secrets[0] != old
    for secret in (old, rotated.secrets[0]):
        desk.receiver.secret = secret
        await desk.happen()
        await desk.step()
    assert len(desk.receiver.told) == 2
    assert len(desk.receiver.told[0].headers["webhook-signature"].split()) == 2
    desk.world.pass_time(86_400)
    await desk.happen()
    await desk.step()
    assert len(desk.receiver.told[-1].headers["webhook-signature"].split()) == 1
