"""Outcomes: each is committed once, under its fence and slot, with one row of history per attempt."""

import msgspec
import pytest

from hourhand.core.instant import SECOND_US
from hourhand.core.lifecycle import Event, Phase, State
from hourhand.core.model import Job
from hourhand.core.run import ClaimedRun
from hourhand.errors import Overloaded
from tests.contract.builders import draft, every, once, outcome, spec
from tests.contract.checker import assert_sound
from tests.contract.harness import START_AT
from tests.contract.scene import Scene


async def claimed(scene: Scene, count: int = 1, **fields: object) -> tuple[int, list[ClaimedRun]]:
    """A worker with so many runs in hand."""
    await scene.store.create_jobs([draft(spec(once(START_AT), **fields)) for _ in range(count)])
    node = await scene.worker()
    runs = await scene.take(node, count)
    assert len(runs) == count
    return node, runs


@pytest.mark.parametrize(
    ("event", "state"),
    [
        (Event.SUCCEED, State.SUCCEEDED),
        (Event.EXHAUST, State.FAILED),
        (Event.SKIP, State.SKIPPED),
        (Event.CANCEL, State.CANCELLED),
    ],
)
async def test_an_end_frees_the_slot_and_is_kept(scene: Scene, event: Event, state: State) -> None:
    node, [run] = await claimed(scene)
    scene.pass_time(3)
    await scene.finish(run, event, tries=2, detail={"error": "x"}, started_at=START_AT + SECOND_US)
    tables = await scene.tables()
    assert (tables.planned, tables.running) == ([], [])
    assert len(tables.dead) == (event is Event.EXHAUST)
    job = await scene.store.get_job("default", run.job_id)
    assert job is not None
    view = await scene.view(job, run.scheduled_at)
    assert (view.state, view.tries, view.fence, view.version, view.worker) == (state, 2, 1, 1, "worker")
    [row] = view.attempts
    assert (row.attempt, row.state, row.due_at) == (1, state, run.due_at)
    assert (row.started_at, row.finished_at) == (START_AT + SECOND_US, START_AT + 3 * SECOND_US)
    assert (row.version, row.worker, row.detail) == (1, "worker", {"error": "x"})
    assert await scene.store.held_runs(node) == []


async def test_a_retry_keeps_the_slot_and_waits(scene: Scene) -> None:
    node, [run] = await claimed(scene)
    due_at = START_AT + 5 * SECOND_US
    await scene.finish(run, Event.RETRY, tries=1, due_at=due_at, detail={"error": "x"})
    [row] = (await scene.tables()).running
    assert (row.phase, row.node_id, row.slot) == (Phase.RETRYING, None, run.slot)
    assert (row.due_at, row.tries, row.fence) == (due_at, 1, 1)
    assert [line.state for line in (await scene.tables()).history] == [State.RETRYING]
    assert await scene.store.held_runs(node) == []
    scene.go_to(due_at)
    [again] = await scene.take(node)
    assert (again.key, again.fence, again.tries, again.due_at) == (run.key, 2, 1, due_at)


async def test_a_release_leaves_no_trace_but_a_fence(scene: Scene) -> None:
    node, [run] = await claimed(scene)
    await scene.finish(run, Event.RELEASE)
    tables = await scene.tables()
    assert tables.history == []
    assert [(row.phase, row.node_id) for row in tables.running] == [(Phase.READY, None)]
    [again] = await scene.take(node)
    assert (again.key, again.fence, again.tries) == (run.key, 2, 0)


async def test_what_nobody_could_run_is_offered_again_later_and_due_as_before(scene: Scene) -> None:
    node, [run] = await claimed(scene)
    job = await scene.store.get_job("default", run.job_id)
    assert job is not None
    offered_at = START_AT + 30 * SECOND_US
    await scene.finish(run, Event.RELEASE, due_at=offered_at, detail={"error": "no such function"})
    assert (await scene.tables()).history == []
    assert await scene.take(node) == []
    view = await scene.view(job, run.scheduled_at)
    assert (view.state, view.due_at, view.offered_at) == (State.PENDING, run.due_at, offered_at)
    scene.go_to(offered_at)
    [again] = await scene.take(node)
    assert (again.key, again.fence, again.tries, again.due_at) == (run.key, 2, 0, run.due_at)
    assert again.deadline_at == offered_at + job.spec.timeout_us
    await scene.finish(again, started_at=offered_at)
    [row] = (await scene.view(job, run.scheduled_at)).attempts
    assert (row.attempt, row.state, row.due_at) == (2, State.SUCCEEDED, run.due_at)
    assert_sound(await scene.tables())


@pytest.mark.parametrize("deleted", [False, True])
async def test_what_ends_while_nobody_could_run_it_says_when_it_was_due(scene: Scene, deleted: bool) -> None:
    _, [run] = await claimed(scene)
    job = await scene.store.get_job("default", run.job_id)
    assert job is not None
    await scene.finish(run, Event.RELEASE, due_at=START_AT + 30 * SECOND_US)
    if deleted:
        await scene.delete(job)
    else:
        await scene.store.cancel_run("default", run.key)
    facts = await scene.store.run_facts("default", run.key)
    assert facts is not None
    assert facts.run is not None
    [row] = facts.run.attempts
    assert (row.state, row.due_at) == (State.CANCELLED, run.due_at)


async def test_a_retry_after_that_is_due_when_it_says(scene: Scene) -> None:
    node, [run] = await claimed(scene)
    await scene.finish(run, Event.RELEASE, due_at=START_AT + 5 * SECOND_US)
    scene.pass_time(5)
    [again] = await scene.take(node)
    await scene.finish(again, Event.RETRY, tries=1, due_at=START_AT + 9 * SECOND_US, detail={"error": "x"})
    scene.pass_time(4)
    [third] = await scene.take(node)
    assert third.due_at == START_AT + 9 * SECOND_US


async def test_an_accepted_run_waits_for_its_report_under_the_same_fence(scene: Scene) -> None:
    node, [run] = await claimed(scene)
    await scene.finish(run, Event.REPORT_LATER)
    [row] = (await scene.tables()).running
    assert (row.phase, row.node_id, row.fence) == (Phase.REPORTED, None, 1)
    assert await scene.store.held_runs(node) == []
    assert await scene.take(node) == []
    await scene.finish(run)
    assert [line.state for line in (await scene.tables()).history] == [State.SUCCEEDED]


async def test_a_report_may_come_with_the_acceptance(scene: Scene) -> None:
    _, [run] = await claimed(scene)
    accepted = outcome(run, Event.REPORT_LATER, now_at=scene.now)
    assert await scene.settle(accepted, outcome(run, now_at=scene.now)) == []
    assert [line.state for line in (await scene.tables()).history] == [State.SUCCEEDED]
    assert (await scene.tables()).running == []


FAR = START_AT + 1_000 * SECOND_US
EVENTS = [
    Event.SUCCEED,
    Event.RETRY,
    Event.EXHAUST,
    Event.SKIP,
    Event.RELEASE,
    Event.REPORT_LATER,
    Event.CANCEL,
]


@pytest.mark.parametrize("wrong", ["old fence", "coming fence", "slot", "time", "job"])
async def test_what_does_not_name_slot_and_fence_is_refused_and_changes_nothing(
    scene: Scene, wrong: str
) -> None:
    node, [run] = await claimed(scene)
    await scene.finish(run, Event.RELEASE)
    [run] = await scene.take(node)
    changes = {
        "old fence": {"fence": run.fence - 1},
        "coming fence": {"fence": run.fence + 1},
        "slot": {"slot": run.slot + 1},
        "time": {"scheduled_at": run.scheduled_at + 1},
        "job": {"job_id": run.job_id + 1},
    }
    before = await scene.tables()
    for event in EVENTS:
        good = outcome(run, event, now_at=scene.now, tries=1, due_at=scene.now)
        bad = msgspec.structs.replace(good, **changes[wrong])
        assert await scene.settle(bad) == [bad]
        assert await scene.tables() == before
    await scene.finish(run)


@pytest.mark.parametrize("first", EVENTS)
async def test_an_outcome_is_committed_once(scene: Scene, first: Event) -> None:
    """Only a report may follow under the same fence, and only an acceptance."""
    for second in EVENTS:
        _, [run] = await claimed(scene)
        batch = [outcome(run, event, now_at=scene.now, tries=1, due_at=FAR) for event in (first, second)]
        assert await scene.settle(batch[0]) == []
        before = await scene.tables()
        refused = await scene.settle(batch[1])
        if first is Event.REPORT_LATER and second is not Event.RELEASE:  # what was accepted has begun
            assert refused == []
        else:
            assert refused == [batch[1]]
            assert await scene.tables() == before
        assert_sound(await scene.tables())
        await scene.store.delete_job("default", run.job_id, False)


@pytest.mark.parametrize("first", EVENTS)
async def test_two_outcomes_of_one_run_in_one_batch_are_as_one_after_the_other(
    scene: Scene, first: Event
) -> None:
    for second in EVENTS:
        _, [run, other] = await claimed(scene, 2)
        batch = [outcome(run, event, now_at=scene.now, tries=1, due_at=FAR) for event in (first, second)]
        refused = await scene.settle(*batch, outcome(other, now_at=scene.now))
        assert [one is batch[1] for one in refused] == ([] if first is Event.REPORT_LATER else [True])
        tables = await scene.tables()
        assert_sound(tables)
        assert [line.state for line in tables.history if line.job_id == other.job_id] == [State.SUCCEEDED]
        await scene.store.delete_job("default", run.job_id, False)


async def test_good_outcomes_are_committed_beside_stale_ones(scene: Scene) -> None:
    node, runs = await claimed(scene, 10)
    await scene.finish(runs[::2], Event.RELEASE)
    again = {run.key: run for run in await scene.take(node)}
    assert len(again) == 5
    settlements = [outcome(run, now_at=scene.now) for run in runs]
    refused = await scene.settle(*settlements)
    assert [id(one) for one in refused] == [id(one) for one in settlements[::2]]
    ended = {(line.job_id, line.attempt) for line in (await scene.tables()).history}
    assert ended == {(run.job_id, 1) for run in runs[1::2]}
    assert await scene.settle(*(outcome(run, now_at=scene.now) for run in again.values())) == []


async def test_a_batch_of_everything_at_once(scene: Scene) -> None:
    _, runs = await claimed(scene, 700)
    settlements = [
        outcome(
            run, EVENTS[n % 7], now_at=scene.now, tries=1, due_at=scene.now + SECOND_US, detail={"error": "e"}
        )
        for n, run in enumerate(runs)
    ]
    assert await scene.settle(*settlements) == []
    tables = await scene.tables()
    assert (len(tables.history), len(tables.dead), len(tables.running)) == (500, 100, 300)
    assert_sound(tables)


async def test_nothing_to_settle_is_no_error(scene: Scene) -> None:
    assert await scene.settle() == []


async def test_history_is_a_row_per_attempt_and_never_rewritten(scene: Scene) -> None:
    node, [run] = await claimed(scene)
    job = await scene.store.get_job("default", run.job_id)
    assert job is not None
    seen: list[object] = []
    for tries in (1, 2, 3):
        await scene.finish(run, Event.RETRY, tries=tries, due_at=scene.now, detail={"error": f"no {tries}"})
        scene.pass_time(1)
        [run] = await scene.take(node)
        lines = (await scene.tables()).history
        assert lines[: len(seen)] == seen
        seen = list(lines)
    await scene.kill(run)
    await scene.store.requeue("default", [run.key])
    [run] = await scene.take(node)
    await scene.finish(run)
    lines = (await scene.tables()).history
    assert lines[:3] == seen
    view = await scene.view(job, run.scheduled_at)
    assert [(row.attempt, row.state) for row in view.attempts] == [
        (1, State.RETRYING),
        (2, State.RETRYING),
        (3, State.RETRYING),
        (4, State.FAILED),
        (5, State.SUCCEEDED),
    ]
    assert view.state is State.SUCCEEDED


async def test_a_worker_may_settle_after_its_lease_as_long_as_nobody_took_over(scene: Scene) -> None:
    await scene.create(spec(once(START_AT)))
    node = await scene.worker(lease_us=SECOND_US)
    [run] = await scene.take(node)
    scene.pass_time(60)
    await scene.finish(run)
    assert await scene.store.stray_runs(0, 10) == []


async def test_a_manual_run_is_due_now_and_lands_where_no_rule_fires(scene: Scene) -> None:
    job = await scene.create(spec(every(1)))
    fractional = await scene.create(spec(every(1, 1)))  # fires one microsecond after each second
    await scene.plan()
    first, second = await scene.run_now(job), await scene.run_now(job)
    third = await scene.run_now(fractional)
    assert first != second
    for key in (first, second, third):
        assert key.scheduled_at % SECOND_US != 0
        assert 0 <= key.scheduled_at - scene.now < 10
    assert third.scheduled_at % SECOND_US != 1
    rows = {row.scheduled_at: row.due_at for row in (await scene.tables()).planned if row.job_id == job.id}
    assert rows[first.scheduled_at] == rows[second.scheduled_at] == scene.now


async def test_the_same_request_key_is_the_same_run(scene: Scene) -> None:
    job, other = await scene.create(), await scene.create()
    first = await scene.run_now(job, "k")
    scene.pass_time(5)
    assert await scene.run_now(job, "k") == first
    assert await scene.run_now(job, "l") != first
    assert (await scene.run_now(other, "k")).job_id == other.id
    await scene.finish(await scene.take(await scene.worker()))
    assert await scene.run_now(job, "k") == first
    assert len([row for row in (await scene.tables()).planned if row.scheduled_at == first.scheduled_at]) == 0


async def test_manual_runs_of_one_job_are_bounded(scene: Scene) -> None:
    job = await scene.create()
    for _ in range(100):
        await scene.run_now(job)
    with pytest.raises(Overloaded):
        await scene.run_now(job)
    assert isinstance(await scene.store.get_job("default", job.id), Job)
    await scene.finish(await scene.take(await scene.worker()))
    await scene.run_now(job)
