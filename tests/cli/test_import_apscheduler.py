"""Jobs of a real APScheduler, read from its database and held against its own fire times."""

import asyncio
import decimal
import os
import pickle
import sqlite3
import sys
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import asyncpg
import pytest
from apscheduler.jobstores.sqlalchemy import SQLAlchemyJobStore
from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.combining import AndTrigger
from apscheduler.triggers.cron import CronTrigger
from apscheduler.triggers.date import DateTrigger
from apscheduler.triggers.interval import IntervalTrigger

from hourhand.cli.files.foreign.found import LeftOut
from hourhand.cli.files.foreign.pickles import Made, read_pickle
from hourhand.core.instant import parse_duration, parse_instant
from hourhand.core.schedule import Every, Rule, parse_cron
from tests.cli.test_progress import Screen

BERLIN = "Europe/Berlin"
FIRES = 20
COUNTED = """
WITH RECURSIVE counted(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM counted WHERE n < 100000)
"""


def kept(url: str, **jobs: Any) -> None:
    """A database as APScheduler leaves it."""
    scheduler = BackgroundScheduler(jobstores={"default": SQLAlchemyJobStore(url=url)}, timezone=BERLIN)
    scheduler.start(paused=True)
    for name, fields in jobs.items():
        if "args" not in fields:
            fields.setdefault("kwargs", {"obj": 1})
        scheduler.add_job("json:dumps", id=name, **fields)
    scheduler.shutdown(wait=False)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "jobs.db"


def imported(hourhand: Any, source: object, *options: str) -> tuple[dict[str, Any], list[str]]:
    done = hourhand("import", "apscheduler", str(source), "--json", *options)
    assert done.code in (0, 8), done.err
    jobs = {job["key"].partition("/")[2]: job for job in done.json["jobs"]}
    return jobs, [f"{one['place']}: {one['reason']}" for one in done.json["findings"]]


def rule_of(job: dict[str, Any]) -> Rule:
    if "cron" in job:
        return parse_cron(job["cron"], tz=job.get("tz", "UTC"))
    return Every(interval_us=parse_duration(job["every"]), phase_us=parse_instant(job["phase"]))


def by_library(trigger: Any, after: datetime) -> list[int]:
    found: list[int] = []
    previous, now = None, after
    while len(found) < FIRES:
        at = trigger.get_next_fire_time(previous, now)
        found.append(round(at.timestamp() * 1_000_000))
        previous, now = at, at + timedelta(microseconds=1)
    return found


CRONS: dict[str, dict[str, Any]] = {
    "workdays": {"hour": "9-17/2", "minute": "*/15", "day_of_week": "mon-fri"},
    "daily": {"hour": 9, "minute": 30},
    "weekend": {"day_of_week": "sat,sun", "hour": 12},
    "sunday": {"day_of_week": 6, "hour": 5},
    "last": {"day": "last", "hour": 4},
    "places": {"day": "2nd fri,last mon", "hour": 4},
    "first-monday": {"day": "1-7", "day_of_week": "mon", "hour": 6},
    "months": {"month": "jan-mar,10", "day": "*/10", "hour": 1},
    "seconds": {"second": "*/20", "minute": "5", "hour": "7"},
    "from-on": {"minute": "10/25", "hour": "8"},
    "hourly": {"minute": 0},
}


@pytest.mark.parametrize(
    "after",
    [datetime(2027, 3, 26, 12, tzinfo=UTC), datetime(2027, 10, 29, 12, tzinfo=UTC)],
    ids=["spring", "autumn"],
)
def test_crons_fire_when_the_library_says_so_through_dst(hourhand: Any, file: Path, after: datetime) -> None:
    triggers = {name: CronTrigger(**fields, timezone=BERLIN) for name, fields in CRONS.items()}
    kept(f"sqlite:///{file}", **{name: {"trigger": trigger} for name, trigger in triggers.items()})
    jobs, findings = imported(hourhand, file)
    assert findings == []
    assert set(jobs) == set(CRONS)
    after_at = round(after.timestamp() * 1_000_000)
    for name, trigger in triggers.items():
        fires = rule_of(jobs[name]).times(after_at - 1, 1 << 62, FIRES)
        assert fires == by_library(trigger, after), (name, jobs[name])


def test_intervals_and_single_times(hourhand: Any, file: Path) -> None:
    start = datetime(2027, 3, 27, 12, 0, 7, tzinfo=ZoneInfo(BERLIN))
    every = IntervalTrigger(hours=7, start_date=start, end_date=start + timedelta(days=90), jitter=12)
    once = DateTrigger(datetime(2030, 7, 1, 12, tzinfo=ZoneInfo(BERLIN)))
    kept(f"sqlite:///{file}", every={"trigger": every}, once={"trigger": once, "name": "in summer"})
    jobs, findings = imported(hourhand, file)
    assert findings == []
    assert (jobs["once"]["at"], jobs["once"]["name"]) == ("2030-07-01T10:00:00Z", "in summer")
    assert jobs["every"]["starts_at"] == jobs["every"]["phase"] == "2027-03-27T11:00:07Z"
    assert (jobs["every"]["ends_at"], jobs["every"]["jitter"]) == ("2027-06-25T10:00:07Z", "12s")
    every.jitter = None
    after_at = parse_instant(jobs["every"]["starts_at"]) - 1
    assert rule_of(jobs["every"]).times(after_at, 1 << 62, FIRES) == by_library(every, start)


def test_policies_are_carried_over(hourhand: Any, file: Path) -> None:
    cron = {"trigger": "cron", "hour": 3}
    kept(
        f"sqlite:///{file}",
        plain={**cron, "kwargs": {"obj": {"a": [1, 2.5, None, "x"]}}},
        patient={**cron, "misfire_grace_time": None, "coalesce": True},
        all={**cron, "misfire_grace_time": None, "coalesce": False},
        several={**cron, "max_instances": 4, "misfire_grace_time": 90},
        once={"trigger": "date", "run_date": datetime(2031, 1, 1, tzinfo=UTC), "misfire_grace_time": 3600},
        each={"trigger": "interval", "minutes": 1, "misfire_grace_time": 600, "coalesce": False},
        paused={**cron, "next_run_time": None},
    )
    jobs, findings = imported(hourhand, file)
    assert findings == []
    assert jobs["plain"]["target"] == {"type": "python", "function": "json:dumps"}
    assert jobs["plain"]["payload"] == {"obj": {"a": [1, 2.5, None, "x"]}}
    assert jobs["plain"]["misfire"] == {"policy": "skip", "grace": "1s"}
    assert jobs["plain"]["overlap"] == "skip"
    assert jobs["patient"]["misfire"] == {"policy": "run_once"}
    assert jobs["all"]["misfire"] == {"policy": "catch_up", "limit": 1_000}
    assert jobs["once"]["misfire"] == {"policy": "skip", "grace": "1h"}
    assert jobs["each"]["misfire"] == {"policy": "skip", "grace": "10m"}
    assert (jobs["several"]["concurrency"], jobs["several"]["misfire"]["grace"]) == (4, "1m30s")
    assert [name for name, job in jobs.items() if job.get("paused")] == ["paused"]


def test_coalescing_within_a_grace_is_named(hourhand: Any, file: Path) -> None:
    often = {"trigger": "interval", "minutes": 1, "misfire_grace_time": 600}
    kept(f"sqlite:///{file}", often=often, rarely={**often, "minutes": 11})
    jobs, findings = imported(hourhand, file)
    assert jobs["often"]["misfire"] == {"policy": "run_once", "grace": "10m"}
    assert jobs["rarely"]["misfire"] == {"policy": "skip", "grace": "10m"}, (
        "at most one time is within the grace"
    )
    [finding] = findings
    assert finding.startswith("apscheduler_jobs 'often': coalesce: of times missed within the grace of 10m")


def test_what_is_lost_is_named_one_by_one(hourhand: Any, file: Path) -> None:
    hour = CronTrigger(hour=1, timezone=BERLIN)
    kept(
        f"sqlite:///{file}",
        args={"trigger": hour, "args": [1]},
        both={"trigger": CronTrigger(day="1-10", day_of_week="mon", timezone=BERLIN)},
        joined={"trigger": AndTrigger([hour, hour])},
        jitter={"trigger": CronTrigger(hour=1, timezone=BERLIN, jitter=600)},
        object={"trigger": hour, "kwargs": {"obj": decimal.Decimal(1)}},
        week={"trigger": CronTrigger(week=3, timezone=BERLIN)},
        year={"trigger": CronTrigger(year="2027-2030", timezone=BERLIN)},
    )
    done = hourhand("import", "apscheduler", str(file))
    assert done.code == 8
    lost = dict(line.split("': ", 1) for line in done.err.splitlines()[:-1])
    told = {name.split("'")[1]: words for name, words in lost.items()}
    assert told["args"].startswith("left out: it has positional arguments")
    assert "cron takes either" in told["both"]
    assert "AndTrigger" in told["joined"]
    assert told["jitter"] == "jitter 600 s becomes 30s"
    assert told["object"] == "left out: kwargs holds decimal.Decimal, which JSON has not"
    assert told["week"] == "left out: its trigger limits the week, which cron cannot say"
    assert told["year"] == "left out: its trigger limits the year, which cron cannot say"
    assert done.err.endswith("1 job, 7 findings\n")
    assert hourhand("import", "apscheduler", str(file), "--lenient").code == 0


class Evil:
    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> Any:
        return os.system, (f"touch {self.mark}",)


def test_nothing_that_a_pickle_names_is_run(hourhand: Any, file: Path, tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    kept(f"sqlite:///{file}", a={"trigger": "cron", "hour": 1})
    state = {"version": 1, "func": "json:dumps", "trigger": Evil(mark), "kwargs": {}, "args": ()}
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        with sqlite3.connect(file) as database:
            database.execute("UPDATE apscheduler_jobs SET job_state = ?", (pickle.dumps(state, protocol),))
        done = hourhand("import", "apscheduler", str(file))
        assert (done.code, done.out) == (8, "set: apscheduler\njobs: []\n")
        assert "its trigger is posix.system, which is not known" in done.err
        assert not mark.exists()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"junk",
        pickle.dumps("x")[:-1],
        b"cbuiltins\ngetattr\n(cbuiltins\nobject\nS'__subclasses__'\ntR.",
        b"czoneinfo\nZoneInfo._unpickle\n}S'x'\nI1\nsb.",
        b"czoneinfo\nZoneInfo._unpickle\n(S'../../etc/passwd'\nI1\ntR.",
        b"Pid\n.",
    ],
)
def test_what_is_no_such_pickle_is_refused(data: bytes) -> None:
    with pytest.raises(LeftOut):
        read_pickle(data)


def test_names_become_records_and_never_the_thing() -> None:
    made = read_pickle(pickle.dumps(decimal.Decimal("1.5")))
    assert isinstance(made, Made)
    assert (made.made_of, made.args) == ("decimal.Decimal", ("1.5",))
    assert read_pickle(pickle.dumps(print)).made_of == "builtins.print"  # a class of ours, that nobody called


def test_round_trip_through_a_server(hourhand: Any, file: Path, tmp_path: Path, server: str) -> None:
    trigger = CronTrigger(hour="*/5", minute=10, timezone=BERLIN)
    kept(f"sqlite:///{file}", one={"trigger": trigger}, two={"trigger": "interval", "minutes": 11})
    written = tmp_path / "jobs.yaml"
    assert hourhand("import", "apscheduler", str(file), "--set", "aps1", "-o", str(written)).code == 0
    assert hourhand("plan", str(written), "--exit-code").code == 8
    assert hourhand("apply", str(written)).code == 0
    assert hourhand("plan", str(written), "--exit-code").code == 0
    assert hourhand("import", "apscheduler", str(file), "--set", "aps1", "--apply").out.startswith(
        "created 0, changed 0, unchanged 2"
    )
    fires = hourhand("jobs", "next", "aps1/one", "-n", str(FIRES), "--json").json["data"]
    expected = by_library(trigger, datetime.now(UTC))
    assert [parse_instant(one["at"]) for one in fires] == expected


def test_a_database_of_postgresql(hourhand: Any, postgres_url: str) -> None:
    url = postgres_url.replace("postgresql://", "postgresql+psycopg://", 1)
    kept(url, a={"trigger": "cron", "hour": 3})
    jobs, findings = imported(hourhand, postgres_url)
    assert (list(jobs), findings) == (["a"], [])
    assert imported(hourhand, url)[0] == jobs
    assert hourhand("import", "apscheduler", postgres_url, "--table", "nothing").code == 2


def test_what_the_specification_refuses_is_left_out(hourhand: Any, file: Path, server: str) -> None:
    kept(
        f"sqlite:///{file}",
        fine={"trigger": "interval", "hours": 1},
        large={"trigger": "interval", "hours": 1, "kwargs": {"obj": "x" * 300_000}},
        tiny={"trigger": "interval", "seconds": 0.0005, "start_date": "2031-01-01", "coalesce": False},
    )
    written = file.with_suffix(".yaml")
    arguments = ("import", "apscheduler", str(file), "--set", "aps-refused", "--lenient")
    done = hourhand(*arguments, "-o", str(written))
    assert (done.code, done.err.splitlines()[-1]) == (0, "1 job, 2 findings")
    assert "apscheduler_jobs 'tiny': left out: every: expected times at least 1s apart" in done.err
    assert "apscheduler_jobs 'large': left out: payload: expected at most 262,144 bytes" in done.err
    assert hourhand("plan", str(written)).code == 0
    done = hourhand(*arguments, "--apply")
    assert (done.code, done.out.splitlines()[-1]) == (0, "created 1, changed 0, unchanged 0, pruned 0")
    assert len(done.err.splitlines()) == 2


@pytest.mark.parametrize("source", ["nothing.db", "mysql://x/y", "sqlite:///nothing.db"])
def test_what_is_no_such_database(hourhand: Any, source: str) -> None:
    done = hourhand("import", "apscheduler", source)
    assert (done.code, done.err.startswith("error: ")) == (2, True)


def test_names_of_tables_are_no_statements(hourhand: Any, file: Path) -> None:
    kept(f"sqlite:///{file}", a={"trigger": "cron", "hour": 1})
    done = hourhand("import", "apscheduler", str(file), "--table", "a; DROP TABLE b")
    assert (done.code, "is no name of a table" in done.err) == (2, True)


def test_a_table_that_is_too_large_is_refused_and_not_cut_off(hourhand: Any, file: Path) -> None:
    with closing(sqlite3.connect(file)) as database:
        database.execute("CREATE TABLE apscheduler_jobs (id TEXT, next_run_time FLOAT, job_state BLOB)")
        database.execute(f"{COUNTED} INSERT INTO apscheduler_jobs SELECT n, NULL, x'00' FROM counted")
        database.commit()
    done = hourhand("import", "apscheduler", str(file), "--lenient")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("error: apscheduler_jobs has more than 100,000 rows, and no more are read")


def test_a_large_table_of_postgresql_is_refused_too(hourhand: Any, postgres_url: str) -> None:
    async def fill() -> None:
        connection = await asyncpg.connect(postgres_url)
        await connection.execute("CREATE TABLE too_many AS SELECT generate_series(0, 100000) AS id")
        await connection.close()

    asyncio.run(fill())
    done = hourhand("import", "apscheduler", postgres_url, "--table", "too_many")
    assert (done.code, "too_many has more than 100,000 rows" in done.err) == (2, True)


def test_only_keys(hourhand: Any, file: Path, tmp_path: Path) -> None:
    hourly = {"trigger": "interval", "hours": 1, "coalesce": False}
    kept(f"sqlite:///{file}", one=hourly, two=hourly)
    done = hourhand("import", "apscheduler", str(file), "-q")
    assert (done.code, done.out, done.err) == (0, "apscheduler/one\napscheduler/two\n", "")
    written = tmp_path / "jobs.yaml"
    assert hourhand("import", "apscheduler", str(file), "-q", "-o", str(written)).out == ""
    assert written.read_text().startswith("set: apscheduler\n")


def test_it_is_shown_how_far_it_is(hourhand: Any, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept(f"sqlite:///{file}", **{f"job{n}": {"trigger": "cron", "hour": 3} for n in range(50)})
    screen = Screen(terminal=True)
    monkeypatch.setattr(sys, "stderr", screen)
    assert hourhand("import", "apscheduler", str(file)).code == 0
    assert "\x1b[Kread 50\r" in screen.getvalue()
    assert "] 100%  50 of 50\r" in screen.getvalue()
