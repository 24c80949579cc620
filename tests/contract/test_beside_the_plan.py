"""Any mix of planning, backfills, skips, edits and time: a time has one run, and every time ends up somewhere."""

import asyncio
from contextlib import suppress

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hourhand.core.backfill import BackfillAction, BackfillSpec, BackfillState, Order, Unfit, new_backfill
from hourhand.core.instant import DAY_US, MINUTE_US
from hourhand.core.model import Job
from hourhand.core.skipping import NoSuchTime
from hourhand.errors import Conflict
from tests.contract.builders import every, spec
from tests.contract.checker import assert_covered, assert_sound
from tests.contract.harness import START_AT, SqliteMemoryHarness
from tests.contract.scene import Scene

WORDS = (
    "plan",
    "work",
    "feed",
    "skip",
    "unskip",
    "pause",
    "resume",
    "faster",
    "slower",
    "backfill",
    "cancel",
    "on",
)
ACTS = st.lists(st.tuples(st.sampled_from(WORDS), st.integers(0, 12)), max_size=40)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(ACTS, st.sampled_from(Order), st.sampled_from([None, 1, 3]))
def test_each_time_has_one_run_and_none_is_lost(
    acts: list[tuple[str, int]], order: Order, concurrency: int | None
) -> None:
    asyncio.run(_play(acts, order, concurrency))


async def _play(acts: list[tuple[str, int]], order: Order, concurrency: int | None) -> None:
    harness = SqliteMemoryHarness()
    scene = Scene(harness)
    job = await scene.create(spec(every(60), concurrency=concurrency))
    node = await scene.worker()
    made: list[int] = []
    try:
        for word, number in acts:
            with suppress(Conflict, NoSuchTime, Unfit):
                await _act(scene, job, node, made, order, word, number)
            assert_sound(await scene.tables())
        for backfill_id in made:
            with suppress(Conflict):
                await scene.store.change_backfill(job.tenant, backfill_id, BackfillAction.RESUME)
        await _calm(scene, node, made)
        await _check(scene, job, made)
    finally:
        await harness.close()


async def _act(
    scene: Scene, job: Job, node: int, made: list[int], order: Order, word: str, number: int
) -> None:
    match word:
        case "plan":
            await scene.plan()
        case "work":
            await scene.finish(await scene.take(node, 1 + number))
        case "feed":
            for backfill_id in made:
                await scene.store.feed_backfill(backfill_id)
        case "skip":
            await scene.store.skip_time(job.tenant, job.id, None, None)
        case "unskip":
            await scene.store.unskip_time(job.tenant, job.id, None)
        case "pause":
            await scene.pause(job)
        case "resume":
            await scene.resume(job)
        case "faster":
            await scene.change(job, timing=every(60))
        case "slower":
            await scene.change(job, timing=every(180))
        case "backfill":
            wanted = BackfillSpec(
                from_at=START_AT - 10 * MINUTE_US, to_at=scene.now, order=order, max_open=1 + number
            )
            name = len(made) + 1
            await scene.store.add_backfill(
                job.tenant, job.id, lambda found, now: new_backfill(name, found, wanted, now, 1_000 * DAY_US)
            )
            made.append(name)
        case "cancel":
            for backfill_id in made[-1:]:
                await scene.store.change_backfill(job.tenant, backfill_id, BackfillAction.CANCEL)
        case "on":
            scene.pass_time(number * 45)
            await scene.store.end_skips(100)


async def _calm(scene: Scene, node: int, made: list[int]) -> None:
    """Everything is healthy: what is left is planned, fed and run."""
    for _ in range(60):
        await scene.plan()
        await scene.store.end_skips(100)
        await scene.store.judge_late({}, 100)
        await scene.finish(await scene.take(node))
        for backfill_id in made:
            await scene.store.feed_backfill(backfill_id)
        scene.pass_time(1)


async def _check(scene: Scene, job: Job, made: list[int]) -> None:
    tables = await scene.tables()
    assert_sound(tables)
    assert_covered(tables, job.id, await scene.store.versions(job.tenant, job.id), scene.now)
    present = set(await scene.nominals(job))
    for backfill_id in made:
        backfill = await scene.store.get_backfill(job.tenant, backfill_id)
        assert backfill is not None
        if backfill.state is BackfillState.DONE:
            times = backfill.rule.times(backfill.spec.from_at - 1, backfill.spec.to_at, 10_000)
            assert set(times) <= present, "a time of the range has no run"
            assert backfill.tally.done == backfill.tally.total == len(times)
