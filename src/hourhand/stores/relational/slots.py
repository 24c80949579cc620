"""Runs that leave their place without an attempt: they end, or a free slot is handed to one that waits."""

from collections.abc import Sequence
from typing import Any

from hourhand.core.lifecycle import Phase, State
from hourhand.core.overlap import free_slots
from hourhand.ports.store import Hint
from hourhand.stores.relational.rows import UnstartedRow, ending
from hourhand.stores.relational.tx import Tx


async def end_unstarted(
    tx: Tx,
    job_id: int,
    rows: Sequence[UnstartedRow],
    state: State,
    detail: dict[str, Any],
    version: int | None = None,
) -> None:
    """Write the history of runs that end without an attempt of their own."""
    await tx.insert("add_ending", [ending(job_id, row, state, tx.now_at, detail, version) for row in rows])


async def hand_on(tx: Tx, job_id: int) -> int:
    """Give a job's free slots to its oldest waiting runs; answers how many."""
    row = await tx.one("concurrency_of", (job_id,))
    if row is None:
        return 0
    await tx.one("hold_hand", (job_id,))
    handed = 0
    while (waiting := await tx.one("oldest_blocked", (job_id,))) is not None:
        run = UnstartedRow(*waiting)
        used = [found[0] for found in await tx.all("slots_of", (job_id,))]
        slots = free_slots(row[0], used, [run.scheduled_at])
        if not slots:
            break
        if not await tx.all("take_blocked", (job_id, run.scheduled_at)):
            continue  # cancelled meanwhile
        await tx.insert(
            "add_ready",
            [
                (
                    job_id,
                    slots[0],
                    run.scheduled_at,
                    run.lane,
                    run.due_at,
                    run.trigger,
                    run.fence,
                    run.tries,
                    Phase.READY,
                )
            ],
        )
        tx.hints.add(Hint.RUNS)
        handed += 1
    return handed
