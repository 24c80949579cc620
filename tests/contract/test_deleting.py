"""Deleted jobs: they run no more, what waits is cancelled, and what runs finishes unless told otherwise."""

import pytest

from hourhand.core.instant import HOUR_US, SECOND_US
from hourhand.core.lifecycle import Event, State
from tests.contract.builders import every, once, spec
from tests.contract.harness import LEAD_US, START_AT
from tests.contract.scene import Scene


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
    await scene.assert_covered(job)


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
