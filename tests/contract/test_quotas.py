"""Quotas: what a tenant has is counted as it changes, and what would be too much changes nothing."""

import asyncio
from typing import Any

import msgspec
import pytest

from hourhand.core.bucket import Limit
from hourhand.core.instant import DAY_US, SECOND_US
from hourhand.core.model import Job, JobSpec
from hourhand.core.quota import OverQuota, QuotaOverride, Room, Use, asked_by, fitting, size_of
from hourhand.errors import Overloaded, TooLarge
from hourhand.ports.store import Refused, Store
from hourhand.stores.postgres import PostgresStore
from tests.contract.builders import cron, draft, every, once, spec
from tests.contract.harness import KEEP_US, START_AT, Harness
from tests.contract.scene import Scene
from tests.contract.test_backfills import asked

ACME = "acme"


async def use_of(store: Store, tenant: str = ACME) -> Use:
    return (await store.standing(tenant)).use


async def allow(scene: Scene, tenant: str = ACME, **limits: int) -> None:
    await scene.store.set_quota(tenant, QuotaOverride(**limits))


async def add(store: Store, *specs: JobSpec, tenant: str = ACME, **fields: Any) -> list[Job | Refused]:
    return await store.create_jobs([draft(one, tenant=tenant, **fields) for one in specs])


def made(answers: list[Job | Refused]) -> list[Job]:
    return [one for one in answers if isinstance(one, Job)]


def kept_bytes(*jobs: Job) -> int:
    return sum(len(msgspec.json.encode(job.spec)) for job in jobs)


# --- what is counted


async def test_nobody_has_nothing(scene: Scene) -> None:
    found = await scene.store.standing(ACME)
    assert found.use == Use()
    assert found.override == QuotaOverride()
    assert (await scene.store.tenants("", 10)).tenants == ()


async def test_jobs_are_counted_as_they_come_change_and_go(scene: Scene) -> None:
    jobs = made(await add(scene.store, spec(every(60)), spec(every(1), name="é" * 10), spec(once(START_AT))))
    made_elsewhere = await add(scene.store, spec(), tenant="globex")
    assert await use_of(scene.store) == Use(jobs=3, document_bytes=kept_bytes(*jobs), rate=1_000 + 60_000)
    assert (await use_of(scene.store, "globex")).jobs == len(made_elsewhere)
    changed = await scene.change(jobs[1], timing=every(2), name="longer than before, and in plain letters")
    after = [jobs[0], changed.job, jobs[2]]
    assert await use_of(scene.store) == Use(jobs=3, document_bytes=kept_bytes(*after), rate=1_000 + 30_000)
    await scene.pause(jobs[0])
    assert (await use_of(scene.store)).rate == 31_000, "a pause may end at any time"
    await scene.delete(jobs[0])
    await scene.delete(changed.job)
    assert await use_of(scene.store) == Use(jobs=1, document_bytes=kept_bytes(jobs[2]))


async def test_a_one_time_job_that_leaves_with_its_history_is_counted_no_longer(scene: Scene) -> None:
    await add(scene.store, spec(once(START_AT + SECOND_US)))
    node = await scene.worker(KEEP_US * 3)
    scene.pass_time(2)
    [run] = await scene.take(node)
    await scene.finish(run)
    scene.pass_time((KEEP_US + DAY_US) / SECOND_US)
    await scene.tend()
    assert await use_of(scene.store) == Use()


async def test_what_has_had_its_last_time_makes_no_more_runs_a_minute(scene: Scene) -> None:
    await add(scene.store, spec(every(10), max_runs=2))
    assert (await use_of(scene.store)).rate == 6_000
    await scene.plan()
    scene.pass_time(100)
    await scene.tend()
    assert (await use_of(scene.store)).rate == 0
    assert (await use_of(scene.store)).jobs == 1


async def test_what_was_not_stored_is_not_counted(scene: Scene) -> None:
    answers = await add(scene.store, spec(key="a"), spec(key="a"))
    assert len(made(answers)) == 1
    assert (await use_of(scene.store)).jobs == 1


async def test_tenants_are_listed_by_name_with_what_they_may_and_have(scene: Scene) -> None:
    for tenant in ("b", "a", "c-1"):
        await add(scene.store, spec(), tenant=tenant)
    await allow(scene, "nobody-yet", jobs=7)
    first = await scene.store.tenants("", 2)
    assert [one.tenant for one in first.tenants] == ["a", "b"]
    assert first.next_after == "b"
    rest = await scene.store.tenants(first.next_after, 10)
    assert [(one.tenant, one.use.jobs, one.quota.jobs) for one in rest.tenants] == [
        ("c-1", 1, 0),
        ("nobody-yet", 0, 7),
    ]
    assert rest.next_after is None


async def test_the_room_is_what_a_refusal_is_judged_by(scene: Scene) -> None:
    assert await scene.store.room(ACME, 0) == Room()
    await allow(scene, jobs=3, runs_per_minute=60, document_bytes=10_000)
    made_jobs = made(await add(scene.store, spec(every(60)), spec(once(START_AT + DAY_US), name="é")))
    room = await scene.store.room(ACME, 0)
    assert room.use == await use_of(scene.store)
    assert room.use.document_bytes == sum(size_of(job.spec) for job in made_jobs)
    assert (room.quota.jobs, room.runs_left) == (3, 59)
    assert room == await scene.store.room(ACME, 0), "looking takes nothing"
    asked_specs = [spec(every(1)), spec(every(1)), spec(every(60))]
    judged = fitting(room, [(one, asked_by(room.quota, one)) for one in asked_specs])
    assert judged == [
        one if isinstance(one, OverQuota) else None for one in await add(scene.store, *asked_specs)
    ]
    assert [one is None for one in judged] == [False, False, True]


# --- what is refused


async def test_jobs_beyond_the_quota_are_refused_one_by_one(scene: Scene) -> None:
    await allow(scene, jobs=3)
    answers = await add(scene.store, *[spec() for _ in range(5)])
    assert [isinstance(one, Job) for one in answers] == [True] * 3 + [False] * 2
    over = answers[3]
    assert isinstance(over, OverQuota)
    assert over.why == "the tenant may have 3 jobs; it has 3, and this would be 1 more"
    assert over.retry_after_s == 60
    assert (await use_of(scene.store)).jobs == 3
    await scene.delete(made(answers)[0])
    assert len(made(await add(scene.store, spec(), spec()))) == 1
    assert len(made(await add(scene.store, spec(), tenant="globex"))) == 1, "another tenant has its own"


async def test_a_quota_that_is_lowered_takes_nothing_away(scene: Scene) -> None:
    [job, *_] = made(await add(scene.store, spec(every(60)), spec(every(60))))
    await allow(scene, jobs=1, runs_per_minute=1)
    assert made(await add(scene.store, spec())) == []
    await scene.change(job, name="it can still be changed")
    with pytest.raises(Overloaded, match="may have 1 scheduled runs a minute; it has 2, and this would be 1"):
        await scene.change(job, timing=every(30))
    await scene.change(job, timing=every(120))
    await allow(scene)
    assert len(made(await add(scene.store, spec()))) == 1


async def test_schedules_may_not_come_to_more_runs_a_minute_than_the_tenant_may_have(scene: Scene) -> None:
    await allow(scene, runs_per_minute=61)
    [often] = made(await add(scene.store, spec(every(1))))
    assert len(made(await add(scene.store, spec(cron("* * * * *")), spec(cron("*/2 * * * *"))))) == 1
    assert (await use_of(scene.store)).rate == 61_000
    with pytest.raises(Overloaded):
        await scene.change(often, timing=every(0.5))
    assert (await scene.get(often)).version == 1, "nothing is half written"
    assert (await use_of(scene.store)).rate == 61_000


async def test_documents_may_not_grow_beyond_their_quota(scene: Scene) -> None:
    [job] = made(await add(scene.store, spec()))
    await allow(scene, document_bytes=kept_bytes(job) + 100)
    assert made(await add(scene.store, spec())) == []
    with pytest.raises(Overloaded, match="bytes of job documents"):
        await scene.change(job, name="x" * 200)
    await scene.change(job, name="x" * 50)


async def test_a_payload_may_be_too_large_for_one_tenant(scene: Scene) -> None:
    await allow(scene, payload_bytes=20)
    large = spec(payload=msgspec.Raw(b'"' + b"x" * 30 + b'"'))
    [over] = await add(scene.store, large)
    assert isinstance(over, OverQuota)
    assert over.too_large
    assert len(made(await add(scene.store, large, tenant="globex"))) == 1
    [job] = made(await add(scene.store, spec()))
    with pytest.raises(TooLarge):
        await scene.change(job, payload=large.payload)


# --- runs that are asked for


async def test_runs_that_are_asked_for_take_from_a_bucket_of_a_minute(scene: Scene) -> None:
    await allow(scene, runs_per_minute=3)
    [job] = made(await add(scene.store, spec(every(3600), concurrency=None)))
    for _ in range(3):
        await scene.store.add_run(ACME, job.id, None)
    with pytest.raises(Overloaded, match="may ask for 3 runs a minute; 0 are left") as refused:
        await scene.store.add_run(ACME, job.id, None)
    assert refused.value.retry_after_s == 20
    assert len((await scene.tables()).planned) == 3
    scene.pass_time(20)
    key = await scene.store.add_run(ACME, job.id, "same")
    assert await scene.store.add_run(ACME, job.id, "same") == key, "asked again it is the same run"
    with pytest.raises(Overloaded):
        await scene.store.add_run(ACME, job.id, None)


async def test_one_time_jobs_are_runs_that_are_asked_for(scene: Scene) -> None:
    await allow(scene, runs_per_minute=2)
    later = START_AT + DAY_US
    answers = await add(scene.store, *[spec(once(later + n)) for n in range(3)], spec(every(3600)))
    assert [isinstance(one, Job) for one in answers] == [True, True, False, True]
    with pytest.raises(Overloaded):
        await scene.change(made(answers)[0], timing=once(later + 60 * SECOND_US))
    await scene.change(made(answers)[0], name="its time stays")
    scene.pass_time(30)
    await scene.change(made(answers)[0], timing=once(later + 60 * SECOND_US))


async def test_dead_letters_go_back_all_or_none(scene: Scene) -> None:
    [job] = made(await add(scene.store, spec(every(10), concurrency=None)))
    node = await scene.worker()
    await scene.plan()
    scene.pass_time(35)
    keys = [await scene.kill(run) for run in await scene.take(node)]
    assert len(keys) == 3
    await allow(scene, runs_per_minute=2)
    with pytest.raises(Overloaded, match="asks for 3"):
        await scene.store.requeue(ACME, keys)
    assert len((await scene.tables()).dead) == 3
    assert await scene.store.requeue(ACME, keys[:2]) == keys[:2]
    assert job.tenant == ACME


async def test_a_backfill_goes_on_as_fast_as_its_tenant_may(scene: Scene) -> None:
    [job] = made(await add(scene.store, spec(concurrency=None)))
    await allow(scene, runs_per_minute=20)
    assert await scene.store.add_backfill(ACME, job.id, asked(1)) is not None
    fed = []
    for _ in range(4):
        done = await scene.store.feed_backfill(1)
        assert done is not None
        fed.append(done.fed)
        scene.pass_time(60)
    assert fed == [20, 20, 20, 1]
    assert (await scene.store.take_tokens(f"runs/{ACME}", Limit(burst=20, per_s=1 / 3), 1, 20)).taken == 20


# --- shared buckets


async def test_tokens_are_taken_in_portions(scene: Scene) -> None:
    limit = Limit(burst=10, per_s=1)
    first = await scene.store.take_tokens("a", limit, 1, 4)
    assert (first.taken, first.left) == (4, 6)
    assert (await scene.store.take_tokens("a", limit, 1, 40)).taken == 6
    none = await scene.store.take_tokens("a", limit, 1, 4)
    assert (none.taken, none.left, none.retry_after_us) == (0, 0, SECOND_US)
    assert (await scene.store.take_tokens("b", limit, 1, 4)).taken == 4
    scene.pass_time(2)
    assert (await scene.store.take_tokens("a", limit, 1, 4)).taken == 2


async def test_full_buckets_are_forgotten(scene: Scene) -> None:
    limit = Limit(burst=10, per_s=1)
    await scene.store.take_tokens("a", limit, 10, 10)
    scene.pass_time(9)
    await scene.store.purge(0, 0, 100)
    assert (await scene.store.take_tokens("a", limit, 1, 10)).taken == 9, "it was not full yet"
    scene.pass_time(20)
    await scene.store.purge(0, 0, 100)
    assert (await scene.store.take_tokens("a", limit, 1, 10)).taken == 10


# --- several at once


async def test_two_processes_that_create_at_once_stay_within_the_quota(
    scene: Scene, store_harness: Harness
) -> None:
    stores: list[Store] = [scene.store]
    other = None
    if store_harness.shared:
        other = await PostgresStore.open(store_harness.url, clock=store_harness.clock)  # type: ignore[attr-defined]
        stores.append(other)
    await allow(scene, jobs=50, runs_per_minute=40)
    timings = [every(3600), once(START_AT + DAY_US)]
    batches = [
        add(stores[n % len(stores)], *[spec(timings[n // 2 % 2]) for _ in range(1 + n % 4)])
        for n in range(60)
    ]
    jobs = [job for answers in await asyncio.gather(*batches) for job in made(answers)]
    assert len(jobs) == 50
    use = await use_of(scene.store)
    assert use.jobs == 50
    assert use.document_bytes == kept_bytes(*jobs)
    asked = sum(job.spec.rule is None for job in jobs)
    left = (await scene.store.take_tokens(f"runs/{ACME}", Limit(burst=40, per_s=40 / 60), 1, 40)).taken
    assert asked + left == 40
    deletes = [stores[n % len(stores)].delete_job(ACME, job.id, False) for n, job in enumerate(jobs)]
    more = [add(stores[n % len(stores)], spec(every(3600))) for n in range(20)]
    await asyncio.gather(*deletes, *more)
    listed = (await scene.store.tenants("", 10)).tenants[0]
    assert listed.use.jobs == len(await scene.store.find_jobs(ACME, "", 1_000))
    if other is not None:
        await other.close()
