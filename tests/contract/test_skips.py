"""Coming times that shall not run: marked, kept through edits, and ended as skipped when they come."""

import asyncio
from contextlib import suppress

import pytest

from hourhand.core.identity import SKIP_LANE
from hourhand.core.instant import DAY_US, HOUR_US, MINUTE_US
from hourhand.core.lifecycle import State
from hourhand.core.model import Job
from hourhand.core.skipping import MAX_SKIPS, NoSuchTime
from hourhand.errors import Conflict
from tests.contract.builders import cron, every, once, spec
from tests.contract.checker import assert_covered, assert_sound
from tests.contract.harness import START_AT
from tests.contract.scene import Scene, reason

FIRST = START_AT + MINUTE_US
SECOND = START_AT + 2 * MINUTE_US
FAR = START_AT + 2 * DAY_US


async def skip(scene: Scene, job: Job, at: int | None = None, note: str | None = None) -> int:
    made = await scene.store.skip_time(job.tenant, job.id, at, note)
    assert made is not None
    return made.scheduled_at


async def unskip(scene: Scene, job: Job, at: int | None = None) -> int:
    taken_back = await scene.store.unskip_time(job.tenant, job.id, at)
    assert taken_back is not None
    return taken_back.scheduled_at


async def skipped(scene: Scene, job: Job) -> list[int]:
    return [one.scheduled_at for one in await scene.store.skips(job.tenant, job.id)]


async def pass_minutes(scene: Scene, job: Job, node: int, minutes: int) -> list[int]:
    """Plan, claim, execute and sweep, minute by minute; answers what ran."""
    ran = []
    for _ in range(minutes):
        await scene.plan(MINUTE_US + 1)
        scene.pass_time(60)
        await scene.store.end_skips(100)
        runs = await scene.take(node)
        await scene.finish(runs)
        ran += [run.scheduled_at for run in runs if run.job_id == job.id]
    return ran


@pytest.mark.parametrize("planned_before", [True, False])
async def test_a_skipped_time_does_not_run_and_says_why(scene: Scene, planned_before: bool) -> None:
    job = await scene.create()
    node = await scene.worker()
    if planned_before:
        await scene.plan(5 * MINUTE_US)
    assert await skip(scene, job, SECOND, "holiday") == SECOND
    assert await skipped(scene, job) == [SECOND]
    assert (await scene.view(job, SECOND)).skip_asked

    ran = await pass_minutes(scene, job, node, 4)

    assert ran == [FIRST, SECOND + MINUTE_US, SECOND + 2 * MINUTE_US]
    ended = await scene.view(job, SECOND)
    assert (ended.state, reason(ended)) == (State.SKIPPED, "asked for")
    assert (ended.attempts[-1].detail or {})["note"] == "holiday"
    assert await skipped(scene, job) == []
    tables = await scene.tables()
    assert_sound(tables)
    assert_covered(tables, job.id, await scene.store.versions(job.tenant, job.id), scene.now)


async def test_the_next_time_is_meant_unless_another_is_named(scene: Scene) -> None:
    job = await scene.create()
    assert [await skip(scene, job) for _ in range(3)] == [FIRST, SECOND, SECOND + MINUTE_US]
    assert await skip(scene, job, SECOND, "again") == SECOND
    assert [one.note for one in await scene.store.skips(job.tenant, job.id)] == [None, "again", None]


async def test_a_time_that_is_none_names_the_nearest(scene: Scene) -> None:
    job = await scene.create(spec(cron("0 9 * * *")))
    with pytest.raises(NoSuchTime) as caught:
        await skip(scene, job, FAR + HOUR_US)
    assert caught.value.fault.hint == "the nearest: 2026-11-18T09:00:00Z and 2026-11-19T09:00:00Z"
    with pytest.raises(NoSuchTime, match="to come"):
        await skip(scene, job, START_AT)
    assert await scene.store.skip_time("another", job.id, None, None) is None
    assert await scene.store.skips("another", job.id) == []


async def test_what_a_worker_holds_cannot_be_skipped(scene: Scene) -> None:
    job = await scene.create()
    node = await scene.worker()
    await scene.plan(MINUTE_US + 1)
    scene.pass_time(59)
    [run] = await scene.take(node)
    with pytest.raises(Conflict, match="cancel it"):
        await skip(scene, job, FIRST)
    await scene.finish(run)
    assert await skipped(scene, job) == []


async def test_a_paused_job_has_nothing_to_skip(scene: Scene) -> None:
    job = await scene.create()
    await scene.pause(job)
    with pytest.raises(Conflict, match="paused"):
        await skip(scene, job)


async def test_the_number_is_bounded(scene: Scene) -> None:
    job = await scene.create(spec(every(1)))
    for _ in range(MAX_SKIPS):
        await skip(scene, job)
    with pytest.raises(Conflict, match="pause it"):
        await skip(scene, job)


@pytest.mark.parametrize("planned_before", [True, False])
async def test_a_mark_can_be_taken_back(scene: Scene, planned_before: bool) -> None:
    job = await scene.create()
    node = await scene.worker()
    if planned_before:
        await scene.plan(5 * MINUTE_US)
    await skip(scene, job, SECOND)
    assert await unskip(scene, job) == SECOND
    assert await pass_minutes(scene, job, node, 3) == [FIRST, SECOND, SECOND + MINUTE_US]
    with pytest.raises(NoSuchTime):
        await unskip(scene, job, SECOND)


async def test_it_outlives_pauses_and_edits_that_keep_the_time(scene: Scene) -> None:
    job = await scene.create()
    node = await scene.worker()
    await scene.plan()
    at = START_AT + 10 * MINUTE_US
    await skip(scene, job, at, "holiday")
    await skip(scene, job, FAR)
    await scene.pause(job)
    assert await skipped(scene, job) == [at, FAR]
    assert await scene.planned(job) == [], "nothing stands in the plan of a paused job"
    await scene.resume(job)
    await scene.change(job, timing=every(120))
    await scene.change(job, pool="other")
    await scene.change(job, pool="default", jitter_us=20)
    await scene.plan(15 * MINUTE_US)
    rows = {row.scheduled_at: row.lane for row in (await scene.tables()).planned}
    assert rows[at] == rows[FAR] == SKIP_LANE
    assert {lane for other, lane in rows.items() if other not in (at, FAR)} != {SKIP_LANE}

    ran = await pass_minutes(scene, job, node, 11)

    assert at not in ran
    assert await scene.state(job, at) is State.SKIPPED
    assert await skipped(scene, job) == [FAR]


async def test_a_schedule_without_that_time_forgets_it(scene: Scene) -> None:
    job = await scene.create()
    at = START_AT + 7 * MINUTE_US
    await skip(scene, job, at)
    await skip(scene, job, FAR)
    await scene.change(job, timing=every(120))
    assert await skipped(scene, job) == [FAR]
    assert at not in await scene.planned(job)
    await scene.change(job, ends_at=FAR - 1)
    assert await skipped(scene, job) == []
    assert FAR not in await scene.planned(job)


async def test_what_passes_while_paused_is_not_skipped_but_forgotten(scene: Scene) -> None:
    job = await scene.create()
    await skip(scene, job, SECOND)
    await scene.pause(job)
    scene.pass_time(600)
    await scene.store.end_skips(100)
    assert await scene.nominals(job) == []
    await scene.resume(job)
    assert await skipped(scene, job) == []


async def test_a_clock_that_is_behind_comes_first(scene: Scene) -> None:
    """Ended before its clock has come past it, the time would be planned anew."""
    job = await scene.create()
    node = await scene.worker()
    await skip(scene, job, SECOND)
    scene.go_to(SECOND + 1)  # nobody planned meanwhile
    assert await scene.store.end_skips(100) == 0
    await scene.plan()
    assert await scene.store.end_skips(100) == 1
    assert await scene.state(job, SECOND) is State.SKIPPED
    await scene.finish(await scene.take(node))
    assert await scene.state(job, SECOND) is State.SKIPPED
    assert_sound(await scene.tables())


async def test_a_one_time_job(scene: Scene) -> None:
    job = await scene.create(spec(once(FIRST)))
    node = await scene.worker()
    assert await skip(scene, job) == FIRST
    assert await unskip(scene, job) == FIRST
    assert await skip(scene, job) == FIRST
    await scene.pause(job)
    await scene.resume(job)
    assert await pass_minutes(scene, job, node, 2) == []
    assert await scene.state(job, FIRST) is State.SKIPPED
    assert_sound(await scene.tables())


async def test_max_runs_counts_it(scene: Scene) -> None:
    job = await scene.create(spec(max_runs=3))
    node = await scene.worker()
    await skip(scene, job, SECOND)
    assert await pass_minutes(scene, job, node, 5) == [FIRST, SECOND + MINUTE_US]


async def test_deleting_the_job_leaves_nothing(scene: Scene) -> None:
    job = await scene.create()
    await skip(scene, job, FIRST)
    await skip(scene, job, FAR)
    await scene.delete(job)
    assert await scene.planned(job) == []
    assert await scene.store.end_skips(100) == 0


async def test_a_marked_time_that_has_come_ends_as_skipped_although_its_job_goes(scene: Scene) -> None:
    """Found by simulation: a delete between the time and the sweeper's look lost it without a trace."""
    job = await scene.create()
    await scene.plan()
    await skip(scene, job, FIRST, "holiday")
    await skip(scene, job, FAR)
    scene.pass_time(65)
    await scene.plan()
    await scene.delete(job)
    tables = await scene.tables()
    assert [(line.scheduled_at, line.state) for line in tables.history] == [(FIRST, State.SKIPPED)]
    assert "holiday" in (tables.history[0].detail or "")
    assert await scene.planned(job) == []
    assert await scene.store.end_skips(100) == 0


async def test_a_marked_time_that_nobody_has_planned_cannot_be_cancelled(scene: Scene) -> None:
    """Found by simulation: its clock made the cancelled run again, and its end could never be written."""
    job = await scene.create()
    await skip(scene, job, FAR)
    with pytest.raises(Conflict, match="skipped already"):
        await scene.store.cancel_run(job.tenant, (await scene.view(job, FAR)).key)
    assert await skipped(scene, job) == [FAR]


async def test_cancelling_the_run_forgets_the_mark(scene: Scene) -> None:
    job = await scene.create()
    await scene.plan(horizon_us=2 * MINUTE_US)
    await skip(scene, job, FIRST)
    await scene.store.cancel_run(job.tenant, (await scene.view(job, FIRST)).key)
    assert await skipped(scene, job) == []
    assert await scene.state(job, FIRST) is State.CANCELLED


async def test_skipping_beside_planning_claiming_and_edits(scene: Scene) -> None:
    job = await scene.create(spec(every(1)))
    node = await scene.worker()

    async def mark() -> None:
        for _ in range(10):
            await skip(scene, job)

    async def take_back() -> None:
        for _ in range(3):
            with suppress(NoSuchTime):
                await unskip(scene, job)

    async def edit() -> None:
        await scene.change(job, jitter_us=1_000)
        await scene.pause(job)
        await scene.resume(job)

    async def execute() -> None:
        for _ in range(5):
            await scene.finish(await scene.take(node))

    async def marks() -> None:
        with suppress(Conflict):  # paused at that moment, or taken already
            await mark()

    await asyncio.gather(marks(), marks(), take_back(), edit(), scene.plan(), scene.plan(), execute())
    await scene.plan()
    marked = await skipped(scene, job)
    rows = {row.scheduled_at for row in (await scene.tables()).planned if row.lane == SKIP_LANE}
    assert set(marked) == rows
    for _ in range(40):
        scene.pass_time(1)
        await scene.plan()
        await scene.store.end_skips(100)
        await scene.finish(await scene.take(node))
    for at in marked:
        assert await scene.state(job, at) is State.SKIPPED
    tables = await scene.tables()
    assert_sound(tables)
    assert_covered(tables, job.id, await scene.store.versions(job.tenant, job.id), scene.now)
