"""What 50 clients that follow events cost the work: runs a second with and without them, in turn.

One `hourhand up` runs jobs of a no-op function, first as many as the goal names, then more than it can do. In each round
it is watched alone, then with 50 clients of another process on `/api/v1/events`, each of which must get something. Runs are
counted in the file, the processor's time from outside. Where there is room, a cost shows in processor time and not in runs.

    python -m benchmarks.event_clients [--clients 50] [--demand 5000] [--most 40000] [--seconds 15] [--rounds 3] [--quick]
"""

import argparse
import asyncio
import contextlib
import json
import signal
import sqlite3
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks._process import ROOT, Child, environment, hourhand_up
from benchmarks._report import Report, Size, at_least, options_of
from benchmarks._system import Tally, create, every, run, scratch, settings_for, system
from hourhand.core.instant import SECOND_US

CONCURRENCY = 4_000
_INTERVAL_S = 2
_PHASES = 8
_SETTLE_S = 3.0
_STOP_S = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """What a stretch of time held."""

    rate: float
    cpu_us: float  # of the server, per run


async def import_jobs(data: Path, demand: int) -> None:
    """As many jobs as ask for so many runs a second."""
    jobs, interval_us = demand * _INTERVAL_S, _INTERVAL_S * SECOND_US
    async with system(settings_for(data, concurrency=CONCURRENCY, horizon_s=10), Tally()) as parts:
        starts_at = parts.clock.now()
        await create(
            parts,
            [every(interval_us, interval_us * (n % _PHASES) // _PHASES, starts_at) for n in range(jobs)],
        )


def measure(up: Child, data: Path, seconds: float) -> Stretch:
    """Look at it from outside for a while."""
    runs, cpu_s, began_s = runs_in(data), up.cpu_s(), time.perf_counter()
    time.sleep(seconds)
    runs, cpu_s, took_s = runs_in(data) - runs, up.cpu_s() - cpu_s, time.perf_counter() - began_s
    if not runs:
        raise SystemExit("nothing ran")
    return Stretch(rate=runs / took_s, cpu_us=cpu_s / runs * 1e6)


def runs_in(data: Path) -> int:
    """How many rows history has had so far."""
    with contextlib.closing(sqlite3.connect(f"file:{data}?mode=ro", uri=True)) as connection:
        return int(connection.execute("SELECT coalesce(max(id), 0) FROM history").fetchone()[0])


@contextlib.contextmanager
def readers(port: int, clients: int) -> Iterator[None]:
    """Clients that are all connected; at the end each must have got something."""
    command = [sys.executable, "-m", "benchmarks._event_readers", str(port), str(clients)]
    with subprocess.Popen(command, cwd=ROOT, env=environment(), stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        if process.stdout.readline() != b"connected\n":
            raise SystemExit("the clients could not connect")
        try:
            yield
        finally:
            process.send_signal(signal.SIGTERM)
            said, _ = process.communicate(timeout=_STOP_S)
    got = json.loads(said)
    if min(got) < 1_000:
        raise SystemExit(f"a client got {min(got)} bytes only")


async def main() -> None:
    options = options_of(
        __doc__ or "",
        Size("clients", 50, 5, "clients that follow"),
        Size("demand", 5_000, 500, "runs a second that the jobs ask for"),
        Size("most", 40_000, 2_000, "runs a second that are more than it can do"),
        Size("seconds", 15.0, 2.0, "of each stretch"),
    )
    report = Report("event_clients", options)
    for demand in (options.demand, options.most):
        with scratch() as folder:
            data = Path(folder) / "bench.db"
            await import_jobs(data, demand)
            more = ("--import", "benchmarks._system", "--concurrency", str(CONCURRENCY))
            with hourhand_up(data, *more) as up:
                await asyncio.sleep(_SETTLE_S)
                tell(report, demand, *rounds(report, up, data, options))
    report.save()


def rounds(
    report: Report, up: Child, data: Path, options: argparse.Namespace
) -> tuple[list[Stretch], list[Stretch]]:
    """Alone and followed, in turn."""
    alone, followed = [], []
    for _ in range(options.rounds):
        alone.append(measure(up, data, options.seconds))
        with readers(up.port, options.clients):
            time.sleep(1)
            followed.append(measure(up, data, options.seconds))
        report.say(
            f"alone {alone[-1].rate:,.0f} runs/s at {alone[-1].cpu_us:.0f} us, "
            f"with {options.clients} clients {followed[-1].rate:,.0f} at {followed[-1].cpu_us:.0f} us"
        )
    return alone, followed


def tell(report: Report, demand: int, alone: list[Stretch], followed: list[Stretch]) -> None:
    report.figure(f"alone, asked for {demand:,}/s", "runs/s", [one.rate for one in alone])
    report.figure(f"followed, asked for {demand:,}/s", "runs/s", [one.rate for one in followed])
    ratio = [with_.rate / without.rate for with_, without in zip(followed, alone, strict=True)]
    report.figure(f"followed beside alone, asked for {demand:,}/s", "times", ratio, at_least(0.9))
    costs = [with_.cpu_us / without.cpu_us for with_, without in zip(followed, alone, strict=True)]
    report.figure(f"processor time of a run beside alone, asked for {demand:,}/s", "times", costs)
    report.note(
        f"spread of the ratio, asked for {demand:,}/s: {min(ratio):.2f} to {max(ratio):.2f}, mean {statistics.fmean(ratio):.2f}"
    )


if __name__ == "__main__":
    run(main())
