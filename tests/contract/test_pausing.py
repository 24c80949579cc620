"""Pauses: what lies before one goes on, none makes missed runs, and one may end by itself."""

import pytest

from hourhand.core.instant import HOUR_US, SECOND_US
from hourhand.core.lifecycle import State
from hourhand.core.model import JobState
from tests.contract.builders import every, once, spec
from tests.contract.harness import LEAD_US, START_AT, seconds
from tests.contract.scene import Scene, reason


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
    await scene.assert_covered(job)


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
    await scene.assert_covered(job)


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
    await scene.assert_covered(job)


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
    await scene.assert_covered(job)
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
