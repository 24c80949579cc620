"""How many jobs a second a cluster takes in, so that each survives a crash from its answer on.

`POST /jobs/bulk` as lines of JSON over some connections, and `POST /jobs` with one job each over many kept
connections, to one and to two API processes on a durable PostgreSQL; client, API and server share the cores. One job
for every minute of the day: 1,440 rules, so that in 200,000 jobs every other one needs a new clock. `Through the
service` is the same import without HTTP and JSON. At the end the API is killed, and every job that was acknowledged
must be in the database.

    python -m benchmarks.cluster_importing [--jobs 200000] [--posts 20000] [--connections 64] [--rounds 3] [--quick]
"""

import asyncio
import contextlib
import itertools
import time
from collections import Counter
from collections.abc import Iterator, Sequence

import uvloop

from benchmarks._cluster import Part, api, migrate, settle
from benchmarks._http import Driven, drive, post
from benchmarks._postgres import BenchPostgres, postgres
from benchmarks._report import Report, Size, at_least, options_of, percentile
from hourhand.config import Settings
from hourhand.core.model import CronTiming, HttpTarget, JobSpec
from hourhand.ids import IdSource
from hourhand.services.jobs import NewJob
from hourhand.stores.postgres import PostgresStore
from hourhand.wiring.parts import build_use_cases
from tests.servers.postgres_databases import database_of

PATH = "/api/v1/jobs"
TENANT = "default"
_LINES = 5_000  # jobs in one request of lines
_BULK_CONNECTIONS = 4
_BATCH = 1_000
_BATCHES_AT_ONCE = 3
_MINUTES = 1440
_WARM = 10  # requests of each connection before time is taken
PROCESSES = (1, 2)


def main() -> None:
    """All ways in, each with one API process and with two."""
    options = options_of(
        __doc__ or "",
        Size("jobs", 200_000, 5_000, "jobs of the bulk imports"),
        Size("posts", 20_000, 500, "requests of one job each"),
        Size("connections", 64, 16, "kept connections that send them"),
    )
    report = Report("cluster_importing", options)
    with postgres() as bench:
        report.note(f"PostgreSQL with {', '.join(bench.differing)}")
        rates = [_service(bench, options.jobs) for _ in range(options.rounds)]
        report.figure("bulk import through the service", "jobs/s", rates)
        for processes in PROCESSES:
            _tell_bulk(report, bench, processes)
        for processes in PROCESSES:
            _tell_single(report, bench, processes)
    report.save()


def _tell_bulk(report: Report, bench: BenchPostgres, processes: int) -> None:
    jobs = report.options.jobs
    rates = []
    for _ in range(report.options.rounds):
        chunks = [
            b"\n".join(_document(n) for n in range(start, min(jobs, start + _LINES)))
            for start in range(0, jobs, _LINES)
        ]
        with _fresh(bench, processes) as (url, parts):
            driven = uvloop.run(_drive_bulk(parts, chunks))
            _check(bench, url, parts, jobs, driven, 200)
        rates.append(jobs / driven.took_s)
        report.say(f"POST /jobs/bulk, {_processes(processes)}: {rates[-1]:>8,.0f} jobs/s")
    report.figure(f"POST /jobs/bulk, {_processes(processes)}", "jobs/s", rates, at_least(20_000))


def _tell_single(report: Report, bench: BenchPostgres, processes: int) -> None:
    name = f"POST /jobs, {_processes(processes)}"
    found: list[Driven] = []
    for _ in range(report.options.rounds):
        with _fresh(bench, processes) as (url, parts):
            warm = report.options.connections * _WARM
            driven = uvloop.run(_drive_single(parts, report.options.posts, report.options.connections, warm))
            _check(bench, url, parts, report.options.posts + warm, driven, 201)
        found.append(driven)
        ordered = sorted(driven.latencies_ms)
        p50, p99 = percentile(ordered, 0.5), percentile(ordered, 0.99)
        report.say(f"{name}: {driven.rate:>8,.0f} jobs/s, p50 {p50:.1f} ms, p99 {p99:.1f} ms")
    report.figure(name, "jobs/s", [one.rate for one in found], at_least(1_500))
    worst = [percentile(sorted(one.latencies_ms), 0.99) for one in found]
    report.figure(f"{name}, p99 of an answer", "ms", worst)


def _processes(number: int) -> str:
    return "one API process" if number == 1 else f"{number} API processes"


@contextlib.contextmanager
def _fresh(bench: BenchPostgres, processes: int) -> Iterator[tuple[str, list[Part]]]:
    """An empty database and APIs on it."""
    url = bench.databases.create_database()
    try:
        migrate(url)
        settle(bench.databases, url)
        with contextlib.ExitStack() as stack:
            quiet = {"telemetry_log": "warning"}
            yield url, [stack.enter_context(api(url, quiet)) for _ in range(processes)]
    finally:
        bench.databases.drop_database(url)


def _service(bench: BenchPostgres, jobs: int) -> float:
    """Jobs a second through the use case, in batches of 1,000, some at once."""
    url = bench.databases.create_database()
    try:
        migrate(url)
        settle(bench.databases, url)
        return uvloop.run(_create(url, [_new(n) for n in range(jobs)]))
    finally:
        bench.databases.drop_database(url)


async def _create(url: str, news: Sequence[NewJob]) -> float:
    store = await PostgresStore.open(url)
    jobs, _ = build_use_cases(
        Settings(), store=store, clock=store.clock, ids=IdSource(store.clock), jobs_changed=lambda *_: None
    )
    turns = asyncio.Semaphore(_BATCHES_AT_ONCE)

    async def send(start: int) -> None:
        async with turns:
            answers = await jobs.create_many(TENANT, news[start : start + _BATCH])
        wrong = [answer for answer in answers if isinstance(answer, Exception)]
        if wrong:
            raise wrong[0]

    try:
        began_s = time.perf_counter()
        await asyncio.gather(*(send(start) for start in range(0, len(news), _BATCH)))
        return len(news) / (time.perf_counter() - began_s)
    finally:
        await store.close()


async def _drive_bulk(parts: Sequence[Part], chunks: Sequence[bytes]) -> Driven:
    def requests(port: int, mine: Sequence[bytes]) -> Iterator[bytes]:
        return (post(port, f"{PATH}/bulk", chunk, "application/x-ndjson") for chunk in mine)

    connections = max(1, _BULK_CONNECTIONS // len(parts))
    shares = [chunks[index :: len(parts)] for index in range(len(parts))]
    return await _drive_all(
        [(one.port, requests(one.port, mine), connections) for one, mine in zip(parts, shares, strict=True)]
    )


async def _drive_single(parts: Sequence[Part], posts: int, connections: int, warm: int) -> Driven:
    def share(port: int, count: int) -> Iterator[bytes]:
        return (post(port, PATH, _document(n)) for n in range(count))

    def shares(count: int) -> list[tuple[int, Iterator[bytes], int]]:
        each = [count // len(parts) + (index < count % len(parts)) for index in range(len(parts))]
        return [
            (one.port, share(one.port, mine), connections // len(parts))
            for one, mine in zip(parts, each, strict=True)
        ]

    await _drive_all(shares(warm))  # warm, as a server is
    return await _drive_all(shares(posts))


async def _drive_all(shares: Sequence[tuple[int, Iterator[bytes], int]]) -> Driven:
    """Drive several servers at once; what came of all."""
    began_s = time.perf_counter()
    found = await asyncio.gather(*(drive(*share) for share in shares))
    return Driven(
        statuses=sum((one.statuses for one in found), Counter()),
        latencies_ms=list(itertools.chain.from_iterable(one.latencies_ms for one in found)),
        took_s=time.perf_counter() - began_s,
    )


def _check(
    bench: BenchPostgres, url: str, parts: Sequence[Part], jobs: int, driven: Driven, status: int
) -> None:
    """Every request was granted, and everything granted is in the database."""
    for one in parts:
        one.kill()
    if set(driven.statuses) != {status}:
        raise SystemExit(f"expected only {status}, got {dict(driven.statuses)}")
    stored = bench.databases.query("SELECT count(*) FROM jobs", database=database_of(url))[0][0]
    if stored != jobs:
        raise SystemExit(f"{jobs:,} jobs were acknowledged, {stored:,} are in the database")


def _new(n: int) -> NewJob:
    timing = CronTiming(expression=_cron(n))
    return NewJob(
        spec=JobSpec(name=f"job-{n}", timing=timing, target=HttpTarget(url="https://example.com/hook"))
    )


def _document(n: int) -> bytes:
    return (
        b'{"name":"job-%d","cron":"%s","callback_url":"https://example.com/hook","priority":"MEDIUM",'
        b'"payload":{"n":%d}}' % (n, _cron(n).encode(), n)
    )


def _cron(n: int) -> str:
    minute = n % _MINUTES
    return f"{minute % 60} {minute // 60} * * *"


if __name__ == "__main__":
    main()
