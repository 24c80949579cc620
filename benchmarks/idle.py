"""What a million daily jobs cost while nothing is due.

The jobs are spread over all minutes of the day and 24 zones, so nearly each has a clock of its own: the worst
case of planning. They are imported, then the real `hourhand up` is started on that file, as after a restart,
left alone until it has settled, and watched for a minute from outside. In that minute about one job in 1,440 does
fire, at its full minute; the mean counts it in, the median second does not.

    python -m benchmarks.idle [--jobs 1000000] [--settle 90] [--seconds 60] [--rounds 3] [--quick]
"""

import asyncio
import statistics
import time
from pathlib import Path

from benchmarks._process import hourhand_up
from benchmarks._report import Report, Size, below, options_of
from benchmarks._system import NOOP, Tally, create, run, scratch, settings_for, system
from hourhand.core.model import CronTiming, JobSpec, PythonTarget
from hourhand.services.jobs import NewJob

# fmt: off
ZONES = (
    "Pacific/Honolulu", "America/Anchorage", "America/Los_Angeles", "America/Denver", "America/Chicago", "America/New_York",
    "America/Halifax", "America/St_Johns", "America/Sao_Paulo", "Atlantic/Azores", "UTC", "Europe/London",
    "Europe/Berlin", "Africa/Cairo", "Europe/Moscow", "Asia/Tehran", "Asia/Dubai", "Asia/Kolkata",
    "Asia/Kathmandu", "Asia/Bangkok", "Asia/Shanghai", "Asia/Tokyo", "Australia/Sydney", "Pacific/Auckland",
)
# fmt: on
_MINUTES = 1440
_CHUNK = 50_000


async def import_jobs(data: Path, jobs: int) -> float:
    """A file with this many jobs; answers how many a second went in."""
    began = time.perf_counter()
    async with system(settings_for(data, concurrency=1_000), Tally()) as parts:
        for start in range(0, jobs, _CHUNK):
            await create(parts, [_daily(n) for n in range(start, min(jobs, start + _CHUNK))])
    return jobs / (time.perf_counter() - began)


def watch(data: Path, settle_s: float, seconds: int) -> tuple[float, float, float]:
    """Mean share of a core in percent, that of the median second, and resident memory in MB."""
    with hourhand_up(data, "--import", "benchmarks._system") as up:
        time.sleep(settle_s)
        shares = []
        first_cpu_s = last_cpu_s = up.cpu_s()
        first_s = last_s = time.monotonic()
        for _ in range(seconds):
            time.sleep(1)
            cpu_s, now_s = up.cpu_s(), time.monotonic()
            shares.append((cpu_s - last_cpu_s) / (now_s - last_s) * 100)
            last_cpu_s, last_s = cpu_s, now_s
        mean = (last_cpu_s - first_cpu_s) / (last_s - first_s) * 100
        return mean, statistics.median(shares), up.memory_mb()


def _daily(n: int) -> NewJob:
    minute, zone = n % _MINUTES, ZONES[n // _MINUTES % len(ZONES)]
    return NewJob(
        spec=JobSpec(
            name=f"daily-{n}",
            timing=CronTiming(expression=f"{minute % 60} {minute // 60} * * *", tz=zone),
            target=PythonTarget(function=NOOP),
        )
    )


async def main() -> None:
    options = options_of(
        __doc__ or "",
        Size("jobs", 1_000_000, 5_000, "daily jobs"),
        Size("settle", 90.0, 3.0, "seconds to leave it alone before looking"),
        Size("seconds", 60, 5, "seconds to look at"),
    )
    report = Report("idle", options)
    with scratch() as folder:
        data = Path(folder) / "bench.db"
        rate = await import_jobs(data, options.jobs)
        size_mb = data.stat().st_size / 1e6
        report.note(f"imported {options.jobs:,} jobs at {rate:,.0f} a second into {size_mb:,.0f} MB")
        means, medians, memories = [], [], []
        for _ in range(options.rounds):
            mean, median, memory_mb = await asyncio.to_thread(watch, data, options.settle, options.seconds)
            report.say(f"{mean:.2f} % of a core, {median:.2f} % in the median second; {memory_mb:.0f} MB")
            means.append(mean)
            medians.append(median)
            memories.append(memory_mb)
    report.figure(f"{options.jobs:,} daily jobs, mean", "% of a core", means, below(3))
    report.figure(f"{options.jobs:,} daily jobs, median second", "% of a core", medians)
    report.figure(f"{options.jobs:,} daily jobs, resident memory", "MB", memories, below(150))
    report.save()


if __name__ == "__main__":
    run(main())
