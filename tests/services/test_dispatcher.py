"""The dispatcher: every run is offered once, a lead before its time, and whatever comes in between."""

import pytest

from hourhand.core.agenda import SLOT_US
from hourhand.core.identity import RunKey, segment_of
from hourhand.core.instant import SECOND_US
from hourhand.core.model import JobSpec, Priority, Retry
from hourhand.core.offer import Offer
from hourhand.errors import Unavailable
from hourhand.services import dispatcher as module
from hourhand.services.dispatcher import AHEAD_US, LATE_US, LOOK_US, Dispatcher
from tests.queues.memory_broker import MemoryBroker
from tests.services.world import FAILED, LEAD_US, SEGMENTS, START_AT, World, every, key_of, once, spec


class Offering:
    """A dispatcher that is moved by hand, and the broker it speaks to."""

    def __init__(self, world: World, *, alone: bool = True, **options: bool) -> None:
        self.world = world
        self.broker = MemoryBroker(lambda: world.now)
        self.leases = world.planner._leases if alone else world.scheduler_leases("dispatcher")
        self.dispatcher: Dispatcher = world.new_dispatcher(self.broker.offers(**options), self.leases)

    @property
    def offered(self) -> list[tuple[int, Offer]]:
        return self.broker.offered

    @property
    def keys(self) -> list[RunKey]:
        return [offer.key for _, offer in self.offered]

    async def load(self) -> int | None:
        for _ in range(1_000):
            next_at = await self.dispatcher.step(self.world.now)
            if next_at is None or next_at > self.world.now:
                return next_at
        raise AssertionError("it does not come to rest")

    async def offer(self) -> int | None:
        for _ in range(1_000):
            next_at = await self.dispatcher.offer_step(self.world.now)
            if next_at is None or next_at > self.world.now:
                return next_at
        raise AssertionError("it does not come to rest")

    async def go(self, until_at: int) -> None:
        """Work until an instant, stopping wherever something is to be read or offered."""
        while True:
            read_at = await self.load()
            moments = [read_at, await self.offer(), until_at]
            next_at = min(at for at in moments if at is not None)
            if self.world.now >= until_at:
                return
            self.world.go_to(min(next_at, until_at))


def spec_at(after_us: int) -> JobSpec:
    return spec(once(START_AT + after_us))


@pytest.fixture
def offering(world: World) -> Offering:
    return Offering(world)


async def test_each_run_is_offered_once_a_lead_before_its_time(world: World, offering: Offering) -> None:
    job = await world.create(every(1))
    await world.plan()
    await offering.go(START_AT + 20 * SECOND_US)
    due = [START_AT + n * SECOND_US for n in range(1, 23)]
    assert offering.keys == [key_of(job, at) for at in due]
    errors = [at - (offer.due_at - LEAD_US) for at, offer in offering.offered if offer.due_at > due[1]]
    assert all(0 <= error < SLOT_US for error in errors), errors


async def test_an_offer_says_what_a_worker_needs(world: World, offering: Offering) -> None:
    job = await world.create(once(START_AT + 5 * SECOND_US), priority=Priority.HIGH, pool="gpu")
    await offering.go(START_AT + 4 * SECOND_US)
    [(_, offer)] = offering.offered
    assert offer == Offer(
        job_id=job.id,
        scheduled_at=START_AT + 5 * SECOND_US,
        due_at=START_AT + 5 * SECOND_US,
        fence=0,
        run_class=Priority.HIGH,
        pool="gpu",
    )


async def test_what_is_far_ahead_is_not_read_yet(world: World, offering: Offering) -> None:
    await world.create_all([spec_at(AHEAD_US + LEAD_US), spec_at(AHEAD_US + LEAD_US + SECOND_US)])
    await offering.load()
    assert offering.dispatcher.timers == 1


async def test_it_sleeps_while_there_is_nothing(world: World, offering: Offering) -> None:
    assert await offering.load() == START_AT + LOOK_US
    assert await offering.offer() is None


async def test_a_run_asked_for_is_offered_at_the_next_look(world: World, offering: Offering) -> None:
    job = await world.create(every(3600))
    await offering.go(START_AT + SECOND_US)
    made = await world.real.add_run(job.tenant, job.id, None)
    assert made is not None
    world.pass_time(0.05)
    offering.dispatcher.hinted()
    await offering.load()
    await offering.offer()
    assert [key.scheduled_at for key in offering.keys] == [made.scheduled_at]


async def test_without_a_hint_it_looks_again_twice_a_second(world: World, offering: Offering) -> None:
    job = await world.create(every(3600))
    await offering.load()
    await world.real.add_run(job.tenant, job.id, None)
    await offering.load()
    assert offering.dispatcher.timers == 0  # however often it is asked in between
    world.go_to(START_AT + LOOK_US)
    await offering.load()
    assert offering.dispatcher.timers == 1


async def test_a_retry_is_offered_for_its_new_time(world: World, offering: Offering) -> None:
    job = await world.create(once(START_AT + 3 * SECOND_US), retry=Retry(first_us=4 * SECOND_US))
    await offering.go(START_AT + 1 * SECOND_US)
    hand = await world.worker()
    world.target.answers.append(FAILED)
    await hand.go(START_AT + 3 * SECOND_US)
    await offering.go(START_AT + 10 * SECOND_US)
    assert offering.keys == [key_of(job, START_AT + 3 * SECOND_US)] * 2
    first, second = (offer for _, offer in offering.offered)
    assert (first.fence, second.fence) == (0, 1)
    assert second.due_at > first.due_at


async def test_only_its_own_segments(world: World) -> None:
    one, other = Offering(world, alone=False), Offering(world, alone=False)
    await one.leases.join()
    await other.leases.join()
    for _ in range(3):  # until they share the segments
        await one.leases.renew()
        await other.leases.renew()
    jobs = [await world.create(once(START_AT + 3 * SECOND_US)) for _ in range(20)]
    await one.load()
    await other.load()
    world.go_to(START_AT + SECOND_US)
    await one.offer()
    await other.offer()
    segments = [{segment_of(key.job_id, SEGMENTS) for key in half.keys} for half in (one, other)]
    assert all(segments)
    assert not segments[0] & segments[1]
    assert sorted(one.keys + other.keys) == sorted(key_of(job, START_AT + 3 * SECOND_US) for job in jobs)


async def test_segments_taken_over_are_read_from_the_start(world: World) -> None:
    """Those of an owner that died: what it would have offered now is offered by who comes after it."""
    heir = Offering(world, alone=False)
    dead = world.scheduler_leases("dead")
    await dead.join()
    await heir.leases.join()
    for _ in range(3):
        await heir.leases.renew()
        await dead.renew()
    assert len(await heir.leases.segments()) < SEGMENTS
    jobs = [await world.create(once(START_AT + 4 * SECOND_US)) for _ in range(12)]
    await world.create_all([spec_at(13 * SECOND_US // 2)] * 12)
    await heir.go(START_AT + 2 * SECOND_US)
    assert 0 < len(heir.keys) < 12
    assert 0 < heir.dispatcher.timers < 12
    await heir.leases.renew()
    world.go_to(START_AT + 3 * SECOND_US)
    await heir.leases.renew()
    assert len(await heir.leases.segments()) == SEGMENTS
    await heir.load()
    await heir.offer()
    assert sorted(heir.keys) == sorted(key_of(job, START_AT + 4 * SECOND_US) for job in jobs)
    assert heir.dispatcher.timers == 12, "and what is to come is known in good time"


async def test_without_segments_nothing_is_read(world: World, offering: Offering) -> None:
    await world.create(every(1))
    await world.plan()

    async def none() -> dict[int, int]:
        return {}

    offering.leases.segments = none  # type: ignore[method-assign]
    assert await offering.load() is None
    assert world.store.calls["upcoming"] == 0


async def test_a_broker_that_is_away_costs_what_falls_due_meanwhile(world: World, offering: Offering) -> None:
    job = await world.create(every(1))
    await world.plan()
    await offering.go(START_AT + 4 * SECOND_US)
    offering.broker.away = True
    await offering.go(START_AT + 14 * SECOND_US)
    offering.broker.away = False
    await offering.go(START_AT + 20 * SECOND_US)
    offered = {key.scheduled_at for key in offering.keys}
    every_time = {START_AT + n * SECOND_US for n in range(1, 23)}
    missing = every_time - offered
    assert missing == {at for at in every_time if START_AT + 6 * SECOND_US < at <= START_AT + 13 * SECOND_US}
    assert len(offering.keys) == len(offered)
    assert offering.dispatcher.timers < 10
    assert key_of(job, START_AT + 16 * SECOND_US) in offering.keys


async def test_a_short_refusal_costs_nothing(world: World, offering: Offering) -> None:
    await world.create_all([spec_at(3 * SECOND_US)] * 5)
    await offering.load()
    world.go_to(START_AT + SECOND_US)
    offering.broker.away = True
    assert await offering.offer() == world.now + module._FIRST_PAUSE_US
    offering.broker.away = False
    await offering.go(START_AT + 2 * SECOND_US)
    assert len(offering.keys) == 5


async def test_what_workers_look_for_in_the_store_is_not_offered(world: World, offering: Offering) -> None:
    await world.create_all([spec_at(SECOND_US)])
    await offering.load()
    world.go_to(START_AT + SECOND_US + LATE_US)
    await offering.offer()
    assert offering.keys == []


async def test_offers_go_on_while_the_store_is_away(world: World, offering: Offering) -> None:
    await world.create_all([spec_at(3 * SECOND_US)])
    await offering.load()
    world.store.away = True
    world.go_to(START_AT + SECOND_US)
    with pytest.raises(Unavailable):
        await offering.load()
    await offering.offer()
    assert len(offering.keys) == 1


async def test_a_page_that_fails_is_read_again(world: World, offering: Offering) -> None:
    jobs = await world.create_all([spec_at(3 * SECOND_US)] * 50)
    world.store.fail("upcoming")
    with pytest.raises(Unavailable):
        await offering.load()
    await offering.go(START_AT + SECOND_US)
    assert sorted(offering.keys) == sorted(key_of(job, START_AT + 3 * SECOND_US) for job in jobs)


async def test_many_pages_are_read_and_offered_in_batches(
    world: World, offering: Offering, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_PAGE", 30)
    monkeypatch.setattr(module, "_BATCH", 7)
    jobs = await world.create_all([spec_at(3 * SECOND_US)] * 200)
    await offering.go(START_AT + SECOND_US)
    assert sorted(offering.keys) == sorted(key_of(job, START_AT + 3 * SECOND_US) for job in jobs)


async def test_no_more_timers_than_there_may_be(
    world: World, offering: Offering, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_PAGE", 30)
    monkeypatch.setattr(module, "MOST_TIMERS", 50)
    await world.create_all([spec_at(6 * SECOND_US)] * 200)
    assert (await offering.load()) == START_AT + LOOK_US
    assert offering.dispatcher.timers <= 50 + 30
    await offering.go(START_AT + 6 * SECOND_US)
    assert len(offering.keys) == len(set(offering.keys)) == 200


async def test_a_clock_that_is_set_back_does_not_silence_it(world: World, offering: Offering) -> None:
    job = await world.create(every(1))
    world.pass_time(3600)
    await world.plan()
    await offering.go(world.now + 3 * SECOND_US)
    world.go_to(START_AT)
    late = await world.create(once(START_AT + 3 * SECOND_US))
    await offering.go(START_AT + 2 * SECOND_US)
    assert key_of(late, START_AT + 3 * SECOND_US) in offering.keys
    assert job.id in {key.job_id for key in offering.keys}


async def test_whole_messages_carry_the_job_as_it_is(world: World) -> None:
    offering = Offering(world, wants_jobs=True)
    job = await world.create(once(START_AT + 3 * SECOND_US))
    gone = await world.create(once(START_AT + 3 * SECOND_US))
    await offering.load()
    await world.real.delete_job(gone.tenant, gone.id, False)
    world.go_to(START_AT + SECOND_US)
    await offering.offer()
    [(_, offer)] = offering.offered
    assert (offer.key.job_id, offer.job) == (job.id, await world.real.get_job(job.tenant, job.id))


async def test_background_runs_are_not_offered(world: World, offering: Offering) -> None:
    await world.create(every(1))
    await world.plan()
    await world.real._engine.write(_to_background)
    await offering.go(START_AT + 2 * SECOND_US)
    assert offering.keys == []


async def _to_background(tx) -> None:
    tx._connection.execute("UPDATE planned SET lane = lane / 128 * 128 + 96 + lane % 32")
