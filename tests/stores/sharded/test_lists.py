"""Lists of all shards as one: in order, page by page, wherever their rows are."""

import pytest

from hourhand.core.identity import RunKey
from hourhand.core.instant import SECOND_US
from hourhand.core.lifecycle import State
from hourhand.core.model import DEFAULT_TENANT as TENANT
from hourhand.core.model import JobState
from hourhand.errors import Invalid
from hourhand.ports.reading import DeadQuery, JobQuery, RunQuery
from tests.contract.paging import all_jobs, all_letters, all_runs
from tests.services.world import once
from tests.stores.sharded.cluster import SHARDS, Cluster
from tests.web import worker


@pytest.mark.parametrize("limit", [1, 2, 7, 50])
async def test_jobs_of_all_shards_come_newest_first_page_by_page(cluster: Cluster, limit: int) -> None:
    made = []
    for n in range(30):
        made.append(await cluster.create(n * n % SHARDS, tags=("odd",) if n % 2 else ()))
        cluster.clock.advance(n % 3 * 1_000)
    assert await all_jobs(cluster.store, JobQuery(limit=limit)) == made[::-1]
    odd = await all_jobs(cluster.store, JobQuery(limit=limit, tag="odd"))
    assert odd == made[::-2]
    await cluster.jobs.pause(TENANT, made[7].id)
    [paused] = await all_jobs(cluster.store, JobQuery(limit=limit, state=JobState.PAUSED))
    assert paused.id == made[7].id


@pytest.mark.parametrize("limit", [1, 2, 7, 50])
async def test_runs_of_all_shards_come_newest_first_page_by_page(cluster: Cluster, limit: int) -> None:
    ended: list[str] = []
    for n in range(24):
        await cluster.create(n * n % SHARDS, timing=once(cluster.clock.now()))
        cluster.clock.advance(SECOND_US)
        ended += await cluster.finish(n * n % SHARDS, worker.fail if n % 4 == 0 else worker.succeed)
    now_at = cluster.clock.now()
    assert len(ended) == 24
    runs = await all_runs(cluster.store, RunQuery(from_at=0, to_at=now_at, limit=limit))
    assert [run.run_id for run in runs] == ended[::-1]
    failed = await all_runs(
        cluster.store, RunQuery(from_at=0, to_at=now_at, limit=limit, states=(State.FAILED,))
    )
    assert [run.run_id for run in failed] == ended[::-1][3::4]
    one = await all_runs(cluster.store, RunQuery(from_at=0, to_at=now_at, limit=limit, job_id=runs[5].job_id))
    assert [run.run_id for run in one] == [runs[5].run_id]


async def test_runs_that_end_between_two_pages_disturb_nothing(cluster: Cluster) -> None:
    ended: list[str] = []
    for n in range(12):
        await cluster.create(n % SHARDS, timing=once(cluster.clock.now()))
        cluster.clock.advance(SECOND_US)
        ended += await cluster.finish(n % SHARDS)
    to_at = cluster.clock.now()
    found, before = [], None
    while True:
        page = await cluster.store.list_runs(TENANT, RunQuery(from_at=0, to_at=to_at, before=before, limit=2))
        found += [run.run_id for run in page.runs]
        before = page.next_before
        if before is None:
            break
        cluster.clock.advance(SECOND_US)
        await cluster.create(len(found) % SHARDS, timing=once(cluster.clock.now()))
        await cluster.finish(len(found) % SHARDS)
    assert found == ended[::-1]


async def test_runs_that_hold_a_slot_are_listed_from_all_shards(cluster: Cluster) -> None:
    jobs = [await cluster.create(shard, timing=once(cluster.clock.now())) for shard in range(SHARDS)]
    for shard in cluster.shards:
        await worker.take(shard)
    query = RunQuery(from_at=0, to_at=cluster.clock.now(), states=(State.RUNNING,), limit=2)
    page = await cluster.store.list_runs(TENANT, query)
    assert len({run.job_id for run in page.runs} & {job.id for job in jobs}) == 2
    assert page.next_before is None


async def test_a_cursor_of_another_list_is_refused(cluster: Cluster) -> None:
    for before in [(5,), (0, 0), (9, 9, 9)]:
        with pytest.raises(Invalid, match="cursor"):
            await cluster.store.list_runs(TENANT, RunQuery(from_at=0, to_at=9, before=before))
    with pytest.raises(Invalid, match="cursor"):
        await cluster.shards[0].list_runs(TENANT, RunQuery(from_at=0, to_at=9, before=(0, 0)))


@pytest.mark.parametrize("limit", [1, 3, 50])
async def test_dead_letters_of_all_shards_come_newest_first_page_by_page(
    cluster: Cluster, limit: int
) -> None:
    dead = [await cluster.dead_run(n * n % SHARDS, f"error {n % 2}") for n in range(10)]
    letters = await all_letters(cluster.store, DeadQuery(limit=limit))
    assert [RunKey(letter.job_id, letter.scheduled_at) for letter in letters] == dead[::-1]
    assert [len(await cluster.runs.dead_among(TENANT, [key])) for key in dead] == [1] * 10


async def test_dead_letters_are_counted_over_all_shards(cluster: Cluster) -> None:
    for n in range(9):
        await cluster.dead_run(n % SHARDS, "common" if n < 6 else "rare")
    groups = await cluster.store.dead_groups(TENANT, "error", 10)
    assert [group.count for group in groups] == [6, 3]
    assert [group.count for group in await cluster.store.dead_groups(TENANT, "error", 1)] == [6]
    assert len(await cluster.store.dead_groups(TENANT, "job", 10)) == 9


async def test_dead_letters_are_sent_back_and_discarded_wherever_they_are(cluster: Cluster) -> None:
    dead = [await cluster.dead_run(n % SHARDS) for n in range(6)]
    unknown = RunKey(dead[0].job_id, 5)
    assert await cluster.store.requeue(TENANT, [dead[4], unknown, dead[0]]) == [dead[4], dead[0]]
    assert await cluster.store.discard(TENANT, dead) == [dead[1], dead[2], dead[3], dead[5]]
    assert (await cluster.store.dead_letters(TENANT, DeadQuery())).letters == ()
    for key in (dead[0], dead[4]):
        run = await cluster.store.get_run(TENANT, key)
        assert run is not None
        assert run.state is State.PENDING
