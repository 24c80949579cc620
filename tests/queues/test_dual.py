"""Two brokers: each job's offers go the way it chose, and one that is away or hangs holds up nobody else."""

import asyncio
from collections.abc import Sequence

import pytest

from hourhand.core.instant import SECOND_US
from hourhand.core.model import Durability
from hourhand.core.offer import Offer
from hourhand.queues import dual as module
from hourhand.queues.dual import DualOffers, Route
from hourhand.telemetry import Telemetry
from tests.queues.memory_broker import MemoryBroker, MemoryOffers
from tests.services.virtual import LoopClock, run_virtual, until
from tests.services.world import MS, START_AT, World, every, key_of, quiet


def offer(job_id: int, durability: Durability = Durability.CRITICAL) -> Offer:
    return Offer(
        job_id=job_id, scheduled_at=START_AT, due_at=START_AT, fence=0, run_class=1, durability=durability
    )


class Both:
    """Two brokers behind one front."""

    def __init__(self, route: Route = Route.DURABILITY) -> None:
        self.lasting, self.fast = (MemoryBroker(lambda: START_AT) for _ in range(2))
        self.sides = (self.lasting.offers(), self.fast.offers())
        self.telemetry = Telemetry()
        self.offers = DualOffers(
            lasting=self.sides[0], fast=self.sides[1], route=route, telemetry=self.telemetry
        )

    def got(self) -> tuple[list[int], list[int]]:
        first, second = ([one.job_id for _, one in broker.offered] for broker in (self.lasting, self.fast))
        return first, second


@pytest.mark.parametrize(
    ("route", "expected"),
    [
        (Route.DURABILITY, ([1, 3], [2])),
        (Route.URL, ([1, 2, 3], [])),
        (Route.FAST_URL, ([], [1, 2, 3])),
    ],
)
async def test_offers_go_the_way_they_should(route: Route, expected: tuple[list[int], list[int]]) -> None:
    both = Both(route)
    await both.offers.offer([offer(1), offer(2, Durability.FIRE_AND_FORGET), offer(3)])
    await quiet()
    assert both.got() == expected
    await both.offers.close()
    assert all(side.closed for side in both.sides)


async def test_one_that_is_away_holds_up_only_its_own() -> None:
    both = Both()
    both.lasting.away = True
    await both.offers.offer([offer(1), offer(2, Durability.FIRE_AND_FORGET)])
    await quiet()
    assert both.got() == ([], [2])
    await both.offers.close()


async def test_one_that_hangs_holds_up_only_its_own() -> None:
    both = Both()

    async def hang(offers: Sequence[Offer]) -> None:
        await asyncio.Event().wait()

    both.sides[0].offer = hang  # type: ignore[method-assign]
    for n in range(3):
        await both.offers.offer([offer(n), offer(10 + n, Durability.FIRE_AND_FORGET)])
        await quiet()
    assert both.got() == ([], [10, 11, 12])
    await both.offers.close()


async def test_no_more_wait_than_there_may(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_WAITING", 5)
    both = Both()
    await both.offers.offer([offer(n) for n in range(20)])
    await quiet()
    assert both.got() == (list(range(15, 20)), [])
    await both.offers.close()


def test_whole_messages_are_wanted_if_one_side_wants_them() -> None:
    broker = MemoryBroker(lambda: 0)
    for first, second in ((True, False), (False, True), (False, False)):
        offers = DualOffers(
            lasting=MemoryOffers(broker, first), fast=MemoryOffers(broker, second), telemetry=Telemetry()
        )
        assert offers.wants_jobs is (first or second)


def test_while_one_broker_is_away_its_jobs_come_from_the_store_and_return_to_it() -> None:
    async def main(clock: LoopClock) -> None:
        world = World(clock=clock)
        world.hints_arrive = True
        lasting, fast = MemoryBroker(clock.now), MemoryBroker(clock.now)
        offers = DualOffers(lasting=lasting.offers(), fast=fast.offers(), telemetry=world.telemetry)
        kept = await world.create(every(1))
        light = await world.create(every(1), durability=Durability.FIRE_AND_FORGET)
        scheduler = world.new_scheduler_node(offers)
        scheduler._dispatcher._routed = True  # type: ignore[union-attr]
        nodes = [scheduler, world.new_worker_node(10, feeds=[lasting.feed(), fast.feed()])]
        for node in nodes:
            await node.start()
        await until(clock, START_AT + 10 * SECOND_US + 500 * MS)
        fast.away = True
        await until(clock, START_AT + 20 * SECOND_US + 500 * MS)
        fast.away = False
        await until(clock, START_AT + 40 * SECOND_US + 500 * MS)
        for node in reversed(nodes):
            await node.stop(SECOND_US)
        late = {call.key: call.late_us for call in world.target.calls}
        times = [START_AT + n * SECOND_US for n in range(3, 39)]
        assert max(late[key_of(kept, at)] for at in times) <= 1 * MS
        assert max(late[key_of(light, at)] for at in times) <= 2 * SECOND_US
        missed = [at for at in times if late[key_of(light, at)] > 1 * MS]
        assert missed  # while it was away
        assert min(missed) > START_AT + 11 * SECOND_US
        assert max(missed) < START_AT + 26 * SECOND_US
        assert len(late) == len(world.target.calls)
        assert {one.job_id for _, one in fast.offered} == {light.id}
        assert {one.job_id for _, one in lasting.offered} == {kept.id}

    run_virtual(main)
