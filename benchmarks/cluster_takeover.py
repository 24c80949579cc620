"""What a scheduler that is killed under load costs: fires that were late, and how long until others have its segments.

Three schedulers and two workers on a durable PostgreSQL run interval jobs at a rate well below what they can do. One
scheduler is killed with SIGKILL. Its segments must be with the others within 5 s (its lease is 3 s), and since runs are
written ahead up to the horizon, none may be late for it: every run that is due from the kill to the end of the
horizon is looked at in history, and those that started over a second late are counted, beside the same stretch before.
At the end every fire time of every job, before and after, must be there once.

    python -m benchmarks.cluster_takeover [--jobs 100000] [--demand 5000] [--horizon 30] [--rounds 3] [--quick]
"""

import argparse
import asyncio
import time
from dataclasses import dataclass
from typing import Any

import asyncpg
import uvloop

from benchmarks._cluster import SUCCEEDED, check_alive, node_id, nodes, worker
from benchmarks._many_jobs import begin_at, forget_runs, load
from benchmarks._postgres import BenchPostgres, postgres
from benchmarks._report import Report, Size, below, options_of
from hourhand.core.instant import SECOND_US
from hourhand.core.schedule import parse_key
from tests.servers.postgres_databases import database_of

SCHEDULERS = 3
WORKERS = 2
LATE_US = SECOND_US
_NOTICE_S = 7  # until the schedulers have noticed that their clocks were set
_TAIL_S = 15  # after the horizon of the kill: what the others planned since
_PATIENCE_S = 30.0
_PAUSE_S = 0.02

_HELD = "SELECT count(*) FROM segments WHERE node_id = $1"
_RULES = "SELECT c.rule, count(*) FROM clocks AS c JOIN members AS m ON m.clock_id = c.id GROUP BY c.rule"
_FIRES = """
SELECT count(*) AS fires, count(*) FILTER (WHERE state <> $3 OR attempt <> 1) AS others,
    count(*) FILTER (WHERE started_at - due_at > $4::bigint) AS late,
    coalesce(max(started_at - due_at), 0) AS most_us,
    coalesce(percentile_disc(0.99) WITHIN GROUP (ORDER BY started_at - due_at), 0) AS p99_us
FROM history WHERE scheduled_at > $1::bigint AND scheduled_at <= $2::bigint
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """The fires of some seconds."""

    fires: int
    late: int
    p99_ms: float
    most_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What came of one kill."""

    segments: int
    taken_over_s: float
    before: Stretch
    horizon: Stretch
    after: Stretch


def main() -> None:
    """Kill one scheduler in each round."""
    options = options_of(
        __doc__ or "",
        Size("jobs", 100_000, 5_000, "jobs with mixed rules"),
        Size("demand", 5_000, 500, "runs a second that they ask for"),
        Size("horizon", 30, 10, "seconds that runs are written ahead"),
    )
    report = Report("cluster_takeover", options)
    with postgres() as bench:
        report.note(f"PostgreSQL with {', '.join(bench.differing)}")
        url = load(bench, options.jobs, options.demand).url
        found = [_round(report, bench, url, options) for _ in range(options.rounds)]
    report.figure(
        "late fires within the horizon of a kill", "runs", [one.horizon.late for one in found], below(1)
    )
    report.figure("late fires in the stretch before it", "runs", [one.before.late for one in found])
    report.figure("p99 lateness within the horizon", "ms", [one.horizon.p99_ms for one in found])
    report.figure("segments held by others after", "s", [one.taken_over_s for one in found], below(5))
    report.save()


def _round(report: Report, bench: BenchPostgres, url: str, options: argparse.Namespace) -> Found:
    found = measure(bench, url, options)
    report.say(
        f"{found.segments} segments taken over after {found.taken_over_s:.2f} s; late: {found.before.late} of "
        f"{found.before.fires:,} before, {found.horizon.late} of {found.horizon.fires:,} within the horizon (p99 "
        f"{found.horizon.p99_ms:.1f} ms, most {found.horizon.most_ms:.1f} ms), {found.after.late} of "
        f"{found.after.fires:,} after"
    )
    return found


def measure(bench: BenchPostgres, url: str, options: argparse.Namespace) -> Found:
    """Kill a scheduler in the middle of steady work."""
    horizon_us = options.horizon * SECOND_US
    settings = {"scheduler_horizon": f"{options.horizon}s", "telemetry_log": "warning", "worker_drain": "10s"}
    room = max(1_000, options.demand)
    forget_runs(bench, url)
    commands = [*[("scheduler",)] * SCHEDULERS, *[worker(room)] * WORKERS]
    with nodes(bench.databases, url, commands, settings) as parts:
        starts_at = _now_at() + horizon_us + _NOTICE_S * SECOND_US
        begin_at(url, starts_at)
        _sleep_until(starts_at + horizon_us)
        victim = node_id(bench.databases, url, parts[0])
        if victim is None:
            raise SystemExit("the scheduler lost its lease before it was killed")
        check_alive(parts)
        segments = bench.databases.query(_HELD, victim, database=database_of(url))[0][0]
        parts[0].kill()
        killed_at = _now_at()
        uvloop.run(_until_taken_over(url, victim))
        taken_over_s = (_now_at() - killed_at) / SECOND_US
        ends_at = killed_at + horizon_us + _TAIL_S * SECOND_US
        _sleep_until(ends_at + 3 * SECOND_US)
        check_alive(parts[1:])
    horizon_at = killed_at + horizon_us
    rules = bench.databases.query(_RULES, database=database_of(url))
    return Found(
        segments=segments,
        taken_over_s=taken_over_s,
        before=_stretch(bench, url, rules, starts_at, killed_at),
        horizon=_stretch(bench, url, rules, killed_at, horizon_at),
        after=_stretch(bench, url, rules, horizon_at, ends_at),
    )


async def _until_taken_over(url: str, victim: int) -> None:
    connection: Any = await asyncpg.connect(url)
    try:
        asked = await connection.prepare(_HELD)
        end_s = time.monotonic() + _PATIENCE_S
        while await asked.fetchval(victim):
            if time.monotonic() > end_s:
                raise SystemExit(f"a dead scheduler has its segments after {_PATIENCE_S:g} s")
            await asyncio.sleep(_PAUSE_S)
    finally:
        await connection.close()


def _stretch(bench: BenchPostgres, url: str, rules: list[Any], after_at: int, until_at: int) -> Stretch:
    """The fires of a stretch; each that the rules name must be there, once and with success."""
    [row] = bench.databases.query(_FIRES, after_at, until_at, SUCCEEDED, LATE_US, database=database_of(url))
    expected = sum(len(parse_key(rule).times(after_at, until_at, 10**6)) * members for rule, members in rules)
    if row["fires"] != expected or row["others"]:
        raise SystemExit(
            f"expected {expected:,} fires, found {row['fires']:,}, {row['others']:,} of them without success"
        )
    return Stretch(
        fires=row["fires"], late=row["late"], p99_ms=row["p99_us"] / 1000, most_ms=row["most_us"] / 1000
    )


def _sleep_until(at: int) -> None:
    time.sleep(max(0, at - _now_at()) / SECOND_US)


def _now_at() -> int:
    return time.time_ns() // 1000


if __name__ == "__main__":
    main()
