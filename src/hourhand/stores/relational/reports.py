"""Operations around reports: one attempt as it stands, and how far attempts are.

What a report does to a run is a settlement like any other. Progress has a table of its own, so that telling
it never gets in the way of those who claim and finish.
"""

from collections.abc import Sequence
from typing import Any

from hourhand.core.identity import RunKey
from hourhand.core.run import AttemptFacts, ClaimedRun, OpenAttempt, ProgressNote
from hourhand.stores.relational.rows import attempt_row, decode_spec, to_json
from hourhand.stores.relational.tx import Tx

Place = tuple[int, int]
START: Place = (0, 0)  # where a walk over all progress begins


async def find_attempt(tx: Tx, key: RunKey, attempt: int) -> AttemptFacts:
    """The attempt under way, else its row of history.

    Without a concurrency limit a run's slot is its nominal time; else a job has few slots, and all are looked at.
    """
    row = await tx.one("open_attempt_at", (*key, attempt)) or await tx.one("open_attempt", (*key, attempt))
    if row is not None:
        return AttemptFacts(now_at=tx.now_at, open=_open(row))
    rows = await tx.all("history_of", (key.job_id, tx.array([key.scheduled_at]), tx.now_at))
    ended = next((attempt_row(row) for row in rows if row[1] == attempt), None)
    return AttemptFacts(now_at=tx.now_at, ended=ended)


async def note_progress(tx: Tx, notes: Sequence[ProgressNote]) -> list[ProgressNote]:
    """Move deadlines, then keep the latest note of each attempt; answers what was refused."""
    latest = {(note.job_id, note.scheduled_at): note for note in notes}
    for place in sorted(latest):
        note = latest[place]
        if note.deadline_at is not None:
            attempt = (note.job_id, note.slot, note.scheduled_at, note.fence)
            await tx.run("extend_attempt", (*attempt, note.deadline_at))
    rows = [
        (note.job_id, note.slot, note.scheduled_at, note.fence, note.fraction, note.message)
        for _, note in sorted(latest.items())
    ]
    kept = {tuple(row) for row in await tx.all("keep_progress", {"notes": to_json(rows), "now": tx.now_at})}
    return [note for note in notes if (note.job_id, note.scheduled_at, note.fence) not in kept]


async def drop_progress(tx: Tx, after: Place, limit: int) -> tuple[Place, bool]:
    """Forget the progress of attempts that are over, a page at a time; where to go on, and whether there is more."""
    page = await tx.all("progress_page", (*after, limit))
    over = [row[:3] for row in (tuple(row) for row in page) if not row[3]]
    if over:
        await tx.run("drop_progress", (to_json(over),))
    full = len(page) >= limit
    return (page[-1][0], page[-1][1]) if full else START, full


def _open(row: Sequence[Any]) -> OpenAttempt:
    *head, spec, is_deleted, claimed_at = row
    run = ClaimedRun(*[*head, decode_spec(spec)])
    return OpenAttempt(run=run, began_at=max(run.due_at, claimed_at), deleted=bool(is_deleted))
