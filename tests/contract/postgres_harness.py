"""PostgreSQL under the contract suite: a database of its own for each test, and the store's time in hand."""

from typing import Any

from hourhand.core.lifecycle import Phase
from hourhand.core.run import TRIGGERS
from hourhand.stores.postgres import PostgresStore
from hourhand.stores.relational.rows import STATES
from tests.contract.harness import (
    KEEP_US,
    LEAD_US,
    ClockGap,
    Letter,
    Line,
    OnClock,
    Slot,
    Tables,
    Unstarted,
)


class PostgresHarness(OnClock):
    """A store on a real server. Verbs of several callers really overlap."""

    threaded = True
    shared = True
    whole_days = True
    store: PostgresStore

    def __init__(self, url: str) -> None:
        super().__init__()
        self.url = url

    async def open(self) -> "PostgresHarness":
        self.store = await PostgresStore.open(
            self.url, clock=self.clock, lead_us=LEAD_US, keep_us=KEEP_US, pool_size=4
        )
        return self

    async def reopen(self) -> None:
        await self.store.close()
        await self.open()

    async def tables(self) -> Tables:
        return await self.store._engine.on_connection(_tables, bare=True)


async def _tables(connection: Any) -> Tables:
    async with connection.transaction(isolation="repeatable_read", readonly=True):

        async def rows(query: str) -> list[tuple[Any, ...]]:
            return [tuple(row) for row in await connection.fetch(query)]

        unstarted = "SELECT job_id, scheduled_at, due_at, lane, trigger, fence, tries FROM"
        return Tables(
            planned=[
                Unstarted(*row[:4], TRIGGERS[row[4]], *row[5:]) for row in await rows(f"{unstarted} planned")
            ],
            blocked=[
                Unstarted(*row[:4], TRIGGERS[row[4]], *row[5:]) for row in await rows(f"{unstarted} blocked")
            ],
            running=[
                Slot(*row[:5], TRIGGERS[row[5]], row[6], row[7], Phase(row[8]), row[9], bool(row[10]))
                for row in await rows(
                    "SELECT job_id, slot, scheduled_at, due_at, lane, trigger, fence, tries, phase, node_id, cancel"
                    " FROM running"
                )
            ],
            dead=[Letter(*row) for row in await rows("SELECT job_id, scheduled_at, fence FROM dead")],
            history=[
                Line(*row[:3], STATES[row[3]], TRIGGERS[row[4]], *row[5:])
                for row in await rows(
                    "SELECT job_id, scheduled_at, attempt, state, trigger, tries, finished_at, detail"
                    " FROM history ORDER BY job_id, scheduled_at, attempt"
                )
            ],
            gaps=[
                ClockGap(*row)
                for row in await rows(
                    "SELECT c.rule, c.segment, g.from_at, g.to_at, g.policy, g.grace_us, g.catch_up, g.missed, g.ran"
                    " FROM clock_gaps AS g JOIN clocks AS c ON c.id = g.clock_id ORDER BY g.from_at"
                )
            ],
        )
