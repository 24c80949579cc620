"""What one tenant's flood does to another: the lateness of a steady tenant without it and beside it.

The steady tenant has 100 runs a second, of 100 jobs every second in as many phases. The other has very many one-time
jobs that are all due at the same instant, loaded as rows beforehand, and far more than the workers have room for.
Lateness is from the due time to the start of the function, of every run of the steady tenant that is due from that
instant on for some seconds, or until the flood is over. Tenants wait in lanes by the hash of their names: in one case
they have lanes of their own, in the other they share one, which is the hard case. On a file with everything in one
process, and on PostgreSQL with a scheduler and two workers. A flood takes all the processors that it can have, so
beside those the steady tenant is measured alone while as many idle loops as there are processors take them: what is
left of the lateness then is the machine's, and not a neighbour's.

    python -m benchmarks.tenants [--flood 1000000] [--seconds 30] [--rate 100] [--rounds 3] [--quick]
"""

import asyncio
import contextlib
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvloop

from benchmarks._cluster import Part, check_alive, create_jobs, migrate, nodes, settle, spec_of, worker
from benchmarks._postgres import BenchPostgres, postgres
from benchmarks._report import Report, Size, at_least, below, options_of, percentile
from benchmarks._system import Tally, quiet, run, scratch, settings_for, system
from hourhand.core.identity import tenant_lane
from hourhand.core.instant import DAY_US, SECOND_US
from hourhand.core.model import EveryTiming, OnceTiming, Priority
from hourhand.core.run import ClaimedRun, Settlement
from hourhand.ids import IdSource
from hourhand.ports.store import JobDraft
from tests.servers.postgres_databases import database_of

STEADY = "steady"
ROOM = 1_000
WORKERS = 2
WARM_S = 6.0  # from the start to the measured part: clocks are planned, connections open
LOAD_RATE = 15_000  # rows a second that loading into a file surely reaches
_BATCH = 10_000
_FIRST_ID = 1 << 40  # of the flood's jobs, far from drawn ones
_DUE = """
SELECT (h.started_at - h.due_at) / 1000.0 AS lag_ms FROM history AS h JOIN jobs AS j ON j.id = h.job_id
WHERE j.tenant = $1 AND h.due_at >= $2 AND h.due_at < $3 AND h.started_at IS NOT NULL
"""
_MARGIN = 2.0  # how much longer loading may take than what was tried says
_PROBE = "probe"
_UNLOAD_RUNS = "DELETE FROM planned WHERE job_id IN (SELECT id FROM jobs WHERE tenant = '{tenant}')"
_UNLOAD_JOBS = "DELETE FROM jobs WHERE tenant = '{tenant}'"
_COLUMNS = """
SELECT attname FROM pg_attribute WHERE attrelid = 'jobs'::regclass AND attnum > 0 AND NOT attisdropped
"""
_LEFT = "SELECT count(*) FROM planned WHERE job_id >= $1 AND job_id < $2"
_COPY_JOBS = """
INSERT INTO jobs ({columns}) SELECT {values} FROM jobs AS j, {numbers} WHERE j.id = {model}
"""
_COPY_RUNS = """
INSERT INTO planned (scheduled_at, job_id, lane, due_at, trigger, fence, tries)
SELECT {due_at}, {first} + n, j.lane, {due_at}, 0, 0, 0 FROM jobs AS j, {numbers} WHERE j.id = {model}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lateness:
    """Of the steady tenant, in milliseconds; and how many of the flood a second were done beside it."""

    p50: float
    p99: float
    most: float
    flood_rate: float


def flooding_tenant(*, shares: bool) -> str:
    """A tenant whose runs wait in the steady one's lane, or in another."""
    own = tenant_lane(STEADY)
    return next(name for n in range(10_000) if (tenant_lane(name := f"flood-{n}") == own) is shares)


def main() -> None:
    """Each store, each case; the median of the rounds."""
    options = options_of(
        __doc__ or "",
        Size("flood", 1_000_000, 20_000, "runs that are due at one instant"),
        Size("seconds", 30, 5, "how long the steady tenant is looked at"),
        Size("rate", 100, 100, "its runs a second"),
    )
    report = Report("tenants", options)
    _tell(report, "a file", lambda tenant: _on_file(options, tenant))
    with postgres() as bench:
        report.note(f"PostgreSQL with {', '.join(bench.differing)}")
        _tell(report, "PostgreSQL", lambda tenant: _on_postgres(bench, options, tenant))
    report.save()


def _tell(report: Report, where: str, measure: Any) -> None:
    """The cases after one another in each round, so that a neighbour on the machine is one to all of them."""
    cases = {"alone": None, "lanes of their own": False, "one lane for both": True}
    found: dict[str, list[Lateness]] = {words: [] for words in cases}
    busy = []
    for _ in range(report.options.rounds):
        for words, shares in cases.items():
            found[words].append(measure(None if shares is None else flooding_tenant(shares=shares)))
        with busy_processors():
            busy.append(measure(None))
    alone = found.pop("alone")
    _say(report, f"{where}, alone", alone)
    _say(report, f"{where}, alone on busy processors", busy)
    for words, beside in found.items():
        name = f"{where}, beside a flood, {words}"
        _say(report, name, beside)
        report.figure(
            f"{name}, p99 beside alone",
            "times",
            [one.p99 / other.p99 for one, other in zip(beside, alone, strict=True)],
            below(2),
        )
        times = [one.p99 / other.p99 for one, other in zip(beside, busy, strict=True)]
        report.figure(f"{name}, p99 beside alone on busy processors", "times", times)
        report.figure(f"{name}, of the flood", "runs/s", [one.flood_rate for one in beside], at_least(1))


@contextlib.contextmanager
def busy_processors() -> Iterator[None]:
    """One loop that does nothing for each processor, ended with us at the latest."""
    loop = "import os\nwhile os.getppid() == PARENT: pass".replace("PARENT", str(os.getpid()))
    loops = [subprocess.Popen([sys.executable, "-c", loop]) for _ in range(os.cpu_count() or 1)]
    try:
        yield
    finally:
        for one in loops:
            one.kill()
            one.wait()


def _say(report: Report, name: str, rounds: Sequence[Lateness]) -> None:
    for one in rounds:
        report.say(
            f"{name}: p50 {one.p50:,.1f} ms, p99 {one.p99:,.1f} ms, most {one.most:,.1f} ms; "
            f"{one.flood_rate:,.0f} of the flood a second"
        )
    report.figure(f"{name}, p50 lateness", "ms", [one.p50 for one in rounds])
    report.figure(f"{name}, p99 lateness", "ms", [one.p99 for one in rounds])


# --- on a file


class _Seen(Tally):
    """Keeps lateness by tenant and due time."""

    def __init__(self) -> None:
        super().__init__()
        self.steady: list[tuple[int, int]] = []
        self.flooded: list[int] = []

    def __call__(self, batch: Sequence[tuple[ClaimedRun, Settlement]]) -> None:
        for one, settlement in batch:
            if settlement.started_at is None:
                continue
            if one.tenant == STEADY:
                self.steady.append((one.due_at, settlement.started_at - one.due_at))
            else:
                self.flooded.append(settlement.finished_at)


def _on_file(options: Any, tenant: str | None) -> Lateness:
    found: list[Lateness] = []

    async def measure() -> None:
        found.append(await _measure_file(options, tenant))

    run(measure())
    return found[0]


async def _measure_file(options: Any, tenant: str | None) -> Lateness:
    seen = _Seen()
    with scratch() as folder:
        path = Path(folder) / "bench.db"
        settings = settings_for(path, concurrency=ROOM)
        due_at = _instant(options, tenant)
        async with system(settings, seen) as parts:
            ids = IdSource(parts.clock)
            drafts = [JobDraft(id=ids.job_id(), tenant=STEADY, spec=one) for one in _steady(options.rate)]
            if tenant is not None:
                model = JobDraft(id=ids.job_id(), tenant=tenant, spec=spec_of(OnceTiming(at=due_at)))
                drafts.append(model)
            await parts.store.create_jobs(drafts)
            if tenant is not None:
                _load_file(path, drafts[-1].id, options.flood, due_at)
            _check_time(due_at)
            await parts.node.start()
            quiet()
            until_at = due_at + options.seconds * SECOND_US
            while parts.clock.now() < until_at + 2 * SECOND_US:
                if tenant is not None and len(seen.flooded) > options.flood:
                    until_at = min(until_at, max(seen.flooded))
                    break
                await asyncio.sleep(0.2)
    lags = [lag_us / 1000 for at, lag_us in seen.steady if due_at <= at < until_at]
    return _lateness(lags, sum(at < until_at for at in seen.flooded), until_at - due_at)


def _load_file(path: Path, model: int, count: int, due_at: int) -> None:
    """Copies of a job and its one run."""
    connection = sqlite3.connect(path, timeout=60)
    columns = [row[1] for row in connection.execute("PRAGMA table_info(jobs)")]
    for start in range(0, count, _BATCH):
        numbers = (
            f"(WITH RECURSIVE s (n) AS (SELECT {start} UNION ALL SELECT n + 1 FROM s "
            f"WHERE n < {min(count, start + _BATCH) - 1}) SELECT n FROM s)"
        )
        _copy(connection.execute, columns, numbers, model, due_at)
    connection.commit()
    connection.close()


def _copy(execute: Any, columns: Sequence[str], numbers: str, model: int, due_at: int) -> None:
    values = ", ".join(f"{_FIRST_ID} + n" if name == "id" else f"j.{name}" for name in columns)
    execute(_COPY_JOBS.format(columns=", ".join(columns), values=values, numbers=numbers, model=model))
    execute(_COPY_RUNS.format(first=_FIRST_ID, numbers=numbers, model=model, due_at=due_at))


# --- on PostgreSQL


def _on_postgres(bench: BenchPostgres, options: Any, tenant: str | None) -> Lateness:
    url = bench.databases.create_database()
    settings = {"telemetry_log": "warning"}
    try:
        migrate(url)
        uvloop.run(create_jobs(url, [one.timing for one in _steady(options.rate)], tenant=STEADY))
        load_s = 0.0 if tenant is None else _probe_postgres(bench, url, options.flood)
        with nodes(bench.databases, url, [("scheduler",), *[worker(ROOM)] * WORKERS], settings) as parts:
            due_at = _from_now(load_s + WARM_S)
            if tenant is not None:
                _load_postgres(bench, url, tenant, options.flood, due_at)
            settle(bench.databases, url)
            _check_time(due_at, warm_s=0)  # everything runs already
            until_at, done = _watch_postgres(bench, url, parts, options, tenant, due_at)
            time.sleep(2)
        rows = bench.databases.query(_DUE, STEADY, due_at, until_at, database=database_of(url))
    finally:
        bench.databases.drop_database(url)
    return _lateness([float(row[0]) for row in rows], done, until_at - due_at)


def _probe_postgres(bench: BenchPostgres, url: str, count: int) -> float:
    """How many seconds loading takes here, with a margin: some are loaded for tomorrow and taken out again."""
    few = min(count, _BATCH)
    began_s = time.perf_counter()
    _load_postgres(bench, url, _PROBE, few, _from_now(DAY_US / SECOND_US))
    took_s = time.perf_counter() - began_s
    for text in (_UNLOAD_RUNS, _UNLOAD_JOBS):
        bench.databases.execute(text.format(tenant=_PROBE), database=database_of(url))
    return _MARGIN * took_s * max(1.0, count / few)


def _load_postgres(bench: BenchPostgres, url: str, tenant: str, count: int, due_at: int) -> None:
    """Copies of a job and its one run."""
    name = database_of(url)
    uvloop.run(create_jobs(url, [OnceTiming(at=due_at)], tenant=tenant))
    model = bench.databases.query("SELECT id FROM jobs WHERE tenant = $1", tenant, database=name)[0][0]
    columns = [row[0] for row in bench.databases.query(_COLUMNS, database=name)]
    numbers = f"generate_series(0, {count - 1}) AS n"
    _copy(lambda text: bench.databases.execute(text, database=name), columns, numbers, model, due_at)


def _watch_postgres(
    bench: BenchPostgres, url: str, parts: Sequence[Part], options: Any, tenant: str | None, due_at: int
) -> tuple[int, int]:
    """Until when the steady tenant is looked at, and how many of the flood were done by then."""
    until_at = due_at + options.seconds * SECOND_US
    left = options.flood if tenant is not None else 0
    while time.time_ns() // 1000 < until_at:
        check_alive(parts)
        time.sleep(0.5)
        if tenant is not None and time.time_ns() // 1000 > due_at:
            bounds = (_FIRST_ID, _FIRST_ID + options.flood)
            left = bench.databases.query(_LEFT, *bounds, database=database_of(url))[0][0]
            if left == 0:
                until_at = min(until_at, time.time_ns() // 1000)
    return until_at, options.flood - left if tenant is not None else 0


# --- both


def _steady(rate: int) -> list[Any]:
    phases = [EveryTiming(interval_us=SECOND_US, phase_at=SECOND_US * n // rate) for n in range(rate)]
    return [spec_of(timing, priority=Priority.MEDIUM) for timing in phases]


def _instant(options: Any, tenant: str | None) -> int:
    """When the flood is due, or would be: once it is loaded and everything runs."""
    load_s = options.flood / LOAD_RATE if tenant is not None else 0
    return _from_now(load_s + WARM_S + 6)


def _from_now(seconds: float) -> int:
    """A whole second, so long from now."""
    at = time.time_ns() // 1000 + int(seconds * SECOND_US)
    return at - at % SECOND_US


def _check_time(due_at: int, warm_s: float = WARM_S) -> None:
    if time.time_ns() // 1000 > due_at - int(warm_s * SECOND_US):
        raise SystemExit("loading took too long for this measurement; leave more time for it")


def _lateness(lags_ms: Sequence[float], flooded: int, took_us: int) -> Lateness:
    lags = sorted(lags_ms)
    if not lags:
        raise SystemExit("no run of the steady tenant was recorded")
    return Lateness(
        p50=percentile(lags, 0.5),
        p99=percentile(lags, 0.99),
        most=lags[-1],
        flood_rate=flooded / max(1, took_us) * SECOND_US,
    )


if __name__ == "__main__":
    main()
