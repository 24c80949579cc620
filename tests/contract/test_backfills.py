"""Backfills: every time of the range gets one run, wherever it was before, whoever else plans, edits or feeds."""

import asyncio
from collections.abc import Callable

import msgspec
import pytest

from hourhand.core.backfill import Backfill, BackfillAction, BackfillSpec, BackfillState, Order, new_backfill
from hourhand.core.identity import BACKGROUND, class_of_lane
from hourhand.core.instant import DAY_US, HOUR_US, MINUTE_US, SECOND_US
from hourhand.core.lifecycle import Event, State
from hourhand.core.model import Job, Misfire, MisfirePolicy, Trigger
from hourhand.errors import Conflict
from hourhand.ports.backfills import BackfillQuery, Feeding
from tests.contract.builders import every, spec
from tests.contract.checker import assert_sound
from tests.contract.harness import KEEP_US, START_AT
from tests.contract.scene import Scene

KEEP_FOREVER_US = 10_000 * DAY_US
HOUR = [START_AT - HOUR_US + n * MINUTE_US for n in range(61)]  # every minute of the hour before, both ends


def asked(backfill_id: int, **fields: object) -> Callable[[Job, int], Backfill]:
    range_ = {"from_at": START_AT - HOUR_US, "to_at": START_AT}
    wanted = BackfillSpec(**{**range_, **fields})  # type: ignore[arg-type]
    return lambda job, now_at: new_backfill(backfill_id, job, wanted, now_at, KEEP_FOREVER_US)


async def begin(scene: Scene, job: Job, backfill_id: int = 1, **fields: object) -> Backfill:
    made = await scene.store.add_backfill(job.tenant, job.id, asked(backfill_id, **fields))
    assert made is not None
    return made


async def feed(scene: Scene, backfill_id: int = 1) -> Feeding:
    done = await scene.store.feed_backfill(backfill_id)
    assert done is not None
    return done


async def work_off(scene: Scene, node: int, event: Event = Event.SUCCEED) -> list[int]:
    """Execute what can be taken; answers the nominal times in the order in which they were taken."""
    taken = []
    for _ in range(1_000):
        runs = await scene.take(node)
        if not runs:
            return taken
        taken += [run.scheduled_at for run in runs]
        await scene.finish(runs, event, detail={"error": "it broke"} if event is Event.EXHAUST else None)
    raise AssertionError("it does not come to an end")


async def test_every_time_of_the_range_runs_once_in_the_background(scene: Scene) -> None:
    job = await scene.create(spec(concurrency=None))
    node = await scene.worker()
    made = await begin(scene, job)
    assert made.tally.total == 61

    done = await feed(scene)

    assert (done.fed, done.passed) == (61, 61)
    rows = [row for row in (await scene.tables()).planned if row.job_id == job.id]
    assert sorted(row.scheduled_at for row in rows) == HOUR
    assert {row.trigger for row in rows} == {Trigger.BACKFILL}
    assert {class_of_lane(row.lane) for row in rows} == {BACKGROUND}
    assert sorted(await work_off(scene, node)) == HOUR
    over = (await feed(scene)).backfill
    assert over.state is BackfillState.DONE
    assert over.finished_at == scene.now
    assert (over.tally.succeeded, over.tally.open, over.tally.done) == (61, 0, 61)
    assert_sound(await scene.tables())


async def test_no_more_are_open_than_allowed(scene: Scene) -> None:
    job = await scene.create(spec(concurrency=None))
    node = await scene.worker()
    await begin(scene, job, max_open=10)

    assert [(await feed(scene)).fed for _ in range(3)] == [10, 0, 0]
    assert await work_off(scene, node) == HOUR[:10]
    assert (await feed(scene)).fed == 10
    assert await scene.planned(job) == HOUR[10:20]


async def test_it_goes_from_the_newest_on_if_asked(scene: Scene) -> None:
    job = await scene.create(spec(concurrency=None))
    node = await scene.worker()
    await begin(scene, job, max_open=25, order=Order.NEWEST)
    order: list[int] = []
    for _ in range(4):
        await feed(scene)
        scene.pass_time(1)
        order += await work_off(scene, node)
    assert order == HOUR[::-1]
    assert (await feed(scene)).backfill.state is BackfillState.DONE


async def test_it_keeps_its_pace(scene: Scene) -> None:
    job = await scene.create(spec(concurrency=None))
    await begin(scene, job, pace_us=SECOND_US // 10)

    fed = []
    for _ in range(5):
        fed.append((await feed(scene)).fed)
        scene.pass_time(0.5)
    assert fed == [1, 5, 5, 5, 5]
    scene.pass_time(3_600)
    assert (await feed(scene)).fed == 11, "what was not fed in time is not made up for at once"


async def test_what_ran_waits_runs_or_failed_is_there_already(scene: Scene) -> None:
    scene.go_to(START_AT - 10 * MINUTE_US - SECOND_US)
    job = await scene.create(spec(every(60), misfire=Misfire(policy=MisfirePolicy.CATCH_UP), concurrency=2))
    node = await scene.worker()
    await scene.plan()
    scene.pass_time(1)
    [succeeded] = await scene.take(node)
    await scene.finish(succeeded)
    scene.pass_time(60)
    await scene.plan()
    [failed] = await scene.take(node)
    await scene.kill(failed)
    scene.pass_time(60)
    await scene.plan()
    [running] = await scene.take(node)
    scene.pass_time(60)
    await scene.plan()
    [retrying] = await scene.take(node)
    await scene.finish(retrying, Event.RETRY, tries=1, due_at=scene.now + HOUR_US)
    scene.pass_time(60)
    await scene.plan()
    await scene.take(node)  # both slots are taken: it waits in `blocked`
    blocked = scene.now
    scene.pass_time(60)
    await scene.plan()
    planned = scene.now
    tables = await scene.tables()
    assert [row.scheduled_at for row in tables.blocked] == [blocked]
    assert planned in await scene.planned(job)
    scene.go_to(START_AT)
    await scene.plan(0)
    before = set(await scene.nominals(job))
    there = {one.scheduled_at for one in (succeeded, failed, running, retrying)} | {blocked, planned}
    assert there <= before

    await begin(scene, job, max_open=1_000)
    done = await feed(scene)

    assert done.backfill.tally.already == len(before & set(HOUR))
    assert done.fed == len(set(HOUR) - before)
    assert set(await scene.nominals(job)) >= set(HOUR)
    assert_sound(await scene.tables(), {job.id: 2})


async def test_a_second_backfill_of_the_same_range_makes_nothing(scene: Scene) -> None:
    job = await scene.create(spec(concurrency=None))
    node = await scene.worker()
    await begin(scene, job)
    await feed(scene)
    await work_off(scene, node)
    assert (await feed(scene)).backfill.state is BackfillState.DONE

    await begin(scene, job, 2)
    done = await feed(scene, 2)

    assert (done.fed, done.backfill.tally.already) == (0, 61)
    assert done.backfill.state is BackfillState.DONE


async def test_outcomes_are_counted_as_they_come(scene: Scene) -> None:
    job = await scene.create(spec(concurrency=None))
    node = await scene.worker()
    await begin(scene, job)
    await feed(scene)
    runs = await scene.take(node)
    assert len(runs) == 61
    await scene.finish(runs[:40])
    for run in runs[40:45]:
        await scene.kill(run)
    await scene.finish(runs[45:48], Event.SKIP)
    await scene.finish(runs[48:50], Event.CANCEL)
    await scene.finish(runs[50:60], Event.RETRY, tries=1, due_at=scene.now)

    tally = (await feed(scene)).backfill.tally
    assert (tally.succeeded, tally.failed, tally.skipped, tally.cancelled, tally.open) == (40, 5, 3, 2, 11)

    await scene.store.requeue(job.tenant, [runs[40].key])
    await work_off(scene, node)
    over = await feed(scene)
    assert over.backfill.tally.open == 1, "the one that still executes"
    assert over.backfill.finished_at is None
    await scene.finish(runs[60])
    assert (await feed(scene)).backfill.state is BackfillState.DONE


async def test_times_that_the_clock_has_not_come_to_are_left_to_it(scene: Scene) -> None:
    """After an outage the planner decides first what it makes up for; the backfill makes the rest."""
    scene.go_to(START_AT - 30 * MINUTE_US)
    job = await scene.create()
    await scene.plan()
    scene.go_to(START_AT)  # nobody planned for half an hour
    await begin(scene, job, max_open=1_000)

    done = await feed(scene)
    late_from = START_AT - 29 * MINUTE_US
    assert max(await scene.planned(job)) < late_from
    assert not done.backfill.is_fed
    assert (await feed(scene)).passed == 0

    await scene.plan()
    assert START_AT in await scene.planned(job), "run_once makes up for the newest"
    done = await feed(scene)
    assert done.backfill.is_fed
    assert await scene.planned(job) == [*HOUR, START_AT + MINUTE_US]
    assert done.backfill.tally.already == 1
    assert_sound(await scene.tables())


async def test_the_newest_wait_for_the_clock(scene: Scene) -> None:
    scene.go_to(START_AT - 30 * MINUTE_US)
    job = await scene.create()
    await scene.plan()
    scene.go_to(START_AT)
    await begin(scene, job, order=Order.NEWEST)
    assert (await feed(scene)).passed == 0
    await scene.plan()
    assert (await feed(scene)).passed == 61


async def test_times_that_the_end_of_a_pause_gives_back_are_left_to_it(scene: Scene) -> None:
    scene.go_to(START_AT - HOUR_US - SECOND_US)
    job = await scene.create()
    await scene.pause(job, until=START_AT - 10 * MINUTE_US)
    scene.go_to(START_AT)  # nobody looked when the pause ended
    await begin(scene, job, max_open=1_000)

    await feed(scene)
    assert max(await scene.planned(job)) < START_AT - 10 * MINUTE_US
    await scene.tend()
    await scene.plan()
    done = await feed(scene)

    assert done.backfill.is_fed
    assert set(HOUR) <= set(await scene.nominals(job))
    assert_sound(await scene.tables())


# --- pause, resume, cancel


async def test_a_paused_backfill_makes_no_more_but_counts(scene: Scene) -> None:
    job = await scene.create(spec(concurrency=None))
    node = await scene.worker()
    await begin(scene, job, max_open=10)
    await feed(scene)
    for _ in range(2):
        paused = await scene.store.change_backfill(job.tenant, 1, BackfillAction.PAUSE)
        assert paused is not None
        assert paused.state is BackfillState.PAUSED
    await work_off(scene, node)

    done = await feed(scene)
    assert (done.fed, done.backfill.tally.succeeded) == (0, 10)
    assert await scene.store.unfinished_backfills(0, 10) == [], "nothing is left to do for it"

    await scene.store.change_backfill(job.tenant, 1, BackfillAction.RESUME)
    assert await scene.store.unfinished_backfills(0, 10) == [1]
    assert (await feed(scene)).fed == 10


async def test_cancel_takes_back_what_nobody_took(scene: Scene) -> None:
    job = await scene.create(spec(concurrency=3))
    node = await scene.worker()
    await begin(scene, job, max_open=10)
    await feed(scene)
    scene.pass_time(1)
    runs = await scene.take(node)  # three run, seven wait for a slot
    assert len(runs) == 3
    assert len((await scene.tables()).blocked) == 7

    cancelled = await scene.store.change_backfill(job.tenant, 1, BackfillAction.CANCEL)

    assert cancelled is not None
    assert (cancelled.state, cancelled.tally.fed, cancelled.tally.open) == (BackfillState.CANCELLED, 3, 3)
    assert cancelled.finished_at is None, "three still execute"
    assert await scene.nominals(job) == HOUR[:3]
    await scene.finish(runs)
    over = (await feed(scene)).backfill
    assert (over.state, over.tally.succeeded, over.finished_at) == (BackfillState.CANCELLED, 3, scene.now)

    await begin(scene, job, 2)
    assert (await feed(scene, 2)).backfill.tally.already == 3, "the others may be made anew"


async def test_cancel_forgets_no_fence(scene: Scene) -> None:
    """A run that was taken and given back may still be in the hand of one who sleeps."""
    job = await scene.create(spec(concurrency=None))
    node = await scene.worker()
    await begin(scene, job, max_open=4)
    await feed(scene)
    first, second, _ = await scene.take(node, 3)
    await scene.finish(first, Event.RELEASE, due_at=scene.now)
    await scene.finish(second, Event.RETRY, tries=1, due_at=scene.now + HOUR_US)

    cancelled = await scene.store.change_backfill(job.tenant, 1, BackfillAction.CANCEL)

    assert cancelled is not None
    assert (cancelled.tally.cancelled, cancelled.tally.open) == (2, 1)
    assert await scene.state(job, first.scheduled_at) is State.CANCELLED
    assert await scene.state(job, second.scheduled_at) is State.CANCELLED
    assert_sound(await scene.tables())


async def test_what_is_over_cannot_be_changed(scene: Scene) -> None:
    job = await scene.create(spec(concurrency=None))
    await begin(scene, job)
    for _ in range(2):
        assert await scene.store.change_backfill(job.tenant, 1, BackfillAction.CANCEL) is not None
    with pytest.raises(Conflict, match="cancelled already"):
        await scene.store.change_backfill(job.tenant, 1, BackfillAction.RESUME)
    assert await scene.store.change_backfill("another", 1, BackfillAction.CANCEL) is None
    assert await scene.store.change_backfill(job.tenant, 99, BackfillAction.CANCEL) is None
    assert await scene.store.feed_backfill(99) is None


async def test_a_job_has_one_at_a_time(scene: Scene) -> None:
    job, other = await scene.create(), await scene.create()
    await begin(scene, job)
    with pytest.raises(Conflict, match="B-0000000000001"):
        await begin(scene, job, 2)
    await begin(scene, other, 2)
    await scene.store.change_backfill(job.tenant, 1, BackfillAction.CANCEL)
    await begin(scene, job, 3)


async def test_lists_go_by_pages_newest_first(scene: Scene) -> None:
    jobs = [await scene.create() for _ in range(5)]
    for number, job in enumerate(jobs, 1):
        await begin(scene, job, number)
    page = await scene.store.list_backfills(jobs[0].tenant, BackfillQuery(limit=3))
    assert [one.id for one in page.backfills] == [5, 4, 3]
    rest = await scene.store.list_backfills(
        jobs[0].tenant, BackfillQuery(limit=3, before_id=page.next_before_id)
    )
    assert ([one.id for one in rest.backfills], rest.next_before_id) == ([2, 1], None)
    of_one = await scene.store.list_backfills(jobs[0].tenant, BackfillQuery(job_id=jobs[3].id))
    assert [one.id for one in of_one.backfills] == [4]
    assert (await scene.store.list_backfills("another", BackfillQuery())).backfills == ()
    assert await scene.store.get_backfill("another", 1) is None


# --- the job changes meanwhile


async def test_another_schedule_pauses_it_until_somebody_agrees(scene: Scene) -> None:
    job = await scene.create(spec(concurrency=None))
    await begin(scene, job, max_open=10)
    await feed(scene)
    await scene.change(job, timing=every(300))

    held = (await feed(scene)).backfill
    assert held.state is BackfillState.PAUSED
    assert "schedule changed" in (held.reason or "")

    await scene.store.change_backfill(job.tenant, 1, BackfillAction.RESUME)
    node = await scene.worker()
    for _ in range(10):
        await work_off(scene, node)
        await feed(scene)
    assert set(HOUR) <= set(await scene.nominals(job)), "the times it was made for"


async def test_other_fields_do_not_touch_it(scene: Scene) -> None:
    job = await scene.create(spec(concurrency=None))
    await begin(scene, job, max_open=10)
    await feed(scene)
    await scene.change(job, pool="other")
    await feed(scene)
    tables = await scene.tables()
    node = await scene.worker()
    assert await scene.take(node) == []
    assert len(await scene.take(node, pools=("other",))) == 10
    assert {class_of_lane(row.lane) for row in tables.planned if row.trigger is Trigger.BACKFILL} == {
        BACKGROUND
    }


async def test_a_pause_of_the_job_holds_it_up(scene: Scene) -> None:
    job = await scene.create(spec(concurrency=None))
    await begin(scene, job, max_open=10)
    await scene.pause(job)
    assert (await feed(scene)).fed == 0
    await scene.resume(job)
    assert (await feed(scene)).fed == 10


async def test_one_that_was_asked_for_during_a_pause_goes_on(scene: Scene) -> None:
    job = await scene.create()
    await scene.pause(job)
    await begin(scene, job, max_open=10)
    assert (await feed(scene)).fed == 10


async def test_deleting_the_job_cancels_it(scene: Scene) -> None:
    job = await scene.create(spec(concurrency=None))
    node = await scene.worker()
    await begin(scene, job, max_open=10)
    await feed(scene)
    await scene.take(node, 3)
    await scene.delete(job)

    over = await scene.store.get_backfill(job.tenant, 1)
    assert over is not None
    assert (over.state, over.reason, over.finished_at) == (BackfillState.CANCELLED, "job deleted", scene.now)
    assert await scene.store.unfinished_backfills(0, 10) == []
    await scene.take(node)
    assert await scene.planned(job) == [], "what waited ended"


async def test_runs_by_hand_are_not_crowded_out(scene: Scene) -> None:
    job = await scene.create()
    await begin(scene, job, max_open=1_000, from_at=START_AT - 5 * HOUR_US)
    assert (await feed(scene)).fed == 301
    await scene.run_now(job)


async def test_old_ones_are_forgotten_with_history(scene: Scene) -> None:
    job = await scene.create()
    await begin(scene, job)
    await scene.store.change_backfill(job.tenant, 1, BackfillAction.CANCEL)
    scene.pass_time(40 * 86_400)
    await scene.store.purge(scene.now - KEEP_US, scene.now - KEEP_US, 100)
    assert await scene.store.get_backfill(job.tenant, 1) is None


# --- races


async def test_two_feeders_feed_nothing_twice(scene: Scene) -> None:
    job = await scene.create(spec(concurrency=None))
    await begin(scene, job, max_open=20)
    done = await asyncio.gather(*(feed(scene) for _ in range(8)))
    assert sum(one.fed for one in done) == 20
    assert await scene.planned(job) == HOUR[:20]
    assert max(done, key=lambda one: one.backfill.tally.fed).backfill.tally.fed == 20


async def test_feeding_beside_everybody_else(scene: Scene) -> None:
    """Plan, claim, edit, pause, requeue and feed at once: each time has one run, and none is left out."""
    scene.go_to(START_AT - 20 * MINUTE_US)
    job = await scene.create(spec(concurrency=None))
    node = await scene.worker()
    scene.go_to(START_AT)
    await begin(scene, job, max_open=15)

    async def edit() -> None:
        for n in range(6):
            await scene.change(job, jitter_us=n * SECOND_US // 10, pool="default")
            await (scene.pause if n % 2 else scene.resume)(job)
        await scene.resume(job)

    async def execute() -> None:
        for _ in range(12):
            for run in await scene.take(node, 7):
                if run.scheduled_at % 7 == 0 and run.fence == 1:
                    await scene.kill(run)
                    await scene.store.requeue(job.tenant, [run.key])
                else:
                    await scene.finish(run)

    async def feeding() -> None:
        for _ in range(12):
            await feed(scene)
            await asyncio.sleep(0)

    await asyncio.gather(edit(), execute(), feeding(), feeding(), scene.plan(), scene.plan())
    for _ in range(30):
        await scene.plan()
        await work_off(scene, node)
        if (await feed(scene)).backfill.finished_at is not None:
            break
    over = (await feed(scene)).backfill
    assert over.state is BackfillState.DONE
    assert over.tally.done == over.tally.total == 61
    assert set(HOUR) <= set(await scene.nominals(job))
    assert_sound(await scene.tables())


async def test_a_delete_beside_feeders_leaves_nothing_behind(scene: Scene) -> None:
    job = await scene.create(spec(concurrency=None))
    await begin(scene, job, max_open=10)
    await asyncio.gather(*(scene.store.feed_backfill(1) for _ in range(3)), scene.delete(job))
    over = await scene.store.get_backfill(job.tenant, 1)
    assert over is not None
    assert over.state is BackfillState.CANCELLED
    node = await scene.worker()
    await scene.take(node)
    assert await scene.planned(job) == []
    assert msgspec.structs.replace(over, reason=None).finished_at is not None
