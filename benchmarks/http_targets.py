"""How many HTTP targets a second can be called, with every outcome recorded.

The whole cycle of `throughput`, but each run is a POST to a server in a process of its own that answers at
once, with all headers, the guard and the kept answer. The jobs ask for more than that, so it runs as fast as it
can. In turn with it, the HTTP client alone (aiohttp, as many connections) against the same server: what calls
cost without a scheduler. Server, client and store share the cores.

    python -m benchmarks.http_targets [--jobs 100000] [--demand 8000] [--seconds 20] [--rounds 3] [--quick]
"""

import asyncio
import dataclasses
import time
import urllib.request
from pathlib import Path

import aiohttp

from benchmarks._process import server
from benchmarks._report import Report, Size, at_least, options_of
from benchmarks._system import Tally, create, every, quiet, run, scratch, settings_for, system
from hourhand.config.settings import TargetSettings
from hourhand.core.instant import SECOND_US
from hourhand.core.model import HttpTarget
from hourhand.targets.http import HttpSettings

CONCURRENCY = 1_000  # the default
CONNECTIONS = HttpSettings().connections_per_origin
IMPORT_RATE = 10_000  # jobs a second that the import surely reaches
WARM_S = 4.0
_BODY = b'{"n":1}'


async def recorded(port: int, jobs: int, demand: int, seconds: float) -> tuple[float, float]:
    """Runs a second that were called and recorded, and CPU seconds per second of it."""
    tally = Tally()
    interval_us = max(1, jobs * SECOND_US // demand)
    with scratch() as folder:
        settings = dataclasses.replace(
            settings_for(Path(folder) / "bench.db", concurrency=CONCURRENCY),
            targets=TargetSettings(allow_hosts=("127.0.0.1",)),
        )
        async with system(settings, tally) as parts:
            starts_at = parts.clock.now() + (jobs // IMPORT_RATE + 3) * SECOND_US
            phases = max(1, min(jobs, interval_us // 100_000))
            target = HttpTarget(url=f"http://127.0.0.1:{port}/hook")
            news = [
                every(interval_us, interval_us * (n % phases) // phases, starts_at, "call", target)
                for n in range(jobs)
            ]
            await create(parts, news)
            await parts.node.start()
            quiet()
            await asyncio.sleep(max(0, starts_at - parts.clock.now()) / SECOND_US + WARM_S)
            return await tally.steady(seconds)


async def bare(port: int, seconds: float) -> float:
    """Calls a second of the client alone."""
    count = 0
    url = f"http://127.0.0.1:{port}/"
    end_s = time.perf_counter() + seconds
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

        async def call() -> None:
            nonlocal count
            while time.perf_counter() < end_s:
                async with session.post(url, data=_BODY) as response:
                    await response.read()
                count += 1

        await asyncio.gather(*(call() for _ in range(CONNECTIONS)))
    return count / seconds


def _calls(port: int) -> int:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/count", timeout=10) as answer:
        return int(answer.read())


async def main() -> None:
    options = options_of(
        __doc__ or "",
        Size("jobs", 100_000, 2_000, "jobs that call"),
        Size("demand", 8_000, 500, "runs a second that they ask for"),
        Size("seconds", 20.0, 2.0, "of steady work to measure"),
    )
    report = Report("http_targets", options)
    ours, alone = [], []
    with server("benchmarks._http") as answering:
        for _ in range(options.rounds):
            rate, cpu = await recorded(answering.port, options.jobs, options.demand, options.seconds)
            report.say(f"recorded: {rate:>8,.0f} runs/s  ({cpu:.2f} cores beside the server's)")
            ours.append(rate)
            alone.append(await bare(answering.port, options.seconds / 4))
            report.say(f"client alone: {alone[-1]:>8,.0f} calls/s")
        report.say(f"the server answered {await asyncio.to_thread(_calls, answering.port):,} calls")
    rate = report.figure("HTTP targets, recorded", "runs/s", ours, at_least(4_000))
    most = report.figure("aiohttp alone", "calls/s", alone)
    report.note(f"recorded calls reach {rate / most:.0%} of the client alone")
    if rate > 0.97 * options.demand:
        report.note("that is all the jobs asked for; raise --demand to find the limit")
    report.save()


if __name__ == "__main__":
    run(main())
