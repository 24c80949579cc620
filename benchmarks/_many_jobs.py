"""A database with very many jobs whose rules are mixed, loaded once and put back to its beginning before each round.

Rules are intervals of four lengths in many phases, over tenants and priorities; intervals are scaled so that all jobs
together ask for the same number of runs a second whatever their number, spread evenly, and clocks have the same
number of members. One job of each kind is made by the store; the rest are rows copied from it by a few statements,
with an id, and so a segment and clock, of their own.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import asyncpg
import uvloop

from benchmarks._cluster import migrate, spec_of, store_all
from benchmarks._postgres import BenchPostgres
from hourhand.core.identity import ID_COUNTER_BITS, ID_EPOCH_MS, SEGMENTS, segment_of
from hourhand.core.instant import DAY_US, SECOND_US
from hourhand.core.model import EveryTiming, Priority
from hourhand.ids import IdSource
from hourhand.ports.store import JobDraft
from hourhand.stores.postgres import PostgresStore
from tests.servers.postgres_databases import database_of

# (length of the interval beside the shortest, share of the jobs): most runs come from the short ones
RULES = ((1.0, 0.5), (1.5, 0.2), (3.0, 0.2), (15.0, 0.1))
MEMBERS = 40  # jobs of a clock
TENANTS = tuple(f"tenant-{number}" for number in range(16))
PRIORITIES = tuple(Priority)

_BATCH = 1_000
_COPIES = 500_000  # in one statement
_COPYING_NODE = 1  # the drawn part of the copies' ids
_LOADED = "loaded"

# The segment of a job as core.identity computes it, in numbers that do not wrap.
_SEGMENT = f"""(div(mod((id # (id >> 31))::numeric * 11400714819323198485, 18446744073709551616), 1099511627776)::bigint
    % {SEGMENTS})::integer"""
_PREPARE = f"""
CREATE TABLE bench_kinds AS
    SELECT row_number() OVER (ORDER BY j.id) - 1 AS kind, j.id AS job_id, c.rule
    FROM jobs AS j JOIN clocks AS c ON c.id = j.clock_id;
ALTER TABLE bench_kinds ADD PRIMARY KEY (kind);
INSERT INTO clocks (segment, rule, next_at)
    SELECT s, rule, 0 FROM (SELECT DISTINCT rule FROM bench_kinds) AS rules, generate_series(0, {SEGMENTS - 1}) AS s
    ON CONFLICT DO NOTHING;
"""
_COPY = f"""
WITH numbered AS MATERIALIZED (
    SELECT (((t >> {ID_COUNTER_BITS}) << 22) | ({_COPYING_NODE} << {ID_COUNTER_BITS}) | (t & {(1 << ID_COUNTER_BITS) - 1}))
        AS id, n * 2654435761 % 4294967296 % $4 AS kind
    FROM (SELECT n, $3::bigint + n AS t FROM generate_series($1::bigint, $2::bigint) AS n) AS ticks),
placed AS MATERIALIZED (
    SELECT n.id, k.job_id AS model, c.id AS clock_id
    FROM (SELECT id, kind, {_SEGMENT} AS segment FROM numbered) AS n
    JOIN bench_kinds AS k ON k.kind = n.kind JOIN clocks AS c ON c.segment = n.segment AND c.rule = k.rule),
joined AS (
    INSERT INTO members (clock_id, job_id, jitter_us, since, until, grace_us, lane, catch_up, policy)
    SELECT p.clock_id, p.id, m.jitter_us, m.since, m.until, m.grace_us, m.lane, m.catch_up, m.policy
    FROM placed AS p JOIN jobs AS j ON j.id = p.model JOIN members AS m ON m.clock_id = j.clock_id AND m.job_id = j.id)
INSERT INTO jobs (id, version_from, paused_until, clock_id, since, until, once_at, attend_at, created_at, updated_at,
    grace_us, timeout_us, version, lane, concurrency, paused, at_most_once, tenant, key, name, note, spec)
SELECT p.id, j.version_from, j.paused_until, p.clock_id, j.since, j.until, j.once_at, j.attend_at, j.created_at,
    j.updated_at, j.grace_us, j.timeout_us, j.version, j.lane, j.concurrency, j.paused, j.at_most_once, j.tenant, j.key,
    j.name, j.note, j.spec
FROM placed AS p JOIN jobs AS j ON j.id = p.model
"""
_FORGET = """
TRUNCATE planned, running, blocked, dead, history, clock_gaps;
DELETE FROM nodes;
UPDATE segments SET node_id = NULL
"""
_BEGIN = """
UPDATE clocks SET next_at = $1::bigint + split_part(rule, ' ', 2)::bigint
    - ($1::bigint - split_part(rule, ' ', 3)::bigint) % split_part(rule, ' ', 2)::bigint
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ManyJobs:
    """A loaded database."""

    url: str
    jobs: int
    rules: int
    took_s: float | None  # None when an earlier run had loaded it


def load(bench: BenchPostgres, jobs: int, demand: int) -> ManyJobs:
    """A database with this many jobs that ask for so many runs a second; made where it is not there yet."""
    name = f"bench_{jobs}_at_{demand}"
    rules = list(_rules(jobs, demand))
    if bench.databases.has_database(name):
        url = bench.databases.url_of(name)
        if (
            bench.databases.query(
                "SELECT shobj_description(oid, 'pg_database') FROM pg_database WHERE datname = $1", name
            )[0][0]
            == _LOADED
        ):
            return ManyJobs(url=url, jobs=jobs, rules=len(rules), took_s=None)
        bench.databases.drop_database(name)  # somebody was interrupted
    url = bench.databases.create_database(name)
    began_s = time.perf_counter()
    migrate(url)
    uvloop.run(_load(url, jobs, rules))
    bench.databases.execute(f"COMMENT ON DATABASE {name} IS '{_LOADED}'")
    return ManyJobs(url=url, jobs=jobs, rules=len(rules), took_s=time.perf_counter() - began_s)


def forget_runs(bench: BenchPostgres, url: str) -> None:
    """As if no run had ever been planned; clocks wait for `begin_at`."""
    uvloop.run(_execute(url, _FORGET))
    begin_at(url, time.time_ns() // 1000 + DAY_US)
    uvloop.run(_execute(url, "VACUUM ANALYZE clocks"))
    bench.databases.execute("CHECKPOINT", database=database_of(url))


def begin_at(url: str, starts_at: int) -> None:
    """Let every clock begin after an instant; a scheduler that already runs sees it within seconds."""
    uvloop.run(_execute(url, _BEGIN, starts_at))


def _rules(jobs: int, demand: int) -> Iterator[EveryTiming]:
    """Each interval in as many phases as its share of the jobs fills clocks."""
    shortest_s = jobs / demand * sum(share / length for length, share in RULES)
    for length, share in RULES:
        interval_us = round(shortest_s * length * SECOND_US)
        phases = max(1, round(share * jobs / (SEGMENTS * MEMBERS)))
        for number in range(phases):
            yield EveryTiming(interval_us=interval_us, phase_at=interval_us * number // phases)


async def _load(url: str, jobs: int, rules: list[EveryTiming]) -> None:
    made = await _make_models(url, jobs, rules)
    connection: Any = await asyncpg.connect(url)
    try:
        await connection.execute("SET jit = off; SET synchronous_commit = off; SET work_mem = '64MB'")
        await connection.execute(_PREPARE)
        await connection.execute("ANALYZE")
        ticks = (time.time_ns() // 1_000_000 - ID_EPOCH_MS << ID_COUNTER_BITS) - jobs - 60_000_000
        for first in range(made, jobs, _COPIES):
            last = min(jobs, first + _COPIES) - 1
            await connection.execute(_COPY, first, last, ticks, made)
        await _check(connection, jobs)
        await connection.execute("DROP TABLE bench_kinds")
        await connection.execute("VACUUM (ANALYZE, FREEZE)")
        await connection.execute("CHECKPOINT")
    finally:
        await connection.close()


async def _make_models(url: str, jobs: int, rules: list[EveryTiming]) -> int:
    """One job for each rule, tenant and priority, by the store; answers how many."""
    kinds = [(rule, tenant, priority) for rule in rules for tenant in TENANTS for priority in PRIORITIES]
    kinds = kinds[:: max(1, -(-len(kinds) // jobs))]
    store = await PostgresStore.open(url)
    try:
        ids = IdSource(store.clock)
        for start in range(0, len(kinds), _BATCH):
            drafts = [
                JobDraft(id=ids.job_id(), tenant=tenant, spec=spec_of(rule, priority=priority))
                for rule, tenant, priority in kinds[start : start + _BATCH]
            ]
            await store_all(store, drafts)
    finally:
        await store.close()
    return len(kinds)


async def _check(connection: Any, jobs: int) -> None:
    """Everything is there, and what SQL placed lies where the store would look for it."""
    counts = [await connection.fetchval(f"SELECT count(*) FROM {name}") for name in ("jobs", "members")]
    if counts != [jobs, jobs]:
        raise SystemExit(f"expected {jobs} jobs and as many members, found {counts}")
    rows = await connection.fetch(
        "SELECT j.id, c.segment FROM (SELECT * FROM jobs ORDER BY id LIMIT 1000) AS j JOIN clocks AS c ON c.id = j.clock_id"
    )
    if any(segment_of(job_id) != segment for job_id, segment in rows):
        raise SystemExit("jobs lie in other segments than the store thinks")


async def _execute(url: str, statement: str, *params: Any) -> None:
    connection: Any = await asyncpg.connect(url)
    try:
        await connection.execute(statement, *params)
    finally:
        await connection.close()
