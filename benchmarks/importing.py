"""How many jobs a second can be created, so that each survives a crash from its answer on.

`bulk` is the use case behind every import, called with 1,000 jobs at a time: checked, given an id, joined to
its clock, written, synced. It depends on how many rules there are, since each new one makes up to 64 clocks:
`10 rules` is a herd, `1,440 rules` one job for every minute of the day, where in 200,000 jobs every other one
needs a new clock. `POST /jobs/bulk` is the latter from outside, as NDJSON, with parsing. `POST /jobs` is one job per request over kept connections to the real `hourhand up` in a process of its own; each 201 comes
after the job is on the disk, and requests that arrive together share a sync. Beside it, a FastAPI route that
stores nothing, on the same server: the most that the framework leaves. At the end the server is killed, and
the file must hold every job that was acknowledged.

    python -m benchmarks.importing [--jobs 200000] [--posts 20000] [--connections 32] [--rounds 3] [--quick]
"""

import argparse
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks._http import Driven, drive, post
from benchmarks._process import hourhand_up, server
from benchmarks._report import Report, Size, at_least, options_of, percentile
from benchmarks._system import Tally, create, quiet, run, scratch, settings_for, system
from hourhand.core.model import CronTiming, HttpTarget, JobSpec
from hourhand.services.jobs import NewJob

PATH = "/api/v1/jobs"
_LINES = 10_000  # jobs in one NDJSON request
_IDLE_CONCURRENCY = 1_000
_MINUTES = 1440


async def service_rate(jobs: int, rules: int) -> float:
    """Jobs a second through the use case, in batches of 1,000."""
    news = [_new(n, rules) for n in range(jobs)]
    with scratch() as folder:
        settings = settings_for(Path(folder) / "bench.db", concurrency=_IDLE_CONCURRENCY)
        async with system(settings, Tally()) as parts:
            await parts.node.start()
            quiet()
            began = time.perf_counter()
            await create(parts, news)
            return jobs / (time.perf_counter() - began)


async def bulk_rate(jobs: int, rules: int) -> float:
    """Jobs a second through `POST /jobs/bulk` of the real process."""
    lines = [_document(n, rules) for n in range(jobs)]
    chunks = [b"\n".join(lines[start : start + _LINES]) + b"\n" for start in range(0, jobs, _LINES)]
    with scratch() as folder:
        data = Path(folder) / "bench.db"
        with hourhand_up(data) as up:
            requests = [post(up.port, f"{PATH}/bulk", chunk, "application/x-ndjson") for chunk in chunks]
            driven = await drive(up.port, iter(requests), 2)
            up.kill()
        _check(data, jobs, driven, 200)
    return jobs / driven.took_s


async def single(posts: int, connections: int) -> Driven:
    """One job per request to the real process."""
    with scratch() as folder:
        data = Path(folder) / "bench.db"
        with hourhand_up(data) as up:
            await drive(up.port, _posts(up.port, connections * 10), connections)  # warm, as a server is
            driven = await drive(up.port, _posts(up.port, posts), connections)
            up.kill()
        _check(data, posts + connections * 10, driven, 201)
    return driven


async def bare(posts: int, connections: int) -> Driven:
    """The same requests to a route that stores nothing."""
    with server("benchmarks._bare_app") as app:
        await drive(app.port, _posts(app.port, connections * 10), connections)
        return await drive(app.port, _posts(app.port, posts), connections)


def _new(n: int, rules: int) -> NewJob:
    return NewJob(
        spec=JobSpec(
            name=f"job-{n}",
            timing=CronTiming(expression=_cron(n % rules)),
            target=HttpTarget(url="https://example.com/hook"),
        )
    )


def _document(n: int, rules: int = _MINUTES) -> bytes:
    return (
        b'{"name":"job-%d","cron":"%s","callback_url":"https://example.com/hook","priority":"MEDIUM",'
        b'"payload":{"n":%d}}' % (n, _cron(n % rules).encode(), n)
    )


def _cron(minute: int) -> str:
    return f"{minute % 60} {minute // 60} * * *"


def _posts(port: int, count: int) -> Iterator[bytes]:
    return (post(port, PATH, _document(n)) for n in range(count))


def _check(data: Path, jobs: int, driven: Driven, status: int) -> None:
    """Every request was granted, and everything granted is in the file."""
    if set(driven.statuses) != {status}:
        raise SystemExit(f"expected only {status}, got {dict(driven.statuses)}")
    connection = sqlite3.connect(data)
    stored = connection.execute("SELECT count(*) FROM jobs").fetchone()[0]
    connection.close()
    if stored != jobs:
        raise SystemExit(f"{jobs:,} jobs were acknowledged, {stored:,} are in the file")


def _say(report: Report, name: str, driven: Driven) -> None:
    ordered = sorted(driven.latencies_ms)
    p50, p99 = percentile(ordered, 0.5), percentile(ordered, 0.99)
    report.say(f"{name}: {driven.rate:>8,.0f} a second, p50 {p50:.1f} ms, p99 {p99:.1f} ms")


async def measure_bulk(report: Report, options: argparse.Namespace) -> None:
    """Both ways to create many at once."""
    ways = (
        ("bulk import through the service, 10 rules", service_rate, 10, at_least(20_000)),
        ("bulk import through the service, 1,440 rules", service_rate, _MINUTES, at_least(20_000)),
        ("POST /jobs/bulk, 1,440 rules", bulk_rate, _MINUTES, None),
    )
    for name, measure, rules, goal in ways:
        rates = []
        for _ in range(options.rounds):
            rates.append(await measure(options.jobs, rules))
            report.say(f"{name}: {rates[-1]:>8,.0f} jobs/s")
        report.figure(name, "jobs/s", rates, goal)


async def measure_single(report: Report, options: argparse.Namespace) -> None:
    """One job per request, and a bare route in turn with it."""
    ours: list[Driven] = []
    theirs: list[Driven] = []
    for _ in range(options.rounds):
        ours.append(await single(options.posts, options.connections))
        _say(report, "POST /jobs        ", ours[-1])
        theirs.append(await bare(options.posts, options.connections))
        _say(report, "bare FastAPI route", theirs[-1])
    rate = report.figure("POST /jobs, durable", "jobs/s", [one.rate for one in ours], at_least(1_000))
    worst = [percentile(sorted(one.latencies_ms), 0.99) for one in ours]
    report.figure("POST /jobs, p99 of an answer", "ms", worst)
    most = report.figure("bare FastAPI route", "requests/s", [one.rate for one in theirs])
    report.note(f"POST /jobs reaches {rate / most:.0%} of a route that stores nothing")


async def main() -> None:
    options = options_of(
        __doc__ or "",
        Size("jobs", 200_000, 5_000, "jobs of the bulk imports"),
        Size("posts", 20_000, 500, "requests of one job each"),
        Size("connections", 32, 8, "kept connections that send them"),
    )
    report = Report("importing", options)
    await measure_bulk(report, options)
    await measure_single(report, options)
    report.save()


if __name__ == "__main__":
    run(main())
