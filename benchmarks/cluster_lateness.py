"""How late jobs of a cluster start when many are due at the same instant, and what jitter does for them.

One-time no-op jobs that were created well before, on a durable PostgreSQL, with two worker processes that together
have room for all of them. They may take runs `lead` ahead of time: 2 s is the default; who expects a larger herd than
they can claim in that gives them more. Lateness is from the due time to the start of the function, of every run, read
from history. `With jitter` the same herd is due over 30 s; its pressure is how many runs are due and not yet started
at the worst moment.

    python -m benchmarks.cluster_lateness [--few 10000] [--many 100000] [--lead-many 5] [--rounds 3] [--quick]
"""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import uvloop

from benchmarks._cluster import (
    NOTHING_TAKEN,
    SUCCEEDED,
    Part,
    check_alive,
    create_jobs,
    migrate,
    nodes,
    settle,
    taken,
    worker,
)
from benchmarks._postgres import BenchPostgres, postgres
from benchmarks._report import Goal, Report, Size, at_least, below, options_of, percentile
from hourhand.core.instant import SECOND_US
from hourhand.core.model import OnceTiming, Priority
from tests.servers.postgres_databases import database_of

WORKERS = 2
PATIENCE_S = 180.0
IMPORT_RATE = 4_000  # jobs a second that the import surely reaches
_MARGIN_S = 6.0  # from the last job to the first claim

_LEFT = "SELECT EXISTS (SELECT FROM planned) OR EXISTS (SELECT FROM running)"
_STARTS = "SELECT due_at, started_at, state FROM history"
_BY_PRIORITY = """
SELECT j.name, percentile_disc(0.5) WITHIN GROUP (ORDER BY h.started_at - h.due_at) / 1e6 AS middle_s,
    max(h.started_at - h.due_at) / 1e6 AS last_s FROM history AS h JOIN jobs AS j ON j.id = h.job_id GROUP BY j.name
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Herd:
    """How some jobs are due."""

    jobs: int
    lead_s: float
    jitter_s: int = 0
    priorities: Sequence[Priority] = (Priority.MEDIUM,)  # in equal parts, created in this order
    room: int | None = None  # of each worker; None: together they have room for all

    @property
    def title(self) -> str:
        """For people."""
        over = f"with {self.jitter_s} s of jitter" if self.jitter_s else "at one instant"
        return f"{self.jobs:,} jobs {over}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Lateness:
    """Of one herd, in milliseconds; how many were due and not started at worst, and were due in one second."""

    p50: float
    p99: float
    most: float
    pressure: int
    due_in_a_second: int
    recorded_s: float  # from the due time until all was in history
    by_message: float  # of a hundred runs, where there is a broker
    started: Mapping[
        str, tuple[float, float]
    ]  # by priority: seconds until half of them and until all had started
    worker_mb: float  # at most


def main() -> None:
    """Three herds."""
    options = options_of(
        __doc__ or "",
        Size("few", 10_000, 500, "jobs of the small herd"),
        Size("many", 100_000, 2_000, "jobs of the large herd"),
        Size("lead_few", 2.0, 2.0, "seconds that workers may take runs ahead, for the small herd"),
        Size("lead_many", 5.0, 2.0, "seconds that workers may take runs ahead, for the large herd"),
        Size("jitter", 30, 5, "seconds of jitter"),
    )
    report = Report("cluster_lateness", options)
    with postgres() as bench:
        report.note(f"PostgreSQL with {', '.join(bench.differing)}")
        _tell(report, bench, Herd(jobs=options.few, lead_s=options.lead_few), below(150))
        many = Herd(jobs=options.many, lead_s=options.lead_many)
        at_once = _tell(report, bench, many, below(1000))
        spread = Herd(jobs=options.many, lead_s=options.lead_few, jitter_s=options.jitter)
        apart = _tell(report, bench, spread, below(200))
        ratios = [one.pressure / max(1, other.pressure) for one, other in zip(at_once, apart, strict=True)]
        report.figure("peak pressure without jitter beside with it", "times", ratios, at_least(30))
    report.save()


def measure(
    bench: BenchPostgres,
    herd: Herd,
    more: Mapping[str, str] | None = None,
    commands: Sequence[Sequence[str]] = (),
) -> Lateness:
    """Let one herd fire in a database of its own; with `more` settings, and processes beside the workers."""
    url = bench.databases.create_database()
    room = herd.room or max(100, herd.jobs * 11 // 10 // WORKERS)
    settings = {"scheduler_lead": f"{int(herd.lead_s * 1000)}ms", "telemetry_log": "warning", **(more or {})}
    try:
        migrate(url)
        with nodes(bench.databases, url, [*commands, *[worker(room)] * WORKERS], settings) as parts:
            due_at = _create(bench, url, herd)
            recorded_s, worker_mb = _wait_for_all(bench, url, herd, parts, due_at)
            by_message = taken(parts).share(NOTHING_TAKEN)
        rows = bench.databases.query(_STARTS, database=database_of(url))
        found = bench.databases.query(_BY_PRIORITY, database=database_of(url))
        started = {name: (float(middle_s), float(last_s)) for name, middle_s, last_s in found}
    finally:
        bench.databases.drop_database(url)
    return _lateness(
        rows, herd, recorded_s=recorded_s, by_message=by_message, started=started, worker_mb=worker_mb
    )


def _create(bench: BenchPostgres, url: str, herd: Herd) -> int:
    """The jobs, while the workers wait for them; answers when they are due."""
    due_at = time.time_ns() // 1000 + int((herd.jobs / IMPORT_RATE + herd.lead_s + _MARGIN_S) * SECOND_US)
    due_at -= due_at % SECOND_US
    jitter_us = herd.jitter_s * SECOND_US
    shares = [herd.jobs * (n + 1) // len(herd.priorities) for n in range(len(herd.priorities))]
    for priority, begin, end in zip(herd.priorities, [0, *shares], shares, strict=False):
        timings = [OnceTiming(at=due_at)] * (end - begin)
        uvloop.run(
            create_jobs(url, timings, jitter_us=jitter_us, priority=priority, name=priority.name.lower())
        )
    settle(bench.databases, url)
    if time.time_ns() // 1000 > due_at - int((herd.lead_s + 1) * SECOND_US):
        raise SystemExit("the import took too long for this measurement; lower IMPORT_RATE")
    return due_at


def _wait_for_all(
    bench: BenchPostgres, url: str, herd: Herd, parts: list[Part], due_at: int
) -> tuple[float, float]:
    """How long it took from the due time until the last outcome was in history; and what a worker took of memory."""
    time.sleep(due_at / SECOND_US - time.time() + herd.jitter_s)
    end_s = time.monotonic() + PATIENCE_S
    workers = [one for one in parts if one.name == "worker"]
    worker_mb = 0.0
    while bench.databases.query(_LEFT, database=database_of(url))[0][0]:
        check_alive(parts)
        if time.monotonic() > end_s:
            raise SystemExit(f"{herd.title}: not done after {PATIENCE_S:g} s")
        worker_mb = max([worker_mb, *(one.memory_mb() for one in workers)])
        time.sleep(0.2)
    return time.time() - due_at / SECOND_US, worker_mb


def _lateness(rows: Sequence[Any], herd: Herd, **found: Any) -> Lateness:
    succeeded = sum(row["state"] == SUCCEEDED for row in rows)
    if not len(rows) == succeeded == herd.jobs:
        raise SystemExit(f"{herd.title}: {len(rows):,} attempts, of which {succeeded:,} succeeded")
    lags_ms = sorted((row["started_at"] - row["due_at"]) / 1000 for row in rows)
    if lags_ms[0] < 0:
        raise SystemExit(f"a run started {-lags_ms[0]:g} ms before its time")
    return Lateness(
        p50=percentile(lags_ms, 0.5),
        p99=percentile(lags_ms, 0.99),
        most=lags_ms[-1],
        pressure=_pressure(rows),
        due_in_a_second=max(Counter(row["due_at"] // SECOND_US for row in rows).values()),
        **found,
    )


def _pressure(rows: Sequence[Any]) -> int:
    """The most runs that were due and not yet started at one moment."""
    changes = sorted([(row["due_at"], 1) for row in rows] + [(row["started_at"], -1) for row in rows])
    most = waiting = 0
    for at, together in groupby(changes, key=lambda change: change[0]):
        del at
        changed = [change for _, change in together]
        most = max(most, waiting + changed.count(1))
        waiting += sum(changed)
    return most


def _tell(report: Report, bench: BenchPostgres, herd: Herd, goal: Goal) -> list[Lateness]:
    rounds = []
    for _ in range(report.options.rounds):
        found = measure(bench, herd)
        report.say(
            f"{herd.title}: p50 {found.p50:,.1f} ms, p99 {found.p99:,.1f} ms, most {found.most:,.1f} ms; "
            f"{found.due_in_a_second:,} due in one second, {found.pressure:,} due and not started at worst; "
            f"all recorded {found.recorded_s:.2f} s after the due time"
        )
        rounds.append(found)
    report.figure(f"{herd.title}, p50 lateness", "ms", [found.p50 for found in rounds])
    report.figure(f"{herd.title}, p99 lateness", "ms", [found.p99 for found in rounds], goal)
    report.figure(f"{herd.title}, most", "ms", [found.most for found in rounds])
    report.figure(f"{herd.title}, due in one second", "runs", [found.due_in_a_second for found in rounds])
    report.figure(f"{herd.title}, due and not started", "runs", [found.pressure for found in rounds])
    return rounds


if __name__ == "__main__":
    main()
