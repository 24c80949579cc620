"""Webhooks: what happens is noted with what happened, each webhook hears its own, one hand at a time, within bounds."""

import asyncio
import itertools
import json
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from hourhand.core.identity import format_job_id, format_run_id
from hourhand.core.instant import DAY_US, MINUTE_US, SECOND_US
from hourhand.core.lifecycle import Event
from hourhand.core.webhooks import Answered, DeliveryState, Tried, Webhook, enabled_anew
from hourhand.errors import Conflict
from hourhand.ports.store import Hint
from hourhand.ports.webhooks import CallBatch, DeliveryQuery
from tests.contract.builders import draft, once, outcome, spec
from tests.contract.harness import START_AT
from tests.contract.scene import Scene

LEASE_US = 30 * SECOND_US
_ids = itertools.count(900_000_001)


async def add(scene: Scene, **fields: Any) -> Webhook:
    values = {"tenant": "default", "url": "https://example.com/hook", "secrets": ("whsec_x",), **fields}
    webhook = Webhook(id=next(_ids), created_at=scene.now, updated_at=scene.now, **values)
    await scene.store.add_webhook(webhook)
    return webhook


async def heard(scene: Scene, webhook: Webhook) -> list[dict[str, Any]]:
    """The documents of everything that a webhook was told, oldest first."""
    while (await scene.store.spread_events(100)).events:
        pass
    page = await scene.store.list_deliveries(webhook.tenant, webhook.id, DeliveryQuery(limit=1_000))
    assert page is not None
    return [json.loads(one.body) for one in reversed(page.deliveries)]


async def types(scene: Scene, webhook: Webhook) -> list[str]:
    return [document["type"] for document in await heard(scene, webhook)]


def tried(batch: CallBatch, now_at: int, **fields: Any) -> list[Tried]:
    answer = Answered(at=now_at, **{"status": 200, **fields})
    return [Tried(delivery=one, answer=answer) for one in batch.deliveries]


async def take(scene: Scene, each: int = 16) -> list[CallBatch]:
    return await scene.store.take_calls(10, each, LEASE_US)


# --- what is noted


async def test_outcomes_are_told_with_what_an_event_tells(scene: Scene) -> None:
    webhook = await add(scene, types=("run.*",))
    job = await scene.create(
        spec(once(START_AT), name="report", payload=msgspec.Raw(b'{"secret": "canary"}'))
    )
    node = await scene.worker()
    [run] = await scene.take(node)
    scene.pass_time(2)
    await scene.finish(
        run,
        Event.RETRY,
        tries=1,
        due_at=scene.now,
        detail={"error": "boom\nmore"},
        started_at=START_AT + 1_000,
    )
    [run] = await scene.take(node)
    await scene.finish(run, Event.SUCCEED, detail={"response": {"body": "canary"}}, started_at=scene.now)
    first, second = await heard(scene, webhook)
    run_id = format_run_id(job.id, START_AT)
    assert first == {
        "id": f"{run_id}.1",
        "type": "run.retrying",
        "at": "2026-11-16T09:00:02Z",
        "job_id": format_job_id(job.id),
        "run_id": run_id,
        "data": {
            "state": "RETRYING",
            "name": "report",
            "lag_ms": 1,
            "took_ms": 1999,
            "attempt": 1,
            "error": "boom",
            "version": 1,
        },
    }
    assert (second["id"], second["type"], second["data"]["state"]) == (
        f"{run_id}.2",
        "run.succeeded",
        "SUCCEEDED",
    )
    assert "canary" not in json.dumps([first, second])


@pytest.mark.parametrize(
    ("event", "word"),
    [
        (Event.SUCCEED, "run.succeeded"),
        (Event.EXHAUST, "run.failed"),
        (Event.SKIP, "run.skipped"),
        (Event.CANCEL, "run.cancelled"),
    ],
)
async def test_every_end_of_an_attempt_is_told(scene: Scene, event: Event, word: str) -> None:
    webhook = await add(scene, types=("run.*",))
    await scene.create(spec(once(START_AT)))
    [run] = await scene.take(await scene.worker())
    await scene.finish(run, event, tries=1, detail={"error": "x"})
    assert await types(scene, webhook) == [word]


async def test_what_goes_on_or_is_refused_is_not_told(scene: Scene) -> None:
    webhook = await add(scene)
    await scene.create(spec(once(START_AT)))
    await heard(scene, webhook)
    [run] = await scene.take(await scene.worker())
    stale = msgspec.structs.replace(run, fence=run.fence + 5)
    assert len(await scene.settle(outcome(stale, Event.SUCCEED, now_at=scene.now))) == 1
    await scene.finish(run, Event.RELEASE, due_at=scene.now)
    assert await types(scene, webhook) == ["job.created"]


async def test_runs_that_end_without_an_attempt_are_told(scene: Scene) -> None:
    webhook = await add(scene, types=("run.*",))
    job = await scene.create(spec(once(START_AT + MINUTE_US)))
    key = await scene.run_now(job)
    assert await scene.store.cancel_run("default", key) is not None
    [told] = await heard(scene, webhook)
    assert (told["type"], told["data"]["reason"]) == ("run.cancelled", "asked for")
    assert told["run_id"] == format_run_id(*key)


async def test_a_run_that_outlives_its_job_is_told(scene: Scene) -> None:
    webhook = await add(scene, types=("run.succeeded",))
    job = await scene.create(spec(once(START_AT), name="gone"))
    [run] = await scene.take(await scene.worker())
    await scene.delete(job)
    await scene.finish(run, Event.SUCCEED)
    [told] = await heard(scene, webhook)
    assert told["data"]["name"] == "gone"


async def test_changes_of_jobs_are_told_by_their_versions(scene: Scene) -> None:
    webhook = await add(scene, types=("job.*",))
    job = await scene.create(spec(name="report"))
    await scene.change(job, timeout_us=SECOND_US)
    await scene.pause(job, until=scene.now + MINUTE_US)
    scene.pass_time(61)
    await scene.tend()  # nobody asks for that end of the pause
    await scene.delete(job)
    told = await heard(scene, webhook)
    assert [one["type"] for one in told] == [
        "job.created",
        "job.changed",
        "job.paused",
        "job.resumed",
        "job.deleted",
    ]
    assert [one["id"] for one in told] == [f"{format_job_id(job.id)}.v{n}" for n in (1, 2, 3, 4, 5)]
    assert [one["data"]["state"] for one in told] == ["active", "active", "paused", "active", "deleted"]


async def test_only_what_a_webhook_wants_is_noted_and_only_for_its_tenant(scene: Scene) -> None:
    failures = await add(scene, types=("run.failed",))
    others = await add(scene, tenant="acme")
    await scene.create(spec(once(START_AT)))
    [run] = await scene.take(await scene.worker())
    await scene.finish(run, Event.SUCCEED)
    assert not (await scene.store.webhook_work()).noted
    await scene.create(spec(once(START_AT)), tenant="acme")
    assert await types(scene, failures) == []
    assert await types(scene, others) == ["job.created"]
    assert await scene.store.list_deliveries("default", others.id, DeliveryQuery()) is None
    assert await scene.store.get_webhook("default", others.id) is None
    assert await scene.store.list_webhooks("default") == [
        await scene.store.get_webhook("default", failures.id)
    ]
    assert not await scene.store.delete_webhook("default", others.id)


async def test_jobs_and_tags_narrow_it(scene: Scene) -> None:
    billing = await scene.create(spec(once(START_AT), tags=("billing",)))
    named = await scene.create(spec(once(START_AT)))
    await scene.create(spec(once(START_AT)))
    webhook = await add(scene, types=("run.*", "job.deleted"), jobs=(named.id,), tags=("billing",))
    await scene.finish(await scene.take(await scene.worker()), Event.SUCCEED)
    await scene.delete(billing)
    told = {(one["type"], one["job_id"]) for one in await heard(scene, webhook)}
    ids = format_job_id(billing.id), format_job_id(named.id)
    assert told == {("run.succeeded", ids[0]), ("run.succeeded", ids[1]), ("job.deleted", ids[0])}


async def test_a_store_without_webhooks_notes_nothing(scene: Scene) -> None:
    job = await scene.create(spec(once(START_AT)))
    [run] = await scene.take(await scene.worker())
    await scene.finish(run, Event.SUCCEED)
    await scene.delete(job)
    late = await add(scene)
    work = await scene.store.webhook_work()
    assert (work.noted, work.due_at) == (False, None)
    assert await types(scene, late) == []


async def test_nothing_is_noted_while_disabled_and_what_waits_goes_on_after(scene: Scene) -> None:
    webhook = await add(scene, types=("job.created",))
    await scene.create()
    await heard(scene, webhook)
    await change(scene, webhook, enabled=False)
    await scene.create()
    assert not (await scene.store.webhook_work()).noted
    assert await take(scene) == []
    with pytest.raises(Conflict, match="is disabled"):
        await scene.store.deliver("default", webhook.id, "test-1", "{}")
    changed = await scene.store.change_webhook("default", webhook.id, enabled_anew)
    assert changed is not None
    assert changed.backlog == 1
    [batch] = await take(scene)
    assert len(batch.deliveries) == 1


async def change(scene: Scene, webhook: Webhook, **fields: Any) -> Webhook:
    changed = await scene.store.change_webhook(
        webhook.tenant, webhook.id, lambda old, now_at: msgspec.structs.replace(old, **fields)
    )
    assert changed is not None
    return changed


async def test_somebody_is_woken(scene: Scene) -> None:
    hints: list[Hint] = []
    scene.store.subscribe(hints.append)
    await add(scene)
    await scene.create(spec(once(START_AT)))
    [run] = await scene.take(await scene.worker())
    await scene.harness.settled()
    assert Hint.WEBHOOKS in hints
    hints.clear()
    await scene.finish(run, Event.SUCCEED)
    await scene.harness.settled()
    assert Hint.WEBHOOKS in hints


# --- sending


async def waiting(scene: Scene, count: int, **fields: Any) -> Webhook:
    """A webhook for which so many deliveries wait."""
    webhook = await add(scene, types=("job.created",), **fields)
    for start in range(0, count, 100):
        size = min(100, count - start)
        await scene.store.create_jobs([draft(tenant=webhook.tenant) for _ in range(size)])
    while (await scene.store.spread_events(500)).events:
        pass
    return webhook


async def test_a_batch_is_in_one_hand_until_it_is_recorded(scene: Scene) -> None:
    webhook = await waiting(scene, 3)
    [batch] = await take(scene, each=2)
    assert (batch.webhook.id, len(batch.deliveries)) == (webhook.id, 2)
    assert await take(scene) == []
    await scene.create()  # what happens meanwhile does not free it either
    await scene.store.spread_events(10)
    assert await take(scene) == []
    after = await scene.store.record_calls(webhook.id, batch.fence, tried(batch, scene.now))
    assert after is not None
    assert after.health.succeeded_at == scene.now
    [rest] = await take(scene)
    assert len(rest.deliveries) == 2
    await scene.store.record_calls(webhook.id, rest.fence, tried(rest, scene.now))
    assert (await scene.store.webhook_work()).due_at is None
    page = await scene.store.list_deliveries("default", webhook.id, DeliveryQuery())
    assert page is not None
    assert {one.state for one in page.deliveries} == {DeliveryState.DELIVERED}


async def test_who_does_not_record_in_time_loses_the_batch_and_its_word(scene: Scene) -> None:
    webhook = await waiting(scene, 1)
    [first] = await take(scene)
    scene.pass_time(31)
    [second] = await take(scene)
    assert [one.event_id for one in second.deliveries] == [one.event_id for one in first.deliveries]
    assert second.fence > first.fence
    late = await scene.store.record_calls(webhook.id, first.fence, tried(first, scene.now))
    assert late is None
    [delivery] = await deliveries(scene, webhook)
    assert (delivery.state, delivery.tries) == (DeliveryState.PENDING, 0)
    assert await scene.store.record_calls(webhook.id, second.fence, tried(second, scene.now)) is not None


async def deliveries(scene: Scene, webhook: Webhook, **query: Any) -> Sequence[Any]:
    page = await scene.store.list_deliveries(webhook.tenant, webhook.id, DeliveryQuery(**query))
    assert page is not None
    return page.deliveries


async def test_a_failure_is_tried_again_at_its_time_and_the_endpoint_left_alone(scene: Scene) -> None:
    webhook = await waiting(scene, 2)
    [batch] = await take(scene, each=1)
    failed = tried(batch, scene.now, status=500, error="it answered 500")
    await scene.store.record_calls(webhook.id, batch.fence, failed)
    assert await take(scene) == []
    work = await scene.store.webhook_work()
    assert work.due_at == scene.now + 5 * SECOND_US
    scene.pass_time(5)
    [both] = await take(scene)
    assert {one.tries for one in both.deliveries} == {0, 1}
    found = await scene.store.get_webhook("default", webhook.id)
    assert found is not None
    assert (found.health.failures, found.health.error, found.backlog) == (1, "it answered 500", 2)


async def test_one_that_fails_for_long_is_disabled(scene: Scene) -> None:
    webhook = await waiting(scene, 1)
    scene_start = scene.now
    for _ in range(200):
        for batch in await take(scene):
            failed = tried(batch, scene.now, status=500, error="it answered 500")
            after = await scene.store.record_calls(webhook.id, batch.fence, failed)
            assert after is not None
            if not after.enabled:
                break
        else:
            await scene.create()
            await scene.store.spread_events(10)
            scene.pass_time(3_600 * 6)
            continue
        break
    assert after.disabled_reason is not None
    assert after.disabled_reason.startswith("nothing was taken for 5d")
    assert scene.now - scene_start >= 5 * DAY_US
    assert await take(scene) == []


async def test_a_delivery_can_be_made_again(scene: Scene) -> None:
    webhook = await waiting(scene, 1)
    [batch] = await take(scene)
    await scene.store.record_calls(webhook.id, batch.fence, tried(batch, scene.now))
    [event_id] = [one.event_id for one in batch.deliveries]
    assert await scene.store.redeliver("default", webhook.id, "nothing") is None
    assert await scene.store.redeliver("acme", webhook.id, event_id) is None
    again = await scene.store.redeliver("default", webhook.id, event_id)
    assert again is not None
    assert (again.state, again.tries) == (DeliveryState.PENDING, 0)
    [batch] = await take(scene)
    assert [(one.event_id, one.body) for one in batch.deliveries] == [(event_id, again.body)]


async def test_a_test_goes_the_same_way(scene: Scene) -> None:
    webhook = await add(scene, types=("run.failed",))
    made = await scene.store.deliver("default", webhook.id, "test-1", '{"id": "test-1"}')
    assert made is not None
    assert await scene.store.deliver("acme", webhook.id, "test-2", "{}") is None
    assert await scene.store.get_delivery("default", webhook.id, "test-1") == made
    assert await scene.store.get_delivery("acme", webhook.id, "test-1") is None
    [batch] = await take(scene)
    assert batch.deliveries == (made,)


async def test_deliveries_are_listed_page_by_page(scene: Scene) -> None:
    webhook = await waiting(scene, 5)
    [batch] = await take(scene, each=2)
    await scene.store.record_calls(webhook.id, batch.fence, tried(batch, scene.now))
    seen: list[str] = []
    before = None
    while True:
        query = DeliveryQuery(limit=2, before=before)
        page = await scene.store.list_deliveries("default", webhook.id, query)
        assert page is not None
        seen += [one.event_id for one in page.deliveries]
        before = page.next_before
        if before is None:
            break
    assert len(set(seen)) == len(seen) == 5
    assert len(await deliveries(scene, webhook, state=DeliveryState.DELIVERED)) == 2
    assert len(await deliveries(scene, webhook, state=DeliveryState.PENDING)) == 3


async def test_what_is_too_much_or_too_old_is_dropped_and_counted(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hourhand.stores.relational.webhooks.MAX_BACKLOG", 3)
    monkeypatch.setattr("hourhand.stores.relational.webhooks.KEPT_DELIVERIES", 1)
    webhook = await waiting(scene, 8)
    newest = [one.event_id for one in await deliveries(scene, webhook)][:3]
    trimmed = await scene.store.trim_webhooks([webhook.id])
    assert (trimmed.dropped, trimmed.forgotten) == (5, 0)
    assert [one.event_id for one in await deliveries(scene, webhook)] == newest
    [batch] = await take(scene, each=2)
    await scene.store.record_calls(webhook.id, batch.fence, tried(batch, scene.now))
    assert (await scene.store.trim_webhooks([webhook.id])).forgotten == 1
    scene.pass_time(8 * 86_400)
    trimmed = await scene.store.trim_webhooks([webhook.id])
    assert (trimmed.dropped, trimmed.forgotten) == (1, 1)
    found = await scene.store.get_webhook("default", webhook.id)
    assert found is not None
    assert (found.dropped, found.backlog) == (6, 0)
    assert await scene.store.webhook_ids(0, 10) == [webhook.id]
    assert await scene.store.webhook_ids(webhook.id, 10) == []


async def test_a_deleted_one_takes_everything_with_it(scene: Scene) -> None:
    webhook = await waiting(scene, 2)
    [batch] = await take(scene)
    await scene.create()
    assert await scene.store.delete_webhook("default", webhook.id)
    assert not await scene.store.delete_webhook("default", webhook.id)
    assert await scene.store.record_calls(webhook.id, batch.fence, tried(batch, scene.now)) is None
    assert (await scene.store.spread_events(10)).webhooks == ()
    assert await scene.store.list_deliveries("default", webhook.id, DeliveryQuery()) is None


async def test_a_tenant_has_so_many_and_storing_one_twice_is_storing_it_once(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hourhand.stores.relational.webhooks.MAX_WEBHOOKS", 2)
    first = await add(scene)
    await scene.store.add_webhook(first)
    await add(scene)
    with pytest.raises(Conflict, match="2 webhooks already"):
        await add(scene)
    await add(scene, tenant="acme")
    assert len(await scene.store.list_webhooks("default")) == 2


async def test_what_was_noted_survives_a_restart(scene: Scene) -> None:
    webhook = await add(scene, types=("job.created",))
    await scene.create()
    if type(scene.harness).__name__ == "SqliteMemoryHarness":
        pytest.skip("a store in memory has no restart")
    await scene.harness.reopen()
    assert await types(scene, webhook) == ["job.created"]


async def test_what_a_process_had_in_hand_is_soon_free_after_a_restart(scene: Scene) -> None:
    webhook = await waiting(scene, 1)
    [batch] = await take(scene)
    if type(scene.harness).__name__ == "SqliteMemoryHarness":
        pytest.skip("a store in memory has no restart")
    await scene.harness.reopen()
    if scene.harness.shared:  # whoever has it may live on
        assert await take(scene) == []
        scene.pass_time(30)
    [again] = await take(scene)
    assert (again.webhook.id, again.deliveries) == (webhook.id, batch.deliveries)


async def test_two_tenants_hear_of_the_same_moment_each_their_own(scene: Scene) -> None:
    ours, theirs = await add(scene), await add(scene, tenant="acme")
    job = await scene.create()
    other = await scene.create(tenant="acme")
    assert [one["job_id"] for one in await heard(scene, ours)] == [format_job_id(job.id)]
    assert [one["job_id"] for one in await heard(scene, theirs)] == [format_job_id(other.id)]


async def test_nothing_is_made_for_one_that_is_deleted_in_that_moment(scene: Scene) -> None:
    for _ in range(15):
        webhook = await add(scene, types=("job.created",))
        await scene.store.create_jobs([draft() for _ in range(20)])
        await asyncio.gather(
            scene.store.spread_events(100), scene.store.delete_webhook("default", webhook.id)
        )
        await scene.store.add_webhook(webhook)  # to see what was left under its id
        assert await deliveries(scene, webhook) == ()
        await scene.store.delete_webhook("default", webhook.id)
