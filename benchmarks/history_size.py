"""What 30 days of history cost at 50 million runs a day: bytes, dropping a day, and a job's page of history.

Runs are planned, claimed and finished by the store itself until a day's partition holds a few million; its size, heap
and index, gives bytes a run, and so what 30 days would take. The days before get copies of a part of it, each in its
own partition; then 200 jobs are asked for a page of their runs through the store. At last the large day is dropped as
the sweeper drops it when its time has come: detached without locking history, then its files are removed. A day of 50
million is larger by the factor that is printed; removing its files takes no longer than in proportion.

    python -m benchmarks.history_size [--runs 2000000] [--copies 200000] [--jobs 100000] [--rounds 3] [--quick]
"""

import time
from dataclasses import dataclass
from typing import Any

import asyncpg
import uvloop

from benchmarks import _steps
from benchmarks._many_jobs import begin_at, forget_runs, load
from benchmarks._postgres import postgres
from benchmarks._report import Report, Size, below, options_of, percentile
from hourhand.clock import ManualClock
from hourhand.core.instant import DAY_US, SECOND_US
from hourhand.stores.postgres import PostgresStore

DAYS = 30
RUNS_A_DAY = 50_000_000
PAGE = 50
_MOST_AT_ONCE = 500_000  # runs planned before they are claimed
_PAGES = 200

_SIZES = """
SELECT sum(pg_table_size(c.oid))::bigint AS heap, sum(pg_indexes_size(c.oid))::bigint AS index
FROM pg_inherits AS i JOIN pg_class AS c ON c.oid = i.inhrelid WHERE i.inhparent = 'history'::regclass
"""
_COLUMNS = "attempt, version, state, trigger, tries, worker, detail"
_COPY_DAY = f"""
INSERT INTO history (job_id, scheduled_at, due_at, started_at, finished_at, bucket, {_COLUMNS})
SELECT job_id, scheduled_at - $1 * {DAY_US}::bigint, due_at - $1 * {DAY_US}::bigint,
    started_at - $1 * {DAY_US}::bigint, finished_at - $1 * {DAY_US}::bigint, bucket - $1, {_COLUMNS}
FROM bench_day LIMIT $2
"""
_SOME_JOBS = "SELECT id, tenant FROM jobs ORDER BY random() LIMIT $1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What the store wrote."""

    runs: int
    heap_bytes: int
    index_bytes: int

    @property
    def bytes_a_run(self) -> float:
        """Heap and index."""
        return (self.heap_bytes + self.index_bytes) / self.runs


def main() -> None:
    """Write once; read and drop in each round."""
    options = options_of(
        __doc__ or "",
        Size("runs", 2_000_000, 10_000, "runs written through the store"),
        Size("copies", 200_000, 1_000, "runs in each of the other days"),
        Size("jobs", 100_000, 2_000, "jobs they belong to"),
        Size("demand", 20_000, 1_000, "runs a second that the jobs ask for"),
    )
    report = Report("history_size", options)
    with postgres() as bench:
        report.note(f"PostgreSQL with {', '.join(bench.differing)}")
        url = load(bench, options.jobs, options.demand).url
        forget_runs(bench, url)
        begin_at(url, time.time_ns() // 1000)
        written = uvloop.run(_write(url, options.runs, options.demand))
        _tell_size(report, written)
        uvloop.run(_keep_day(url))
        pages_ms, drops_s = [], []
        for _ in range(options.rounds):
            uvloop.run(_fill_days(url, written.runs, options.copies))
            bench.databases.execute("CHECKPOINT")
            pages_ms.append(uvloop.run(_read_pages(url)))
            drops_s.append(uvloop.run(_drop_day(url)))
            p50, p99 = percentile(pages_ms[-1], 0.5), percentile(pages_ms[-1], 0.99)
            report.say(
                f"page p50 {p50:.1f} ms, p99 {p99:.1f} ms; a day dropped in {drops_s[-1] * 1000:.0f} ms"
            )
    _tell_times(report, pages_ms, drops_s, written)
    report.save()


async def _write(url: str, runs: int, demand: int) -> Written:
    """Let the store plan, claim and finish runs until there are enough, a part at a time."""
    part_us = min(_MOST_AT_ONCE, runs) * SECOND_US // demand
    done, horizon_us = 0, 0
    while done < runs:
        horizon_us += part_us
        done += (await _steps.work(url, horizon_us)).claimed
    connection: Any = await asyncpg.connect(url)
    try:
        await connection.execute("VACUUM ANALYZE history")
        sizes = await connection.fetchrow(_SIZES)
        count: int = await connection.fetchval("SELECT count(*) FROM history")
    finally:
        await connection.close()
    if count != done:
        raise SystemExit(f"{done:,} runs were finished, {count:,} are in history")
    return Written(runs=count, heap_bytes=sizes["heap"], index_bytes=sizes["index"])


async def _keep_day(url: str) -> None:
    """Set aside what was written, so that each round begins alike."""
    connection: Any = await asyncpg.connect(url)
    try:
        await connection.execute("CREATE TABLE bench_day AS SELECT * FROM history; TRUNCATE history")
    finally:
        await connection.close()


async def _fill_days(url: str, runs: int, copies: int) -> None:
    """Today as it was written, and a part of it in each day before."""
    now_at = time.time_ns() // 1000
    connection: Any = await asyncpg.connect(url)
    try:
        for day in range(DAYS):
            earlier = await PostgresStore.open(url, clock=ManualClock(now_at - day * DAY_US))
            await earlier.close()  # a store makes the partitions around its present
            await connection.execute(_COPY_DAY, day, copies if day else runs)
        await connection.execute("VACUUM ANALYZE history")
    finally:
        await connection.close()


async def _read_pages(url: str) -> list[float]:
    """How long each of some jobs' newest page took, in order of length."""
    connection: Any = await asyncpg.connect(url)
    jobs = await connection.fetch(_SOME_JOBS, _PAGES)
    await connection.close()
    store = await PostgresStore.open(url)
    taken_ms = []
    try:
        await store.job_runs(jobs[0]["tenant"], jobs[0]["id"], [], None, PAGE)  # connects and prepares
        for job in jobs:
            began_s = time.perf_counter()
            found = await store.job_runs(job["tenant"], job["id"], [], None, PAGE)
            taken_ms.append((time.perf_counter() - began_s) * 1000)
            if not found:
                raise SystemExit("a job has no history")
    finally:
        await store.close()
    return sorted(taken_ms)


async def _drop_day(url: str) -> float:
    """Drop the days before, then the large one, which is timed; as the sweeper does it."""
    connection: Any = await asyncpg.connect(url)
    newest = await connection.fetchval("SELECT max(bucket) FROM bench_day")
    store = await PostgresStore.open(url)
    try:
        end_at = (newest + 2) * DAY_US  # a day goes when it is over by more than one
        await store.purge(end_at, 0, 1)
        left = await connection.fetchval("SELECT count(*) FROM history")
        began_s = time.perf_counter()
        await store.purge(end_at + 1, 0, 1)
        took_s = time.perf_counter() - began_s
        if not left or await connection.fetchval("SELECT count(*) FROM history"):
            raise SystemExit(f"{left:,} runs were to be dropped with their day, and were not")
    finally:
        await connection.close()
        await store.close()
    return took_s


def _tell_size(report: Report, written: Written) -> None:
    report.figure("bytes of a run in history", "bytes", [written.bytes_a_run])
    report.figure("of which its index", "bytes", [written.index_bytes / written.runs])
    day_gb = written.bytes_a_run * RUNS_A_DAY / 1e9
    report.figure(f"{DAYS} days of {RUNS_A_DAY:,} runs, by projection", "GB", [day_gb * DAYS])
    report.note(
        f"measured on {written.runs:,} runs; a day of {RUNS_A_DAY:,} is {RUNS_A_DAY / written.runs:,.0f} times as "
        f"large: {day_gb:,.1f} GB"
    )


def _tell_times(report: Report, pages_ms: list[list[float]], drops_s: list[float], written: Written) -> None:
    worst = [percentile(page, 0.99) for page in pages_ms]
    report.figure(f"a job's page of {PAGE} runs with {DAYS} days, p99", "ms", worst, below(50))
    report.figure(
        f"a job's page of {PAGE} runs with {DAYS} days, p50", "ms", [percentile(p, 0.5) for p in pages_ms]
    )
    drop_s = report.figure(f"dropping a day of {written.runs:,} runs", "s", drops_s)
    most_s = drop_s * RUNS_A_DAY / written.runs
    report.figure(f"dropping a day of {RUNS_A_DAY:,} runs, in proportion at most", "s", [most_s])


if __name__ == "__main__":
    main()
