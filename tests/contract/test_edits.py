"""Edits: what lies before the cut goes on, nothing old lies after it, and versions tell the whole story."""

import pytest

from hourhand.core.identity import class_of_lane, jitter_us
from hourhand.core.instant import DAY_US, HOUR_US, SECOND_US
from hourhand.core.lifecycle import Event, Phase, State
from hourhand.core.model import JobState, Misfire, MisfirePolicy, Priority, Trigger
from hourhand.errors import Conflict
from hourhand.ports.store import JobEdit
from tests.contract.builders import cron, every, once, spec
from tests.contract.checker import assert_covered
from tests.contract.harness import LEAD_US, START_AT
from tests.contract.scene import Scene, reason


def seconds(*offsets: float) -> list[int]:
    return [START_AT + round(offset * SECOND_US) for offset in offsets]


# --- a change of rule


async def test_a_new_rule_holds_from_the_cut_and_the_old_one_until_then(scene: Scene) -> None:
    job = await scene.create(spec(every(1)))
    await scene.plan()
    scene.pass_time(10.5)
    changed = await scene.change(job, timing=every(5))
    assert changed.effective_from == scene.now + LEAD_US
    assert changed.job.since == changed.effective_from
    await scene.plan()
    found = await scene.planned(job)
    assert [at for at in found if at <= changed.effective_from] == seconds(*range(1, 13))
    assert [at for at in found if at > changed.effective_from] == seconds(*range(15, 71, 5))


async def test_a_new_rule_is_planned_as_far_as_its_clock_is(scene: Scene) -> None:
    other = await scene.create(spec(every(5)))
    job = await scene.create(spec(every(60)), id=other.id + 64 * 1_000)
    job = await scene.twin(other, timing=every(60))
    await scene.plan()
    changed = await scene.change(job, timing=every(5))
    assert await scene.planned(job) == [
        at for at in await scene.planned(other) if at > changed.effective_from
    ]


async def test_the_cut_lies_after_what_a_worker_holds(scene: Scene) -> None:
    job = await scene.create(spec(every(1)))
    await scene.plan()
    far_ahead = await scene.claim(await scene.worker(), lead_us=5 * SECOND_US)
    assert [run.scheduled_at for run in far_ahead.runs] == seconds(1)
    await scene.finish(far_ahead.runs)
    [third] = (await scene.claim(await scene.worker(), 1, lead_us=30 * SECOND_US)).runs
    assert third.scheduled_at == START_AT + 2 * SECOND_US
    for _ in range(3):
        await scene.finish(third)
        [third] = (await scene.claim(await scene.worker(), 1, lead_us=30 * SECOND_US)).runs
    assert third.scheduled_at == START_AT + 5 * SECOND_US
    changed = await scene.change(job, timing=every(7))
    assert changed.effective_from == third.scheduled_at


async def test_an_edit_right_after_an_edit_keeps_the_first_ones_promise(scene: Scene) -> None:
    job = await scene.create(spec(every(1)))
    await scene.plan()
    first = await scene.change(job, timing=every(3))
    scene.pass_time(0.5)
    second = await scene.change(job, timing=every(1))
    assert second.effective_from == scene.now + LEAD_US > first.effective_from
    await scene.plan()
    await _assert_all_covered(scene, job)


async def test_a_repeated_pause_says_when_the_first_takes_effect(scene: Scene) -> None:
    """Whoever asks again because the answer was lost must not be told that it holds already."""
    job = await scene.create(spec(every(1)))
    await scene.plan()
    first = await scene.pause(job)
    scene.pass_time(0.5)
    again = await scene.pause(job)
    assert again.effective_from == first.effective_from
    assert max(await scene.planned(job)) == first.effective_from


async def test_a_cut_never_lies_before_an_earlier_one(scene: Scene) -> None:
    """Not even when the store's time goes back in between."""
    job = await scene.create(spec(every(1)))
    await scene.plan()
    scene.pass_time(50)
    first = await scene.change(job, timing=every(2))
    scene.go_to(START_AT + 5 * SECOND_US)
    second = await scene.change(job, timing=every(3))
    assert second.effective_from == first.effective_from
    third = await scene.pause(job)
    assert third.effective_from == first.effective_from
    edges = [version.from_at for version in await scene.store.versions("default", job.id)]
    assert edges == sorted(edges)
    assert max(await scene.planned(job)) == first.effective_from


async def test_a_rule_changed_before_its_clock_was_ever_planned_loses_nothing(scene: Scene) -> None:
    """The times up to the cut are the old version's, also when nobody has planned them yet."""
    job = await scene.create(spec(every(1)))
    changed = await scene.change(job, timing=every(30))
    assert await scene.planned(job) == seconds(1, 2)
    await scene.plan()
    assert [at for at in await scene.planned(job) if at <= changed.effective_from] == seconds(1, 2)
    await _assert_all_covered(scene, job)


@pytest.mark.parametrize("policy", list(MisfirePolicy))
@pytest.mark.parametrize("way", ["rule", "pause", "delete", "end"])
async def test_leaving_a_clock_that_is_behind_leaves_no_time_unaccounted_for(
    scene: Scene, policy: MisfirePolicy, way: str
) -> None:
    misfire = Misfire(policy=policy, grace_us=30 * SECOND_US, limit=5)
    job = await scene.create(spec(every(10), misfire=misfire, ends_at=START_AT + HOUR_US + 5 * SECOND_US))
    await scene.plan()
    scene.pass_time(3_601 if way != "end" else 3_700)
    match way:
        case "rule":
            await scene.change(job, timing=every(3600))
        case "pause":
            await scene.pause(job)
        case "delete":
            await scene.delete(job)
        case "end":
            await scene.tend()
    await scene.plan()
    await _assert_all_covered(scene, job)
    missed = [row for row in (await scene.tables()).planned if row.scheduled_at > START_AT + 60 * SECOND_US]
    background = [row for row in missed if row.trigger is Trigger.CATCH_UP]
    assert len(background) == (5 if policy is MisfirePolicy.CATCH_UP else 0)
    assert len(missed) <= 10


async def test_runs_after_the_cut_never_start(scene: Scene) -> None:
    job = await scene.create(spec(every(1), concurrency=None))
    await scene.plan()
    changed = await scene.change(job, timing=cron("0 0 1 1 *"))
    scene.pass_time(30)
    taken = await scene.take(await scene.worker())
    assert [run.scheduled_at for run in taken] == seconds(1, 2)
    assert max(run.scheduled_at for run in taken) <= changed.effective_from


async def test_going_back_to_the_first_rule_makes_nothing_twice(scene: Scene) -> None:
    job = await scene.create(spec(every(1), concurrency=None))
    await scene.plan()
    node = await scene.worker()
    for timing in (every(2), every(1), every(3), every(1)):
        scene.pass_time(1.25)
        await scene.finish(await scene.take(node))
        await scene.change(job, timing=timing)
        await scene.plan()
    scene.pass_time(30)
    await scene.finish(await scene.take(node))
    lines = [line.scheduled_at for line in (await scene.tables()).history]
    assert len(lines) == len(set(lines)) > 20
    await _assert_all_covered(scene, job)


async def test_a_start_that_is_moved_away_leaves_the_time_until_then_to_nobody(scene: Scene) -> None:
    job = await scene.create(spec(every(1)))
    await scene.plan()
    changed = await scene.change(job, starts_at=START_AT + 30 * SECOND_US)
    assert changed.effective_from == START_AT + LEAD_US
    await scene.plan()
    assert await scene.planned(job) == seconds(1, 2, *range(30, 61))
    await _assert_all_covered(scene, job)


async def test_a_start_far_away_can_be_brought_forward(scene: Scene) -> None:
    job = await scene.create(spec(every(10), starts_at=START_AT + 300 * DAY_US))
    changed = await scene.change(job, starts_at=None)
    assert changed.effective_from == START_AT + LEAD_US
    await scene.plan()
    assert await scene.planned(job) == seconds(10, 20, 30, 40, 50, 60)
    await _assert_all_covered(scene, job)


async def test_an_end_can_be_taken_back(scene: Scene) -> None:
    job = await scene.create(spec(every(10), ends_at=START_AT + 20 * SECOND_US))
    await scene.plan()
    scene.pass_time(100)
    await scene.tend()
    assert (await scene.get(job)).state is JobState.COMPLETED
    await scene.change(job, ends_at=None)
    assert (await scene.get(job)).state is JobState.ACTIVE
    await scene.plan()
    assert [at for at in await scene.planned(job) if at > scene.now] == seconds(*range(110, 161, 10))
    await _assert_all_covered(scene, job)


async def test_a_one_time_job_can_be_moved(scene: Scene) -> None:
    job = await scene.create(spec(once(START_AT + 60 * SECOND_US)))
    await scene.change(job, timing=once(START_AT + 90 * SECOND_US))
    assert await scene.planned(job) == seconds(90)
    await scene.change(job, timing=every(20))
    assert await scene.planned(job) == []
    await scene.plan()
    await scene.change(job, timing=once(START_AT + 50 * SECOND_US))
    assert await scene.planned(job) == seconds(50)
    await _assert_all_covered(scene, job)


async def test_a_one_time_job_that_ran_does_not_run_again(scene: Scene) -> None:
    at = START_AT + SECOND_US
    job = await scene.create(spec(once(at)))
    scene.pass_time(2)
    await scene.finish(await scene.take(await scene.worker()))
    await scene.change(job, ends_at=START_AT + DAY_US)
    await scene.change(job, timing=once(START_AT + 60 * SECOND_US))
    await scene.change(job, timing=once(at))
    assert (await scene.tables()).planned == []
    assert await scene.state(job, at) is State.SUCCEEDED


# --- max_runs


async def test_max_runs_counts_on_over_pause_and_change_of_rule(scene: Scene) -> None:
    job = await scene.create(spec(every(1), max_runs=20))
    await scene.plan()
    scene.pass_time(3.5)
    await scene.pause(job)  # from 5.5 on: five times used
    scene.pass_time(100)
    await scene.plan()
    await scene.resume(job)
    await scene.plan()
    scene.pass_time(5)  # at 108.5; resumed from 105.5 on
    changed = await scene.change(job, timing=every(10))  # from 110.5 on: five more
    assert changed.effective_from == START_AT + round(110.5 * SECOND_US)
    for _ in range(5):
        scene.pass_time(50)
        await scene.plan()
    assert await scene.nominals(job) == seconds(*range(1, 6), *range(106, 111), *range(120, 220, 10))
    await _assert_all_covered(scene, job)


async def test_a_paused_job_with_runs_left_is_not_completed(scene: Scene) -> None:
    job = await scene.create(spec(every(1), max_runs=10))
    await scene.pause(job)
    scene.pass_time(1_000)
    await scene.tend()
    assert (await scene.get(job)).state is JobState.PAUSED
    await scene.resume(job)
    assert (await scene.get(job)).state is JobState.ACTIVE
    await scene.plan()
    assert len(await scene.nominals(job)) == 10


async def test_fewer_max_runs_than_were_used_complete_a_job(scene: Scene) -> None:
    job = await scene.create(spec(every(1)))
    await scene.plan()
    scene.pass_time(10.5)
    await scene.change(job, max_runs=5)
    scene.pass_time(10)
    await scene.plan()
    assert await scene.nominals(job) == seconds(*range(1, 13))
    assert (await scene.get(job)).state is JobState.COMPLETED


# --- payload, target and policies


async def test_a_new_payload_touches_no_planned_run_and_later_claims_read_it(scene: Scene) -> None:
    job = await scene.create(spec(every(1), name="old", concurrency=None))
    await scene.plan()
    before = (await scene.tables()).planned
    node = await scene.worker()
    scene.pass_time(1)
    first = await scene.take(node, lead_us=0)
    changed = await scene.change(job, name="new")
    assert (changed.effective_from, changed.job.version) == (scene.now, 2)
    assert (await scene.tables()).planned == before[1:]
    scene.pass_time(1)
    second = await scene.take(node, lead_us=0)
    assert [(run.version, run.spec.name) for run in first + second] == [(1, "old"), (2, "new")]
    await scene.finish(first + second)
    views = await scene.runs(job)
    ended = {view.scheduled_at: view.version for view in views if view.state is State.SUCCEEDED}
    assert ended == dict(zip(seconds(1, 2), (1, 2), strict=True))


async def test_a_new_misfire_policy_is_the_one_that_judges(scene: Scene) -> None:
    job = await scene.create(spec(every(60)))
    await scene.change(job, misfire=Misfire(policy=MisfirePolicy.SKIP, grace_us=SECOND_US))
    scene.pass_time(600)
    await scene.plan(0)
    assert await scene.planned(job) == seconds(600)
    [gap] = (await scene.tables()).gaps
    assert (gap.policy, gap.grace_us, gap.missed, gap.ran) == ("skip", SECOND_US, 10, 1)


async def test_a_key_can_be_changed_but_not_taken(scene: Scene) -> None:
    await scene.create(spec(key="a"))
    job = await scene.create(spec(key="b"))
    with pytest.raises(Conflict):
        await scene.change(job, key="a")
    assert (await scene.get(job)).version == 1
    await scene.change(job, key="c")
    assert [found.id for found in await scene.store.find_jobs("default", "c", 5)] == [job.id]
    assert await scene.store.find_jobs("default", "b", 5) == []


async def test_an_edit_that_is_refused_changes_nothing(scene: Scene) -> None:
    job = await scene.create(spec(every(1)))
    await scene.plan()
    before = await scene.tables()

    def decide(present: object, now_at: int) -> JobEdit:
        raise Conflict("not like this")

    with pytest.raises(Conflict, match="not like this"):
        await scene.store.change_job("default", job.id, decide)
    assert await scene.tables() == before
    assert await scene.get(job) == job


# --- priority, pool, jitter


async def test_a_new_priority_moves_what_has_not_started(scene: Scene) -> None:
    job = await scene.create(spec(every(10), priority=Priority.LOW))
    await scene.plan()
    await scene.run_now(job)
    await scene.change(job, priority=Priority.HIGH)
    tables = await scene.tables()
    assert {class_of_lane(row.lane) for row in tables.planned} == {Priority.HIGH}
    assert len(tables.planned) == 7
    await scene.plan(120 * SECOND_US)
    assert {class_of_lane(row.lane) for row in (await scene.tables()).planned} == {Priority.HIGH}


async def test_a_run_nobody_serves_follows_its_job_to_another_pool(scene: Scene) -> None:
    """The usual reason to change a pool: its runs are late because nobody takes them."""
    job = await scene.create(spec(every(3_600), pool="nobody"))
    await scene.plan(3_601 * SECOND_US)
    scene.pass_time(3_600 + 1_800)
    assert await scene.take(await scene.worker()) == []
    await scene.change(job, pool="default")
    [run] = await scene.take(await scene.worker())
    assert run.scheduled_at == START_AT + HOUR_US


async def test_waiting_and_retrying_runs_follow_to_another_pool(scene: Scene) -> None:
    job = await scene.create(spec(every(1), pool="old"))
    await scene.plan()
    node = await scene.worker()
    scene.pass_time(1)
    [run] = await scene.take(node, pools=("old",), lead_us=0)
    scene.pass_time(1)
    assert await scene.take(node, pools=("old",), lead_us=0) == []
    await scene.finish(run, Event.RETRY, tries=1, due_at=scene.now)
    await scene.change(job, pool="new")
    assert await scene.take(node, pools=("old",)) == []
    [again] = await scene.take(node, pools=("new",))
    assert (again.scheduled_at, again.fence) == (run.scheduled_at, 2)
    await scene.finish(again)
    [waiting] = await scene.take(node, pools=("new",), lead_us=0)
    assert waiting.scheduled_at == START_AT + 2 * SECOND_US


async def test_background_runs_stay_in_the_background(scene: Scene) -> None:
    catch_up = Misfire(policy=MisfirePolicy.CATCH_UP, grace_us=SECOND_US, limit=3)
    job = await scene.create(spec(every(60), misfire=catch_up, priority=Priority.LOW))
    scene.pass_time(600)
    await scene.plan(0)
    before = sorted(row.scheduled_at for row in (await scene.tables()).planned)
    await scene.change(job, priority=Priority.HIGH, pool="other")
    rows = (await scene.tables()).planned
    assert sorted(row.scheduled_at for row in rows) == before
    assert {class_of_lane(row.lane) for row in rows} == {3}
    assert len(await scene.take(await scene.worker(), pools=("other",))) == 1


async def test_a_new_jitter_moves_due_times(scene: Scene) -> None:
    job = await scene.create(spec(every(20)))
    await scene.plan()
    await scene.change(job, jitter_us=15 * SECOND_US)
    rows = (await scene.tables()).planned
    assert len(rows) == 3
    for row in rows:
        assert row.due_at == row.scheduled_at + jitter_us(job.id, row.scheduled_at, 15 * SECOND_US)
    assert any(row.due_at > row.scheduled_at for row in rows)
    await scene.change(job, jitter_us=0)
    assert all(row.due_at == row.scheduled_at for row in (await scene.tables()).planned)


# --- pause and resume


async def test_a_pause_lets_go_on_what_lies_before_it_and_makes_no_missed_runs(scene: Scene) -> None:
    job = await scene.create(spec(every(1), concurrency=None))
    await scene.plan()
    paused = await scene.pause(job)
    assert paused.job.state is JobState.PAUSED
    assert await scene.planned(job) == seconds(1, 2)
    scene.pass_time(100)
    await scene.plan()
    resumed = await scene.resume(job)
    await scene.plan()
    assert await scene.planned(job) == seconds(1, 2, *range(103, 161))
    assert resumed.effective_from == scene.now + LEAD_US
    assert (await scene.tables()).gaps == []
    await _assert_all_covered(scene, job)


async def test_a_pause_that_ends_by_itself_gives_back_the_times_from_there_on(scene: Scene) -> None:
    """Also the one at the very end of it, and also when somebody looks late."""
    job = await scene.create(spec(every(10), concurrency=None))
    await scene.plan()
    until = START_AT + 40 * SECOND_US
    await scene.pause(job, until=until)
    assert await scene.tend() == until
    scene.go_to(until - 1)
    await scene.tend()
    assert (await scene.get(job)).state is JobState.PAUSED
    scene.go_to(until + 25 * SECOND_US)
    await scene.tend()
    found = await scene.get(job)
    assert (found.state, found.paused_until, found.version) == (JobState.ACTIVE, None, 3)
    await scene.plan(30 * SECOND_US)
    assert await scene.planned(job) == seconds(40, 50, 60, 70, 80, 90)
    await _assert_all_covered(scene, job)


async def test_an_edit_after_the_end_of_a_pause_that_nobody_has_seen_yet_does_not_prolong_it(
    scene: Scene,
) -> None:
    job = await scene.create(spec(every(10)))
    until = START_AT + 40 * SECOND_US
    await scene.pause(job, until=until)
    scene.go_to(until + 25 * SECOND_US)
    await scene.change(job, name="edited", paused_until=until)
    await scene.tend()
    assert (await scene.get(job)).state is JobState.ACTIVE
    await scene.plan(30 * SECOND_US)
    assert await scene.planned(job) == seconds(70, 80, 90)
    await _assert_all_covered(scene, job)


async def test_a_second_pause_changes_only_when_it_ends(scene: Scene) -> None:
    job = await scene.create(spec(every(10)))
    await scene.pause(job, until=START_AT + 40 * SECOND_US)
    await scene.pause(job, until=START_AT + 80 * SECOND_US)
    assert (await scene.get(job)).paused_until == START_AT + 80 * SECOND_US
    scene.pass_time(50)
    assert await scene.tend() == START_AT + 80 * SECOND_US
    assert (await scene.get(job)).state is JobState.PAUSED


@pytest.mark.parametrize("how", ["tended", "resumed", "created so"])
async def test_a_one_time_job_whose_time_passes_while_paused_is_skipped(scene: Scene, how: str) -> None:
    at = START_AT + 60 * SECOND_US
    if how == "created so":
        at = START_AT - 60 * SECOND_US
        job = await scene.create(spec(once(at)), paused=True)
    else:
        job = await scene.create(spec(once(at)))
        await scene.pause(job)
        scene.pass_time(61)
    if how == "resumed":
        await scene.resume(job)
    else:
        await scene.tend()
    assert (await scene.tables()).planned == []
    view = await scene.view(job, at)
    assert (view.state, reason(view)) == (State.SKIPPED, "paused")
    assert (await scene.get(job)).state is JobState.COMPLETED
    await scene.resume(job)
    assert await scene.take(await scene.worker()) == []
    assert len((await scene.tables()).history) == 1


@pytest.mark.parametrize("way", ["delete", "move"])
async def test_a_paused_one_time_job_that_ends_at_its_time_is_skipped_too(scene: Scene, way: str) -> None:
    at = START_AT + 60 * SECOND_US
    job = await scene.create(spec(once(at)), paused=True)
    scene.go_to(at - SECOND_US)
    if way == "delete":
        await scene.delete(job)
    else:
        await scene.change(job, timing=once(at + HOUR_US))
    scene.pass_time(5)
    await _assert_all_covered(scene, job)
    assert [line.state for line in (await scene.tables()).history] == [State.SKIPPED]


async def test_a_one_time_job_resumed_before_its_time_runs(scene: Scene) -> None:
    at = START_AT + 60 * SECOND_US
    job = await scene.create(spec(once(at)))
    await scene.pause(job)
    assert (await scene.tables()).planned == []
    scene.pass_time(59)
    await scene.resume(job)
    [run] = await scene.take(await scene.worker())
    assert run.scheduled_at == at


@pytest.mark.parametrize("late_s", [0, 600])
async def test_a_one_time_job_whose_pause_ends_at_or_before_its_time_runs(scene: Scene, late_s: int) -> None:
    at = START_AT + 60 * SECOND_US
    job = await scene.create(spec(once(at)))
    await scene.pause(job, until=at)
    scene.go_to(at + late_s * SECOND_US)
    await scene.tend()
    [run] = await scene.take(await scene.worker())
    assert (run.job_id, run.scheduled_at) == (job.id, at)


async def test_a_one_time_job_about_to_start_is_not_stopped_by_a_pause(scene: Scene) -> None:
    at = START_AT + SECOND_US
    job = await scene.create(spec(once(at)))
    await scene.pause(job)
    scene.pass_time(5)
    await scene.tend()
    assert len(await scene.take(await scene.worker())) == 1


# --- delete


async def test_a_deleted_job_runs_no_more(scene: Scene) -> None:
    job = await scene.create(spec(every(1)))
    single = await scene.create(spec(once(START_AT + 30 * SECOND_US)))
    await scene.plan()
    await scene.run_now(job)
    deleted = await scene.delete(job)
    await scene.delete(single)
    assert deleted.effective_from == scene.now + LEAD_US
    assert await scene.store.get_job("default", job.id) is None
    assert await scene.store.delete_job("default", job.id, False) is None
    scene.pass_time(60)
    await scene.plan()
    assert await scene.take(await scene.worker()) == []
    tables = await scene.tables()
    assert tables.planned == tables.running == tables.blocked == []
    assert {line.state for line in tables.history} == {State.CANCELLED}
    assert await scene.store.next_clock_at(range(64)) is None
    await _assert_all_covered(scene, job)


async def test_what_a_deleted_job_waits_with_is_cancelled_and_what_runs_finishes(scene: Scene) -> None:
    job = await scene.create(spec(every(1), concurrency=2))
    await scene.plan()
    node = await scene.worker()
    scene.pass_time(4)
    first, second = await scene.take(node, lead_us=0)
    await scene.finish(first, Event.RETRY, tries=1, due_at=scene.now + HOUR_US)
    await scene.delete(job)
    tables = await scene.tables()
    assert [(row.scheduled_at, row.cancel_asked) for row in tables.running] == [(second.scheduled_at, False)]
    assert tables.blocked == []
    await scene.finish(second)
    ends = {line.scheduled_at: line.state for line in (await scene.tables()).history}
    assert ends[first.scheduled_at] is State.CANCELLED
    assert ends[second.scheduled_at] is State.SUCCEEDED


async def test_deleting_can_ask_for_what_runs_to_be_cancelled(scene: Scene) -> None:
    job = await scene.create(spec(every(1)))
    await scene.plan()
    node = await scene.worker()
    scene.pass_time(1)
    [run] = await scene.take(node, lead_us=0)
    await scene.delete(job, cancel_running=True)
    [held] = await scene.store.cancel_asked(node)
    assert (held.job_id, held.fence, held.cancel_asked) == (job.id, run.fence, True)
    await scene.finish(run, Event.CANCEL)
    assert (await scene.tables()).history[-1].state is State.CANCELLED


@pytest.mark.parametrize("event", [Event.RETRY, Event.RELEASE, Event.EXHAUST])
async def test_a_deleted_jobs_run_is_not_tried_again_and_leaves_no_letter(scene: Scene, event: Event) -> None:
    job = await scene.create(spec(every(1)))
    await scene.plan()
    node = await scene.worker()
    scene.pass_time(1)
    [run] = await scene.take(node, lead_us=0)
    await scene.delete(job)
    await scene.finish(run, event, tries=1, due_at=scene.now)
    scene.pass_time(10)
    assert await scene.take(node) == []
    tables = await scene.tables()
    assert tables.running == tables.planned == tables.dead == []
    assert [line.state for line in tables.history if line.scheduled_at == run.scheduled_at][-1] in (
        State.CANCELLED,
        State.FAILED,
    )


# --- versions


async def test_versions_are_kept_and_end_where_the_next_begins(scene: Scene) -> None:
    job = await scene.create(spec(every(10), name="one"))
    scene.pass_time(5)
    renamed = await scene.change(job, name="two")
    scene.pass_time(5)
    moved = await scene.change(job, timing=every(30))
    scene.pass_time(5)
    paused = await scene.pause(job)
    scene.pass_time(5)
    deleted = await scene.delete(job)
    versions = await scene.store.versions("default", job.id)
    edges = [START_AT] + [step.effective_from for step in (renamed, moved, paused, deleted)]
    assert [version.version for version in versions] == [1, 2, 3, 4, 5]
    assert [version.from_at for version in versions] == edges
    assert [version.to_at for version in versions] == [*edges[1:], None]
    assert [version.spec.name for version in versions[:3]] == ["one", "two", "two"]
    assert [version.spec.timing for version in versions[:3]] == [every(10), every(10), every(30)]
    assert [version.paused for version in versions[:4]] == [False, False, False, True]
    assert [version.deleted for version in versions] == [False] * 4 + [True]


async def test_other_tenants_can_neither_see_nor_change_a_job(scene: Scene) -> None:
    job = await scene.create(spec(every(1), key="k", name="n"))
    await scene.change(job, name="m")
    store = scene.store

    def decide(present: object, now_at: int) -> JobEdit:
        raise AssertionError("asked about another tenant's job")

    assert await store.get_job("other", job.id) is None
    assert await store.change_job("other", job.id, decide) is None
    assert await store.delete_job("other", job.id, True) is None
    assert await store.add_run("other", job.id, None) is None
    assert await store.versions("other", job.id) == []
    assert await store.find_jobs("other", "k", 5) == []
    assert await store.find_jobs("other", "m", 5) == []
    assert (await scene.get(job)).version == 2
    await scene.delete(job)
    assert await store.versions("other", job.id) == []


async def test_changing_what_is_not_there_is_told(scene: Scene) -> None:
    def decide(present: object, now_at: int) -> JobEdit:
        raise AssertionError("there is no such job")

    assert await scene.store.change_job("default", 1, decide) is None


async def test_a_held_run_shows_as_pending_until_it_is_due(scene: Scene) -> None:
    job = await scene.create(spec(every(1)))
    await scene.plan()
    [run] = await scene.take(await scene.worker())
    assert await scene.state(job, run.scheduled_at) is State.PENDING
    assert [row.phase for row in (await scene.tables()).running] == [Phase.EXECUTING]
    scene.pass_time(1)
    assert await scene.state(job, run.scheduled_at) is State.RUNNING


async def _assert_all_covered(scene: Scene, job: object) -> None:
    job_id, tenant = job.id, job.tenant  # type: ignore[attr-defined]
    versions = await scene.store.versions(tenant, job_id)
    assert_covered(await scene.tables(), job_id, versions, scene.now)
