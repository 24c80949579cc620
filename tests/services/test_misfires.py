"""After an outage: what was planned and not claimed, and what nobody planned, by each policy, end to end."""

from collections.abc import Sequence

import pytest

from hourhand.core.instant import SECOND_US
from hourhand.core.lifecycle import State
from hourhand.core.model import Job, Misfire, MisfirePolicy
from hourhand.core.run import RunView
from tests.services.world import HORIZON_US, START_AT, Gate, World, cron, every, once, reason, spec

MINUTE = 60 * SECOND_US


async def an_outage(world: World, minutes: float) -> None:
    """Everything was planned ahead up to now; then nobody was there for so long."""
    await world.plan()
    world.go_to(START_AT + round(minutes * MINUTE))


async def everything_again(world: World, order: str = "planner first") -> None:
    """A planner and a worker come back, in either order."""
    hand = await world.worker(concurrency=1_000)
    if order == "worker first":
        await hand.work()
    await world.plan()
    await hand.work()
    await world.sweep()
    await hand.work()


def after(n: float) -> int:
    return START_AT + round(n * MINUTE)


async def misfire_job(world: World, policy: MisfirePolicy, **fields: int) -> Job:
    return await world.create(cron("* * * * *"), misfire=Misfire(policy=policy, **fields), concurrency=None)


@pytest.mark.parametrize("order", ["planner first", "worker first"])
async def test_run_once_runs_the_newest_missed_time_only(world: World, order: str) -> None:
    job = await misfire_job(world, MisfirePolicy.RUN_ONCE)
    await an_outage(world, 30.5)
    await everything_again(world, order)
    assert world.target.called(job) == [after(30)]
    view = await world.view(job, after(1))  # it had been planned before the outage
    assert (view.state, reason(view)) == (State.SKIPPED, "misfire")
    assert await world.state(job, after(31)) is State.PENDING


@pytest.mark.parametrize("order", ["planner first", "worker first"])
async def test_skip_runs_only_what_is_within_the_grace(world: World, order: str) -> None:
    job = await misfire_job(world, MisfirePolicy.SKIP, grace_us=2 * MINUTE)
    await an_outage(world, 30.5)
    await everything_again(world, order)
    assert world.target.called(job) == [after(29), after(30)]
    assert await world.state(job, after(1)) is State.SKIPPED


@pytest.mark.parametrize("order", ["planner first", "worker first"])
async def test_catch_up_runs_the_newest_so_many_oldest_first(world: World, order: str) -> None:
    job = await misfire_job(world, MisfirePolicy.CATCH_UP, limit=5)
    await an_outage(world, 30.5)
    await everything_again(world, order)
    assert sorted(world.target.called(job)) == [after(n) for n in (26, 27, 28, 29, 30)]
    view = await world.view(job, after(26))
    assert view.trigger == "catch_up"
    assert await world.state(job, after(1)) is State.SKIPPED


async def test_catch_up_runs_one_after_the_other_where_there_is_one_slot(world: World) -> None:
    job = await world.create(cron("* * * * *"), misfire=Misfire(policy=MisfirePolicy.CATCH_UP, limit=100))
    await an_outage(world, 10.5)
    await everything_again(world)
    assert world.target.called(job) == [after(n) for n in range(1, 11)]


async def test_catch_up_waits_behind_what_is_on_time(world: World) -> None:
    late = await world.create(cron("* * * * *"), misfire=Misfire(policy=MisfirePolicy.CATCH_UP, limit=100))
    await an_outage(world, 30.5)
    await world.plan()
    prompt = await world.create_all([spec(once(world.now)) for _ in range(20)])
    hand = await world.worker(concurrency=1)
    while len(world.target.calls) < 22:
        await hand.claim()
        await hand.settle()
    first = {key.job_id for key in world.target.keys[:20]}
    assert first == {job.id for job in prompt}
    assert world.target.called(late)


async def test_a_short_outage_within_the_grace_misses_nothing(world: World) -> None:
    jobs = [await misfire_job(world, policy) for policy in MisfirePolicy]
    await an_outage(world, 1.9)
    await everything_again(world)
    for job in jobs:
        assert world.target.called(job) == [after(1)]


async def test_a_job_that_was_made_during_the_outage_gets_what_is_its_own(world: World) -> None:
    """Created by an API that lives, while no planner did."""
    old = await misfire_job(world, MisfirePolicy.RUN_ONCE)
    await an_outage(world, 30.5)
    new = await misfire_job(world, MisfirePolicy.RUN_ONCE)
    world.go_to(after(31.2))
    await everything_again(world)
    assert world.target.called(new) == [after(31)]
    assert world.target.called(old) == [after(31)]


async def test_a_one_time_job_fires_after_the_outage_unless_it_is_to_be_skipped(world: World) -> None:
    run = await world.create(once(after(5)))
    skip = await world.create(once(after(5)), misfire=Misfire(policy=MisfirePolicy.SKIP))
    await an_outage(world, 30)
    await everything_again(world)
    assert world.target.called(run) == [after(5)]
    assert world.target.called(skip) == []
    assert reason(await world.view(skip, after(5))) == "misfire"


async def test_waiting_for_a_slot_is_no_misfire(world: World) -> None:
    """A run that waited for hours behind a slow one runs when its turn comes."""
    gate = Gate()
    world.target.act = gate
    job = await world.create(
        every(60), misfire=Misfire(policy=MisfirePolicy.SKIP), timeout_us=7_200 * SECOND_US
    )
    await world.plan()
    hand = await world.worker()
    for n in (1, 2):
        await hand.go(after(n))
        await world.plan()
    assert len(world.target.calls) == 1
    await hand.go(after(2) + 30 * SECOND_US)
    await world.sweep()
    gate.opened.set()
    world.go_to(world.now + 3 * SECOND_US)
    await hand.work()
    assert world.target.called(job) == [after(1), after(2)]


async def test_every_expected_time_is_accounted_for(world: World) -> None:
    """Ran, skipped in history, or counted in a gap of the clock: nothing in between."""
    jobs = [await misfire_job(world, policy, limit=7) for policy in MisfirePolicy]
    await an_outage(world, 60.5)
    await everything_again(world)
    for job in jobs:
        seen = {view.scheduled_at for view in await ended(world, job)}
        gaps = await gaps_of(world, job)
        missing = [after(n) for n in range(1, 61) if after(n) not in seen]
        assert all(any(low <= at <= high for low, high, *_ in gaps) for at in missing)
        counted = sum(missed - ran for *_, missed, ran in gaps)
        assert counted == len(missing), job.spec.misfire.policy


async def ended(world: World, job: Job) -> Sequence[RunView]:
    runs = await world.real.job_runs(job.tenant, job.id, [], None, 1_000)
    return [run for run in runs if run.attempts]


async def gaps_of(world: World, job: Job) -> list[tuple[int, int, int, int]]:
    async def read(tx: object) -> list[tuple[int, int, int, int]]:
        return tx._connection.execute(  # type: ignore[attr-defined,no-any-return]
            "SELECT g.from_at, g.to_at, g.missed, g.ran FROM clock_gaps AS g JOIN jobs AS j"
            " ON j.clock_id = g.clock_id WHERE j.id = ? AND g.policy = ?",
            (job.id, job.spec.misfire.policy.value),
        ).fetchall()

    return await world.real._engine.read(read)


def test_the_horizon_is_shorter_than_the_outages() -> None:
    assert HORIZON_US < 30 * MINUTE
