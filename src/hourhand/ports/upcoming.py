"""The store's verbs for whoever offers runs through a broker: what is coming, and the jobs behind it.

Reading only. What is offered twice, too late or not at all is no matter of the store's: claims decide.
"""

from collections.abc import Sequence
from typing import Protocol

import msgspec

from hourhand.core.lanes import Cursor
from hourhand.core.model import Job
from hourhand.core.offer import UpcomingRun


class UpcomingQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which coming runs to read: of some segments, due in a window, a page of each lane behind its cursor."""

    segments: frozenset[int]
    from_at: int
    until_at: int
    limit: int  # over all lanes, roughly: each gives its part
    cursors: dict[int, Cursor] | None = None  # of the page before, to go on; None: from the start
    routed: bool = False  # whether the durability of their jobs is read too


class UpcomingPage(msgspec.Struct, frozen=True, kw_only=True):
    """Some coming runs, and where the lanes with more go on; their keys are the store's own."""

    runs: list[UpcomingRun]
    cursors: dict[int, Cursor] = {}


class UpcomingVerbs(Protocol):
    """What a dispatcher reads."""

    async def upcoming(self, query: UpcomingQuery) -> UpcomingPage:
        """Runs that wait and may be offered to workers: planned, ready and retrying, but none of the background."""
        ...

    async def read_jobs(self, ids: Sequence[int]) -> list[Job]:
        """Those of some jobs that there are, of whatever tenant, for messages that tell everything."""
        ...
