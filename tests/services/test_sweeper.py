"""The sweeper: lost runs go on, late ones are judged, pauses end, old rows leave; a full page starves nobody."""

from itertools import pairwise
from typing import Any

import msgspec
import pytest

from hourhand.core.instant import DAY_US, SECOND_US
from hourhand.core.lifecycle import State
from hourhand.core.model import Delivery, JobSpec, JobState, Misfire, MisfirePolicy, Overlap, Retry
from hourhand.leases.native import LEASE_US
from hourhand.services import sweeper as module
from hourhand.services.jobs import NewJob
from hourhand.services.sweeper import SLACK_US
from hourhand.services.worker import HEARTBEAT_US
from tests.services.world import (
    FAILED,
    START_AT,
    Gate,
    World,
    every,
    key_of,
    once,
    reason,
    spec,
    succeed,
)


async def lose_a_worker(world: World, concurrency: int = 10) -> None:
    """A worker takes what is due and is never heard of again."""
    calls = world.target.calls
    world.target.act = Gate()
    hand = await world.worker(concurrency)
    await hand.claim()
    world.target.act = succeed
    assert calls
    world.go_to(world.now + LEASE_US)


# --- lost workers


async def test_runs_of_a_dead_worker_go_on_at_once_with_a_try_counted(world: World) -> None:
    job = await world.create(once(START_AT), retry=Retry(first_us=300 * SECOND_US))
    await lose_a_worker(world)
    await world.sweep()
    view = await world.view(job, START_AT)
    assert (view.state, view.tries, view.due_at) == (State.RETRYING, 1, world.now)
    assert reason(view) == "its worker was lost"
    hand = await world.worker()
    await hand.work()
    assert await world.state(job, START_AT) is State.SUCCEEDED
    assert world.target.fences == [1, 2]


async def test_a_living_worker_keeps_its_runs(world: World) -> None:
    world.target.act = Gate()
    job = await world.create(once(START_AT), timeout_us=600 * SECOND_US)
    hand = await world.worker()
    await hand.claim()
    for _ in range(6):
        world.go_to(world.now + HEARTBEAT_US)
        await hand.beat()
        await world.sweep()
    assert await world.state(job, START_AT) is State.RUNNING
    assert hand.in_hand == 1


async def test_a_run_that_loses_every_worker_becomes_a_dead_letter(world: World) -> None:
    """A payload that kills whoever takes it."""
    job = await world.create(once(START_AT), retry=Retry(max=2))
    neighbour = await world.create(every(5))
    for _ in range(3):
        await lose_a_worker(world)
        await world.sweep()
        world.go_to(world.now + 6 * SECOND_US)  # the last chance comes apart from the others'
    assert await world.is_dead(job, START_AT)
    assert (await world.view(job, START_AT)).tries == 3
    await world.plan()
    hand = await world.worker()
    await hand.work()
    assert world.target.called(neighbour)


async def test_last_chances_come_one_by_one_so_that_only_the_culprit_uses_them_up(world: World) -> None:
    jobs = await world.create_all([spec(once(START_AT), retry=Retry(max=1)) for _ in range(4)])
    await lose_a_worker(world)
    await world.sweep()
    due = sorted([(await world.view(job, START_AT)).due_at for job in jobs])
    assert due == [world.now + number * 5 * SECOND_US for number in (1, 2, 3, 4)]
    world.go_to(due[0] + 2 * SECOND_US)  # the latest moment at which it begins, where no message tells of it
    hand = await world.worker()
    await hand.claim()
    assert hand.in_hand == 1  # the next is not taken ahead, or it would go down with this one


async def test_with_one_more_loss_to_spare_they_go_on_in_groups(world: World) -> None:
    """As many as went down here would wait for minutes, one by one; of a group that goes down few are left."""
    jobs = await world.create_all([spec(once(START_AT), retry=Retry(max=3)) for _ in range(10)])
    for _ in range(2):
        await lose_a_worker(world)
        await world.sweep()
    due = sorted([(await world.view(job, START_AT)).due_at for job in jobs])
    first, second, third = (world.now + number * 5 * SECOND_US for number in (1, 2, 3))
    assert due == [first] * 4 + [second] * 4 + [third] * 2


async def test_the_first_worker_lost_keeps_nobody_waiting(world: World) -> None:
    jobs = await world.create_all([spec(once(START_AT), retry=Retry(max=2)) for _ in range(10)])
    await lose_a_worker(world)
    await world.sweep()
    assert {(await world.view(job, START_AT)).due_at for job in jobs} == {world.now}


async def test_many_with_one_try_left_are_apart_all_the_same(world: World) -> None:
    jobs = await world.create_all([spec(once(START_AT), retry=Retry(max=1)) for _ in range(41)])
    await lose_a_worker(world, concurrency=50)
    await world.sweep()
    due = sorted([(await world.view(job, START_AT)).due_at for job in jobs])
    assert {later - sooner for sooner, later in pairwise(due)} == {5 * SECOND_US}


@pytest.mark.parametrize("backoff_s", [0, 20])
async def test_so_they_do_where_a_dead_worker_is_noticed_by_deadlines_before_its_lease_ends(
    world: World, backoff_s: int
) -> None:
    retry = Retry(max=1, first_us=backoff_s * SECOND_US)
    jobs = await world.create_all([spec(once(START_AT), retry=retry, timeout_us=SECOND_US) for _ in range(4)])
    world.target.act = Gate()
    hand = await world.worker()
    await hand.claim()
    assert hand.in_hand == 4
    world.go_to(START_AT + SECOND_US + SLACK_US + 1)
    assert world.now < START_AT + LEASE_US
    await world.sweep()
    due = sorted([(await world.view(job, START_AT)).due_at for job in jobs])
    assert all(later - sooner >= 5 * SECOND_US for sooner, later in pairwise(due))
    assert world.now + max(5, backoff_s * 0.8) * SECOND_US <= due[0], "its backoff counts too"


async def test_at_most_once_runs_of_a_lost_worker_become_dead_letters(world: World) -> None:
    job = await world.create(once(START_AT), delivery=Delivery.AT_MOST_ONCE)
    await lose_a_worker(world)
    await world.sweep()
    assert await world.is_dead(job, START_AT)


async def test_what_a_lost_worker_held_for_later_costs_no_try_and_is_not_early(world: World) -> None:
    hand = await world.worker()
    world.go_to(START_AT + LEASE_US - SECOND_US)
    due_at = START_AT + LEASE_US + SECOND_US // 2
    job = await world.create(once(due_at), retry=Retry(max=0))
    await hand.claim()
    assert hand.in_hand == 1
    world.go_to(START_AT + LEASE_US)
    await world.sweep()
    other = await world.worker()
    await other.go(due_at + SECOND_US)
    assert [call.late_us for call in world.target.calls] == [0]
    assert await world.state(job, due_at) is State.SUCCEEDED


async def test_a_cancelled_run_of_a_lost_worker_is_cancelled(world: World) -> None:
    job = await world.create(once(START_AT), retry=Retry(max=0))
    await lose_a_worker(world)
    await world.runs.cancel(job.tenant, key_of(job, START_AT))
    await world.sweep()
    assert await world.state(job, START_AT) is State.CANCELLED
    assert not await world.is_dead(job, START_AT)


async def test_a_run_of_a_deleted_job_ends_with_its_worker(world: World) -> None:
    job = await world.create(once(START_AT))
    await lose_a_worker(world)
    await world.jobs.delete(job.tenant, job.id)
    await world.sweep()
    assert (await world.real.backlog()).running == 0
    hand = await world.worker()
    await hand.work()
    assert len(world.target.calls) == 1


async def test_a_full_page_of_strays_does_not_starve_the_rest(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PAGE", 3)
    jobs = await world.create_all([spec(once(START_AT)) for _ in range(11)])
    await lose_a_worker(world, concurrency=20)
    await world.sweep()
    assert [await world.state(job, START_AT) for job in jobs] == [State.RETRYING] * 11


async def test_an_attempt_long_past_its_deadline_is_taken_from_a_worker_that_only_heartbeats(
    world: World,
) -> None:
    world.target.act = Gate()
    job = await world.create(once(START_AT), timeout_us=SECOND_US)
    hand = await world.worker()
    await hand.claim()  # nobody calls its tick: it is alive and does nothing
    deadline_at = START_AT + SECOND_US
    world.go_to(deadline_at + SLACK_US)
    await hand.beat()
    await world.sweep()
    assert await world.state(job, START_AT) is State.RUNNING
    world.go_to(deadline_at + SLACK_US + 1)
    await world.sweep()
    view = await world.view(job, START_AT)
    assert view.state is State.RETRYING
    assert "deadline" in (reason(view) or "")


async def test_a_rescue_whose_answer_was_lost_counts_one_try(world: World) -> None:
    job = await world.create(once(START_AT))
    await lose_a_worker(world)
    world.store.lose_answer("settle")
    with pytest.raises(Exception, match="answer was lost"):
        await world.sweep()
    await world.sweep()
    assert (await world.view(job, START_AT)).tries == 1


# --- late runs that nobody claims


async def test_late_runs_that_nobody_claims_are_judged(world: World) -> None:
    skip = await world.create(every(10), misfire=Misfire(policy=MisfirePolicy.SKIP, grace_us=5 * SECOND_US))
    newest = await world.create(every(10), misfire=Misfire(grace_us=5 * SECOND_US))
    await world.plan()
    world.go_to(START_AT + 38 * SECOND_US)
    await world.sweep()
    times = [START_AT + n * 10 * SECOND_US for n in (1, 2, 3)]
    assert await world.states(skip, *times) == [State.SKIPPED] * 3
    assert await world.states(newest, *times) == [State.SKIPPED, State.SKIPPED, State.PENDING]
    assert reason(await world.view(skip, times[0])) == "misfire"


async def test_a_page_of_late_runs_that_stay_does_not_hide_those_behind_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PAGE", 3)
    grace = Misfire(grace_us=SECOND_US)
    stay = await world.create_all([spec(once(START_AT + SECOND_US), misfire=grace) for _ in range(10)])
    go = await world.create_all(
        [spec(every(2), misfire=Misfire(policy=MisfirePolicy.SKIP, grace_us=SECOND_US)) for _ in range(5)]
    )
    await world.plan()
    world.go_to(START_AT + 3 * SECOND_US + 1)
    for _ in range(6):  # a page in which nothing was decided is no reason to hurry on
        await world.sweep()
    assert [await world.state(job, START_AT + SECOND_US) for job in stay] == [State.PENDING] * 10
    assert [await world.state(job, START_AT + 2 * SECOND_US) for job in go] == [State.SKIPPED] * 5


# --- slots


async def test_a_slot_that_nobody_handed_on_is_given_away(world: World) -> None:
    world.target.act = Gate()
    job = await world.create(every(1), overlap=Overlap.QUEUE)
    await world.plan()
    hand = await world.worker()
    for _ in range(2):
        world.pass_time(1)
        await hand.claim()
        await hand.tick()
    # A second slot appears by an edit: nobody finishes, so nobody hands it on.
    await world.jobs.update(
        job.tenant, job.id, lambda present, _: _with(present.spec, concurrency=2), expected_version=1
    )
    await world.sweep()
    await hand.claim()
    assert len(world.target.called(job)) == 2


# --- jobs that need care


async def test_a_pause_ends_at_its_time(world: World) -> None:
    job = await world.create(every(10))
    until_at = START_AT + 100 * SECOND_US
    await world.jobs.pause(job.tenant, job.id, until_at=until_at)
    wake_at = await world.sweep()
    assert wake_at is not None
    world.go_to(until_at - 1)
    await world.sweep()
    assert (await world.jobs.get(job.tenant, job.id)).state is JobState.PAUSED
    world.go_to(until_at - SECOND_US // 2)
    assert await world.sweep() == until_at, "it looks exactly then"
    world.go_to(until_at)
    await world.sweep()
    resumed = await world.jobs.get(job.tenant, job.id)
    assert (resumed.state, resumed.paused_until) == (JobState.ACTIVE, None)
    await world.plan()
    assert await world.planned()


async def test_a_one_time_job_whose_time_passes_while_paused_is_skipped(world: World) -> None:
    due_at = START_AT + 10 * SECOND_US
    job = await world.create(once(due_at))
    await world.jobs.pause(job.tenant, job.id, note="not today")
    world.go_to(due_at + SECOND_US)
    await world.sweep()
    view = await world.view(job, due_at)
    assert (view.state, reason(view)) == (State.SKIPPED, "paused")
    hand = await world.worker()
    await hand.work()
    assert world.target.calls == []


async def test_a_finished_one_time_job_leaves_with_its_history(world: World) -> None:
    world = World(keep_us=DAY_US)
    job = await world.create(once(START_AT))
    hand = await world.worker()
    await hand.work()
    world.go_to(START_AT + DAY_US - SECOND_US)
    await world.sweep()
    assert await world.real.get_job(job.tenant, job.id) is not None
    world.go_to(START_AT + DAY_US + 61 * SECOND_US)
    await world.sweep()
    assert await world.real.get_job(job.tenant, job.id) is None


async def test_more_jobs_than_a_page_want_care_at_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PAGE", 3)
    jobs = await world.create_all([spec(every(10)) for _ in range(10)])
    for job in jobs:
        await world.jobs.pause(job.tenant, job.id, until_at=START_AT + 60 * SECOND_US)
    world.go_to(START_AT + 60 * SECOND_US)
    for _ in range(10):
        next_at = await world.sweeper.step(world.now)
        assert next_at is not None
        if next_at > world.now + 1:
            break
    states = {(await world.jobs.get(job.tenant, job.id)).state for job in jobs}
    assert states == {JobState.ACTIVE}


# --- old rows


async def test_history_leaves_after_its_time_and_purging_happens_once_a_minute() -> None:
    world = World(keep_us=DAY_US)
    job = await world.create(every(3_600))
    hand = await world.worker()
    for _ in range(3):
        world.go_to(world.now + 3_600 * SECOND_US)
        await hand.beat()
        await world.plan()
        await hand.work()
    times = [START_AT + n * 3_600 * SECOND_US for n in (1, 2, 3)]
    assert await world.states(job, *times) == [State.SUCCEEDED] * 3
    await world.sweep()
    asked = world.store.calls["purge"]
    for _ in range(59):
        world.pass_time(1)
        await world.sweep()
    assert world.store.calls["purge"] == asked
    world.pass_time(1)
    await world.sweep()
    assert world.store.calls["purge"] == asked + 1
    world.go_to(times[1] + DAY_US + 1)
    await world.sweep()
    assert await world.states(job, *times) == [None, None, State.SUCCEEDED]


async def test_dead_letters_nobody_wanted_leave() -> None:
    world = World(keep_us=DAY_US)
    world.target.answers.append(FAILED)
    job = await world.create(every(3_600), retry=Retry(max=0))
    world.go_to(START_AT + 3_600 * SECOND_US)
    await world.plan()
    hand = await world.worker()
    await hand.work()
    at = START_AT + 3_600 * SECOND_US
    assert await world.is_dead(job, at)
    world.go_to(at + DAY_US + 61 * SECOND_US)
    await world.sweep()
    assert not await world.is_dead(job, at)


async def test_a_clock_set_back_does_not_stop_the_purging_for_good() -> None:
    world = World(keep_us=DAY_US)
    await world.sweep()
    world.go_to(START_AT - 3_600 * SECOND_US)
    asked = world.store.calls["purge"]
    for _ in range(62):
        world.pass_time(1)
        await world.sweep()
    assert world.store.calls["purge"] > asked


def _with(present: JobSpec, **fields: Any) -> NewJob:
    return NewJob(spec=msgspec.structs.replace(present, **fields))
