"""What offering through a broker costs the scheduler: memory of a million timers, and how punctual 10,000 a second are.

The timers are those of the agenda, measured as memory of a process that fills one. The offers are made by the real
dispatcher on PostgreSQL, with one-time jobs that are due over some seconds, into a real Redis; an offer's error is
from `lead` before its due time until the server has taken it. Jobs are created before, so nothing else is measured.

    python -m benchmarks.dispatcher [--timers 1000000] [--rate 10000] [--seconds 20] [--rounds 3] [--quick]
"""

import asyncio
import contextlib
import subprocess
import sys
import time
from collections.abc import Sequence

import uvloop

from benchmarks._cluster import create_jobs, migrate, settle
from benchmarks._postgres import BenchPostgres, postgres
from benchmarks._process import ROOT
from benchmarks._report import Report, Size, below, options_of, percentile
from hourhand.core.instant import HOUR_US, SECOND_US
from hourhand.core.model import OnceTiming
from hourhand.core.offer import Offer
from hourhand.ids import IdSource
from hourhand.leases.native import NativeLeases
from hourhand.queues.redis import RedisOffers, parse_address
from hourhand.services.dispatcher import Dispatcher
from hourhand.services.loop import Duty, never
from hourhand.stores.postgres import PostgresStore
from hourhand.telemetry import Telemetry
from tests.servers.postgres_databases import database_of
from tests.servers.redis import RedisServer

LEAD_US = 2 * SECOND_US
_MARGIN_S = 20  # to write the times anew and to settle
_SOONER = "UPDATE planned SET scheduled_at = scheduled_at - {0}, due_at = due_at - {0}"

_FILL = """
import resource, sys
from hourhand.core.agenda import Agenda
from hourhand.core.model import Durability
from hourhand.core.offer import UpcomingRun
def memory():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()
agenda, count = Agenda(2_000_000), int(sys.argv[1])
at, before = 1_794_819_600_000_000, memory()
for n in range(count):
    due_at = at + n * 5_000_000 // count
    agenda.add(UpcomingRun(910091825971208768 + n, due_at, due_at, 0, 1, "default", Durability.CRITICAL, False), 0)
print((memory() - before) / 1e6)
"""


def main() -> None:
    """Memory, then punctuality."""
    options = options_of(
        __doc__ or "",
        Size("timers", 1_000_000, 100_000, "timers to hold"),
        Size("rate", 10_000, 1_000, "offers a second"),
        Size("seconds", 20, 3, "of offers"),
    )
    report = Report("dispatcher", options)
    used = [_memory_mb(options.timers) for _ in range(options.rounds)]
    report.figure(f"memory of {options.timers:,} timers", "MB", used, below(150))
    with postgres() as bench, RedisServer() as redis:
        rounds = [
            sorted(_errors_ms(bench, redis.url, options.rate, options.seconds)) for _ in range(options.rounds)
        ]
    name = f"offer error at {options.rate:,}/s"
    report.figure(f"{name}, p50", "ms", [percentile(errors, 0.5) for errors in rounds])
    report.figure(f"{name}, p99", "ms", [percentile(errors, 0.99) for errors in rounds], below(50))
    report.figure(f"{name}, most", "ms", [errors[-1] for errors in rounds])
    report.save()


def _memory_mb(timers: int) -> float:
    done = subprocess.run(
        [sys.executable, "-c", _FILL, str(timers)],
        cwd=ROOT,
        env={"PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=True,
    )
    return float(done.stdout)


def _errors_ms(bench: BenchPostgres, redis_url: str, rate: int, seconds: int) -> list[float]:
    url = bench.databases.create_database()
    try:
        migrate(url)
        count = rate * seconds
        later_at = time.time_ns() // 1000 + HOUR_US
        times = [OnceTiming(at=later_at + n * SECOND_US // rate) for n in range(count)]
        uvloop.run(create_jobs(url, times))
        sooner_us = later_at - time.time_ns() // 1000 - _MARGIN_S * SECOND_US
        bench.databases.execute(_SOONER.format(sooner_us), database=database_of(url))
        settle(bench.databases, url)
        errors = uvloop.run(_offer_all(url, redis_url, count, seconds))
    finally:
        bench.databases.drop_database(url)
    if len(errors) != count:
        raise SystemExit(f"{len(errors):,} of {count:,} were offered")
    return errors


class _Timed:
    """Offers, with how late each was taken."""

    wants_jobs = False

    def __init__(self, inner: RedisOffers, count: int) -> None:
        self._inner = inner
        self._count = count
        self.errors_ms: list[float] = []
        self.done = asyncio.Event()

    async def offer(self, offers: Sequence[Offer]) -> None:
        await self._inner.offer(offers)
        now_at = time.time_ns() // 1000
        self.errors_ms += [(now_at - (offer.due_at - LEAD_US)) / 1000 for offer in offers]
        if len(self.errors_ms) >= self._count:
            self.done.set()

    async def close(self) -> None:
        await self._inner.close()


async def _offer_all(url: str, redis_url: str, count: int, seconds: int) -> list[float]:
    store = await PostgresStore.open(url)
    leases = NativeLeases(
        store=store,
        ids=IdSource(store.clock),
        kind="scheduler",
        name="bench",
        plans=True,
        lease_us=600 * SECOND_US,
    )
    await leases.join()
    timed, telemetry = _Timed(RedisOffers(parse_address(redis_url)), count), Telemetry()
    dispatcher = Dispatcher(store=store, leases=leases, offers=timed, telemetry=telemetry, lead_us=LEAD_US)
    load = Duty("load", dispatcher.step, store.clock, telemetry)
    offer = Duty("offer", dispatcher.offer_step, store.clock, telemetry, poll_us=never)
    dispatcher.on_loaded = offer.wake
    tasks = [asyncio.create_task(duty.run()) for duty in (load, offer)]
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds + 60):
            await timed.done.wait()
    for duty in (load, offer):
        duty.stop()
    await asyncio.gather(*tasks)
    await dispatcher.close()
    await store.close()
    return timed.errors_ms


if __name__ == "__main__":
    main()
