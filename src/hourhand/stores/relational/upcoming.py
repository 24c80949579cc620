"""Reads coming runs by the lanes they wait in, a page of each, for whoever offers them to workers.

A key of a cursor is twice the lane, plus one where runs already have their slot.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple

from hourhand.core.identity import BACKGROUND, LANES_PER_POOL, class_of_lane, segment_of
from hourhand.core.lanes import Cursor
from hourhand.core.model import Durability, Job
from hourhand.core.offer import UpcomingRun
from hourhand.ports.upcoming import UpcomingPage, UpcomingQuery
from hourhand.stores.relational.rows import JobRecord, job_of
from hourhand.stores.relational.tx import Tx

_LEAST_PER_LANE = 20
_STATEMENTS = ("upcoming_planned", "upcoming_ready")


class LanePage(NamedTuple):
    """A lane and the place behind which it is read."""

    lane: int
    due_at: int
    scheduled_at: int
    job_id: int


# Reads pages with a statement: (tx, name, pages, until_at, rows of each, whether durability is wanted).
Look = Callable[[Tx, str, Sequence[LanePage], int, int, bool], Awaitable[list[Any]]]


async def upcoming(tx: Tx, query: UpcomingQuery, segments: int, look: Look) -> UpcomingPage:
    """A page of what waits in each lane; runs of other segments are left out."""
    pages = await _pages(tx, query)
    pools = {row[0]: row[1] for row in await tx.all("pool_names")}
    most = max(_LEAST_PER_LANE, query.limit // max(1, len(pages[0]) + len(pages[1])))
    runs: list[UpcomingRun] = []
    cursors: dict[int, Cursor] = {}
    every_segment = len(query.segments) == segments
    for kind, of_kind in enumerate(pages):
        counts: dict[int, int] = {}
        rows = (
            await look(tx, _STATEMENTS[kind], of_kind, query.until_at, most, query.routed) if of_kind else []
        )
        for lane, due_at, scheduled_at, job_id, fence, durability in rows:
            counts[lane] = counts.get(lane, 0) + 1
            if counts[lane] == most:
                cursors[lane * 2 + kind] = Cursor(due_at, scheduled_at, job_id)
            if every_segment or segment_of(job_id, segments) in query.segments:
                runs.append(
                    UpcomingRun(
                        job_id,
                        scheduled_at,
                        due_at,
                        fence,
                        class_of_lane(lane),
                        pools[lane // LANES_PER_POOL],
                        Durability.CRITICAL if durability is None else Durability(durability),
                        kind == 1,
                    )
                )
    return UpcomingPage(runs=runs, cursors=cursors)


async def read_jobs(tx: Tx, ids: Sequence[int]) -> list[Job]:
    """Jobs by their ids, of whatever tenant."""
    return [job_of(JobRecord(*row)) for row in await tx.all("get_jobs", (tx.array(sorted(set(ids))),))]


async def _pages(tx: Tx, query: UpcomingQuery) -> tuple[list[LanePage], list[LanePage]]:
    """What to read: every lane with something in the window, or those whose page before was full."""
    pages: tuple[list[LanePage], list[LanePage]] = ([], [])
    if query.cursors is not None:
        for key, cursor in query.cursors.items():
            pages[key % 2].append(LanePage(key // 2, cursor.due_at, cursor.scheduled_at, cursor.job_id))
        return pages
    for kind, lane, first_at in await tx.all("all_lanes"):
        if first_at <= query.until_at and class_of_lane(lane) != BACKGROUND:
            pages[kind].append(LanePage(lane, query.from_at, 0, 0))
    return pages
