"""What an adapter brings to the store's contract suite: a fresh store, its time in hand, and its tables.

Tests speak to the port; only invariants over everything that is stored look at `tables`.
"""

from pathlib import Path
from typing import Any, NamedTuple, Protocol

import pytest

from hourhand.clock import ManualClock
from hourhand.core.instant import DAY_US, SECOND_US
from hourhand.core.lifecycle import Phase, State
from hourhand.core.model import Trigger
from hourhand.core.run import TRIGGERS
from hourhand.ports.store import Store
from hourhand.stores.relational.rows import STATES
from hourhand.stores.sqlite import SqliteStore
from hourhand.stores.sqlite.engine import SqliteTx

LEAD_US = 2 * SECOND_US
KEEP_US = 30 * DAY_US
START_AT = 1_794_819_600_000_000  # 2026-11-16T09:00:00Z


def at(seconds: float) -> int:
    """So many seconds after the start."""
    return START_AT + round(seconds * SECOND_US)


def seconds(*offsets: float) -> list[int]:
    """Several such instants."""
    return [at(offset) for offset in offsets]


class Unstarted(NamedTuple):
    """A run in `planned` or `blocked`."""

    job_id: int
    scheduled_at: int
    due_at: int
    lane: int
    trigger: Trigger
    fence: int
    tries: int


class Slot(NamedTuple):
    """A run in `running`."""

    job_id: int
    slot: int
    scheduled_at: int
    due_at: int
    lane: int
    trigger: Trigger
    fence: int
    tries: int
    phase: Phase
    node_id: int | None
    cancel_asked: bool


class Letter(NamedTuple):
    """A run in `dead`."""

    job_id: int
    scheduled_at: int
    fence: int


class Line(NamedTuple):
    """A row of history."""

    job_id: int
    scheduled_at: int
    attempt: int
    state: State
    trigger: Trigger
    tries: int
    finished_at: int
    detail: str | None


class ClockGap(NamedTuple):
    """What a rule's members in one segment missed."""

    rule_key: str
    segment: int
    from_at: int
    to_at: int
    policy: str
    grace_us: int
    limit: int
    missed: int
    ran: int


class Tables(NamedTuple):
    """Everything that is stored about runs, at one moment."""

    planned: list[Unstarted]
    blocked: list[Unstarted]
    running: list[Slot]
    dead: list[Letter]
    history: list[Line]
    gaps: list[ClockGap]


class Harness(Protocol):
    """One adapter under test."""

    store: Store
    threaded: bool  # whether verbs of several callers really overlap
    shared: bool  # whether several processes may work on it, so that opening it ends nobody
    whole_days: bool  # whether old history goes by whole days

    def set_now(self, at: int) -> None:
        """Set the store's time."""
        ...

    def advance(self, by_us: int) -> int:
        """Move the store's time on."""
        ...

    def now(self) -> int:
        """The store's time."""
        ...

    async def reopen(self) -> None:
        """Close the store and open what it left behind."""
        ...

    async def tables(self) -> Tables:
        """Everything that is stored about runs."""
        ...

    async def settled(self) -> None:
        """Wait until the hints of everything that was answered have arrived."""
        ...

    async def close(self) -> None:
        """Let go."""
        ...


class OnClock:
    """What all ways to have a store share: its time is in hand."""

    store: Store

    def __init__(self) -> None:
        self.clock = ManualClock(START_AT)

    def set_now(self, at: int) -> None:
        self.clock.now_at = at

    def advance(self, by_us: int) -> int:
        return self.clock.advance(by_us)

    def now(self) -> int:
        return self.clock.now()

    async def settled(self) -> None:
        await self.store.ping()

    async def close(self) -> None:
        await self.store.close()


class _SqliteHarness(OnClock):
    """What both ways to have SQLite share."""

    shared = False
    whole_days = False
    store: SqliteStore

    def __init__(self) -> None:
        super().__init__()
        self.store = self._open()

    def _open(self) -> SqliteStore:
        raise AssertionError("each way opens its own")

    async def tables(self) -> Tables:
        return await self.store._engine.write(sqlite_tables)


class SqliteFileHarness(_SqliteHarness):
    """SQLite on a file, with the writer thread."""

    threaded = True

    def __init__(self, folder: Path) -> None:
        self.path = folder / "store.db"
        super().__init__()

    def _open(self) -> SqliteStore:
        return SqliteStore.open(self.path, clock=self.clock, lead_us=LEAD_US, keep_us=KEEP_US)

    async def reopen(self) -> None:
        await self.store.close()
        self.store = self._open()


class SqliteMemoryHarness(_SqliteHarness):
    """SQLite in memory, on the caller's thread."""

    threaded = False

    def _open(self) -> SqliteStore:
        return SqliteStore.in_memory(clock=self.clock, lead_us=LEAD_US, keep_us=KEEP_US)

    async def reopen(self) -> None:
        pytest.skip("a store in memory leaves nothing behind")


async def sqlite_tables(tx: SqliteTx) -> Tables:
    def rows(query: str) -> list[Any]:
        return tx._connection.execute(query).fetchall()

    unstarted = "SELECT job_id, scheduled_at, due_at, lane, trigger, fence, tries FROM"
    return Tables(
        planned=[Unstarted(*row[:4], TRIGGERS[row[4]], *row[5:]) for row in rows(f"{unstarted} planned")],
        blocked=[Unstarted(*row[:4], TRIGGERS[row[4]], *row[5:]) for row in rows(f"{unstarted} blocked")],
        running=[
            Slot(*row[:5], TRIGGERS[row[5]], row[6], row[7], Phase(row[8]), row[9], bool(row[10]))
            for row in rows(
                "SELECT job_id, slot, scheduled_at, due_at, lane, trigger, fence, tries, phase, node_id, cancel"
                " FROM running"
            )
        ],
        dead=[Letter(*row) for row in rows("SELECT job_id, scheduled_at, fence FROM dead")],
        history=[
            Line(*row[:3], STATES[row[3]], TRIGGERS[row[4]], *row[5:])
            for row in rows(
                "SELECT job_id, scheduled_at, attempt, state, trigger, tries, finished_at, detail"
                " FROM history ORDER BY id"
            )
        ],
        gaps=[
            ClockGap(*row)
            for row in rows(
                "SELECT c.rule, c.segment, g.from_at, g.to_at, g.policy, g.grace_us, g.catch_up, g.missed, g.ran"
                " FROM clock_gaps AS g JOIN clocks AS c ON c.id = g.clock_id ORDER BY g.from_at"
            )
        ],
    )
