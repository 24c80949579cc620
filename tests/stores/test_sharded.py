"""Several databases as one store: where jobs go, keys over all shards, merged lists, and a shard that is away."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from hourhand.clock import ManualClock
from hourhand.core.buckets import even_map, key_part
from hourhand.core.identity import RunKey, compose_job_id, shard_of
from hourhand.core.instant import DAY_US, SECOND_US
from hourhand.core.lifecycle import Event, State
from hourhand.core.log import LogChunk, LogPlace, Stream
from hourhand.core.model import DEFAULT_TENANT as TENANT
from hourhand.core.model import Job, JobState
from hourhand.core.report import Report, ReportOutcome, report_token
from hourhand.core.run import ProgressNote, RunView
from hourhand.core.specification import SpecLimits
from hourhand.errors import Ambiguous, CannotStart, Conflict, Invalid, NotFound, Unavailable, WrongToken
from hourhand.ids import IdSource
from hourhand.ports.store import DeadQuery, JobDraft, JobEdit, JobQuery, Refusal, RunQuery, Store
from hourhand.services.audit import Audit, Window
from hourhand.services.jobs import Jobs, NewJob
from hourhand.services.reports import Reports
from hourhand.services.runs import Runs
from hourhand.stores.sharded import PerShardVerb, ShardedStore
from hourhand.stores.sqlite import SqliteStore
from tests.services.world import FaultyStore, once, spec
from tests.web import worker

SHARDS = 3


class Cluster:
    """Shards in memory that can be away, the store over them, and the use cases of an API instance."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.shards = [FaultyStore(SqliteStore.in_memory(clock=self.clock)) for _ in range(SHARDS)]
        self.store = ShardedStore(self.shards, even_map(SHARDS))
        self.jobs, self.runs = services(self.store, self.clock)

    async def create(self, shard: int | None = None, **fields: Any) -> Job:
        """A job, on a shard that a test wants."""
        if shard is not None:
            fields["shard_key"] = next(f"s{n}" for n in range(1_000) if self.home(shard_key=f"s{n}") == shard)
        timing = fields.pop("timing", None)
        return await self.jobs.create(TENANT, NewJob(spec=spec(timing, **fields)))

    def home(self, **fields: Any) -> int:
        return self.store.place(TENANT, spec(**fields))

    def key_on(self, shard: int, form: str = "k{}") -> str:
        return next(key for n in range(1_000) if self.home(key=(key := form.format(n))) == shard)

    async def finish(self, shard: int, end: Callable[..., Any] = worker.succeed) -> list[str]:
        """Let everything that is due on a shard end."""
        return await end(self.shards[shard], self.clock)

    async def dead_run(self, shard: int, error: str = "HTTP 500") -> RunKey:
        job = await self.create(shard, timing=once(self.clock.now()))
        self.clock.advance(SECOND_US)
        await worker.fail(self.shards[shard], self.clock, error)
        [view] = await self.store.job_runs(TENANT, job.id, [], None, 5)
        return RunKey(view.job_id, view.scheduled_at)


def services(store: Store, clock: ManualClock, seed: int = 1) -> tuple[Jobs, Runs]:
    jobs = Jobs(store=store, ids=IdSource(clock, seed=seed), clock=clock, limits=SpecLimits())
    return jobs, Runs(store=store, clock=clock, horizon_us=60 * SECOND_US)


@pytest.fixture
async def cluster() -> AsyncIterator[Cluster]:
    made = Cluster()
    yield made
    for shard in made.shards:
        shard.away = False
    await made.store.close()


# --- where jobs go


async def test_a_job_is_on_the_shard_that_its_id_names_and_nowhere_else(cluster: Cluster) -> None:
    made = [await cluster.create(shard, name=f"on {shard}") for shard in range(SHARDS)]
    for shard, job in enumerate(made):
        assert shard_of(job.id) == shard
        found = [await one.get_job(TENANT, job.id) for one in cluster.shards]
        assert [one is not None for one in found] == [index == shard for index in range(SHARDS)]
        assert await cluster.store.get_job(TENANT, job.id) == job
        assert await cluster.store.get_job("other", job.id) is None


async def test_jobs_that_may_be_anywhere_are_spread_evenly(cluster: Cluster) -> None:
    made = await cluster.jobs.create_many(TENANT, [NewJob(spec=spec(name=f"{n}")) for n in range(900)])
    assert [job.spec.name for job in made if isinstance(job, Job)] == [f"{n}" for n in range(900)]
    sizes = Counter(shard_of(job.id) for job in made if isinstance(job, Job))
    assert len(sizes) == SHARDS
    assert max(sizes.values()) - min(sizes.values()) <= 10
    assert (await cluster.store.backlog()).jobs == 900


async def test_jobs_with_a_shard_key_stay_together_also_with_those_whose_key_names_it(
    cluster: Cluster,
) -> None:
    made = [await cluster.create(shard_key="billing") for _ in range(3)]
    made += [
        await cluster.create(key="{billing}/daily"),
        await cluster.create(key="{billing}/x", shard_key="billing"),
    ]
    assert len({shard_of(job.id) for job in made}) == 1


async def test_a_key_and_a_shard_key_that_disagree_are_refused_and_nothing_is_stored(
    cluster: Cluster,
) -> None:
    wrong = NewJob(spec=spec(key="billing/daily", shard_key="billing"))
    for dry_run in (True, False):
        answers = await cluster.jobs.create_many(TENANT, [wrong, NewJob(spec=spec())], dry_run=dry_run)
        assert isinstance(answers[0], Invalid)
        assert answers[0].faults[0].pointer == "/shard_key"
        assert "'{billing}/daily'" in (answers[0].faults[0].hint or "")
        assert isinstance(answers[1], Job)
    assert (await cluster.store.backlog()).jobs == 1


async def test_a_job_of_no_shard_is_not_found(cluster: Cluster) -> None:
    nowhere = compose_job_id(1, SHARDS, 0, 0)
    key = RunKey(nowhere, 5)
    store = cluster.store
    assert await store.get_job(TENANT, nowhere) is None
    assert await store.delete_job(TENANT, nowhere, False) is None
    assert (
        await store.change_job(TENANT, nowhere, lambda job, now: JobEdit(spec=job.spec, paused=True)) is None
    )
    assert await store.add_run(TENANT, nowhere, None) is None
    assert await store.cancel_run(TENANT, key) is None
    assert await store.get_run(TENANT, key) is None
    assert await store.versions(TENANT, nowhere) == []
    assert await store.missed(TENANT, nowhere) == []
    assert await store.read_log(key, LogPlace(), None, 10) == []
    assert await store.job_runs(TENANT, nowhere, [], None, 5) == []
    assert await store.requeue(TENANT, [key]) == []
    assert (await store.list_runs(TENANT, RunQuery(from_at=0, to_at=9, job_id=nowhere))).runs == ()
    assert (await store.dead_letters(TENANT, DeadQuery(job_id=nowhere))).letters == ()
    with pytest.raises(ValueError, match="shard 3, but there are 3"):
        await store.create_jobs([JobDraft(id=nowhere, tenant=TENANT, spec=spec())])


def test_as_many_stores_as_the_map_names() -> None:
    with pytest.raises(CannotStart, match="names 3 shards, but 0"):
        ShardedStore([], even_map(3))


# --- keys over all shards


@pytest.mark.parametrize("key", ["plain", "{tagged}/daily"])
async def test_of_many_who_create_a_key_at_once_one_gets_it(tmp_path: Path, key: str) -> None:
    """Real files and threads, and every create through an instance of its own."""
    clock = ManualClock()
    shards = [SqliteStore.open(tmp_path / f"{index}.db", clock=clock) for index in range(2)]
    instances = [services(ShardedStore(shards, even_map(2)), clock, seed)[0] for seed in range(12)]
    forms = [{"key": key}, {"key": key, "shard_key": key_part(key)}, {"key": key, "tags": ("x",)}]
    news = [NewJob(spec=spec(**forms[n % len(forms)])) for n in range(len(instances))]  # type: ignore[arg-type]
    answers = await asyncio.gather(
        *(
            jobs.create_many(TENANT, [new, NewJob(spec=spec())])
            for jobs, new in zip(instances, news, strict=True)
        )
    )
    winners = [answer for answer, _ in answers if isinstance(answer, Job)]
    losers = [answer for answer, _ in answers if isinstance(answer, Conflict)]
    assert (len(winners), len(losers)) == (1, 11)
    found = [job for shard in shards for job in await shard.find_jobs(TENANT, key, 0)]
    assert found == winners
    for shard in shards:
        await shard.close()


async def test_a_job_is_found_by_its_key_by_asking_one_shard(cluster: Cluster) -> None:
    for shard in range(SHARDS):
        job = await cluster.create(key=cluster.key_on(shard))
        before = Counter({n: one.calls["find_jobs"] for n, one in enumerate(cluster.shards)})
        assert await cluster.jobs.resolve(TENANT, job.spec.key or "") == job
        after = Counter({n: one.calls["find_jobs"] for n, one in enumerate(cluster.shards)})
        assert after - before == Counter({shard: 1})


@pytest.mark.parametrize("dry_run", [True, False])
async def test_a_key_may_change_within_its_shard_only(cluster: Cluster, dry_run: bool) -> None:
    job = await cluster.create(key=cluster.key_on(0))
    elsewhere, here = cluster.key_on(1, "other{}"), cluster.key_on(0, "other{}")

    def rename(key: str | None) -> Callable[[Job, int], NewJob]:
        return lambda job, now_at: NewJob(spec=spec(key=key))

    with pytest.raises(Invalid, match="belongs to another database") as wrong:
        await cluster.jobs.update(TENANT, job.id, rename(elsewhere), dry_run=dry_run)
    assert wrong.value.faults[0].pointer == "/key"
    for key in (here, None):
        changed = await cluster.jobs.update(TENANT, job.id, rename(key), dry_run=dry_run)
        assert changed.job.spec.key == key


async def test_the_store_itself_lets_no_key_stray(cluster: Cluster) -> None:
    job = await cluster.create(shard=0)
    elsewhere = spec(key=cluster.key_on(1))
    with pytest.raises(Invalid, match="another shard"):
        await cluster.store.change_job(TENANT, job.id, lambda one, now: JobEdit(spec=elsewhere, paused=False))
    with pytest.raises(Invalid, match="another shard"):
        await cluster.store.create_jobs(
            [JobDraft(id=compose_job_id(1, 2, 0, 0), tenant=TENANT, spec=elsewhere)]
        )
    assert (await cluster.store.backlog()).jobs == 1
    assert await cluster.store.get_job(TENANT, job.id) == job


async def test_an_upsert_creates_once_and_then_changes(cluster: Cluster) -> None:
    def named(key: str, name: str) -> Callable[[Job | None, int], NewJob]:
        return lambda job, now_at: NewJob(spec=spec(key=key, name=name))

    for key in [cluster.key_on(shard) for shard in range(SHARDS)]:
        made, created = await cluster.jobs.upsert(TENANT, key, named(key, "first"))
        again, anew = await cluster.jobs.upsert(TENANT, key, named(key, "second"))
        assert (created, anew, again.job.id, again.job.spec.name) == (True, False, made.job.id, "second")
    assert (await cluster.store.backlog()).jobs == SHARDS


async def test_names_are_looked_for_everywhere(cluster: Cluster) -> None:
    alone = await cluster.create(1, name="alone")
    for shard in (0, 2):
        await cluster.create(shard, name="twin")
    keyed = await cluster.create(key="twin2", name="x")
    await cluster.create(name="twin2")
    assert await cluster.jobs.resolve(TENANT, "alone") == alone
    assert await cluster.jobs.resolve(TENANT, "twin2") == keyed  # a key goes before names
    with pytest.raises(Ambiguous):
        await cluster.jobs.resolve(TENANT, "twin")
    with pytest.raises(NotFound):
        await cluster.jobs.resolve(TENANT, "nobody")


# --- lists


async def all_jobs(store: Store, **query: Any) -> list[Job]:
    found: list[Job] = []
    before: int | None = None
    for _ in range(200):
        page = await store.list_jobs(TENANT, JobQuery(before_id=before, **query))
        assert page.missing == ()
        found += page.jobs
        if page.next_before_id is None:
            return found
        before = page.next_before_id
    raise AssertionError("the list does not end")


@pytest.mark.parametrize("limit", [1, 2, 7, 50])
async def test_jobs_of_all_shards_come_newest_first_page_by_page(cluster: Cluster, limit: int) -> None:
    made = []
    for n in range(30):
        made.append(await cluster.create(n * n % SHARDS, tags=("odd",) if n % 2 else ()))
        cluster.clock.advance(n % 3 * 1_000)
    assert await all_jobs(cluster.store, limit=limit) == made[::-1]
    odd = await all_jobs(cluster.store, limit=limit, tag="odd")
    assert odd == made[::-2]
    await cluster.jobs.pause(TENANT, made[7].id)
    [paused] = await all_jobs(cluster.store, limit=limit, state=JobState.PAUSED)
    assert paused.id == made[7].id


async def all_runs(store: Store, limit: int, to_at: int, **query: Any) -> list[RunView]:
    found: list[RunView] = []
    before: tuple[int, ...] | None = None
    for _ in range(200):
        asked = RunQuery(from_at=0, to_at=to_at, before=before, limit=limit, **query)
        page = await store.list_runs(TENANT, asked)
        assert len(page.runs) <= limit
        found += page.runs
        if page.next_before is None:
            return found
        before = page.next_before
    raise AssertionError("the list does not end")


@pytest.mark.parametrize("limit", [1, 2, 7, 50])
async def test_runs_of_all_shards_come_newest_first_page_by_page(cluster: Cluster, limit: int) -> None:
    ended: list[str] = []
    for n in range(24):
        await cluster.create(n * n % SHARDS, timing=once(cluster.clock.now()))
        cluster.clock.advance(SECOND_US)
        ended += await cluster.finish(n * n % SHARDS, worker.fail if n % 4 == 0 else worker.succeed)
    now_at = cluster.clock.now()
    assert len(ended) == 24
    runs = await all_runs(cluster.store, limit, now_at)
    assert [run.run_id for run in runs] == ended[::-1]
    failed = await all_runs(cluster.store, limit, now_at, states=(State.FAILED,))
    assert [run.run_id for run in failed] == ended[::-1][3::4]
    one = await all_runs(cluster.store, limit, now_at, job_id=runs[5].job_id)
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
    found: list[RunKey] = []
    query: DeadQuery | None = DeadQuery(limit=limit)
    while query is not None:
        page = await cluster.store.dead_letters(TENANT, query)
        found += [RunKey(letter.job_id, letter.scheduled_at) for letter in page.letters]
        query = None if page.next_before is None else DeadQuery(limit=limit, before=page.next_before)
    assert found == dead[::-1]
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


# --- one job's verbs


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


# --- a shard that is away


async def test_with_a_shard_away_the_others_go_on(cluster: Cluster) -> None:
    jobs = [await cluster.create(shard) for shard in range(SHARDS)]
    cluster.shards[1].away = True
    with pytest.raises(Unavailable, match="shard 1"):
        await cluster.jobs.get(TENANT, jobs[1].id)
    with pytest.raises(Unavailable, match="shard 1"):
        await cluster.jobs.pause(TENANT, jobs[1].id)
    for shard in (0, 2):
        assert await cluster.jobs.get(TENANT, jobs[shard].id) == jobs[shard]
        assert (await cluster.jobs.pause(TENANT, jobs[shard].id)).job.state is JobState.PAUSED
    await cluster.store.ping()
    assert await cluster.store.now() == cluster.clock.now()
    assert (await cluster.store.backlog()).jobs == 2
    assert cluster.store.silent == (1,)


async def test_lists_say_which_shards_they_lack_until_it_is_back(cluster: Cluster) -> None:
    jobs = [await cluster.create(shard, timing=once(cluster.clock.now())) for shard in range(SHARDS)]
    dead = [await cluster.dead_run(shard) for shard in range(SHARDS)]
    now_at = cluster.clock.now()
    for away in (True, False):
        cluster.shards[1].away = away
        missing, shards = ((1,), {0, 2}) if away else ((), {0, 1, 2})
        page = await cluster.store.list_jobs(TENANT, JobQuery())
        assert (page.missing, {shard_of(job.id) for job in page.jobs}) == (missing, shards)
        letters = await cluster.store.dead_letters(TENANT, DeadQuery())
        assert (letters.missing, {shard_of(one.job_id) for one in letters.letters}) == (missing, shards)
        runs = await cluster.store.list_runs(TENANT, RunQuery(from_at=0, to_at=now_at))
        assert (runs.missing, {shard_of(run.job_id) for run in runs.runs}) == (missing, shards)
    assert len(jobs) == len(dead) == SHARDS
    assert cluster.store.silent == ()


async def test_a_list_of_runs_ends_although_a_shard_has_more_and_is_away(cluster: Cluster) -> None:
    for n in range(6):
        await cluster.create(n % SHARDS, timing=once(cluster.clock.now()))
        cluster.clock.advance(SECOND_US)
        await cluster.finish(n % SHARDS)
    cluster.shards[2].away = True
    runs = await all_runs(cluster.store, 1, cluster.clock.now())
    assert [shard_of(run.job_id) for run in runs] == [1, 0, 1, 0]


async def test_in_a_batch_each_draft_answers_for_itself(cluster: Cluster) -> None:
    keys = [cluster.key_on(shard) for shard in range(SHARDS)]
    cluster.shards[1].away = True
    answers = await cluster.jobs.create_many(TENANT, [NewJob(spec=spec(key=key)) for key in keys])
    assert [type(answer) for answer in answers] == [Job, Unavailable, Job]
    cluster.shards[1].away = False
    again = await cluster.jobs.create_many(TENANT, [NewJob(spec=spec(key=key)) for key in keys])
    assert [type(answer) for answer in again] == [Conflict, Job, Conflict]


async def test_a_lost_answer_is_told_as_such_and_the_key_stays_one_jobs(cluster: Cluster) -> None:
    key = cluster.key_on(1)
    cluster.shards[1].lose_answer("create_jobs")
    draft = JobDraft(id=compose_job_id(1, 1, 0, 0), tenant=TENANT, spec=spec(key=key))
    assert await cluster.store.create_jobs([draft]) == [Refusal.UNAVAILABLE]
    with pytest.raises(Conflict):
        await cluster.create(key=key)


async def test_jobs_that_may_be_anywhere_go_past_a_shard_that_is_away(cluster: Cluster) -> None:
    cluster.shards[1].away = True
    await cluster.store.ping()
    made = [await cluster.create() for _ in range(20)]
    assert {shard_of(job.id) for job in made} == {0, 2}
    cluster.shards[1].away = False
    await cluster.store.ping()
    assert {shard_of((await cluster.create()).id) for _ in range(20)} == {0, 1, 2}


async def test_keys_of_other_shards_are_found_and_created_but_a_name_alone_is_not_trusted(
    cluster: Cluster,
) -> None:
    job = await cluster.create(0, name="alone")
    cluster.shards[2].away = True
    key = cluster.key_on(0)
    made, created = await cluster.jobs.upsert(TENANT, key, lambda one, now: NewJob(spec=spec(key=key)))
    assert created
    assert await cluster.jobs.resolve(TENANT, key) == made.job
    with pytest.raises(Unavailable, match="shard 2"):
        await cluster.jobs.resolve(TENANT, "alone")
    with pytest.raises(Unavailable):
        await cluster.jobs.resolve(TENANT, "nobody")
    cluster.shards[2].away = False
    assert await cluster.jobs.resolve(TENANT, "alone") == job


async def test_what_would_be_wrong_without_a_shard_is_refused(cluster: Cluster) -> None:
    dead = [await cluster.dead_run(shard) for shard in range(SHARDS)]
    cluster.shards[0].away = True
    with pytest.raises(Unavailable, match="counted while shard 0"):
        await cluster.store.dead_groups(TENANT, "error", 5)
    with pytest.raises(Unavailable, match="while shard 0 cannot be reached; name them by id"):
        await cluster.runs.matching(TENANT, DeadQuery())
    assert await cluster.runs.matching(TENANT, DeadQuery(job_id=dead[1].job_id)) == [dead[1]]
    with pytest.raises(Unavailable, match="shard 0 cannot be reached; what lies elsewhere is done"):
        await cluster.store.requeue(TENANT, dead)
    cluster.shards[0].away = False
    assert await cluster.store.requeue(TENANT, dead) == [dead[0]]


async def test_with_all_shards_away_nothing_is_pretended(cluster: Cluster) -> None:
    for shard in cluster.shards:
        shard.away = True
    for ask in (
        lambda: cluster.store.ping(),
        lambda: cluster.store.now(),
        lambda: cluster.store.backlog(),
        lambda: cluster.store.nodes(),
        lambda: cluster.store.list_jobs(TENANT, JobQuery()),
        lambda: cluster.store.list_runs(TENANT, RunQuery(from_at=0, to_at=9)),
        lambda: cluster.create(),
    ):
        with pytest.raises(Unavailable):
            await ask()


async def test_a_failure_that_is_not_silence_is_not_hidden(cluster: Cluster) -> None:
    async def broken(*args: Any) -> None:
        raise ZeroDivisionError

    cluster.shards[1].list_jobs = broken  # type: ignore[attr-defined]
    with pytest.raises(ZeroDivisionError):
        await cluster.store.list_jobs(TENANT, JobQuery())


# --- the port


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
    ],
)
async def test_verbs_of_one_database_say_where_they_belong(
    cluster: Cluster, verb: str, arguments: tuple[Any, ...]
) -> None:
    with pytest.raises(PerShardVerb, match=f"{verb} works within one database"):
        await getattr(cluster.store, verb)(*arguments)


# --- audits


async def test_an_audit_goes_over_all_shards_and_names_those_that_are_away(cluster: Cluster) -> None:
    began_at = cluster.clock.now()
    for shard in range(SHARDS):
        for n in range(3):
            await cluster.create(shard, timing=once(began_at + n))
    cluster.clock.advance(SECOND_US)
    for shard in range(SHARDS):
        await cluster.finish(shard)
    audit = Audit(store=cluster.store, clock=cluster.clock, keep_us=DAY_US, page_jobs=2)
    window = Window(from_at=began_at, to_at=cluster.clock.now(), tenant=TENANT)
    report = await audit.window(window)
    assert (report.is_clean, report.jobs_checked, report.tally.succeeded) == (True, 9, 9)
    cluster.shards[1].away = True
    report = await audit.window(window)
    assert (report.complete, report.missing, report.kinds) == (False, (1,), {})
    assert (report.jobs_checked, report.tally.succeeded) == (6, 6)
    with pytest.raises(Invalid):
        await audit.window(window, after=(SHARDS, 1))
