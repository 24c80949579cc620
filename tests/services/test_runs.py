"""Status and history as people read them; dead letters sent back, discarded and found."""

import pytest

from hourhand.core.identity import RunKey
from hourhand.core.instant import SECOND_US
from hourhand.core.lifecycle import State
from hourhand.core.model import Job, Overlap, Retry
from hourhand.errors import Conflict, Invalid, NotFound
from hourhand.ports.reading import DeadQuery
from hourhand.services.runs import MAX_AT_ONCE, Status
from tests.services.world import FAILED, START_AT, Gate, Hand, World, every, key_of, once, spec


async def status(world: World, job: Job) -> Status:
    return await world.runs.status(job.tenant, job.id, world.jobs.next_at)


async def working(world: World, **fields: object) -> tuple[Job, Hand]:
    job = await world.create(every(10), **fields)
    await world.plan()
    return job, await world.worker()


# --- status


async def test_before_the_first_run_a_job_is_pending(world: World) -> None:
    job, _ = await working(world)
    assert await status(world, job) == Status(
        job=job, state=State.PENDING, last_run=None, next_at=START_AT + 10 * SECOND_US, retry_count=0
    )


async def test_the_newest_run_that_is_due_speaks_for_the_job(world: World) -> None:
    job, hand = await working(world)
    await hand.go(START_AT + 25 * SECOND_US)
    now = await status(world, job)
    assert now.state is State.SUCCEEDED
    assert now.last_run is not None
    assert now.last_run.scheduled_at == START_AT + 20 * SECOND_US
    assert now.next_at == START_AT + 30 * SECOND_US


async def test_a_run_that_is_due_and_not_yet_taken_is_pending(world: World) -> None:
    job, _ = await working(world)
    world.go_to(START_AT + 11 * SECOND_US)
    now = await status(world, job)
    assert now.state is State.PENDING
    assert now.last_run is not None


async def test_a_running_run_speaks_for_the_job(world: World) -> None:
    world.target.act = Gate()
    job, hand = await working(world)
    await hand.go(START_AT + 10 * SECOND_US)
    assert (await status(world, job)).state is State.RUNNING


@pytest.mark.parametrize("first_s", [1, 100])
async def test_a_run_between_two_attempts_is_retrying_whether_or_not_a_worker_holds_it(
    world: World, first_s: int
) -> None:
    world.target.answers += [FAILED] * 2
    job, hand = await working(world, retry=Retry(first_us=first_s * SECOND_US))
    await hand.go(START_AT + 10 * SECOND_US)
    now = await status(world, job)
    assert now.state is State.RETRYING
    assert now.retry_count == 1


async def test_retries_are_counted_while_it_runs_again_and_after_it_succeeded(world: World) -> None:
    world.target.answers += [FAILED, FAILED]
    job, hand = await working(world)
    await hand.go(START_AT + 19 * SECOND_US)
    now = await status(world, job)
    assert (now.state, now.retry_count) == (State.SUCCEEDED, 2)


async def test_a_run_that_used_up_its_tries_has_had_as_many_retries_as_are_allowed(world: World) -> None:
    world.target.answers += [FAILED] * 4
    job, hand = await working(world, retry=Retry(max=3, first_us=0))
    await hand.go(START_AT + 11 * SECOND_US)
    now = await status(world, job)
    assert (now.state, now.retry_count) == (State.FAILED, 3)
    world.target.answers.append(FAILED)
    never, _ = await working(world, retry=Retry(max=0))
    await hand.go(START_AT + 21 * SECOND_US)
    assert (await status(world, never)).retry_count == 0


async def test_skipped_and_cancelled_runs_do_not_speak_for_the_job(world: World) -> None:
    world.target.act = gate = Gate()
    job, hand = await working(world, overlap=Overlap.SKIP)
    await hand.go(START_AT + 35 * SECOND_US)  # 20 and 30 are skipped
    await world.runs.cancel(job.tenant, key_of(job, START_AT + 40 * SECOND_US))
    gate.opened.set()
    await hand.go(START_AT + 45 * SECOND_US)
    now = await status(world, job)
    assert now.state is State.SUCCEEDED
    assert now.last_run is not None
    assert now.last_run.scheduled_at == START_AT + 10 * SECOND_US


async def test_coming_runs_do_not_crowd_out_the_last_one() -> None:
    world = World(horizon_us=300 * SECOND_US)
    job = await world.create(every(1))
    await world.plan()
    hand = await world.worker()
    await hand.go(START_AT + 3 * SECOND_US)
    assert (await status(world, job)).state is State.SUCCEEDED


async def test_a_manual_run_speaks_for_the_job_too(world: World) -> None:
    world.target.answers.append(FAILED)
    job, hand = await working(world, retry=Retry(max=0))
    key = await world.jobs.run_now(job.tenant, job.id)
    await hand.work()
    now = await status(world, job)
    assert now.state is State.FAILED
    assert now.last_run is not None
    assert now.last_run.scheduled_at == key.scheduled_at


# --- history


async def test_history_is_newest_first_with_the_coming_and_running_ones(world: World) -> None:
    gate = Gate()
    job, hand = await working(world)
    await hand.go(START_AT + 15 * SECOND_US)
    world.target.act = gate
    await hand.go(START_AT + 21 * SECOND_US)
    runs = await world.runs.history(job)
    assert [((run.scheduled_at - START_AT) // SECOND_US, run.state) for run in runs] == [
        (60, State.PENDING),
        (50, State.PENDING),
        (40, State.PENDING),
        (30, State.PENDING),
        (20, State.RUNNING),
        (10, State.SUCCEEDED),
    ]
    page = await world.runs.history(job, before_at=START_AT + 30 * SECOND_US, limit=1)
    assert [run.scheduled_at for run in page] == [START_AT + 20 * SECOND_US]


async def test_a_run_waiting_for_its_slot_is_in_history(world: World) -> None:
    world.target.act = Gate()
    job, hand = await working(world)
    await hand.go(START_AT + 21 * SECOND_US)
    run = await world.runs.get(job.tenant, key_of(job, START_AT + 20 * SECOND_US))
    assert (run.state, run.waits_for_slot) == (State.PENDING, True)


@pytest.mark.parametrize("offset_s", [-86_400, 86_400 * 365])
async def test_the_run_of_a_one_time_job_is_in_its_history_however_far_its_time_is(
    world: World, offset_s: int
) -> None:
    at = START_AT + offset_s * SECOND_US
    job = await world.create(once(at))
    [run] = await world.runs.history(job)
    assert (run.scheduled_at, run.state) == (at, State.PENDING)


async def test_runs_that_are_not_there(world: World) -> None:
    job, _ = await working(world)
    nobody = RunKey(job.id, START_AT + 5)
    for ask in (world.runs.get, world.runs.cancel):
        with pytest.raises(NotFound):
            await ask(job.tenant, nobody)
        with pytest.raises(NotFound):
            await ask("somebody-else", key_of(job, START_AT + 10 * SECOND_US))


async def test_what_has_ended_cannot_be_cancelled(world: World) -> None:
    job, hand = await working(world)
    await hand.go(START_AT + 11 * SECOND_US)
    with pytest.raises(Conflict):
        await world.runs.cancel(job.tenant, key_of(job, START_AT + 10 * SECOND_US))


# --- dead letters


async def dead(world: World, count: int) -> tuple[list[Job], Hand]:
    world.target.answers += [FAILED] * count
    jobs = await world.create_all([spec(once(START_AT), retry=Retry(max=0)) for _ in range(count)])
    hand = await world.worker()
    await hand.work()
    return jobs, hand


async def test_a_requeued_letter_is_the_same_run_going_on(world: World) -> None:
    [job], hand = await dead(world, 1)
    key = key_of(job, START_AT)
    assert await world.runs.requeue(job.tenant, [key, RunKey(job.id, 1)]) == [key]
    assert await world.runs.requeue(job.tenant, [key]) == []
    await hand.work()
    view = await world.view(job, START_AT)
    assert (view.state, view.tries) == (State.SUCCEEDED, 0)
    assert world.target.keys == [key, key]
    assert world.target.fences == [1, 2]


async def test_letters_are_found_and_discarded(world: World) -> None:
    jobs, _ = await dead(world, 5)
    keys = [key_of(job, START_AT) for job in jobs]
    tenant = jobs[0].tenant
    assert sorted(await world.runs.matching(tenant, DeadQuery())) == sorted(keys)
    assert await world.runs.matching("somebody-else", DeadQuery()) == []
    wanted = [keys[3], keys[0]]
    assert [letter.job_id for letter in await world.runs.dead_among(tenant, wanted)] == [
        key.job_id for key in wanted
    ]
    assert await world.runs.discard(tenant, wanted) == wanted
    assert await world.runs.dead_among(tenant, wanted) == []
    assert len(await world.runs.matching(tenant, DeadQuery())) == 3
    assert await world.state(jobs[0], START_AT) is State.FAILED


async def test_one_request_changes_a_bounded_number_of_letters(world: World) -> None:
    too_many = [RunKey(1, n) for n in range(MAX_AT_ONCE + 1)]
    for change in (world.runs.requeue, world.runs.discard, world.runs.dead_among):
        with pytest.raises(Invalid, match="at most"):
            await change("default", too_many)


# --- what is announced


async def test_a_cancelled_coming_run_is_not_announced(world: World) -> None:
    job, _ = await working(world)
    next_at = (await status(world, job)).next_at
    assert next_at == START_AT + 10 * SECOND_US
    await world.runs.cancel(job.tenant, RunKey(job.id, next_at))
    assert (await status(world, job)).next_at == START_AT + 20 * SECOND_US


async def test_a_run_that_jitter_holds_back_is_still_to_come(world: World) -> None:
    job, _ = await working(world, jitter_us=5 * SECOND_US)
    [first, *_] = reversed(await world.runs.history(job))
    assert first.due_at > first.scheduled_at
    world.go_to(first.scheduled_at)
    assert (await status(world, job)).next_at == first.scheduled_at


async def test_a_run_beyond_what_is_planned_is_in_history_and_can_be_read(world: World) -> None:
    job = await world.create(every(3600))
    [coming] = await world.runs.history(job)
    assert coming.state is State.PENDING
    assert await world.runs.get(job.tenant, RunKey(job.id, coming.scheduled_at)) == coming
    with pytest.raises(NotFound):
        await world.runs.get(job.tenant, RunKey(job.id, coming.scheduled_at + 1))
