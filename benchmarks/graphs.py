"""How long one nominal time takes to go through a graph of jobs, and what waiting children cost everybody else.

`through`: 1,000 no-op jobs in 5 levels, each below the first following three of the level above, from the due time of
the roots until the last has ended; their own run time is nothing. On SQLite in one process, and on a durable
PostgreSQL with one scheduler and two workers. `claims`: how many runs a second one connection claims and ends from a
full plan, with 100,000 runs of other jobs waiting for their parents beside it and without.

    python -m benchmarks.graphs [--jobs 1000] [--levels 5] [--waiting 100000] [--rounds 3] [--quick]
"""

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path

import asyncpg
import uvloop

from benchmarks._cluster import check_alive, migrate, nodes, settle, spec_of, store_all, worker
from benchmarks._postgres import BenchPostgres, postgres
from benchmarks._report import Report, Size, at_least, below, options_of
from benchmarks._steps import success
from benchmarks._system import Tally, quiet, scratch, settings_for, system
from hourhand.core.instant import DAY_US, SECOND_US
from hourhand.core.model import DEFAULT_POOL, DEFAULT_TENANT, AfterTiming, OnceTiming
from hourhand.core.run import ClaimedRun, Settlement
from hourhand.ids import IdSource
from hourhand.ports.store import ClaimRequest, JobDraft, Store
from hourhand.stores.postgres import PostgresStore
from tests.servers.postgres_databases import database_of

PARENTS = 3
AHEAD_S = 8.0  # from the first job to the due time
PATIENCE_S = 60.0
_BATCH = 500


def graph(ids: IdSource, jobs: int, levels: int, due_at: int) -> list[JobDraft]:
    """Levels of jobs, each following some of the one above; parents come before their children."""
    width = jobs // levels
    above: list[int] = []
    drafts: list[JobDraft] = []
    for level in range(levels):
        here = []
        for place in range(width):
            parents = {above[(place + step) % width] for step in range(PARENTS)} if level else set()
            timing = AfterTiming(parents=tuple(sorted(parents))) if parents else OnceTiming(at=due_at)
            here.append(JobDraft(id=ids.job_id(), tenant=DEFAULT_TENANT, spec=spec_of(timing)))
        drafts += here
        above = [draft.id for draft in here]
    return drafts


class _Last(Tally):
    """Notices when the last of some runs has ended."""

    def __init__(self, jobs: int) -> None:
        super().__init__()
        self._jobs = jobs
        self.all_ended = asyncio.Event()

    def __call__(self, batch: Sequence[tuple[ClaimedRun, Settlement]]) -> None:
        super().__call__(batch)
        if self.succeeded + self.others >= self._jobs:
            self.all_ended.set()


async def through_sqlite(jobs: int, levels: int) -> float:
    """Seconds from the due time to the end of the last run, in one process."""
    tally = _Last(jobs)
    with scratch() as folder:
        async with system(settings_for(Path(folder) / "bench.db", concurrency=1000), tally) as parts:
            due_at = parts.clock.now() + int(AHEAD_S * SECOND_US)
            await _create(parts.store, graph(IdSource(parts.clock), jobs, levels, due_at))
            await parts.node.start()
            quiet()
            await asyncio.wait_for(tally.all_ended.wait(), AHEAD_S + PATIENCE_S)
            took_s = (parts.clock.now() - due_at) / SECOND_US
    if tally.succeeded != jobs:
        raise SystemExit(f"of {jobs:,} runs {tally.succeeded:,} succeeded")
    return took_s


def through_postgres(bench: BenchPostgres, jobs: int, levels: int) -> float:
    """The same in a cluster."""
    url = bench.databases.create_database()
    settings = {"telemetry_log": "warning"}
    commands = [("scheduler",), worker(500), worker(500)]
    try:
        migrate(url)
        with nodes(bench.databases, url, commands, settings) as parts:
            due_at = time.time_ns() // 1000 + int(AHEAD_S * SECOND_US)
            uvloop.run(_create_in(url, jobs, levels, due_at))
            settle(bench.databases, url)
            end_s = time.monotonic() + AHEAD_S + PATIENCE_S
            while bench.databases.query(_COUNT, database=database_of(url))[0][0] < jobs:
                check_alive(parts)
                if time.monotonic() > end_s:
                    raise SystemExit("the graph did not come to its end")
                time.sleep(0.2)
        last = bench.databases.query(_LAST, database=database_of(url))[0][0]
    finally:
        bench.databases.drop_database(url)
    return (last - due_at) / SECOND_US


_COUNT = "SELECT count(*) FROM history WHERE state = 3"
_LAST = "SELECT max(finished_at) FROM history"


async def claims(bench: BenchPostgres, waiting: int, runs: int) -> float:
    """Runs a second that one connection claims and ends beside so many that wait."""
    url = bench.databases.create_database()
    try:
        migrate(url)
        store = await PostgresStore.open(url)
        try:
            await _fill(url, store, waiting, runs)
            return await _work(store, runs)
        finally:
            await store.close()
    finally:
        bench.databases.drop_database(url)


async def _fill(url: str, store: PostgresStore, waiting: int, runs: int) -> None:
    ids = IdSource(store.clock)
    now_at = await store.now()
    for start in range(0, runs, _BATCH):
        count = min(_BATCH, runs - start)
        once = spec_of(OnceTiming(at=now_at))
        drafts = [JobDraft(id=ids.job_id(), tenant=DEFAULT_TENANT, spec=once) for _ in range(count)]
        await store_all(store, drafts)
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(
            "INSERT INTO waiting (job_id, scheduled_at, made_at, deadline_at, look_at, fence, trigger, parents)"
            " SELECT n, $1::bigint, $1, $1::bigint + $2::bigint, $1::bigint + $2::bigint, 0, 6, '[1,2]' FROM generate_series(1, $3::bigint) AS n",
            now_at,
            DAY_US,
            waiting,
        )
        await connection.execute("ANALYZE")
    finally:
        await connection.close()


async def _work(store: Store, runs: int) -> float:
    await store.renew_node(1, "worker", "bench", DAY_US)
    began_s = time.perf_counter()
    done = 0
    while done < runs:
        request = ClaimRequest(node_id=1, pools=(DEFAULT_POOL,), room=1000, lead_us=2 * SECOND_US)
        claim = await store.claim(request)
        await store.settle("bench", [success(run, claim.now_at) for run in claim.runs])
        done += len(claim.runs)
    return done / (time.perf_counter() - began_s)


async def _create(store: Store, drafts: Sequence[JobDraft]) -> None:
    for start in range(0, len(drafts), _BATCH):
        for answer in await store.create_jobs(drafts[start : start + _BATCH]):
            if not hasattr(answer, "spec"):
                raise SystemExit(f"a job was refused: {answer}")


async def _create_in(url: str, jobs: int, levels: int, due_at: int) -> None:
    store = await PostgresStore.open(url)
    try:
        await _create(store, graph(IdSource(store.clock), jobs, levels, due_at))
    finally:
        await store.close()


def main() -> None:
    """Both questions."""
    options = options_of(
        __doc__ or "",
        Size("jobs", 1_000, 50, "jobs of the graph"),
        Size("levels", 5, 5, "levels of it"),
        Size("waiting", 100_000, 1_000, "runs that wait for their parents"),
        Size("runs", 40_000, 500, "runs that are claimed beside them"),
    )
    report = Report("graphs", options)
    jobs, levels = int(options.jobs), int(options.levels)
    alone = [uvloop.run(through_sqlite(jobs, levels)) for _ in range(options.rounds)]
    report.figure(f"{jobs:,} jobs in {levels} levels through SQLite", "s", alone, below(2))
    with postgres() as bench:
        report.note(f"PostgreSQL with {', '.join(bench.differing)}")
        cluster = [through_postgres(bench, jobs, levels) for _ in range(options.rounds)]
        report.figure(f"{jobs:,} jobs in {levels} levels through a cluster", "s", cluster, below(2))
        ratios = []
        for _ in range(options.rounds):
            without = uvloop.run(claims(bench, 0, int(options.runs)))
            beside = uvloop.run(claims(bench, int(options.waiting), int(options.runs)))
            report.say(f"claimed and ended: {without:,.0f}/s alone, {beside:,.0f}/s beside what waits")
            ratios.append(beside / without)
        name = f"claims beside {int(options.waiting):,} waiting children, of those without"
        report.figure(name, "times", ratios, at_least(0.9))
    report.save()


if __name__ == "__main__":
    main()
