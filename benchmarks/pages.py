"""How long a page of jobs takes anywhere in a long list: first, middle and last, with each filter, on SQLite and PostgreSQL.

A thousand jobs are made by the store, the others are their copies by one statement: of two tenants, one with nine tenths; one
in a hundred is paused, one in twenty has the tag `team-7`, one in a thousand `rare`, one in ten is in a set, one in ten ran
once and is over, one in five hundred has a dead letter. Requests go through the whole application, without a socket.

    python -m benchmarks.pages [--jobs 1000000] [--times 100] [--store sqlite] [--store postgres] [--quick]
"""

import argparse
import contextlib
import sqlite3
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import asyncpg
import httpx2
import uvloop
from prometheus_client import CollectorRegistry

from benchmarks._cluster import migrate
from benchmarks._postgres import postgres
from benchmarks._report import Report, Size, below, options_of, percentile
from benchmarks._system import NOOP, quiet, scratch
from hourhand.clock import SystemClock
from hourhand.core.identity import parse_job_id
from hourhand.core.instant import DAY_US, MINUTE_US
from hourhand.core.model import CronTiming, JobSpec, OnceTiming, PythonTarget
from hourhand.core.specification import SpecLimits
from hourhand.ids import IdSource
from hourhand.ports.store import JobDraft, Store
from hourhand.services.jobs import Jobs
from hourhand.services.runs import Runs
from hourhand.stores.postgres import PostgresStore
from hourhand.stores.sqlite import SqliteStore
from hourhand.web.app import create_app
from hourhand.web.cursors import write_cursor

GOAL_MS = 50
MODELS = 1_000
LARGE, SMALL = "large", "small"
STORES = ("sqlite", "postgres")
FILTERS = {
    "all": "",
    "a name's beginning, of many": "&name=copy-00",
    "a name's beginning, of few": "&name=copy-000012",
    "a tag of one in twenty": "&tag=team-7",
    "a tag of one in a thousand": "&tag=rare",
    "a tag of nobody": "&tag=nobody",
    "a set": "&set=files",
    "active": "&state=active",
    "paused": "&state=paused",
    "completed": "&state=completed",
    "failing": "&failing=true",
    "counted": "&count=estimate",
}

_COLUMNS = (
    "version_from, paused_until, clock_id, since, until, once_at, attend_at, created_at, updated_at, grace_us, timeout_us, version,"
    " lane, concurrency, at_most_once, tenant, note"
)
_COPY = f"""
INSERT INTO jobs (id, paused, key, name, spec, {_COLUMNS})
SELECT newest.id + n, CASE WHEN n % 100 = 0 THEN 1 ELSE 0 END, NULL, 'copy-' || {{number}},
    replace(spec, '"name":"' || name || '"', '"name":"copy-' || {{number}} || '"'), {_COLUMNS}
FROM {{numbers}} CROSS JOIN (SELECT max(id) AS id FROM jobs) AS newest
JOIN (SELECT row_number() OVER (ORDER BY jobs.id) - 1 AS place, spec, name, {_COLUMNS} FROM jobs) AS models
    ON models.place = n % {MODELS}
"""
_SETS = """
INSERT INTO job_sets (tenant, set_name, job_id) SELECT tenant, 'files', id FROM jobs WHERE spec LIKE '%"set_name":"files"%'
ON CONFLICT DO NOTHING
"""
_DEAD = """
INSERT INTO dead (job_id, scheduled_at, tenant, failed_at, trigger, fence, tries, lane, error, fingerprint)
SELECT id, 1, tenant, 1, 0, 1, 1, 1, 'it broke', 'broke' FROM jobs WHERE id % 500 = 0
"""


def main() -> None:
    """Measure."""
    options = options_of(
        __doc__ or "",
        Size("jobs", 1_000_000, 3_000, "jobs"),
        Size("times", 100, 3, "how often each page is asked for"),
        also=_add_store,
    )
    report = Report("pages", options)
    for kind in options.store or STORES:
        with _store_of(kind, options.jobs) as opened:
            uvloop.run(_measure(report, kind, opened))
    report.save()


def _add_store(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--store", action="append", choices=STORES, help="only this one; may be repeated")


@contextlib.contextmanager
def _store_of(kind: str, jobs: int) -> Iterator[str]:
    """A loaded store, by what opens it."""
    began_s = time.perf_counter()
    if kind == "sqlite":
        with scratch() as folder:
            path = str(Path(folder) / "jobs.db")
            uvloop.run(_make_models(path))
            _copy_in_file(path, jobs)
            print(f"sqlite: {jobs:,} jobs loaded in {time.perf_counter() - began_s:.0f} s")
            yield path
    else:
        with postgres() as bench:
            migrate(bench.url)
            uvloop.run(_make_models(bench.url))
            uvloop.run(_copy_in_database(bench.url, jobs))
            print(f"postgres: {jobs:,} jobs loaded in {time.perf_counter() - began_s:.0f} s")
            yield bench.url


@contextlib.asynccontextmanager
async def _opened(place: str) -> AsyncIterator[Store]:
    store: Store
    if place.startswith("postgres"):
        store = await PostgresStore.open(place)
    else:
        store = SqliteStore.open(Path(place), clock=SystemClock())
    try:
        yield store
    finally:
        await store.close()


async def _make_models(place: str) -> None:
    ids = IdSource(SystemClock())
    async with _opened(place) as store:
        await store.create_jobs([_model(ids.job_id(), number) for number in range(MODELS)])


def _model(job_id: int, number: int) -> JobDraft:
    past = OnceTiming(at=SystemClock().now() - 2 * DAY_US)
    yearly = CronTiming(expression=f"{number % 60} {number % 24} 1 1 *", tz="Europe/Berlin")
    tags = (f"team-{number % 20}", *(["rare"] if number == 0 else []))
    spec = JobSpec(
        name=f"model-{number}",
        tags=tags,
        set_name="files" if number % 10 == 3 else None,
        timing=past if number % 10 == 5 else yearly,
        target=PythonTarget(function=NOOP),
    )
    return JobDraft(id=job_id, tenant=SMALL if number % 10 == 9 else LARGE, spec=spec)


def _copy_in_file(path: str, jobs: int) -> None:
    numbers = f"(WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < {jobs - MODELS}) SELECT n FROM n) AS numbers"
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("PRAGMA cache_size = -1000000")
        connection.execute("DELETE FROM planned")
        connection.execute(_COPY.format(numbers=numbers, number="printf('%08d', n)"))
        connection.execute(_SETS)
        connection.execute(_DEAD)
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


async def _copy_in_database(url: str, jobs: int) -> None:
    connection: Any = await asyncpg.connect(url)
    numbers = f"generate_series(1, {jobs - MODELS}) AS n"
    try:
        await connection.execute("DELETE FROM planned")
        await connection.execute(_COPY.format(numbers=numbers, number="lpad(n::text, 8, '0')"), timeout=3600)
        await connection.execute(_SETS, timeout=600)
        await connection.execute(_DEAD, timeout=600)
        await connection.execute("VACUUM ANALYZE", timeout=600)
    finally:
        await connection.close()


async def _measure(report: Report, kind: str, place: str) -> None:
    clock = SystemClock()
    async with _opened(place) as store:
        app = create_app(
            jobs=Jobs(store=store, ids=IdSource(clock), clock=clock, limits=SpecLimits()),
            runs=Runs(store=store, clock=clock, horizon_us=MINUTE_US),
            store=store,
            clock=clock,
            registry=CollectorRegistry(),
        )
        transport = httpx2.ASGITransport(app=app)
        async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:7070") as client:
            quiet()
            for tenant in (LARGE, SMALL):
                await _measure_tenant(report, kind, client, tenant)


async def _measure_tenant(report: Report, kind: str, client: httpx2.AsyncClient, tenant: str) -> None:
    headers, jobs = {"Hourhand-Tenant": tenant}, report.options.jobs
    first = (await client.get("/api/v1/jobs?limit=1", headers=headers)).json()["data"][0]["job_id"]
    newest = parse_job_id(first)
    for name, query in FILTERS.items():
        if tenant == SMALL and name not in ("all", "a tag of nobody", "failing"):
            continue
        for where, before in (("first", None), ("middle", newest - jobs // 2), ("last", newest - jobs + 100)):
            cursor = "" if before is None else f"&cursor={quote(write_cursor('jobs', before))}"
            taken = await _taken_ms(
                client, f"/api/v1/jobs?limit=50{query}{cursor}", headers, report.options.times
            )
            told = f"{kind}, {tenant} tenant: {name}, {where} page"
            report.figure(f"{told}, p50", "ms", [percentile(taken, 0.5)])
            report.figure(f"{told}, p99", "ms", [percentile(taken, 0.99)], below(GOAL_MS))


async def _taken_ms(
    client: httpx2.AsyncClient, path: str, headers: dict[str, str], times: int
) -> list[float]:
    taken = []
    for number in range(times + 1):
        began_s = time.perf_counter()
        answer = await client.get(path, headers=headers)
        if answer.status_code != 200:
            raise SystemExit(f"{path}: {answer.status_code} {answer.text[:300]}")
        if number:  # the first warms up
            taken.append((time.perf_counter() - began_s) * 1000)
    return sorted(taken)


if __name__ == "__main__":
    main()
