"""Runs that their target accepted: the worker lets go of them, they outlive it, and progress reaches the store."""

import asyncio
import threading

import msgspec
import pytest

from hourhand.core.instant import MINUTE_US, SECOND_US
from hourhand.core.lifecycle import State
from hourhand.core.model import Delivery, Job, Retry
from hourhand.core.report import Report, ReportOutcome, report_token
from hourhand.core.retry import Outcome
from hourhand.core.run import Progress
from hourhand.errors import Unavailable
from hourhand.ports.target import Result
from hourhand.services.progress import MAX_ATTEMPTS, ProgressBoard
from hourhand.services.reports import Receipt, Reports
from tests.services.world import START_AT, Gate, World, key_of, once, quiet, reason, spec
from tests.targets.runs import python_run

ACCEPTED = Result(outcome=Outcome.ACCEPTED)
MANY = 1_000


async def accept(run: object) -> Result:
    return ACCEPTED


async def report(
    world: World, job: Job, outcome: ReportOutcome = ReportOutcome.SUCCEEDED, attempt: int = 1
) -> Receipt:
    view = await world.view(job, START_AT)
    key = await world.real.report_key(job.id)
    assert key is not None
    token = report_token(key, view.run_id, attempt)
    told = Report(attempt=attempt, outcome=outcome)
    return await Reports(store=world.store).take(key_of(job, START_AT), token, told)


async def test_a_worker_lets_go_of_what_was_accepted(world: World) -> None:
    jobs = [await world.create(once(START_AT)) for _ in range(5)]
    world.target.act = accept
    hand = await world.worker(concurrency=2)
    await hand.work()
    assert hand.worker.in_hand == 0
    assert len(world.target.calls) == 5, "each made room for the next"
    for job in jobs:
        view = await world.view(job, START_AT)
        assert (view.state, view.awaits_report, view.worker) == (State.RUNNING, True, None)
    assert await hand.beat() is not None
    assert hand.worker.in_hand == 0


async def test_many_of_them_hold_no_task_no_place_and_no_timer(world: World) -> None:
    await world.create_all([spec(once(START_AT)) for _ in range(MANY)])
    world.target.act = accept
    hand = await world.worker(concurrency=100)
    tasks = len(asyncio.all_tasks())
    await hand.work()
    assert len(world.target.calls) == MANY
    assert hand.worker.in_hand == 0
    assert len(asyncio.all_tasks()) == tasks
    world.pass_time(1)
    assert hand.worker.tick(world.now) is None, "no timer waits for any of them"
    assert (await world.real.backlog()).running == MANY


async def test_a_report_before_the_acceptance_is_committed_wins_quietly(world: World) -> None:
    job = await world.create(once(START_AT))
    gate = world.target.act = Gate()
    gate.result = ACCEPTED
    hand = await world.worker()
    await hand.claim()
    await quiet()
    assert (await report(world, job)).state is State.SUCCEEDED
    gate.opened.set()
    await quiet()
    await hand.work()
    assert hand.worker.in_hand == 0
    assert hand.settled == []
    assert len((await world.view(job, START_AT)).attempts) == 1


async def test_everything_may_stop_and_start_while_a_report_is_awaited(world: World) -> None:
    job = await world.create(once(START_AT), timeout_us=10 * MINUTE_US)
    world.target.act = accept
    first = world.new_node(joint=True)
    await first.start()
    await quiet()
    await first.stop(0)
    assert (await world.view(job, START_AT)).awaits_report
    world.pass_time(300)
    second = world.new_node(joint=True)
    await second.start()
    await quiet()
    await world.sweep()
    assert (await world.view(job, START_AT)).awaits_report
    assert len(world.target.calls) == 1
    assert (await report(world, job)).state is State.SUCCEEDED
    await second.stop(0)


async def test_what_nobody_reports_is_a_timeout_with_a_try_counted(world: World) -> None:
    job = await world.create(once(START_AT), timeout_us=MINUTE_US, retry=Retry(max=1, first_us=SECOND_US))
    world.target.act = accept
    hand = await world.worker()
    await hand.work()
    world.pass_time(60)
    await world.sweep()
    view = await world.view(job, START_AT)
    assert (view.state, view.tries, reason(view)) == (
        State.RETRYING,
        1,
        "no report within its timeout of 1m",
    )
    assert world.now < view.due_at <= world.now + SECOND_US
    world.pass_time(1)
    await hand.work()
    assert world.target.fences == [1, 2]
    world.pass_time(60)
    await world.sweep()
    assert (await world.state(job, START_AT)) is State.FAILED
    assert await world.is_dead(job, START_AT)


async def test_what_may_happen_only_once_is_not_tried_again(world: World) -> None:
    job = await world.create(once(START_AT), timeout_us=MINUTE_US, delivery=Delivery.AT_MOST_ONCE)
    world.target.act = accept
    await (await world.worker()).work()
    world.pass_time(60)
    await world.sweep()
    assert await world.state(job, START_AT) is State.FAILED


# --- progress of functions


async def test_progress_is_kept_once_and_told(world: World) -> None:
    job = await world.create(once(START_AT))
    board, seen = ProgressBoard(), list[Progress]()
    gate = world.target.act = Gate()
    worker = world.new_worker(board=board, noted=lambda run, progress: seen.append(progress))
    await worker.join()
    await worker.step(world.now)
    await quiet()
    [attempt] = worker._in_hand.values()
    board.tell(attempt.run, 0.1, "begun")
    board.tell(attempt.run, 0.5, "half")
    board.tell(python_run("other"), 0.5, "of another worker")
    world.store.fail("note_progress")
    with pytest.raises(Unavailable):
        await worker.progress.step(world.now)
    assert await worker.progress.step(world.now) is None
    view = await world.view(job, START_AT)
    assert view.progress == Progress(fraction=0.5, message="half", noted_at=world.now)
    assert seen == [view.progress]
    calls = world.store.calls["note_progress"]
    await worker.progress.step(world.now)
    assert world.store.calls["note_progress"] == calls, "nothing new, nothing asked"
    gate.opened.set()
    await quiet()
    await worker.settle_step(world.now)
    board.tell(attempt.run, 0.9, "too late")
    await worker.progress.step(world.now)
    assert (await world.view(job, START_AT)).progress is None


def test_a_board_has_room_for_so_many_and_keeps_the_latest() -> None:
    board = ProgressBoard()
    run = python_run("f")
    for number in range(MAX_ATTEMPTS + 10):
        board.tell(msgspec.structs.replace(run, fence=number), 0.5, "")
    keys = {(run.job_id, run.scheduled_at, number) for number in range(MAX_ATTEMPTS + 10)}
    assert len(board.take(keys, MAX_ATTEMPTS * 2)) == MAX_ATTEMPTS
    threads = [threading.Thread(target=board.tell, args=(run, n / 10, str(n))) for n in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    [last] = board.take({(run.job_id, run.scheduled_at, run.fence)}, 10)
    assert last.message == f"{last.fraction * 10:.0f}"
