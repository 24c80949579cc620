"""Simulated days against known answers, against a count of one's own, and against living through every run."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hourhand.cli.launch import RefusedJobs, SimulatedJob, SimulationWish
from hourhand.core.instant import DAY_US, HOUR_US, MINUTE_US, SECOND_US, parse_instant
from hourhand.errors import Invalid
from hourhand.simulation import days
from hourhand.simulation.days import simulate

START = "2026-11-16T00:00:00Z"
START_AT = parse_instant(START)
TARGET = {"type": "http", "url": "https://billing.example/run"}


def job(
    p50_us: int = SECOND_US, p99_us: int | None = None, fails: float = 0.0, **document: Any
) -> SimulatedJob:
    whole = {"target": TARGET, **document}
    return SimulatedJob(document=whole, p50_us=p50_us, p99_us=p99_us or p50_us, fails=fails)


def wish(*jobs: SimulatedJob, length_us: int = DAY_US, start: str = START, **more: Any) -> SimulationWish:
    start_at = parse_instant(start)
    settings: dict[str, Any] = {"workers": 1, "concurrency": 100, "outages": (), "seed": 0, **more}
    return SimulationWish(jobs=jobs, start_at=start_at, end_at=start_at + length_us, **settings)


def only(found: dict[str, Any]) -> dict[str, Any]:
    [one] = found["jobs"]
    return one  # type: ignore[no-any-return]


def facts(one: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: one[name] for name in names}


# --- overlap


@pytest.mark.parametrize(
    ("overlap", "ended"),
    [
        # Each takes 7 of 5 minutes. Every second one finds its job full:
        ("skip", {"succeeded": 6, "cancelled": 0, "skipped": {"overlap": 6}, "late": 0}),
        # They follow one another without a pause; four still wait or run at the end:
        ("queue", {"succeeded": 8, "cancelled": 0, "skipped": {}, "unfinished": 4}),
        # The same, but only the newest waits:
        ("queue_one", {"succeeded": 8, "cancelled": 0, "skipped": {"overlap": 3}, "unfinished": 1}),
        # Each is ended by the next, which begins at once:
        ("cancel_running", {"succeeded": 0, "cancelled": 11, "skipped": {}, "unfinished": 1}),
    ],
)
def test_a_job_that_takes_longer_than_its_interval(overlap: str, ended: dict[str, Any]) -> None:
    slow = job(7 * MINUTE_US, every="5m", overlap=overlap, timeout="1h")
    found = only(simulate(wish(slow, length_us=HOUR_US)))
    assert facts(found, "expected", *ended) == {"expected": 12, **ended}
    if overlap == "queue":
        assert found["longest_slot_wait_ms"] == 14 * 60_000  # the run of 0:35 begins at 0:49


def test_workers_without_room_make_runs_late() -> None:
    jobs = [job(MINUTE_US, key=f"job-{number}", cron="0 * * * *") for number in range(6)]
    found = simulate(wish(*jobs, length_us=2 * HOUR_US, workers=1, concurrency=2))
    assert found["capacity"] == {
        "workers": 1,
        "concurrency": 2,
        "slots": 2,
        "peak": 2,
        "peak_at": START,
        "full_s": 360,
    }
    assert found["totals"]["late"] == 8
    assert 120_000 <= found["totals"]["lateness_max_ms"] <= 120_100
    assert found["totals"]["succeeded"] == 12
    assert found["busiest"][0]["rules"] == [
        {"rule": "0 * * * * (UTC)", "jobs": 6, "suggestion": "jitter 30s would spread 6 of its jobs"}
    ]


# --- outages


@pytest.mark.parametrize(
    ("misfire", "ran"),
    [
        ({"policy": "skip", "grace": "1m"}, 24 - 3),
        ({"policy": "run_once", "grace": "1m"}, 24 - 2),
        ({"policy": "catch_up", "grace": "1m", "limit": 2}, 24 - 1),
        ({"policy": "catch_up", "grace": "1m"}, 24),
        ({"policy": "skip", "grace": "1h"}, 24 - 2),  # one of the three is within its grace
    ],
)
def test_an_outage_meets_the_misfire_policy(misfire: dict[str, Any], ran: int) -> None:
    outage = (START_AT + 150 * MINUTE_US, START_AT + 330 * MINUTE_US)  # 3:00, 4:00 and 5:00 pass
    found = only(simulate(wish(job(cron="0 * * * *", misfire=misfire), outages=[outage])))
    assert found["expected"] == 24
    assert found["succeeded"] == ran
    assert found["skipped"].get("misfire", 0) == 24 - ran
    assert found["unfinished"] == 0


def test_what_an_outage_interrupts_is_tried_again() -> None:
    outage = (START_AT + 10 * MINUTE_US, START_AT + 20 * MINUTE_US)
    found = only(simulate(wish(job(15 * MINUTE_US, cron="0 0 * * *", timeout="1h"), outages=[outage])))
    assert facts(found, "succeeded", "retries") == {"succeeded": 1, "retries": 1}


# --- the change of clocks


@pytest.mark.parametrize(
    ("start", "cron", "expected"),
    [
        ("2026-10-24T22:00:00Z", "*/30 * * * *", 50),  # a day of 25 hours in Berlin
        ("2026-10-24T22:00:00Z", "30 2 * * *", 1),
        ("2026-03-28T23:00:00Z", "*/30 * * * *", 46),  # and one of 23
        ("2026-03-28T23:00:00Z", "30 2 * * *", 1),
    ],
)
def test_days_on_which_clocks_change(start: str, cron: str, expected: int) -> None:
    length_us = 25 * HOUR_US if start.startswith("2026-10") else 23 * HOUR_US
    found = simulate(wish(job(cron=cron, tz="Europe/Berlin"), start=start, length_us=length_us))
    assert facts(only(found), "expected", "succeeded") == {"expected": expected, "succeeded": expected}
    [change] = found["clock_changes"]
    assert (change["zone"], change["day"], abs(change["forward_s"])) == (
        "Europe/Berlin",
        start[:8] + ("25" if "-10-" in start else "29"),
        3600,
    )
    [touched] = change["touches"]
    assert touched["note"]


# --- failures


def test_failures_are_tried_again_and_then_given_up() -> None:
    found = only(simulate(wish(job(fails=1.0, every="1h", retry={"max": 2, "first": "10s"}))))
    assert facts(found, "succeeded", "failed", "retries") == {"succeeded": 0, "failed": 24, "retries": 48}


def test_what_takes_longer_than_its_timeout_fails() -> None:
    found = only(simulate(wish(job(6 * MINUTE_US, every="1h", retry={"max": 1}))))
    assert facts(found, "failed", "retries") == {"failed": 24, "retries": 24}


def test_half_of_them_take_less_and_few_much_more() -> None:
    jobs = [
        job(10 * MINUTE_US, 50 * MINUTE_US, key=f"{n}", cron="0 * * * *", timeout="1d") for n in range(20)
    ]
    found = simulate(wish(*jobs, length_us=2 * DAY_US))
    assert 0 < found["totals"]["overlaps"] < 20  # those that take over an hour: 4 in 1,000
    assert found["capacity"]["peak"] == 20


# --- who follows


def test_a_graph_is_lived_through() -> None:
    jobs = [
        job(key="load", cron="0 * * * *", fails=0.3, retry={"max": 0}),
        job(key="report", after=["load"]),
        job(key="mail", after=["report"]),
    ]
    load, report, mail = simulate(wish(*jobs))["jobs"]
    assert 0 < load["failed"] < 24
    assert report["skipped"] == mail["skipped"] == {"upstream": load["failed"]}
    assert report["succeeded"] == mail["succeeded"] == load["succeeded"] == 24 - load["failed"]


# --- an independent count


@st.composite
def schedules(draw: st.DrawFn) -> tuple[str, set[int], set[int]]:
    minutes = draw(st.sets(st.integers(0, 59), min_size=1, max_size=4))
    hours = draw(st.sets(st.integers(0, 23), min_size=1, max_size=6) | st.just(set(range(24))))
    text = f"{','.join(map(str, sorted(minutes)))} {','.join(map(str, sorted(hours)))} * * *"
    return text, minutes, hours


def every_minute(hours: int) -> Iterator[datetime]:
    start = datetime(2026, 11, 16, tzinfo=UTC)
    return (start + timedelta(minutes=minute) for minute in range(hours * 60))


@settings(max_examples=8, deadline=None)
@given(st.lists(schedules(), min_size=1, max_size=4), st.integers(1, 60))
def test_counts_are_those_of_a_walk_over_the_minutes(
    drawn: Sequence[tuple[str, set[int], set[int]]], hours: int
) -> None:
    jobs = [job(key=f"{number}", cron=text) for number, (text, _, _) in enumerate(drawn)]
    found = simulate(wish(*jobs, length_us=hours * HOUR_US))
    for one, (_, at_minutes, at_hours) in zip(found["jobs"], drawn, strict=True):
        counted = sum(at.minute in at_minutes and at.hour in at_hours for at in every_minute(hours))
        assert one["expected"] == counted
        assert one["succeeded"] + one["unfinished"] == counted


# --- jumping


@st.composite
def worlds(draw: st.DrawFn) -> SimulationWish:
    """Jobs that meet one another a little, with everything that can happen to them."""
    jobs = []
    for number in range(draw(st.integers(1, 5))):
        document: dict[str, Any] = {
            "key": f"job-{number}",
            "overlap": draw(st.sampled_from(("queue_one", "queue", "skip", "cancel_running"))),
            "concurrency": draw(st.sampled_from((1, 1, 2, "unlimited"))),
            "misfire": {
                "policy": draw(st.sampled_from(("run_once", "skip", "catch_up"))),
                "grace": draw(st.sampled_from(("0s", "1m", "10m"))),
            },
            "retry": {"max": draw(st.integers(0, 2)), "first": draw(st.sampled_from(("0s", "1s", "30s")))},
            "timeout": draw(st.sampled_from(("30s", "5m", "1h"))),
        }
        if number and draw(st.integers(0, 4)) == 0:
            document["after"] = ["job-0"]
        else:
            crons = (
                ("*/10 * * * *",) if not number else ("*/7 * * * *", "0 * * * *", "30 * * * *", "*/5 * * * *")
            )
            document["cron"] = draw(st.sampled_from(crons))
            document["jitter"] = draw(st.sampled_from(("0s", "20s")))
        # A little more than whole seconds: of a run that ends at the very instant when another is due, nobody
        # promises which comes first.
        p50_us = draw(st.sampled_from((SECOND_US, MINUTE_US, 6 * MINUTE_US))) + 1_009 + 131 * number
        fails = draw(st.sampled_from((0.0, 0.0, 0.2)))
        jobs.append(job(p50_us, p50_us * draw(st.sampled_from((1, 5))), fails, **document))
    outage = (START_AT + 33 * MINUTE_US + 7, START_AT + draw(st.integers(34, 70)) * MINUTE_US)
    return wish(
        *jobs,
        length_us=2 * HOUR_US,
        workers=draw(st.integers(1, 2)),
        concurrency=draw(st.sampled_from((1, 2, 10))),
        outages=draw(st.sampled_from(((), (), (outage,)))),
        seed=draw(st.integers(0, 1_000)),
    )


@settings(max_examples=10, deadline=None)
@given(worlds())
def test_jumping_finds_what_living_through_everything_finds(drawn: SimulationWish) -> None:
    jumped, lived = simulate(drawn), simulate(drawn, jumps=False)
    assert jumped == lived
    for one in jumped["jobs"]:
        assert one["unfinished"] >= 0
        assert one["ran"] >= one["succeeded"] + one["failed"]


def test_the_same_seed_is_the_same_story() -> None:
    jobs = [job(MINUTE_US, HOUR_US, 0.1, key=f"{n}", cron="*/20 * * * *", timeout="1d") for n in range(4)]
    assert simulate(wish(*jobs, seed=7)) == simulate(wish(*jobs, seed=7))
    assert simulate(wish(*jobs, seed=7))["jobs"] != simulate(wish(*jobs, seed=8))["jobs"]


# --- bounds and errors


def test_too_much_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Invalid, match="more than 500,000 runs"):
        simulate(wish(job(every="1s"), length_us=7 * DAY_US))
    monkeypatch.setattr(days, "MAX_JOBS", 2)
    with pytest.raises(Invalid, match="more than 2 jobs"):
        simulate(wish(*[job(every="1h")] * 3))


def test_it_says_where_it_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(days, "MAX_STEPPED", 10)
    found = simulate(wish(job(7 * MINUTE_US, every="5m", timeout="1h")))
    assert found["stopped_at"] is not None
    assert START < found["stopped_at"] < "2026-11-16T02:00:00Z"
    assert 0 <= only(found)["unfinished"] <= 3


def test_where_it_stopped_others_had_not_gone_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(days, "MAX_STEPPED", 10)
    slow = job(7 * MINUTE_US, every="5m", timeout="1h", key="slow")
    found = simulate(wish(slow, job(every="1m", key="apart")))
    apart = next(one for one in found["jobs"] if one["key"] == "apart")
    assert apart["expected"] - 1 <= apart["succeeded"] <= apart["expected"] < 120


def test_jobs_that_are_not_right_are_all_named() -> None:
    with pytest.raises(RefusedJobs) as caught:
        simulate(
            wish(
                job(key="good", every="1h"),
                job(key="never", cron="0 0 30 2 *"),
                job(key="lost", after=["nobody"]),
                job(key="a", after=["b"]),
                job(key="b", after=["a"]),
            )
        )
    assert [place for place, _ in caught.value.refused] == [1, 2, 3, 4]


def test_one_time_jobs_and_paused_ones() -> None:
    found = simulate(
        wish(
            job(key="then", at="2026-11-16T10:00:00Z"),
            job(key="before", at="2026-11-15T10:00:00Z"),
            job(key="paused", every="1h", paused=True),
            job(key="busy", every="1h"),
        )
    )
    assert found["left_out"] == 1
    assert [(one["name"], one["succeeded"], one["unfinished"]) for one in found["jobs"]] == [
        ("then", 1, 0),
        ("paused", 0, 0),
        ("busy", 24, 0),
    ]


def test_jobs_that_are_over_take_no_part_nor_do_those_who_follow_them() -> None:
    over = {"ends_at": "2026-11-15T23:59:59Z"}
    found = simulate(
        wish(
            job(key="last", after=["second"]),
            job(key="second", after=["first"]),
            job(key="first", every="1h", **over),
            job(key="child", after=["J-0s8b61a3c0mt0"]),
            job(job_id="J-0s8b61a3c0mt0", cron="0 * * * *", **over),
            job(key="goes on", every="1h", ends_at="2026-11-16T03:30:00Z"),
        )
    )
    assert found["left_out"] == 5
    assert facts(only(found), "name", "succeeded") == {"name": "goes on", "succeeded": 4}


def test_a_job_may_follow_one_that_is_paused() -> None:
    found = simulate(
        wish(
            job(key="paused", every="1h", paused=True), job(key="follows", after=["paused"]), job(every="1h")
        )
    )
    assert [one["succeeded"] for one in found["jobs"]] == [0, 0, 24]
