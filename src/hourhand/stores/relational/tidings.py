"""Notes what happened for webhooks, in the transaction in which it happens.

The statements look themselves whether any webhook of the tenant wants to hear of it, so what is noted is exact from the
first moment on, and a store without webhooks pays for one look at an empty table. Outcomes of attempts are noted by
each store's own finish; what becomes of the notes is `stores.relational.webhooks`'.
"""

from collections.abc import Sequence
from typing import Any

from hourhand.core.lifecycle import Event, State
from hourhand.core.model import Job, JobState
from hourhand.core.webhooks import KINDS
from hourhand.ports.store import Hint
from hourhand.stores.relational.rows import EVENT_CODES, STATES, to_json
from hourhand.stores.relational.tx import Tx

CREATED = KINDS["job.created"]
CHANGED = KINDS["job.changed"]
PAUSED = KINDS["job.paused"]
RESUMED = KINDS["job.resumed"]
DELETED = KINDS["job.deleted"]
_ENDED = {
    State.FAILED: EVENT_CODES[Event.EXHAUST],
    State.SKIPPED: EVENT_CODES[Event.SKIP],
    State.CANCELLED: EVENT_CODES[Event.CANCEL],
}


async def note_endings(tx: Tx, endings: Sequence[tuple[Any, ...]]) -> None:
    """Rows of `rows.ending` were written."""
    rows = [
        (_ENDED[STATES[state]], finished_at, job_id, scheduled_at, attempt, version, due_at, detail)
        for job_id, scheduled_at, attempt, state, _, _, due_at, _, finished_at, version, _, detail in endings
        if STATES[state] in _ENDED
    ]
    await _note(tx, "tell_endings", rows)


async def note_jobs(tx: Tx, kind: int, jobs: Sequence[Job]) -> None:
    """These jobs are stored as they are now."""
    await _note(tx, "tell_jobs", [_job_row(tx, kind, job) for job in jobs])


def change_kind(old: Job, new: Job) -> int:
    """What a change of a job is told as: a pause and its end by their own names."""
    if old.state is new.state:
        return CHANGED
    return PAUSED if new.state is JobState.PAUSED else RESUMED


async def _note(tx: Tx, statement: str, rows: Sequence[Sequence[Any]]) -> None:
    if rows and await tx.run(statement, (to_json(rows),)):
        tx.hints.add(Hint.WEBHOOKS)


def _job_row(tx: Tx, kind: int, job: Job) -> tuple[Any, ...]:
    state = "deleted" if kind == DELETED else job.state.value
    return kind, tx.now_at, job.id, job.version, job.tenant, job.spec.name, to_json({"state": state})
