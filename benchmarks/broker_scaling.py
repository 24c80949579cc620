"""Whether workers behind a broker scale: throughput by their number, and how soon a second one does half of the work.

Real processes as in `brokers`. The throughput is of jobs that ask for more than can be done, with 1, 2 and more worker
processes: it grows until the cores are full, and what all processes of ours used of them stands beside it. Then jobs
that ask for little: one worker does all of them, another joins, and history says who did what in each second after it
had its lease. A run that was done twice, or needed another attempt, ends the benchmark.

    python -m benchmarks.broker_scaling --broker redis|kafka [--jobs 400000] [--demand 24000] [--rounds 3] [--quick]
"""

import argparse
import time
from collections.abc import Mapping

from benchmarks import cluster_throughput
from benchmarks._cluster import Part, check_alive, node_id, nodes, part, worker
from benchmarks._many_jobs import begin_at, forget_runs, load
from benchmarks._postgres import BenchPostgres, postgres
from benchmarks._report import Report, Size, at_least, options_of
from benchmarks.brokers import add_broker, broker
from hourhand.core.instant import SECOND_US
from tests.servers.postgres_databases import database_of

_SETTLED_S = 5  # of the first worker alone
_WATCHED_S = 12
_NOTICE_S = 7  # until the scheduler has noticed that its clocks were set

_SHARES = """
SELECT (finished_at - $1::bigint) / 1000000 AS second,
    count(*) FILTER (WHERE worker LIKE '%-' || $2)::float / count(*) AS share FROM history
WHERE finished_at >= $1::bigint GROUP BY 1 ORDER BY 1
"""
_TWICE = """
SELECT count(*) FILTER (WHERE attempt > 1), count(*) - count(DISTINCT (job_id, scheduled_at)) FROM history
WHERE finished_at < $1::bigint
"""


def main() -> None:
    """Both for one broker."""
    options = options_of(
        __doc__ or "",
        Size("jobs", 400_000, 20_000, "jobs with mixed rules"),
        Size("seconds", 20.0, 10.0, "of steady work to measure"),
        Size("demand", 24_000, 1_000, "runs a second that the jobs ask for"),
        Size("little", 3_000, 500, "runs a second while a second worker joins"),
        Size("workers", 4, 2, "worker processes at most"),
        Size("concurrency", 4_000, 2_000, "of each"),
        also=add_broker,
    )
    report = Report("broker_scaling", options)
    report.variant = f"_{options.broker}"
    with broker(options.broker) as url, postgres() as bench:
        report.note(f"PostgreSQL with {', '.join(bench.differing)}; runs go through {options.broker}")
        more = {"queue_url": url}
        _tell_growth(report, options, bench, more)
        joined = [_join(report, bench, options, more) for _ in range(options.rounds)]
        for name, shares in zip(("first", "next"), zip(*joined, strict=True), strict=True):
            report.figure(f"a second worker's share in its {name} 5 s", "%", shares, at_least(40))
    report.save()


def _tell_growth(
    report: Report, options: argparse.Namespace, bench: BenchPostgres, more: Mapping[str, str]
) -> None:
    many = load(bench, options.jobs, options.demand)
    counts = [count for count in (1, 2, 4, 8) if count <= options.workers]
    most = options.workers
    for count in counts:
        options.workers = count
        found = [cluster_throughput.measure(bench, many.url, options, more) for _ in range(options.rounds)]
        name = f"{count} worker process{'es' if count > 1 else ''}"
        report.figure(name, "runs/s", [one.rate for one in found])
        report.figure(
            f"{name}, scheduler and workers",
            "cores",
            [one.scheduler_cores + one.worker_cores for one in found],
        )
        report.figure(f"{name}, share by message", "%", [one.by_message for one in found])
    options.workers = most


def _join(
    report: Report, bench: BenchPostgres, options: argparse.Namespace, more: Mapping[str, str]
) -> tuple[float, float]:
    """What a second worker did of the runs in the five seconds after it had its lease, and in the five after those."""
    many = load(bench, options.jobs, options.little)
    forget_runs(bench, many.url)
    command = worker(options.concurrency)
    settings = {"scheduler_horizon": "10s", "telemetry_log": "warning", "worker_drain": "10s", **more}
    with nodes(bench.databases, many.url, [("scheduler",), command], settings) as parts:
        starts_at = _now_at() + (10 + _NOTICE_S) * SECOND_US
        begin_at(many.url, starts_at)
        time.sleep((starts_at - _now_at()) / SECOND_US + _SETTLED_S)
        with part(many.url, *command, settings=settings) as second:
            joined_at = _joined(bench, many.url, second)
            time.sleep(_WATCHED_S)
            check_alive([*parts, second])
            until_at = _now_at()
    database = database_of(many.url)
    again, twice = bench.databases.query(_TWICE, until_at, database=database)[0]
    if again or twice:
        raise SystemExit(f"{again} runs needed another attempt, {twice} were done twice")
    pid = str(second.process.pid)
    rows = bench.databases.query(_SHARES, joined_at, pid, database=database)
    shares = [row["share"] for row in rows if row["second"] < _WATCHED_S - 1]
    report.say("share of the second worker, by second: " + " ".join(f"{share:.0%}" for share in shares))
    return 100 * sum(shares[:5]) / 5, 100 * sum(shares[5:10]) / 5


def _joined(bench: BenchPostgres, url: str, one: Part) -> int:
    """When it had its lease."""
    while node_id(bench.databases, url, one) is None:
        check_alive([one])
        time.sleep(0.05)
    return _now_at()


def _now_at() -> int:
    return time.time_ns() // 1000


if __name__ == "__main__":
    main()
