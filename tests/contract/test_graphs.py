"""Jobs that follow others: each runs once all of them have succeeded for that time, and no run is made twice."""

import asyncio

import pytest

from hourhand.core.identity import RunKey, format_job_id
from hourhand.core.instant import DAY_US, HOUR_US, SECOND_US
from hourhand.core.lifecycle import Event, State
from hourhand.core.model import Overlap, Trigger
from hourhand.errors import Conflict, Invalid
from hourhand.ports.store import Unfit
from tests.contract.builders import draft, once, spec
from tests.contract.graphs import NEXT, T, after, descend, fire, follow, run_level
from tests.contract.scene import Scene, reason


async def test_a_child_runs_once_its_parent_has_succeeded_for_that_time(scene: Scene) -> None:
    parent = await scene.create()
    child = await follow(scene, parent)
    node = await scene.worker()
    await fire(scene)
    assert await run_level(scene, node) == [parent.id]
    assert (await scene.view(child, T)).trigger is Trigger.UPSTREAM
    assert await run_level(scene, node) == [child.id]
    assert await scene.state(child, T) is State.SUCCEEDED
    assert await run_level(scene, node) == []
    assert [view.scheduled_at for view in await scene.runs(child)] == [T]


async def test_it_does_not_run_before_its_parent_has_ended(scene: Scene) -> None:
    parent = await scene.create()
    child = await follow(scene, parent)
    node = await scene.worker()
    await fire(scene)
    [run] = await scene.take(node, lead_us=0)
    await descend(scene)
    assert await scene.state(child, T) is None
    await scene.finish(run, Event.RETRY, tries=1, due_at=scene.now)
    await descend(scene)
    assert await scene.state(child, T) is None


async def test_a_join_waits_for_all_and_says_for_whom(scene: Scene) -> None:
    first, second = await scene.create(), await scene.create()
    child = await follow(scene, first, second)
    node = await scene.worker()
    await fire(scene)
    runs = {run.job_id: run for run in await scene.take(node, lead_us=0)}
    await scene.finish(runs[first.id])
    await descend(scene)
    view = await scene.view(child, T)
    assert (view.state, view.waits_for, view.skip_asked) == (State.PENDING, (second.id,), False)
    assert view.wait_until == scene.now + DAY_US
    assert await scene.take(node) == []
    await scene.finish(runs[second.id])
    await descend(scene)
    assert await run_level(scene, node) == [child.id]
    assert await scene.state(child, T) is State.SUCCEEDED


@pytest.mark.parametrize(
    ("event", "outcome"),
    [(Event.EXHAUST, "FAILED"), (Event.SKIP, "SKIPPED"), (Event.CANCEL, "CANCELLED")],
)
async def test_what_is_not_success_goes_down_with_its_reason(
    scene: Scene, event: Event, outcome: str
) -> None:
    parent = await scene.create(spec(name="root"))
    child = await follow(scene, parent)
    grandchild = await follow(scene, child)
    await fire(scene)
    assert await run_level(scene, await scene.worker(), root=event) == [parent.id]
    view = await scene.view(child, T)
    assert view.state is State.SKIPPED
    assert view.attempts[-1].detail == {
        "reason": "upstream",
        "parent": format_job_id(parent.id),
        "outcome": outcome,
    }
    below = await scene.view(grandchild, T)
    assert below.attempts[-1].detail == {
        "reason": "upstream",
        "parent": format_job_id(child.id),
        "outcome": "SKIPPED",
    }


async def test_one_level_goes_down_in_one_transaction(scene: Scene) -> None:
    parent = await scene.create(spec(name="root"))
    child = await follow(scene, parent)
    grandchild = await follow(scene, child)
    await fire(scene)
    [run] = await scene.take(await scene.worker(), lead_us=0)
    await scene.kill(run)
    assert await scene.store.descend(100) == 1
    assert await scene.state(child, T) is State.SKIPPED
    assert await scene.state(grandchild, T) is None
    assert await scene.store.descend(100) == 1
    assert await scene.state(grandchild, T) is State.SKIPPED
    assert await scene.store.descend(100) == 0


async def test_a_graph_fires_through_level_by_level_at_one_nominal_time(scene: Scene) -> None:
    a, b = await scene.create(), await scene.create()
    c = await follow(scene, a)
    d = await follow(scene, a, b)
    e = await follow(scene, c, d)
    node = await scene.worker()
    await fire(scene)
    assert await run_level(scene, node) == sorted([a.id, b.id])
    assert await run_level(scene, node) == sorted([c.id, d.id])
    assert await run_level(scene, node) == [e.id]
    for job in (a, b, c, d, e):
        assert [view.scheduled_at for view in await scene.runs(job) if view.state is State.SUCCEEDED] == [T]


async def test_a_cancelled_run_of_a_parent_skips_what_follows(scene: Scene) -> None:
    parent = await scene.create()
    child = await follow(scene, parent)
    await scene.plan(90 * SECOND_US)
    await scene.store.cancel_run(parent.tenant, RunKey(parent.id, T))
    await descend(scene)
    assert reason(await scene.view(child, T)) == "upstream"


async def test_a_run_that_waits_can_be_cancelled_and_what_follows_it_is_skipped(scene: Scene) -> None:
    first, second = await scene.create(), await scene.create()
    child = await follow(scene, first, second)
    grandchild = await follow(scene, child)
    await fire(scene)
    runs = {run.job_id: run for run in await scene.take(await scene.worker(), lead_us=0)}
    await scene.finish(runs[first.id])
    await descend(scene)
    cancelled = await scene.store.cancel_run(child.tenant, RunKey(child.id, T))
    assert cancelled is not None
    assert cancelled.state is State.CANCELLED
    await scene.finish(runs[second.id])
    await descend(scene)
    assert await scene.state(child, T) is State.CANCELLED
    assert reason(await scene.view(grandchild, T)) == "upstream"


async def test_a_paused_child_is_skipped_for_that_reason(scene: Scene) -> None:
    parent = await scene.create()
    child = await follow(scene, parent)
    await scene.pause(child)
    node = await scene.worker()
    await fire(scene)
    await run_level(scene, node)
    assert reason(await scene.view(child, T)) == "paused"
    await scene.resume(child)
    await fire(scene, NEXT)
    await run_level(scene, node)
    assert await run_level(scene, node) == [child.id]


async def test_overlap_policy_counts_for_runs_that_follow_others(scene: Scene) -> None:
    parent = await scene.create()
    child = await follow(scene, parent, overlap=Overlap.SKIP)
    node = await scene.worker()
    await fire(scene)
    await run_level(scene, node)
    [long_run] = await scene.take(node, lead_us=0)
    assert long_run.job_id == child.id
    await fire(scene, NEXT)
    await run_level(scene, node)
    await scene.take(node, lead_us=0)
    assert reason(await scene.view(child, NEXT)) == "overlap"


async def test_times_from_before_it_was_made_are_not_its_own(scene: Scene) -> None:
    parent = await scene.create()
    await fire(scene)
    [run] = await scene.take(await scene.worker(), lead_us=0)
    child = await follow(scene, parent)
    await scene.finish(run)
    await descend(scene)
    assert await scene.state(child, T) is None


async def test_a_one_time_root_brings_its_children(scene: Scene) -> None:
    root = await scene.create(spec(once(T)))
    child = await follow(scene, root)
    node = await scene.worker()
    scene.go_to(T)
    await run_level(scene, node)
    assert await run_level(scene, node) == [child.id]
    assert (await scene.view(child, T)).state is State.SUCCEEDED


async def test_a_misfired_time_skips_what_follows(scene: Scene) -> None:
    parent = await scene.create()
    child = await follow(scene, parent)
    await scene.plan(90 * SECOND_US)
    scene.go_to(T + HOUR_US)
    await scene.plan(90 * SECOND_US)
    await scene.store.judge_late({}, 100)
    await descend(scene)
    assert reason(await scene.view(parent, T)) == "misfire"
    assert reason(await scene.view(child, T)) == "upstream"


# --- side by side


async def test_two_parents_that_end_at_once_make_one_run(scene: Scene) -> None:
    parents = [await scene.create() for _ in range(6)]
    child = await follow(scene, *parents)
    node = await scene.worker()
    await fire(scene)
    runs = await scene.take(node, lead_us=0)

    async def end(index: int) -> None:
        await scene.finish(runs[index])
        await scene.store.descend(1)

    await asyncio.gather(*(end(index) for index in range(len(runs))))
    await descend(scene)
    assert await run_level(scene, node) == [child.id]
    assert await run_level(scene, node) == []


async def test_two_changes_at_once_close_no_circle(scene: Scene) -> None:
    a, b = await scene.create(spec(name="a")), await scene.create(spec(name="b"))
    answers = await asyncio.gather(
        scene.change(a, timing=after(b)), scene.change(b, timing=after(a)), return_exceptions=True
    )
    assert [isinstance(answer, Invalid) for answer in answers].count(True) == 1


async def test_a_parent_deleted_while_a_child_is_made(scene: Scene) -> None:
    for _ in range(10):
        parent = await scene.create()
        created, deleted = await asyncio.gather(
            scene.store.create_jobs([draft(spec(after(parent)))]),
            scene.store.delete_job(parent.tenant, parent.id, False),
            return_exceptions=True,
        )
        assert isinstance(created, list)
        assert isinstance(created[0], Unfit) != isinstance(deleted, Conflict)
