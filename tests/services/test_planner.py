"""The planner: to the horizon and no further, nothing twice, and asleep in between."""

import pytest

from hourhand.core.instant import DAY_US, SECOND_US
from hourhand.core.schedule import parse_key
from hourhand.services.planner import rule_by_key
from tests.services.world import HORIZON_US, SEGMENTS, START_AT, World, cron, every, spec


async def nominals(world: World) -> list[int]:
    return [scheduled_at for scheduled_at, _ in await world.planned()]


async def test_it_plans_to_the_horizon_and_no_further(world: World) -> None:
    await world.create(every(7))
    await world.plan()
    times = await nominals(world)
    assert times == [START_AT + n * 7 * SECOND_US for n in range(1, 9)]  # 7 s … 56 s; 63 s lies beyond
    assert times[-1] <= START_AT + HORIZON_US < times[-1] + 7 * SECOND_US


async def test_it_sleeps_until_the_next_clock_reaches_into_the_horizon(world: World) -> None:
    await world.create(every(7))
    next_at = await world.plan()
    assert next_at is not None
    # Waking a moment before finds nothing, waking then finds exactly one time more.
    before = len(await nominals(world))
    world.go_to(START_AT + 3 * SECOND_US - 1)
    await world.plan()
    assert len(await nominals(world)) == before
    world.go_to(next_at)
    assert next_at == START_AT + 3 * SECOND_US
    await world.plan()
    assert len(await nominals(world)) == before + 1


async def test_a_clock_exactly_on_the_horizon_does_not_keep_it_busy(world: World) -> None:
    await world.create(every(60))  # the next time is exactly now + horizon
    first = await world.planner.step(world.now)
    steps = [first]
    while steps[-1] is not None and steps[-1] <= world.now:
        steps.append(await world.planner.step(world.now))
        assert len(steps) < 5, "it asks to be called again at once although nothing can change"
    assert steps[-1] is not None


async def test_without_clocks_it_waits_for_a_hint(world: World) -> None:
    assert await world.plan() is None


async def test_a_daily_clock_lets_it_sleep_for_the_day(world: World) -> None:
    await world.create(cron("0 9 * * *"))
    next_at = await world.plan()
    assert next_at is not None
    assert next_at == START_AT + DAY_US - HORIZON_US
    assert await nominals(world) == []


async def test_nothing_is_planned_twice(world: World) -> None:
    jobs = await world.create_all([spec(every(5)) for _ in range(20)])
    await world.plan()
    once_planned = await world.planned()
    await world.plan()
    assert await world.planned() == once_planned
    assert len(once_planned) == len(set(once_planned)) == 12 * len(jobs)


async def test_two_planners_with_the_same_view_write_the_same_rows_once(world: World) -> None:
    await world.create(every(5))
    clocks = await world.real.due_clocks(range(SEGMENTS), world.now + HORIZON_US, 10)
    plans = [world.planner._plan(clock, world.now, None) for clock in clocks]
    assert await world.real.plan(plans) == 12
    assert await world.real.plan(plans) == 0
    assert len(await world.planned()) == 12


async def test_a_lost_answer_is_planned_again_without_harm(world: World) -> None:
    await world.create(every(5))
    world.store.lose_answer("plan")
    with pytest.raises(Exception, match="answer was lost"):
        await world.plan()
    await world.plan()
    assert len(await world.planned()) == 12


async def test_its_batch_grows_while_there_is_little_to_write_and_shrinks_when_there_is_much() -> None:
    world = World()
    sizes: list[int] = []
    real = world.real.due_clocks

    async def watched(segments: object, before_at: int, limit: int) -> object:
        sizes.append(limit)
        return await real(segments, before_at, limit)

    world.store.due_clocks = watched
    # 200 rules of one job each: few runs per clock, so batches double.
    await world.create_all(
        [spec(every(3_000, phase_at=START_AT + n * SECOND_US // 4)) for n in range(1, 200)]
    )
    await world.plan()
    assert sizes[:4] == [16, 32, 64, 128]
    assert len(await world.planned()) == 199
    world.planner._adapt(20_001, 0)
    world.planner._adapt(20_001, 0)
    assert world.planner._batch < max(sizes)
    for _ in range(20):
        world.planner._adapt(0, 200_000)  # few, but each took long
    assert world.planner._batch == 1
    world.planner._adapt(10_000, 0)
    world.planner._adapt(0, 100_000)
    assert world.planner._batch == 1
    for _ in range(20):
        world.planner._adapt(0, 0)
    assert world.planner._batch == 1024


async def test_a_job_that_ends_is_not_planned_beyond_its_end(world: World) -> None:
    await world.create(every(10), ends_at=START_AT + 30 * SECOND_US)
    await world.create(every(10), max_runs=2)
    await world.plan()
    assert [at - START_AT for at in await nominals(world)] == [
        10 * SECOND_US,
        10 * SECOND_US,
        20 * SECOND_US,
        20 * SECOND_US,
        30 * SECOND_US,
    ]


async def test_planning_goes_on_without_a_gap_over_an_hour_of_steps(world: World) -> None:
    job = await world.create(cron("*/2 * * * *"))
    while world.now < START_AT + 3_600 * SECOND_US:
        next_at = await world.plan()
        assert next_at is not None
        assert next_at > world.now
        world.go_to(next_at)
    rule = job.spec.rule
    assert rule is not None
    assert await nominals(world) == rule.times(START_AT, world.now, 1_000)


def test_rules_are_read_from_their_key_once() -> None:
    rule = spec(cron("0 9 * * *")).rule
    assert rule is not None
    assert rule_by_key(rule.key) is rule_by_key(rule.key)
    assert rule_by_key(rule.key) == parse_key(rule.key)
