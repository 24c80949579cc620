"""A whole embedded system for benchmarks: the real services on a real file, without the API's server."""

import asyncio
import contextlib
import resource
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Coroutine, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import uvloop

from hourhand.clock import SystemClock
from hourhand.config import Settings
from hourhand.config.settings import (
    HistorySettings,
    LimitSettings,
    SchedulerSettings,
    StoreSettings,
    WorkerSettings,
)
from hourhand.core.instant import SECOND_US
from hourhand.core.lifecycle import Event
from hourhand.core.model import EveryTiming, JobSpec, Misfire, PythonTarget, Target
from hourhand.core.run import ClaimedRun, Settlement
from hourhand.functions import REGISTRY, Hourhand
from hourhand.ids import IdSource
from hourhand.services.jobs import NewJob
from hourhand.services.log_writer import LogRouter
from hourhand.telemetry import Telemetry
from hourhand.wiring.life import quiet_collector
from hourhand.wiring.parts import Parts, build_parts, build_targets, open_store
from hourhand.wiring.up import SWITCH_INTERVAL_S

TENANT = "default"
hh = Hourhand()


@hh.function
async def noop() -> None:
    """Does nothing, so that everything else is what is measured."""


NOOP = noop.function_name
_NOOP_TARGET = PythonTarget(function=NOOP)


@dataclass
class Tally:
    """What the system settled: counts and lateness."""

    succeeded: int = 0
    others: int = 0
    lags_us: list[int] = field(default_factory=list)
    keep_lags: bool = False

    def __call__(self, batch: Sequence[tuple[ClaimedRun, Settlement]]) -> None:
        for run, settlement in batch:
            if settlement.event is Event.SUCCEED:
                self.succeeded += 1
                if self.keep_lags and settlement.started_at is not None:
                    self.lags_us.append(settlement.started_at - run.due_at)
            else:
                self.others += 1

    async def steady(self, seconds: float) -> tuple[float, float]:
        """Runs a second that succeed during a stretch of work, and CPU seconds of this process per second of it."""
        before, cpu_s, began_s = self.succeeded, time.process_time(), time.perf_counter()
        await asyncio.sleep(seconds)
        count, took_s = self.succeeded - before, time.perf_counter() - began_s
        if self.others:
            raise SystemExit(f"{self.others} runs did not succeed")
        return count / took_s, (time.process_time() - cpu_s) / took_s


def settings_for(path: Path, *, concurrency: int, horizon_s: int = 10, lead_s: float = 2.0) -> Settings:
    """Settings of a benchmark; intervals below a second are allowed, so that few jobs can load it fully."""
    return Settings(
        store=StoreSettings(url=f"sqlite:///{path}"),
        scheduler=SchedulerSettings(horizon_us=horizon_s * SECOND_US, lead_us=int(lead_s * SECOND_US)),
        worker=WorkerSettings(concurrency=concurrency),
        limits=LimitSettings(min_interval_us=1000),
        history=HistorySettings(),
    )


@contextlib.asynccontextmanager
async def system(settings: Settings, tally: Tally) -> AsyncIterator[Parts]:
    """Everything but the API's server; `parts.node.start()` begins the work."""
    clock = SystemClock()
    store = open_store(settings, clock)
    logs = LogRouter()
    parts = build_parts(
        settings,
        store=store,
        clock=clock,
        ids=IdSource(clock),
        telemetry=Telemetry(),
        targets=build_targets(settings, clock, REGISTRY, log=logs),
        logs=logs,
        settled=tally,
    )
    try:
        yield parts
    finally:
        await parts.node.stop(0)
        await parts.close()


def every(
    interval_us: int,
    phase_at: int,
    starts_at: int | None = None,
    name: str = "bench",
    target: Target = _NOOP_TARGET,
) -> NewJob:
    """A recurring job, a no-op unless told otherwise, that is never skipped for being late."""
    return NewJob(
        spec=JobSpec(
            name=name,
            timing=EveryTiming(interval_us=interval_us, phase_at=phase_at),
            starts_at=starts_at,
            target=target,
            misfire=Misfire(grace_us=3600 * SECOND_US),
        )
    )


async def create(parts: Parts, jobs: Sequence[NewJob], batch: int = 1000) -> None:
    """Import jobs through the service, in batches; while one is on its way to the disk the next is checked."""
    turns = asyncio.Semaphore(2)

    async def send(start: int) -> None:
        async with turns:
            answers = await parts.jobs.create_many(TENANT, jobs[start : start + batch])
        wrong = [answer for answer in answers if isinstance(answer, Exception)]
        if wrong:
            raise wrong[0]

    await asyncio.gather(*(send(start) for start in range(0, len(jobs), batch)))


def run(main: Coroutine[Any, Any, None]) -> None:
    """Run a benchmark as `hourhand up` runs: uvloop, a short switch interval, a quiet collector."""
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main)


def quiet() -> None:
    """Let the collector ignore what exists now, as `hourhand up` does once it runs."""
    quiet_collector()


def memory_mb() -> float:
    """Resident memory of this process now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6


def scratch() -> "tempfile.TemporaryDirectory[str]":
    """A directory for the store's file, on the disk of the repository rather than in memory."""
    return tempfile.TemporaryDirectory(prefix="bench-", dir=Path.cwd())
