"""A wall clock that is set forward or back under a running node."""

import asyncio

import pytest

from hourhand.core.instant import SECOND_US
from hourhand.core.lifecycle import State
from hourhand.core.model import Overlap, Retry
from hourhand.core.run import ClaimedRun
from hourhand.ports.target import OK, Result
from tests.services.virtual import LoopClock, run_virtual
from tests.services.world import START_AT, Gate, World, cron, every, once, spec

HOUR = 3_600 * SECOND_US


@pytest.mark.parametrize("jump_us", [HOUR, -HOUR // 6])
def test_nothing_starts_early_nothing_is_lost_and_everything_settles(jump_us: int) -> None:
    async def main(clock: LoopClock) -> None:
        world = World(clock=clock)

        async def takes_a_while(run: ClaimedRun) -> Result:
            await asyncio.sleep(0.7)
            return OK

        world.target.act = takes_a_while
        node = world.new_node(concurrency=50)
        await node.start()
        minutely = await world.create(cron("* * * * *"))
        often = await world.create(every(3), overlap=Overlap.QUEUE)
        later = await world.create_all([spec(once(START_AT + n * 60 * SECOND_US)) for n in range(1, 20, 3)])
        await asyncio.sleep(65.2)
        clock.offset_us = jump_us
        await asyncio.sleep(60 if jump_us > 0 else 600 + 1_200)
        for job in (minutely, often):
            assert max(world.target.called(job)) > clock.now() - 65 * SECOND_US, "it fires at the new time"
            await world.jobs.pause(job.tenant, job.id)
        await asyncio.sleep(10)
        assert min(call.late_us for call in world.target.calls) >= 0
        backlog = await world.real.backlog()
        assert (backlog.running, backlog.blocked, backlog.dead) == (0, 0, 0)
        for job in later:
            timing_at = job.spec.timing.at  # type: ignore[union-attr]
            assert await world.state(job, timing_at) is State.SUCCEEDED, (timing_at - START_AT) / SECOND_US
        for job in (minutely, often):
            called = world.target.called(job)
            finished = [at for at in set(called) if await world.state(job, at) is State.SUCCEEDED]
            assert len(finished) == len(set(called))
        assert set(node.parts.values()) == {None}
        await node.stop(SECOND_US)

    run_virtual(main)


def test_after_a_jump_back_times_that_ran_do_not_run_again() -> None:
    async def main(clock: LoopClock) -> None:
        world = World(clock=clock)
        node = world.new_node()
        await node.start()
        job = await world.create(cron("* * * * *"))
        await asyncio.sleep(600.5)
        clock.offset_us = -HOUR // 6
        await asyncio.sleep(900)
        called = world.target.called(job)
        assert len(called) == len(set(called))
        assert sorted(called) == [START_AT + n * 60 * SECOND_US for n in range(1, 16)]
        await node.stop(SECOND_US)

    run_virtual(main)


def test_after_a_jump_back_deadlines_of_new_attempts_hold() -> None:
    async def main(clock: LoopClock) -> None:
        world = World(clock=clock)
        world.target.act = Gate()
        node = world.new_node()
        await node.start()
        await world.create(once(START_AT), timeout_us=30 * SECOND_US)
        await asyncio.sleep(0.1)
        clock.offset_us = -HOUR
        at = clock.now()
        job = await world.create(once(at), timeout_us=2 * SECOND_US, retry=Retry(max=0))
        await asyncio.sleep(3)
        assert await world.is_dead(job, at)
        await node.stop(0)

    run_virtual(main)


def test_after_a_jump_forward_late_ones_are_judged_by_their_policy() -> None:
    async def main(clock: LoopClock) -> None:
        world = World(clock=clock)
        node = world.new_node()
        await node.start()
        job = await world.create(cron("* * * * *"))
        await asyncio.sleep(90)
        clock.offset_us = HOUR
        await asyncio.sleep(5)
        newest = START_AT + HOUR + 60 * SECOND_US
        assert world.target.called(job) == [START_AT + 60 * SECOND_US, newest]
        assert await world.state(job, START_AT + 120 * SECOND_US) is State.SKIPPED
        await node.stop(SECOND_US)

    run_virtual(main)
