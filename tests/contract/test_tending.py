"""Tending: pauses end, finished jobs leave their clock, one-time jobs leave with their history."""

from hourhand.core.instant import DAY_US, SECOND_US
from hourhand.core.lifecycle import Event, State
from hourhand.core.model import JobState
from hourhand.ports.reading import JobQuery
from hourhand.ports.store import Hint
from tests.contract.builders import every, once, spec
from tests.contract.harness import KEEP_US, START_AT
from tests.contract.scene import Scene


async def test_nothing_to_tend(scene: Scene) -> None:
    await scene.create(spec(every(1)))
    assert await scene.tend() is None


async def test_it_says_when_to_come_again(scene: Scene) -> None:
    await scene.create(spec(every(10), ends_at=START_AT + 500 * SECOND_US))
    paused = await scene.create(spec(every(10)), paused=True, paused_until=START_AT + 300 * SECOND_US)
    await scene.create(spec(once(START_AT + 100 * SECOND_US)), paused=True)
    assert await scene.tend() == START_AT + 100 * SECOND_US
    scene.pass_time(100)
    assert await scene.tend() == START_AT + 300 * SECOND_US
    scene.pass_time(200)
    assert await scene.tend() == START_AT + 500 * SECOND_US + 1
    assert (await scene.get(paused)).state is JobState.ACTIVE
    scene.pass_time(200.000001)
    assert await scene.tend() == START_AT + 100 * SECOND_US + KEEP_US


async def test_a_page_that_is_too_small_goes_on(scene: Scene) -> None:
    for _ in range(10):
        await scene.create(spec(every(10)), paused=True, paused_until=START_AT + SECOND_US)
    scene.pass_time(1)
    for _ in range(4):
        next_at = await scene.store.tend_jobs(3)
    assert next_at is None
    resumed = await scene.store.list_jobs("default", JobQuery(limit=100))
    assert {job.state for job in resumed.jobs} == {JobState.ACTIVE}


async def test_a_job_that_had_its_last_time_leaves_its_clock(scene: Scene) -> None:
    job = await scene.create(spec(every(10), max_runs=2))
    await scene.plan()
    scene.pass_time(100)
    await scene.tend()
    await scene.plan()
    assert await scene.store.next_clock_at(range(64)) is None
    assert (await scene.get(job)).state is JobState.COMPLETED
    await scene.change(job, name="still there")
    await scene.plan()
    assert await scene.store.next_clock_at(range(64)) is None
    assert len(await scene.nominals(job)) == 2


async def test_a_job_that_left_its_clock_can_be_paused_when_time_goes_back(scene: Scene) -> None:
    job = await scene.create(spec(every(10), max_runs=5))
    await scene.plan()
    scene.pass_time(100)
    await scene.tend()
    scene.go_to(START_AT + SECOND_US)
    changed = await scene.pause(job)
    assert await scene.planned(job) == []
    assert changed.effective_from < START_AT + 10 * SECOND_US


async def test_a_completed_one_time_job_leaves_with_its_history(scene: Scene) -> None:
    job = await scene.create(spec(once(START_AT)))
    node = await scene.worker()
    await scene.finish(await scene.take(node))
    assert (await scene.get(job)).state is JobState.COMPLETED
    scene.harness.advance(KEEP_US - 1)
    await scene.tend()
    assert await scene.store.get_job("default", job.id) is not None
    scene.harness.advance(1)
    await scene.tend()
    assert await scene.store.get_job("default", job.id) is None
    assert [version.deleted for version in await scene.store.versions("default", job.id)] == [False, True]


async def test_a_one_time_job_that_still_runs_does_not_leave(scene: Scene) -> None:
    job = await scene.create(spec(once(START_AT)))
    node = await scene.worker()
    [run] = await scene.take(node)
    scene.harness.advance(KEEP_US + DAY_US)
    assert await scene.tend() == scene.now + KEEP_US
    assert await scene.store.get_job("default", job.id) is not None
    await scene.finish(run, Event.RETRY, tries=1, due_at=scene.now)
    assert await scene.state(job, START_AT) is State.RETRYING


async def test_a_resumed_job_wakes_those_who_wait(scene: Scene) -> None:
    await scene.create(spec(every(10)), paused=True, paused_until=START_AT + 30 * SECOND_US)
    hints: set[Hint] = set()
    scene.store.subscribe(hints.add)
    scene.pass_time(45)
    await scene.tend()
    await scene.harness.settled()
    assert {Hint.CLOCKS, Hint.RUNS} <= hints
