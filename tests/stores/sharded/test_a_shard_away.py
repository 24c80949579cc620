"""A shard that is away: the others go on, lists say what they lack, and nothing is pretended."""

from typing import Any

import pytest

from hourhand.core.audit import Window
from hourhand.core.identity import compose_job_id, shard_of
from hourhand.core.instant import DAY_US, SECOND_US
from hourhand.core.model import DEFAULT_TENANT as TENANT
from hourhand.core.model import Job, JobState
from hourhand.errors import Conflict, Invalid, Unavailable
from hourhand.ports.reading import DeadQuery, JobQuery, RunQuery
from hourhand.ports.store import JobDraft, Refusal
from hourhand.services.audit import Audit
from hourhand.services.jobs import NewJob
from tests.contract.paging import all_runs
from tests.services.world import once, spec
from tests.stores.sharded.cluster import SHARDS, Cluster


async def test_with_a_shard_away_the_others_go_on(cluster: Cluster) -> None:
    jobs = [await cluster.create(shard) for shard in range(SHARDS)]
    cluster.shards[1].away = True
    with pytest.raises(Unavailable, match="shard 1"):
        await cluster.jobs.get(TENANT, jobs[1].id)
    with pytest.raises(Unavailable, match="shard 1"):
        await cluster.jobs.pause(TENANT, jobs[1].id)
    for shard in (0, 2):
        assert await cluster.jobs.get(TENANT, jobs[shard].id) == jobs[shard]
        assert (await cluster.jobs.pause(TENANT, jobs[shard].id)).job.state is JobState.PAUSED
    await cluster.store.ping()
    assert await cluster.store.now() == cluster.clock.now()
    assert (await cluster.store.backlog()).jobs == 2
    assert cluster.store.silent == (1,)


async def test_lists_say_which_shards_they_lack_until_it_is_back(cluster: Cluster) -> None:
    jobs = [await cluster.create(shard, timing=once(cluster.clock.now())) for shard in range(SHARDS)]
    dead = [await cluster.dead_run(shard) for shard in range(SHARDS)]
    now_at = cluster.clock.now()
    for away in (True, False):
        cluster.shards[1].away = away
        missing, shards = ((1,), {0, 2}) if away else ((), {0, 1, 2})
        page = await cluster.store.list_jobs(TENANT, JobQuery())
        assert (page.missing, {shard_of(job.id) for job in page.jobs}) == (missing, shards)
        letters = await cluster.store.dead_letters(TENANT, DeadQuery())
        assert (letters.missing, {shard_of(one.job_id) for one in letters.letters}) == (missing, shards)
        runs = await cluster.store.list_runs(TENANT, RunQuery(from_at=0, to_at=now_at))
        assert (runs.missing, {shard_of(run.job_id) for run in runs.runs}) == (missing, shards)
    assert len(jobs) == len(dead) == SHARDS
    assert cluster.store.silent == ()


async def test_a_list_of_runs_ends_although_a_shard_has_more_and_is_away(cluster: Cluster) -> None:
    for n in range(6):
        await cluster.create(n % SHARDS, timing=once(cluster.clock.now()))
        cluster.clock.advance(SECOND_US)
        await cluster.finish(n % SHARDS)
    cluster.shards[2].away = True
    runs = await all_runs(cluster.store, RunQuery(from_at=0, to_at=cluster.clock.now(), limit=1))
    assert [shard_of(run.job_id) for run in runs] == [1, 0, 1, 0]


async def test_in_a_batch_each_draft_answers_for_itself(cluster: Cluster) -> None:
    keys = [cluster.key_on(shard) for shard in range(SHARDS)]
    cluster.shards[1].away = True
    answers = await cluster.jobs.create_many(TENANT, [NewJob(spec=spec(key=key)) for key in keys])
    assert [type(answer) for answer in answers] == [Job, Unavailable, Job]
    cluster.shards[1].away = False
    again = await cluster.jobs.create_many(TENANT, [NewJob(spec=spec(key=key)) for key in keys])
    assert [type(answer) for answer in again] == [Conflict, Job, Conflict]


async def test_a_lost_answer_is_told_as_such_and_the_key_stays_one_jobs(cluster: Cluster) -> None:
    key = cluster.key_on(1)
    cluster.shards[1].lose_answer("create_jobs")
    draft = JobDraft(id=compose_job_id(1, 1, 0, 0), tenant=TENANT, spec=spec(key=key))
    assert await cluster.store.create_jobs([draft]) == [Refusal.UNAVAILABLE]
    with pytest.raises(Conflict):
        await cluster.create(key=key)


async def test_jobs_that_may_be_anywhere_go_past_a_shard_that_is_away(cluster: Cluster) -> None:
    cluster.shards[1].away = True
    await cluster.store.ping()
    made = [await cluster.create() for _ in range(20)]
    assert {shard_of(job.id) for job in made} == {0, 2}
    cluster.shards[1].away = False
    await cluster.store.ping()
    assert {shard_of((await cluster.create()).id) for _ in range(20)} == {0, 1, 2}


async def test_keys_of_other_shards_are_found_and_created_but_a_name_alone_is_not_trusted(
    cluster: Cluster,
) -> None:
    job = await cluster.create(0, name="alone")
    cluster.shards[2].away = True
    key = cluster.key_on(0)
    made, created = await cluster.jobs.upsert(TENANT, key, lambda one, now: NewJob(spec=spec(key=key)))
    assert created
    assert await cluster.jobs.resolve(TENANT, key) == made.job
    with pytest.raises(Unavailable, match="shard 2"):
        await cluster.jobs.resolve(TENANT, "alone")
    with pytest.raises(Unavailable):
        await cluster.jobs.resolve(TENANT, "nobody")
    cluster.shards[2].away = False
    assert await cluster.jobs.resolve(TENANT, "alone") == job


async def test_what_would_be_wrong_without_a_shard_is_refused(cluster: Cluster) -> None:
    dead = [await cluster.dead_run(shard) for shard in range(SHARDS)]
    cluster.shards[0].away = True
    with pytest.raises(Unavailable, match="counted while shard 0"):
        await cluster.store.dead_groups(TENANT, "error", 5)
    with pytest.raises(Unavailable, match="while shard 0 cannot be reached; name them by id"):
        await cluster.runs.matching(TENANT, DeadQuery())
    assert await cluster.runs.matching(TENANT, DeadQuery(job_id=dead[1].job_id)) == [dead[1]]
    with pytest.raises(Unavailable, match="shard 0 cannot be reached; what lies elsewhere is done"):
        await cluster.store.requeue(TENANT, dead)
    cluster.shards[0].away = False
    assert await cluster.store.requeue(TENANT, dead) == [dead[0]]


async def test_with_all_shards_away_nothing_is_pretended(cluster: Cluster) -> None:
    for shard in cluster.shards:
        shard.away = True
    for ask in (
        lambda: cluster.store.ping(),
        lambda: cluster.store.now(),
        lambda: cluster.store.backlog(),
        lambda: cluster.store.nodes(),
        lambda: cluster.store.list_jobs(TENANT, JobQuery()),
        lambda: cluster.store.list_runs(TENANT, RunQuery(from_at=0, to_at=9)),
        lambda: cluster.create(),
    ):
        with pytest.raises(Unavailable):
            await ask()


async def test_a_failure_that_is_not_silence_is_not_hidden(cluster: Cluster) -> None:
    async def broken(*args: Any) -> None:
        raise ZeroDivisionError

    cluster.shards[1].list_jobs = broken  # type: ignore[attr-defined]
    with pytest.raises(ZeroDivisionError):
        await cluster.store.list_jobs(TENANT, JobQuery())


async def test_an_audit_goes_over_all_shards_and_names_those_that_are_away(cluster: Cluster) -> None:
    began_at = cluster.clock.now()
    for shard in range(SHARDS):
        for n in range(3):
            await cluster.create(shard, timing=once(began_at + n))
    cluster.clock.advance(SECOND_US)
    for shard in range(SHARDS):
        await cluster.finish(shard)
    audit = Audit(store=cluster.store, clock=cluster.clock, keep_us=DAY_US, page_jobs=2)
    window = Window(from_at=began_at, to_at=cluster.clock.now(), tenant=TENANT)
    report = await audit.window(window)
    assert (report.is_clean, report.jobs_checked, report.tally.succeeded) == (True, 9, 9)
    cluster.shards[1].away = True
    report = await audit.window(window)
    assert (report.complete, report.missing, report.kinds) == (False, (1,), {})
    assert (report.jobs_checked, report.tally.succeeded) == (6, 6)
    with pytest.raises(Invalid):
        await audit.window(window, after=(SHARDS, 1))
