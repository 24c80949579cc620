"""Graphs at a glance: some jobs, and how the run of each stands."""

from hourhand.core.identity import RunKey
from hourhand.core.instant import DAY_US, HOUR_US
from hourhand.core.lifecycle import Event, State
from tests.contract.builders import once, spec
from tests.contract.graphs import T, descend, fire, follow
from tests.contract.scene import Scene


async def test_jobs_are_peeked_at_in_order_and_only_those_of_the_tenant(scene: Scene) -> None:
    a = await scene.create(spec(name="a", key="k"))
    b = await follow(scene, a, name="b")
    await scene.pause(b)
    peeked = await scene.store.peek_jobs(a.tenant, [b.id, 12345, a.id])
    assert [(job.id, job.name, job.key, job.paused) for job in peeked] == [
        (b.id, "b", None, True),
        (a.id, "a", "k", False),
    ]
    assert peeked[0].parents == (a.id,)
    assert await scene.store.peek_jobs("another", [a.id]) == []
    assert await scene.store.glance("another", [a.id], None) == []


async def test_a_glance_tells_the_newest_run_and_the_one_of_a_time(scene: Scene) -> None:
    first, second = await scene.create(), await scene.create()
    join = await follow(scene, first, second)
    idle = await scene.create(spec(once(T + DAY_US)))
    ids = [first.id, second.id, join.id, idle.id]
    node = await scene.worker()
    assert await scene.store.glance(first.tenant, ids, None) == []
    await fire(scene)
    runs = {run.job_id: run for run in await scene.take(node, lead_us=0)}
    await scene.finish(runs[first.id])
    await descend(scene)

    async def states(at: int | None) -> dict[int, State]:
        return {one.job_id: one.state for one in await scene.store.glance(first.tenant, ids, at)}

    now = {first.id: State.SUCCEEDED, second.id: State.RUNNING, join.id: State.PENDING}
    assert await states(None) == now
    assert await states(T) == now
    assert await states(T - 1) == {}
    assert await states(T + DAY_US) == {idle.id: State.PENDING}
    await scene.kill(runs[second.id])
    await descend(scene)
    over = {first.id: State.SUCCEEDED, second.id: State.FAILED, join.id: State.SKIPPED}
    assert await states(None) == await states(T) == over
    await scene.store.requeue(second.tenant, [RunKey(second.id, T)], downstream=True)
    again = {**over, second.id: State.PENDING, join.id: State.PENDING}
    assert await states(T) == again
    assert (await states(None))[join.id] is State.PENDING


async def test_a_retried_run_is_told_as_such(scene: Scene) -> None:
    job = await scene.create()
    node = await scene.worker()
    await fire(scene)
    [run] = await scene.take(node, lead_us=0)
    await scene.finish(run, Event.RETRY, tries=1, due_at=scene.now + HOUR_US)
    [glance] = await scene.store.glance(job.tenant, [job.id], None)
    assert (glance.state, glance.scheduled_at) == (State.RETRYING, T)
