"""How long `hourhand simulate` takes for a week: jobs that meet nobody, some that overlap all the time, and a graph.

Figures are seconds of processor time, so that a busy machine does not count.

    python -m benchmarks.simulate [--jobs 200] [--days 7] [--quick]
"""

from time import process_time
from typing import Any

from benchmarks._report import Report, Size, below, options_of
from hourhand.cli.launch import SimulatedJob, SimulationWish
from hourhand.core.instant import DAY_US, MINUTE_US, SECOND_US, parse_instant
from hourhand.simulation.days import simulate

START_AT = parse_instant("2026-10-19T00:00:00Z")
TARGET = {"type": "http", "url": "https://billing.example/run"}


def main() -> None:
    options = options_of(
        __doc__ or "", Size("jobs", 200, 20, "how many jobs"), Size("days", 7, 1, "how many days")
    )
    report = Report("simulate", options)
    for name, goal, extra in (
        ("a week, 2 % fail", below(2), []),
        (
            "with a job that overlaps itself",
            None,
            [_job(7 * MINUTE_US, key="slow", every="5m", timeout="1h")],
        ),
        ("with an hourly graph", None, _graph()),
    ):
        jobs = [*_calm(int(options.jobs)), *extra]
        took = [_timed(jobs, int(options.days)) for _ in range(int(options.rounds))]
        report.figure(name, "s", [seconds for seconds, _ in took], goal)
        report.note(f"{name}: {took[0][1]['totals']['expected']:,} runs")
    report.save()


def _timed(jobs: list[SimulatedJob], days: int) -> tuple[float, dict[str, Any]]:
    end_at = START_AT + days * DAY_US
    wish = SimulationWish(
        jobs=jobs, start_at=START_AT, end_at=end_at, workers=1, concurrency=1_000, outages=(), seed=1
    )
    began_s = process_time()
    found = simulate(wish)
    return process_time() - began_s, found


def _calm(count: int) -> list[SimulatedJob]:
    """A tenth every five minutes, half hourly, the rest daily in a zone that changes its clocks that week."""
    found = []
    for number in range(count):
        cron = f"{number % 60} {number % 24} * * *"
        if number % 10 == 0:
            cron = "*/5 * * * *"
        elif number % 2:
            cron = f"{number % 60} * * * *"
        found.append(_job(5 * SECOND_US, key=f"job-{number}", cron=cron, tz="Europe/Berlin", fails=0.02))
    return found


def _graph() -> list[SimulatedJob]:
    return [
        _job(MINUTE_US, key="load", cron="0 * * * *"),
        *(_job(MINUTE_US, key=f"part-{number}", after=["load"]) for number in range(5)),
        _job(MINUTE_US, key="report", after=[f"part-{number}" for number in range(5)]),
    ]


def _job(took_us: int, *, fails: float = 0.0, **document: Any) -> SimulatedJob:
    return SimulatedJob(document={"target": TARGET, **document}, p50_us=took_us, p99_us=took_us, fails=fails)


if __name__ == "__main__":
    main()
