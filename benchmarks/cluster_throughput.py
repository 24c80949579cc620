"""How many runs a second a cluster on PostgreSQL does: plan, claim, no-op function, finish with history.

Real processes on a durable server, all on this machine: one scheduler and some workers, on jobs with mixed rules that
ask for a bit more than the goal; if all of it is done in time the answer is the demand, and a line says so. Beside it,
in turn, raw SQL of the same shape with nothing around it: their ratio holds on any machine. Then the planner's step,
a claim and a finish alone, each with many jobs and with few: their ratio says whether the number of jobs matters.

    python -m benchmarks.cluster_throughput [--jobs 1000000] [--seconds 60] [--rounds 3] [--quick]
    python -m benchmarks.cluster_throughput --jobs 10000000 --keep DIR      # loads them once
"""

import argparse
import statistics
import time
from collections.abc import Mapping
from dataclasses import dataclass

import uvloop

from benchmarks import _raw_sql, _steps
from benchmarks._cluster import SUCCEEDED, check_alive, nodes, taken, worker
from benchmarks._many_jobs import begin_at, forget_runs, load
from benchmarks._postgres import BenchPostgres, add_keep_option, postgres
from benchmarks._report import Report, Size, at_least, below, options_of
from hourhand.core.instant import SECOND_US
from tests.servers.postgres_databases import database_of

HORIZON_S = 10
RAW_JOBS = 1_000_000  # raw SQL is as fast with more
RAW_SECONDS = 30.0
VERY_MANY = 10_000_000
_NOTICE_S = 7  # until the scheduler has noticed that its clocks were set
_FULL_S = 5  # until the pipeline is full
_STEP_RUNS = 250_000  # of each kind of step
_KEPT_UP = 0.97

_OUTCOMES = """
SELECT count(*) FILTER (WHERE finished_at >= $1::bigint AND finished_at < $2::bigint) AS counted,
    count(*) FILTER (WHERE state <> $3) AS others,
    count(*) FILTER (WHERE attempt > 1 AND finished_at < $2::bigint) AS again,
    coalesce(min(started_at - due_at), 0) AS earliest_us FROM history
"""
_KINDS = """
SELECT state, attempt, left(detail, 200), count(*), min(finished_at), max(finished_at) FROM history
WHERE state <> $1 OR attempt > 1 GROUP BY 1, 2, 3 ORDER BY 4 DESC LIMIT 10
"""
_SLICES = """
SELECT count(*) FROM history WHERE finished_at >= $1::bigint AND finished_at < $2::bigint
GROUP BY (finished_at - $1::bigint) / 10000000 ORDER BY 1
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """One stretch of work."""

    rate: float
    slowest: float  # of ten seconds within it
    scheduler_mb: float
    worker_mb: float
    scheduler_cores: float
    worker_cores: float
    by_message: float  # of a hundred runs, where there is a broker


def main() -> None:
    """Both in turn, then the steps alone."""
    options = options_of(
        __doc__ or "",
        Size("jobs", 1_000_000, 20_000, "jobs with mixed rules"),
        Size("few", 10_000, 5_000, "jobs that the steps are compared with"),
        Size("seconds", 60.0, 10.0, "of steady work to measure"),
        Size("demand", 32_000, 1_000, "runs a second that the jobs ask for"),
        Size("workers", 2, 2, "worker processes"),
        Size("concurrency", 4_000, 2_000, "of each"),
        also=add_keep_option,
    )
    report = Report("cluster_throughput", options)
    if options.jobs >= VERY_MANY:
        report.variant = f"_{options.jobs // 1_000_000}m"
    with postgres(keep=options.keep) as bench:
        report.note(f"PostgreSQL with {', '.join(bench.differing)}")
        raw, ours = _rounds(report, bench, options)
        _tell_rates(report, options, raw, ours)
        _compare_steps(report, bench, options)
    report.save()


def measure(
    bench: BenchPostgres, url: str, options: argparse.Namespace, more: Mapping[str, str] | None = None
) -> Found:
    """What the cluster does in a stretch of steady time, in a database that was loaded; with `more` settings."""
    forget_runs(bench, url)
    commands = [("scheduler",), *[worker(options.concurrency)] * options.workers]
    settings = {"scheduler_horizon": f"{HORIZON_S}s", "telemetry_log": "warning", "worker_drain": "10s"}
    settings |= more or {}
    with nodes(bench.databases, url, commands, settings) as parts:
        starts_at = _now_at() + (HORIZON_S + _NOTICE_S + options.jobs // 500_000) * SECOND_US
        begin_at(url, starts_at)
        begins_at = starts_at + _FULL_S * SECOND_US
        time.sleep((begins_at - _now_at()) / SECOND_US)
        before, taken_before = [one.cpu_s() for one in parts], taken(parts)
        time.sleep(options.seconds)
        check_alive(parts)
        cores = [(one.cpu_s() - cpu_s) / options.seconds for one, cpu_s in zip(parts, before, strict=True)]
        found, by_message = [one.memory_mb() for one in parts], taken(parts).share(taken_before)
        said = [one.said() for one in parts]
    ends_at = begins_at + int(options.seconds * SECOND_US)
    counted = _counted(bench, url, begins_at, ends_at, said)
    slices = bench.databases.query(_SLICES, begins_at, ends_at, database=database_of(url))
    whole = [row[0] / 10 for row in slices] if options.seconds % 10 == 0 else [counted / options.seconds]
    return Found(
        rate=counted / options.seconds,
        slowest=min(whole),
        scheduler_mb=found[0],
        worker_mb=max(found[1:]),
        scheduler_cores=cores[0],
        worker_cores=sum(cores[1:]),
        by_message=by_message,
    )


def _counted(bench: BenchPostgres, url: str, begins_at: int, ends_at: int, said: list[str]) -> int:
    """The runs that finished in a window; every run must have succeeded at its first attempt, none early."""
    [row] = bench.databases.query(_OUTCOMES, begins_at, ends_at, SUCCEEDED, database=database_of(url))
    if (
        row["others"] or row["again"]
    ):  # what a worker gives back when it is stopped is another's second attempt
        kinds = [tuple(kind) for kind in bench.databases.query(_KINDS, SUCCEEDED, database=database_of(url))]
        raise SystemExit(
            f"{row['others']} runs did not succeed, {row['again']} needed another attempt; by state, attempt, detail: "
            f"{kinds}; what the processes said: {' '.join(said)[-3000:]}"
        )
    if row["earliest_us"] < 0:
        raise SystemExit(f"a run started {-row['earliest_us'] / 1000:g} ms before its time")
    counted: int = row["counted"]
    return counted


def _rounds(
    report: Report, bench: BenchPostgres, options: argparse.Namespace
) -> tuple[list[float], list[Found]]:
    many = load(bench, options.jobs, options.demand)
    took = "kept from an earlier run" if many.took_s is None else f"loaded in {many.took_s:,.0f} s"
    report.note(f"{options.jobs:,} jobs with {many.rules:,} rules ask for {options.demand:,} runs/s; {took}")
    raw: list[float] = []
    ours: list[Found] = []
    for number in range(options.rounds):
        url = bench.databases.create_database(f"raw_sql_{number}")
        raw.append(_raw_sql.measure(url, min(options.jobs, RAW_JOBS), min(options.seconds, RAW_SECONDS)))
        bench.databases.drop_database(url)
        found = measure(bench, many.url, options)
        ours.append(found)
        report.say(
            f"round {number + 1}: raw SQL {raw[-1]:>8,.0f} runs/s; ours {found.rate:>8,.0f} runs/s, in its slowest "
            f"10 s {found.slowest:,.0f}; scheduler {found.scheduler_cores:.2f} cores and {found.scheduler_mb:.0f} MB, "
            f"workers {found.worker_cores:.2f} cores and at most {found.worker_mb:.0f} MB"
        )
    return raw, ours


def _tell_rates(report: Report, options: argparse.Namespace, raw: list[float], ours: list[Found]) -> None:
    goal = 20_000 if options.jobs >= VERY_MANY else 25_000
    name = f"whole cycle with {options.jobs:,} jobs"
    rate = report.figure(name, "runs/s", [found.rate for found in ours], at_least(goal))
    report.figure(f"{name}, slowest 10 s", "runs/s", [found.slowest for found in ours])
    report.figure(f"raw SQL with {min(options.jobs, RAW_JOBS):,} jobs", "runs/s", raw)
    ratios = [100 * found.rate / beside for found, beside in zip(ours, raw, strict=True)]
    report.figure("ours beside raw SQL", "%", ratios, at_least(60))
    report.figure("scheduler's memory", "MB", [found.scheduler_mb for found in ours], below(300))
    if rate >= _KEPT_UP * options.demand:
        report.note(
            f"it kept up with a demand of {options.demand:,} runs/s: a larger --demand would show more"
        )


def _compare_steps(report: Report, bench: BenchPostgres, options: argparse.Namespace) -> None:
    """Few and many in turn."""
    horizon_us = _STEP_RUNS * SECOND_US // options.demand
    if options.quick:
        horizon_us //= 10
    found: dict[int, list[_steps.Steps]] = {options.few: [], options.jobs: []}
    urls = {jobs: load(bench, jobs, options.demand).url for jobs in found}
    for _ in range(options.rounds):
        for jobs, all_steps in found.items():
            forget_runs(bench, urls[jobs])
            begin_at(urls[jobs], _now_at() + 2 * SECOND_US)
            steps = uvloop.run(_steps.work(urls[jobs], horizon_us))
            all_steps.append(steps)
            report.say(
                f"{jobs:>10,} jobs: {steps.planned:,} runs; plan {steps.plan_us:.1f} us, claim {steps.claim_us:.1f} us, "
                f"finish {steps.finish_us:.1f} us a run"
            )
    for name in ("plan", "claim", "finish"):
        few, many = (
            statistics.median(getattr(steps, f"{name}_us") for steps in all_steps)
            for all_steps in found.values()
        )
        goal = None if name == "finish" else below(1.3)
        told = f"cost of a {name} step with {options.jobs:,} jobs beside {options.few:,}"
        report.figure(told, "times", [many / few], goal)


def _now_at() -> int:
    return time.time_ns() // 1000


if __name__ == "__main__":
    main()
