"""Drops what a tenant's history quota no longer covers, a page of its jobs at a time.

Reads do not show it any more once it is too old; this frees the room, a while later, since duties such as the audit
that goes on by itself look back for up to a day. How far it came is kept with the quota, so that any process goes on.
"""

from collections.abc import Sequence
from typing import Any

from hourhand.core.instant import DAY_US, HOUR_US
from hourhand.stores.relational.tx import Tx

SPARE_US = DAY_US  # for which duties may still look at what people no longer see
PERIOD_US = HOUR_US  # between two rounds through a tenant's jobs
JOBS_AT_ONCE = 500
_ROWS_PER_CHUNK = 10  # a chunk of a log takes as much to drop as so many other rows


async def shorten(tx: Tx, limit: int) -> bool:
    """Drop a bounded number of old rows of the next jobs of a tenant; False when there is nobody to look at."""
    found = await tx.one("tenant_to_shorten", (tx.now_at,))
    if found is None:
        return False
    tenant, days, after = found
    ids = [row[0] for row in await tx.all("jobs_to_shorten", (tenant, after, JOBS_AT_ONCE))]
    before_at = tx.now_at - days * DAY_US - SPARE_US
    old = {"ids": tx.array(ids), "before_at": before_at, "last_day": before_at // DAY_US}
    chunks_most = max(1, limit // _ROWS_PER_CHUNK)
    rows = await tx.all("old_history", {**old, "limit": limit})
    chunks = await tx.all("old_log", {**old, "limit": chunks_most})
    await _drop(tx, "drop_history", rows)
    await _drop(tx, "drop_log", chunks)
    if len(rows) >= limit or len(chunks) >= chunks_most:
        return True  # the same jobs once more
    is_last = len(ids) < JOBS_AT_ONCE
    place, next_at = (0, tx.now_at + PERIOD_US) if is_last else (ids[-1], tx.now_at)
    await tx.run("shortened", (place, next_at, tenant))
    return True


async def _drop(tx: Tx, statement: str, rows: Sequence[Sequence[Any]]) -> None:
    """Drop rows where they are, the days in order."""
    by_day: dict[int, list[Any]] = {}
    for day, place in rows:
        by_day.setdefault(day, []).append(place)
    for day in sorted(by_day):
        await tx.run(statement, (day, tx.array(by_day[day])))
