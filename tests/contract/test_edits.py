"""Edits: what lies before the cut goes on, nothing old lies after it, and versions tell the whole story."""

import pytest

from hourhand.core.instant import DAY_US, HOUR_US, SECOND_US
from hourhand.core.lifecycle import Phase, State
from hourhand.core.model import JobState, Misfire, MisfirePolicy, Trigger
from hourhand.errors import Outdated
from hourhand.ports.store import JobEdit
from tests.contract.builders import cron, every, once, spec
from tests.contract.harness import LEAD_US, START_AT, seconds
from tests.contract.scene import Scene

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
    await scene.assert_covered(job)


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
    await scene.assert_covered(job)


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
    await scene.assert_covered(job)
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
    await scene.assert_covered(job)


async def test_a_start_that_is_moved_away_leaves_the_time_until_then_to_nobody(scene: Scene) -> None:
    job = await scene.create(spec(every(1)))
    await scene.plan()
    changed = await scene.change(job, starts_at=START_AT + 30 * SECOND_US)
    assert changed.effective_from == START_AT + LEAD_US
    await scene.plan()
    assert await scene.planned(job) == seconds(1, 2, *range(30, 61))
    await scene.assert_covered(job)


async def test_a_start_far_away_can_be_brought_forward(scene: Scene) -> None:
    job = await scene.create(spec(every(10), starts_at=START_AT + 300 * DAY_US))
    changed = await scene.change(job, starts_at=None)
    assert changed.effective_from == START_AT + LEAD_US
    await scene.plan()
    assert await scene.planned(job) == seconds(10, 20, 30, 40, 50, 60)
    await scene.assert_covered(job)


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
    await scene.assert_covered(job)


async def test_a_one_time_job_can_be_moved(scene: Scene) -> None:
    job = await scene.create(spec(once(START_AT + 60 * SECOND_US)))
    await scene.change(job, timing=once(START_AT + 90 * SECOND_US))
    assert await scene.planned(job) == seconds(90)
    await scene.change(job, timing=every(20))
    assert await scene.planned(job) == []
    await scene.plan()
    await scene.change(job, timing=once(START_AT + 50 * SECOND_US))
    assert await scene.planned(job) == seconds(50)
    await scene.assert_covered(job)


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
    await scene.assert_covered(job)


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


# --- what is meant for another version


async def test_what_was_meant_for_another_version_changes_nothing(scene: Scene) -> None:
    job = await scene.create(spec(every(60)))
    first = await scene.store.add_run(job.tenant, job.id, "key", version=1)
    skip = await scene.store.skip_time(job.tenant, job.id, None, None, version=1)
    assert first is not None
    assert skip is not None
    await scene.change(job, name="new")
    before = [await scene.tables(), await scene.store.skips(job.tenant, job.id), await scene.get(job)]
    for verb in (
        lambda version: scene.store.add_run(job.tenant, job.id, None, version=version),
        lambda version: scene.store.skip_time(job.tenant, job.id, None, None, version=version),
        lambda version: scene.store.unskip_time(job.tenant, job.id, None, version=version),
        lambda version: scene.store.delete_job(job.tenant, job.id, False, version=version),
    ):
        for version in (1, 3):
            with pytest.raises(Outdated, match="at version 2 now"):
                await verb(version)
        assert [
            await scene.tables(),
            await scene.store.skips(job.tenant, job.id),
            await scene.get(job),
        ] == before
        # what was carried out once is told again, whatever the job is by then
        assert await scene.store.add_run(job.tenant, job.id, "key", version=1) == first
    assert await scene.store.add_run(job.tenant, job.id, None, version=2) is not None
    assert await scene.store.unskip_time(job.tenant, job.id, None, version=2) is not None
    assert await scene.store.skip_time(job.tenant, job.id, None, None, version=2) is not None
    assert await scene.store.delete_job(job.tenant, job.id, False, version=2) is not None
