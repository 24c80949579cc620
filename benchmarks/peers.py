"""The same work done by others, in the same run on the same machine.

APScheduler 3 (newest), installed into a temporary environment: its BackgroundScheduler with jobs in memory, and
with jobs in a SQLite file by its SQLAlchemyJobStore, both with its default of ten threads. Two questions: how
fast are jobs added, and how late do they start when all are due at the same instant. Read with care:
in memory nothing survives a restart; on SQLite it keeps the job durably, but neither a run's beginning nor its
outcome, where hourhand commits both. Its functions run on threads, ours here on the event loop.

    python -m benchmarks.peers [--add 10000] [--due 10000] [--rounds 3] [--quick]
"""

import asyncio
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks._process import ROOT
from benchmarks._report import Report, Size, options_of
from benchmarks._system import Tally, create, every, quiet, run, scratch, settings_for, system
from benchmarks.lateness import measure as measure_lateness
from hourhand.core.instant import DAY_US

REQUIREMENTS = ("apscheduler>=3.11,<4", "sqlalchemy>=2")
_INSTALL_S = 300
_PEER_S = 1200
_PLACES = (("in memory", "memory"), ("on SQLite", "peer.db"))


class Peer:
    """APScheduler in an environment of its own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._python = folder / "env" / "bin" / "python"

    def install(self) -> str | None:
        """Why it could not be installed; None when it could."""
        steps = (
            [sys.executable, "-m", "venv", str(self._folder / "env")],
            [str(self._python), "-m", "pip", "install", "--quiet", "--no-input", *REQUIREMENTS],
        )
        for step in steps:
            try:
                done = subprocess.run(step, capture_output=True, text=True, timeout=_INSTALL_S, check=False)
            except (OSError, subprocess.TimeoutExpired) as error:
                return type(error).__name__
            if done.returncode:
                return (done.stderr.strip().splitlines() or ["no reason given"])[-1][:200]
        return None

    def ask(self, what: str, place: str, count: int) -> dict[str, Any]:
        """One measurement in a new process; `error` says why there is none."""
        with tempfile.TemporaryDirectory(prefix="bench-", dir=Path.cwd()) as folder:
            where = place if place == "memory" else str(Path(folder) / place)
            command = [
                str(self._python),
                str(ROOT / "benchmarks" / "_apscheduler.py"),
                what,
                where,
                str(count),
            ]
            try:
                done = subprocess.run(command, capture_output=True, text=True, timeout=_PEER_S, check=False)
            except subprocess.TimeoutExpired:
                return {"error": f"not done after {_PEER_S} s"}
        if done.returncode:
            return {"error": (done.stderr.strip().splitlines() or ["no reason given"])[-1][:200]}
        answer: dict[str, Any] = json.loads(done.stdout)
        return answer


async def add_ours(count: int, callers: int | None) -> float:
    """Jobs a second: by some callers at once, each waiting for its job to be on the disk; None is one import."""
    with scratch() as folder:
        async with system(settings_for(Path(folder) / "bench.db", concurrency=1_000), Tally()) as parts:
            await parts.node.start()
            phase_at = parts.clock.now() + DAY_US // 2
            jobs = [every(DAY_US, phase_at, phase_at) for _ in range(count)]
            quiet()
            began = time.perf_counter()
            if callers is None:
                await create(parts, jobs)
            else:
                waiting = iter(jobs)

                async def call() -> None:
                    for job in waiting:
                        await parts.jobs.create("default", job)

                await asyncio.gather(*(call() for _ in range(callers)))
            return count / (time.perf_counter() - began)


async def compare_adding(report: Report, peer: Peer | None, count: int, rounds: int) -> None:
    """Who adds jobs faster."""
    ways = (("one after another", 1), ("by 64 at once", 64), ("as one import", None))
    for name, callers in ways:
        rates = [await add_ours(count, callers) for _ in range(rounds)]
        report.figure(f"add {count:,} jobs, hourhand {name}", "jobs/s", rates)
    if peer is None:
        return
    for name, place in _PLACES:
        answers = [await asyncio.to_thread(peer.ask, "add", place, count) for _ in range(rounds)]
        _tell(report, f"add {count:,} jobs, APScheduler {name}", "jobs/s", answers, "rate")


async def compare_lateness(report: Report, peer: Peer | None, count: int, rounds: int) -> None:
    """Who starts a herd sooner."""
    ours = [await measure_lateness(count, spread=False) for _ in range(rounds)]
    name = f"{count:,} jobs at once"
    report.figure(f"{name}, hourhand, p50 lateness", "ms", [found.p50 for found in ours])
    report.figure(f"{name}, hourhand, p99 lateness", "ms", [found.p99 for found in ours])
    if peer is None:
        return
    for place_name, place in _PLACES:
        answers = [await asyncio.to_thread(peer.ask, "fire", place, count) for _ in range(rounds)]
        for share in ("p50", "p99"):
            _tell(report, f"{name}, APScheduler {place_name}, {share} lateness", "ms", answers, share)


def _tell(report: Report, name: str, unit: str, answers: list[dict[str, Any]], field: str) -> None:
    errors = [answer["error"] for answer in answers if "error" in answer]
    if errors:
        report.note(f"{name}: no figure: {errors[0]}")
        return
    report.figure(name, unit, [answer[field] for answer in answers])


async def main() -> None:
    options = options_of(
        __doc__ or "",
        Size("add", 10_000, 300, "jobs to add"),
        Size("due", 10_000, 200, "jobs due at the same instant"),
    )
    report = Report("peers", options)
    with tempfile.TemporaryDirectory(prefix="bench-peers-") as folder:
        peer: Peer | None = Peer(Path(folder))
        assert peer is not None
        why = await asyncio.to_thread(peer.install)
        if why is not None:
            report.note(f"APScheduler skipped: it could not be installed ({why})")
            peer = None
        else:
            answer = await asyncio.to_thread(peer.ask, "add", "memory", 1)
            report.note(f"APScheduler {answer.get('version', 'unknown')}")
        await compare_adding(report, peer, options.add, options.rounds)
        await compare_lateness(report, peer, options.due, options.rounds)
    report.save()


if __name__ == "__main__":
    run(main())
