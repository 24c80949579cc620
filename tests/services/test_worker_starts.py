"""The worker takes no more than it can run, ahead of time by the lead, and starts each exactly when due."""

import pytest

from hourhand.core.identity import RunKey
from hourhand.core.instant import SECOND_US, format_instant
from hourhand.core.lifecycle import State
from hourhand.core.model import Delivery, Overlap, Priority
from hourhand.core.serving import Serves
from tests.services.world import FAILED, LEAD_US, MS, START_AT, Gate, World, every, once, quiet, reason, spec


async def test_it_claims_no_more_than_its_room(world: World) -> None:
    gate = Gate()
    world.target.act = gate
    await world.create_all([spec(once(START_AT)) for _ in range(25)])
    hand = await world.worker(concurrency=10)
    await hand.claim()
    assert hand.in_hand == 10
    assert len(world.target.calls) == 10
    asked = world.store.calls["claim"]
    assert await hand.worker.step(world.now) is None, "full: it waits to be woken"
    assert world.store.calls["claim"] == asked
    gate.opened.set()
    await hand.work()
    assert len(set(world.target.keys)) == len(world.target.keys) == 25
    assert hand.in_hand == 0


async def test_what_waits_for_its_time_counts_against_the_room(world: World) -> None:
    await world.create_all([spec(once(START_AT + SECOND_US)) for _ in range(5)])
    await world.create_all([spec(once(START_AT + 2 * SECOND_US)) for _ in range(5)])
    hand = await world.worker(concurrency=7)
    await hand.claim()
    assert hand.in_hand == 7
    assert world.target.calls == []


async def test_it_claims_ahead_by_the_lead_and_not_before(world: World) -> None:
    await world.create(once(START_AT + 10 * SECOND_US))
    hand = await world.worker()
    assert await hand.claim() == START_AT + 10 * SECOND_US - LEAD_US
    assert hand.in_hand == 0
    world.go_to(START_AT + 10 * SECOND_US - LEAD_US)
    await hand.claim()
    assert hand.in_hand == 1
    assert world.target.calls == []


@pytest.mark.parametrize("beyond_us", [0, 1, 999, 1_000, 250_000, 255_999, 256_001, 1_999_999])
async def test_a_run_in_hand_starts_exactly_when_due(world: World, beyond_us: int) -> None:
    due_at = START_AT + 1 + beyond_us
    await world.create(once(due_at))
    hand = await world.worker()
    await hand.claim()
    woken = 0
    while not world.target.calls:
        next_at = await hand.tick()
        if world.target.calls:
            break
        assert next_at is not None
        assert world.now < next_at <= due_at, "its timer is never after the due time"
        world.go_to(next_at)
        woken += 1
        assert woken < 10
    assert world.target.calls[0].at == due_at


async def test_a_tick_a_microsecond_early_starts_nothing(world: World) -> None:
    await world.create(once(START_AT + 500_123))
    hand = await world.worker()
    await hand.claim()
    world.go_to(START_AT + 500_122)
    assert await hand.tick() == START_AT + 500_123
    assert world.target.calls == []
    world.pass_time(0.000001)
    await hand.tick()
    assert len(world.target.calls) == 1


async def test_late_ones_start_at_once_without_a_tick(world: World) -> None:
    await world.create(once(START_AT))
    world.pass_time(5)
    hand = await world.worker()
    await hand.claim()
    assert [call.late_us for call in world.target.calls] == [5 * SECOND_US]


async def test_runs_of_one_moment_start_together_and_in_order_of_their_due_time(world: World) -> None:
    jobs = await world.create_all([spec(once(START_AT + n * 100)) for n in (3, 1, 2)])
    hand = await world.worker()
    await hand.claim()
    world.go_to(START_AT + SECOND_US)
    await hand.tick()
    expected = [jobs[1].id, jobs[2].id, jobs[0].id]
    # The first was due when it was claimed at START_AT only if its time had come; none had.
    assert [key.job_id for key in world.target.keys] == expected


async def test_of_a_flood_in_hand_a_few_start_at_a_time_and_tenants_in_turn(world: World) -> None:
    due_at = START_AT + SECOND_US
    await world.create_all([spec(once(due_at)) for _ in range(100)])
    [other] = await world.create_all([spec(once(due_at + 1))], tenant="other")
    hand = await world.worker(concurrency=200)
    await hand.claim()
    assert hand.in_hand == 101
    world.go_to(due_at + 1)
    for count in (32, 64, 96):
        assert hand.worker.tick(world.now) == world.now, "there is more to start"
        await quiet()
        assert len(world.target.calls) == count
    await hand.tick()
    assert len(world.target.calls) == 101
    assert [key.job_id for key in world.target.keys].index(other.id) == 1, "its turn, not behind them all"


async def test_what_was_taken_late_starts_a_few_at_a_time_too(world: World) -> None:
    await world.create_all([spec(once(START_AT)) for _ in range(40)])
    hand = await world.worker(concurrency=40)
    await hand.worker.step(world.now)
    await quiet()
    assert len(world.target.calls) == 32
    await hand.tick()
    assert len(world.target.calls) == 40


async def test_what_is_due_and_has_not_had_its_turn_is_given_back_by_a_drain(world: World) -> None:
    jobs = await world.create_all([spec(once(START_AT)) for _ in range(40)])
    hand = await world.worker(concurrency=40)
    await hand.worker.step(world.now)
    await hand.worker.drain(SECOND_US)
    await hand.tick()
    assert len(world.target.calls) == 32, "nothing starts after a drain"
    states = [await world.state(job, START_AT) for job in jobs]
    assert states.count(State.SUCCEEDED) == 32
    assert State.RUNNING not in states


async def test_what_is_cancelled_before_its_turn_never_starts(world: World) -> None:
    jobs = await world.create_all([spec(once(START_AT)) for _ in range(33)])
    hand = await world.worker(concurrency=40)
    await hand.worker.step(world.now)
    await quiet()
    [last] = [job for job in jobs if not world.target.called(job)]
    await world.runs.cancel(last.tenant, RunKey(last.id, START_AT))
    await hand.cancels()
    await hand.tick()
    await hand.settle()
    assert world.target.called(last) == []
    assert await world.state(last, START_AT) is State.CANCELLED


async def test_a_run_is_in_hand_until_its_outcome_is_committed(world: World) -> None:
    job = await world.create(once(START_AT))
    hand = await world.worker()
    await hand.claim()
    assert len(world.target.calls) == 1
    assert hand.in_hand == 1
    assert await world.state(job, START_AT) is State.RUNNING
    await hand.settle()
    assert hand.in_hand == 0
    assert await world.state(job, START_AT) is State.SUCCEEDED
    [(run, settlement)] = hand.settled
    assert (run.key.scheduled_at, settlement.started_at, settlement.finished_at) == (START_AT,) * 3


async def test_an_idle_worker_waits_for_a_hint(world: World) -> None:
    hand = await world.worker()
    assert await hand.claim() is None


async def test_a_small_claim_is_put_off_once_so_that_it_may_become_a_larger_one(world: World) -> None:
    gate = Gate()
    world.target.act = gate
    await world.create_all([spec(once(START_AT)) for _ in range(31)])
    hand = await world.worker(concurrency=32)
    await hand.claim()
    await world.create(once(START_AT))
    asked = world.store.calls["claim"]
    later = await hand.worker.step(world.now)
    assert later is not None
    assert 0 < later - world.now <= 10 * MS
    assert world.store.calls["claim"] == asked
    await hand.worker.step(later)
    assert hand.in_hand == 32


async def test_at_most_once_runs_are_not_claimed_ahead_of_time(world: World) -> None:
    due_at = START_AT + SECOND_US
    await world.create(once(due_at), delivery=Delivery.AT_MOST_ONCE)
    hand = await world.worker()
    assert await hand.claim() == due_at
    assert hand.in_hand == 0
    world.go_to(due_at)
    await hand.claim()
    assert [call.late_us for call in world.target.calls] == [0]


async def test_a_manual_run_starts_immediately(world: World) -> None:
    job = await world.create(every(3_600))
    hand = await world.worker()
    await hand.claim()
    key = await world.jobs.run_now(job.tenant, job.id)
    await hand.work()
    assert world.target.keys == [key]
    assert await world.state(job, key.scheduled_at) is State.SUCCEEDED


async def test_a_worker_serves_only_its_pools(world: World) -> None:
    await world.create(once(START_AT), pool="gpu")
    mine = await world.create(once(START_AT))
    hand = await world.worker()
    await hand.work()
    assert [key.job_id for key in world.target.keys] == [mine.id]
    other = await world.worker(pools=("gpu", "unheard-of"))
    await other.work()
    assert len(world.target.keys) == 2


async def test_shares_of_the_priorities_hold_over_many_small_claims(world: World) -> None:
    specs = [
        spec(once(START_AT), priority=priority)
        for priority in (Priority.HIGH, Priority.MEDIUM, Priority.LOW)
        for _ in range(100)
    ]
    jobs = {job.id: job.spec.priority for job in await world.create_all(specs)}
    hand = await world.worker(concurrency=1)
    while len(world.target.calls) < 100:
        await hand.claim()
        await hand.settle()
    taken = [jobs[key.job_id] for key in world.target.keys[:100]]
    shares = {priority: taken.count(priority) for priority in Priority}
    assert shares == {Priority.HIGH: 85, Priority.MEDIUM: 10, Priority.LOW: 5}


async def test_high_goes_first_when_it_leaves_room_for_the_others(world: World) -> None:
    low, high = await world.create_all(
        [spec(once(START_AT), priority=Priority.LOW), spec(once(START_AT), priority=Priority.HIGH)]
    )
    hand = await world.worker(concurrency=1)
    await hand.claim()
    assert [key.job_id for key in world.target.keys] == [high.id]
    await hand.work()
    assert [key.job_id for key in world.target.keys] == [high.id, low.id]


@pytest.mark.parametrize("tenants", [1, 6])
async def test_high_runs_that_cannot_be_taken_yet_do_not_hold_up_lower_ones_that_are_due(
    world: World, tenants: int
) -> None:
    later = spec(once(START_AT + SECOND_US), priority=Priority.HIGH, delivery=Delivery.AT_MOST_ONCE)
    for tenant in range(tenants):
        await world.create_all([later] * (12 // tenants), tenant=f"tenant-{tenant}")
    due = await world.create_all([spec(once(START_AT), priority=Priority.LOW) for _ in range(10)])
    hand = await world.worker(concurrency=5)
    await hand.work()
    assert {key.job_id for key in world.target.keys} == {job.id for job in due}
    assert world.store.calls["claim"] < 15


async def test_full_jobs_with_several_slots_do_not_hold_up_lower_ones_that_are_due(world: World) -> None:
    gate = Gate()
    world.target.act = gate
    busy = spec(every(1), priority=Priority.HIGH, concurrency=2)
    for tenant in range(6):
        await world.create_all([busy], tenant=f"tenant-{tenant}")
    await world.plan()
    hand = await world.worker(concurrency=17)
    for _ in range(2):
        world.pass_time(1)
        await hand.claim()
        await hand.tick()
    assert len(world.target.calls) == 12  # all slots of all six are taken, their next runs are a second away
    due = await world.create_all([spec(once(START_AT), priority=Priority.LOW) for _ in range(5)])
    await hand.claim()
    assert {key.job_id for key in world.target.keys[12:]} == {job.id for job in due}


async def test_concurrency_bounds_how_many_runs_of_a_job_run_at_once(world: World) -> None:
    gate = Gate()
    world.target.act = gate
    job = await world.create(every(1), concurrency=2, overlap=Overlap.QUEUE)
    await world.plan()
    hand = await world.worker()
    for _ in range(6):
        world.pass_time(1)
        await hand.claim()
        await hand.tick()
    assert world.target.called(job) == [START_AT + SECOND_US, START_AT + 2 * SECOND_US]
    gate.opened.set()
    await hand.work()
    assert world.target.called(job) == [START_AT + n * SECOND_US for n in range(1, 7)]


async def test_without_a_limit_all_run_at_once(world: World) -> None:
    world.target.act = Gate()
    job = await world.create(every(1), concurrency=None)
    await world.plan()
    hand = await world.worker()
    for _ in range(4):
        world.pass_time(1)
        await hand.claim()
        await hand.tick()
    assert len(world.target.called(job)) == 4


@pytest.mark.parametrize(
    ("overlap", "called", "skipped"),
    [
        (Overlap.SKIP, [1, 5], [2, 3, 4]),
        (Overlap.QUEUE_ONE, [1, 4, 5], [2, 3]),
        (Overlap.QUEUE, [1, 2, 3, 4, 5], []),
    ],
)
async def test_overlap_policies(
    world: World, overlap: Overlap, called: list[int], skipped: list[int]
) -> None:
    gate = Gate()
    world.target.act = gate
    job = await world.create(every(1), overlap=overlap)
    await world.plan()
    hand = await world.worker()
    for _ in range(4):
        world.pass_time(1)
        await hand.claim()
        await hand.tick()
    gate.opened.set()
    await hand.work()
    world.pass_time(1)
    await hand.work()
    assert world.target.called(job) == [START_AT + n * SECOND_US for n in called]
    for n in skipped:
        view = await world.view(job, START_AT + n * SECOND_US)
        assert view.state is State.SKIPPED
        assert reason(view) == "overlap"


async def test_overlap_cancel_running_ends_the_old_run_and_starts_the_new(world: World) -> None:
    world.target.act = Gate()
    job = await world.create(every(1), overlap=Overlap.CANCEL_RUNNING)
    await world.plan()
    hand = await world.worker()
    for _ in range(3):
        world.pass_time(1)
        await hand.claim()
        await hand.tick()
        await hand.cancels()
        await hand.work()
    assert world.target.called(job) == [START_AT + n * SECOND_US for n in (1, 2, 3)]
    assert await world.states(job, START_AT + SECOND_US, START_AT + 2 * SECOND_US) == [State.CANCELLED] * 2
    assert await world.state(job, START_AT + 3 * SECOND_US) is State.RUNNING


async def test_a_run_that_waits_for_its_slot_starts_when_the_slot_is_handed_on(world: World) -> None:
    world.target.answers.append(FAILED)
    job = await world.create(every(1), overlap=Overlap.QUEUE)
    await world.plan()
    hand = await world.worker()
    world.pass_time(1)
    await hand.work()  # fails, and keeps its slot while it waits to be retried
    world.pass_time(0.5)
    assert await world.state(job, START_AT + SECOND_US) is State.RETRYING
    for _ in range(8):
        world.pass_time(0.5)
        await hand.work()
    first, second = START_AT + SECOND_US, START_AT + 2 * SECOND_US
    assert world.target.called(job)[:3] == [first, first, second]


async def test_only_a_late_start_keeps_when_it_was_taken(world: World) -> None:
    late, prompt = await world.create(once(START_AT)), await world.create(once(START_AT + SECOND_US))
    world.pass_time(0.5)
    hand = await world.worker()
    await hand.go(START_AT + 2 * SECOND_US)
    taken_at = START_AT + SECOND_US // 2
    [row] = (await world.view(late, START_AT)).attempts
    assert (row.detail or {}).get("claimed_at") == format_instant(taken_at)
    [row] = (await world.view(prompt, START_AT + SECOND_US)).attempts
    assert "claimed_at" not in (row.detail or {})


async def test_it_tells_what_it_serves_once_under_each_id(world: World) -> None:
    serves = Serves(pools=("default",), functions=("tests:noop",))
    world.store.fail("tell_served")
    worker = world.new_worker(name="telling", serves=serves)
    await worker.join()
    assert [node.serves for node in await world.real.nodes()] == [None], "no run depends on it"
    await worker.heartbeat(world.now)
    await worker.heartbeat(world.now)
    assert [node.serves for node in await world.real.nodes()] == [serves]
    assert world.store.calls["tell_served"] == 2
    world.pass_time(60)
    await worker.heartbeat(world.now)  # the lease is lost: it starts anew
    await worker.heartbeat(world.now)
    assert [node.serves for node in await world.real.nodes()] == [serves, serves]
