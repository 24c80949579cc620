"""Every verb of the port goes to the shard that it is about, to all of them, or says where it belongs."""

from typing import Any

import pytest

from hourhand.core.identity import RunKey, compose_job_id
from hourhand.core.instant import DAY_US, SECOND_US
from hourhand.core.lifecycle import Event, State
from hourhand.core.log import LogChunk, LogPlace, Stream
from hourhand.core.model import DEFAULT_TENANT as TENANT
from hourhand.core.model import JobState
from hourhand.core.quota import QuotaOverride
from hourhand.core.report import Report, ReportOutcome, report_token
from hourhand.core.run import ProgressNote
from hourhand.errors import NotFound, WrongToken
from hourhand.ports.store import Store
from hourhand.services.reports import Reports
from hourhand.stores.sharded import PerShardVerb, ShardedStore
from tests.services.world import once
from tests.stores.sharded.cluster import SHARDS, Cluster
from tests.web import worker


async def test_verbs_about_one_job_go_to_its_shard(cluster: Cluster) -> None:
    for shard in range(SHARDS):
        job = await cluster.create(shard)
        paused = await cluster.jobs.pause(TENANT, job.id)
        assert paused.job.state is JobState.PAUSED
        assert [one.version for one in await cluster.store.versions(TENANT, job.id)] == [1, 2]
        key = await cluster.jobs.run_now(TENANT, job.id, request_key="r")
        assert await cluster.jobs.run_now(TENANT, job.id, request_key="r") == key
        assert (await cluster.runs.get(TENANT, key)).state is State.PENDING
        assert (await cluster.runs.cancel(TENANT, key)).state is State.CANCELLED
        assert await cluster.store.missed(TENANT, job.id) == []
        said = LogChunk(
            job_id=job.id, scheduled_at=key.scheduled_at, attempt=1, seq=1, at=1, stream=Stream.LOG, text="hi"
        )
        await cluster.shards[shard].append_log([said])
        assert await cluster.store.read_log(key, LogPlace(), None, 10) == [said]
        await cluster.jobs.delete(TENANT, job.id)
        with pytest.raises(NotFound):
            await cluster.jobs.get(TENANT, job.id)


async def test_sizes_nodes_time_and_hints_are_everybodys(cluster: Cluster) -> None:
    hints: list[Any] = []
    cluster.store.subscribe(hints.append)
    for shard in range(SHARDS):
        seen = len(hints)
        await cluster.create(shard, timing=once(cluster.clock.now() + shard * SECOND_US))
        assert len(hints) > seen
        await cluster.shards[shard].renew_node(7 + shard, "worker", "w", SECOND_US)
        await cluster.shards[shard].renew_node(99, "worker", "everywhere", SECOND_US)
    backlog = await cluster.store.backlog()
    assert (backlog.jobs, backlog.planned, backlog.oldest_due_at) == (3, 3, cluster.clock.now())
    assert sorted(node.id for node in await cluster.store.nodes()) == [7, 8, 9, 99]
    assert await cluster.store.now() == cluster.clock.now()


async def test_a_history_quota_holds_in_every_shard(cluster: Cluster) -> None:
    jobs = [await cluster.create(shard, timing=once(cluster.clock.now())) for shard in range(SHARDS)]
    cluster.clock.advance(SECOND_US)
    for shard in range(SHARDS):
        await cluster.finish(shard)
    cluster.clock.advance(2 * DAY_US)
    await cluster.store.set_quota(TENANT, QuotaOverride(history_days=1))
    for job in jobs:
        assert await cluster.store.job_runs(TENANT, job.id, [], None, 5) == []
    assert (await cluster.store.standing(TENANT)).quota.history_days == 1
    cluster.shards[0].away = True
    assert await cluster.store.history_kept_us(TENANT) == DAY_US


def test_every_verb_of_the_port_is_there() -> None:
    verbs = [name for name in vars(Store) if not name.startswith("_")]
    assert len(verbs) > 30
    assert [verb for verb in verbs if not callable(getattr(ShardedStore, verb, None))] == []


async def test_a_report_goes_to_its_runs_shard(cluster: Cluster) -> None:
    for shard in range(SHARDS):
        job = await cluster.create(shard, timing=once(cluster.clock.now()))
        [run] = await worker.take(cluster.shards[shard])
        await worker.end(cluster.shards[shard], cluster.clock, run, Event.REPORT_LATER, {})
        key = await cluster.store.report_key(job.id)
        assert key == await cluster.shards[shard].report_key(job.id)
        assert key is not None
        reports, token = Reports(store=cluster.store), report_token(key, run.run_id, 1)
        progress = Report(attempt=1, outcome=ReportOutcome.PROGRESS, fraction=0.5)
        await reports.take(run.key, token, progress)
        view = await cluster.runs.get(TENANT, run.key)
        assert view.progress is not None
        assert view.progress.fraction == 0.5
        done = Report(attempt=1, outcome=ReportOutcome.SUCCEEDED)
        assert (await reports.take(run.key, token, done)).state is State.SUCCEEDED
        assert (await reports.take(run.key, token, done)).repeated
    keys = {await shard.report_key(0) for shard in cluster.shards}
    assert len(keys) == SHARDS, "each has its own"


async def test_a_report_on_a_shard_that_does_not_exist_is_refused_like_any(cluster: Cluster) -> None:
    nowhere = RunKey(compose_job_id(1, SHARDS + 1, 1, 1), 5)
    assert await cluster.store.report_key(nowhere.job_id) is None
    with pytest.raises(WrongToken):
        await Reports(store=cluster.store).take(
            nowhere, "x", Report(attempt=1, outcome=ReportOutcome.SUCCEEDED)
        )
    note = ProgressNote(job_id=nowhere.job_id, scheduled_at=5, slot=0, fence=1)
    assert await cluster.store.note_progress([note]) == [note]
    assert (await cluster.store.find_attempt(nowhere, 1)).open is None


@pytest.mark.parametrize(
    ("verb", "arguments"),
    [
        ("tend_jobs", (1,)),
        ("due_clocks", ([0], 0, 1)),
        ("next_clock_at", ([0],)),
        ("plan", ([],)),
        ("claim", (None,)),
        ("held_runs", (1,)),
        ("cancel_asked", (1,)),
        ("stray_runs", (0, 1)),
        ("judge_late", ({}, 1)),
        ("hand_on_slots", (1,)),
        ("purge", (0, 0, 1)),
        ("append_log", ([],)),
        ("renew_node", (1, "k", "n", 1)),
        ("end_node", (1,)),
        ("hold_segments", (1, "k", "n", 1)),
        ("hold_allotted", (1, "k", "n", 1, {})),
    ],
)
async def test_verbs_of_one_database_say_where_they_belong(
    cluster: Cluster, verb: str, arguments: tuple[Any, ...]
) -> None:
    with pytest.raises(PerShardVerb, match=f"{verb} works within one database"):
        await getattr(cluster.store, verb)(*arguments)
