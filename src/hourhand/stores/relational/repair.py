"""Operations of the sweeper: strays, late runs, forgotten slots, old rows."""

from collections.abc import Sequence
from typing import Any

from hourhand.core.identity import LANES_PER_POOL
from hourhand.core.instant import DAY_US
from hourhand.core.plan import Lateness
from hourhand.ports.store import Cursor, LatePage, StrayRun
from hourhand.stores.relational.answers import purge_answers
from hourhand.stores.relational.judging import judge_late_runs
from hourhand.stores.relational.rows import UnstartedRow, decode_spec
from hourhand.stores.relational.slots import hand_on
from hourhand.stores.relational.tx import Tx

_LANES_AT_ONCE = 8  # whose late runs one look goes through
_REQUEST_KEY_LIFE_US = DAY_US
_ROWS_PER_CHUNK = 10  # a chunk of a log takes as much to drop as so many other rows
_LOST_NODE_LIFE_US = DAY_US  # a process that slept for less learns that its lease is lost


async def stray_runs(tx: Tx, slack_us: int, limit: int) -> list[StrayRun]:
    """Runs of lost nodes first, then those long past their deadline; forgets nodes lost long ago."""
    found = [_stray(row) for row in await tx.all("strays", (tx.now_at, limit))]
    await tx.run("drop_idle_nodes", (tx.now_at - _LOST_NODE_LIFE_US,))
    if len(found) < limit:
        overdue = {"now": tx.now_at, "overdue_at": tx.now_at - slack_us, "limit": limit}
        found += [_stray(row) for row in await tx.all("overdue", overdue)]
    return found[:limit]


async def judge_late(tx: Tx, cursors: dict[int, Cursor], limit: int) -> LatePage:
    """Judge late planned runs lane by lane, a page of each; with many lanes, those that were left out go first."""
    lanes: list[int] = []
    for (pool,) in await tx.all("all_pools"):
        bounds = {"first": pool * LANES_PER_POOL, "last": (pool + 1) * LANES_PER_POOL}
        found = await tx.all("waiting_lanes", bounds)
        lanes += [lane for lane, first_due in found if first_due < tx.now_at]
    lanes.sort(key=lambda lane: lane not in cursors)
    judged = 0
    more: dict[int, Cursor] = {}
    for place, lane in enumerate(lanes):
        cursor = cursors.get(lane, Cursor(0, 0, 0))
        if place >= _LANES_AT_ONCE:
            more[lane] = cursor
            continue
        count, onward = await _judge_lane(tx, lane, cursor, limit)
        judged += count
        if onward is not None:
            more[lane] = onward
    return LatePage(judged=judged, cursors=more)


async def hand_on_slots(tx: Tx, limit: int) -> int:
    """Give free slots to waiting runs that nobody handed one."""
    return await hand_on(tx, [row[0] for row in await tx.all("blocked_with_room", (limit,))])


async def purge(tx: Tx, history_before_at: int, dead_before_at: int, limit: int) -> bool:
    """Drop old rows, a bounded number of each; whole partitions of history are the store's own."""
    counts = [
        await tx.run("purge_history", (limit, history_before_at)),
        await tx.run("purge_dead", (dead_before_at, limit)),
        await tx.run("purge_request_keys", (tx.now_at - _REQUEST_KEY_LIFE_US, limit)),
        await tx.run("purge_reruns", (history_before_at, limit)),
        await tx.run("purge_backfills", (history_before_at, limit)),
        await tx.run("purge_operations", (history_before_at, limit)),
        await tx.run("purge_revoked_tokens", (history_before_at, limit)),
        await tx.run("purge_expired_tokens", (history_before_at, limit)),
    ]
    await tx.run("purge_buckets", (tx.now_at, limit))
    await tx.run("purge_gaps", (history_before_at,))
    await tx.run("purge_edges", (history_before_at, limit))
    chunks_most = max(1, limit // _ROWS_PER_CHUNK)
    chunks = await tx.run("purge_log", (chunks_most, history_before_at))
    more_answers = await purge_answers(tx, limit)
    return max(counts) >= limit or chunks >= chunks_most or more_answers


async def _judge_lane(tx: Tx, lane: int, cursor: Cursor, limit: int) -> tuple[int, Cursor | None]:
    rows = await tx.all(
        "late_in_lane",
        {
            "lane": lane,
            "now": tx.now_at,
            "limit": limit,
            "due_at": cursor.due_at,
            "scheduled_at": cursor.scheduled_at,
            "job_id": cursor.job_id,
        },
    )
    verdicts = await judge_late_runs(tx, [(row[0], UnstartedRow(*row[1:7])) for row in rows if row[7]])
    judged = sum(verdict is not Lateness.RUN for verdict in verdicts.values())
    if len(rows) < limit:
        return judged, None
    last = rows[-1]
    return judged, Cursor(last[3], last[1], last[0])


def _stray(row: Sequence[Any]) -> StrayRun:
    spec = row[10]
    return StrayRun(
        job_id=row[0],
        slot=row[1],
        scheduled_at=row[2],
        due_at=row[3],
        fence=row[4],
        tries=row[5],
        version=row[6] or 0,
        worker=row[7],
        worker_lost=bool(row[8]),
        cancel_asked=bool(row[9]),
        spec=None if spec is None else decode_spec(spec),
        awaited_since=row[11],
    )
