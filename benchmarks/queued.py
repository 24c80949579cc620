"""How fast 200,000 queued one-time jobs are executed, beside others that keep their jobs in PostgreSQL.

No-op jobs that are due wait in a fresh database on one durable server; everything runs on this machine. Each system
inserts them by its own fastest API and has the settings that its documentation gives for throughput (see
`peers_src/NAME`). Timed is the work alone, from its start to the last outcome in the tables, which are then
counted. The systems take turns, so that a neighbour on the machine meets all of them. Read with care: only hourhand,
River and procrastinate keep what was done; db-scheduler and graphile-worker delete a job that succeeded.

    python -m benchmarks.queued [--jobs 200000] [--late 10000] [--rounds 3] [--quick]
"""

import os
from collections import defaultdict
from collections.abc import Callable

from benchmarks._peer_programs import (
    DB_SCHEDULER,
    GRAPHILE_WORKER,
    PEERS,
    PROCRASTINATE,
    RIVER,
    CannotHave,
    Peer,
    measure_river_lateness,
)
from benchmarks._postgres import BenchPostgres, postgres
from benchmarks._queued_hourhand import measure_hourhand
from benchmarks._report import Goal, Report, Size, at_least, options_of

OURS = "hourhand"
GOALS: dict[str, Goal | None] = {
    RIVER.name: at_least(1.0),
    DB_SCHEDULER.name: at_least(1.0),
    PROCRASTINATE.name: at_least(20.0),
    GRAPHILE_WORKER.name: None,  # it keeps no history: the mark to beat
}


def main() -> None:
    """Everybody in turn, then the medians side by side."""
    options = options_of(
        __doc__ or "",
        Size("jobs", 200_000, 2_000, "queued jobs"),
        Size("late", 10_000, 500, "jobs that River starts at one instant"),
    )
    report = Report("queued", options)
    with postgres() as bench:
        report.note(f"PostgreSQL with {', '.join(bench.differing)}")
        peers = [peer for peer in PEERS if _has(report, peer)]
        rates = _rates(report, bench, peers, options.jobs, options.rounds)
        _compare(report, peers, rates, options.jobs)
        if RIVER in peers:
            lags = [_river_lateness(bench, options.late) for _ in range(options.rounds)]
            report.figure(f"{options.late:,} jobs at one instant, {RIVER.title()}, p99 lateness", "ms", lags)
    report.save()


def _has(report: Report, peer: Peer) -> bool:
    try:
        peer.install()
    except CannotHave as reason:
        report.note(f"{peer.name} skipped: {reason}")
        return False
    return True


def _rates(
    report: Report, bench: BenchPostgres, peers: list[Peer], jobs: int, rounds: int
) -> dict[str, list[float]]:
    """What each reached in each round; one that fails is left out from then on, with the reason."""
    measures: dict[str, Callable[[], float]] = {OURS: lambda: _measure_ours(bench, jobs)}
    for peer in peers:
        measures[peer.name] = lambda peer=peer: peer.measure(bench.databases, jobs)  # type: ignore[misc]
    at_most = {peer.name: peer.rounds_at_most for peer in peers}
    found: dict[str, list[float]] = defaultdict(list)
    for number in range(rounds):
        for name in [name for name in measures if number < at_most.get(name, rounds)]:
            load = os.getloadavg()[0]
            try:
                rate = measures[name]()
            except CannotHave as reason:
                report.note(f"{name} skipped: {reason}")
                del measures[name]
                continue
            report.say(f"round {number + 1}: {name:<16} {rate:>9,.0f} jobs/s  (load {load:.1f} before)")
            found[name].append(rate)
    return found


def _measure_ours(bench: BenchPostgres, jobs: int) -> float:
    url = bench.databases.create_database("queued_hourhand")
    try:
        return measure_hourhand(url, jobs)
    finally:
        bench.databases.drop_database(url)


def _compare(report: Report, peers: list[Peer], rates: dict[str, list[float]], jobs: int) -> None:
    name = f"{jobs:,} queued no-op jobs"
    ours = report.figure(f"{name}, {OURS}", "jobs/s", rates[OURS]) if rates[OURS] else None
    for peer in peers:
        if not rates[peer.name]:
            continue
        told = "" if peer.keeps_history else " (keeps no history)"
        theirs = report.figure(f"{name}, {peer.title()}{told}", "jobs/s", rates[peer.name])
        if ours is not None:
            report.figure(f"{OURS} beside {peer.name}", "times", [ours / theirs], GOALS[peer.name])


def _river_lateness(bench: BenchPostgres, jobs: int) -> float:
    url = bench.databases.create_database("peer_river_late")
    try:
        return measure_river_lateness(url, jobs)
    finally:
        bench.databases.drop_database(url)


if __name__ == "__main__":
    main()
