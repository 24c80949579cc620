"""A running process of the cluster: its duties, who wakes whom, and how it stops.

Starts nothing of its own but tasks; what it runs on was built in `wiring`.
"""

import asyncio
import contextlib

from hourhand.clock import Clock
from hourhand.errors import Unavailable
from hourhand.ports.store import Hint, Store
from hourhand.services.loop import Duty
from hourhand.services.planner import Planner
from hourhand.services.sweeper import Sweeper
from hourhand.services.ticker import Ticker
from hourhand.services.worker import Worker
from hourhand.telemetry import Telemetry, logger

_STEP_PATIENCE_S = 5.0

_log = logger("hourhand.node")


class Node:
    """Planner, worker and sweeper on one event loop."""

    def __init__(
        self,
        *,
        store: Store,
        planner: Planner,
        worker: Worker,
        sweeper: Sweeper,
        clock: Clock,
        telemetry: Telemetry,
    ) -> None:
        self._worker = worker
        self._sweeper = sweeper
        self._clock = clock
        self._plan = Duty("plan", planner.step, clock, telemetry)
        self._claim = Duty("claim", worker.step, clock, telemetry)
        self._settle = Duty("settle", worker.settle_step, clock, telemetry)
        self._beat = Duty("heartbeat", worker.heartbeat, clock, telemetry, polls=False)
        self._cancel = Duty("cancel", worker.cancel_step, clock, telemetry)
        self._sweep = Duty("sweep", sweeper.step, clock, telemetry)
        self._ticker: Ticker | None = None
        self._tasks: dict[Duty, asyncio.Task[None]] = {}
        store.subscribe(self._hinted)

    @property
    def parts(self) -> dict[str, str | None]:
        """Each duty and what is wrong with it, None where nothing is."""
        return {duty.name: "stopped" if task.done() else duty.trouble for duty, task in self._tasks.items()}

    async def start(self) -> None:
        """Join, rescue what an earlier process left, and begin all duties."""
        self._ticker = Ticker(self._worker.tick, self._clock)
        self._worker.on_timer = self._ticker.wake
        self._worker.on_room = self._claim.wake
        self._worker.on_outcome = self._settle.wake
        await self._worker.join()
        while await self._sweeper.rescue(self._clock.now()):
            pass
        for duty in (self._plan, self._claim, self._settle, self._beat, self._cancel, self._sweep):
            self._tasks[duty] = asyncio.create_task(duty.run(), name=duty.name)

    async def stop(self, patience_us: int) -> None:
        """Drain: no new runs, those in hand end and are committed or given back, then everything stops."""
        await self._end(self._plan, self._claim, self._sweep)
        try:
            await self._worker.drain(patience_us)
        except Unavailable as error:
            _log.error("not all could be committed; the next start takes it up", why=error.message)
        finally:
            await self._end(self._settle, self._cancel, self._beat)
            if self._ticker is not None:
                self._ticker.stop()
        with contextlib.suppress(Unavailable):  # then the lease runs out by itself
            await self._worker.leave()

    async def _end(self, *duties: Duty) -> None:
        """Let the steps under way finish; a step that does not is cut short."""
        tasks = [self._tasks[duty] for duty in duties if duty in self._tasks]
        for duty in duties:
            duty.stop()
        if not tasks:
            return
        _, late = await asyncio.wait(tasks, timeout=_STEP_PATIENCE_S)
        for task in late:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    def _hinted(self, hint: Hint) -> None:
        match hint:
            case Hint.CLOCKS:
                self._plan.wake()
            case Hint.RUNS:
                self._claim.wake()
            case Hint.CANCEL:
                self._cancel.wake()
            case Hint.JOBS:
                pass  # the sweeper looks every second
