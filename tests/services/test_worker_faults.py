"""The worker on bad days: the store away, answers lost, leases lost, and the way out."""

import asyncio

import pytest

from hourhand.clock import ManualClock
from hourhand.core.instant import SECOND_US
from hourhand.core.lifecycle import State
from hourhand.core.model import Delivery, Retry
from hourhand.errors import Unavailable
from hourhand.leases.native import LEASE_US
from hourhand.services.sweeper import SLACK_US
from hourhand.services.worker import HEARTBEAT_US
from tests.services.world import FAILED, MS, START_AT, Gate, World, every, key_of, once, quiet, spec, succeed

# --- the store away


async def test_outcomes_are_kept_while_the_store_is_away_and_none_is_lost_or_doubled(world: World) -> None:
    jobs = await world.create_all([spec(once(START_AT)) for _ in range(6)])
    hand = await world.worker(concurrency=6)
    await hand.claim()
    world.store.away = True
    for _ in range(5):
        with pytest.raises(Unavailable):
            await hand.settle()
        assert hand.in_hand == 6
    assert await hand.worker.step(world.now) is None, "it takes no more than it can commit"
    world.store.away = False
    await hand.work()
    assert hand.in_hand == 0
    assert [await world.state(job, START_AT) for job in jobs] == [State.SUCCEEDED] * 6
    assert len(world.target.calls) == len(hand.settled) == 6


async def test_an_outcome_whose_answer_was_lost_is_sent_again_and_counted_once(world: World) -> None:
    job = await world.create(once(START_AT))
    hand = await world.worker()
    await hand.claim()
    world.store.lose_answer("settle")
    with pytest.raises(Unavailable):
        await hand.settle()
    assert await world.state(job, START_AT) is State.SUCCEEDED
    await hand.settle()
    assert hand.in_hand == 0
    assert len((await world.view(job, START_AT)).attempts) == 1


async def test_a_retry_whose_answer_was_lost_is_not_written_again_over_the_next_attempt(world: World) -> None:
    world.target.answers.append(FAILED)
    job = await world.create(once(START_AT), retry=Retry(first_us=0))
    hand = await world.worker()
    await hand.claim()
    world.store.lose_answer("settle")
    with pytest.raises(Unavailable):
        await hand.settle()
    await hand.claim()  # the next attempt begins before the first one's outcome is sent again
    await hand.work()
    view = await world.view(job, START_AT)
    assert view.state is State.SUCCEEDED
    assert world.target.fences == [1, 2]
    assert [row.state for row in view.attempts] == [State.RETRYING, State.SUCCEEDED]


async def test_what_ends_while_a_batch_is_on_its_way_is_not_forgotten(world: World) -> None:
    jobs = await world.create_all([spec(once(START_AT)), spec(once(START_AT + SECOND_US))])
    hand = await world.worker()
    await hand.claim()
    answer = world.store.hold_answer("settle")
    settling = asyncio.create_task(hand.worker.settle_step(world.now))
    await quiet()
    world.pass_time(1)
    await hand.tick()
    answer.set()
    await settling
    await hand.settle()
    assert [await world.state(job, at) for job, at in zip(jobs, (START_AT, world.now), strict=True)] == [
        State.SUCCEEDED
    ] * 2
    assert hand.in_hand == 0


async def test_two_that_settle_at_the_same_time_send_nothing_twice(world: World) -> None:
    await world.create_all([spec(once(START_AT)) for _ in range(3)])
    await world.create(once(START_AT + SECOND_US))
    hand = await world.worker()
    await hand.claim()
    answer = world.store.hold_answer("settle")
    first = asyncio.create_task(hand.worker.settle_step(world.now))
    await quiet()
    second = asyncio.create_task(hand.worker.settle_step(world.now))
    await quiet()
    world.pass_time(1)
    await hand.tick()
    answer.set()
    await asyncio.gather(first, second)
    await hand.settle()
    assert len(hand.settled) == 4
    assert hand.in_hand == 0


async def test_a_slot_that_is_claimed_again_before_its_outcome_was_answered_stays_in_hand(
    world: World,
) -> None:
    """The next run of a job takes the same slot under the same fence; the two must not be confused."""
    job = await world.create(every(1))
    await world.plan()
    hand = await world.worker()
    world.pass_time(1)
    await hand.claim()
    answer = world.store.hold_answer("settle")
    settling = asyncio.create_task(hand.worker.settle_step(world.now))
    await quiet()
    world.target.act = gate = Gate()
    world.pass_time(1)
    await hand.claim()
    assert world.target.called(job) == [START_AT + SECOND_US, START_AT + 2 * SECOND_US]
    answer.set()
    await settling
    assert hand.in_hand == 1
    await hand.beat()  # and is not given back as a stranger
    gate.opened.set()
    await quiet()
    await hand.settle()
    assert await world.state(job, START_AT + 2 * SECOND_US) is State.SUCCEEDED


async def test_one_outcome_that_cannot_be_committed_does_not_hold_up_the_others(world: World) -> None:
    jobs = await world.create_all([spec(once(START_AT)) for _ in range(9)])
    poisoned = jobs[4].id
    hand = await world.worker()
    await hand.claim()
    real = world.real.settle

    async def settle(worker: str, settlements: list[object]) -> object:
        if any(one.job_id == poisoned for one in settlements):  # type: ignore[attr-defined]
            raise Unavailable("constraint failed")
        return await real(worker, settlements)  # type: ignore[arg-type]

    world.store.settle = settle
    for _ in range(30):
        try:
            await hand.settle()
        except Unavailable:
            continue
    states = [await world.state(job, START_AT) for job in jobs if job.id != poisoned]
    assert states == [State.SUCCEEDED] * 8
    assert hand.in_hand == 1
    world.store.settle = real
    await hand.settle()
    assert await world.state(jobs[4], START_AT) is State.SUCCEEDED


async def test_a_watcher_that_fails_does_not_disturb_the_work(world: World) -> None:
    jobs = await world.create_all([spec(once(START_AT)) for _ in range(3)])
    hand = await world.worker(concurrency=1)
    rooms: list[int] = []
    hand.worker.on_room = lambda: rooms.append(hand.in_hand)

    def broken(batch: object) -> None:
        raise BrokenPipeError

    hand.worker._settled = broken
    for _ in jobs:
        await hand.claim()
        await hand.settle()
    assert [await world.state(job, START_AT) for job in jobs] == [State.SUCCEEDED] * 3
    assert rooms == [0, 0, 0]


# --- claims


async def test_a_claim_whose_answer_was_lost_is_given_back_at_the_heartbeat(world: World) -> None:
    job = await world.create(once(START_AT))
    hand = await world.worker()
    world.store.lose_answer("claim")
    with pytest.raises(Unavailable):
        await hand.claim()
    assert hand.in_hand == 0
    assert await world.state(job, START_AT) is State.RUNNING
    await hand.work()
    assert world.target.calls == [], "the store thinks that somebody has it"
    await hand.beat()
    await hand.work()
    assert len(world.target.calls) == 1
    view = await world.view(job, START_AT)
    assert (view.state, view.tries, view.fence) == (State.SUCCEEDED, 0, 2)


async def test_a_claim_that_is_still_under_way_is_not_given_back(world: World) -> None:
    job = await world.create(once(START_AT))
    world.target.act = Gate()
    hand = await world.worker()
    answer = world.store.hold_answer("claim")
    claiming = asyncio.create_task(hand.worker.step(world.now))
    await quiet()
    beating = asyncio.create_task(hand.worker.heartbeat(world.now))
    await quiet()
    assert await world.state(job, START_AT) is State.RUNNING
    answer.set()
    await claiming
    await beating
    assert hand.in_hand == 1
    assert (await world.view(job, START_AT)).fence == 1
    assert world.store.calls["settle"] == 0


async def test_a_failed_claim_takes_nothing(world: World) -> None:
    await world.create(once(START_AT))
    hand = await world.worker()
    world.store.fail("claim")
    with pytest.raises(Unavailable):
        await hand.claim()
    await hand.work()
    assert world.target.fences == [1]


async def test_a_worker_whose_clock_is_ahead_does_not_ask_again_and_again(world: World) -> None:
    """The store's clock was set back by less than a second, which a node makes up for by waiting."""
    await world.create(once(START_AT + 100 * MS), delivery=Delivery.AT_MOST_ONCE)
    hand = await world.worker()
    hand.worker._clock = ManualClock(START_AT + 300 * MS)
    assert await hand.worker.step(START_AT + 300 * MS) == START_AT + 400 * MS


# --- leases


async def test_a_heartbeat_keeps_the_lease(world: World) -> None:
    hand = await world.worker()
    for _ in range(10):
        assert await hand.beat() == world.now + HEARTBEAT_US
        world.go_to(world.now + HEARTBEAT_US)
    await world.create(once(world.now))
    await hand.work()
    assert len(world.target.calls) == 1
    assert HEARTBEAT_US * 2 < LEASE_US


@pytest.mark.parametrize("noticed_by", ["claim", "heartbeat"])
async def test_a_lost_lease_stops_the_attempts_and_begins_again_under_a_new_id(
    world: World, noticed_by: str
) -> None:
    world.target.act = Gate()
    job = await world.create(once(START_AT))
    waiting = await world.create(once(START_AT + SECOND_US))
    hand = await world.worker()
    await hand.claim()
    assert hand.in_hand == 2
    old_id = hand.worker._node_id
    world.go_to(START_AT + LEASE_US)
    if noticed_by == "claim":
        assert await hand.worker.step(world.now) == world.now
    else:
        assert await hand.beat() == world.now
    await quiet()
    assert hand.worker._node_id != old_id
    assert hand.in_hand == 0
    assert world.target.cancelled == [key_of(job, START_AT)]
    # The store still has both under the old node; the sweeper gives them to whoever is alive.
    await hand.work()
    assert len(world.target.calls) == 1
    world.target.act = succeed
    await world.sweep()
    await hand.work()
    assert await world.state(job, START_AT) is State.SUCCEEDED
    assert await world.state(waiting, START_AT + SECOND_US) is State.SUCCEEDED
    assert (await world.view(job, START_AT)).tries == 1


async def test_a_worker_that_stood_still_beyond_its_lease_starts_nothing_of_what_it_holds(
    world: World,
) -> None:
    """It may not have noticed yet; its runs go on elsewhere, so that it would only call a second time."""
    due_at = START_AT + SECOND_US
    job = await world.create(once(due_at))
    hand = await world.worker()
    await hand.claim()
    world.go_to(START_AT + LEASE_US)
    await hand.tick()
    assert world.target.calls == []
    await hand.beat()  # notices, and begins again
    await world.sweep()
    await hand.work()
    assert await world.state(job, due_at) is State.SUCCEEDED
    assert len(world.target.calls) == 1


async def test_a_lease_that_is_renewed_while_the_clock_is_set_back_is_not_counted_on_for_longer(
    world: World,
) -> None:
    """What was asked for at nine by a clock that says half past eight now was granted at half past eight."""
    due_at = START_AT + SECOND_US
    await world.create(once(due_at))
    hand = await world.worker()
    await hand.claim()
    set_back_at = START_AT - 20 * SECOND_US

    def set_back(verb: str) -> None:
        if verb == "renew_node":
            world.go_to(set_back_at)

    world.store.chance = set_back
    await hand.beat()
    world.store.chance = lambda verb: None
    world.go_to(set_back_at + LEASE_US)
    await hand.tick()
    assert world.target.calls == []


@pytest.mark.parametrize("swept", [False, True])
async def test_a_worker_that_stood_still_beyond_a_deadline_does_not_begin_what_may_go_on_elsewhere(
    world: World, swept: bool
) -> None:
    """Its lease still runs. What nobody took from it meanwhile it gives back, at no cost."""
    due_at = START_AT + SECOND_US
    job = await world.create(once(due_at), timeout_us=2 * SECOND_US, retry=Retry(first_us=0))
    hand = await world.worker()
    await hand.claim()
    world.go_to(due_at + 2 * SECOND_US + (SLACK_US + 1 if swept else SLACK_US // 2))
    assert world.now < START_AT + LEASE_US
    if swept:
        await world.sweep()
    await hand.tick()
    assert world.target.calls == []
    await hand.settle()
    assert hand.in_hand == 0
    await hand.work()
    assert world.target.fences == [2]
    view = await world.view(job, due_at)
    assert (view.state, view.tries) == (State.SUCCEEDED, int(swept))


async def test_outcomes_of_a_worker_that_lost_its_lease_are_refused_once_the_run_went_on(
    world: World,
) -> None:
    """SIGSTOP longer than the lease, then SIGCONT."""
    world.target.act = gate = Gate()
    job = await world.create(once(START_AT))
    slow = await world.worker()
    await slow.claim()
    world.go_to(START_AT + LEASE_US)
    await world.sweep()
    other = await world.worker()
    await other.claim()
    assert world.target.fences == [1, 2]
    gate.opened.set()
    await quiet()
    await slow.settle()  # it has not noticed yet
    assert slow.in_hand == 0
    assert slow.settled == []
    assert await world.state(job, START_AT) is State.RUNNING
    await other.settle()
    view = await world.view(job, START_AT)
    assert view.state is State.SUCCEEDED
    assert [row.attempt for row in view.attempts] == [1, 2]
    assert view.attempts[0].state is State.RETRYING  # as the sweeper decided


async def test_an_outcome_that_waited_through_a_lost_lease_is_still_committed_if_nobody_took_the_run(
    world: World,
) -> None:
    job = await world.create(once(START_AT))
    hand = await world.worker()
    await hand.claim()
    world.store.fail("settle", times=1)
    with pytest.raises(Unavailable):
        await hand.settle()
    world.go_to(START_AT + LEASE_US)
    await hand.beat()
    await hand.settle()
    await world.sweep()
    await hand.work()
    assert await world.state(job, START_AT) is State.SUCCEEDED
    assert len(world.target.calls) == 1, "its effect has happened; there is no need for a second"


async def test_a_lease_lost_while_a_batch_is_on_its_way_loses_no_later_outcome(world: World) -> None:
    job = await world.create(once(START_AT))
    hand = await world.worker()
    await hand.claim()
    answer = world.store.hold_answer("settle")
    settling = asyncio.create_task(hand.worker.settle_step(world.now))
    await quiet()
    world.go_to(START_AT + LEASE_US)
    await hand.beat()
    later = await world.create(once(world.now))
    await hand.claim()
    answer.set()
    await settling
    await hand.settle()
    assert await world.state(job, START_AT) is State.SUCCEEDED
    assert await world.state(later, START_AT + LEASE_US) is State.SUCCEEDED
    assert hand.in_hand == 0


async def test_a_lost_lease_that_claim_and_heartbeat_both_notice_is_one_new_start(world: World) -> None:
    """The heartbeat asks first and hears last; meanwhile the claim begins anew and takes a run."""
    hand = await world.worker()
    world.go_to(START_AT + LEASE_US)
    answer = asyncio.Event()
    renewing = world.real.renew_node

    async def renew(*args: object) -> None:
        try:
            await renewing(*args)  # type: ignore[arg-type]
        except BaseException:
            await answer.wait()
            raise

    world.store.renew_node = renew
    beating = asyncio.create_task(hand.worker.heartbeat(world.now))
    await quiet()
    world.target.act = Gate()
    await world.create(once(world.now))
    await hand.claim()
    assert hand.in_hand == 1
    answer.set()
    await beating
    assert hand.in_hand == 1, "the run was taken under the new id"
    assert world.target.cancelled == []
    assert len([node for node in await world.real.nodes() if node.lease_until > world.now]) == 1


async def test_a_new_start_that_fails_is_tried_again(world: World) -> None:
    world.target.act = Gate()
    job = await world.create(once(START_AT), delivery=Delivery.AT_MOST_ONCE)
    hand = await world.worker()
    await hand.claim()
    world.go_to(START_AT + LEASE_US)
    world.store.fail("renew_node")
    with pytest.raises(Unavailable):
        await hand.worker.step(world.now)
    await hand.beat()
    await hand.beat()
    # The attempt of the old life had begun, so it is not given back as if it had not.
    assert world.store.calls["settle"] == 0
    await world.sweep()
    await hand.work()
    assert len(world.target.calls) == 1
    assert await world.is_dead(job, START_AT)
    await world.create(once(world.now))
    await hand.claim()
    assert len(world.target.calls) == 2


# --- draining


async def test_drain_gives_back_what_has_not_begun(world: World) -> None:
    job = await world.create(once(START_AT + SECOND_US))
    hand = await world.worker()
    await hand.claim()
    await hand.worker.drain(30 * SECOND_US)
    await hand.worker.leave()
    assert hand.in_hand == 0
    view = await world.view(job, START_AT + SECOND_US)
    assert (view.state, view.tries, view.attempts) == (State.PENDING, 0, ())
    other = await world.worker()
    await other.go(START_AT + SECOND_US)
    assert [(call.fence, call.late_us) for call in world.target.calls] == [(2, 0)]


async def test_drain_waits_for_what_runs_and_commits_it(world: World) -> None:
    world.target.act = gate = Gate()
    job = await world.create(once(START_AT))
    hand = await world.worker()
    await hand.claim()
    draining = asyncio.create_task(hand.worker.drain(30 * SECOND_US))
    await quiet()
    assert not draining.done()
    await world.create(once(START_AT))
    assert await hand.worker.step(world.now) is None, "it takes nothing more"
    gate.opened.set()
    async with asyncio.timeout(5):
        await draining
    assert await world.state(job, START_AT) is State.SUCCEEDED
    assert len(world.target.calls) == 1


async def test_drain_cuts_short_what_takes_too_long(world: World) -> None:
    world.target.act = Gate()
    job = await world.create(once(START_AT))
    once_only = await world.create(once(START_AT), delivery=Delivery.AT_MOST_ONCE)
    hand = await world.worker()
    await hand.claim()
    await hand.worker.drain(0)
    await hand.worker.leave()
    view = await world.view(job, START_AT)
    assert (view.state, view.tries, view.due_at) == (State.RETRYING, 1, world.now)
    assert await world.is_dead(once_only, START_AT)
    assert hand.in_hand == 0


async def test_drain_leaves_a_stubborn_attempt_to_the_sweeper(world: World) -> None:
    world.target.act = stubborn = Gate(swallow=True)
    job = await world.create(once(START_AT))
    hand = await world.worker()
    await hand.claim()
    await hand.worker.drain(0)
    await hand.worker.leave()
    await world.sweep()
    assert await world.state(job, START_AT) is State.RETRYING
    stubborn.opened.set()
    await quiet()
    assert await world.state(job, START_AT) is State.RETRYING


async def test_drain_gives_back_a_claim_whose_answer_was_lost(world: World) -> None:
    job = await world.create(once(START_AT), delivery=Delivery.AT_MOST_ONCE)
    hand = await world.worker()
    world.store.lose_answer("claim")
    with pytest.raises(Unavailable):
        await hand.claim()
    await hand.worker.drain(0)
    await hand.worker.leave()
    await world.sweep()
    assert not await world.is_dead(job, START_AT)
    other = await world.worker()
    await other.work()
    assert await world.state(job, START_AT) is State.SUCCEEDED


async def test_a_claim_that_is_answered_while_draining_is_given_back(world: World) -> None:
    job = await world.create(once(START_AT))
    hand = await world.worker()
    answer = world.store.hold_answer("claim")
    claiming = asyncio.create_task(hand.worker.step(world.now))
    await quiet()
    draining = asyncio.create_task(hand.worker.drain(0))
    await quiet()
    answer.set()
    await asyncio.gather(claiming, draining)
    await hand.settle()
    assert world.target.calls == []
    assert hand.in_hand == 0
    assert await world.state(job, START_AT) is State.PENDING


async def test_a_hiccup_of_the_store_does_not_lose_what_a_drain_has_to_commit(world: World) -> None:
    job = await world.create(once(START_AT))
    hand = await world.worker()
    await hand.claim()
    world.store.fail("settle")
    async with asyncio.timeout(5):
        await hand.worker.drain(0)
    assert await world.state(job, START_AT) is State.SUCCEEDED
