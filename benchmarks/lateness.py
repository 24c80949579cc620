"""How late jobs start when many are due at once.

A herd of daily no-op jobs with one rule, imported into an empty store, in a worker that has room for all of
them and takes them `lead` ahead of time as always. `at once`: all are due at the same instant, so that the
last can only start after all the others have: the figure is mostly the time to start that many. `over a
second`: the same herd with a jitter of one second, which is what a thoughtful user asks for.
Lateness is from the due time to the start of the function, of every run: `started_at - due_at`.

    python -m benchmarks.lateness [--few 10000] [--many 100000] [--lead 2] [--rounds 3] [--quick]
"""

import asyncio
import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks._report import Report, Size, below, options_of, percentile
from benchmarks._system import (
    NOOP,
    Tally,
    create,
    quiet,
    run,
    scratch,
    settings_for,
    system,
)
from hourhand.core.instant import DAY_US, SECOND_US
from hourhand.core.model import EveryTiming, JobSpec, Misfire, PythonTarget
from hourhand.core.run import ClaimedRun, Settlement
from hourhand.services.jobs import NewJob

IMPORT_RATE = 10_000  # jobs a second that the import surely reaches
PATIENCE_S = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Lateness:
    """Of one herd, in milliseconds, and how long it took from the due time until all was recorded."""

    p50: float
    p99: float
    most: float
    recorded_s: float


class _Herd(Tally):
    """Notices when the last of some runs is recorded."""

    def __init__(self, jobs: int) -> None:
        super().__init__(keep_lags=True)
        self._jobs = jobs
        self.all_settled = asyncio.Event()

    def __call__(self, batch: Sequence[tuple[ClaimedRun, Settlement]]) -> None:
        super().__call__(batch)
        if self.succeeded + self.others >= self._jobs:
            self.all_settled.set()


async def measure(jobs: int, *, spread: bool, lead_s: float = 2.0) -> Lateness:
    """Let one herd fire."""
    tally = _Herd(jobs)
    with scratch() as folder:
        settings = settings_for(Path(folder) / "bench.db", concurrency=jobs, lead_s=lead_s)
        async with system(settings, tally) as parts:
            due_at = parts.clock.now() + int((jobs / IMPORT_RATE + lead_s + 4) * SECOND_US)
            await create(parts, [_daily(due_at, SECOND_US if spread else 0) for _ in range(jobs)])
            if parts.clock.now() > due_at - int((lead_s + 1) * SECOND_US):
                raise SystemExit("the import took too long for this measurement; lower IMPORT_RATE")
            await parts.node.start()
            quiet()
            await asyncio.sleep(max(0, due_at - parts.clock.now()) / SECOND_US)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(tally.all_settled.wait(), PATIENCE_S)
            recorded_s = (parts.clock.now() - due_at) / SECOND_US
    if tally.succeeded != jobs or tally.others:
        raise SystemExit(f"of {jobs:,} runs {tally.succeeded:,} succeeded and {tally.others:,} did not")
    lags_ms = sorted(lag_us / 1000 for lag_us in tally.lags_us)
    if lags_ms[0] < 0:
        raise SystemExit(f"a run started {-lags_ms[0]:g} ms before its time")
    return Lateness(
        p50=percentile(lags_ms, 0.5), p99=percentile(lags_ms, 0.99), most=lags_ms[-1], recorded_s=recorded_s
    )


def _daily(due_at: int, jitter_us: int) -> NewJob:
    return NewJob(
        spec=JobSpec(
            name="herd",
            timing=EveryTiming(interval_us=DAY_US, phase_at=due_at),
            target=PythonTarget(function=NOOP),
            misfire=Misfire(grace_us=3600 * SECOND_US),
            jitter_us=jitter_us,
        )
    )


async def main() -> None:
    options = options_of(
        __doc__ or "",
        Size("few", 10_000, 500, "jobs of the small herd"),
        Size("many", 100_000, 2_000, "jobs of the large herd"),
        Size("lead", 2.0, 2.0, "seconds that a worker may take a run ahead of its time"),
    )
    report = Report("lateness", options)
    for jobs, goal_ms in ((options.few, 150), (options.many, 1500)):
        for spread, shape in ((False, "at once"), (True, "over a second")):
            rounds = []
            for _ in range(options.rounds):
                found = await measure(jobs, spread=spread, lead_s=options.lead)
                report.say(
                    f"{jobs:>9,} {shape}: p50 {found.p50:,.1f} ms, p99 {found.p99:,.1f} ms, most "
                    f"{found.most:,.1f} ms; all recorded {found.recorded_s:.2f} s after the due time"
                )
                rounds.append(found)
            name = f"{jobs:,} jobs {shape}"
            report.figure(f"{name}, p50 lateness", "ms", [found.p50 for found in rounds])
            report.figure(f"{name}, p99 lateness", "ms", [found.p99 for found in rounds], below(goal_ms))
            report.figure(f"{name}, most", "ms", [found.most for found in rounds])
    report.save()


if __name__ == "__main__":
    run(main())
