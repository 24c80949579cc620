"""Edits of what a job runs and how: planned runs stay or move, and whoever claims next reads the job as it is."""

import pytest

from hourhand.core.identity import class_of_lane, jitter_us
from hourhand.core.instant import HOUR_US, SECOND_US
from hourhand.core.lifecycle import Event, State
from hourhand.core.model import Misfire, MisfirePolicy, Priority
from hourhand.errors import Conflict
from hourhand.ports.store import JobEdit
from tests.contract.builders import every, spec
from tests.contract.harness import START_AT, seconds
from tests.contract.scene import Scene

# --- payload, target and policies


async def test_a_new_payload_touches_no_planned_run_and_later_claims_read_it(scene: Scene) -> None:
    job = await scene.create(spec(every(1), name="old", concurrency=None))
    await scene.plan()
    before = (await scene.tables()).planned
    node = await scene.worker()
    scene.pass_time(1)
    first = await scene.take(node, lead_us=0)
    changed = await scene.change(job, name="new")
    assert (changed.effective_from, changed.job.version) == (scene.now, 2)
    assert (await scene.tables()).planned == before[1:]
    scene.pass_time(1)
    second = await scene.take(node, lead_us=0)
    assert [(run.version, run.spec.name) for run in first + second] == [(1, "old"), (2, "new")]
    await scene.finish(first + second)
    views = await scene.runs(job)
    ended = {view.scheduled_at: view.version for view in views if view.state is State.SUCCEEDED}
    assert ended == dict(zip(seconds(1, 2), (1, 2), strict=True))


async def test_a_new_misfire_policy_is_the_one_that_judges(scene: Scene) -> None:
    job = await scene.create(spec(every(60)))
    await scene.change(job, misfire=Misfire(policy=MisfirePolicy.SKIP, grace_us=SECOND_US))
    scene.pass_time(600)
    await scene.plan(0)
    assert await scene.planned(job) == seconds(600)
    [gap] = (await scene.tables()).gaps
    assert (gap.policy, gap.grace_us, gap.missed, gap.ran) == ("skip", SECOND_US, 10, 1)


async def test_a_key_can_be_changed_but_not_taken(scene: Scene) -> None:
    await scene.create(spec(key="a"))
    job = await scene.create(spec(key="b"))
    with pytest.raises(Conflict):
        await scene.change(job, key="a")
    assert (await scene.get(job)).version == 1
    await scene.change(job, key="c")
    assert [found.id for found in await scene.store.find_jobs("default", "c", 5)] == [job.id]
    assert await scene.store.find_jobs("default", "b", 5) == []


async def test_an_edit_that_is_refused_changes_nothing(scene: Scene) -> None:
    job = await scene.create(spec(every(1)))
    await scene.plan()
    before = await scene.tables()

    def decide(present: object, now_at: int) -> JobEdit:
        raise Conflict("not like this")

    with pytest.raises(Conflict, match="not like this"):
        await scene.store.change_job("default", job.id, decide)
    assert await scene.tables() == before
    assert await scene.get(job) == job


# --- priority, pool, jitter


async def test_a_new_priority_moves_what_has_not_started(scene: Scene) -> None:
    job = await scene.create(spec(every(10), priority=Priority.LOW))
    await scene.plan()
    await scene.run_now(job)
    await scene.change(job, priority=Priority.HIGH)
    tables = await scene.tables()
    assert {class_of_lane(row.lane) for row in tables.planned} == {Priority.HIGH}
    assert len(tables.planned) == 7
    await scene.plan(120 * SECOND_US)
    assert {class_of_lane(row.lane) for row in (await scene.tables()).planned} == {Priority.HIGH}


async def test_a_run_nobody_serves_follows_its_job_to_another_pool(scene: Scene) -> None:
    """The usual reason to change a pool: its runs are late because nobody takes them."""
    job = await scene.create(spec(every(3_600), pool="nobody"))
    await scene.plan(3_601 * SECOND_US)
    scene.pass_time(3_600 + 1_800)
    assert await scene.take(await scene.worker()) == []
    await scene.change(job, pool="default")
    [run] = await scene.take(await scene.worker())
    assert run.scheduled_at == START_AT + HOUR_US


async def test_waiting_and_retrying_runs_follow_to_another_pool(scene: Scene) -> None:
    job = await scene.create(spec(every(1), pool="old"))
    await scene.plan()
    node = await scene.worker()
    scene.pass_time(1)
    [run] = await scene.take(node, pools=("old",), lead_us=0)
    scene.pass_time(1)
    assert await scene.take(node, pools=("old",), lead_us=0) == []
    await scene.finish(run, Event.RETRY, tries=1, due_at=scene.now)
    await scene.change(job, pool="new")
    assert await scene.take(node, pools=("old",)) == []
    [again] = await scene.take(node, pools=("new",))
    assert (again.scheduled_at, again.fence) == (run.scheduled_at, 2)
    await scene.finish(again)
    [waiting] = await scene.take(node, pools=("new",), lead_us=0)
    assert waiting.scheduled_at == START_AT + 2 * SECOND_US


async def test_background_runs_stay_in_the_background(scene: Scene) -> None:
    catch_up = Misfire(policy=MisfirePolicy.CATCH_UP, grace_us=SECOND_US, limit=3)
    job = await scene.create(spec(every(60), misfire=catch_up, priority=Priority.LOW))
    scene.pass_time(600)
    await scene.plan(0)
    before = sorted(row.scheduled_at for row in (await scene.tables()).planned)
    await scene.change(job, priority=Priority.HIGH, pool="other")
    rows = (await scene.tables()).planned
    assert sorted(row.scheduled_at for row in rows) == before
    assert {class_of_lane(row.lane) for row in rows} == {3}
    assert len(await scene.take(await scene.worker(), pools=("other",))) == 1


async def test_a_new_jitter_moves_due_times(scene: Scene) -> None:
    job = await scene.create(spec(every(20)))
    await scene.plan()
    await scene.change(job, jitter_us=15 * SECOND_US)
    rows = (await scene.tables()).planned
    assert len(rows) == 3
    for row in rows:
        assert row.due_at == row.scheduled_at + jitter_us(job.id, row.scheduled_at, 15 * SECOND_US)
    assert any(row.due_at > row.scheduled_at for row in rows)
    await scene.change(job, jitter_us=0)
    assert all(row.due_at == row.scheduled_at for row in (await scene.tables()).planned)
