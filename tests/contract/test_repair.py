"""Repair: leases end, their runs are found and go on, forgotten slots are handed on, old rows go."""

import pytest

from hourhand.core.identity import RunKey
from hourhand.core.instant import DAY_US, HOUR_US, MINUTE_US, SECOND_US
from hourhand.core.lifecycle import Event, State
from hourhand.core.model import Overlap
from hourhand.ports.reading import DeadQuery
from hourhand.ports.store import LeaseLost
from tests.contract.builders import draft, every, once, outcome, outcome_of_stray, spec
from tests.contract.checker import assert_sound
from tests.contract.harness import START_AT
from tests.contract.scene import Scene


async def due(scene: Scene, count: int = 1, **fields: object) -> None:
    await scene.store.create_jobs([draft(spec(once(scene.now), **fields)) for _ in range(count)])


# --- nodes


async def test_a_lease_is_prolonged_as_long_as_it_runs(scene: Scene) -> None:
    await scene.store.renew_node(1, "worker", "one", 30 * SECOND_US)
    scene.pass_time(29)
    await scene.store.renew_node(1, "worker", "one", 30 * SECOND_US)
    [node] = await scene.store.nodes()
    assert (node.id, node.kind, node.name) == (1, "worker", "one")
    assert (node.started_at, node.lease_until) == (START_AT, START_AT + 59 * SECOND_US)
    scene.pass_time(30)
    with pytest.raises(LeaseLost):
        await scene.store.renew_node(1, "worker", "one", 30 * SECOND_US)


@pytest.mark.parametrize("how", ["expired", "ended"])
async def test_a_lost_lease_stays_lost(scene: Scene, how: str) -> None:
    """A worker that slept must notice, also after the sweeper has cleaned up behind it."""
    node = await scene.worker(lease_us=30 * SECOND_US)
    if how == "ended":
        await scene.store.end_node(node)
    else:
        scene.pass_time(30)
    for _ in range(3):
        assert await scene.store.stray_runs(0, 10) == []
        with pytest.raises(LeaseLost):
            await scene.store.renew_node(node, "worker", "one", 30 * SECOND_US)
        scene.pass_time(600)


async def test_lost_nodes_are_forgotten_in_the_end(scene: Scene) -> None:
    for _ in range(5):
        await scene.worker(lease_us=SECOND_US)
    scene.pass_time(3 * 86_400)
    live = await scene.worker()
    await scene.store.stray_runs(0, 10)
    assert [node.id for node in await scene.store.nodes()] == [live]


async def test_ending_a_node_that_nobody_knows_is_no_error(scene: Scene) -> None:
    await scene.store.end_node(12345)


# --- strays


@pytest.mark.parametrize("how", ["expired", "ended"])
async def test_the_runs_of_a_lost_node_are_found(scene: Scene, how: str) -> None:
    job = await scene.create(spec(once(START_AT), name="found"))
    node = await scene.worker(lease_us=30 * SECOND_US)
    [run] = await scene.take(node)
    assert await scene.store.stray_runs(0, 10) == []
    if how == "ended":
        await scene.store.end_node(node)
    else:
        scene.pass_time(30)
    [stray] = await scene.store.stray_runs(HOUR_US, 10)
    assert (stray.job_id, stray.slot, stray.scheduled_at, stray.fence) == (
        job.id,
        run.slot,
        START_AT,
        1,
    )
    assert (stray.worker_lost, stray.cancel_asked, stray.worker) == (True, False, f"worker-{node}")
    assert (stray.spec, stray.version, stray.tries) == (job.spec, 1, 0)
    other = await scene.worker()
    settled = outcome_of_stray(stray, Event.RETRY, now_at=scene.now, tries=1, due_at=scene.now)
    assert await scene.settle(settled) == []
    assert await scene.store.stray_runs(HOUR_US, 10) == []
    [again] = await scene.take(other)
    assert (again.key, again.fence, again.tries) == (run.key, 2, 1)
    late = outcome(run, now_at=scene.now)
    assert await scene.settle(late) == [late]
    await scene.finish(again)
    assert_sound(await scene.tables())


async def test_runs_long_past_their_deadline_are_found_on_live_nodes_too(scene: Scene) -> None:
    await due(scene, 1, timeout_us=MINUTE_US)
    node = await scene.worker()
    [run] = await scene.take(node)
    scene.pass_time(70)
    assert await scene.store.stray_runs(10 * SECOND_US, 10) == []
    scene.pass_time(0.000001)
    [stray] = await scene.store.stray_runs(10 * SECOND_US, 10)
    assert (stray.job_id, stray.worker_lost, stray.awaited_since) == (run.job_id, False, None)


async def test_an_accepted_run_is_not_waited_for_longer_than_its_deadline(scene: Scene) -> None:
    await due(scene, 1, timeout_us=MINUTE_US)
    [run] = await scene.take(await scene.worker())
    began_at = scene.now
    await scene.finish(run, Event.REPORT_LATER)
    scene.pass_time(59.999999)
    assert await scene.store.stray_runs(10 * SECOND_US, 10) == []
    scene.pass_time(0.000001)
    [stray] = await scene.store.stray_runs(10 * SECOND_US, 10)
    assert (stray.job_id, stray.worker_lost, stray.awaited_since) == (run.job_id, False, began_at)


async def test_an_accepted_run_outlives_its_worker(scene: Scene) -> None:
    await due(scene, 1, timeout_us=HOUR_US)
    node = await scene.worker(lease_us=30 * SECOND_US)
    [run] = await scene.take(node)
    await scene.finish(run, Event.REPORT_LATER)
    scene.pass_time(600)
    assert await scene.store.stray_runs(0, 10) == []
    scene.pass_time(3_601)
    assert [stray.scheduled_at for stray in await scene.store.stray_runs(0, 10)] == [run.scheduled_at]


async def test_strays_come_page_by_page_from_all_lost_nodes(scene: Scene) -> None:
    await due(scene, 30)
    for _ in range(3):
        node = await scene.worker(lease_us=SECOND_US)
        assert len(await scene.take(node, 10)) == 10
    scene.pass_time(10)
    rescued = 0
    while page := await scene.store.stray_runs(0, 7):
        assert len(page) <= 7
        rescued += len(page)
        settled = [outcome_of_stray(one, Event.CANCEL, now_at=scene.now) for one in page]
        assert await scene.settle(*settled) == []
    assert rescued == 30


async def test_a_stray_says_what_a_decision_needs(scene: Scene) -> None:
    job = await scene.create(spec(once(START_AT)))
    deleted = await scene.create(spec(once(START_AT)))
    node = await scene.worker(lease_us=30 * SECOND_US)
    await scene.take(node)
    await scene.store.cancel_run("default", RunKey(job.id, START_AT))
    await scene.delete(deleted)
    scene.pass_time(60)
    strays = {stray.job_id: stray for stray in await scene.store.stray_runs(0, 10)}
    assert strays[job.id].cancel_asked
    assert strays[deleted.id].spec is None
    for stray in strays.values():
        assert await scene.settle(outcome_of_stray(stray, Event.CANCEL, now_at=scene.now)) == []
    assert {line.state for line in (await scene.tables()).history} == {State.CANCELLED}


# --- slots that nobody handed on


async def test_slots_are_handed_on_only_where_there_is_room(scene: Scene) -> None:
    full = await scene.create(spec(every(1), overlap=Overlap.QUEUE))
    raised = await scene.create(spec(every(1), overlap=Overlap.QUEUE))
    await scene.plan()
    node = await scene.worker()
    scene.pass_time(1)
    assert len(await scene.take(node, lead_us=0)) == 2
    scene.pass_time(3)
    assert await scene.take(node, lead_us=0) == []
    await scene.change(raised, concurrency=2)
    assert await scene.store.hand_on_slots(10) == 1
    assert await scene.store.hand_on_slots(10) == 0
    assert [run.job_id for run in await scene.take(node, lead_us=0)] == [raised.id]
    assert_sound(await scene.tables(), {full.id: 1, raised.id: 2})


# --- old rows


async def test_old_history_goes_from_the_front_a_bounded_number_at_a_time(scene: Scene) -> None:
    if scene.harness.whole_days:
        pytest.skip("history goes by whole days here; see tests/stores/test_postgres_partitions.py")
    node = await scene.worker()
    for _ in range(3):
        await due(scene, 10)
        await scene.finish(await scene.take(node))
        scene.pass_time(100)
    bound = START_AT + 150 * SECOND_US
    assert await scene.store.purge(bound, 0, 7) is True
    assert len((await scene.tables()).history) == 23
    while await scene.store.purge(bound, 0, 7):
        pass
    lines = (await scene.tables()).history
    assert len(lines) == 10
    assert all(line.finished_at >= bound for line in lines)
    assert await scene.store.purge(bound, 0, 7) is False


async def test_old_letters_go_and_young_ones_stay(scene: Scene) -> None:
    node = await scene.worker()
    for _ in range(2):
        await due(scene, 5)
        for run in await scene.take(node):
            await scene.kill(run)
        scene.pass_time(100)
    bound = START_AT + 50 * SECOND_US
    assert await scene.store.purge(0, bound, 3) is True
    while await scene.store.purge(0, bound, 3):
        pass
    letters = (await scene.store.dead_letters("default", DeadQuery())).letters
    assert len(letters) == 5
    assert all(letter.failed_at >= bound for letter in letters)
    assert len((await scene.tables()).history) == 10


async def test_request_keys_are_forgotten_after_a_day(scene: Scene) -> None:
    job = await scene.create()
    first = await scene.run_now(job, "k")
    scene.harness.advance(DAY_US - 1)
    await scene.store.purge(0, 0, 100)
    assert await scene.run_now(job, "k") == first
    scene.harness.advance(2)
    await scene.store.purge(0, 0, 100)
    assert await scene.run_now(job, "k") != first


async def test_live_runs_survive_every_purge(scene: Scene) -> None:
    job = await scene.create(spec(every(1), overlap=Overlap.QUEUE))
    await scene.plan()
    node = await scene.worker()
    scene.pass_time(3)
    [run] = await scene.take(node, lead_us=0)
    await scene.finish(run, Event.RETRY, tries=1, due_at=scene.now + HOUR_US)
    before = await scene.tables()
    await scene.store.purge(scene.now + DAY_US, scene.now + DAY_US, 1_000)
    after = await scene.tables()
    assert (after.planned, after.blocked, after.running) == (before.planned, before.blocked, before.running)
    assert (await scene.view(job, run.scheduled_at)).state is State.RETRYING
