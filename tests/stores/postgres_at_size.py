"""A database filled to a size at which a statement that scans shows: by a few raw statements, in seconds.

Everything is lopsided, as it is in life: one tenant has most jobs, one job most of the history, one cause most
of the dead letters, one lane most of the plan. Numbers are computed, so that tests can name rows.
"""

from typing import Any

import asyncpg

from hourhand.core.instant import DAY_US
from hourhand.stores.postgres import partitions, schema

NOW_AT = 1_794_819_600_000_000  # 2026-11-16T09:00:00Z
TODAY = NOW_AT // DAY_US
JOBS = 200_000
CLOCKS = 50_000
PLANNED = 100_000
RUNNING = 50_000
BLOCKED = 20_000
WAITING = 50_000
DEAD = 20_000
HISTORY = 150_000
BACKFILLS = 20_000
DELIVERIES = 40_000  # of webhooks, a quarter of them of the first
SKIPS = 20_000
MARKERS = 5_000
RERUNS = 20_000
DEEDS = 100_000
GONE = 20_000  # jobs that were deleted, with ids above a million
BIG, SMALL = "big", "small"  # tenants: nine jobs of ten, and the rest
HEAVY_JOB = 1  # has a sixth of the history
WIDE_JOB = 3  # 100 slots, all taken
DEADLY_JOB = 5  # has a quarter of the dead letters
HERD_CLOCK = 1  # has a thousand members
NODES = 100

_FILL = f"""
INSERT INTO pools (name) VALUES ('default'), ('other');
INSERT INTO clocks (segment, rule, next_at)
SELECT n % 64, 'every ' || n, CASE WHEN n % 10 > 0 THEN {NOW_AT} + (n - 2000) * 1000000::bigint END
FROM generate_series(1, {CLOCKS}) AS n;
INSERT INTO jobs (id, tenant, key, name, version, version_from, paused, clock_id, since, until, attend_at, created_at,
    updated_at, lane, concurrency, at_most_once, grace_us, timeout_us, spec)
SELECT n, CASE WHEN n % 10 = 0 THEN '{SMALL}' ELSE '{BIG}' END, CASE WHEN n % 2 = 0 THEN 'key-' || n END,
    'job-' || n % 1000, 2, 0, (n % 100 = 99)::integer, n % {CLOCKS} + 1, 0, 9223372036854775807,
    CASE WHEN n % 5 = 0 THEN {NOW_AT} + n * 1000000::bigint END, 0, 0, 128 + n % 64,
    CASE WHEN n = {WIDE_JOB} THEN 100 WHEN n % 50 = 7 THEN NULL ELSE 1 END, 0, 60000000, 60000000, json_build_object('pad', repeat('x', 40))::text
FROM generate_series(1, {JOBS}) AS n;
INSERT INTO job_sets (job_id, tenant, set_name) SELECT id, tenant, 'set-' || id % 40 FROM jobs WHERE id % 3 = 0;
INSERT INTO members (clock_id, job_id, lane, jitter_us, since, until, policy, grace_us, catch_up)
SELECT CASE WHEN id % 200 = 0 THEN {HERD_CLOCK} ELSE clock_id END, id, lane, 0, 0, until, 'skip', grace_us, 0 FROM jobs;
INSERT INTO versions (job_id, version, tenant, version_from, until, paused, deleted, spec)
SELECT id, 1, tenant, 0, until, 0, 0, spec FROM jobs WHERE id % 4 = 0;
INSERT INTO versions (job_id, version, tenant, version_from, until, paused, deleted, spec)
SELECT 1000000 + n, v, '{BIG}', {NOW_AT} - n * 1000000::bigint + v, {NOW_AT}, 0, v - 1, repeat('x', 50)
FROM generate_series(1, {GONE}) AS n, generate_series(1, 2) AS v;
INSERT INTO nodes (id, kind, name, started_at, lease_until)
SELECT n, 'worker', 'worker-' || n, 0, {NOW_AT} + (n - 3) * 1000000::bigint FROM generate_series(1, {NODES}) AS n;
INSERT INTO segments (segment, node_id, fence) SELECT n, n % 4 + 10, 1 FROM generate_series(0, 63) AS n;
INSERT INTO history (job_id, scheduled_at, due_at, started_at, finished_at, bucket, attempt, version, state, trigger,
    tries, worker, detail)
SELECT job_id, at, at, at, at + 1000, CASE WHEN n % 100 = 0 THEN 0 ELSE at / {DAY_US} END, 1, 1, 3, 0, 0, 'worker-1', NULL
FROM (SELECT n, CASE WHEN n % 6 = 0 THEN {HEAVY_JOB} ELSE n % {JOBS} + 1 END AS job_id,
    ({TODAY} - 2) * {DAY_US} + n * ({NOW_AT} - ({TODAY} - 2) * {DAY_US}) / {HISTORY} AS at
    FROM generate_series(1, {HISTORY}::bigint) AS n) AS h;
INSERT INTO dead (job_id, scheduled_at, tenant, failed_at, trigger, fence, tries, lane, error, fingerprint)
SELECT CASE WHEN n % 4 = 0 THEN {DEADLY_JOB} ELSE n * 3 END, {NOW_AT} - n * 1000000::bigint,
    CASE WHEN n % 4 > 0 AND n * 3 % 10 = 0 THEN '{SMALL}' ELSE '{BIG}' END, {NOW_AT} - n * 1000000::bigint, 0, 3, 3, 128,
    'it broke', CASE WHEN n % 4 < 3 THEN 'common' ELSE 'rare-' || n % 500 END
FROM generate_series(1, {DEAD}) AS n;
INSERT INTO run_log (job_id, scheduled_at, at, bucket, attempt, seq, stream, text)
SELECT CASE WHEN n % 6 = 0 THEN {HEAVY_JOB} ELSE n END, {NOW_AT}, {NOW_AT} - n, CASE WHEN n % 5 = 0 THEN 0 ELSE {TODAY} END,
    1, n, 0, 'said' FROM generate_series(1, 50000) AS n;
INSERT INTO edges (parent_id, child_id, since_at, until_at)
SELECT n, n + 1000, 0, CASE WHEN n % 10 = 0 THEN {NOW_AT} - n ELSE 4611686018427387903 END
FROM generate_series(1, 50000) AS n;
INSERT INTO request_keys (job_id, key, scheduled_at, made_at)
SELECT n, 'request', {NOW_AT}, {NOW_AT} - n * 1000000::bigint FROM generate_series(1, 20000) AS n;
INSERT INTO clock_gaps (clock_id, from_at, to_at, policy, grace_us, catch_up, missed, ran, decided_at)
SELECT n, 0, 1, 'skip', 0, 0, 1, 0, {NOW_AT} - n * 1000000::bigint FROM generate_series(1, {CLOCKS}) AS n;
INSERT INTO backfills (id, job_id, tenant, state, from_at, to_at, newest_first, max_open, rule, present_rule,
    while_paused, mark, next_at, total, fed, already, succeeded, failed, skipped, cancelled, created_at, updated_at,
    finished_at)
SELECT n, n, CASE WHEN n % 10 = 0 THEN '{SMALL}' ELSE '{BIG}' END, CASE WHEN n % 200 = 0 THEN 0 ELSE 2 END, 0, 1, 0, 100,
    'every 70', 'every 70', 0, 0, 0, 10, 5, 0, 0, 0, 0, 0, 0, 0,
    CASE WHEN n % 200 > 0 THEN {NOW_AT} - n * 1000000::bigint END FROM generate_series(1, {BACKFILLS}) AS n;
INSERT INTO tokens (id, tenant, name, role, digest, created_at, created_by, expires_at, revoked_at)
SELECT n, CASE WHEN n % 10 = 0 THEN '{SMALL}' ELSE '{BIG}' END, 'ci', 'viewer', sha256(n::text::bytea), 0, 'ann',
    CASE WHEN n % 3 = 1 THEN {NOW_AT} - n * 1000000::bigint END, CASE WHEN n % 3 = 2 THEN {NOW_AT} - n * 1000000::bigint END
FROM generate_series(1, 5000) AS n;
INSERT INTO buckets (key, full_at) SELECT 'bucket-' || n, {NOW_AT} - n * 1000000::bigint FROM generate_series(1, 20000) AS n;
INSERT INTO quotas (tenant, jobs, history_days, set_at, shorten_at, shortened_to)
SELECT 'tenant-' || n, n, CASE WHEN n % 10 = 0 THEN 7 END, 0, {NOW_AT} - n * 1000000::bigint, 0 FROM generate_series(1, 5000) AS n;
INSERT INTO tenant_use (tenant, jobs, document_bytes, rate)
SELECT 'tenant-' || n, n, 0, 0 FROM generate_series(1, 5000) AS n ON CONFLICT DO NOTHING;
INSERT INTO operations (id, tenant, revision, finished_at, body)
SELECT n, CASE WHEN n % 10 = 0 THEN '{SMALL}' ELSE '{BIG}' END, 0,
    CASE WHEN n % 200 > 1 THEN {NOW_AT} - n * 1000000::bigint END, '{{}}' FROM generate_series(1, 20000) AS n;
INSERT INTO webhooks (id, due_at, rotated_at, created_at, updated_at, kinds, enabled, tenant, url, types, jobs, tags,
    description, secrets)
SELECT n, CASE WHEN n % 50 = 0 THEN {NOW_AT} - n * 1000000::bigint WHEN n % 5 > 0 THEN {NOW_AT} + n * 1000000::bigint END,
    0, 0, 0, 2047, (n % 20 > 0 OR n % 50 = 0)::integer, CASE WHEN n <= 20 THEN '{BIG}' ELSE 'team-' || n / 20 END,
    'https://example.com/', '["*"]', '[]', '[]', '', '[]' FROM generate_series(1, 20000) AS n;
INSERT INTO webhook_deliveries (webhook_id, event_id, kind, state, made_at, due_at, body)
SELECT CASE WHEN n <= {DELIVERIES} / 4 THEN 1 ELSE n % 20000 + 1 END, 'e' || n, 3, CASE WHEN n % 4 = 0 THEN 0 ELSE 1 END,
    {NOW_AT} - n * 1000000::bigint, {NOW_AT} - n * 1000000::bigint, '{{}}' FROM generate_series(1, {DELIVERIES}) AS n;
INSERT INTO backfill_runs (backfill_id, scheduled_at)
SELECT n % 100 * 200, {NOW_AT} - n * 1000000::bigint FROM generate_series(1, 10000) AS n;
INSERT INTO skips (job_id, scheduled_at, made_at)
SELECT n, {NOW_AT} + (n - 50) * 1000000::bigint, 0 FROM generate_series(1, {SKIPS}) AS n;
INSERT INTO answers (tenant, key, sum, fence, since, lease_until, began_at)
SELECT '{BIG}', 'k' || n, ''::bytea, 1, 1, 0, {NOW_AT} - n * 1000000::bigint FROM generate_series(1, {RERUNS}) AS n;
INSERT INTO answer_marks (tenant, key, fence, since, applied, made_at)
SELECT tenant, key, 1, 1, 0, began_at FROM answers;
INSERT INTO answer_makes (tenant, key, since, place, job_id, made_at)
SELECT tenant, key, 1, 0, 1, began_at FROM answers;
INSERT INTO reruns (job_id, scheduled_at, of_at, made_at)
SELECT n % 5000, {NOW_AT} + n, {NOW_AT} - n, {NOW_AT} - n * 1000000::bigint FROM generate_series(1, {RERUNS}) AS n;
INSERT INTO deeds (at, job_id, version, tenant, subject, via, action)
SELECT ({TODAY} - 2) * {DAY_US} + n * ({NOW_AT} - ({TODAY} - 2) * {DAY_US}) / {DEEDS},
    CASE WHEN n % 1000 = 0 THEN {HEAVY_JOB} ELSE n END, 1, CASE WHEN n % 10 = 0 THEN '{SMALL}' ELSE '{BIG}' END, 'ann', 'token', 'job.create'
FROM generate_series(1, {DEEDS}::bigint) AS n;
"""
_FILL_HOT = f"""
INSERT INTO webhook_events (kind, at, job_id, scheduled_at, attempt, version, due_at, tenant, name)
SELECT 3, {NOW_AT}, n, {NOW_AT}, 1, 1, {NOW_AT}, '{BIG}', 'job' FROM generate_series(1, 20000) AS n;
INSERT INTO descents (job_id, scheduled_at, state, trigger)
SELECT n, {NOW_AT}, 3, 0 FROM generate_series(1, {WAITING}) AS n;
INSERT INTO waiting (job_id, scheduled_at, made_at, deadline_at, look_at, fence, trigger, parents)
SELECT n, {NOW_AT}, {NOW_AT}, {NOW_AT}, {NOW_AT} + n * 1000000::bigint, 0, 6, '[1,2]'
FROM generate_series(1, {WAITING}) AS n;
INSERT INTO signals (job_id, scheduled_at, parent_id, state)
SELECT n, {NOW_AT}, 1, 3 FROM generate_series(1, {WAITING}) AS n;
INSERT INTO planned (scheduled_at, job_id, lane, due_at, trigger, fence, tries)
SELECT {NOW_AT} + (n / 1000 - 30) * 1000000::bigint, n, CASE WHEN n % 2 = 0 THEN 128 ELSE 128 + n % 120 END,
    {NOW_AT} + (n / 1000 - 30) * 1000000::bigint, (n % 20 = 0)::integer, 0, 0
FROM generate_series(1, {PLANNED}) AS n;
INSERT INTO planned (scheduled_at, job_id, lane, due_at, trigger, fence, tries)
SELECT {NOW_AT} + (n + 3600) * 1000000::bigint, n, 0, {NOW_AT}, 0, 0, 0 FROM generate_series(1, {MARKERS}) AS n;
INSERT INTO planned (scheduled_at, job_id, lane, due_at, trigger, fence, tries)
SELECT {NOW_AT} - n * 1000000::bigint, {HEAVY_JOB}, 224, {NOW_AT}, 2, 0, 0 FROM generate_series(1, 100) AS n ON CONFLICT DO NOTHING;
INSERT INTO blocked (job_id, rank, scheduled_at, lane, due_at, trigger, fence, tries)
SELECT {HEAVY_JOB}, 1, {NOW_AT} - n * 1000000::bigint, 224, {NOW_AT}, 2 + n % 2, 0, 0 FROM generate_series(101, 200) AS n;
INSERT INTO running (job_id, slot, scheduled_at, due_at, node_id, deadline_at, claimed_at, lane, fence, version, trigger,
    tries, phase, cancel)
SELECT CASE WHEN n <= 100 THEN {WIDE_JOB} ELSE n * 3 END, CASE WHEN n <= 100 THEN n - 1 ELSE 0 END,
    {NOW_AT} - n * 1000, {NOW_AT} - n * 1000, CASE WHEN n % 10 < 8 THEN n % {NODES} + 1 END,
    CASE WHEN n % 10 < 9 THEN {NOW_AT} + n * 1000 END, {NOW_AT} - n * 1000, 128 + n % 64, 1, 1, 0,
    0, CASE WHEN n % 10 < 8 THEN 1 WHEN n % 10 = 8 THEN 2 WHEN n % 20 = 9 THEN 0 ELSE 3 END, (n % 250 IN (1, 9))::integer
FROM generate_series(1, {RUNNING}) AS n;
INSERT INTO progress (job_id, scheduled_at, slot, noted_at, fraction, attempt, message)
SELECT job_id, scheduled_at, slot, {NOW_AT}, 0.5, fence, 'half' FROM running WHERE slot = 0;
INSERT INTO blocked (job_id, rank, scheduled_at, lane, due_at, trigger, fence, tries)
SELECT (n % 2000 + 101) * 3, 0, {NOW_AT} - n, 128, {NOW_AT} - n, 0, 0, 0 FROM generate_series(1, {BLOCKED}) AS n;
"""
_HOT = ("planned", "running", "blocked", "progress", "descents", "waiting", "signals", "webhook_events")
_SUMMARISE = """
SELECT brin_summarize_new_values(c.oid) FROM pg_class AS c JOIN pg_am ON pg_am.oid = c.relam
WHERE pg_am.amname = 'brin' AND c.relkind = 'i'
"""


async def make(url: str) -> None:
    """The schema and the days of history, everything empty; nobody cleans up or counts behind our back."""
    await schema.up(url)
    connection: Any = await asyncpg.connect(url)
    try:
        for days in (1, 0):
            await partitions.make_ahead(connection, NOW_AT - days * DAY_US)
        tables = await connection.fetch(
            "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 2200"
        )
        for (name,) in tables:
            await connection.execute(f"ALTER TABLE {name} SET (autovacuum_enabled = off)")
    finally:
        await connection.close()


async def fill(url: str) -> None:
    """Put the rows in, and do what the server does at once for coarse indexes."""
    await _execute(url, _FILL)
    await _execute(url, _SUMMARISE)
    await fill_hot(url)


async def fill_hot(url: str) -> None:
    """Put in the rows of the tables that are empty from time to time."""
    await _execute(url, _FILL_HOT)


async def empty_hot(url: str) -> None:
    """Everything was done, and the server has cleaned up: these tables have not even a page."""
    await _execute(url, f"DELETE FROM {'; DELETE FROM '.join(_HOT)}")
    await _execute(url, f"VACUUM (ANALYZE) {', '.join(_HOT)}")


async def flood(url: str) -> None:
    """All that waits is due in one lane, in no order of jobs, and the server knows it."""
    await _execute(
        url, f"UPDATE planned SET lane = 128, due_at = {NOW_AT} - job_id * 7919 % 1000003 WHERE lane >= 128"
    )
    await _execute(url, f"UPDATE running SET lane = 128, due_at = {NOW_AT} - job_id * 7919 % 1000003")
    await analyse(url)


async def analyse(url: str) -> None:
    """Let the server count and see which pages are visible to all."""
    await _execute(url, "VACUUM (ANALYZE)")


async def _execute(url: str, script: str) -> None:
    connection: Any = await asyncpg.connect(url)
    try:
        await connection.execute(script)
    finally:
        await connection.close()
