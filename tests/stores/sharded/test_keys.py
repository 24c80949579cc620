"""Keys and names over all shards: a key is one job's, wherever it is asked for."""

import asyncio
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from hourhand.clock import ManualClock
from hourhand.core.buckets import even_map, key_part
from hourhand.core.identity import compose_job_id
from hourhand.core.model import DEFAULT_TENANT as TENANT
from hourhand.core.model import Job
from hourhand.errors import Ambiguous, Conflict, Invalid, NotFound
from hourhand.ports.store import JobDraft, JobEdit
from hourhand.services.jobs import NewJob
from hourhand.stores.sharded import ShardedStore
from hourhand.stores.sqlite import SqliteStore
from tests.services.world import spec
from tests.stores.sharded.cluster import SHARDS, Cluster, services


@pytest.mark.parametrize("key", ["plain", "{tagged}/daily"])
async def test_of_many_who_create_a_key_at_once_one_gets_it(tmp_path: Path, key: str) -> None:
    """Real files and threads, and every create through an instance of its own."""
    clock = ManualClock()
    shards = [SqliteStore.open(tmp_path / f"{index}.db", clock=clock) for index in range(2)]
    instances = [services(ShardedStore(shards, even_map(2)), clock, seed)[0] for seed in range(12)]
    forms = [{"key": key}, {"key": key, "shard_key": key_part(key)}, {"key": key, "tags": ("x",)}]
    news = [NewJob(spec=spec(**forms[n % len(forms)])) for n in range(len(instances))]  # type: ignore[arg-type]
    answers = await asyncio.gather(
        *(
            jobs.create_many(TENANT, [new, NewJob(spec=spec())])
            for jobs, new in zip(instances, news, strict=True)
        )
    )
    winners = [answer for answer, _ in answers if isinstance(answer, Job)]
    losers = [answer for answer, _ in answers if isinstance(answer, Conflict)]
    assert (len(winners), len(losers)) == (1, 11)
    found = [job for shard in shards for job in await shard.find_jobs(TENANT, key, 0)]
    assert found == winners
    for shard in shards:
        await shard.close()


async def test_a_job_is_found_by_its_key_by_asking_one_shard(cluster: Cluster) -> None:
    for shard in range(SHARDS):
        job = await cluster.create(key=cluster.key_on(shard))
        before = Counter({n: one.calls["find_jobs"] for n, one in enumerate(cluster.shards)})
        assert await cluster.jobs.resolve(TENANT, job.spec.key or "") == job
        after = Counter({n: one.calls["find_jobs"] for n, one in enumerate(cluster.shards)})
        assert after - before == Counter({shard: 1})


@pytest.mark.parametrize("dry_run", [True, False])
async def test_a_key_may_change_within_its_shard_only(cluster: Cluster, dry_run: bool) -> None:
    job = await cluster.create(key=cluster.key_on(0))
    elsewhere, here = cluster.key_on(1, "other{}"), cluster.key_on(0, "other{}")

    def rename(key: str | None) -> Callable[[Job, int], NewJob]:
        return lambda job, now_at: NewJob(spec=spec(key=key))

    with pytest.raises(Invalid, match="belongs to another database") as wrong:
        await cluster.jobs.update(TENANT, job.id, rename(elsewhere), dry_run=dry_run)
    assert wrong.value.faults[0].pointer == "/key"
    for key in (here, None):
        changed = await cluster.jobs.update(TENANT, job.id, rename(key), dry_run=dry_run)
        assert changed.job.spec.key == key


async def test_the_store_itself_lets_no_key_stray(cluster: Cluster) -> None:
    job = await cluster.create(shard=0)
    elsewhere = spec(key=cluster.key_on(1))
    with pytest.raises(Invalid, match="another shard"):
        await cluster.store.change_job(TENANT, job.id, lambda one, now: JobEdit(spec=elsewhere, paused=False))
    with pytest.raises(Invalid, match="another shard"):
        await cluster.store.create_jobs(
            [JobDraft(id=compose_job_id(1, 2, 0, 0), tenant=TENANT, spec=elsewhere)]
        )
    assert (await cluster.store.backlog()).jobs == 1
    assert await cluster.store.get_job(TENANT, job.id) == job


async def test_an_upsert_creates_once_and_then_changes(cluster: Cluster) -> None:
    def named(key: str, name: str) -> Callable[[Job | None, int], NewJob]:
        return lambda job, now_at: NewJob(spec=spec(key=key, name=name))

    for key in [cluster.key_on(shard) for shard in range(SHARDS)]:
        made, created = await cluster.jobs.upsert(TENANT, key, named(key, "first"))
        again, anew = await cluster.jobs.upsert(TENANT, key, named(key, "second"))
        assert (created, anew, again.job.id, again.job.spec.name) == (True, False, made.job.id, "second")
    assert (await cluster.store.backlog()).jobs == SHARDS


async def test_names_are_looked_for_everywhere(cluster: Cluster) -> None:
    alone = await cluster.create(1, name="alone")
    for shard in (0, 2):
        await cluster.create(shard, name="twin")
    keyed = await cluster.create(key="twin2", name="x")
    await cluster.create(name="twin2")
    assert await cluster.jobs.resolve(TENANT, "alone") == alone
    assert await cluster.jobs.resolve(TENANT, "twin2") == keyed  # a key goes before names
    with pytest.raises(Ambiguous):
        await cluster.jobs.resolve(TENANT, "twin")
    with pytest.raises(NotFound):
        await cluster.jobs.resolve(TENANT, "nobody")
