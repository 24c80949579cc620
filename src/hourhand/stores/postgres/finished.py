"""Finished runs across jobs, newest first: history in slices of finish time, from the window's end back.

A partition's rows lie in the order in which they were written, which is nearly that of their finish, so a
coarse index over finish times reads just the slice. Slices grow while they find little.
"""

from hourhand.core.identity import RunKey
from hourhand.core.instant import DAY_US, SECOND_US
from hourhand.core.lifecycle import FINAL, State
from hourhand.core.model import FOREVER
from hourhand.core.run import RunView
from hourhand.errors import Invalid
from hourhand.ports.store import RunPage, RunQuery
from hourhand.stores.relational.reading import get_run
from hourhand.stores.relational.rows import STATES
from hourhand.stores.relational.tx import Tx

_FIRST_SLICE_US = 10 * SECOND_US
_GROWTH = 4
_MOST_ROWS = 5_000  # that one page may look at before it answers with less
_END = (FOREVER, FOREVER, FOREVER)

Place = tuple[int, int, int]


async def finished_runs(tx: Tx, tenant: str, query: RunQuery) -> RunPage:
    """Runs that ended in the window. A run that was requeued has several final rows; it stands at its last one."""
    if query.before is not None and len(query.before) != len(_END):
        raise Invalid("cursor: expected the next_cursor of this list")
    wanted = {State(state) for state in query.states} or FINAL
    place: Place = _END if query.before is None else (query.before[0], query.before[1], query.before[2])
    to_at = min(query.to_at, tx.now_at + DAY_US, place[0])
    slice_us = _FIRST_SLICE_US
    views: list[RunView] = []
    places: list[tuple[int, ...]] = []
    looked = 0
    while to_at >= query.from_at:
        from_at = query.from_at if query.job_id is not None else max(query.from_at, to_at - slice_us)
        rows = await _slice(tx, tenant, query.job_id, (from_at, to_at), place, _MOST_ROWS - looked)
        looked += len(rows)
        for job_id, scheduled_at, attempt, state, finished_at in rows:
            place = (finished_at, job_id, scheduled_at)
            view = None
            if STATES[state] in wanted:
                view = await get_run(tx, tenant, RunKey(job_id, scheduled_at))
            if view is None or view.state not in wanted or view.attempts[-1].attempt != attempt:
                continue
            views.append(view)
            places.append(place)
            if len(views) == query.limit:
                return RunPage(runs=tuple(views), next_before=place, places=tuple(places))
        if looked >= _MOST_ROWS:
            return RunPage(runs=tuple(views), next_before=place, places=tuple(places))
        to_at = from_at - 1
        slice_us *= _GROWTH
    return RunPage(runs=tuple(views), next_before=None, places=tuple(places))


async def _slice(
    tx: Tx, tenant: str, job_id: int | None, window: tuple[int, int], place: Place, limit: int
) -> list[tuple[int, int, int, int, int]]:
    parameters = {
        "from_at": window[0],
        "to_at": window[1],
        "finished_at": place[0],
        "job_id": place[1],
        "scheduled_at": place[2],
        "limit": limit,
    }
    if job_id is not None:
        return await tx.all("finished_of", {**parameters, "job": job_id})
    # what finished in a window was scheduled at most a day away from it, or lies with the far ones
    days = range(window[0] // DAY_US - 1, window[1] // DAY_US + 2)
    return await tx.all("finished_in", {**parameters, "tenant": tenant, "buckets": [0, *days]})
