"""How runs of many jobs stand, in a word each: what a picture of a graph shows, asked for all of it at once."""

from collections.abc import Sequence

from hourhand.core.lifecycle import Phase, State, shown_state
from hourhand.ports.reading import RunGlance
from hourhand.stores.relational.edges import GraphReader
from hourhand.stores.relational.rows import STATES
from hourhand.stores.relational.tx import Tx

_ENDED, _HAS_SLOT = 0, 1


async def glance(tx: Tx, tenant: str, ids: Sequence[int], at: int | None) -> list[RunGlance]:
    """Of each job its run for a nominal time, else the newest that waits for something, runs or ended."""
    own = list(await GraphReader(tx, tenant).jobs(ids))
    if at is None:
        rows = await tx.all("newest_runs", {"job_ids": tx.array(own), "now": tx.now_at})
    else:
        rows = await tx.all("runs_at", {"job_ids": tx.array(own), "scheduled_at": at, "now": tx.now_at})
    found: dict[int, tuple[int, int, State]] = {}
    for job_id, scheduled_at, place, code, due_at, tries in rows:
        if place == _ENDED:
            state = STATES[code]
        elif place == _HAS_SLOT:
            state = shown_state(Phase(code), due_at, tx.now_at, tries)
        else:
            state = State.PENDING
        # What goes on speaks for a run that had ended before it was sent back.
        found[job_id] = max(found.get(job_id, (0, -1, state)), (scheduled_at, place, state))
    return [
        RunGlance(job_id=one, scheduled_at=found[one][0], state=found[one][2]) for one in own if one in found
    ]
