"""How attempts end: retried, given up, timed out, cancelled, left behind."""

import asyncio

import pytest

from hourhand.core.instant import SECOND_US
from hourhand.core.lifecycle import State
from hourhand.core.model import Delivery, PythonTarget, Retry
from hourhand.core.retry import LEAST_WAIT_US, Failure, Outcome, backoff_us
from hourhand.core.run import ClaimedRun
from hourhand.ports.target import Result
from hourhand.services.worker import ABANDON_US
from tests.services.world import FAILED, NOT_SENT, START_AT, Gate, World, key_of, once, reason, spec

UNSERVED = Result(
    outcome=Outcome.FAILED,
    detail={"error": "no such function"},
    failure=Failure(before_sending=True, unserved=True),
)

# --- failures


async def test_a_failed_attempt_is_tried_again_after_its_backoff_under_the_next_fence(world: World) -> None:
    world.target.answers += [FAILED, FAILED]
    job = await world.create(once(START_AT))
    hand = await world.worker()
    await hand.go(START_AT + 60 * SECOND_US)
    first = backoff_us(job.spec, job_id=job.id, scheduled_at=START_AT, tries=1)
    second = backoff_us(job.spec, job_id=job.id, scheduled_at=START_AT, tries=2)
    assert [call.at - START_AT for call in world.target.calls] == [0, first, first + second]
    assert world.target.fences == [1, 2, 3]
    assert {call.key for call in world.target.calls} == {(job.id, START_AT)}
    view = await world.view(job, START_AT)
    assert view.state is State.SUCCEEDED
    assert [row.state for row in view.attempts] == [State.RETRYING, State.RETRYING, State.SUCCEEDED]
    assert view.tries == 2


async def test_what_this_worker_cannot_run_waits_without_a_trace(world: World) -> None:
    world.target.answers += [UNSERVED] * 3
    job = await world.create(once(START_AT), retry=Retry(max=0))
    hand = await world.worker()
    await hand.go(START_AT + SECOND_US)
    view = await world.view(job, START_AT)
    assert (view.state, view.attempts, view.offered_at) == (State.PENDING, (), START_AT + LEAST_WAIT_US)
    await hand.go(START_AT + 60 * SECOND_US)
    assert world.target.fences == [1, 2, 3, 4]
    view = await world.view(job, START_AT)
    [row] = view.attempts
    assert (view.state, row.attempt, row.due_at) == (State.SUCCEEDED, 4, START_AT)
    assert row.started_at == world.target.calls[-1].at
    assert world.telemetry.registry.get_sample_value("hourhand_fire_lag_seconds_count") == 1


async def test_a_run_that_uses_up_its_tries_becomes_a_dead_letter(world: World) -> None:
    world.target.answers += [FAILED] * 10
    job = await world.create(once(START_AT), retry=Retry(max=2, first_us=SECOND_US))
    hand = await world.worker()
    await hand.go(START_AT + 600 * SECOND_US)
    assert world.target.fences == [1, 2, 3]
    assert await world.state(job, START_AT) is State.FAILED
    assert await world.is_dead(job, START_AT)
    assert hand.in_hand == 0


async def test_retry_after_is_honoured_up_to_the_longest_backoff(world: World) -> None:
    def asks(seconds: int) -> Result:
        return Result(outcome=Outcome.FAILED, failure=Failure(retry_after_us=seconds * SECOND_US))

    world.target.answers += [asks(7), asks(10_000)]
    await world.create(once(START_AT), retry=Retry(max_delay_us=30 * SECOND_US))
    hand = await world.worker()
    await hand.go(START_AT + 100 * SECOND_US)
    assert [call.at - START_AT for call in world.target.calls] == [0, 7 * SECOND_US, 37 * SECOND_US]


async def test_what_says_do_not_retry_is_not_retried(world: World) -> None:
    world.target.answers.append(Result(outcome=Outcome.FAILED, failure=Failure(retryable=False)))
    job = await world.create(once(START_AT))
    hand = await world.worker()
    await hand.go(START_AT + 60 * SECOND_US)
    assert len(world.target.calls) == 1
    assert await world.is_dead(job, START_AT)


async def test_a_target_that_breaks_its_contract_and_raises_is_a_failure(world: World) -> None:
    async def broken(run: ClaimedRun) -> Result:
        raise RuntimeError("oh")

    world.target.act = broken
    job = await world.create(once(START_AT), retry=Retry(max=0))
    hand = await world.worker()
    await hand.work()
    assert reason(await world.view(job, START_AT)) == "RuntimeError: oh"
    assert hand.in_hand == 0


@pytest.mark.parametrize("detail", [{"value": object()}, {"text": "\ud800"}, {"value": 1 << 100}])
async def test_a_detail_that_cannot_be_kept_does_not_keep_the_run_in_hand(
    world: World, detail: dict[str, object]
) -> None:
    world.target.answers.append(Result(outcome=Outcome.SUCCEEDED, detail=detail))
    job = await world.create(once(START_AT))
    hand = await world.worker()
    await hand.work()
    assert hand.in_hand == 0
    assert await world.state(job, START_AT) is State.SUCCEEDED


async def test_a_target_that_this_worker_does_not_serve_waits_even_at_most_once(
    world: World,
) -> None:
    job = await world.create(once(START_AT), delivery=Delivery.AT_MOST_ONCE)
    hand = await world.worker()
    hand.worker._targets = {}
    await hand.work()
    view = await world.view(job, START_AT)
    assert (view.state, view.attempts) == (State.PENDING, ())
    hand.worker._targets = {PythonTarget: world.target}
    await hand.go(START_AT + 5 * SECOND_US)
    assert await world.state(job, START_AT) is State.SUCCEEDED


# --- at most once


async def test_at_most_once_is_retried_only_when_nothing_was_sent(world: World) -> None:
    world.target.answers += [NOT_SENT, NOT_SENT, FAILED]
    job = await world.create(once(START_AT), delivery=Delivery.AT_MOST_ONCE, retry=Retry(max=5))
    hand = await world.worker()
    await hand.go(START_AT + 100 * SECOND_US)
    assert len(world.target.calls) == 3
    assert await world.is_dead(job, START_AT)


async def test_at_most_once_is_not_retried_after_a_timeout(world: World) -> None:
    world.target.act = Gate()
    job = await world.create(once(START_AT), delivery=Delivery.AT_MOST_ONCE, timeout_us=SECOND_US)
    hand = await world.worker()
    await hand.go(START_AT + 100 * SECOND_US)
    assert len(world.target.calls) == 1
    assert await world.is_dead(job, START_AT)


# --- deadlines


@pytest.mark.parametrize("timeout_us", [1_000, 100_000, 250_000, SECOND_US, 90 * SECOND_US])
async def test_an_attempt_is_ended_at_its_deadline_and_tried_again(world: World, timeout_us: int) -> None:
    gate = Gate()
    world.target.act = gate
    job = await world.create(once(START_AT), timeout_us=timeout_us)
    hand = await world.worker()
    await hand.go(START_AT + timeout_us - 1)
    assert world.target.cancelled == []
    await hand.go(START_AT + timeout_us)
    assert world.target.cancelled == [(job.id, START_AT)]
    gate.opened.set()
    await hand.go(START_AT + timeout_us + 5 * SECOND_US)
    view = await world.view(job, START_AT)
    assert [row.state for row in view.attempts] == [State.RETRYING, State.SUCCEEDED]
    assert view.attempts[0].finished_at == START_AT + timeout_us
    assert "timeout" in (view.attempts[0].detail or {})["error"]


async def test_a_run_claimed_ahead_has_its_whole_timeout_from_its_due_time(world: World) -> None:
    world.target.act = Gate()
    await world.create(once(START_AT + SECOND_US), timeout_us=SECOND_US)
    hand = await world.worker()
    await hand.go(START_AT + 2 * SECOND_US - 1)
    assert len(world.target.calls) == 1
    assert world.target.cancelled == []
    await hand.go(START_AT + 2 * SECOND_US)
    assert len(world.target.cancelled) == 1


async def test_attempts_that_end_in_time_leave_no_timer_behind(world: World) -> None:
    gate = Gate()
    world.target.act = gate
    await world.create_all([spec(once(START_AT), timeout_us=20 * SECOND_US) for _ in range(5)])
    hand = await world.worker()
    await hand.go(START_AT + SECOND_US)
    gate.opened.set()
    await hand.go(START_AT + 30 * SECOND_US)
    assert await hand.tick() is None
    assert len(world.target.calls) == 5


async def test_an_attempt_that_swallows_its_cancellation_is_left_behind(world: World) -> None:
    stubborn = Gate(swallow=True)
    world.target.act = stubborn
    job = await world.create(once(START_AT), timeout_us=SECOND_US, retry=Retry(max=0))
    hand = await world.worker(concurrency=1)
    await hand.go(START_AT + SECOND_US + ABANDON_US - 1)
    assert hand.in_hand == 1
    assert await world.state(job, START_AT) is State.RUNNING
    await hand.go(START_AT + SECOND_US + ABANDON_US)
    assert hand.in_hand == 0, "its slot is free again"
    assert await world.is_dead(job, START_AT)
    before = await world.view(job, START_AT)
    stubborn.opened.set()
    await hand.go(world.now + SECOND_US)
    assert stubborn.ended == 1
    assert await world.view(job, START_AT) == before, "what it says later is not heard"
    assert len(hand.settled) == 1


async def test_what_was_left_behind_is_settled_once_though_the_store_is_away(world: World) -> None:
    """Nobody may cancel or release a run whose outcome only waits to be committed."""
    world.target.act = stubborn = Gate(swallow=True)
    job = await world.create(once(START_AT), timeout_us=SECOND_US, retry=Retry(max=0))
    hand = await world.worker()
    world.store.fail("settle", times=1_000)
    for at in (START_AT, START_AT + SECOND_US, START_AT + SECOND_US + ABANDON_US):
        world.go_to(at)
        await hand.claim()
        await hand.tick()
        await hand.tick()
    world.store._before.clear()
    await world.runs.cancel(job.tenant, key_of(job, START_AT))
    await hand.cancels()
    await hand.worker.drain(0)
    assert await world.is_dead(job, START_AT)
    view = await world.view(job, START_AT)
    assert [row.state for row in view.attempts] == [State.FAILED]
    assert len(hand.settled) == 1
    stubborn.opened.set()


async def test_a_drain_hurries_what_takes_its_time_to_end(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A command is asked first; whoever drains has no time for that, and asks twice."""
    monkeypatch.setattr("hourhand.services.worker._CUT_SHORT_S", 0.05)
    asked = 0

    async def polite(run: ClaimedRun) -> Result:
        nonlocal asked
        try:
            await asyncio.Event().wait()
        finally:
            asked += 1
            try:
                await asyncio.Event().wait()  # the grace
            finally:
                asked += 1
        raise AssertionError

    world.target.act = polite
    job = await world.create(once(START_AT))
    hand = await world.worker()
    await hand.claim()
    await asyncio.sleep(0)
    await hand.worker.drain(0)
    assert asked == 2
    view = await world.view(job, START_AT)
    assert view.attempts[0].detail == {"error": "its worker was stopped before it ended"}


# --- cancelling


async def test_cancelling_a_run_that_waits_in_hand(world: World) -> None:
    due_at = START_AT + SECOND_US
    job = await world.create(once(due_at))
    hand = await world.worker()
    await hand.claim()
    assert hand.in_hand == 1
    await world.runs.cancel(job.tenant, key_of(job, due_at))
    await hand.cancels()
    await hand.settle()
    assert hand.in_hand == 0
    assert await world.state(job, due_at) is State.CANCELLED
    await hand.go(due_at + SECOND_US)
    assert world.target.calls == []


async def test_cancelling_a_run_before_any_worker_has_it(world: World) -> None:
    due_at = START_AT + 30 * SECOND_US
    job = await world.create(once(due_at))
    hand = await world.worker()
    view = await world.runs.cancel(job.tenant, key_of(job, due_at))
    assert view.state is State.CANCELLED
    await hand.go(due_at + SECOND_US)
    assert world.target.calls == []


async def test_cancelling_while_it_runs(world: World) -> None:
    world.target.act = Gate()
    job = await world.create(once(START_AT))
    hand = await world.worker()
    await hand.claim()
    asked = await world.runs.cancel(job.tenant, key_of(job, START_AT))
    assert (asked.state, asked.cancel_asked) == (State.RUNNING, True)
    await hand.cancels()
    await hand.cancels()  # asking twice ends it once
    await hand.settle()
    view = await world.view(job, START_AT)
    assert view.state is State.CANCELLED
    assert reason(view) == "asked for"
    assert view.tries == 0
    await hand.go(START_AT + 60 * SECOND_US)
    assert len(world.target.calls) == 1


async def test_a_heartbeat_notices_a_cancellation_whose_hint_was_lost(world: World) -> None:
    world.target.act = Gate()
    job = await world.create(once(START_AT))
    hand = await world.worker()
    await hand.claim()
    await world.runs.cancel(job.tenant, key_of(job, START_AT))
    await hand.beat()
    await hand.settle()
    assert await world.state(job, START_AT) is State.CANCELLED


async def test_a_cancelled_attempt_that_does_not_end_is_left_behind_as_cancelled(world: World) -> None:
    world.target.act = stubborn = Gate(swallow=True)
    job = await world.create(once(START_AT))
    hand = await world.worker()
    await hand.claim()
    await world.runs.cancel(job.tenant, key_of(job, START_AT))
    await hand.cancels()
    await hand.go(START_AT + ABANDON_US)
    assert await world.state(job, START_AT) is State.CANCELLED
    assert hand.in_hand == 0
    stubborn.opened.set()
    await hand.go(START_AT + ABANDON_US + SECOND_US)
    assert await world.state(job, START_AT) is State.CANCELLED


async def test_a_run_that_finished_before_the_cancellation_came_is_what_it_is(world: World) -> None:
    job = await world.create(once(START_AT))
    hand = await world.worker()
    await hand.claim()  # it has ended, and is not committed yet
    await world.runs.cancel(job.tenant, key_of(job, START_AT))
    await hand.cancels()
    await hand.settle()
    assert await world.state(job, START_AT) is State.SUCCEEDED
    assert len(hand.settled) == 1


async def test_a_cancelled_run_that_fails_meanwhile_is_not_tried_again(world: World) -> None:
    world.target.answers.append(FAILED)
    job = await world.create(once(START_AT))
    hand = await world.worker()
    await hand.claim()
    await world.runs.cancel(job.tenant, key_of(job, START_AT))
    await hand.settle()
    assert await world.state(job, START_AT) is State.CANCELLED
    await hand.go(START_AT + 60 * SECOND_US)
    assert len(world.target.calls) == 1


async def test_a_cancelled_retry_that_waits_in_hand(world: World) -> None:
    world.target.answers.append(FAILED)
    job = await world.create(once(START_AT))
    hand = await world.worker()
    await hand.work()
    await hand.claim()
    assert hand.in_hand == 1  # its next try is less than the lead away
    assert await world.state(job, START_AT) is State.RETRYING
    await world.runs.cancel(job.tenant, key_of(job, START_AT))
    await hand.cancels()
    await hand.settle()
    assert await world.state(job, START_AT) is State.CANCELLED
    await hand.go(START_AT + 60 * SECOND_US)
    assert len(world.target.calls) == 1


async def test_a_function_that_cancels_itself_counts_as_a_try(world: World) -> None:
    async def gives_up(run: ClaimedRun) -> Result:
        raise asyncio.CancelledError

    world.target.act = gives_up
    job = await world.create(once(START_AT), retry=Retry(max=1))
    hand = await world.worker()
    await hand.go(START_AT + 60 * SECOND_US)
    assert len(world.target.calls) == 2
    assert await world.is_dead(job, START_AT)
