"""Cancelling: at once where nobody executes a run, else by asking its worker; what has ended stays ended."""

import pytest

from hourhand.core.identity import RunKey
from hourhand.core.instant import HOUR_US
from hourhand.core.lifecycle import Event, State
from hourhand.core.model import Overlap
from hourhand.errors import Conflict
from tests.contract.builders import every, once, spec
from tests.contract.checker import assert_sound
from tests.contract.harness import START_AT, at
from tests.contract.scene import Scene, reason


async def cancel(scene: Scene, key: RunKey, tenant: str = "default") -> State | None:
    view = await scene.store.cancel_run(tenant, key)
    return None if view is None else view.state


async def test_a_planned_run_is_cancelled_at_once(scene: Scene) -> None:
    job = await scene.create(spec(every(1)))
    await scene.plan()
    assert await cancel(scene, RunKey(job.id, at(3))) is State.CANCELLED
    view = await scene.view(job, at(3))
    assert (view.state, reason(view)) == (State.CANCELLED, "asked for")
    scene.go_to(at(3))
    taken = await scene.take(await scene.worker())
    assert at(3) not in {run.scheduled_at for run in taken}
    await scene.plan()
    assert at(3) not in await scene.planned(job)
    assert_sound(await scene.tables())


async def test_a_waiting_run_is_cancelled_at_once(scene: Scene) -> None:
    job, node, run = await scene.busy(spec(every(1), overlap=Overlap.QUEUE))
    scene.go_to(at(3))
    await scene.take(node, lead_us=0)
    assert await cancel(scene, RunKey(job.id, at(2))) is State.CANCELLED
    await scene.finish(run)
    [following] = await scene.take(node, lead_us=0)
    assert following.scheduled_at == at(3)


@pytest.mark.parametrize("event", [Event.RETRY, Event.RELEASE, Event.REPORT_LATER])
async def test_a_run_in_nobodys_hand_is_cancelled_at_once_and_hands_its_slot_on(
    scene: Scene, event: Event
) -> None:
    job, node, run = await scene.busy(spec(every(1), overlap=Overlap.QUEUE))
    scene.go_to(at(2))
    assert await scene.take(node, lead_us=0) == []
    await scene.finish(run, event, tries=1, due_at=at(1) + HOUR_US)
    assert await cancel(scene, run.key) is State.CANCELLED
    [following] = await scene.take(node, lead_us=0)
    assert following.scheduled_at == at(2)
    assert await scene.settle() == []
    assert_sound(await scene.tables(), {job.id: 1})


async def test_an_executing_run_is_asked_for_and_ends_when_its_worker_says_so(scene: Scene) -> None:
    job = await scene.create(spec(once(START_AT)))
    node = await scene.worker()
    [run] = await scene.take(node)
    assert await cancel(scene, run.key) is State.RUNNING
    assert (await scene.view(job, START_AT)).cancel_asked
    [asked] = await scene.store.cancel_asked(node)
    assert asked.fence == run.fence
    [held] = await scene.store.held_runs(node)
    assert held.cancel_asked
    await scene.finish(run, Event.CANCEL, detail={"reason": "asked for"})
    assert await scene.state(job, START_AT) is State.CANCELLED


@pytest.mark.parametrize("event", [Event.RETRY, Event.RELEASE])
async def test_a_cancelled_run_whose_attempt_ended_otherwise_is_not_tried_again(
    scene: Scene, event: Event
) -> None:
    job = await scene.create(spec(once(START_AT)))
    node = await scene.worker()
    [run] = await scene.take(node)
    await cancel(scene, run.key)
    await scene.finish(run, event, tries=1, due_at=scene.now)
    view = await scene.view(job, START_AT)
    assert view.state is State.CANCELLED
    assert len(view.attempts) == (2 if event is Event.RETRY else 1)
    assert await scene.take(node) == []
    assert_sound(await scene.tables())


@pytest.mark.parametrize("event", [Event.SUCCEED, Event.EXHAUST, Event.SKIP, Event.CANCEL])
async def test_what_has_ended_cannot_be_cancelled(scene: Scene, event: Event) -> None:
    await scene.create(spec(once(START_AT)))
    [run] = await scene.take(await scene.worker())
    await scene.finish(run, event)
    before = await scene.tables()
    with pytest.raises(Conflict):
        await cancel(scene, run.key)
    assert await scene.tables() == before


async def test_what_is_not_there_cannot_be_cancelled(scene: Scene) -> None:
    job = await scene.create(spec(once(START_AT)))
    assert await cancel(scene, RunKey(job.id, START_AT + 1)) is None
    assert await cancel(scene, RunKey(job.id + 1, START_AT)) is None
    assert await cancel(scene, RunKey(job.id, START_AT), tenant="other") is None
    assert await scene.state(job, START_AT) is State.PENDING
