"""A tenant's history quota: older runs are in no answer from then on, and their rows go a day later."""

import pytest

from hourhand.core.identity import RunKey
from hourhand.core.instant import DAY_US, SECOND_US
from hourhand.core.log import LogChunk, LogPlace, Stream
from hourhand.core.model import DEFAULT_TENANT, Job
from hourhand.core.quota import QuotaOverride
from hourhand.ports.reading import RunQuery
from hourhand.stores.relational import shortening
from tests.contract.builders import every, spec
from tests.contract.harness import KEEP_US
from tests.contract.scene import Scene

SELDOM = spec(every(1_000 * 86_400), concurrency=None)
OTHER = "globex"


async def allow(scene: Scene, days: int | None, tenant: str = DEFAULT_TENANT) -> None:
    await scene.store.set_quota(tenant, QuotaOverride(history_days=days))


async def ran(scene: Scene, *jobs: Job) -> list[RunKey]:
    """One run by hand of each of some jobs, ended now."""
    keys = [await scene.run_now(job) for job in jobs]
    await scene.finish(await scene.take(await scene.worker()))
    return keys


async def shown(scene: Scene, job: Job) -> list[int]:
    return [view.scheduled_at for view in await scene.runs(job)]


async def kept(scene: Scene, job: Job) -> int:
    return sum(line.job_id == job.id for line in (await scene.tables()).history)


async def sweep(scene: Scene, limit: int = 100) -> None:
    long_ago = scene.now - KEEP_US
    while await scene.store.purge(long_ago, long_ago, limit):
        pass


async def test_older_runs_are_in_no_answer_from_then_on(scene: Scene) -> None:
    job = await scene.create(SELDOM)
    [old] = await ran(scene, job)
    scene.pass_time(2 * DAY_US / SECOND_US)
    await sweep(scene)
    [new] = await ran(scene, job)
    window = RunQuery(from_at=0, to_at=scene.now + 1, limit=10)
    assert len((await scene.store.list_runs(DEFAULT_TENANT, window)).runs) == 2
    await allow(scene, 1)
    assert await shown(scene, job) == [new.scheduled_at]
    assert await scene.store.get_run(DEFAULT_TENANT, old) is None
    assert await scene.store.get_run(DEFAULT_TENANT, new) is not None
    assert [view.key for view in (await scene.store.list_runs(DEFAULT_TENANT, window)).runs] == [new]
    [marks] = await scene.store.job_marks(DEFAULT_TENANT, [job.id], 10)
    assert [mark.scheduled_at for mark in marks.marks] == [new.scheduled_at]
    assert await scene.store.glance(DEFAULT_TENANT, [job.id], old.scheduled_at) == []
    facts = await scene.store.run_facts(DEFAULT_TENANT, old)
    assert facts is not None
    assert (facts.run, facts.keep_us) == (None, DAY_US)


async def test_it_holds_to_the_moment_and_is_taken_back_at_once(scene: Scene) -> None:
    job = await scene.create(SELDOM)
    await ran(scene, job)
    await allow(scene, 1)
    scene.pass_time(DAY_US / SECOND_US)
    assert len(await shown(scene, job)) == 1
    scene.pass_time(1)
    assert await shown(scene, job) == []
    assert await scene.store.glance(DEFAULT_TENANT, [job.id], None) == []
    for days in (0, None, 2):
        await allow(scene, days)
        assert len(await shown(scene, job)) == 1, "nothing was dropped yet"


async def test_rows_and_logs_go_a_day_later_and_nobody_elses(scene: Scene) -> None:
    mine, other = await scene.create(SELDOM), await scene.create(SELDOM, tenant=OTHER)
    [key, _] = await ran(scene, mine, other)
    wrote = LogChunk(
        job_id=key.job_id,
        scheduled_at=key.scheduled_at,
        attempt=1,
        seq=1,
        at=scene.now,
        stream=Stream.OUTPUT,
        text="x",
    )
    await scene.store.append_log([wrote])
    await allow(scene, 2)
    scene.pass_time((2 * DAY_US + shortening.SPARE_US) / SECOND_US - 10)
    await sweep(scene)
    assert await kept(scene, mine) == 1
    assert len(await scene.store.read_log(key, LogPlace(), None, 10)) == 1
    scene.pass_time(shortening.PERIOD_US / SECOND_US - 1)
    await sweep(scene)
    assert await kept(scene, mine) == 1, "there is a round each hour"
    scene.pass_time(2)
    await sweep(scene)
    assert (await kept(scene, mine), await kept(scene, other)) == (0, 1)
    assert await scene.store.read_log(key, LogPlace(), None, 10) == []


async def test_many_rows_go_a_bounded_number_at_a_time(scene: Scene) -> None:
    jobs = [await scene.create(SELDOM) for _ in range(5)]
    for _ in range(5):
        await ran(scene, *jobs)
        scene.pass_time(1)
    [young] = [await scene.create(SELDOM)]
    scene.pass_time((DAY_US + shortening.SPARE_US) / SECOND_US)
    await sweep(scene)
    await ran(scene, young)
    await allow(scene, 1)
    long_ago = scene.now - KEEP_US
    assert await scene.store.purge(long_ago, long_ago, 4) is True
    assert sum([await kept(scene, job) for job in jobs]) == 21
    await sweep(scene, 4)
    assert [await kept(scene, job) for job in jobs] == [0] * 5
    assert await kept(scene, young) == 1
    assert await scene.store.purge(long_ago, long_ago, 4) is False


async def test_pages_of_jobs_are_gone_through_one_after_the_other(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shortening, "JOBS_AT_ONCE", 2)
    jobs = [await scene.create(SELDOM) for _ in range(5)]
    await ran(scene, *jobs)
    scene.pass_time((DAY_US + shortening.SPARE_US) / SECOND_US + 1)
    await allow(scene, 1)
    await sweep(scene)
    assert [await kept(scene, job) for job in jobs] == [0] * 5


async def test_how_long_a_tenants_history_is_kept(scene: Scene) -> None:
    assert await scene.store.history_kept_us(DEFAULT_TENANT) == KEEP_US
    await allow(scene, 3)
    assert await scene.store.history_kept_us(DEFAULT_TENANT) == 3 * DAY_US
    assert await scene.store.history_kept_us(OTHER) == KEEP_US
    assert (await scene.store.standing(DEFAULT_TENANT)).quota.history_days == 3
    await allow(scene, 3_000)
    assert await scene.store.history_kept_us(DEFAULT_TENANT) == KEEP_US, "never longer than for all"
