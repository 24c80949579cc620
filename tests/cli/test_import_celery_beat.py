"""Entries of a real Celery beat, from a module, its own file and django-celery-beat, held against its own fire times."""

import os
import pickle
import shelve
import sqlite3
import subprocess
import sys
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from celery import Celery
from celery.beat import PersistentScheduler
from celery.schedules import crontab, schedule

from hourhand.cli.files.foreign.cron_text import DAY_NAMES, MONTH_NAMES, values_of
from hourhand.core.instant import parse_instant
from hourhand.core.schedule import parse_cron
from tests.cli.test_import_apscheduler import COUNTED

BERLIN = "Europe/Berlin"
FIRES = 20

SCHEDULES: dict[str, dict[str, Any]] = {
    "daily": {"minute": 30, "hour": 9},
    "quarters": {"minute": "*/15", "hour": "8-18/2", "day_of_week": "mon-fri"},
    "round-the-end": {"minute": 0, "hour": 6, "day_of_week": "fri-mon"},
    "first-monday": {"minute": 0, "hour": 6, "day_of_week": "mon", "day_of_month": "1-7"},
    "stepped": {"minute": 0, "hour": 6, "day_of_week": "mon", "day_of_month": "*/2"},
    "months": {"minute": 5, "hour": 4, "day_of_month": "10,20", "month_of_year": "*/3"},
    "named": {"minute": 5, "hour": 4, "day_of_month": 1, "month_of_year": "jan-apr"},
}


def app_of(**entries: Any) -> Celery:
    app = Celery("beat", set_as_current=False)
    app.conf.timezone = BERLIN
    app.conf.beat_schedule = entries
    return app


def kept(folder: Path, app: Celery) -> Path:
    """The file that beat leaves."""
    beat = PersistentScheduler(app, schedule_filename=str(folder / "celerybeat-schedule"))
    beat.setup_schedule()
    beat.close()
    return folder / "celerybeat-schedule"


def imported(hourhand: Any, source: object, *options: str) -> tuple[dict[str, Any], list[str]]:
    done = hourhand("import", "celery-beat", str(source), "--json", *options)
    assert done.code in (0, 8), done.err
    jobs = {job["key"].partition("/")[2]: job for job in done.json["jobs"]}
    return jobs, [f"{one['place']}: {one['reason']}" for one in done.json["findings"]]


def by_library(app: Celery, fields: dict[str, Any], after: datetime) -> list[int]:
    found: list[int] = []
    at = after
    while len(found) < FIRES:
        rule = crontab(**fields, app=app, nowfun=lambda now=at: now)
        left = rule.remaining_estimate(at)  # in real time, as beat sleeps it
        at = (at.astimezone(UTC) + left).astimezone(ZoneInfo(BERLIN))
        found.append(round(at.timestamp()) * 1_000_000)
    return found


@pytest.mark.parametrize(
    "after",
    [datetime(2027, 3, 26, 12, 0, 1, tzinfo=UTC), datetime(2027, 10, 29, 12, 0, 1, tzinfo=UTC)],
    ids=["spring", "autumn"],
)
def test_crontabs_fire_when_the_library_says_so(hourhand: Any, tmp_path: Path, after: datetime) -> None:
    app = app_of(
        **{
            name: {"task": "app.tasks.go", "schedule": crontab(**fields)}
            for name, fields in SCHEDULES.items()
        }
    )
    jobs, findings = imported(hourhand, kept(tmp_path, app))
    assert findings == []
    assert set(jobs) == set(SCHEDULES)
    for name, fields in SCHEDULES.items():
        rule = parse_cron(jobs[name]["cron"], tz=jobs[name]["tz"])
        mine = rule.times(round(after.timestamp()) * 1_000_000, 1 << 62, FIRES)
        theirs = by_library(app, fields, after.astimezone(ZoneInfo(BERLIN)))
        assert mine == theirs, (name, jobs[name])


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("*", 0, 59),
        ("*/7", 0, 59),
        ("*/7", 1, 31),
        ("5-50/9", 0, 59),
        ("50-10/3", 0, 59),
        ("1,3,28-2", 1, 31),
    ],
)
def test_fields_are_read_as_celery_does(text: str, low: int, high: int) -> None:
    from celery.schedules import crontab_parser

    assert values_of(text, low, high) == crontab_parser(high - low + 1, low).parse(text)


def test_names_in_fields() -> None:
    assert values_of("monday,fri-SUN", 0, 6, DAY_NAMES) == {0, 1, 5, 6}
    assert values_of("november-feb", 1, 12, MONTH_NAMES, first_name=1) == {11, 12, 1, 2}


def test_the_file_of_a_beat(hourhand: Any, tmp_path: Path) -> None:
    app = app_of(
        every={"task": "app.tasks.go", "schedule": timedelta(hours=7), "kwargs": {"a": {"b": [1]}}},
        seconds={"task": "app.tasks.go", "schedule": 90.0},
        relative={"task": "app.tasks.go", "schedule": schedule(60, relative=True)},
        queued={"task": "app.tasks.go", "schedule": 60, "options": {"queue": "slow", "expires": 30}},
        args={"task": "app.tasks.go", "schedule": 60, "args": (1, "x")},
        both={"task": "app.tasks.go", "schedule": crontab(day_of_month="13", day_of_week="fri")},
        odd={"task": "go", "schedule": 60},
    )
    file = kept(tmp_path, app)
    jobs, findings = imported(hourhand, file)
    assert set(jobs) == {"every", "seconds", "relative", "queued"}
    assert (jobs["every"]["every"], jobs["seconds"]["every"]) == ("7h", "1m30s")
    assert jobs["every"]["target"] == {"type": "python", "function": "app.tasks:go"}
    assert jobs["every"]["payload"] == {"a": {"b": [1]}}
    assert jobs["every"]["phase"].startswith("20")  # beat counts from the last run
    told = "\n".join(findings)
    for words in (
        "args: it has positional arguments",
        "both: it wants both the day of the month and the day of the week",
        "odd: the task 'go' names no module",
        "queued: queue slow is not carried over",
        "queued: expires 30 is not carried over",
        "relative: relative: Celery rounded its times down to the whole minute; the job's are not rounded",
    ):
        assert words in told
    assert len(findings) == 6


def test_tasks_may_stay_with_celery(hourhand: Any, tmp_path: Path) -> None:
    entry = {
        "task": "app.tasks.go",
        "schedule": 60,
        "args": (1, "x"),
        "kwargs": {"a": 1},
        "options": {"queue": "q"},
    }
    jobs, findings = imported(hourhand, kept(tmp_path, app_of(one=entry)), "--via-celery", "app")
    assert findings == []
    assert jobs["one"]["target"]["argv"] == [
        "celery", "-A", "app", "call", "app.tasks.go", "--args", '[1,"x"]', "--kwargs", '{"a":1}', "--queue", "q"
    ]  # fmt: skip
    assert "celery.backend_cleanup" in jobs


def test_a_module_and_a_file_with_the_schedule(hourhand: Any, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    text = """
from celery import Celery
from celery.schedules import crontab
app = Celery("p", set_as_current=False)
app.conf.timezone = "Asia/Tokyo"
app.conf.beat_schedule = {"a": {"task": "p.t", "schedule": crontab(minute=0, hour=7)}, "b": {"schedule": 5}}
"""
    (tmp_path / "beat_of_project.py").write_text(text)
    for source in ("beat_of_project", "beat_of_project.py"):
        jobs, findings = imported(hourhand, source)
        assert (jobs["a"]["cron"], jobs["a"]["tz"]) == ("0 7 * * *", "Asia/Tokyo")
        assert findings == ["b: it has no 'task'"]
    rounded = "CELERY_BEAT_SCHEDULE = {'a': {'task': 'p.t', 'schedule': 7200, 'relative': True}}\n"
    (tmp_path / "rounded.py").write_text(rounded)
    [finding] = imported(hourhand, "rounded.py")[1]
    assert finding.startswith("a: relative: Celery rounded its times down to the whole hour")
    (tmp_path / "plain.py").write_text("CELERY_BEAT_SCHEDULE = {'a': {'task': 'p.t', 'schedule': 30}}\n")
    assert imported(hourhand, "plain.py")[0]["a"]["every"] == "30s"
    (tmp_path / "empty.py").write_text("x = 1\n")
    (tmp_path / "wrong.py").write_text("1 / 0\n")
    for source, words in (("empty.py", "neither a Celery app"), ("wrong.py", "ZeroDivisionError")):
        done = hourhand("import", "celery-beat", source)
        assert (done.code, words in done.err) == (2, True)


@pytest.mark.parametrize("text", ["import sys\nsys.exit()\n", "raise SystemExit('over')\n"])
@pytest.mark.parametrize("source", ["leaves.py", "leaves"])
def test_a_module_that_ends_the_process_is_named(
    hourhand: Any, tmp_path: Path, monkeypatch: Any, text: str, source: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "leaves.py").write_text(text)
    done = hourhand("import", "celery-beat", source)
    assert (done.code != 0, done.out) == (True, "")
    assert "SystemExit" in done.err


REFUSED = """
CELERY_BEAT_SCHEDULE = {
    "good": {"task": "app.tasks.go", "schedule": 60},
    "tiny": {"task": "app.tasks.go", "schedule": 0.0005},
    "fine": {"task": "app.tasks.go", "schedule": 90, "kwargs": {"a": 1}},
    "large": {"task": "app.tasks.go", "schedule": 60, "kwargs": {"a": "x" * 300_000}},
}
"""
TINY = "tiny: left out: every: expected times at least 1s apart, got 500us apart"
LARGE = "large: left out: payload: expected at most 262,144 bytes of JSON, got 300,008 bytes"


def test_what_the_specification_refuses_is_a_finding(hourhand: Any, tmp_path: Path, server: str) -> None:
    beat, written = tmp_path / "beat.py", tmp_path / "jobs.yaml"
    beat.write_text(REFUSED)
    arguments = ("import", "celery-beat", str(beat), "--set", "beat-refused")
    done = hourhand(*arguments, "-o", str(written))
    assert (done.code, done.err.splitlines()) == (8, [TINY, LARGE, "2 jobs, 2 findings"])
    assert hourhand("plan", str(written)).out.endswith("created 2, changed 0, unchanged 0, pruned 0\n")
    refused = hourhand(*arguments, "--apply")
    assert (refused.code, refused.out) == (8, "")
    assert refused.err.splitlines()[-1] == "nothing was applied; --lenient applies the others"
    done = hourhand(*arguments, "--apply", "--lenient")
    assert (done.code, done.out.splitlines()[-1]) == (0, "created 2, changed 0, unchanged 0, pruned 0")
    assert [line.partition(": expected")[0] for line in done.err.splitlines()] == [
        "tiny: left out: every",
        "large: left out: payload",
    ]
    assert hourhand("plan", str(written), "--exit-code").code == 0


def test_what_only_the_server_knows_is_a_finding_too(hourhand: Any, tmp_path: Path, server: str) -> None:
    beat, other = tmp_path / "beat.py", tmp_path / "other.yaml"
    beat.write_text(REFUSED)
    other.write_text(
        "set: others\njobs: [{key: beat-other/good, every: 1h, target: 'https://example.com'}]\n"
    )
    assert hourhand("apply", str(other)).code == 0
    arguments = ("import", "celery-beat", str(beat), "--set", "beat-other", "--apply", "--lenient")
    done = hourhand(*arguments)
    assert (done.code, done.out.splitlines()[-1]) == (0, "created 1, changed 0, unchanged 0, pruned 0")
    assert "good: left out: " in done.err


def test_entries_that_come_twice(hourhand: Any, tmp_path: Path) -> None:
    entry = "{'task': 'p.t', 'schedule': %d}"
    (tmp_path / "beat.py").write_text(
        f"beat_schedule = {{'a': {entry % 30}}}\nCELERYBEAT_SCHEDULE = dict(beat_schedule)\n"
        f"CELERY_BEAT_SCHEDULE = {{'a': {entry % 60}}}\n"
    )
    jobs, findings = imported(hourhand, tmp_path / "beat.py")
    assert jobs["a"]["every"] == "30s"
    assert findings == ["a: a has the same key and is imported"]


class Evil:
    def __init__(self, mark: str) -> None:
        self.mark = mark

    def __reduce__(self) -> Any:
        return os.system, (f"touch {self.mark}",)


def test_nothing_in_the_file_is_run(hourhand: Any, tmp_path: Path) -> None:
    file = kept(tmp_path, app_of(one={"task": "app.tasks.go", "schedule": 60}))
    with shelve.open(str(file)) as shelf:
        entries = shelf["entries"]
        entries["bad"] = Evil(str(tmp_path / "ran"))
        shelf["entries"] = entries
        shelf["tz"] = Evil(str(tmp_path / "ran"))
    (tmp_path / "ran").unlink(missing_ok=True)
    jobs, findings = imported(hourhand, file)
    assert (set(jobs), len(findings)) == ({"one"}, 1)
    assert "posix.system" in findings[0]
    assert not (tmp_path / "ran").exists()
    assert pickle.HIGHEST_PROTOCOL >= 5


DJANGO = """
import os, sys, django
from django.conf import settings
settings.configure(
    INSTALLED_APPS=["django.contrib.contenttypes", "django_celery_beat"], DATABASES={"default": %r},
    USE_TZ=True, DEFAULT_AUTO_FIELD="django.db.models.AutoField", CELERY_TIMEZONE="UTC",
)
django.setup()
from django.core.management import call_command
call_command("migrate", verbosity=0)
from datetime import datetime, UTC
from django_celery_beat.models import *
cron = CrontabSchedule.objects.create(minute="30", hour="*/4", day_of_week="mon-fri", timezone="Europe/Berlin")
minutes = IntervalSchedule.objects.create(every=10, period="minutes")
then = ClockedSchedule.objects.create(clocked_time=datetime(2031, 1, 2, 3, 4, 5, tzinfo=UTC))
sun = SolarSchedule.objects.create(event="sunset", latitude=1, longitude=2)
make = PeriodicTask.objects.create
make(name="by clock", task="app.tasks.go", crontab=cron, kwargs='{"a": 1}', description="why\\nit runs", start_time=datetime(2030, 1, 1, tzinfo=UTC))
make(name="off", task="app.tasks.go", crontab=cron, enabled=False, expires=datetime(2032, 1, 1, tzinfo=UTC))
make(name="often", task="app.tasks.go", interval=minutes, last_run_at=datetime(2027, 1, 1, 0, 3, tzinfo=UTC), expire_seconds=9)
make(name="once", task="app.tasks.go", clocked=then, one_off=True)
make(name="first", task="app.tasks.go", crontab=cron, one_off=True, queue="slow", priority=3, headers='{"h": 1}')
make(name="told", task="app.tasks.go", crontab=cron, description="x" * 600)
make(name="sun", task="app.tasks.go", solar=sun)
make(name="args", task="app.tasks.go", crontab=cron, args="[1]")
"""


def with_django(folder: Path, database: dict[str, Any]) -> None:
    (folder / "make.py").write_text(DJANGO % database)
    done = subprocess.run(
        [sys.executable, "make.py"], cwd=folder, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr


def check_django(hourhand: Any, source: str) -> None:
    jobs, findings = imported(hourhand, source)
    by_name = {job["name"]: job for job in jobs.values()}
    assert set(by_name) == {"by clock", "off", "often", "once", "first", "told"}
    assert (by_name["by clock"]["cron"], by_name["by clock"]["tz"]) == ("30 */4 * * 1-5", BERLIN)
    assert by_name["by clock"]["payload"] == {"a": 1}
    assert by_name["by clock"]["starts_at"] == "2030-01-01T00:00:00Z"
    assert (by_name["off"]["paused"], by_name["off"]["ends_at"]) == (True, "2032-01-01T00:00:00Z")
    assert (by_name["often"]["every"], by_name["often"]["phase"]) == ("10m", "2027-01-01T00:03:00Z")
    assert by_name["once"]["at"] == "2031-01-02T03:04:05Z"
    assert by_name["first"]["max_runs"] == 1
    assert by_name["by clock"]["note"] == "why\nit runs"
    assert (len(by_name["told"]["note"]), "note" in by_name["once"]) == (500, False)
    told = "\n".join(findings)
    for words in (
        "'told': description is cut to 500 characters",
        "'often': expire_seconds 9 is not carried over",
        "'first': queue slow is not carried over",
        "'first': priority 3 is not carried over",
        "'first': headers",
        "'sun': a solar schedule depends on the sun",
        "'args': it has positional arguments",
    ):
        assert words in told
    assert len(findings) == 7


def test_a_database_of_django(hourhand: Any, tmp_path: Path, server: str) -> None:
    with_django(tmp_path, {"ENGINE": "django.db.backends.sqlite3", "NAME": str(tmp_path / "beat.db")})
    check_django(hourhand, str(tmp_path / "beat.db"))
    check_django(hourhand, f"sqlite:///{tmp_path / 'beat.db'}")
    written = tmp_path / "jobs.yaml"
    done = hourhand("import", "celery-beat", str(tmp_path / "beat.db"), "-o", str(written), "--set", "dj")
    assert (done.code, done.out) == (8, "")
    assert hourhand("import", "celery-beat", str(tmp_path / "beat.db"), "--apply").code == 8
    assert hourhand("plan", str(written), "--exit-code").code == 8
    assert hourhand("apply", str(written)).out.endswith("created 6, changed 0, unchanged 0, pruned 0\n")
    assert hourhand("plan", str(written), "--exit-code").code == 0


def test_a_database_of_django_on_postgresql(hourhand: Any, tmp_path: Path, postgres_url: str) -> None:
    from urllib.parse import parse_qs, urlsplit

    parts = urlsplit(postgres_url)
    query = parse_qs(parts.query)
    database = {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": parts.path[1:],
        "USER": parts.username or "",
        "PASSWORD": parts.password or "",
        "HOST": parts.hostname or query.get("host", [""])[0],
        "PORT": parts.port or query.get("port", [""])[0],
    }
    with_django(tmp_path, database)
    check_django(hourhand, postgres_url)


def test_round_trip_through_a_server(hourhand: Any, tmp_path: Path, server: str) -> None:
    fields = {"minute": "*/20", "hour": "1-23/2"}
    app = app_of(one={"task": "app.tasks.go", "schedule": crontab(**fields)})
    file = kept(tmp_path, app)
    assert hourhand("import", "celery-beat", str(file), "--set", "beat1", "--apply").code == 0
    after = datetime.now(ZoneInfo(BERLIN))
    fires = hourhand("jobs", "next", "beat1/one", "-n", str(FIRES), "--json").json["data"]
    assert [parse_instant(one["at"]) for one in fires] == by_library(app, fields, after)


@pytest.mark.parametrize("source", ["nope.sqlite", "no/such/file", "beat_nowhere"])
def test_a_file_that_is_not_there_is_named(
    hourhand: Any, source: str, tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    done = hourhand("import", "celery-beat", source)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"error: there is no file {source}")
    assert "--import" not in done.err


def test_an_app_without_a_schedule_says_so(hourhand: Any, tmp_path: Path) -> None:
    app = "from celery import Celery\napp = Celery('p', set_as_current=False)\n"
    (tmp_path / "bare.py").write_text(app)
    done = hourhand("import", "celery-beat", str(tmp_path / "bare.py"))
    assert (done.code, "no schedule was found" in done.err) == (2, True)


@pytest.mark.parametrize("source", ["nothing.db", "no/such/file", "no_such_module", "mysql://x/y"])
def test_what_is_no_source(hourhand: Any, source: str, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    done = hourhand("import", "celery-beat", source)
    assert done.code in (1, 2)
    assert done.err.startswith("error: ")


TABLES = """
CREATE TABLE django_celery_beat_periodictask (id, name, task, crontab_id, interval_id);
CREATE TABLE django_celery_beat_crontabschedule (id);
CREATE TABLE django_celery_beat_intervalschedule (id, every, period);
CREATE TABLE django_celery_beat_clockedschedule (id);
CREATE TABLE django_celery_beat_solarschedule (id);
"""


def test_what_django_refers_to_in_vain_is_told_in_words(hourhand: Any, tmp_path: Path) -> None:
    file = tmp_path / "beat.db"
    with closing(sqlite3.connect(file)) as database:
        database.executescript(TABLES)
        intervals = [(1, 2, "fortnights"), (2, 10**12, "days"), (3, None, "days"), (4, 5, "minutes")]
        database.executemany("INSERT INTO django_celery_beat_intervalschedule VALUES (?, ?, ?)", intervals)
        rows = [(1, "lost", "a.b", 99, None), (6, "none", "a.b", None, None)]
        rows += [(n + 1, f"every{n}", "a.b", None, n) for n, _, _ in intervals]
        database.executemany("INSERT INTO django_celery_beat_periodictask VALUES (?, ?, ?, ?, ?)", rows)
        database.commit()
    jobs, findings = imported(hourhand, file)
    assert list(jobs) == ["every4"]
    assert [one.partition(": ")[2] for one in findings] == [
        "its crontab schedule 99 is not in django_celery_beat_crontabschedule",
        "its interval is 2 fortnights, which is no length of time",
        "its interval is 1000000000000 days, which is no length of time",
        "its interval is None days, which is no length of time",
        "it has no schedule",
    ]


def test_a_table_of_schedules_that_is_too_large_is_refused(hourhand: Any, tmp_path: Path) -> None:
    file = tmp_path / "beat.db"
    with closing(sqlite3.connect(file)) as database:
        database.executescript(TABLES)
        database.execute(f"{COUNTED} INSERT INTO django_celery_beat_crontabschedule SELECT n FROM counted")
        database.commit()
    done = hourhand("import", "celery-beat", str(file), "--lenient")
    assert (done.code, done.out) == (2, "")
    assert "django_celery_beat_crontabschedule has more than 100,000 rows" in done.err
