"""How many commands a second can be run, with every outcome recorded.

The whole cycle of `throughput`, but each run is a process of its own (/bin/true): started, watched, waited for,
its group ended. The jobs ask for more than that, so it runs as fast as it can. In turn with it, a bare loop of
`asyncio.create_subprocess_exec` with as many under way: what processes cost without a scheduler. In a second pass
each command also says a line, which is kept: what logs cost. Commands, worker and store share the cores.

    python -m benchmarks.shell_runs [--jobs 5000] [--demand 2000] [--seconds 10] [--rounds 3] [--quick]
"""

import asyncio
import dataclasses
import time
from pathlib import Path

from benchmarks._report import Report, Size, at_least, options_of
from benchmarks._system import Tally, create, every, quiet, run, scratch, settings_for, system
from hourhand.config.settings import WorkerSettings
from hourhand.core.instant import SECOND_US
from hourhand.core.model import ShellTarget

CONCURRENCY = 64
WARM_S = 2.0
SILENT = ("/bin/true",)
TALKING = ("/bin/echo", "a line that is kept")


async def recorded(argv: tuple[str, ...], jobs: int, demand: int, seconds: float) -> tuple[float, float]:
    """Commands a second that were run and recorded, and CPU seconds of the worker per second of it."""
    tally = Tally()
    interval_us = max(1, jobs * SECOND_US // demand)
    with scratch() as folder:
        settings = dataclasses.replace(
            settings_for(Path(folder) / "bench.db", concurrency=CONCURRENCY),
            worker=WorkerSettings(concurrency=CONCURRENCY, shell=True),
        )
        async with system(settings, tally) as parts:
            starts_at = parts.clock.now() + 3 * SECOND_US
            target = ShellTarget(argv=argv)
            news = [
                every(interval_us, interval_us * n // jobs, starts_at, "command", target) for n in range(jobs)
            ]
            await create(parts, news)
            await parts.node.start()
            quiet()
            await asyncio.sleep(max(0, starts_at - parts.clock.now()) / SECOND_US + WARM_S)
            return await tally.steady(seconds)


async def bare(argv: tuple[str, ...], seconds: float) -> float:
    """Commands a second of a loop that does nothing else."""
    count = 0
    end_s = time.perf_counter() + seconds

    async def call() -> None:
        nonlocal count
        while time.perf_counter() < end_s:
            process = await asyncio.create_subprocess_exec(
                *argv,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
                start_new_session=True,
            )
            await process.communicate()
            if process.returncode:
                raise SystemExit(f"{argv[0]} ended with {process.returncode}")
            count += 1

    await asyncio.gather(*(call() for _ in range(CONCURRENCY)))
    return count / seconds


def _bare(argv: tuple[str, ...], seconds: float) -> float:
    """The same on a plain loop of its own."""
    with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
        return runner.run(bare(argv, seconds))


async def main() -> None:
    options = options_of(
        __doc__ or "",
        Size("jobs", 5_000, 500, "jobs that run a command"),
        Size("demand", 2_000, 1_000, "commands a second that they ask for"),
        Size("seconds", 10.0, 2.0, "of steady work to measure"),
    )
    report = Report("shell_runs", options)
    silent, talking, alone = [], [], []
    for _ in range(options.rounds):
        rate, cpu = await recorded(SILENT, options.jobs, options.demand, options.seconds)
        report.say(f"/bin/true, recorded: {rate:>8,.0f} runs/s  ({cpu:.2f} cores beside the commands')")
        silent.append(rate)
        rate, cpu = await recorded(TALKING, options.jobs, options.demand, options.seconds)
        report.say(f"/bin/echo, recorded: {rate:>8,.0f} runs/s  ({cpu:.2f} cores beside the commands')")
        talking.append(rate)
        alone.append(await asyncio.to_thread(_bare, SILENT, options.seconds / 2))
        report.say(f"asyncio alone: {alone[-1]:>8,.0f} commands/s")
    rate = report.figure("/bin/true, recorded", "runs/s", silent, at_least(300))
    report.figure("/bin/echo, recorded and its line kept", "runs/s", talking)
    most = report.figure("create_subprocess_exec alone", "commands/s", alone)
    report.note(f"recorded commands reach {rate / most:.0%} of the bare loop")
    report.save()


if __name__ == "__main__":
    run(main())
