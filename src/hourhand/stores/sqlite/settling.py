"""The finish: commit outcomes, keep dead letters, hand slots on.

The batch goes into a temporary table; whatever is no longer in its slot under its fence is refused, the
rest is applied by set-based statements. Dead letters and hand-overs are exceptions and go one by one.
"""

from collections.abc import Sequence
from typing import Any

from hourhand.core.lifecycle import Event
from hourhand.core.run import Settlement
from hourhand.ports.store import Hint
from hourhand.stores.relational.outcomes import LETTING_GO, cancel_idle, one_of_each, write_dead
from hourhand.stores.relational.rows import EVENT_CODES
from hourhand.stores.relational.slots import hand_on
from hourhand.stores.relational.tx import Tx


async def settle(tx: Tx, worker: str, settlements: Sequence[Settlement]) -> list[Settlement]:
    """Apply a batch; answers what was refused."""
    chosen, refused = one_of_each(settlements)
    await tx.run("clear_done")
    await tx.insert("add_done", [_row(place, settlements[place]) for place in chosen])
    refused |= {row[0] for row in await tx.all("drop_refused")}
    await tx.run("write_history", (worker,))
    any_edge, any_webhook = await tx.one("any_listener")
    if any_edge and await tx.run("tell_children"):
        tx.hints.add(Hint.GRAPHS)
    if any_webhook and await tx.run("tell_settled"):  # before a retry gets another due time
        tx.hints.add(Hint.WEBHOOKS)
    events = {settlement.event for settlement in settlements}
    if Event.EXHAUST in events:
        await write_dead(tx, await tx.all("exhausted"))
    if Event.RETRY in events:
        await tx.run("write_retries")
        tx.hints.add(Hint.RUNS)
    if Event.RELEASE in events:
        await tx.run("write_releases")
        tx.hints.add(Hint.RUNS)
    if Event.REPORT_LATER in events:
        await tx.run("write_reports")
    await tx.run("free_slots")
    if not events.isdisjoint(LETTING_GO):
        await cancel_idle(tx)
    if await tx.one("any_blocked") is not None:
        await hand_on(tx, [row[0] for row in await tx.all("freed_jobs")])
    return [settlements[place] for place in sorted(refused)]


def _row(place: int, s: Settlement) -> tuple[Any, ...]:
    run = (s.job_id, s.slot, s.scheduled_at, s.fence, EVENT_CODES[s.event], s.version, s.tries)
    return (place, *run, s.due_at, s.started_at, s.finished_at, s.detail)
