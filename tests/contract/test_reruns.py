"""Reruns: new runs that name the ones which they repeat."""

import pytest

from hourhand.core.identity import RunKey
from hourhand.core.instant import MINUTE_US
from hourhand.core.lifecycle import State
from hourhand.core.model import Trigger
from hourhand.errors import Conflict
from tests.contract.harness import KEEP_US, START_AT
from tests.contract.scene import Scene

AT = START_AT + MINUTE_US


async def test_a_rerun_is_a_new_run_that_names_the_old(scene: Scene) -> None:
    job = await scene.create()
    node = await scene.worker()
    await scene.plan(MINUTE_US + 1)
    scene.pass_time(60)
    [run] = await scene.take(node)
    await scene.finish(run)

    made = await scene.store.rerun(job.tenant, run.key, None)

    assert made is not None
    assert made.scheduled_at not in (AT, scene.now)
    new = await scene.view(job, made.scheduled_at)
    assert (new.state, new.trigger, new.rerun_of) == (State.PENDING, Trigger.RERUN, AT)
    [again] = await scene.take(node)
    assert again.key == made
    await scene.finish(again)
    second = await scene.store.rerun(job.tenant, made, None)
    assert second is not None
    old = await scene.view(job, AT)
    assert (old.state, old.reruns, old.rerun_of) == (State.SUCCEEDED, (made.scheduled_at,), None)
    listed = {view.scheduled_at: view.rerun_of for view in await scene.runs(job)}
    assert listed[second.scheduled_at] == made.scheduled_at
    assert (await scene.view(job, made.scheduled_at)).reruns == (second.scheduled_at,)


async def test_only_what_has_ended_can_be_rerun(scene: Scene) -> None:
    job = await scene.create()
    node = await scene.worker()
    await scene.plan(MINUTE_US + 1)
    for expected in (State.PENDING, State.RUNNING):
        with pytest.raises(Conflict, match=expected):
            await scene.store.rerun(job.tenant, RunKey(job.id, AT), None)
        scene.pass_time(60)
        runs = await scene.take(node) if expected is State.PENDING else []
    assert runs == []
    assert await scene.store.rerun(job.tenant, RunKey(job.id, AT + 1), None) is None
    assert await scene.store.rerun("another", RunKey(job.id, AT), None) is None


async def test_a_dead_letter_can_be_rerun_and_stays_one(scene: Scene) -> None:
    job = await scene.create()
    node = await scene.worker()
    await scene.plan(MINUTE_US + 1)
    scene.pass_time(60)
    [run] = await scene.take(node)
    await scene.kill(run)
    assert await scene.store.rerun(job.tenant, run.key, None) is not None
    assert await scene.state(job, AT) is State.FAILED


async def test_the_same_request_is_the_same_run(scene: Scene) -> None:
    job = await scene.create()
    node = await scene.worker()
    first = await scene.run_now(job, "one")
    await scene.finish(await scene.take(node))
    made = await scene.store.rerun(job.tenant, first, "one")
    assert made is not None
    assert made != first, "the key of another request"
    assert await scene.store.rerun(job.tenant, first, "one") == made
    assert await scene.store.rerun(job.tenant, first, "two") != made


async def test_links_go_with_history(scene: Scene) -> None:
    job = await scene.create()
    node = await scene.worker()
    first = await scene.run_now(job)
    await scene.finish(await scene.take(node))
    made = await scene.store.rerun(job.tenant, first, None)
    assert made is not None
    scene.pass_time(40 * 86_400)
    await scene.store.purge(scene.now - KEEP_US, scene.now - KEEP_US, 100)
    assert (await scene.view(job, made.scheduled_at)).rerun_of is None
