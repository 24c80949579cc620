"""Who did what, over all shards: each deed once, in order, page by page, while more is done and a shard is away."""

import msgspec
import pytest

from hourhand.core.access import Via
from hourhand.core.deeds import Deed
from hourhand.core.identity import compose_job_id, shard_of
from hourhand.core.model import DEFAULT_TENANT as TENANT
from hourhand.core.operation import Action, Operation, OperationSpec
from hourhand.core.quota import QuotaOverride
from hourhand.core.webhooks import Webhook, rotated
from hourhand.errors import Conflict, Invalid, Unavailable
from hourhand.ports.acting import Actor, acting_for
from hourhand.ports.deeds import DeedPage, DeedQuery
from hourhand.stores.sharded.deeds import merge_deeds
from tests.stores.sharded.cluster import SHARDS, Cluster

ANN = Actor(subject="ann", via=Via.TOKEN)
OPERATION = Operation(
    id=7,
    tenant=TENANT,
    spec=OperationSpec(action=Action.PAUSE),
    subject="ann",
    via=Via.TOKEN,
    matched=0,
    is_all=True,
    created_at=0,
    updated_at=0,
    next_at=0,
)


async def every_deed(cluster: Cluster, limit: int = 50, **query: object) -> list[Deed]:
    found: list[Deed] = []
    asked = DeedQuery(limit=limit, **query)  # type: ignore[arg-type]
    while True:
        page = await cluster.store.deeds(TENANT, asked)
        assert len(page.deeds) <= limit
        found += page.deeds
        if page.next_before is None:
            return found
        asked = msgspec.structs.replace(asked, before=page.next_before)


@pytest.mark.parametrize("limit", [1, 2, 7, 50])
async def test_deeds_of_all_shards_come_newest_first_page_by_page(cluster: Cluster, limit: int) -> None:
    made = []
    with acting_for(ANN):
        for n in range(30):
            job = await cluster.create(n * n % SHARDS)
            made.append(job.id)
            cluster.clock.advance(1_000)
    assert len({shard_of(one) for one in made}) > 1
    assert [one.job_id for one in await every_deed(cluster, limit)] == made[::-1]
    assert [one.job_id for one in await every_deed(cluster, limit, job_id=made[3])] == [made[3]]
    assert await every_deed(cluster, limit, job_id=compose_job_id(1, SHARDS + 1, 1, 1)) == []


async def test_deeds_of_one_moment_are_neither_lost_nor_told_twice(cluster: Cluster) -> None:
    """Each database counts for itself, so that deeds of two can look alike."""
    with acting_for(ANN):
        made = [(await cluster.create(n % SHARDS)).id for n in range(12)]
    for limit in (1, 2, 5):
        assert sorted(one.job_id or 0 for one in await every_deed(cluster, limit)) == sorted(made)


async def test_more_that_is_done_meanwhile_does_not_disturb_the_pages(cluster: Cluster) -> None:
    with acting_for(ANN):
        made = [(await cluster.create(n % SHARDS)).id for n in range(9)]
        seen: list[int | None] = []
        asked = DeedQuery(limit=2)
        while True:
            page = await cluster.store.deeds(TENANT, asked)
            seen += [one.job_id for one in page.deeds]
            if page.next_before is None:
                break
            asked = msgspec.structs.replace(asked, before=page.next_before)
            cluster.clock.advance(1_000)
            await cluster.create(len(seen) % SHARDS)
    assert sorted(one or 0 for one in seen) == sorted(made)


async def test_who_made_a_version_is_asked_of_its_shard(cluster: Cluster) -> None:
    with acting_for(ANN):
        job = await cluster.create(1)
    assert await cluster.store.makers(TENANT, job.id) == {1: "ann"}
    assert await cluster.store.makers(TENANT, compose_job_id(1, SHARDS + 1, 1, 1)) == {}


async def test_a_shard_that_is_away_is_named(cluster: Cluster) -> None:
    with acting_for(ANN):
        made = [(await cluster.create(n)).id for n in range(SHARDS)]
    cluster.shards[1].away = True
    page = await cluster.store.deeds(TENANT, DeedQuery())
    assert (page.missing, page.next_before) == ((1,), None)
    assert {one.job_id for one in page.deeds} == {made[0], made[2]}
    for shard in cluster.shards:
        shard.away = True
    with pytest.raises(Unavailable):
        await cluster.store.deeds(TENANT, DeedQuery())


async def test_a_made_up_cursor_is_refused(cluster: Cluster) -> None:
    for before in ((1,), (2, 1), (1, 2, 3, 4, 5, 6, 7, 8)):
        with pytest.raises(Invalid):
            await cluster.store.deeds(TENANT, DeedQuery(before=before))


async def test_an_operation_on_all_shards_is_one_deed(cluster: Cluster) -> None:
    with acting_for(ANN):
        await cluster.store.add_operation(OPERATION)
        cluster.clock.advance(1_000)
        for _ in range(2):
            await cluster.store.cancel_operation(TENANT, 7)
    assert [one.action for one in await every_deed(cluster)] == ["operation.cancel", "operation.create"]


async def test_an_operation_that_one_shard_refuses_is_no_deed(cluster: Cluster) -> None:
    cluster.shards[2].away = True
    with acting_for(ANN), pytest.raises(Unavailable):
        await cluster.store.add_operation(OPERATION)
    cluster.shards[2].away = False
    assert await every_deed(cluster) == []


async def test_an_operation_whose_first_part_is_done_is_cancelled_once(cluster: Cluster) -> None:
    with acting_for(ANN):
        await cluster.store.add_operation(OPERATION)
        [part] = await cluster.shards[0].inner.unfinished_operations(0, 10)
        done = msgspec.structs.replace(part, state="done", finished_at=1)
        await cluster.shards[0].inner.move_operation(done)
        cluster.clock.advance(1_000)
        await cluster.store.cancel_operation(TENANT, 7)
    assert [one.action for one in await every_deed(cluster)] == ["operation.cancel", "operation.create"]
    for shard in cluster.shards[1:]:
        assert await shard.inner.unfinished_operations(0, 10) == []
    with pytest.raises(Conflict):
        await cluster.shards[0].inner.cancel_operation(TENANT, 7)


def renamed(old: Webhook, now_at: int) -> Webhook:
    return msgspec.structs.replace(old, description="new", updated_at=now_at)


async def test_a_change_of_a_webhook_or_a_quota_on_all_shards_is_one_deed(cluster: Cluster) -> None:
    """Whichever shard has a copy: where one was missing it is made good, which nobody asked for."""
    store, webhook = cluster.store, Webhook(id=7, tenant=TENANT, url="https://example.com/")
    with acting_for(ANN):
        for step in (
            lambda: store.add_webhook(webhook),
            lambda: store.add_webhook(webhook),  # nothing new
            lambda: store.change_webhook(TENANT, 7, renamed),
            lambda: store.change_webhook(TENANT, 7, lambda old, now_at: rotated(old, "whsec_x", now_at)),
            lambda: store.deliver(TENANT, 7, "test-1", "{}"),
            lambda: store.redeliver(TENANT, 7, "test-1"),
            lambda: store.redeliver(TENANT, 7, "unknown"),
            lambda: store.set_quota(TENANT, QuotaOverride(jobs=1)),
            lambda: store.set_quota(TENANT, QuotaOverride(jobs=1)),  # nothing new
        ):
            cluster.clock.advance(1_000)
            await step()
        with acting_for(None):
            await cluster.shards[0].inner.delete_webhook(TENANT, 7)
        cluster.clock.advance(1_000)
        await store.change_webhook(TENANT, 7, renamed)
        assert await cluster.shards[0].inner.get_webhook(TENANT, 7) is not None
        cluster.clock.advance(1_000)
        for _ in range(2):
            await store.delete_webhook(TENANT, 7)
    told = [one.action.removeprefix("webhook.") for one in reversed(await every_deed(cluster))]
    expected = "create update rotate test redeliver quota.set update delete"
    assert " ".join(told) == expected


async def test_a_webhook_that_cannot_be_everywhere_is_no_deed(cluster: Cluster) -> None:
    cluster.shards[2].away = True
    with acting_for(ANN), pytest.raises(Unavailable):
        await cluster.store.add_webhook(Webhook(id=7, tenant=TENANT, url="https://example.com/"))
    cluster.shards[2].away = False
    assert await every_deed(cluster) == []
    assert await cluster.store.list_webhooks(TENANT) == []


def test_a_shard_that_looked_in_vain_holds_up_what_others_have() -> None:
    """It answered with less than was asked for, and what comes behind may be newer than what the others know."""
    deed = Deed(id=1, at=5, tenant="t", subject="ann", via="token", action="job.run")
    pages = {
        0: DeedPage(deeds=(), next_before=(9, 9)),
        1: DeedPage(deeds=(deed,), next_before=None),
    }
    assert merge_deeds(pages, {0: None, 1: None}, 10) == ([], {0: (9, 9), 1: (5, 2)})
