"""The backfiller, step by step: its pace, live traffic first, and a store that fails between two pages."""

import pytest

from hourhand.core.backfill import Backfill, BackfillAction, BackfillSpec, BackfillState
from hourhand.core.instant import HOUR_US, MINUTE_US, SECOND_US
from hourhand.core.model import Job, Trigger
from hourhand.errors import Unavailable
from tests.services.world import START_AT, World, every

HOUR = [START_AT - HOUR_US + n * MINUTE_US for n in range(61)]


async def begin(world: World, job: Job, **fields: object) -> Backfill:
    range_ = {"from_at": START_AT - HOUR_US, "to_at": START_AT}
    return await world.backfills.create(job, BackfillSpec(**{**range_, **fields}))  # type: ignore[arg-type]


async def over(world: World, backfill: Backfill) -> Backfill:
    """Feed and work until nothing is left to do."""
    hand = await world.worker()
    for _ in range(1_000):
        wake_at = await world.backfiller.step(world.now)
        await hand.beat()
        await hand.work()
        if wake_at is None:
            return await world.backfills.get(backfill.tenant, backfill.id)
        world.go_to(max(world.now, wake_at))
    raise AssertionError("the backfill does not come to an end")


async def test_it_runs_every_time_once_and_ends() -> None:
    world = World()
    job = await world.create(concurrency=None)
    done = await over(world, await begin(world, job, max_open=7))
    assert (done.state, done.tally.succeeded) == (BackfillState.DONE, 61)
    assert world.target.called(job) == HOUR
    assert await world.backfiller.step(world.now) is None


async def test_a_pace_is_kept_over_many_steps() -> None:
    world = World()
    job = await world.create(every(60), concurrency=None, ends_at=START_AT)
    began_at = world.now
    await over(world, await begin(world, job, pace_us=SECOND_US))
    took_us = world.now - began_at
    assert 60 * SECOND_US <= took_us <= 66 * SECOND_US


async def test_live_traffic_goes_first() -> None:
    """While there is more work than room, the background class gets one run in a hundred."""
    world = World()
    live = await world.create(every(0.01, phase_at=0), concurrency=None)
    job = await world.create(every(60), concurrency=None, ends_at=START_AT)
    hand = await world.worker(concurrency=1)
    await begin(world, job)
    await world.backfiller.step(world.now)
    await world.plan()
    world.pass_time(3)
    await hand.worker.heartbeat(world.now)
    for _ in range(400):
        await world.plan()
        await hand.claim()
        await hand.tick()
        await hand.settle()
        if len(world.target.calls) >= 200:
            break
    calls = world.target.calls[:200]
    backfilled = [call for call in calls if call.key.job_id == job.id]
    assert len(calls) == 200
    assert len(backfilled) <= 3
    assert len(world.target.called(live)) >= 190


async def test_a_crash_between_pages_loses_and_doubles_nothing() -> None:
    world = World()
    job = await world.create(concurrency=None)
    backfill = await begin(world, job, max_open=10)
    hand = await world.worker()
    failures = 0
    for number in range(200):
        if number % 3 == 0:
            world.store.lose_answer("feed_backfill")
        elif number % 3 == 1:
            world.store.fail("feed_backfill")
        try:
            wake_at = await world.new_backfiller().step(world.now)  # each time another process
        except Unavailable:
            failures += 1
            wake_at = world.now + SECOND_US
        await hand.work()
        if wake_at is None:
            break
        world.pass_time(1)
    done = await world.backfills.get(job.tenant, backfill.id)
    assert failures > 5
    assert (done.state, done.tally.succeeded, done.tally.total) == (BackfillState.DONE, 61, 61)
    assert sorted(world.target.called(job)) == HOUR


async def test_what_is_there_is_passed_over_at_once() -> None:
    world = World()
    job = await world.create(concurrency=None)
    await over(world, await begin(world, job, max_open=100))
    now_at = world.now
    done = await over(world, await begin(world, job, max_open=2))
    assert done.tally.already == 61
    assert world.now == now_at, "nothing was waited for"


async def test_many_are_fed_in_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hourhand.services.backfiller.PAGE", 2)
    world = World()
    jobs = [await world.create(concurrency=None) for _ in range(5)]
    for job in jobs:
        await begin(world, job, max_open=1)
    for _ in range(3):
        await world.backfiller.step(world.now)
    rows = await world.planned()
    assert {job_id for _, job_id in rows} >= {job.id for job in jobs}


async def test_a_paused_one_rests() -> None:
    world = World()
    job = await world.create(concurrency=None)
    backfill = await begin(world, job)
    await world.backfills.change(job.tenant, backfill.id, BackfillAction.PAUSE)
    assert await world.backfiller.step(world.now) is None
    assert [row for row in await world.planned() if row[1] == job.id and row[0] <= START_AT] == []


async def test_history_tells_why_a_run_exists() -> None:
    world = World()
    job = await world.create(concurrency=None)
    await over(world, await begin(world, job))
    runs = await world.runs.history(job, limit=5)
    assert runs[-1].trigger is Trigger.BACKFILL
    status = await world.runs.status(job.tenant, job.id, world.jobs.next_at)
    assert status.next_at is not None
    assert status.next_at > world.now
