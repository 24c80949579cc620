"""Coming runs, as whoever offers them to workers reads them: all of them, once each, page by page."""

import msgspec
import pytest

from hourhand.core.identity import SEGMENTS, RunKey, segment_of
from hourhand.core.instant import SECOND_US
from hourhand.core.lifecycle import Event
from hourhand.core.model import Durability, Job, Priority
from hourhand.core.offer import UpcomingRun
from hourhand.ports.upcoming import UpcomingQuery
from tests.contract.builders import draft, every, once, spec
from tests.contract.harness import START_AT
from tests.contract.scene import Scene

ALL = frozenset(range(SEGMENTS))


def at(seconds: float) -> int:
    return START_AT + round(seconds * SECOND_US)


def window(from_s: float, until_s: float, **fields: object) -> UpcomingQuery:
    query = UpcomingQuery(segments=ALL, from_at=at(from_s), until_at=at(until_s), limit=1_000)
    return msgspec.structs.replace(query, **fields)


async def walk(scene: Scene, query: UpcomingQuery) -> list[UpcomingRun]:
    """All pages of a window."""
    runs: list[UpcomingRun] = []
    for _ in range(1_000):
        page = await scene.store.upcoming(query)
        runs += page.runs
        if not page.cursors:
            return runs
        query = msgspec.structs.replace(query, cursors=page.cursors)
    raise AssertionError("the walk does not end")


async def at_once(scene: Scene, count: int, due_s: float, **fields: object) -> list[Job]:
    made = await scene.store.create_jobs([draft(spec(once(at(due_s)), **fields)) for _ in range(count)])
    return [job for job in made if isinstance(job, Job)]


def keys(runs: list[UpcomingRun]) -> list[RunKey]:
    return sorted(RunKey(run.job_id, run.scheduled_at) for run in runs)


async def test_an_empty_store_has_none(scene: Scene) -> None:
    page = await scene.store.upcoming(window(-10, 10))
    assert (page.runs, page.cursors) == ([], {})


async def test_the_window_is_what_is_read(scene: Scene) -> None:
    job = await scene.create(spec(every(1)))
    await scene.plan()
    found = await walk(scene, window(3, 7))
    assert keys(found) == [RunKey(job.id, at(n)) for n in range(3, 8)]
    [first, *_] = found
    assert (first.due_at, first.fence, first.has_slot) == (at(3), 0, False)
    assert (first.run_class, first.pool, first.durability) == (
        Priority.MEDIUM,
        "default",
        Durability.CRITICAL,
    )


async def test_what_is_overdue_is_read_too(scene: Scene) -> None:
    jobs = await at_once(scene, 3, 1)
    scene.go_to(at(2.5))
    assert keys(await walk(scene, window(0.5, 2.5))) == [RunKey(job.id, at(1)) for job in jobs]
    assert await walk(scene, window(1.5, 2.5)) == []


@pytest.mark.parametrize("limit", [1, 60, 1_000])
async def test_pages_have_everything_once(scene: Scene, limit: int) -> None:
    """Many at the same instant, in several lanes, and a few retrying."""
    jobs = [
        job
        for priority in Priority
        for pool in ("default", "gpu")
        for job in await at_once(scene, 30, 5, priority=priority, pool=pool)
    ]
    early = await at_once(scene, 30, 0)
    node = await scene.worker()
    runs = await scene.take(node, lead_us=0)
    assert len(runs) == 30
    await scene.finish(runs, Event.RETRY, tries=1, due_at=at(5))
    found = await walk(scene, window(0, 6, limit=limit))
    assert keys(found) == sorted(
        [RunKey(job.id, at(5)) for job in jobs] + [RunKey(job.id, at(0)) for job in early]
    )
    assert {RunKey(run.job_id, run.scheduled_at) for run in found if run.has_slot} == {
        run.key for run in runs
    }
    assert {(run.run_class, run.pool) for run in found} == {
        (priority, pool) for priority in Priority for pool in ("default", "gpu")
    }


async def test_only_of_the_segments_asked_for(scene: Scene) -> None:
    jobs = await at_once(scene, 60, 1)
    some = frozenset(range(0, SEGMENTS, 3))
    found = await walk(scene, window(0, 2, segments=some, limit=1))
    assert keys(found) == sorted(RunKey(job.id, at(1)) for job in jobs if segment_of(job.id) in some)
    assert 0 < len(found) < 60
    assert await walk(scene, window(0, 2, segments=frozenset())) == []


async def test_a_retry_says_its_fence(scene: Scene) -> None:
    [job] = await at_once(scene, 1, 0)
    [run] = await scene.take(await scene.worker())
    assert await walk(scene, window(-1, 60)) == []  # a worker has it
    await scene.finish(run, Event.RETRY, tries=1, due_at=at(9))
    [found] = await walk(scene, window(0, 10))
    assert (found.job_id, found.scheduled_at, found.due_at) == (job.id, at(0), at(9))
    assert (found.fence, found.has_slot) == (1, True)


async def test_durability_is_read_where_it_is_wanted(scene: Scene) -> None:
    [lasting] = await at_once(scene, 1, 1)
    [fleeting] = await at_once(scene, 1, 1, durability=Durability.FIRE_AND_FORGET)
    [retried] = await at_once(scene, 1, 0, durability=Durability.FIRE_AND_FORGET)
    [run] = await scene.take(await scene.worker(), lead_us=0)
    await scene.finish(run, Event.RETRY, tries=1, due_at=at(1))
    found = {run.job_id: run.durability for run in await walk(scene, window(0, 2, routed=True))}
    assert found == {
        lasting.id: Durability.CRITICAL,
        fleeting.id: Durability.FIRE_AND_FORGET,
        retried.id: Durability.FIRE_AND_FORGET,
    }


async def test_background_work_and_skipped_times_are_not_offered(scene: Scene) -> None:
    job = await scene.create(spec(every(60)))
    await scene.plan(120 * SECOND_US)
    await scene.store.skip_time(job.tenant, job.id, at(60), None)
    assert keys(await walk(scene, window(0, 120))) == [RunKey(job.id, at(120))]


async def test_jobs_are_read_by_their_ids(scene: Scene) -> None:
    one = await scene.create(spec(every(60)), tenant="acme")
    other = await scene.create(spec(every(60)), tenant="other")
    found = {job.id: job for job in await scene.store.read_jobs([other.id, one.id, one.id, 17])}
    assert found == {one.id: await scene.get(one), other.id: await scene.get(other)}
    assert await scene.store.read_jobs([]) == []
