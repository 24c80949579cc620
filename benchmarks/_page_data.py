"""A SQLite file with very many jobs, their past runs and some dead letters, for those who look at them.

A thousand jobs are made by the store; the others are their copies, by a few statements, with ids and names of their own. All
are due in years, so that nothing but the looking happens. States, tags and causes are mixed by number.
"""

import contextlib
import sqlite3
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks._system import NOOP, Tally, create, settings_for, system
from hourhand.core.identity import format_job_id, format_run_id
from hourhand.core.instant import HOUR_US, MINUTE_US
from hourhand.core.lifecycle import State
from hourhand.core.model import CronTiming, JobSpec, PythonTarget
from hourhand.services.jobs import NewJob
from hourhand.stores.relational.rows import STATE_CODES

MODELS = 1_000
RARE_TAG = "rare"  # one job in a thousand has it
CAUSES = 20
_NUMBERS = "WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ?)"

_COPY_JOBS = f"""
{_NUMBERS}, models AS (SELECT row_number() OVER (ORDER BY id) - 1 AS place, jobs.* FROM jobs),
newest (id) AS (SELECT max(id) FROM jobs)
INSERT INTO jobs (id, tenant, key, name, version, version_from, paused, note, paused_until, clock_id, since, until, once_at,
    attend_at, created_at, updated_at, lane, concurrency, at_most_once, grace_us, timeout_us, spec)
SELECT newest.id + n, tenant, NULL, 'copy-' || printf('%07d', n), version, version_from, n % 100 = 0, NULL, NULL, clock_id,
    since, until, once_at, attend_at, created_at, updated_at, lane, concurrency, at_most_once, grace_us, timeout_us,
    replace(spec, '"name":"' || name || '"', '"name":"copy-' || printf('%07d', n) || '"')
FROM numbers CROSS JOIN newest JOIN models ON models.place = n % {MODELS}
"""
_COPY_MEMBERS = """
INSERT OR IGNORE INTO members (clock_id, job_id, lane, jitter_us, since, until, policy, grace_us, catch_up)
SELECT j.clock_id, j.id, m.lane, m.jitter_us, m.since, m.until, m.policy, m.grace_us, m.catch_up
FROM jobs AS j JOIN (SELECT * FROM members GROUP BY clock_id) AS m ON m.clock_id = j.clock_id WHERE j.paused = 0
"""
_HISTORY = f"""
{_NUMBERS}
INSERT INTO history (job_id, scheduled_at, attempt, state, trigger, tries, due_at, started_at, finished_at, version, worker, detail)
SELECT j.id, :from_at + n * {HOUR_US}, 1, CASE (j.id + n) % 50 WHEN 0 THEN :failed WHEN 1 THEN :skipped ELSE :succeeded END, 0, 0,
    :from_at + n * {HOUR_US}, :from_at + n * {HOUR_US} + 3000, :from_at + n * {HOUR_US} + 250000, 1, 'bench-1',
    CASE (j.id + n) % 50 WHEN 0 THEN '{{"error":"the other side hung up"}}' END
FROM jobs AS j CROSS JOIN numbers
"""
_BUSY = f"""
{_NUMBERS}
INSERT OR IGNORE INTO history (job_id, scheduled_at, attempt, state, trigger, tries, due_at, started_at, finished_at, version, worker)
SELECT :job, :from_at + n * {MINUTE_US // 4}, 1, :succeeded, 0, 0, :from_at + n * {MINUTE_US // 4}, :from_at + n * {MINUTE_US // 4} + 3000,
    :from_at + n * {MINUTE_US // 4} + 90000, 1, 'bench-1' FROM numbers
"""
_DEAD = f"""
INSERT INTO dead (job_id, scheduled_at, tenant, failed_at, trigger, fence, tries, lane, error, fingerprint)
SELECT job_id, scheduled_at, 'default', finished_at, 0, 1, 1, 1, 'the other side hung up, cause ' || id % {CAUSES}, 'cause-' || id % {CAUSES}
FROM history WHERE state = :failed ORDER BY id DESC LIMIT :dead
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """What is in the file."""

    jobs: int
    runs: int
    busy_job: str  # with a hundred thousand runs, or a share of them
    failed_run: str
    took_s: float


async def load(data: Path, jobs: int, runs: int, dead: int) -> Loaded:
    """Make the file."""
    began_s = time.perf_counter()
    async with system(settings_for(data, concurrency=10), Tally()) as parts:
        await create(parts, [_model(number) for number in range(MODELS)])
    each, busy = max(1, runs // jobs - 1), min(100_000, runs // 10)
    from_at = time.time_ns() // 1000 - (each + 1) * HOUR_US
    codes = {name: STATE_CODES[State(name.upper())] for name in ("succeeded", "failed", "skipped")}
    with contextlib.closing(sqlite3.connect(data, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("PRAGMA cache_size = -1000000")
        if jobs > MODELS:
            connection.execute(_COPY_JOBS, (jobs - MODELS,))
        connection.execute(_COPY_MEMBERS)
        connection.execute(_HISTORY.replace("?", ":count"), {"count": each, "from_at": from_at, **codes})
        job = connection.execute("SELECT id FROM jobs ORDER BY id LIMIT 1 OFFSET ?", (jobs // 2,)).fetchone()[
            0
        ]
        some = {"count": busy, "job": job, "from_at": time.time_ns() // 1000 - busy * MINUTE_US // 4, **codes}
        connection.execute(_BUSY.replace("?", ":count"), some)
        connection.execute(_DEAD, {"dead": dead, **codes})
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        stored = connection.execute("SELECT max(id) FROM history").fetchone()[0]
        failed = connection.execute("SELECT job_id, scheduled_at FROM dead LIMIT 1").fetchone()
    return Loaded(
        jobs=jobs,
        runs=stored,
        busy_job=format_job_id(job),
        failed_run=format_run_id(*failed),
        took_s=time.perf_counter() - began_s,
    )


def _model(number: int) -> NewJob:
    tags = (f"team-{number % 20}", *([RARE_TAG] if number == 0 else []))
    return NewJob(
        spec=JobSpec(
            name=f"model-{number}",
            tags=tags,
            timing=CronTiming(expression=f"{number % 60} {number % 24} 1 1 *", tz="Europe/Berlin"),
            target=PythonTarget(function=NOOP),
        )
    )
