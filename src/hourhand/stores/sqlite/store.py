"""The SQLite store: how a file is opened for one process, and the hot verbs."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from hourhand.clock import Clock as TimeSource
from hourhand.core.identity import SEGMENTS
from hourhand.core.instant import DAY_US, SECOND_US
from hourhand.core.plan import ClockPlan
from hourhand.core.quota import Quota
from hourhand.core.run import Settlement
from hourhand.ports import store as port
from hourhand.ports.upcoming import UpcomingPage, UpcomingQuery
from hourhand.stores.relational import upcoming
from hourhand.stores.relational.membership import Settings
from hourhand.stores.relational.store import Engine, Hints, RelationalStore
from hourhand.stores.sqlite import claims, file, planning, settling
from hourhand.stores.sqlite.engine import InlineEngine, ThreadedEngine
from hourhand.stores.sqlite.finished import finished_runs


class SqliteStore(RelationalStore):
    """One file, one process; see `ports.store` for the contract of each verb."""

    def __init__(
        self,
        engine: Engine,
        clock: TimeSource,
        settings: Settings,
        hints: Hints,
        report_key: bytes,
        lock: IO[str] | None = None,
    ) -> None:
        super().__init__(engine, settings, hints, finished_runs)
        self._clock = clock
        self._report_key = report_key
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
        quota: Quota = Quota(),  # noqa: B008 - frozen
    ) -> "SqliteStore":
        """Open a file for this process alone, with a writer thread; CannotStart says why it cannot be."""
        path = Path(os.path.realpath(path))  # one lock per file, by whatever name it is called
        hints = Hints()
        holder = file.lock(path)
        try:
            writer = file.open_writer(path, segments)
            report_key = file.report_key(writer)
        except BaseException:
            holder.close()
            raise
        engine = ThreadedEngine(path, writer, clock, hints.publish)
        settings = Settings(segments=segments, lead_us=lead_us, keep_us=keep_us, quota=quota)
        return cls(engine, clock, settings, hints, report_key, holder)

    @classmethod
    def in_memory(
        cls,
        *,
        clock: TimeSource,
        segments: int = SEGMENTS,
        lead_us: int = 2 * SECOND_US,
        keep_us: int = 30 * DAY_US,
        quota: Quota = Quota(),  # noqa: B008 - frozen
    ) -> "SqliteStore":
        """A store without threads or files, for simulations on a virtual clock."""
        hints = Hints()
        writer = file.open_writer(None, segments)
        engine = InlineEngine(writer, clock, hints.publish)
        settings = Settings(segments=segments, lead_us=lead_us, keep_us=keep_us, quota=quota)
        return cls(engine, clock, settings, hints, file.report_key(writer))

    async def now(self) -> int:
        return self._clock.now()

    async def close(self) -> None:
        await super().close()
        if self._lock is not None:
            self._lock.close()

    async def plan(self, plans: Sequence[ClockPlan]) -> int:
        return await self._engine.write(lambda tx: planning.plan(tx, plans))

    async def claim(self, request: port.ClaimRequest) -> port.Claim:
        claimed = await self._engine.write(lambda tx: claims.claim(tx, request))
        return await claimed.decoded()

    async def upcoming(self, query: UpcomingQuery) -> UpcomingPage:
        segments = self._settings.segments
        return await self._engine.read(lambda tx: upcoming.upcoming(tx, query, segments, claims.look_ahead))

    async def purge(self, history_before_at: int, dead_before_at: int, limit: int) -> bool:
        more = await super().purge(history_before_at, dead_before_at, limit)
        old = await self._engine.write(lambda tx: tx.run("purge_deeds", (limit, history_before_at)))
        return more or old >= limit

    async def settle(self, worker: str, settlements: Sequence[Settlement]) -> list[Settlement]:
        return await self._engine.write(lambda tx: settling.settle(tx, worker, settlements))
