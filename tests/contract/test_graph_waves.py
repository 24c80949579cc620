"""What people send down a graph: runs by hand and dead letters, with what follows them or without."""

from hourhand.core.identity import RunKey
from hourhand.core.lifecycle import Event, State
from hourhand.core.model import Trigger
from tests.contract.builders import spec
from tests.contract.graphs import T, descend, fire, follow, run_level
from tests.contract.scene import Scene


async def test_a_manual_run_goes_down_only_when_asked(scene: Scene) -> None:
    parent = await scene.create()
    child = await follow(scene, parent)
    node = await scene.worker()
    key = await scene.run_now(parent)
    await run_level(scene, node)
    assert await scene.state(child, key.scheduled_at) is None
    sent = await scene.store.add_run(parent.tenant, parent.id, None, downstream=True)
    assert sent is not None
    assert (await scene.view(child, sent.scheduled_at)).waits_for == (parent.id,)
    await run_level(scene, node)
    assert await run_level(scene, node) == [child.id]
    assert (await scene.view(child, sent.scheduled_at)).trigger is Trigger.MANUAL


async def test_a_wave_waits_only_for_those_that_take_part(scene: Scene) -> None:
    a, b = await scene.create(), await scene.create()
    c = await follow(scene, a)
    join = await follow(scene, b, c)
    node = await scene.worker()
    sent = await scene.store.add_run(a.tenant, a.id, None, downstream=True)
    assert sent is not None
    assert await run_level(scene, node) == [a.id]
    assert await run_level(scene, node) == [c.id]
    assert await run_level(scene, node) == [join.id]
    assert await scene.state(b, sent.scheduled_at) is None


async def test_the_same_request_sends_one_wave(scene: Scene) -> None:
    parent = await scene.create()
    child = await follow(scene, parent)
    first = await scene.store.add_run(parent.tenant, parent.id, "key", downstream=True)
    again = await scene.store.add_run(parent.tenant, parent.id, "key", downstream=True)
    assert first == again
    assert len(await scene.runs(child)) == 1


async def test_a_failed_wave_is_skipped_below(scene: Scene) -> None:
    a = await scene.create(spec(name="a"))
    b = await follow(scene, a)
    c = await follow(scene, b)
    sent = await scene.store.add_run(a.tenant, a.id, None, downstream=True)
    assert sent is not None
    await run_level(scene, await scene.worker(), a=Event.EXHAUST)
    assert [await scene.state(job, sent.scheduled_at) for job in (b, c)] == [State.SKIPPED] * 2


async def test_a_letter_sent_back_alone_brings_no_children(scene: Scene) -> None:
    a = await scene.create(spec(name="a"))
    b = await follow(scene, a)
    node = await scene.worker()
    await fire(scene)
    await run_level(scene, node, a=Event.EXHAUST)
    await scene.store.requeue(a.tenant, [RunKey(a.id, T)])
    assert await run_level(scene, node) == [a.id]
    assert await scene.state(b, T) is State.SKIPPED


async def test_a_letter_sent_back_with_what_hangs_on_it(scene: Scene) -> None:
    a, other = await scene.create(spec(name="a")), await scene.create()
    b = await follow(scene, a)
    c = await follow(scene, b, other)
    node = await scene.worker()
    await fire(scene)
    await run_level(scene, node, a=Event.EXHAUST)
    assert [await scene.state(job, T) for job in (b, c)] == [State.SKIPPED] * 2
    await scene.store.requeue(a.tenant, [RunKey(a.id, T)], downstream=True)
    assert (await scene.view(c, T)).waits_for == (b.id,)
    assert await run_level(scene, node) == [a.id]
    assert await run_level(scene, node) == [b.id]
    assert await run_level(scene, node) == [c.id]
    view = await scene.view(c, T)
    assert (view.state, view.trigger) == (State.SUCCEEDED, Trigger.REQUEUED)
    assert [row.state for row in view.attempts] == [State.SKIPPED, State.SUCCEEDED]
    assert sorted({row.attempt for row in view.attempts}) == [row.attempt for row in view.attempts]


async def test_what_fails_again_is_skipped_again(scene: Scene) -> None:
    a = await scene.create(spec(name="a"))
    b = await follow(scene, a)
    node = await scene.worker()
    await fire(scene)
    for _ in range(3):
        await run_level(scene, node, a=Event.EXHAUST)
        assert await scene.state(b, T) is State.SKIPPED
        await scene.store.requeue(a.tenant, [RunKey(a.id, T)], downstream=True)
        assert await scene.state(b, T) is State.PENDING
    await run_level(scene, node)
    assert await run_level(scene, node) == [b.id]


async def test_a_letter_sent_back_while_the_join_still_waits(scene: Scene) -> None:
    a, slow = await scene.create(spec(name="a")), await scene.create()
    join = await follow(scene, a, slow)
    node = await scene.worker()
    await fire(scene)
    runs = {run.job_id: run for run in await scene.take(node, lead_us=0)}
    await scene.kill(runs[a.id])
    await descend(scene)
    await scene.store.requeue(a.tenant, [RunKey(a.id, T)], downstream=True)
    assert (await scene.view(join, T)).waits_for == tuple(sorted((a.id, slow.id)))
    await scene.finish(runs[slow.id])
    await descend(scene)
    assert await run_level(scene, node) == [a.id]
    assert await run_level(scene, node) == [join.id]
