"""Which slots of jobs are free, and who of those that wait gets them."""

from collections.abc import Sequence

from hourhand.core.lifecycle import Phase
from hourhand.core.overlap import free_slots
from hourhand.ports.store import Hint
from hourhand.stores.relational.rows import UnstartedRow, to_json
from hourhand.stores.relational.tx import Tx


async def hand_on(tx: Tx, job_ids: Sequence[int]) -> int:
    """Give the free slots of jobs to their oldest waiting runs; answers how many.

    The waiting runs are held first and the slots read after, so that two who hand on slots of the same job
    do it one after the other.
    """
    ids = tx.array(sorted(job_ids))
    waiting: dict[int, list[UnstartedRow]] = {}
    for job_id, *row in await tx.all("front_of_blocked", (ids,)):
        waiting.setdefault(job_id, []).append(UnstartedRow(*row))
    if not waiting:
        return 0
    limits, used = await taken_slots(tx, list(waiting))
    ready = []
    for job_id, rows in waiting.items():
        if job_id not in limits:
            continue  # deleted meanwhile
        slots = free_slots(limits[job_id], used.get(job_id, ()), [row.scheduled_at for row in rows])
        for slot, row in zip(slots, rows, strict=False):
            run = (row.scheduled_at, row.lane, row.due_at, row.trigger, row.fence, row.tries)
            ready.append((job_id, slot, *run, Phase.READY))
    if ready:
        await tx.all("take_blocked_rows", (to_json([(row[0], row[2]) for row in ready]),))
        await tx.insert("add_ready", ready)
        tx.hints.add(Hint.RUNS)
    return len(ready)


async def taken_slots(tx: Tx, job_ids: Sequence[int]) -> tuple[dict[int, int | None], dict[int, list[int]]]:
    """The limit of each job that still exists, and which of its slots are taken."""
    ids = tx.array(job_ids)
    limits = dict(await tx.all("limits_of", (ids,)))
    used: dict[int, list[int]] = {}
    for job_id, slot in await tx.all("slots_of", (ids,)):
        used.setdefault(job_id, []).append(slot)
    return limits, used
