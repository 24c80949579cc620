"""The last runs of many jobs at once: ended ones, newest kept, oldest first; and what is under way."""

from hourhand.core.lifecycle import Event, State
from hourhand.ports.reading import JobMarks
from tests.contract.builders import every, once, spec
from tests.contract.harness import START_AT
from tests.contract.scene import Scene


async def marks(scene: Scene, *ids: int, limit: int = 30, tenant: str = "default") -> list[JobMarks]:
    return await scene.store.job_marks(tenant, ids, limit)


def states(found: JobMarks) -> list[State]:
    return [mark.state for mark in found.marks]


async def test_each_job_gets_its_last_ends_oldest_first(scene: Scene) -> None:
    ticking = await scene.create(spec(every(1)))
    quiet = await scene.create(spec(once(START_AT + 10**12)))
    node = await scene.worker()
    times = []
    for number in range(5):
        await scene.plan()
        scene.pass_time(1)
        [run] = [one for one in await scene.take(node) if one.due_at <= scene.now]
        times.append(run.scheduled_at)
        await scene.finish(run, Event.SUCCEED if number % 2 else Event.EXHAUST, tries=number % 2)
    whole, nothing = await marks(scene, ticking.id, quiet.id)
    assert [mark.scheduled_at for mark in whole.marks] == times
    assert states(whole) == [State.FAILED, State.SUCCEEDED, State.FAILED, State.SUCCEEDED, State.FAILED]
    assert all(mark.due_at <= (mark.started_at or 0) <= mark.finished_at for mark in whole.marks)
    assert (nothing.job_id, nothing.marks, nothing.running, nothing.retrying) == (quiet.id, (), 0, 0)
    [last] = await marks(scene, ticking.id, limit=2)
    assert [mark.scheduled_at for mark in last.marks] == times[-2:]


async def test_a_run_counts_once_whatever_it_took(scene: Scene) -> None:
    """A retried and a requeued run has one mark, of its last end; while it is under way it is counted so."""
    job = await scene.create(spec(once(START_AT)))
    node = await scene.worker()
    [run] = await scene.take(node)
    assert [(one.running, one.retrying) for one in await marks(scene, job.id)] == [(1, 0)]
    await scene.finish(run, Event.RETRY, tries=1, due_at=scene.now + 1)
    [found] = await marks(scene, job.id)
    assert (found.marks, found.running, found.retrying) == ((), 0, 1)
    scene.pass_time(1)
    [again] = await scene.take(node)
    key = await scene.kill(again)
    assert states((await marks(scene, job.id))[0]) == [State.FAILED]
    assert await scene.store.requeue("default", [key]) == [key]
    [third] = await scene.take(node)
    await scene.finish(third)
    [found] = await marks(scene, job.id)
    assert (states(found), found.running, found.retrying) == ([State.SUCCEEDED], 0, 0)


async def test_jobs_of_others_and_of_nobody_are_left_out(scene: Scene) -> None:
    mine = await scene.create(spec(once(START_AT + 10**12)))
    other = await scene.create(spec(once(START_AT + 10**12)), tenant="other")
    asked = (other.id, mine.id, 12345, mine.id)
    assert [one.job_id for one in await marks(scene, *asked)] == [mine.id]
    assert [one.job_id for one in await marks(scene, *asked, tenant="other")] == [other.id]
    assert await marks(scene) == []
