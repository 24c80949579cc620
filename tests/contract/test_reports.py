"""Reports on every store: what ends an attempt does so once, whoever else is at it, and progress is nobody's wait."""

import asyncio
from typing import Any

import pytest

from hourhand.core.identity import RunKey, format_run_id
from hourhand.core.instant import DAY_US, MINUTE_US, SECOND_US
from hourhand.core.lifecycle import Event, Phase, State
from hourhand.core.model import AfterTiming, Job, Overlap, Retry
from hourhand.core.report import Report, ReportOutcome, report_token
from hourhand.core.run import ClaimedRun, ProgressNote, RunView
from hourhand.errors import Conflict, TooLate, WrongToken
from hourhand.services.reports import Receipt, Reports
from hourhand.services.sweeper import Sweeper
from hourhand.telemetry import Telemetry
from tests.contract.builders import every, once, outcome, spec
from tests.contract.checker import assert_sound
from tests.contract.harness import START_AT
from tests.contract.scene import Scene, reason

OK, BAD, FAR = ReportOutcome.SUCCEEDED, ReportOutcome.FAILED, ReportOutcome.PROGRESS
ONCE_MORE = Retry(max=1, first_us=SECOND_US)


async def accepted(scene: Scene, **fields: Any) -> tuple[Job, ClaimedRun]:
    """A run whose target answered 202."""
    job, run = await executing(scene, **fields)
    await scene.finish(run, Event.REPORT_LATER)
    return job, run


async def executing(scene: Scene, **fields: Any) -> tuple[Job, ClaimedRun]:
    job = await scene.create(spec(once(scene.now), timeout_us=MINUTE_US, **fields))
    [run] = await scene.take(await scene.worker())
    return job, run


async def report(scene: Scene, run: ClaimedRun, what: ReportOutcome = OK, **fields: Any) -> Receipt:
    attempt = fields.pop("attempt", run.fence)
    key = await scene.store.report_key(run.job_id)
    assert key is not None
    token = report_token(key, run.run_id, attempt)
    told = Report(attempt=attempt, outcome=what, **fields)
    return await Reports(store=scene.store).take(run.key, token, told)


async def seen(scene: Scene, job: Job, run: ClaimedRun) -> RunView:
    return await scene.view(job, run.scheduled_at)


async def sweep(scene: Scene) -> None:
    await Sweeper(store=scene.store, keep_us=DAY_US, dead_keep_us=DAY_US, telemetry=Telemetry()).rescue(
        scene.now
    )


def note(run: ClaimedRun, fraction: float = 0.4, **fields: Any) -> ProgressNote:
    at = {"job_id": run.job_id, "scheduled_at": run.scheduled_at, "slot": run.slot, "fence": run.fence}
    return ProgressNote(**{**at, "fraction": fraction, **fields})


# --- outcomes


async def test_what_its_target_has_accepted_cannot_be_given_back(scene: Scene) -> None:
    """Found by simulation: a worker that had just let go of a run took it for a claim whose answer was lost."""
    job, run = await accepted(scene)
    release = outcome(run, Event.RELEASE, now_at=scene.now)
    assert await scene.store.settle("", [release]) == [release]
    assert (await seen(scene, job, run)).awaits_report


async def test_a_report_ends_the_run_and_hands_its_slot_on(scene: Scene) -> None:
    job = await scene.create(spec(every(1), overlap=Overlap.QUEUE))
    await scene.plan()
    node = await scene.worker()
    scene.go_to(START_AT + SECOND_US)
    [run] = await scene.take(node, lead_us=0)
    await scene.finish(run, Event.REPORT_LATER)
    scene.pass_time(1)
    assert await scene.take(node, lead_us=0) == [], "its slot is held until it is reported"
    view = await seen(scene, job, run)
    assert (view.state, view.awaits_report, view.worker) == (State.RUNNING, True, None)
    assert view.deadline_at == run.deadline_at
    assert await report(scene, run, result={"rows": 3}) == Receipt(state=State.SUCCEEDED)
    view = await seen(scene, job, run)
    [attempt] = view.attempts
    assert (view.state, view.awaits_report, view.deadline_at) == (State.SUCCEEDED, False, None)
    assert attempt.detail == {"response": {"value": {"rows": 3}}, "reported": True}
    assert (attempt.started_at, attempt.finished_at) == (run.due_at, scene.now)
    [following] = await scene.take(node, lead_us=0)
    assert following.scheduled_at == run.scheduled_at + SECOND_US
    assert_sound(await scene.tables(), {job.id: 1})


async def test_a_failed_report_is_tried_again_and_then_a_dead_letter(scene: Scene) -> None:
    job, run = await accepted(scene, retry=ONCE_MORE)
    receipt = await report(scene, run, BAD, error="no disk")
    assert (receipt.state, receipt.due_at) == (State.RETRYING, (await seen(scene, job, run)).due_at)
    assert scene.now < (receipt.due_at or 0) <= scene.now + SECOND_US
    scene.pass_time(1)
    [again] = await scene.take(await scene.worker())
    assert (again.fence, again.tries) == (2, 1)
    await scene.finish(again, Event.REPORT_LATER)
    assert (await report(scene, again, BAD, error="no disk")).state is State.FAILED
    view = await seen(scene, job, run)
    assert [(one.state, one.detail) for one in view.attempts] == [
        (State.RETRYING, {"error": "no disk", "reported": True}),
        (State.FAILED, {"error": "no disk", "reported": True}),
    ]
    [letter] = (await scene.tables()).dead
    assert letter.job_id == job.id


async def test_what_must_not_be_tried_again_is_not(scene: Scene) -> None:
    job, run = await accepted(scene, retry=ONCE_MORE)
    assert (await report(scene, run, BAD, error="bad data", retryable=False)).state is State.FAILED
    assert (await seen(scene, job, run)).state is State.FAILED


async def test_a_report_may_come_before_the_answer_is_committed(scene: Scene) -> None:
    for what, state in ((OK, State.SUCCEEDED), (BAD, State.RETRYING)):
        job, run = await executing(scene, retry=ONCE_MORE)
        assert (await report(scene, run, what)).state is state
        before = await scene.tables()
        for event in (Event.REPORT_LATER, Event.SUCCEED, Event.RETRY):
            late = outcome(run, event, now_at=scene.now, due_at=scene.now)
            assert await scene.settle(late) == [late]
        assert await scene.tables() == before
        await scene.delete(job)


# --- repeats, conflicts, lateness


@pytest.mark.parametrize("what", [OK, BAD])
async def test_the_same_report_again_changes_nothing_another_is_refused(
    scene: Scene, what: ReportOutcome
) -> None:
    _, run = await accepted(scene, retry=ONCE_MORE)
    first = await report(scene, run, what)
    before = await scene.tables()
    again = await report(scene, run, what)
    assert (again.state, again.repeated) == (first.state, True)
    others: list[tuple[ReportOutcome, dict[str, Any]]] = [
        (BAD if what is OK else OK, {}),
        (FAR, {"fraction": 0.5}),
        (OK, {"result": 1}),
        (BAD, {"error": "other"}),
        (BAD, {"retryable": False}),
    ]
    for other, fields in others:
        with pytest.raises(Conflict):
            await report(scene, run, other, **fields)
    assert await scene.tables() == before


async def test_a_report_on_an_attempt_that_was_followed_by_another_is_stale(scene: Scene) -> None:
    job, run = await accepted(scene, retry=ONCE_MORE)
    await report(scene, run, BAD)
    scene.pass_time(1)
    [again] = await scene.take(await scene.worker())
    before = await scene.tables()
    assert (await report(scene, run, BAD)).repeated, "the answer to it may have been lost"
    with pytest.raises(Conflict):
        await report(scene, run, OK)
    with pytest.raises(Conflict):
        await report(scene, run, OK, attempt=3)
    assert await scene.tables() == before
    assert (await report(scene, again)).state is State.SUCCEEDED
    assert (await seen(scene, job, run)).state is State.SUCCEEDED


@pytest.mark.parametrize("swept", [False, True])
async def test_past_the_deadline_it_is_too_late(scene: Scene, swept: bool) -> None:
    job, run = await accepted(scene, retry=ONCE_MORE)
    scene.pass_time(60)
    if swept:
        await sweep(scene)
        view = await seen(scene, job, run)
        assert (view.state, view.tries) == (State.RETRYING, 1)
        [attempt] = view.attempts
        assert attempt.detail == {"error": "no report within its timeout of 1m", "unreported": True}
        assert attempt.started_at == run.due_at
    before = await scene.tables()
    for what in ReportOutcome:
        with pytest.raises(TooLate):
            await report(scene, run, what)
    assert await scene.tables() == before


async def test_only_the_attempts_own_token_will_do(scene: Scene) -> None:
    _, run = await accepted(scene)
    _, other = await accepted(scene)
    key = await scene.store.report_key(run.job_id)
    assert key is not None
    assert len(key) == 32
    told = Report(attempt=1, outcome=OK)
    wrong = [
        "",
        "x" * 43,
        "ü",
        report_token(key, other.run_id, 1),
        report_token(key, run.run_id, 2),
        report_token(bytes(32), run.run_id, 1),
    ]
    reports = Reports(store=scene.store)
    for token in wrong:
        for run_key in (run.key, RunKey(run.job_id, 5), RunKey(7, 5)):
            with pytest.raises(WrongToken):
                await reports.take(run_key, token, told)
    nothing = RunKey(run.job_id, 5)
    with pytest.raises(Conflict):
        await reports.take(nothing, report_token(key, format_run_id(*nothing), 1), told)


# --- races


async def test_of_two_different_reports_at_once_exactly_one_counts(scene: Scene) -> None:
    for _ in range(5):
        job, run = await accepted(scene)
        told = [(OK, {}), (BAD, {"error": "a"}), (BAD, {"error": "b"}), (OK, {"result": 1})]
        ends = await asyncio.gather(
            *(report(scene, run, what, retryable=what is OK, **fields) for what, fields in told),
            return_exceptions=True,
        )
        receipts = [end for end in ends if isinstance(end, Receipt)]
        assert [receipt.repeated for receipt in receipts] == [False]
        assert sum(isinstance(end, Conflict) for end in ends) == 3
        view = await seen(scene, job, run)
        assert (view.state, len(view.attempts)) == (receipts[0].state, 1)


async def test_of_the_same_report_many_times_at_once_one_counts_and_all_are_answered(scene: Scene) -> None:
    job, run = await accepted(scene)
    receipts = await asyncio.gather(*(report(scene, run, result=1) for _ in range(5)))
    assert sorted(receipt.repeated for receipt in receipts) == [False, True, True, True, True]
    assert len((await seen(scene, job, run)).attempts) == 1


async def test_a_report_and_a_cancel_at_once_end_the_run_once(scene: Scene) -> None:
    for _ in range(5):
        job, run = await accepted(scene)
        told, cancelled = await asyncio.gather(
            report(scene, run), scene.store.cancel_run(job.tenant, run.key), return_exceptions=True
        )
        view = await seen(scene, job, run)
        if isinstance(told, Receipt):
            assert view.state is State.SUCCEEDED
            assert isinstance(cancelled, Conflict)
        else:
            assert isinstance(told, Conflict)
            assert view.state is State.CANCELLED
        assert len(view.attempts) == 1
    assert_sound(await scene.tables())


async def test_a_report_and_the_sweep_at_once_end_the_attempt_once(scene: Scene) -> None:
    for _ in range(5):
        job, run = await accepted(scene)
        facts = await scene.store.find_attempt(run.key, run.fence)
        assert facts.open is not None
        scene.pass_time(60)
        ok = outcome(run, now_at=scene.now)  # it was found in time, and is committed as the sweeper comes
        refused, _ = await asyncio.gather(scene.settle(ok), sweep(scene))
        view = await seen(scene, job, run)
        assert len(view.attempts) == 1
        assert view.state is (State.RETRYING if refused else State.SUCCEEDED)
        await scene.delete(job)


async def test_a_report_and_the_acceptance_at_once_end_the_run_once(scene: Scene) -> None:
    for _ in range(5):
        job, run = await executing(scene)
        acceptance = outcome(run, Event.REPORT_LATER, now_at=scene.now)
        told, _ = await asyncio.gather(report(scene, run), scene.settle(acceptance))
        assert told.state is State.SUCCEEDED
        assert (await seen(scene, job, run)).state is State.SUCCEEDED
    assert (await scene.tables()).running == []


# --- cancel, delete


async def test_a_cancel_ends_it_at_once_and_a_later_report_is_refused(scene: Scene) -> None:
    job, run = await accepted(scene)
    view = await scene.store.cancel_run(job.tenant, run.key)
    assert view is not None
    assert view.state is State.CANCELLED
    with pytest.raises(Conflict):
        await report(scene, run)
    assert (await seen(scene, job, run)).state is State.CANCELLED


async def test_a_cancel_that_was_asked_for_before_the_acceptance_ends_it_then(scene: Scene) -> None:
    job, run = await executing(scene)
    await scene.store.cancel_run(job.tenant, run.key)
    await scene.finish(run, Event.REPORT_LATER)
    view = await seen(scene, job, run)
    assert (view.state, reason(view)) == (State.CANCELLED, "asked for")
    assert (await scene.tables()).running == []


async def test_a_deleted_jobs_run_may_still_be_reported(scene: Scene) -> None:
    for what, state in ((OK, State.SUCCEEDED), (BAD, State.FAILED)):
        job, run = await accepted(scene)
        await scene.delete(job)
        facts = await scene.store.find_attempt(run.key, run.fence)
        assert facts.open is not None
        assert (facts.open.deleted, facts.open.run.spec) == (True, job.spec)
        assert (await report(scene, run, what)).state is state
        tables = await scene.tables()
        assert (tables.running, tables.dead) == ([], [])
        assert [line.state for line in tables.history if line.job_id == job.id] == [state]


async def test_a_deleted_jobs_run_that_nobody_reports_ends_with_its_deadline(scene: Scene) -> None:
    job, _ = await accepted(scene)
    await scene.delete(job)
    scene.pass_time(60)
    await sweep(scene)
    tables = await scene.tables()
    assert tables.running == []
    assert [line.state for line in tables.history if line.job_id == job.id] == [State.CANCELLED]


async def test_to_delete_with_cancel_running_ends_it_at_once(scene: Scene) -> None:
    job, run = await accepted(scene)
    await scene.delete(job, cancel_running=True)
    assert (await scene.tables()).running == []
    with pytest.raises(Conflict):
        await report(scene, run)


async def test_a_pause_leaves_it_alone(scene: Scene) -> None:
    job = await scene.create(spec(every(1)))
    await scene.plan()
    scene.go_to(START_AT + SECOND_US)
    [run] = await scene.take(await scene.worker(), lead_us=0)
    await scene.finish(run, Event.REPORT_LATER)
    await scene.pause(job)
    assert [row.phase for row in (await scene.tables()).running] == [Phase.REPORTED]
    assert (await report(scene, run)).state is State.SUCCEEDED


# --- progress


async def test_progress_is_shown_with_the_run_the_latest_only(scene: Scene) -> None:
    job, run = await accepted(scene)
    for fraction, message in ((0.1, "begun"), (0.5, None), (None, "still there \0")):
        scene.pass_time(1)
        receipt = await report(scene, run, FAR, fraction=fraction, message=message)
        assert (receipt.state, receipt.deadline_at) == (State.RUNNING, run.deadline_at)
        told = (await seen(scene, job, run)).progress
        assert told is not None
        words = message and message.replace("\0", "\N{REPLACEMENT CHARACTER}")
        assert (told.fraction, told.message, told.noted_at) == (fraction, words, scene.now)
    [listed] = await scene.runs(job)
    assert listed.progress == told
    await report(scene, run)
    assert (await seen(scene, job, run)).progress is None


async def test_progress_of_an_attempt_is_not_that_of_the_next(scene: Scene) -> None:
    job, run = await accepted(scene, retry=ONCE_MORE)
    await report(scene, run, FAR, fraction=0.9)
    await report(scene, run, BAD)
    assert (await seen(scene, job, run)).progress is None
    assert await scene.store.note_progress([note(run)]) == [note(run)], "between two attempts"
    scene.pass_time(1)
    [again] = await scene.take(await scene.worker())
    assert (await seen(scene, job, run)).progress is None
    assert await scene.store.note_progress([note(run)]) == [note(run)]
    assert await scene.store.note_progress([note(again)]) == []
    told = (await seen(scene, job, run)).progress
    assert told is not None
    assert told.fraction == 0.4


async def test_progress_comes_in_batches_and_what_is_over_is_refused(scene: Scene) -> None:
    runs = [(await executing(scene, concurrency=limit))[1] for limit in (1, None, 3, 1)]
    ended = note(runs[3])
    await scene.finish(runs[3])
    mistaken = note(runs[0], slot=runs[0].slot + 1)
    batch = [note(runs[0], 0.1), note(runs[1], 0.2), note(runs[2], 0.3), note(runs[2], 0.6), ended]
    assert await scene.store.note_progress(batch) == [ended]
    assert await scene.store.note_progress([mistaken]) == [mistaken]
    assert await scene.store.note_progress([]) == []
    shown = [
        view.progress and view.progress.fraction
        for run in runs[:3]
        if (view := await scene.store.get_run("default", run.key))
    ]
    assert shown == [0.1, 0.2, 0.6]


async def test_an_extension_moves_the_deadline_by_at_most_a_timeout_from_now(scene: Scene) -> None:
    job, run = await accepted(scene)
    scene.pass_time(50)
    receipt = await report(scene, run, FAR, extend_us=20 * SECOND_US)
    assert receipt.deadline_at == scene.now + 20 * SECOND_US
    assert (await report(scene, run, FAR, extend_us=SECOND_US)).deadline_at == scene.now + 20 * SECOND_US
    assert (await seen(scene, job, run)).deadline_at == scene.now + 20 * SECOND_US
    scene.pass_time(15)
    assert (await report(scene, run, FAR, extend_us=DAY_US)).deadline_at == scene.now + MINUTE_US
    scene.pass_time(59)
    await sweep(scene)
    assert (await seen(scene, job, run)).state is State.RUNNING
    scene.pass_time(1)
    await sweep(scene)
    assert (await seen(scene, job, run)).state is State.RETRYING


async def test_progress_of_what_is_over_is_dropped_page_by_page(scene: Scene) -> None:
    live = []
    for place in range(9):
        _, run = await executing(scene)
        await scene.store.note_progress([note(run)])
        if place % 3:
            await scene.finish(run)
        else:
            live.append(run)
    assert await progress_rows(scene) == 9
    while await scene.store.purge(0, 0, 4):
        pass
    await scene.store.purge(0, 0, 4)
    assert await progress_rows(scene) == 3
    for run in live:
        view = await scene.store.get_run("default", run.key)
        assert view is not None
        assert view.progress is not None


async def test_the_key_for_tokens_outlives_the_process(scene: Scene) -> None:
    before = await scene.store.report_key(0)
    await scene.harness.reopen()
    assert await scene.store.report_key(0) == before


async def progress_rows(scene: Scene) -> int:
    store: Any = scene.store

    async def count(tx: Any) -> int:
        return len(await tx.all("progress_page", (0, 0, 1_000)))

    return int(await store._engine.read(count))


@pytest.mark.parametrize(("what", "state"), [(OK, State.PENDING), (BAD, State.SKIPPED)])
async def test_a_report_goes_down_the_graph_like_any_outcome(
    scene: Scene, what: ReportOutcome, state: State
) -> None:
    parent = await scene.create(spec(every(60)))
    child = await scene.create(spec(AfterTiming(parents=(parent.id,), wait_us=DAY_US)))
    await scene.plan(90 * SECOND_US)
    scene.go_to(START_AT + MINUTE_US)
    [run] = await scene.take(await scene.worker(), lead_us=0)
    await scene.finish(run, Event.REPORT_LATER)
    await report(scene, run, what, retryable=what is OK)
    while await scene.store.descend(100):
        pass
    assert await scene.state(child, run.scheduled_at) is state
