"""What it costs to hold very many runs at once: whether heartbeats grow with their number.

One-time jobs whose async function sleeps, over a few worker processes on a durable PostgreSQL. Once all of them run,
the cluster is watched for some heartbeats: transactions a second as the server counts them, processor time of the
workers, their memory, and how long it takes to do what a worker does at each heartbeat (renew its lease, look which
runs it holds by the store, and which somebody wants cancelled). The same with few runs beside it. At the end every run
must have succeeded at its first attempt: nobody lost its lease.

    python -m benchmarks.concurrent_runs [--runs 100000] [--few 1000] [--workers 4] [--seconds 30] [--rounds 3] [--quick]
"""

import argparse
import statistics
import time
from dataclasses import dataclass

import msgspec
import uvloop

from benchmarks._cluster import (
    SUCCEEDED,
    Part,
    check_alive,
    create_jobs,
    migrate,
    node_id,
    nodes,
    settle,
    worker,
)
from benchmarks._postgres import BenchPostgres, postgres
from benchmarks._report import Report, Size, at_least, below, options_of
from benchmarks._sleeping import MODULE, SLEEP_UNTIL
from hourhand.core.instant import HOUR_US, SECOND_US
from hourhand.core.model import OnceTiming
from hourhand.ids import IdSource
from hourhand.stores.postgres import PostgresStore
from tests.servers.postgres_databases import database_of

START_RATE = 4_000  # runs a second that are surely created, and surely claimed
HEARTBEATS_S = 10.0
_BEATS = 5  # of ours, for each worker
_PATIENCE_S = 300.0
_LEASE_US = 30 * SECOND_US

_HELD = "SELECT count(*) FROM running WHERE phase = 1"
_TRANSACTIONS = "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = current_database()"
_OUTCOMES = "SELECT count(*), count(*) FILTER (WHERE state = $1 AND attempt = 1) FROM history"


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What holding some runs costs."""

    held: int
    transactions_s: float
    heartbeat_ms: float
    worker_cores: float  # of all together
    worker_mb: float  # of one

    @property
    def heartbeats_share(self) -> float:
        """Of the time between two heartbeats, what one takes; in percent."""
        return self.heartbeat_ms / (HEARTBEATS_S * 1000) * 100


def main() -> None:
    """Few and many in turn."""
    options = options_of(
        __doc__ or "",
        Size("runs", 100_000, 2_000, "runs held at once"),
        Size("few", 1_000, 100, "runs that it is compared with"),
        Size("workers", 4, 2, "worker processes"),
        Size("seconds", 30, 12, "of watching"),
    )
    report = Report("concurrent_runs", options)
    found: dict[int, list[Found]] = {options.few: [], options.runs: []}
    with postgres() as bench:
        report.note(f"PostgreSQL with {', '.join(bench.differing)}")
        for _ in range(options.rounds):
            for runs, rounds in found.items():
                rounds.append(measure(bench, runs, options))
                _say(report, rounds[-1])
    _tell(report, found[options.few], found[options.runs], options)
    report.save()


def measure(bench: BenchPostgres, runs: int, options: argparse.Namespace) -> Found:
    """Hold some runs in a database of their own."""
    url = bench.databases.create_database()
    room = max(100, runs * 11 // 10 // options.workers)
    quiet = {"telemetry_log": "warning"}
    commands = [("scheduler",), *[worker(room, "--import", MODULE)] * options.workers]
    try:
        migrate(url)
        with nodes(bench.databases, url, commands, quiet) as parts:
            until_s = _create(bench, url, runs, options.seconds)
            _wait(bench, url, runs, until_s - options.seconds - HEARTBEATS_S)
            found = _watch(bench, url, parts, options.seconds)
            check_alive(parts)
            _wait(bench, url, 0, until_s + _PATIENCE_S)
        _check(bench, url, runs)
    finally:
        bench.databases.drop_database(url)
    return found


def _create(bench: BenchPostgres, url: str, runs: int, seconds: float) -> float:
    """Jobs that are due at once; answers until when they sleep."""
    until_s = time.time() + 2 * runs / START_RATE + 2 * HEARTBEATS_S + seconds
    payload = msgspec.Raw(msgspec.json.encode({"until_s": until_s}))
    at = time.time_ns() // 1000
    uvloop.run(
        create_jobs(
            url, [OnceTiming(at=at)] * runs, function=SLEEP_UNTIL, payload=payload, timeout_us=HOUR_US
        )
    )
    settle(bench.databases, url)
    return until_s


def _wait(bench: BenchPostgres, url: str, runs: int, end_s: float) -> None:
    while (held := bench.databases.query(_HELD, database=database_of(url))[0][0]) != runs:
        if time.time() > end_s:
            raise SystemExit(f"{held:,} runs are held where {runs:,} should be; lower START_RATE")
        time.sleep(0.5)


def _watch(bench: BenchPostgres, url: str, parts: list[Part], seconds: float) -> Found:
    database = database_of(url)
    workers = [one for one in parts if one.name == "worker"]
    held_before = bench.databases.query(_HELD, database=database)[0][0]
    count = bench.databases.query(_TRANSACTIONS, database=database)[0][0]
    cpu_s, began_s = [one.cpu_s() for one in workers], time.monotonic()
    time.sleep(seconds)
    took_s = time.monotonic() - began_s
    used_s = sum(one.cpu_s() for one in workers) - sum(cpu_s)
    transactions = bench.databases.query(_TRANSACTIONS, database=database)[0][0] - count
    ids = [held for one in workers if (held := node_id(bench.databases, url, one)) is not None]
    if len(ids) != len(workers):
        raise SystemExit("a worker has no lease")
    heartbeat_ms = uvloop.run(_time_heartbeats(url, ids))
    held = bench.databases.query(_HELD, database=database)[0][0]
    if held != held_before:
        raise SystemExit(f"{held_before:,} runs were held, then {held:,}")
    return Found(
        held=held,
        transactions_s=transactions / took_s,
        heartbeat_ms=heartbeat_ms,
        worker_cores=used_s / took_s,
        worker_mb=max(one.memory_mb() for one in workers),
    )


async def _time_heartbeats(url: str, ids: list[int]) -> float:
    """The store's part of a heartbeat, in milliseconds: what a worker asks, with a lease of our own to renew."""
    store = await PostgresStore.open(url)
    own_id = IdSource(store.clock).node_id()
    taken_ms = []
    try:
        for worker_id in ids * _BEATS:
            began_s = time.perf_counter()
            await store.renew_node(own_id, "bench", "bench", _LEASE_US)
            await store.held_runs(worker_id)
            await store.cancel_asked(worker_id)
            taken_ms.append((time.perf_counter() - began_s) * 1000)
        await store.end_node(own_id)
    finally:
        await store.close()
    return statistics.median(taken_ms)


def _check(bench: BenchPostgres, url: str, runs: int) -> None:
    attempts, succeeded = bench.databases.query(_OUTCOMES, SUCCEEDED, database=database_of(url))[0]
    if not attempts == succeeded == runs:
        raise SystemExit(f"{runs:,} runs had {attempts:,} attempts, of which {succeeded:,} succeeded at once")


def _say(report: Report, found: Found) -> None:
    report.say(
        f"{found.held:>9,} held: {found.transactions_s:.1f} transactions/s, a heartbeat {found.heartbeat_ms:.1f} ms, "
        f"workers {found.worker_cores:.3f} cores together and at most {found.worker_mb:.0f} MB each"
    )


def _tell(report: Report, few: list[Found], many: list[Found], options: argparse.Namespace) -> None:
    report.figure("runs held at once", "runs", [one.held for one in many], at_least(options.runs))
    for title, rounds in ((f"{options.few:,} held", few), (f"{options.runs:,} held", many)):
        report.figure(f"{title}, transactions", "a second", [one.transactions_s for one in rounds])
        report.figure(f"{title}, a heartbeat", "ms", [one.heartbeat_ms for one in rounds])
        report.figure(f"{title}, workers together", "cores", [one.worker_cores for one in rounds])
        report.figure(f"{title}, memory of a worker", "MB", [one.worker_mb for one in rounds])
    ratios = [one.transactions_s / other.transactions_s for one, other in zip(many, few, strict=True)]
    report.figure("transactions with many beside few", "times", ratios, below(1.3))
    shares = [one.heartbeats_share for one in many]
    report.figure(f"share of its time a worker beats, {options.runs:,} held", "%", shares)


if __name__ == "__main__":
    main()
