"""How many runs a second go the whole way: plan, claim, no-op function, finish with history.

The jobs ask for more than the system can do, so it runs as fast as it can; what it settles in a stretch
of steady time is counted. The same with few jobs beside it says whether the number of jobs matters.

    python -m benchmarks.throughput [--jobs 1000000] [--few 10000] [--seconds 30] [--rounds 3] [--quick]
"""

import asyncio
from pathlib import Path

from benchmarks._report import Report, Size, at_least, below, options_of
from benchmarks._system import Tally, create, every, quiet, run, scratch, settings_for, system
from hourhand.core.instant import SECOND_US
from hourhand.wiring.parts import Parts

CONCURRENCY = 8_000
DEMAND = 45_000  # runs a second that the jobs ask for
HORIZON_S = 10
IMPORT_RATE = 10_000  # jobs a second that the import surely reaches


async def measure(jobs: int, seconds: float) -> tuple[float, float]:
    """Runs a second in steady state, and CPU seconds per second of it."""
    tally = Tally()
    interval_us = max(1, jobs * SECOND_US // DEMAND)
    phases = min(jobs, max(1, interval_us // 250_000))
    with scratch() as folder:
        async with system(
            settings_for(Path(folder) / "bench.db", concurrency=CONCURRENCY, horizon_s=HORIZON_S), tally
        ) as parts:
            starts_at = parts.clock.now() + (jobs // IMPORT_RATE + HORIZON_S + 5) * SECOND_US
            await create(
                parts,
                [every(interval_us, interval_us * (n % phases) // phases, starts_at) for n in range(jobs)],
            )
            quiet()
            await until(parts, starts_at - HORIZON_S * SECOND_US)
            await parts.node.start()
            await until(parts, starts_at + 5 * SECOND_US)  # the pipeline is full
            return await tally.steady(seconds)


async def until(parts: Parts, at: int) -> None:
    """Wait for an instant; the import must not have taken longer."""
    wait_us = at - parts.clock.now()
    if wait_us < 0:
        raise SystemExit("the import took too long for this measurement; lower IMPORT_RATE")
    await asyncio.sleep(wait_us / SECOND_US)


async def main() -> None:
    options = options_of(
        __doc__ or "",
        Size("jobs", 1_000_000, 20_000, "jobs in the large store"),
        Size("few", 10_000, 5_000, "jobs in the small one"),
        Size("seconds", 30.0, 3.0, "of steady work to measure"),
    )
    report = Report("throughput", options)
    medians = []
    for jobs, goal in ((options.few, None), (options.jobs, at_least(25_000))):
        rates = []
        for _ in range(options.rounds):
            rate, cpu = await measure(jobs, options.seconds)
            report.say(
                f"{jobs:>10,} jobs: {rate:>8,.0f} runs/s  ({cpu:.2f} cores, {1e6 / rate:.1f} us a run)"
            )
            rates.append(rate)
        medians.append(report.figure(f"whole cycle with {jobs:,} jobs", "runs/s", rates, goal))
    few, many = medians
    name = f"cost of a run with {options.jobs:,} jobs beside {options.few:,}"
    report.figure(name, "times", [few / many], below(1.3))
    report.save()


if __name__ == "__main__":
    run(main())
