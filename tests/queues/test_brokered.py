"""The queue through brokers: whatever a broker does wrong costs a second or two, and nothing else."""

import asyncio

import pytest

from hourhand.core.instant import SECOND_US
from hourhand.core.lanes import BRIEF_LEAD_US
from hourhand.core.model import Delivery, Job, Overlap, Priority
from hourhand.core.offer import Offer
from hourhand.errors import Unavailable
from hourhand.ports.queue import Message
from hourhand.ports.store import ClaimRequest, LeaseLost
from hourhand.queues import brokered as module
from hourhand.queues.brokered import LATE_US, LOOK_US
from tests.queues.memory_broker import Faults, MemoryBroker
from tests.services.virtual import LoopClock, run_virtual, until
from tests.services.world import MS, START_AT, Gate, Hand, World, every, key_of, once, quiet, spec

IN_A_SECOND = START_AT + SECOND_US


class Bench:
    """A worker that reads from a broker, and both in hand."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.broker = MemoryBroker(lambda: world.now)

    async def worker(self, concurrency: int = 10, pools: tuple[str, ...] = ("default",)) -> Hand:
        hand = await self.world.worker(concurrency, pools=pools, feeds=[self.broker.feed(*pools)])
        await hand.claim()  # looks for late ones first
        return hand

    async def offer(self, *jobs: Job, at: int = IN_A_SECOND, **fields: object) -> None:
        for job in jobs:
            fence = fields.get("fence", 0)
            assert isinstance(fence, int)
            self.broker.put(
                Offer(
                    job_id=job.id,
                    scheduled_at=at,
                    due_at=at,
                    fence=fence,
                    run_class=job.spec.priority,
                    pool=job.spec.pool,
                )
            )
        await quiet()


@pytest.fixture
def bench(world: World) -> Bench:
    return Bench(world)


async def close(hand: Hand) -> None:
    await hand.worker._queue.close()


async def jobs_in_a_second(world: World, count: int, **fields: object) -> list[Job]:
    return await world.create_all([spec(once(IN_A_SECOND), **fields)] * count)


async def test_a_message_brings_its_run_ahead_of_time(world: World, bench: Bench) -> None:
    named, other = await jobs_in_a_second(world, 2)
    hand = await bench.worker()
    await bench.offer(named)
    await hand.claim()
    assert hand.in_hand == 1
    await hand.go(IN_A_SECOND)
    assert [(call.key, call.late_us) for call in world.target.calls] == [(key_of(named, IN_A_SECOND), 0)]
    assert (other.id, bench.broker.given) == (other.id, {})
    await close(hand)


async def test_an_arrival_wakes_the_worker(world: World, bench: Bench) -> None:
    [job] = await jobs_in_a_second(world, 1)
    hand = await bench.worker()
    woken = []
    hand.worker.on_room = lambda: woken.append(1)
    await bench.offer(job)
    assert woken
    await close(hand)


async def test_without_a_message_a_run_comes_when_it_is_late(world: World, bench: Bench) -> None:
    [job] = await jobs_in_a_second(world, 1)
    hand = await bench.worker()
    await hand.go(IN_A_SECOND + LATE_US + LOOK_US)
    [call] = world.target.calls
    assert call.key == key_of(job, IN_A_SECOND)
    assert LATE_US <= call.late_us <= LATE_US + LOOK_US
    await close(hand)


async def test_a_broker_that_brings_nothing_is_no_limit_to_what_is_worked_off(
    world: World, bench: Bench
) -> None:
    """However much is late: a worker that has room again looks again, and does not wait for its next look."""
    jobs = await jobs_in_a_second(world, 60)
    hand = await bench.worker(5)
    world.go_to(IN_A_SECOND + LATE_US + LOOK_US)
    await hand.work()
    assert len(world.target.calls) == len(jobs)
    await close(hand)


async def test_messages_are_acknowledged_once_the_claim_is_durable(world: World, bench: Bench) -> None:
    [job] = await jobs_in_a_second(world, 1)
    hand = await bench.worker()
    world.store.fail("claim")
    await bench.offer(job)
    with pytest.raises(Unavailable):
        await hand.claim()
    await quiet()
    assert (bench.broker.acked, len(bench.broker.given)) == ([], 1)
    await hand.claim()
    await quiet()
    assert ([offer.job_id for offer in bench.broker.acked], hand.in_hand) == ([job.id], 1)
    await close(hand)


async def test_an_answer_that_is_lost_doubles_nothing(world: World, bench: Bench) -> None:
    [job] = await jobs_in_a_second(world, 1)
    hand = await bench.worker()
    world.store.lose_answer("claim")
    await bench.offer(job)
    with pytest.raises(Unavailable):
        await hand.claim()
    await hand.beat()  # gives back what it does not know of
    await hand.go(IN_A_SECOND + 3 * SECOND_US)
    assert world.target.keys == [key_of(job, IN_A_SECOND)]
    await close(hand)


async def test_repeated_and_old_messages_are_nobody_s(world: World, bench: Bench) -> None:
    [job] = await jobs_in_a_second(world, 1)
    hand = await bench.worker()
    await bench.offer(job, job, job)
    await hand.go(IN_A_SECOND)
    await bench.offer(job)
    await hand.go(IN_A_SECOND + 5 * SECOND_US)
    assert len(world.target.calls) == 1
    assert (len(bench.broker.acked), bench.broker.given) == (4, {})
    await close(hand)


async def test_two_workers_share_one_broker_without_doubling(world: World, bench: Bench) -> None:
    jobs = await jobs_in_a_second(world, 40)
    one, other = await bench.worker(30), await bench.worker(30)
    await bench.offer(*jobs)
    await bench.offer(*jobs)
    await one.claim()
    await other.claim()
    world.go_to(IN_A_SECOND)
    await one.work()
    await other.work()
    assert sorted(world.target.keys) == sorted(key_of(job, IN_A_SECOND) for job in jobs)
    await close(one)
    await close(other)


async def test_what_cannot_be_taken_yet_is_named_again_at_its_time(world: World, bench: Bench) -> None:
    [job] = await jobs_in_a_second(world, 1, delivery=Delivery.AT_MOST_ONCE)
    hand = await bench.worker()
    await bench.offer(job)
    await hand.claim()
    assert hand.in_hand == 0
    await hand.go(IN_A_SECOND + 100 * MS)
    assert [call.late_us for call in world.target.calls] == [0]
    assert len(bench.broker.acked) == 1
    await close(hand)


async def test_a_job_that_follows_itself_keeps_its_order(world: World, bench: Bench) -> None:
    job = await world.create(every(1), overlap=Overlap.QUEUE)
    await world.plan()
    hand = await bench.worker()
    for n in (3, 2, 1):
        await bench.offer(job, at=START_AT + n * SECOND_US)
    await hand.go(START_AT + 4 * SECOND_US - 1)
    assert world.target.called(job) == [START_AT + n * SECOND_US for n in (1, 2, 3)]
    assert all(call.late_us <= 50 * MS for call in world.target.calls)
    await close(hand)


async def test_high_comes_first_and_the_others_have_their_floor(world: World, bench: Bench) -> None:
    high = await jobs_in_a_second(world, 30, priority=Priority.HIGH)
    medium = await jobs_in_a_second(world, 30)
    low = await jobs_in_a_second(world, 30, priority=Priority.LOW)
    hand = await bench.worker(20)
    await hand.go(IN_A_SECOND - BRIEF_LEAD_US)
    await bench.offer(*low, *medium, *high)
    await hand.claim()
    assert taken_by_class(hand) == [17, 2, 1]
    await close(hand)


async def test_what_is_not_due_yet_goes_by_its_time_and_not_by_its_class(world: World, bench: Bench) -> None:
    """Else runs of the highest class would wait in places that others need before them."""
    later = IN_A_SECOND + 500 * MS
    high = await world.create_all([spec(once(later), priority=Priority.HIGH)] * 30)
    low = await jobs_in_a_second(world, 15, priority=Priority.LOW)
    hand = await bench.worker(20)
    await bench.offer(*low)
    await bench.offer(*high, at=later)
    await hand.claim()
    assert taken_by_class(hand) == [5, 0, 15]
    await close(hand)


def test_those_that_are_due_first_are_first_however_late_their_messages() -> None:
    buffer = module._Buffer()
    for job_id, due_at in enumerate((30, 10, 20, 10)):
        offer = Offer(job_id=job_id, scheduled_at=due_at, due_at=due_at, fence=0, run_class=0)
        buffer.add(Message(offer, None))
    assert (len(buffer), buffer.first_at, buffer.count(20)) == (4, 10, 3)
    assert [message.offer.job_id for message in buffer.take(2, 20)] == [1, 3]
    assert [message.offer.job_id for message in buffer.take(2, 20)] == [2]
    assert buffer.take(2, 29) == []


def taken_by_class(hand: Hand) -> list[int]:
    classes = [attempt.run.spec.priority for attempt in hand.worker._in_hand.values()]
    return [classes.count(priority) for priority in Priority]


async def test_a_full_worker_stops_reading(world: World, bench: Bench) -> None:
    gate = Gate()
    world.target.act = gate
    jobs = await jobs_in_a_second(world, 100)
    hand = await bench.worker(8)
    await bench.offer(*jobs)
    await hand.go(IN_A_SECOND)
    assert hand.in_hand == 8
    read_ahead = 8 // module._PREFETCHED
    assert len(bench.broker.waiting) == 100 - 8 - read_ahead
    world.target.act = lambda run: asyncio.sleep(0, gate.result)
    gate.opened.set()
    await quiet()
    await hand.go(IN_A_SECOND + 500 * MS)
    assert len(world.target.calls) == 100
    await close(hand)


async def test_lost_messages_are_found_however_many_others_come(world: World, bench: Bench) -> None:
    """Under a load that never leaves room, some of it is kept for late runs."""
    [lost] = await jobs_in_a_second(world, 1, priority=Priority.LOW)
    hand = await bench.worker(4)
    at = IN_A_SECOND
    for step in range(100):
        crowd = await world.create_all([spec(once(at + step * 70 * MS), priority=Priority.HIGH)] * 6)
        await bench.offer(*crowd, at=at + step * 70 * MS)
        await hand.go(at + step * 70 * MS)
        if key_of(lost, IN_A_SECOND) in world.target.keys:
            break
    found = [call.late_us for call in world.target.calls if call.key.job_id == lost.id]
    assert found
    assert found[0] <= 2 * SECOND_US
    await close(hand)


async def test_other_pools_messages_are_not_read(world: World, bench: Bench) -> None:
    [job] = await jobs_in_a_second(world, 1, pool="gpu")
    hand, other = await bench.worker(), await bench.worker(pools=("gpu",))
    await bench.offer(job)
    await hand.claim()
    await other.claim()
    assert (hand.in_hand, other.in_hand) == (0, 1)
    await close(hand)
    await close(other)


async def test_messages_and_late_runs_have_their_turns(world: World, bench: Bench) -> None:
    """However many of either there are, and one claim of the store at a time."""
    late = await jobs_in_a_second(world, 40)
    hand = await bench.worker(5)
    world.go_to(IN_A_SECOND + 5 * SECOND_US)
    fresh = await world.create_all([spec(once(world.now), priority=Priority.HIGH)] * 40)
    await bench.offer(*fresh, at=world.now)
    claims = world.store.calls["claim"]
    for step in range(8):
        await hand.worker.step(world.now)
        assert world.store.calls["claim"] <= claims + step + 1
        await quiet()
        await hand.settle()
    ids = [key.job_id for key in world.target.keys]
    assert sum(job.id in ids for job in late) >= 3
    assert sum(job.id in ids for job in fresh) >= 12
    await close(hand)


@pytest.mark.parametrize("before", [0, 1])
async def test_a_tenant_s_flood_keeps_no_other_s_late_runs_waiting(
    world: World, bench: Bench, before: int
) -> None:
    """One place comes free at a time, and claims by message and of late runs take turns: so do the tenants."""
    await world.create_all([spec(once(START_AT))] * before, tenant="flooding")
    flood = await world.create_all([spec(once(IN_A_SECOND))] * 60, tenant="flooding")
    few = await world.create_all([spec(once(IN_A_SECOND))] * 10, tenant="other")
    hand = await bench.worker(1)
    world.go_to(IN_A_SECOND + 5 * SECOND_US)
    await bench.offer(
        *reversed(flood)
    )  # the others first, so that no message is of a run that was taken as late
    for _ in range(40 + before):
        await hand.worker.step(world.now)
        await quiet()
        await hand.settle()
    ids = [key.job_id for key in world.target.keys]
    assert sum(job.id in ids for job in few) >= 8
    await close(hand)


async def test_a_lost_lease_is_told(world: World, bench: Bench) -> None:
    [job] = await jobs_in_a_second(world, 1)
    hand = await bench.worker()
    await world.real.end_node(hand.worker._node_id)
    await bench.offer(job)
    request = ClaimRequest(node_id=hand.worker._node_id, pools=("default",), room=5, lead_us=2 * SECOND_US)
    with pytest.raises(LeaseLost):
        await hand.worker._queue.take(request)
    await hand.claim()  # under a new id
    assert hand.in_hand == 1
    await close(hand)


def test_a_broker_that_is_away_is_asked_again() -> None:
    async def main(clock: LoopClock) -> None:
        world = World(clock=clock)
        bench = Bench(world)
        bench.broker.away = True
        [job] = await world.create_all([spec(once(START_AT + 20 * SECOND_US))])
        hand = await bench.worker()
        await until(clock, START_AT + 17 * SECOND_US)
        bench.broker.away = False
        await bench.offer(job, at=START_AT + 20 * SECOND_US)
        await until(clock, START_AT + 18 * SECOND_US + 100 * MS)
        await hand.claim()
        assert hand.in_hand == 1
        await close(hand)

    run_virtual(main)


async def test_a_drain_lets_go_of_the_broker_first(world: World, bench: Bench) -> None:
    hand = await bench.worker()
    [job] = await jobs_in_a_second(world, 1)
    feed = hand.worker._queue._listeners[0]._feed  # type: ignore[attr-defined]
    await hand.worker.drain(0)
    assert feed.closed
    await bench.offer(job)
    assert len(bench.broker.waiting) == 1


@pytest.mark.parametrize("seed", range(6))
def test_whatever_the_broker_does_every_run_happens_once_and_soon(seed: int) -> None:
    """Whole processes on a virtual clock, and a broker that loses, repeats, reorders, delays and forgets."""

    async def main(clock: LoopClock) -> None:
        world = World(clock=clock)
        world.hints_arrive = True
        faults = Faults(lose=0.2, repeat=0.3, delay=0.2, reorder=True)
        broker = MemoryBroker(clock.now, seed=seed, faults=faults)
        jobs = [await world.create(every(1), concurrency=None) for _ in range(5)]
        nodes = [world.new_scheduler_node(broker.offers()) for _ in range(2)]
        nodes += [world.new_worker_node(10, feeds=[broker.feed()]) for _ in range(2)]
        for node in nodes:
            await node.start()
        await until(clock, START_AT + 10 * SECOND_US)
        broker.empty()
        await until(clock, START_AT + 15 * SECOND_US)
        broker.redeliver()
        broker.away = True
        await until(clock, START_AT + 22 * SECOND_US)
        broker.away = False
        await until(clock, START_AT + 40 * SECOND_US)
        for node in reversed(nodes):
            await node.stop(SECOND_US)
        made = sorted(world.target.keys)
        assert made == sorted(set(made)), "something ran twice"
        expected = {
            key_of(job, START_AT + n * SECOND_US) for job in jobs for n in range(1, 38)
        }  # what is due within the last two seconds may be late
        assert expected <= set(made)
        worst = max(call.late_us for call in world.target.calls if call.key in expected)
        assert worst <= 2 * SECOND_US, worst
        in_time = [call for call in world.target.calls if call.late_us <= 50 * MS]
        assert len(in_time) > len(made) / 3

    run_virtual(main)


def test_with_a_sound_broker_all_is_on_time() -> None:
    async def main(clock: LoopClock) -> None:
        world = World(clock=clock)
        world.hints_arrive = True
        broker = MemoryBroker(clock.now)
        for _ in range(10):
            await world.create(every(1))
        rare = await world.create(every(86_400))
        nodes = [world.new_scheduler_node(broker.offers()), world.new_worker_node(20, feeds=[broker.feed()])]
        for node in nodes:
            await node.start()
        await until(clock, START_AT + 30 * SECOND_US)
        made = await world.jobs.run_now(rare.tenant, rare.id)
        asked_at = clock.now()
        await until(clock, START_AT + 31 * SECOND_US - 1)
        for node in reversed(nodes):
            await node.stop(SECOND_US)
        scheduled = [call for call in world.target.calls if call.key.scheduled_at % SECOND_US == 0]
        assert len(scheduled) == 10 * 30
        assert max(call.late_us for call in scheduled if call.at > START_AT + 3 * SECOND_US) <= 1 * MS
        assert made is not None
        [manual] = [call for call in world.target.calls if call.key.scheduled_at % SECOND_US]
        assert manual.at - asked_at <= 100 * MS

    run_virtual(main)
