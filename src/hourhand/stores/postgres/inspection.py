"""Looks at a database from outside, on one connection of its own. Changes nothing."""

from hourhand.core.model import DEFAULT_POOL
from hourhand.ports.inspection import MOST_JOBS, CalledFunction, Snapshot, StoreFacts
from hourhand.stores.postgres.schema import connected
from hourhand.stores.relational.nodes import node_of

OLD_SNAPSHOT_S = 60.0  # no statement of ours takes nearly as long
_NOW = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
_CALLED = """
SELECT DISTINCT spec #>> '{target,function}', coalesce(spec ->> 'pool', $2)
FROM (
    SELECT spec::json FROM jobs WHERE paused = 0 AND until > $1 AND (once_at IS NULL OR once_at > $1) LIMIT $3
) AS coming
WHERE spec #>> '{target,type}' = 'python'
"""
_OLDEST_SNAPSHOT = """
SELECT extract(epoch FROM clock_timestamp() - xact_start)::float8, pid, application_name
FROM pg_stat_activity
WHERE backend_xmin IS NOT NULL AND datname = current_database() AND backend_type = 'client backend'
  AND pid <> pg_backend_pid() AND xact_start < clock_timestamp() - make_interval(secs => $1)
ORDER BY xact_start LIMIT 1
"""


async def facts_of(url: str) -> StoreFacts:
    """What a database of the newest schema says."""
    async with connected(url) as connection:
        now_at = await connection.fetchval(_NOW)
        nodes = await connection.fetch("SELECT id, kind, name, started_at, lease_until, serves FROM nodes")
        called = await connection.fetch(_CALLED, now_at, DEFAULT_POOL, MOST_JOBS)
        oldest = await connection.fetchrow(_OLDEST_SNAPSHOT, OLD_SNAPSHOT_S)
        return StoreFacts(
            now_at=now_at,
            tzdata=await connection.fetchval("SELECT value FROM meta WHERE key = 'tzdata'"),
            nodes=tuple(node_of(row) for row in nodes),
            called=tuple(sorted(CalledFunction(function=row[0], pool=row[1]) for row in called)),
            snapshot=None
            if oldest is None
            else Snapshot(age_s=oldest[0], process=oldest[1], program=oldest[2] or ""),
        )
