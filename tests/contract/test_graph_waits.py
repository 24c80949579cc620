"""Runs that wait for their parents: none waits for ever, nor gives up on one that may still come."""

from hourhand.core.identity import RunKey, format_job_id
from hourhand.core.instant import MINUTE_US
from hourhand.core.lifecycle import State
from tests.contract.graphs import T, after, descend, fire, follow, run_level
from tests.contract.scene import Scene, reason


async def test_a_parent_without_a_run_for_that_time_is_missing(scene: Scene) -> None:
    first, second = await scene.create(), await scene.create()
    child = await follow(scene, first, second)
    await scene.pause(second)
    node = await scene.worker()
    await fire(scene)
    await run_level(scene, node)
    assert await scene.state(child, T) is State.PENDING
    scene.pass_time(30)
    await scene.store.judge_waits(100)
    view = await scene.view(child, T)
    assert view.attempts[-1].detail == {
        "reason": "upstream",
        "parent": format_job_id(second.id),
        "outcome": "MISSING",
    }


async def test_a_parent_whose_clock_is_behind_is_not_missing(scene: Scene) -> None:
    first, second = await scene.create(), await scene.create()
    child = await follow(scene, first, second)
    await fire(scene, T)
    runs = {run.job_id: run for run in await scene.take(await scene.worker(), lead_us=0)}
    await scene.finish(runs[first.id])
    await descend(scene)
    for _ in range(3):
        scene.pass_time(20 * 60)
        await scene.store.judge_waits(100)
        assert await scene.state(child, T) is State.PENDING


async def test_a_parent_that_waits_itself_is_not_missing(scene: Scene) -> None:
    a, b, c = await scene.create(), await scene.create(), await scene.create()
    middle = await follow(scene, b, c)
    child = await follow(scene, a, middle)
    node = await scene.worker()
    await fire(scene)
    runs = {run.job_id: run for run in await scene.take(node, lead_us=0)}
    await scene.finish(runs[a.id])
    await scene.finish(runs[b.id])
    await descend(scene)
    scene.pass_time(60)
    await scene.store.judge_waits(100)
    assert await scene.state(child, T) is State.PENDING
    await scene.finish(runs[c.id])
    await descend(scene)
    await run_level(scene, node)
    await run_level(scene, node)
    assert await scene.state(child, T) is State.SUCCEEDED


async def test_a_missing_parent_further_up_is_missing_all_the_way_down(scene: Scene) -> None:
    a, b = await scene.create(), await scene.create()
    middle = await follow(scene, b)
    child = await follow(scene, a, middle)
    await scene.pause(b)
    node = await scene.worker()
    await fire(scene)
    await run_level(scene, node)
    scene.pass_time(30)
    await scene.store.judge_waits(100)
    assert (await scene.view(child, T)).attempts[-1].detail["outcome"] == "MISSING"  # type: ignore[index]


async def test_a_wait_ends_at_its_deadline(scene: Scene) -> None:
    first, second = await scene.create(), await scene.create()
    child = await follow(scene, first, second, wait_us=5 * MINUTE_US)
    grandchild = await follow(scene, child)
    await fire(scene)
    runs = {run.job_id: run for run in await scene.take(await scene.worker(), lead_us=0)}
    await scene.finish(runs[first.id])
    await descend(scene)
    scene.pass_time(299)
    await scene.store.judge_waits(100)
    assert await scene.state(child, T) is State.PENDING
    scene.pass_time(1)
    await scene.store.judge_waits(100)
    await descend(scene)
    view = await scene.view(child, T)
    assert view.attempts[-1].detail == {"reason": "expired", "waited_for": [format_job_id(second.id)]}
    assert reason(await scene.view(grandchild, T)) == "upstream"
    await scene.finish(runs[second.id])
    await descend(scene)
    assert await scene.state(child, T) is State.SKIPPED


async def test_a_parent_that_ended_before_the_edge_was_made_is_heard_of(scene: Scene) -> None:
    """Its outcome is in history, and nobody tells it again."""
    first, second = await scene.create(), await scene.create()
    child = await follow(scene, first)
    await scene.change(child, timing=after(first, second))
    scene.pass_time(10)
    node = await scene.worker()
    await fire(scene)
    runs = {run.job_id: run for run in await scene.take(node, lead_us=0)}
    await scene.finish(runs[second.id])
    await descend(scene)
    store = scene.store
    view = await scene.view(child, T)
    assert view.waits_for == (first.id,)
    await store.cancel_run(child.tenant, RunKey(child.id, T))
    await scene.finish(runs[first.id])
    await descend(scene)
    assert await scene.state(child, T) is State.CANCELLED
