"""Edits of graphs: what may follow what, and what becomes of runs that wait while it changes."""

import msgspec
import pytest

from hourhand.core.identity import format_job_id
from hourhand.core.instant import SECOND_US
from hourhand.core.lifecycle import State
from hourhand.core.model import AfterTiming, Job, Trigger
from hourhand.errors import Conflict, Invalid
from hourhand.ports.store import JobEdit, Unfit
from tests.contract.builders import draft, every, spec
from tests.contract.graphs import NEXT, T, after, descend, fire, follow, run_level
from tests.contract.harness import START_AT
from tests.contract.scene import Scene

# --- what may follow what


async def test_a_circle_is_refused_by_name(scene: Scene) -> None:
    a = await scene.create(spec(name="a"))
    b = await scene.create(spec(after(a), name="b"))
    c = await scene.create(spec(after(b), name="c"))
    with pytest.raises(Invalid, match="'a' after 'c' after 'b' after 'a'"):
        await scene.change(a, timing=after(c))
    assert (await scene.get(a)).version == 1


async def test_roots_with_other_times_are_refused_by_name(scene: Scene) -> None:
    a = await scene.create(spec(name="a"))
    b = await scene.create(spec(every(90), name="b"))
    [answer] = await scene.store.create_jobs([draft(spec(after(a, b)))])
    assert isinstance(answer, Unfit)
    assert "'a' has every 1m" in answer.why
    assert "'b' has every 1m30s" in answer.why
    child = await follow(scene, a)
    with pytest.raises(Invalid, match="all roots of a graph need the same schedule"):
        await scene.change(child, timing=after(a, b))


async def test_whom_there_is_not_cannot_be_followed(scene: Scene) -> None:
    stranger = await scene.create(tenant="other")
    [answer] = await scene.store.create_jobs([draft(spec(after(stranger)))])
    assert isinstance(answer, Unfit)
    assert format_job_id(stranger.id) in answer.why


async def test_a_batch_may_bring_a_whole_graph(scene: Scene) -> None:
    root = draft(spec(name="root"))
    middle = draft(spec(AfterTiming(parents=(root.id,)), name="middle"))
    last = draft(spec(AfterTiming(parents=tuple(sorted((root.id, middle.id))))))
    lost = draft(spec(AfterTiming(parents=(123456,))))
    answers = await scene.store.create_jobs([root, middle, lost, last])
    assert [type(answer) for answer in answers] == [Job, Job, Unfit, Job]


async def test_a_job_that_others_follow_is_not_deleted(scene: Scene) -> None:
    parent = await scene.create()
    child = await scene.create(spec(after(parent), name="report"))
    with pytest.raises(Conflict, match="'report' would follow nobody"):
        await scene.delete(parent)
    await scene.delete(child)
    await scene.delete(parent)


async def test_one_of_two_roots_cannot_change_its_times_alone(scene: Scene) -> None:
    a, b = await scene.create(spec(name="a")), await scene.create(spec(name="b"))
    await follow(scene, a, b)
    with pytest.raises(Invalid, match="all roots of a graph need the same schedule"):
        await scene.change(a, timing=every(30))
    assert (await scene.get(a)).spec.timing == every(60)


async def test_all_roots_change_their_times_at_once(scene: Scene) -> None:
    a, b = await scene.create(spec(name="a")), await scene.create(spec(name="b", jitter_us=1_000_000))
    child = await follow(scene, a, b)

    def decide(present: Job, now_at: int) -> JobEdit:
        return JobEdit(spec=msgspec.structs.replace(present.spec, timing=every(30)), paused=False)

    changed = await scene.store.change_job(a.tenant, a.id, decide, roots_too=True)
    assert changed is not None
    assert changed.job.id == a.id
    others = await scene.get(b)
    assert (others.spec.timing, others.spec.name, others.version) == (every(30), "b", 2)
    assert others.since == changed.effective_from
    node = await scene.worker()
    await scene.plan(90 * SECOND_US)
    scene.go_to(START_AT + 30 * SECOND_US + 1_000_000)
    assert await run_level(scene, node) == sorted([a.id, b.id])
    assert await run_level(scene, node) == [child.id]


async def test_graph_shows_all_that_hang_together(scene: Scene) -> None:
    a, b = await scene.create(), await scene.create()
    await scene.create()
    c = await follow(scene, a)
    d = await follow(scene, a, b)
    for job in (a, b, c, d):
        assert [one.id for one in await scene.store.graph(job.tenant, job.id)] == sorted(
            [a.id, b.id, c.id, d.id]
        )
    assert await scene.store.graph("other", a.id) == []


# --- edits while runs wait


async def test_whom_a_waiting_run_waits_for_is_fixed(scene: Scene) -> None:
    first, second = await scene.create(), await scene.create()
    child = await follow(scene, first, second)
    node = await scene.worker()
    await fire(scene)
    runs = {run.job_id: run for run in await scene.take(node, lead_us=0)}
    await scene.finish(runs[first.id])
    await descend(scene)
    await scene.change(child, timing=after(first))
    assert (await scene.view(child, T)).waits_for == (second.id,)
    await scene.finish(runs[second.id])
    await descend(scene)
    assert await run_level(scene, node) == [child.id]


async def test_another_parent_counts_for_times_after_the_change(scene: Scene) -> None:
    first, second = await scene.create(), await scene.create()
    child = await follow(scene, first)
    node = await scene.worker()
    await fire(scene)
    await scene.change(child, timing=after(second))
    await run_level(scene, node)
    assert (await scene.view(child, T)).trigger is Trigger.UPSTREAM
    await run_level(scene, node)
    await fire(scene, NEXT)
    runs = {run.job_id: run for run in await scene.take(node, lead_us=0)}
    await scene.finish(runs[first.id])
    await descend(scene)
    assert await scene.state(child, NEXT) is None
    await scene.finish(runs[second.id])
    await descend(scene)
    assert await run_level(scene, node) == [child.id]


async def test_a_parent_that_is_added_later_does_not_make_a_second_run(scene: Scene) -> None:
    first, second = await scene.create(), await scene.create()
    child = await follow(scene, first)
    node = await scene.worker()
    await fire(scene)
    runs = {run.job_id: run for run in await scene.take(node, lead_us=0)}
    await scene.finish(runs[first.id])
    await descend(scene)
    await run_level(scene, node)
    await scene.change(child, timing=after(first, second))
    await scene.finish(runs[second.id])
    await descend(scene)
    assert await run_level(scene, node) == []
    assert len([view for view in await scene.runs(child) if view.scheduled_at == T]) == 1


async def test_a_deleted_child_ends_what_waits(scene: Scene) -> None:
    first, second = await scene.create(), await scene.create()
    child = await follow(scene, first, second)
    await fire(scene)
    runs = {run.job_id: run for run in await scene.take(await scene.worker(), lead_us=0)}
    await scene.finish(runs[first.id])
    await descend(scene)
    await scene.delete(child)
    ends = [line for line in (await scene.tables()).history if line.job_id == child.id]
    assert [(line.scheduled_at, line.state) for line in ends] == [(T, State.CANCELLED)]
    await scene.finish(runs[second.id])
    await descend(scene)
    assert [line for line in (await scene.tables()).history if line.job_id == child.id] == ends


async def test_a_child_that_becomes_a_root_leaves_the_graph(scene: Scene) -> None:
    parent = await scene.create()
    child = await follow(scene, parent)
    await scene.change(child, timing=every(30))
    node = await scene.worker()
    await fire(scene, NEXT)
    await run_level(scene, node)
    await scene.delete(parent)
    assert {view.trigger for view in await scene.runs(child)} == {Trigger.SCHEDULED}
