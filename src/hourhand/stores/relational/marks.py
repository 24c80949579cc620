"""The last runs of many jobs at once, as little of each as a strip needs. Never writes."""

from collections import Counter
from collections.abc import Sequence

from hourhand.core.lifecycle import Phase, State, shown_state
from hourhand.ports.reading import JobMarks, RunMark
from hourhand.stores.relational.rows import STATE_CODES, STATES
from hourhand.stores.relational.tx import Tx

_SPARE = 2  # a run that was requeued has ended more than once
_RETRYING = STATE_CODES[State.RETRYING]


async def job_marks(tx: Tx, tenant: str, job_ids: Sequence[int], limit: int) -> list[JobMarks]:
    """The last runs that ended of each of these jobs of a tenant, and how many are under way."""
    known = [row[0] for row in await tx.all("jobs_among", (tenant, tx.array(job_ids)))]
    if not known:
        return []
    asked = {"ids": tx.array(known), "retrying": _RETRYING, "limit": limit + _SPARE, "now": tx.now_at}
    ended: dict[int, dict[int, RunMark]] = {job_id: {} for job_id in known}
    for job_id, at, state, due_at, started_at, finished_at in await tx.all("last_ends", asked):
        # The newest attempt comes first, and speaks for the run.
        ended[job_id].setdefault(at, RunMark(at, STATES[state], due_at, started_at, finished_at))
    under_way = Counter[tuple[int, State]]()
    for job_id, phase, due_at, tries in await tx.all("running_among", (tx.array(known),)):
        under_way[job_id, shown_state(Phase(phase), due_at, tx.now_at, tries)] += 1
    return [
        JobMarks(
            job_id=job_id,
            marks=tuple(reversed(list(ended[job_id].values())[:limit])),
            running=under_way[job_id, State.RUNNING],
            retrying=under_way[job_id, State.RETRYING],
        )
        for job_id in dict.fromkeys(job_ids)
        if job_id in ended
    ]
