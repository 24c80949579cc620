"""What the fixture says when something is wrong, and what it leaves to the policies."""

import asyncio
import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

import pytest

from hourhand import Hourhand, Run, Skip
from hourhand.simulation.bench import Bench

hh = Hourhand()
held: list[Bench] = []


@hh.job(every="1h")
def hourly() -> None: ...


@hh.job(every="2h", retry=0)
def meddler() -> None:
    held[0].advance("1h")


@hh.job(every="3h")
def idler(ctx: Run) -> None:
    assert not ctx.wait(3600)  # nobody really sleeps
    raise Skip("holiday")


@hh.job(every="1d", retry=1, timeout="2h")
async def sleeper() -> None:
    await asyncio.sleep(3 * 3600)


def plain() -> None: ...


@pytest.fixture
def bench() -> Iterator[Bench]:
    made = Bench()
    held[:] = [made]
    yield made
    made.close()


X = "https://x.example/"


@pytest.mark.parametrize(
    ("act", "words"),
    [
        (lambda b: b.fires(hourly), "no job is called '.*:hourly'; there are: none yet"),
        (lambda b: b.fires(plain), "decorate it with @hh.job"),
        (lambda b: b.load(plain), "declares no job"),
        (lambda b: b.load(json), "json declares no job"),
        (lambda b: b.load("no_such_module"), "there is no module 'no_such_module'"),
        (lambda b: b.create(key="x", cron="61 * * * *", target=X), "x: cron: expected .*0 to 59"),
        (lambda b: b.create(key="x", after=["y"], target=X), "x: after/0: expected the key of a job"),
        (lambda b: b.create(every="1h", target={"type": "python", "function": "a:b"}), "import its module"),
        (
            lambda b: (b.load(hourly), b.set_time("2025-01-01T00:00:00Z")),
            "it is 2026-01-01T00:00:00Z already",
        ),
        (lambda b: b.set_time(datetime(2026, 1, 1)), "has no zone"),  # noqa: DTZ001
        (lambda b: b.advance("soon"), "'soon' is not a duration"),
        (lambda b: b.http(X).answers(202), "say how it ends"),
        (lambda b: b.http(X).answers(), "at least one answer"),
        (lambda b: (b.load(hourly), b.fail(hourly, times=0)), "expected 1 or more, got 0"),
        (lambda b: (b.load(sleeper), b.advance("1d"), b.run_until_idle("1h")), "still goes on after 1h"),
    ],
)
def test_errors_are_words(bench: Bench, act: Callable[[Bench], object], words: str) -> None:
    with pytest.raises(Exception, match=words):
        act(bench)


def test_a_job_cannot_turn_the_clock_that_it_runs_by(bench: Bench) -> None:
    bench.load(meddler)
    bench.advance("2h")
    assert "cannot turn the clock" in str(bench.runs(meddler)[0].error)


def test_people_pause_resume_and_run(bench: Bench) -> None:
    bench.load(idler)
    bench.pause(idler)
    bench.advance("6h")
    assert bench.fires(idler) == []
    bench.resume(idler)
    bench.run_now(idler)
    bench.run_until_idle()
    assert [(run.state, run.reason) for run in bench.runs(idler)] == [("SKIPPED", "holiday")]


def test_timeouts_and_retries_are_lived_through(bench: Bench) -> None:
    bench.load(sleeper)
    bench.advance(timedelta(days=1))
    bench.run_until_idle()
    [run] = bench.runs(sleeper)
    assert (run.state, run.attempts, run.error) == (
        "FAILED",
        2,
        "no outcome within its timeout of 7200 s",
    )
    assert run.finished_at is not None
    pause = run.finished_at - run.scheduled_at - 2 * timedelta(hours=2)
    assert timedelta(seconds=0.8) <= pause <= timedelta(seconds=1)  # a second, less up to a fifth
    assert len(bench.dead_letters()) == 1


def test_days_of_a_quiet_job_takes_no_time(bench: Bench) -> None:
    bench.load(hourly)
    bench.advance("10d")
    assert len(bench.fires(hourly)) == 240
    assert bench.now == datetime(2026, 1, 11, tzinfo=UTC)


def test_jobs_of_other_pools_and_graphs_are_served(bench: Bench) -> None:
    bench.http("https://x.example/*").answers(200)
    bench.create(key="first", cron="0 6 * * *", tz="Europe/Berlin", target=f"{X}1", pool="gpu")
    bench.create(key="then", after=["first"], target=f"{X}2", pool="mail")
    bench.advance("2d")
    assert bench.fires("first") == bench.fires("then") == [
        datetime(2026, 1, day, 5, tzinfo=UTC) for day in (1, 2)
    ]  # fmt: skip
