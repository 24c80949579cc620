"""A whole process on virtual time: it starts by rescuing, fires on time, and stops in the right order."""

import asyncio

import pytest

from hourhand.core.instant import SECOND_US
from hourhand.core.lifecycle import State
from hourhand.core.model import Overlap, Retry
from hourhand.core.run import ClaimedRun
from hourhand.errors import Unavailable
from hourhand.ports.target import OK, Result
from tests.services.virtual import LoopClock, run_virtual, until
from tests.services.world import MS, START_AT, Gate, World, cron, every, key_of, once, spec


def test_jobs_fire_on_time() -> None:
    async def main(clock: LoopClock) -> None:
        world = World(clock=clock)
        node = world.new_node(concurrency=100)
        await node.start()
        jobs = [
            await world.create(cron("* * * * *")),
            await world.create(every(7)),
            await world.create(cron("*/5 * * * *"), jitter_us=20 * SECOND_US),
            await world.create(once(START_AT + 834_567_891)),
        ]
        await until(clock, START_AT + 921 * SECOND_US)
        assert [len(world.target.called(job)) for job in jobs] == [15, 131, 3, 1]
        lateness = [call.late_us for call in world.target.calls]
        assert min(lateness) >= 0
        assert max(lateness) <= 5 * MS
        for job in jobs:
            assert len(set(world.target.called(job))) == len(world.target.called(job))
        assert await world.real.held_runs(node._worker._node_id) == []
        assert world.store.calls["renew_node"] <= 94, "a heartbeat every ten seconds"
        assert set(node.parts.values()) == {None}
        await node.stop(SECOND_US)

    run_virtual(main)


def test_it_works_without_any_hint() -> None:
    """Hints may be lost; everything also works without them, if a second later."""

    async def main(clock: LoopClock) -> None:
        world = World(clock=clock)
        world.store.subscribe = lambda wake: None  # type: ignore[method-assign]
        node = world.new_node()
        await node.start()
        await asyncio.sleep(0.25)
        job = await world.create(every(10))
        await asyncio.sleep(0.25)
        key = await world.jobs.run_now(job.tenant, job.id)
        await until(clock, START_AT + 45 * SECOND_US)
        times = [START_AT + n * 10 * SECOND_US for n in (1, 2, 3, 4)]
        assert world.target.called(job) == [key.scheduled_at, *times]
        assert [call.late_us for call in world.target.calls[1:]] == [0] * 4
        await node.stop(SECOND_US)

    run_virtual(main)


def test_a_manual_run_starts_within_milliseconds() -> None:
    async def main(clock: LoopClock) -> None:
        world = World(clock=clock)
        node = world.new_node()
        await node.start()
        job = await world.create(cron("0 0 1 1 *"))
        await until(clock, START_AT + 10_500 * MS)
        await world.jobs.run_now(job.tenant, job.id)
        await asyncio.sleep(0.005)
        assert len(world.target.calls) == 1
        assert await world.state(job, world.target.keys[0].scheduled_at) is State.SUCCEEDED
        await node.stop(SECOND_US)

    run_virtual(main)


def test_a_cancellation_reaches_the_attempt_at_once() -> None:
    async def main(clock: LoopClock) -> None:
        world = World(clock=clock)
        world.target.act = Gate()
        node = world.new_node()
        await node.start()
        job = await world.create(once(START_AT))
        await asyncio.sleep(3.3)
        await world.runs.cancel(job.tenant, key_of(job, START_AT))
        await asyncio.sleep(0.005)
        assert await world.state(job, START_AT) is State.CANCELLED
        await node.stop(SECOND_US)

    run_virtual(main)


def test_it_begins_by_rescuing_what_an_earlier_process_left() -> None:
    async def main(clock: LoopClock) -> None:
        world = World(clock=clock)
        jobs = await world.create_all([spec(once(START_AT)) for _ in range(1_200)])
        world.target.act = Gate()
        lost = await world.worker(concurrency=2_000)
        await lost.claim()
        assert lost.in_hand == 1_200
        await world.real.end_node(lost.worker._node_id)  # as opening the file does
        world.target.act = _immediately
        node = world.new_node(concurrency=2_000)
        await node.start()
        assert {await world.state(job, START_AT) for job in jobs} == {State.RETRYING}
        await asyncio.sleep(0.1)
        assert {await world.state(job, START_AT) for job in jobs} == {State.SUCCEEDED}
        await node.stop(SECOND_US)

    run_virtual(main)


def test_stop_lets_what_runs_end_and_commits_each_outcome_as_it_comes() -> None:
    async def main(clock: LoopClock) -> None:
        world = World(clock=clock)

        async def slow(run: ClaimedRun) -> Result:
            await asyncio.sleep(2 if run.job_id == quick.id else 20)
            return OK

        world.target.act = slow
        node = world.new_node()
        await node.start()
        quick, long = await world.create_all([spec(once(START_AT)), spec(once(START_AT))])
        coming = await world.create(once(START_AT + 2 * SECOND_US))
        await asyncio.sleep(0.5)
        stopping = asyncio.create_task(node.stop(60 * SECOND_US))
        await asyncio.sleep(5)
        assert await world.state(quick, START_AT) is State.SUCCEEDED, "committed although another still runs"
        assert await world.state(coming, START_AT + 2 * SECOND_US) is State.PENDING
        assert not stopping.done()
        await stopping
        assert clock.now() < START_AT + 21 * SECOND_US
        assert await world.state(long, START_AT) is State.SUCCEEDED
        assert len(world.target.calls) == 2
        assert await world.real.held_runs(node._worker._node_id) == []
        assert [one for one in await world.real.nodes() if one.lease_until > clock.now()] == []
        assert set(node.parts.values()) == {"stopped"}

    run_virtual(main)


def test_stop_keeps_the_lease_while_it_waits() -> None:
    async def main(clock: LoopClock) -> None:
        world = World(clock=clock)

        async def slow(run: ClaimedRun) -> Result:
            await asyncio.sleep(100)
            return OK

        world.target.act = slow
        node, other = world.new_node(), world.new_node()
        job = await world.create(once(START_AT))
        await node.start()
        await asyncio.sleep(0.1)
        await other.start()
        await node.stop(120 * SECOND_US)
        view = await world.view(job, START_AT)
        assert (view.state, view.tries) == (State.SUCCEEDED, 0)
        assert len(world.target.calls) == 1
        await other.stop(0)

    run_virtual(main)


def test_stop_cuts_short_what_takes_too_long() -> None:
    async def main(clock: LoopClock) -> None:
        world = World(clock=clock)
        world.target.act = Gate()
        node = world.new_node()
        job = await world.create(once(START_AT), retry=Retry(max=3))
        await node.start()
        await asyncio.sleep(1)
        began_at = clock.now()
        await node.stop(10 * SECOND_US)
        assert 10 * SECOND_US <= clock.now() - began_at < 12 * SECOND_US
        view = await world.view(job, START_AT)
        assert (view.state, view.tries) == (State.RETRYING, 1)

    run_virtual(main)


def test_deadlines_hold_while_it_stops() -> None:
    async def main(clock: LoopClock) -> None:
        world = World(clock=clock)
        world.target.act = Gate()
        node = world.new_node()
        job = await world.create(once(START_AT), timeout_us=5 * SECOND_US, retry=Retry(max=0))
        await node.start()
        await asyncio.sleep(1)
        await node.stop(60 * SECOND_US)
        assert clock.now() < START_AT + 6 * SECOND_US
        assert await world.is_dead(job, START_AT)

    run_virtual(main)


def test_it_stops_in_time_although_the_store_is_away() -> None:
    async def main(clock: LoopClock) -> None:
        world = World(clock=clock)
        node = world.new_node()
        await node.start()
        await world.create(once(START_AT + SECOND_US))
        await asyncio.sleep(0.5)
        world.store.away = True
        await asyncio.sleep(5)
        assert any(wrong is not None for wrong in node.parts.values())
        async with asyncio.timeout(30):
            await node.stop(SECOND_US)
        assert set(node.parts.values()) == {"stopped"}

    run_virtual(main)


def test_a_node_that_never_started_can_be_stopped() -> None:
    async def main(clock: LoopClock) -> None:
        await World(clock=clock).new_node().stop(SECOND_US)

    run_virtual(main)


def test_a_start_that_finds_the_store_away_says_so() -> None:
    async def main(clock: LoopClock) -> None:
        world = World(clock=clock)
        world.store.away = True
        with pytest.raises(Unavailable):
            await world.new_node().start()

    run_virtual(main)


def test_the_store_away_for_a_while_delays_and_loses_nothing() -> None:
    async def main(clock: LoopClock) -> None:
        world = World(clock=clock)
        node = world.new_node()
        await node.start()
        job = await world.create(every(1), overlap=Overlap.QUEUE)
        await until(clock, START_AT + 10 * SECOND_US + 1)
        world.store.away = True
        await asyncio.sleep(10)
        world.store.away = False
        await until(clock, START_AT + 40 * SECOND_US + SECOND_US // 2)
        times = [START_AT + n * SECOND_US for n in range(1, 41)]
        assert sorted(world.target.called(job)) == times
        assert await world.states(job, *times) == [State.SUCCEEDED] * 40
        assert set(node.parts.values()) == {None}
        await node.stop(SECOND_US)

    run_virtual(main)


async def _immediately(run: ClaimedRun) -> Result:
    return OK
