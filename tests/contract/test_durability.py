"""What was answered is there after the store is opened again, and earlier nodes are dead."""

import pytest

from hourhand.core.instant import SECOND_US
from hourhand.core.lifecycle import Event
from hourhand.core.model import Overlap
from hourhand.errors import Unavailable
from hourhand.ports.reading import DeadQuery, JobQuery
from hourhand.ports.store import LeaseLost
from tests.contract.builders import every, once, outcome, outcome_of_stray, spec
from tests.contract.harness import START_AT
from tests.contract.scene import Scene


async def test_everything_that_was_answered_is_there_again(scene: Scene) -> None:
    job = await scene.create(spec(every(1), overlap=Overlap.QUEUE, name="one", key="k"))
    await scene.create(spec(every(5)), paused=True, note="later")
    await scene.plan()
    node = await scene.worker()
    scene.pass_time(1)
    await scene.finish(await scene.take(node, lead_us=0))
    scene.pass_time(1)
    await scene.kill((await scene.take(node, lead_us=0))[0])
    scene.pass_time(3)
    await scene.take(node, lead_us=0)
    await scene.change(job, name="two")
    manual = await scene.run_now(job, "key")

    async def everything() -> list[object]:
        store = scene.store
        return [
            await scene.tables(),
            await store.list_jobs("default", JobQuery()),
            await store.versions("default", job.id),
            await store.dead_letters("default", DeadQuery()),
            await store.backlog(),
            await store.next_clock_at(range(64)),
            await scene.runs(job),
        ]

    before = await everything()
    await scene.harness.reopen()
    assert await everything() == before
    assert await scene.run_now(job, "key") == manual


async def test_nodes_of_an_earlier_process_are_dead_and_their_runs_go_on_at_once(scene: Scene) -> None:
    if scene.harness.shared:
        pytest.skip("others may be at work on it; their leases say who is dead")
    await scene.create(spec(once(START_AT)))
    node = await scene.worker()
    [run] = await scene.take(node)
    await scene.harness.reopen()
    with pytest.raises(LeaseLost):
        await scene.store.renew_node(node, "worker", "zombie", SECOND_US)
    with pytest.raises(LeaseLost):
        await scene.claim(node)
    [stray] = await scene.store.stray_runs(0, 10)
    assert stray.worker_lost
    settled = outcome_of_stray(stray, Event.RETRY, now_at=scene.now, tries=1, due_at=scene.now)
    assert await scene.settle(settled) == []
    [again] = await scene.take(await scene.worker())
    assert (again.key, again.fence) == (run.key, 2)
    late = outcome(run, now_at=scene.now)
    assert await scene.settle(late) == [late]


async def test_a_closed_store_says_so(scene: Scene) -> None:
    if not scene.harness.threaded:
        pytest.skip("nobody closes a store in memory and goes on")
    await scene.store.close()
    with pytest.raises(Unavailable):
        await scene.store.ping()
    with pytest.raises(Unavailable):
        await scene.store.nodes()
    await scene.store.close()
