"""Where jobs go: to the shard that their id names, evenly, or where their shard key says."""

from collections import Counter

import pytest

from hourhand.core.buckets import even_map
from hourhand.core.identity import RunKey, compose_job_id, shard_of
from hourhand.core.log import LogPlace
from hourhand.core.model import DEFAULT_TENANT as TENANT
from hourhand.core.model import Job
from hourhand.errors import CannotStart, Invalid
from hourhand.ports.reading import DeadQuery, RunQuery
from hourhand.ports.store import JobDraft, JobEdit
from hourhand.services.jobs import NewJob
from hourhand.stores.sharded import ShardedStore
from tests.services.world import spec
from tests.stores.sharded.cluster import SHARDS, Cluster


async def test_a_job_is_on_the_shard_that_its_id_names_and_nowhere_else(cluster: Cluster) -> None:
    made = [await cluster.create(shard, name=f"on {shard}") for shard in range(SHARDS)]
    for shard, job in enumerate(made):
        assert shard_of(job.id) == shard
        found = [await one.get_job(TENANT, job.id) for one in cluster.shards]
        assert [one is not None for one in found] == [index == shard for index in range(SHARDS)]
        assert await cluster.store.get_job(TENANT, job.id) == job
        assert await cluster.store.get_job("other", job.id) is None


async def test_jobs_that_may_be_anywhere_are_spread_evenly(cluster: Cluster) -> None:
    made = await cluster.jobs.create_many(TENANT, [NewJob(spec=spec(name=f"{n}")) for n in range(900)])
    assert [job.spec.name for job in made if isinstance(job, Job)] == [f"{n}" for n in range(900)]
    sizes = Counter(shard_of(job.id) for job in made if isinstance(job, Job))
    assert len(sizes) == SHARDS
    assert max(sizes.values()) - min(sizes.values()) <= 10
    assert (await cluster.store.backlog()).jobs == 900


async def test_jobs_with_a_shard_key_stay_together_also_with_those_whose_key_names_it(
    cluster: Cluster,
) -> None:
    made = [await cluster.create(shard_key="billing") for _ in range(3)]
    made += [
        await cluster.create(key="{billing}/daily"),
        await cluster.create(key="{billing}/x", shard_key="billing"),
    ]
    assert len({shard_of(job.id) for job in made}) == 1


async def test_a_key_and_a_shard_key_that_disagree_are_refused_and_nothing_is_stored(
    cluster: Cluster,
) -> None:
    wrong = NewJob(spec=spec(key="billing/daily", shard_key="billing"))
    for dry_run in (True, False):
        answers = await cluster.jobs.create_many(TENANT, [wrong, NewJob(spec=spec())], dry_run=dry_run)
        assert isinstance(answers[0], Invalid)
        assert answers[0].faults[0].pointer == "/shard_key"
        assert "'{billing}/daily'" in (answers[0].faults[0].hint or "")
        assert isinstance(answers[1], Job)
    assert (await cluster.store.backlog()).jobs == 1


async def test_a_job_of_no_shard_is_not_found(cluster: Cluster) -> None:
    nowhere = compose_job_id(1, SHARDS, 0, 0)
    key = RunKey(nowhere, 5)
    store = cluster.store
    assert await store.get_job(TENANT, nowhere) is None
    assert await store.delete_job(TENANT, nowhere, False) is None
    assert (
        await store.change_job(TENANT, nowhere, lambda job, now: JobEdit(spec=job.spec, paused=True)) is None
    )
    assert await store.add_run(TENANT, nowhere, None) is None
    assert await store.cancel_run(TENANT, key) is None
    assert await store.get_run(TENANT, key) is None
    assert await store.versions(TENANT, nowhere) == []
    assert await store.missed(TENANT, nowhere) == []
    assert await store.read_log(key, LogPlace(), None, 10) == []
    assert await store.job_runs(TENANT, nowhere, [], None, 5) == []
    assert await store.requeue(TENANT, [key]) == []
    assert (await store.list_runs(TENANT, RunQuery(from_at=0, to_at=9, job_id=nowhere))).runs == ()
    assert (await store.dead_letters(TENANT, DeadQuery(job_id=nowhere))).letters == ()
    with pytest.raises(ValueError, match="shard 3, but there are 3"):
        await store.create_jobs([JobDraft(id=nowhere, tenant=TENANT, spec=spec())])


def test_as_many_stores_as_the_map_names() -> None:
    with pytest.raises(CannotStart, match="names 3 shards, but 0"):
        ShardedStore([], even_map(3))
