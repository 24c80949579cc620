"""Cleans up behind the hot tables. Their rows live for seconds, and a claim walks past those that are gone.

The server's own cleaning looks once a minute by default, which is over a million rows of a busy system. So
whoever sweeps also cleans, a table at a time and only where enough has gathered.
"""

from typing import Any

_HOT = ("planned", "running", "blocked")
_WORTH_IT = 50_000  # dead rows


async def clean(connection: Any) -> None:
    """Clean the hot tables in which many dead rows lie; one that somebody else cleans is left to them."""
    async with connection.transaction():
        rows = await connection.fetch(
            "SELECT relname FROM pg_stat_user_tables"
            " WHERE schemaname = current_schema() AND relname = ANY ($1::text[]) AND n_dead_tup >= $2::bigint",
            _HOT,
            _WORTH_IT,
        )
    for (name,) in rows:
        await connection.execute(f"VACUUM (SKIP_LOCKED, TRUNCATE OFF, PARALLEL 0, INDEX_CLEANUP ON) {name}")
