"""How many runs a second go the whole way: plan, claim, no-op function, finish with history.

The jobs ask for more than the system can do, so it runs as fast as it can; what it settles in a stretch
of steady time is counted. The same with few jobs beside it says whether the number of jobs matters.

    python -m benchmarks.throughput [--jobs 1000000] [--few 10000] [--seconds 30] [--rounds 3]
"""

import argparse
import asyncio
import statistics
import time
from pathlib import Path

from benchmarks._system import (
    SECOND_US,
    Parts,
    Tally,
    create,
    every,
    quiet,
    run,
    scratch,
    settings_for,
    system,
)

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
            starts_at = parts.clock.now() + (jobs // IMPORT_RATE + 5) * SECOND_US
            await create(
                parts,
                [every(interval_us, interval_us * (n % phases) // phases, starts_at) for n in range(jobs)],
            )
            quiet()
            await until(parts, starts_at - HORIZON_S * SECOND_US)
            await parts.node.start()
            await until(parts, starts_at + 5 * SECOND_US)  # the pipeline is full
            before, cpu, began = tally.succeeded, time.process_time(), time.perf_counter()
            await asyncio.sleep(seconds)
            count, took = tally.succeeded - before, time.perf_counter() - began
            if tally.others:
                raise SystemExit(f"{tally.others} runs did not succeed")
            return count / took, (time.process_time() - cpu) / took


async def until(parts: Parts, at: int) -> None:
    """Wait for an instant; the import must not have taken longer."""
    wait_us = at - parts.clock.now()
    if wait_us < 0:
        raise SystemExit("the import took too long for this measurement; lower IMPORT_RATE")
    await asyncio.sleep(wait_us / SECOND_US)


async def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--jobs", type=int, default=1_000_000)
    parser.add_argument("--few", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    rates: dict[int, float] = {}
    for jobs in (options.few, options.jobs):
        found = []
        for _ in range(options.rounds):
            rate, cpu = await measure(jobs, options.seconds)
            print(
                f"{jobs:>10,} jobs: {rate:>8,.0f} runs/s  ({cpu:.2f} cores, {1e6 / rate:.1f} us a run)",
                flush=True,
            )
            found.append(rate)
        rates[jobs] = statistics.median(found)
    many, few = rates[options.jobs], rates[options.few]
    print(
        f"median with {options.jobs:,} jobs: {many:,.0f} runs/s (goal 25,000); a run costs {few / many:.2f}x (goal 1.3x)"
    )


if __name__ == "__main__":
    run(main())
