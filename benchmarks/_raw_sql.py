"""The ceiling that our cycle on PostgreSQL is compared with: raw SQL of the same shape, and nothing else.

Three processes on asyncpg with prepared statements: one plans by clock (`INSERT … SELECT` over members), two claim
about 1,000 over all lanes with SKIP LOCKED into `running`, get each job's spec, and finish into `history`. Each step
is one statement and one durable commit, as a run may start only once its claim is safe. What is left out is
everything that makes it a scheduler: leases, policies, retries, waiting for a due time, functions. Client and server
share the cores. The planner keeps a stock of planned runs and goes no further ahead.

    python -m benchmarks._raw_sql [--jobs 1000000] [--seconds 30] [--rounds 1] [--quick]
"""

import asyncio
import math
import multiprocessing as mp
import time
from collections.abc import Iterator
from multiprocessing.sharedctypes import Synchronized
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any

import asyncpg
import uvloop

from benchmarks._postgres import postgres
from benchmarks._report import Report, Size, options_of

BATCH = 1_000
CLAIMERS = 2
LANES = 48  # 3 classes x 16
SEGMENTS = 64
# (interval in seconds, phases, share of the jobs): most runs come from the short ones, most rules from the long ones
RULES = ((20, 10, 0.5), (30, 10, 0.2), (60, 30, 0.2), (300, 50, 0.1))
SPEC_BYTES = 600
STOCK = 50_000  # planned runs that the planner keeps ahead of the claims
PLAN_BATCH = 2_000
WARM_UP_S = 5.0

_DAY_US = 86_400_000_000
_DAYS_AHEAD = 7
_SECOND_US = 1_000_000
_PAUSE_S = 0.002
_STOP_S = 60.0
_STATEMENTS = Path(__file__).with_suffix(".sql")
# Hot tables are empty when they are first looked at, and statements are planned once: rows are looked up by key
# whatever the server thinks of their number.
_SESSION = {"jit": "off", "enable_seqscan": "off"}


def measure(url: str, jobs: int, seconds: float) -> float:
    """Runs a second through the whole cycle, in an empty database; whoever calls drops it."""
    asyncio.run(_load(url, jobs))
    context = mp.get_context("spawn")
    stop = context.Event()
    planned = context.Value("q", 0, lock=False)
    finished = [context.Value("q", 0, lock=False) for _ in range(CLAIMERS)]
    stock = min(STOCK, max(2 * BATCH, jobs // 4))
    clocks = max(1, round(PLAN_BATCH / _runs_of_a_clock(jobs)))
    children = [context.Process(target=_run_planner, args=(url, clocks, stock, stop, planned, finished))]
    children += [
        context.Process(target=_run_claimer, args=(url, number, stop, finished[number]))
        for number in range(CLAIMERS)
    ]
    for child in children:
        child.start()
    try:
        rate = _observe(children, finished, seconds)
    finally:
        stop.set()
        for child in children:
            child.join(_STOP_S)
            if child.is_alive():
                child.kill()
    asyncio.run(_check(url, planned.value, sum(each.value for each in finished)))
    return rate


def _observe(children: list[Any], finished: list[Any], seconds: float) -> float:
    end_s = time.monotonic() + 60
    while not all(each.value for each in finished):
        if time.monotonic() > end_s or not all(child.is_alive() for child in children):
            raise SystemExit("raw SQL did not begin to work")
        time.sleep(0.05)
    time.sleep(WARM_UP_S)
    before, began_s = sum(each.value for each in finished), time.perf_counter()
    time.sleep(seconds)
    rate: float = (sum(each.value for each in finished) - before) / (time.perf_counter() - began_s)
    if not all(child.is_alive() for child in children):
        raise SystemExit("a process of raw SQL ended before its time")
    return rate


async def _load(url: str, jobs: int) -> None:
    connection = await asyncpg.connect(url)
    statements = _statements()
    now_us = time.time_ns() // 1000
    await connection.execute(statements["tables"])
    for day in range(now_us // _DAY_US, now_us // _DAY_US + _DAYS_AHEAD):
        await connection.execute(statements["partition"].replace("{day}", str(day)))
    spec = ("{" + '"name":"nightly-report","target":"app.tasks:report",' * 20)[: SPEC_BYTES - 10]
    rows = ((n, 300 * _SECOND_US, 1, f"{spec}{n:>10}") for n in range(jobs))
    await connection.copy_records_to_table("jobs", records=rows)
    clocks = sorted((id_, every_us, now_us + phase_us) for id_, every_us, phase_us in _clocks())
    await connection.copy_records_to_table("clocks", records=clocks)
    records = sorted((clock_id, n, 0, 2**62, n % LANES) for clock_id, n in _memberships(jobs))
    await connection.copy_records_to_table("members", records=records)
    await connection.execute("VACUUM ANALYZE")
    await connection.execute("CHECKPOINT")
    await connection.close()


def _clocks() -> Iterator[tuple[int, int, int]]:
    """Each rule in each segment: id, interval and phase."""
    rules = [(every, n * every / phases) for every, phases, _ in RULES for n in range(phases)]
    for number, (every_s, phase_s) in enumerate(rules):
        for segment in range(SEGMENTS):
            yield number * SEGMENTS + segment, every_s * _SECOND_US, int(phase_s * _SECOND_US)


def _memberships(jobs: int) -> Iterator[tuple[int, int]]:
    """Which clock each job belongs to: segments in turn, rules by their shares."""
    first_rule, first_job = 0, 0
    for number, (_, phases, share) in enumerate(RULES):
        last_job = jobs if number == len(RULES) - 1 else first_job + int(share * jobs)
        for n in range(first_job, last_job):
            # A hash, so that the jobs of one clock lie apart in every table, as ids given over time do.
            mixed = n * 2_654_435_761 % 2**32
            yield (first_rule + mixed // SEGMENTS % phases) * SEGMENTS + mixed % SEGMENTS, n
        first_rule, first_job = first_rule + phases, last_job


def _runs_of_a_clock(jobs: int) -> float:
    """How many runs a clock brings when its time comes, on average over time."""
    runs = sum(share * jobs / every_s for every_s, _, share in RULES)
    return runs / sum(phases * SEGMENTS / every_s for every_s, phases, _ in RULES)


def _run_planner(
    url: str, clocks: int, stock: int, stop: Event, planned: "Synchronized[int]", finished: list[Any]
) -> None:
    uvloop.run(_plan(url, clocks, stock, stop, planned, finished))


async def _plan(url: str, clocks: int, stock: int, stop: Event, planned: Any, finished: list[Any]) -> None:
    connection = await asyncpg.connect(url, server_settings=_SESSION)
    plan = await connection.prepare(_statements()["plan"])
    while not stop.is_set():
        if planned.value - sum(each.value for each in finished) >= stock:
            await asyncio.sleep(_PAUSE_S)
            continue
        planned.value += await plan.fetchval(clocks)
    await connection.close()


def _run_claimer(url: str, number: int, stop: Event, finished: "Synchronized[int]") -> None:
    uvloop.run(_claim_and_finish(url, number, stop, finished))


async def _claim_and_finish(url: str, number: int, stop: Event, finished: Any) -> None:
    connection = await asyncpg.connect(url, server_settings=_SESSION)
    claim = await connection.prepare(_statements()["claim"])
    finish = await connection.prepare(_statements()["finish"])
    lanes, each_lane = list(range(LANES)), math.ceil(BATCH / LANES)
    worker = f"raw-{number}"
    while not stop.is_set():
        runs = await claim.fetch(lanes, each_lane, number, time.time_ns() // 1000)
        if not runs:
            await asyncio.sleep(_PAUSE_S)
            continue
        job_ids, scheduled_ats, _, fences, *_ = zip(*runs, strict=True)
        now = [time.time_ns() // 1000] * len(runs)
        done = await finish.fetchval(job_ids, scheduled_ats, fences, now, now, worker)
        if done != len(runs):
            raise SystemExit(f"{len(runs) - done} runs were not in their slots")
        finished.value += done
    await connection.close()


async def _check(url: str, planned: int, finished: int) -> None:
    """Every run that was planned is in exactly one table."""
    connection = await asyncpg.connect(url)
    counts = [
        await connection.fetchval(f"SELECT count(*) FROM {name}")
        for name in ("history", "planned", "running")
    ]
    await connection.close()
    if counts[0] != finished or counts[2] or sum(counts) != planned:
        raise SystemExit(f"raw SQL lost runs: planned {planned}, finished {finished}, found {counts}")


def _statements() -> dict[str, str]:
    """The named statements of the file beside this one."""
    parts = _STATEMENTS.read_text("utf-8").split("\n-- ")[1:]
    return {part.partition(":")[0]: part.partition("\n")[2].strip().rstrip(";") for part in parts}


def main() -> None:
    """Measure it alone."""
    options = options_of(
        __doc__ or "",
        Size("jobs", 1_000_000, 20_000, "jobs with mixed rules"),
        Size("seconds", 30.0, 3.0, "of steady work to measure"),
    )
    report = Report("_raw_sql", options)
    with postgres() as bench:
        rates = []
        for number in range(options.rounds):
            url = bench.databases.create_database(f"raw_sql_{number}")
            rates.append(measure(url, options.jobs, options.seconds))
            bench.databases.drop_database(url)
        report.figure(f"raw SQL of the whole cycle, {options.jobs:,} jobs", "runs/s", rates)


if __name__ == "__main__":
    main()
