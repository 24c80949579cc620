"""`hourhand why`: times as people say them, what is printed, and how it exits."""

import re
import shlex
import sqlite3
from pathlib import Path

import pytest
import typer

from hourhand.cli.times import day_or_time, moment
from hourhand.core.instant import format_instant, parse_instant
from hourhand.core.serving import Serves
from hourhand.core.why import LiveWorker, Serving, judge
from tests.cli.conftest import started
from tests.core.test_why import TABLE, WORKING
from tests.docs.test_commands import wrong_with

MONDAY = parse_instant("2026-11-16T12:00:00Z")


@pytest.mark.parametrize(
    ("text", "zone", "at"),
    [
        ("09:00", "UTC", "2026-11-16T09:00:00Z"),
        ("09:00", "Europe/Berlin", "2026-11-16T08:00:00Z"),
        ("23:30:15", "UTC", "2026-11-16T23:30:15Z"),
        ("today 9:00", "UTC", "2026-11-16T09:00:00Z"),
        ("yesterday 09:00", "UTC", "2026-11-15T09:00:00Z"),
        ("Tomorrow 09:00", "UTC", "2026-11-17T09:00:00Z"),
        ("Sat 09:00", "UTC", "2026-11-14T09:00:00Z"),
        ("saturday 09:00", "Asia/Tokyo", "2026-11-14T00:00:00Z"),
        ("mon 09:00", "UTC", "2026-11-16T09:00:00Z"),
        ("Tue 09:00", "UTC", "2026-11-10T09:00:00Z"),
        ("2026-10-25 02:30", "Europe/Berlin", "2026-10-25T00:30:00Z"),  # comes twice: the first
        ("2026-11-16T09:00:00", "Europe/Berlin", "2026-11-16T08:00:00Z"),  # without an offset: the zone's
        ("2026-11-16T08:00:00Z", "Europe/Berlin", "2026-11-16T08:00:00Z"),
        ("2026-11-16T08:00:00+02:00", "UTC", "2026-11-16T06:00:00Z"),
    ],
)
def test_times_as_people_say_them(text: str, zone: str, at: str) -> None:
    assert format_instant(moment(text, zone, MONDAY, "TIME")) == at


def test_today_is_the_zones_day() -> None:
    late = parse_instant("2026-11-16T23:30:00Z")
    assert format_instant(moment("09:00", "Europe/Berlin", late, "TIME")) == "2026-11-17T08:00:00Z"


@pytest.mark.parametrize("text", ["noon", "25:00", "Sat", "2026-02-30 09:00", "09:00 sat"])
def test_what_is_no_time_is_said_so(text: str) -> None:
    with pytest.raises(typer.BadParameter):
        moment(text, "UTC", MONDAY, "TIME")


@pytest.mark.parametrize(
    ("text", "zone"),
    [
        ("9999-12-31T23:59:59Z", "UTC"),
        ("9999-12-31T23:59:59-23:59", "UTC"),
        ("9999-12-31 23:59", "America/New_York"),
        ("0001-01-01 00:00", "Asia/Tokyo"),
    ],
)
def test_times_too_far_away_are_said_to_be(text: str, zone: str) -> None:
    with pytest.raises(typer.BadParameter, match="outside of the years 0102 to 9898"):
        moment(text, zone, MONDAY, "TIME")


@pytest.mark.parametrize("text", ["9999-12-31", "0001-01-01"])
@pytest.mark.parametrize("zone", ["America/New_York", "Asia/Tokyo"])
def test_a_date_too_far_away_is_left_to_the_server(text: str, zone: str) -> None:
    assert day_or_time(text, zone) == f"{text}T00:00:00Z"


def test_the_id_of_a_run_takes_no_time_and_other_times_are_told_their_forms(hourhand, server) -> None:
    hourhand("jobs", "create", "why-forms", "--cron", "0 9 * * *", "--url", "https://example.com")
    run_id = hourhand("-q", "why", "why-forms", "next").out.strip()
    assert hourhand("-q", "why", run_id).out.strip() == run_id
    done = hourhand("why", run_id, "next")
    assert (done.code, done.out) == (2, "")
    assert f"{run_id} is the id of a run, which says its time: leave out TIME" in done.err
    done = hourhand("why", "why-forms", "tomorrow")
    assert (done.code, done.out) == (2, "")
    assert "'yesterday 09:00', '2026-11-16 09:00', or RFC 3339" in done.err
    done = hourhand("why", "why-forms", "9999-12-31T23:59:59Z")
    assert (done.code, done.out) == (2, "")
    assert "outside of the years 0102 to 9898" in done.err


def test_a_verdict_for_people_and_for_programs(hourhand, server) -> None:
    hourhand("jobs", "create", "why-daily", "--cron", "0 9 * * *", "--url", "https://example.com")
    done = hourhand("why", "why-daily", "next")
    assert done.code == 0
    lines = done.out.splitlines()
    assert lines[0].split() == ["verdict", "waiting"]
    assert lines[1].startswith("why          to come, in ")
    assert any(line.startswith("would change it: ") for line in lines)
    found = hourhand("--json", "why", "why-daily", "next").json
    assert (found["verdict"], found["cause"]) == ("waiting", "not_due")
    assert hourhand("-q", "why", "why-daily", "next").out.strip() == found["run_id"]
    other = hourhand("--json", "why", "why-daily", "tomorrow 10:00").json
    assert (other["verdict"], other["cause"]) == ("not expected", "no_such_time")


def test_a_lost_time_is_said_loudly_and_exits_with_8(hourhand, tmp_path: Path, monkeypatch) -> None:
    with started(tmp_path) as url:
        monkeypatch.setenv("HOURHAND_URL", url)
        hourhand("jobs", "create", "once", "--at", "2100-01-01T00:00:00Z", "--url", "https://example.com")
        assert hourhand("why", "once", "next").code == 0
        behind_its_back = sqlite3.connect(tmp_path / "jobs.db", timeout=30)
        with behind_its_back:
            behind_its_back.execute("DELETE FROM planned")
        behind_its_back.close()
        done = hourhand("why", "once", "next")
        assert done.code == 8
        assert done.out.splitlines()[0].split() == ["verdict", "LOST"]
        assert hourhand("--json", "why", "once", "next").code == 8


def test_a_deleted_job_is_known_by_its_id_and_none_is_not_found(hourhand, server) -> None:
    created = hourhand(
        "-q", "jobs", "create", "why-gone", "--cron", "0 9 * * *", "--url", "https://example.com"
    )
    job_id = created.out.strip()
    hourhand("jobs", "delete", job_id, "-y")
    done = hourhand("--json", "why", job_id, "tomorrow 09:00")
    assert (done.code, done.json["cause"]) == (0, "deleted")
    assert hourhand("why", "why-gone").code == 3
    assert hourhand("why", "J-0000000000001", "09:00").code == 3
    assert hourhand("why", job_id, "noon").code == 2


ALONE = Serving(workers=(LiveWorker(name="up", serves=Serves(pools=("x",))),), alone=True)


def hints() -> set[str]:
    """Every command that some verdict tells people to use."""
    found = set()
    for _, facts, *_ in TABLE:
        for serving in (WORKING, Serving(), ALONE):
            for text in judge(facts, serving).change:
                found |= {line.strip() for line in re.findall(r"hourhand ([^,;]+)", text)}
    return found


@pytest.mark.parametrize("hint", sorted(hints()))
def test_every_command_that_a_verdict_names_exists(hint: str) -> None:
    assert wrong_with(tuple(shlex.split(hint))) is None
