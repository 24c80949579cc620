"""The SQLite store: the port's verbs, each handed to the engine as one operation."""

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import IO

from hourhand.clock import Clock as TimeSource
from hourhand.core.identity import SEGMENTS, RunKey
from hourhand.core.instant import DAY_US, SECOND_US
from hourhand.core.model import Job, Version
from hourhand.core.plan import ClockPlan, MissedTimes
from hourhand.core.run import RunView, Settlement
from hourhand.ports import store as port
from hourhand.stores.sqlite import claims, clocks, edits, file, jobs, letters, reading, repair, settling
from hourhand.stores.sqlite.engine import Engine, InlineEngine, ThreadedEngine
from hourhand.stores.sqlite.membership import Settings


class SqliteStore:
    """One file, one process; see `ports.store` for the contract of each verb."""

    def __init__(
        self,
        engine: Engine,
        clock: TimeSource,
        settings: Settings,
        hints: "_Hints",
        lock: IO[str] | None = None,
    ) -> None:
        self._engine = engine
        self._clock = clock
        self._settings = settings
        self._hints = hints
        self._lock = lock

    @classmethod
    def open(
        cls,
        path: Path,
        *,
        clock: TimeSource,
        segments: int = SEGMENTS,
        lead_us: int = 2 * SECOND_US,
        keep_us: int = 30 * DAY_US,
    ) -> "SqliteStore":
        """Open a file for this process alone, with a writer thread; CannotStart says why it cannot be."""
        path = Path(os.path.realpath(path))  # one lock per file, by whatever name it is called
        hints = _Hints()
        holder = file.lock(path)
        try:
            writer = file.open_writer(path, segments)
        except BaseException:
            holder.close()
            raise
        engine = ThreadedEngine(path, writer, clock, hints.publish)
        return cls(
            engine, clock, Settings(segments=segments, lead_us=lead_us, keep_us=keep_us), hints, holder
        )

    @classmethod
    def in_memory(
        cls,
        *,
        clock: TimeSource,
        segments: int = SEGMENTS,
        lead_us: int = 2 * SECOND_US,
        keep_us: int = 30 * DAY_US,
    ) -> "SqliteStore":
        """A store without threads or files, for simulations on a virtual clock."""
        hints = _Hints()
        engine = InlineEngine(file.open_writer(None, segments), clock, hints.publish)
        return cls(engine, clock, Settings(segments=segments, lead_us=lead_us, keep_us=keep_us), hints)

    # --- itself
    async def now(self) -> int:
        return self._clock.now()

    def subscribe(self, wake: Callable[[port.Hint], None]) -> None:
        self._hints.wakes.append(wake)

    async def close(self) -> None:
        await self._engine.close()
        if self._lock is not None:
            self._lock.close()

    async def ping(self) -> None:
        await self._engine.write(lambda tx: None)

    async def backlog(self) -> port.Backlog:
        return await self._engine.read(reading.backlog)

    # --- jobs
    async def create_jobs(self, drafts: Sequence[port.JobDraft]) -> list[Job | port.Refusal]:
        return await self._engine.write(lambda tx: jobs.create_jobs(tx, self._settings, drafts))

    async def change_job(self, tenant: str, job_id: int, decide: port.Decide) -> port.Changed | None:
        return await self._engine.write(
            lambda tx: edits.change_job(tx, self._settings, tenant, job_id, decide),
        )

    async def delete_job(self, tenant: str, job_id: int, cancel_running: bool) -> port.Changed | None:
        return await self._engine.write(
            lambda tx: edits.delete_job(tx, self._settings, tenant, job_id, cancel_running),
        )

    async def get_job(self, tenant: str, job_id: int) -> Job | None:
        return await self._engine.read(lambda tx: reading.get_job(tx, tenant, job_id))

    async def find_jobs(self, tenant: str, text: str, limit: int) -> list[Job]:
        return await self._engine.read(lambda tx: reading.find_jobs(tx, tenant, text, limit))

    async def list_jobs(self, tenant: str, query: port.JobQuery) -> port.JobPage:
        return await self._engine.read(lambda tx: reading.list_jobs(tx, tenant, query))

    async def versions(self, tenant: str, job_id: int) -> list[Version]:
        return await self._engine.read(lambda tx: reading.versions(tx, tenant, job_id))

    async def missed(self, tenant: str, job_id: int) -> list[MissedTimes]:
        segments = self._settings.segments
        return await self._engine.read(lambda tx: reading.missed(tx, segments, tenant, job_id))

    async def tend_jobs(self, limit: int) -> int | None:
        return await self._engine.write(lambda tx: edits.tend_jobs(tx, self._settings, limit))

    # --- planning
    async def due_clocks(self, segments: Sequence[int], before_at: int, limit: int) -> list[port.Clock]:
        return await self._engine.read(lambda tx: clocks.due_clocks(tx, segments, before_at, limit))

    async def next_clock_at(self, segments: Sequence[int]) -> int | None:
        return await self._engine.read(lambda tx: clocks.next_clock_at(tx, segments))

    async def plan(self, plans: Sequence[ClockPlan]) -> int:
        return await self._engine.write(lambda tx: clocks.plan(tx, plans))

    # --- runs
    async def add_run(self, tenant: str, job_id: int, request_key: str | None) -> RunKey | None:
        return await self._engine.write(lambda tx: jobs.add_run(tx, tenant, job_id, request_key))

    async def claim(self, request: port.ClaimRequest) -> port.Claim:
        claimed = await self._engine.write(lambda tx: claims.claim(tx, request))
        return claimed.decoded()

    async def settle(self, worker: str, settlements: Sequence[Settlement]) -> list[Settlement]:
        return await self._engine.write(lambda tx: settling.settle(tx, worker, settlements))

    async def held_runs(self, node_id: int) -> list[port.HeldRun]:
        return await self._engine.write(lambda tx: repair.held_runs(tx, "held_by", node_id))

    async def cancel_asked(self, node_id: int) -> list[port.HeldRun]:
        return await self._engine.read(lambda tx: repair.held_runs(tx, "cancel_of", node_id))

    async def cancel_run(self, tenant: str, key: RunKey) -> RunView | None:
        return await self._engine.write(lambda tx: letters.cancel_run(tx, tenant, key))

    # --- repair
    async def stray_runs(self, slack_us: int, limit: int) -> list[port.StrayRun]:
        return await self._engine.write(lambda tx: repair.stray_runs(tx, slack_us, limit))

    async def judge_late(self, cursors: dict[int, port.Cursor], limit: int) -> dict[int, port.Cursor]:
        return await self._engine.write(lambda tx: repair.judge_late(tx, cursors, limit))

    async def hand_on_slots(self, limit: int) -> int:
        return await self._engine.write(lambda tx: repair.hand_on_slots(tx, limit))

    async def purge(self, history_before_at: int, dead_before_at: int, limit: int) -> bool:
        return await self._engine.write(lambda tx: repair.purge(tx, history_before_at, dead_before_at, limit))

    # --- nodes
    async def renew_node(self, node_id: int, kind: str, name: str, lease_us: int) -> None:
        await self._engine.write(lambda tx: repair.renew_node(tx, node_id, kind, name, lease_us))

    async def end_node(self, node_id: int) -> None:
        await self._engine.write(lambda tx: repair.end_node(tx, node_id))

    async def nodes(self) -> list[port.NodeInfo]:
        return await self._engine.read(repair.nodes)

    # --- reading
    async def job_runs(
        self, tenant: str, job_id: int, nominals: Sequence[int], before_at: int | None, limit: int
    ) -> list[RunView]:
        return await self._engine.read(
            lambda tx: reading.job_runs(tx, tenant, job_id, nominals, before_at, limit),
        )

    async def get_run(self, tenant: str, key: RunKey) -> RunView | None:
        return await self._engine.read(lambda tx: reading.get_run(tx, tenant, key))

    async def list_runs(self, tenant: str, query: port.RunQuery) -> port.RunPage:
        return await self._engine.read(lambda tx: reading.list_runs(tx, tenant, query))

    # --- dead letters
    async def dead_letters(self, tenant: str, query: port.DeadQuery) -> port.DeadPage:
        return await self._engine.read(lambda tx: letters.dead_letters(tx, tenant, query))

    async def dead_groups(self, tenant: str, by: str, limit: int) -> list[port.DeadGroup]:
        return await self._engine.read(lambda tx: letters.dead_groups(tx, tenant, by, limit))

    async def requeue(self, tenant: str, keys: Sequence[RunKey]) -> list[RunKey]:
        return await self._engine.write(lambda tx: letters.requeue(tx, tenant, keys))

    async def discard(self, tenant: str, keys: Sequence[RunKey]) -> list[RunKey]:
        return await self._engine.write(lambda tx: letters.discard(tx, tenant, keys))


class _Hints:
    """Passes on what commits are about to whoever waits for it."""

    def __init__(self) -> None:
        self.wakes: list[Callable[[port.Hint], None]] = []

    def publish(self, hints: Iterable[str]) -> None:
        for hint in sorted(hints):
            for wake in self.wakes:
                wake(port.Hint(hint))
