"""Webhooks over several databases: a copy on each, what each notes by itself, and a shard that is away."""

import msgspec
import pytest

from hourhand.core.identity import format_job_id, shard_of
from hourhand.core.webhooks import Answered, Tried, Webhook
from hourhand.errors import Conflict, Unavailable
from hourhand.ids import IdSource
from hourhand.ports.webhooks import DeliveryQuery
from hourhand.services.webhooks import Webhooks
from hourhand.stores.sharded.per_shard import PerShardVerb
from tests.stores.sharded.cluster import SHARDS, TENANT, Cluster


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


def services(cluster: Cluster) -> Webhooks:
    return Webhooks(store=cluster.store, ids=IdSource(cluster.clock, seed=3), clock=cluster.clock)


async def add(cluster: Cluster) -> Webhook:
    return await services(cluster).create(Webhook(id=0, tenant=TENANT, url="https://example.com/hook"))


async def test_every_shard_notes_what_happens_on_it(cluster: Cluster) -> None:
    webhook = await add(cluster)
    jobs = [await cluster.create(shard) for shard in range(SHARDS) for _ in range(2)]
    for shard in cluster.shards:
        assert (await shard.spread_events(10)).events == 2
    seen: list[str] = []
    before = None
    while True:
        query = DeliveryQuery(limit=2, before=before)
        page = await cluster.store.list_deliveries(TENANT, webhook.id, query)
        assert page is not None
        seen += [one.event_id for one in page.deliveries]
        before = page.next_before
        if before is None:
            break
    assert len(seen) == len(set(seen)) == len(jobs)
    found = await cluster.store.get_webhook(TENANT, webhook.id)
    assert found is not None
    assert found.backlog == len(jobs)
    on_last = next(one for one in seen if one.startswith(format_job_id(jobs[-1].id)))
    assert await cluster.store.redeliver(TENANT, webhook.id, on_last) is not None
    assert await cluster.store.get_delivery(TENANT, webhook.id, on_last) is not None
    assert await cluster.store.redeliver(TENANT, webhook.id, "nothing") is None
    assert await cluster.store.list_deliveries("acme", webhook.id, DeliveryQuery()) is None
    assert {shard_of(job.id) for job in jobs} == set(range(SHARDS))


async def test_a_change_reaches_all_and_needs_all(cluster: Cluster) -> None:
    webhook = await add(cluster)
    changed = await cluster.store.change_webhook(
        TENANT, webhook.id, lambda old, now_at: msgspec.structs.replace(old, types=("run.*",))
    )
    assert changed is not None
    for shard in cluster.shards:
        assert (await shard.get_webhook(TENANT, webhook.id)).types == ("run.*",)
    cluster.shards[2].away = True
    with pytest.raises(Unavailable, match="shard 2"):
        await cluster.store.change_webhook(
            TENANT, webhook.id, lambda old, now_at: msgspec.structs.replace(old, types=("job.*",))
        )
    assert (await cluster.shards[0].get_webhook(TENANT, webhook.id)).types == ("run.*",)
    with pytest.raises(Unavailable):
        await cluster.store.list_webhooks(TENANT)
    cluster.shards[2].away = False
    assert await cluster.store.change_webhook("acme", webhook.id, lambda old, now_at: old) is None


async def test_one_that_cannot_be_everywhere_is_nowhere(cluster: Cluster) -> None:
    cluster.shards[1].away = True
    with pytest.raises(Unavailable, match="shard 1"):
        await add(cluster)
    cluster.shards[1].away = False
    assert await cluster.store.list_webhooks(TENANT) == []


async def test_a_missing_copy_is_made_good_by_the_next_change(cluster: Cluster) -> None:
    webhook = await add(cluster)
    await cluster.shards[1].delete_webhook(TENANT, webhook.id)
    await cluster.store.change_webhook(TENANT, webhook.id, lambda old, now_at: old)
    assert (await cluster.shards[1].get_webhook(TENANT, webhook.id)).secrets == webhook.secrets


async def test_a_deletion_is_completed_by_repeating_it(cluster: Cluster) -> None:
    webhook = await add(cluster)
    cluster.shards[1].away = True
    with pytest.raises(Unavailable):
        await cluster.store.delete_webhook(TENANT, webhook.id)
    cluster.shards[1].away = False
    assert await cluster.store.delete_webhook(TENANT, webhook.id)
    assert not await cluster.store.delete_webhook(TENANT, webhook.id)


async def test_what_one_shard_gave_up_is_seen_and_enabled_on_all(cluster: Cluster) -> None:
    webhook = await add(cluster)
    await cluster.create(1)
    await cluster.shards[1].spread_events(10)
    [batch] = await cluster.shards[1].take_calls(1, 10, 1_000_000)
    gone = Answered(at=cluster.clock.now(), status=410, error="it answered 410 Gone")
    tried = [Tried(delivery=one, answer=gone) for one in batch.deliveries]
    await cluster.shards[1].record_calls(webhook.id, batch.fence, tried)
    found = await cluster.store.get_webhook(TENANT, webhook.id)
    assert found is not None
    assert (found.enabled, found.disabled_reason) == (False, "it answered 410 Gone")
    assert found.health.failing_since is not None
    with pytest.raises(Conflict):
        await cluster.shards[1].deliver(TENANT, webhook.id, "test-1", "{}")
    enabled = await services(cluster).change(
        TENANT, webhook.id, lambda old, now_at: msgspec.structs.replace(old, enabled=True)
    )
    assert (enabled.enabled, enabled.disabled_reason) == (True, None)
    assert (await services(cluster).test(TENANT, webhook.id)).event_id.startswith("test-")


async def test_sending_is_each_shards_own(cluster: Cluster) -> None:
    for asked in (
        cluster.store.webhook_work(),
        cluster.store.spread_events(1),
        cluster.store.take_calls(1, 1, 1),
        cluster.store.record_calls(1, 1, []),
        cluster.store.webhook_ids(0, 1),
        cluster.store.trim_webhooks([]),
    ):
        with pytest.raises(PerShardVerb):
            await asked
