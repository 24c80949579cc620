"""Finished runs across jobs, newest first: history in slices of finish time, from the window's end back.

A partition's rows lie in the order in which they were written, which is nearly that of their finish, so a
coarse index over finish times reads just the slice. A slice is first counted, up to a bound: it shrinks while
it holds too much to be sorted and grows while it holds little, so that a page costs the same after a rush as
after a silent month.
"""

from collections.abc import Collection
from typing import Any

from hourhand.core.identity import RunKey
from hourhand.core.instant import DAY_US
from hourhand.core.lifecycle import FINAL, State
from hourhand.core.model import FOREVER
from hourhand.core.run import RunView
from hourhand.errors import Invalid
from hourhand.ports.reading import RunPage, RunQuery
from hourhand.stores.relational.reading import get_run
from hourhand.stores.relational.rows import STATE_CODES
from hourhand.stores.relational.tx import Tx

_FIRST_SLICE_US = 100_000
_FIRST_SLICE_OF_JOB_US = DAY_US
_GROWTH = 4
_SHRINKING = 8
_SLICE_ROWS = 5_000  # that are sorted at once
_MOST_ROWS = 50_000  # that one page may look at, other tenants' too, before it answers with less
_END = (FOREVER, FOREVER, FOREVER)

Place = tuple[int, int, int]


async def finished_runs(tx: Tx, tenant: str, query: RunQuery) -> RunPage:
    """Runs that ended in the window. A run that was requeued has several final rows; it stands at its last one."""
    if query.before is not None and len(query.before) != len(_END):
        raise Invalid("cursor: expected the next_cursor of this list")
    wanted = {State(state) for state in query.states} or FINAL
    place: Place = _END if query.before is None else (query.before[0], query.before[1], query.before[2])
    views: list[RunView] = []
    places: list[Place] = []
    slices = _Slices(tx, tenant, query, wanted, place)
    while (rows := await slices.next()) is not None:
        for job_id, scheduled_at, attempt, finished_at in rows:
            view = await get_run(tx, tenant, RunKey(job_id, scheduled_at))
            if view is None or view.state not in wanted or view.attempts[-1].attempt != attempt:
                continue
            views.append(view)
            places.append((finished_at, job_id, scheduled_at))
            if len(views) == query.limit:
                return RunPage(runs=tuple(views), next_before=places[-1], places=tuple(places))
    return RunPage(runs=tuple(views), next_before=slices.place, places=tuple(places))


class _Slices:
    """Rows of history in finish order, slice by slice, until the window's beginning or enough was looked at."""

    def __init__(self, tx: Tx, tenant: str, query: RunQuery, wanted: Collection[State], place: Place) -> None:
        self._tx = tx
        self._from_at = query.from_at
        self._to_at = min(query.to_at, tx.now_at + DAY_US, place[0])
        self._looked = 0
        self.place: Place | None = place  # everything before it is yet to come; None: there is no more
        if query.job_id is None:
            self._count, self._read, self._slice_us = "dense_in", "finished_in", _FIRST_SLICE_US
            self._whose: dict[str, Any] = {"tenant": tenant}
        else:
            self._count, self._read, self._slice_us = "dense_of", "finished_of", _FIRST_SLICE_OF_JOB_US
            self._whose = {"job": query.job_id}
        self._states = [STATE_CODES[state] for state in wanted]

    async def next(self) -> list[Any] | None:
        """The next rows in order, perhaps none; None when it is over or enough for one page."""
        if self.place is None or self._looked >= _MOST_ROWS:
            return None
        if self._to_at < self._from_at:
            self.place = None
            return None
        window, count = await self._narrowed()
        rows = await self._tx.all(
            self._read,
            {
                **window,
                **self._whose,
                "states": self._states,
                "finished_at": self.place[0],
                "job_id": self.place[1],
                "scheduled_at": self.place[2],
                "limit": _SLICE_ROWS,
            },
        )
        self._looked += max(count, 1)
        if len(rows) < _SLICE_ROWS:
            self.place = (window["from_at"], 0, 0)
            self._to_at = window["from_at"] - 1
            if count < _SLICE_ROWS // _GROWTH:
                self._slice_us = max(1, self._slice_us * _GROWTH)
        else:  # a moment in which more ended than is sorted at once
            last = rows[-1]
            self.place = (last[3], last[0], last[1])
            self._to_at = last[3]
        return rows

    async def _narrowed(self) -> tuple[dict[str, int], int]:
        """A window up to where we are that holds no more than can be sorted, or is a single moment."""
        while True:
            from_at = max(self._from_at, self._to_at - self._slice_us)
            # what finished in a window was scheduled at most a day away from it, or lies with the far ones
            days = {"first": from_at // DAY_US - 1, "last": self._to_at // DAY_US + 1}
            window = {"from_at": from_at, "to_at": self._to_at, **days}
            parameters = {**window, **self._whose, "most": _SLICE_ROWS}
            count: int = (await self._tx.one(self._count, parameters))[0]
            if count < _SLICE_ROWS or from_at == self._to_at:
                return window, count
            self._slice_us = (self._to_at - from_at) // _SHRINKING
