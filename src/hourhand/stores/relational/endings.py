"""Runs that end without an attempt of their own, and the word of it to webhooks and to the jobs that follow theirs."""

from collections.abc import Sequence
from typing import Any

from hourhand.core.lifecycle import State
from hourhand.ports.store import Hint
from hourhand.stores.relational.rows import UnstartedRow, ending
from hourhand.stores.relational.tidings import note_endings
from hourhand.stores.relational.tx import Tx


async def end_unstarted(
    tx: Tx,
    job_id: int,
    rows: Sequence[UnstartedRow],
    state: State,
    detail: dict[str, Any],
    version: int | None = None,
) -> None:
    """Write the history of runs of one job that end without an attempt of their own."""
    await write_endings(tx, [ending(job_id, row, state, tx.now_at, detail, version) for row in rows])


async def write_endings(tx: Tx, endings: Sequence[tuple[Any, ...]]) -> None:
    """Write rows of `rows.ending`; whoever follows those jobs is told."""
    if not endings:
        return
    await tx.insert("add_ending", endings)
    await note_endings(tx, endings)
    ids = tx.array(sorted({row[0] for row in endings}))
    followed = {row[0] for row in await tx.all("parents_among", (ids,))}
    descents = [
        (job_id, scheduled_at, state, trigger)
        for job_id, scheduled_at, _, state, trigger, *_ in endings
        if job_id in followed
    ]
    if descents:
        await tx.insert("add_descent", descents)
        tx.hints.add(Hint.GRAPHS)
