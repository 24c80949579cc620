"""Locks a job together with its clock, in the order in which everybody locks, for what does not edit it."""

from hourhand.stores.relational.jobs import hold, load
from hourhand.stores.relational.membership import Settings, hold_clocks
from hourhand.stores.relational.rows import JobRecord, job_of
from hourhand.stores.relational.tx import ChangedMeanwhile, Tx


async def hold_with_clock(tx: Tx, settings: Settings, tenant: str, job_id: int) -> JobRecord | None:
    """A job that nobody plans or edits until the end; None where there is none.

    Which clock it has is only known from the job, so that is read before; if it changed meanwhile, the
    operation starts over.
    """
    seen = await load(tx, tenant, job_id)
    if seen is None:
        return None
    await hold_clocks(tx, settings, [job_of(seen)])
    record = await hold(tx, tenant, job_id)
    if record is not None and record.version != seen.version:
        raise ChangedMeanwhile
    return record


async def unplanned_from(tx: Tx, record: JobRecord) -> int | None:
    """From when on a held job's times may still be planned by others; None where nobody plans it."""
    if record.clock_id is not None:
        next_at: int | None = (await tx.one("clock_next", (record.clock_id,)))[0]
        return next_at
    return record.paused_until if record.paused else None  # then it gets the times from that end on
