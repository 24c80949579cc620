"""Schedulers on one store: they share the segments, take over from the dead, and one of them sweeps."""

import asyncio

from hourhand.core.instant import SECOND_US
from hourhand.core.lifecycle import State
from hourhand.services.node import Node
from tests.services.virtual import LoopClock, run_virtual, until
from tests.services.world import SEGMENTS, START_AT, Gate, World, every, once, spec


async def shares(*nodes: Node) -> list[set[int]]:
    assert all(node._scheduler is not None for node in nodes)
    return [set(await node._scheduler.leases.segments()) for node in nodes if node._scheduler is not None]


def kill(node: Node) -> None:
    for task in node._tasks.values():
        task.cancel()


def test_segments_are_shared_evenly_and_given_back_at_once() -> None:
    async def main(clock: LoopClock) -> None:
        world = World(clock=clock)
        nodes = [world.new_scheduler_node() for _ in range(3)]
        await nodes[0].start()
        assert await shares(nodes[0]) == [set(range(SEGMENTS))]
        for node in nodes[1:]:
            await node.start()
        await asyncio.sleep(3)
        held = await shares(*nodes)
        assert sorted(map(len, held)) == [1, 1, 2]
        assert set.union(*held) == set(range(SEGMENTS))
        stopped_at = clock.now()
        await nodes[0].stop(0)
        assert clock.now() == stopped_at
        await asyncio.sleep(1.1)
        held = await shares(*nodes[1:])
        assert sorted(map(len, held)) == [2, 2]
        for node in nodes[1:]:
            await node.stop(0)
        assert await shares(*nodes[1:]) == [set(), set()]

    run_virtual(main)


def test_a_dead_schedulers_segments_are_planned_by_another_within_five_seconds() -> None:
    async def main(clock: LoopClock) -> None:
        world = World(clock=clock)
        dying, living, worker = (
            world.new_scheduler_node(),
            world.new_scheduler_node(),
            world.new_worker_node(100),
        )
        for node in (dying, living, worker):
            await node.start()
        await world.create_all([spec(every(7)) for _ in range(40)])
        await asyncio.sleep(3)
        kill(dying)
        await asyncio.sleep(5)
        assert await shares(living) == [set(range(SEGMENTS))]
        await until(clock, START_AT + 200 * SECOND_US + 1)
        assert len(world.target.calls) == 40 * 28
        assert max(call.late_us for call in world.target.calls) < SECOND_US // 100
        await living.stop(0)
        await worker.stop(SECOND_US)

    run_virtual(main)


def test_one_that_slept_beyond_its_lease_cannot_plan_and_begins_again() -> None:
    async def main(clock: LoopClock) -> None:
        world = World(clock=clock)
        sleeper, other = world.new_scheduler_node(), world.new_scheduler_node()
        await sleeper.start()
        assert sleeper._scheduler is not None
        await world.create(every(10))
        stale = sleeper._scheduler.planner
        kill(sleeper)  # as a process that is stopped: it still thinks that it holds everything
        await asyncio.sleep(3.5)
        await other.start()
        await until(clock, START_AT + 100 * SECOND_US)
        planned = await world.planned()
        clocks = await world.real.due_clocks(range(SEGMENTS), clock.now() + 120 * SECOND_US, 10)
        held = await sleeper._scheduler.leases.segments()
        plans = [stale._plan(one, clock.now() + 60 * SECOND_US, held[one.segment]) for one in clocks]
        assert plans
        assert await world.real.plan(plans) == 0
        assert await world.planned() == planned
        tenure = sleeper._scheduler.tenure
        assert tenure is not None
        changes: list[int] = []
        tenure.on_change = lambda: changes.append(1)
        await tenure.step(clock.now())
        await asyncio.sleep(1.1)
        await tenure.step(clock.now())
        assert sorted(map(len, await shares(sleeper, other))) == [2, 2]
        assert changes
        await other.stop(0)

    run_virtual(main)


def test_only_the_holder_of_the_first_segment_sweeps() -> None:
    async def main(clock: LoopClock) -> None:
        world = World(clock=clock)
        nodes = [world.new_scheduler_node() for _ in range(3)]
        for node in nodes:
            await node.start()
        await asyncio.sleep(3)
        world.store.calls.clear()
        await asyncio.sleep(10)
        assert 9 <= world.store.calls["tend_jobs"] <= 11
        sweeper = next(node for node, held in zip(nodes, await shares(*nodes), strict=True) if 0 in held)
        kill(sweeper)
        await asyncio.sleep(5)
        world.store.calls.clear()
        await asyncio.sleep(10)
        assert 9 <= world.store.calls["tend_jobs"] <= 11
        for node in nodes:
            if node is not sweeper:
                await node.stop(0)

    run_virtual(main)


def test_runs_of_a_dead_worker_go_on_at_another() -> None:
    async def main(clock: LoopClock) -> None:
        world = World(clock=clock)
        world.target.act = Gate()
        scheduler, dying, living = (
            world.new_scheduler_node(),
            world.new_worker_node(),
            world.new_worker_node(),
        )
        await scheduler.start()
        await dying.start()
        job = await world.create(once(START_AT))
        await asyncio.sleep(1)
        kill(dying)
        assert dying._worker is not None
        for attempt in dying._worker._in_hand.values():
            attempt.done = True
            assert attempt.task is not None
            attempt.task.cancel()
        gate = Gate()
        gate.opened.set()
        world.target.act = gate
        await living.start()
        await asyncio.sleep(34)
        assert await world.state(job, START_AT) is State.SUCCEEDED
        assert len(world.target.calls) == 2
        await scheduler.stop(0)
        await living.stop(SECOND_US)

    run_virtual(main)


def test_with_hints_an_idle_fleet_asks_little() -> None:
    async def main(clock: LoopClock) -> None:
        world = World(clock=clock)
        world.hints_arrive = True
        await world.create(every(3_600))
        nodes = [world.new_scheduler_node() for _ in range(3)] + [world.new_worker_node() for _ in range(3)]
        for node in nodes:
            await node.start()
        await asyncio.sleep(5)
        world.store.calls.clear()
        await asyncio.sleep(60)
        calls = world.store.calls
        assert calls["hold_segments"] <= 3 * 61
        assert calls["claim"] <= 3 * 13
        assert calls["due_clocks"] <= 3 * 13
        assert calls["renew_node"] <= 3 * 7
        assert calls["cancel_asked"] == calls["settle"] == 0
        swept = sum(calls[verb] for verb in ("stray_runs", "judge_late", "hand_on_slots", "tend_jobs"))
        assert swept <= 4 * 61
        assert sum(calls.values()) <= 60 * 10, calls
        for node in nodes:
            await node.stop(0)

    run_virtual(main)


def test_a_lease_for_both_is_renewed_by_the_worker_alone() -> None:
    """As `up` has it on a file: one node, which holds every segment."""

    async def main(clock: LoopClock) -> None:
        world = World(clock=clock)
        node = world.new_node(joint=True)
        await node.start()
        job = await world.create(every(20))
        await until(clock, START_AT + 101 * SECOND_US)
        assert len(world.target.called(job)) == 5
        assert world.store.calls["hold_segments"] <= 12
        assert world.store.calls["renew_node"] == 0
        assert [(one.kind, one.lease_until > clock.now()) for one in await world.real.nodes()] == [
            ("up", True)
        ]
        await node.stop(SECOND_US)
        assert [one for one in await world.real.nodes() if one.lease_until > clock.now()] == []

    run_virtual(main)


def test_a_drain_that_is_cut_short_ends_at_once() -> None:
    async def main(clock: LoopClock) -> None:
        world = World(clock=clock)
        world.target.act = Gate()
        node = world.new_worker_node()
        job = await world.create(once(START_AT))
        await node.start()
        await asyncio.sleep(1)
        stopping = asyncio.create_task(node.stop(600 * SECOND_US))
        await asyncio.sleep(10)
        assert not stopping.done()
        hurried_at = clock.now()
        node.cut_short()
        await stopping
        assert clock.now() - hurried_at < 2 * SECOND_US
        assert await world.state(job, START_AT) is State.RETRYING

    run_virtual(main)
