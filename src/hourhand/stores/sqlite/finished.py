"""Finished runs across jobs, newest first: history is walked back by its id, which grows nearly with finish times."""

from hourhand.core.identity import RunKey
from hourhand.core.instant import SECOND_US
from hourhand.core.lifecycle import FINAL, State
from hourhand.core.run import RunView
from hourhand.errors import Invalid
from hourhand.ports.reading import RunPage, RunQuery
from hourhand.stores.relational.reading import get_run
from hourhand.stores.relational.rows import STATES
from hourhand.stores.relational.tx import Tx

_NEWEST_ID = (1 << 63) - 1
_SCAN = 5_000  # rows that one page may look at before it answers with less
_DISORDER_US = 10 * SECOND_US  # outcomes are committed this much later than they finished, hardly more


async def finished_runs(tx: Tx, tenant: str, query: RunQuery) -> RunPage:
    """Runs that ended in the window, walking history back from its end or from a cursor.

    A run that was requeued has several final rows; it stands where its last one is.
    """
    wanted = {State(state) for state in query.states} or FINAL
    if query.before is not None and len(query.before) != 1:
        raise Invalid("cursor: expected the next_cursor of this list")
    if query.job_id is not None:
        before = _NEWEST_ID if query.before is None else query.before[0]
        bounds = (query.job_id, before, query.from_at, query.to_at, _SCAN)
        rows = await tx.all("history_back_of", bounds)
    else:
        newest = query.to_at + _DISORDER_US
        before = await _first_id_after(tx, newest) if query.before is None else query.before[0]
        first_id = await _first_id_after(tx, query.from_at - _DISORDER_US - 1)
        rows = await tx.all("history_back", (before, first_id, tenant, _SCAN))
    views: list[RunView] = []
    places: list[tuple[int, ...]] = []
    onward: tuple[int, ...] | None = (rows[-1][0],) if len(rows) == _SCAN else None
    for row_id, job_id, scheduled_at, attempt, state in rows:
        view = await get_run(tx, tenant, RunKey(job_id, scheduled_at)) if STATES[state] in wanted else None
        if view is None or view.state not in wanted or view.attempts[-1].attempt != attempt:
            continue
        if query.from_at <= view.attempts[-1].finished_at <= query.to_at:
            views.append(view)
            places.append((row_id,))
            if len(views) == query.limit:
                onward = places[-1]
                break
    return RunPage(runs=tuple(views), next_before=onward, places=tuple(places))


async def _first_id_after(tx: Tx, at: int) -> int:
    """The first row of history that finished after an instant: ids grow nearly with finish times, so bisect."""
    low, high = (await tx.one("oldest_history"))[0], (await tx.one("newest_history"))[0]
    if high is None:
        return 0
    high += 1
    while low < high:
        middle = (low + high) // 2
        row = await tx.one("history_time_at", (middle,))
        if row is not None and row[1] <= at:
            low = row[0] + 1
        else:
            high = middle
    return low  # type: ignore[no-any-return]
