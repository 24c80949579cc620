"""How long an audit of a million expected runs takes on PostgreSQL, and how much memory it needs.

Two shapes: few jobs with many times each, and as many jobs as runs. Jobs and their history are written by SQL, as the
store would have left them; the audit is the one behind `hourhand audit`. Beside the time stands how much memory the
whole process had at most until then, its programs included. In the end a line of history is removed, which the audit
must find.

    python -m benchmarks.audit [--runs 1000000] [--times 100] [--rounds 3] [--quick]
"""

import resource
import time
from typing import Any

import asyncpg
import msgspec
import uvloop

from benchmarks._postgres import postgres
from benchmarks._report import Report, Size, below, options_of
from hourhand.clock import ManualClock
from hourhand.core.audit import AuditReport, Kind, Window
from hourhand.core.instant import DAY_US, MINUTE_US, SECOND_US
from hourhand.core.model import EveryTiming, JobSpec, PythonTarget
from hourhand.services.audit import Audit
from hourhand.stores.postgres import PostgresStore, schema

_FIRST_ID = 1_000_000_000
_KEEP_US = 30 * DAY_US
_RULES = 50  # that jobs share

_ADD_JOBS = """
INSERT INTO jobs (id, tenant, version, version_from, paused, since, until, created_at, updated_at, lane, grace_us,
    timeout_us, concurrency, at_most_once, name, spec)
SELECT $1 + n, 'default', 1, $2, 0, $2, 4611686018427387903, $2, $2, 1, 60000000, 300000000, 1, 0, 'job-' || n,
    replace(($3::text[])[1 + n % $4], 'job-n', 'job-' || n)
FROM generate_series(0, $5 - 1) AS n
"""
_ADD_HISTORY = """
INSERT INTO history (job_id, scheduled_at, due_at, started_at, finished_at, bucket, attempt, version, state, trigger,
    tries, worker)
SELECT $1 + n, t.at, t.at, t.at, t.at + 1000, (t.at / 86400000000)::integer, 1, 1, 3, 0, 0, 'worker'
FROM generate_series(0, $2 - 1) AS n CROSS JOIN LATERAL (
    SELECT $3::bigint + (n % $4) * 1000000 + i * $5::bigint AS at FROM generate_series(0, $6 - 1) AS i) AS t
ORDER BY t.at, n
"""


def main() -> None:
    """Load a shape, audit it, take something away, audit it again."""
    options = options_of(
        __doc__ or "",
        Size("runs", 1_000_000, 10_000, "expected runs"),
        Size("times", 100, 100, "times of each job, in the shape of few jobs"),
    )
    report = Report("audit", options)
    with postgres() as bench:
        report.note(f"PostgreSQL with {', '.join(bench.differing)}")
        for jobs, times in ((options.runs // options.times, options.times), (options.runs, 1)):
            url = bench.databases.create_database()
            try:
                uvloop.run(_measure(report, url, jobs, times, options.rounds))
            finally:
                bench.databases.drop_database(url)
    report.save()


async def _measure(report: Report, url: str, jobs: int, times: int, rounds: int) -> None:
    await schema.up(url)
    now_at = time.time_ns() // 1000
    every_us = DAY_US if times == 1 else 10 * MINUTE_US
    from_at = now_at // MINUTE_US * MINUTE_US - max(every_us * times, 60 * MINUTE_US) - 10 * MINUTE_US
    store = await PostgresStore.open(url, clock=ManualClock(now_at))
    try:
        await _load(url, jobs, times, from_at, every_us)
        window = Window(from_at=from_at, to_at=from_at + every_us * times, tenant="default")
        took_s = []
        for _ in range(rounds):
            began_s = time.perf_counter()
            found = await _audit(store, now_at, window)
            took_s.append(time.perf_counter() - began_s)
            if not found.is_clean or found.tally.succeeded != jobs * times:
                raise SystemExit(
                    f"a sound history does not come out even: {found.tally}, {found.findings[:3]}"
                )
            report.say(f"{jobs:,} jobs, {times:,} times each: {took_s[-1]:.1f} s")
        report.figure(f"{jobs:,} jobs with {times:,} times each", "s", took_s, below(30))
        memory_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        report.figure(f"memory for {jobs:,} jobs with {times:,} times each", "MB", [memory_mb], below(200))
        await _lose_one(url)
        found = await _audit(store, now_at, window)
        if found.kinds != {Kind.LOST: 1}:
            raise SystemExit(f"one line of history is gone, and the audit says {found.kinds}")
    finally:
        await store.close()


async def _audit(store: PostgresStore, now_at: int, window: Window) -> AuditReport:
    return await Audit(store=store, clock=ManualClock(now_at), keep_us=_KEEP_US).window(window)


async def _load(url: str, jobs: int, times: int, from_at: int, every_us: int) -> None:
    target = PythonTarget(function="benchmarks:noop")
    specs = [
        msgspec.json.encode(
            JobSpec(
                timing=EveryTiming(interval_us=every_us, phase_at=from_at + n * SECOND_US),
                target=target,
                name="job-n",
                payload=msgspec.Raw(b'{"region": "eu", "customer": "a customer of this job"}'),
                tags=("billing",),
            )
        ).decode()
        for n in range(_RULES)
    ]
    connection: Any = await asyncpg.connect(url, timeout=60, command_timeout=600)
    try:
        await connection.execute(_ADD_JOBS, _FIRST_ID, from_at - DAY_US, specs, _RULES, jobs)
        await connection.execute(_ADD_HISTORY, _FIRST_ID, jobs, from_at, _RULES, every_us, times)
        await connection.execute("VACUUM ANALYZE jobs, history")
    finally:
        await connection.close()


async def _lose_one(url: str) -> None:
    connection: Any = await asyncpg.connect(url)
    try:
        await connection.execute(
            "DELETE FROM history WHERE job_id = $1 AND attempt = 1 AND scheduled_at = "
            "(SELECT max(scheduled_at) FROM history WHERE job_id = $1)",
            _FIRST_ID + 7,
        )
    finally:
        await connection.close()


if __name__ == "__main__":
    main()
