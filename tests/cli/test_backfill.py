"""`backfill`, `jobs skip`, `jobs clone` and `runs rerun` against a running server."""

import pytest

from hourhand.cli.times import now
from hourhand.core.instant import HOUR_US, format_instant

pytestmark = pytest.mark.usefixtures("server")


@pytest.fixture
def job(hourhand, request: pytest.FixtureRequest) -> str:
    target = ["--python", "functions_for_cli:succeed"]
    done = hourhand("jobs", "create", request.node.name, "--cron", "0 * * * *", *target, "-q")
    assert done.code == 0, done.err
    return done.out.strip()


def hours_ago(hours: int) -> str:
    return format_instant(now() - hours * HOUR_US)


def test_a_backfill_is_waited_for(hourhand, job: str) -> None:
    tried = hourhand("backfill", "create", job, "--from", hours_ago(12), "--dry-run")
    assert "would run 12 times" in tried.err
    done = hourhand(
        "backfill", "create", job, "--from", hours_ago(12), "--wait", "--timeout", "60s", "--json"
    )
    assert done.code == 0, done.err
    assert (done.json["state"], done.json["succeeded"]) == ("done", 12)
    again = hourhand(
        "backfill", "create", job, "--from", hours_ago(12), "--wait", "--timeout", "60s", "--json"
    )
    assert again.json["already_there"] >= 11
    listed = hourhand("backfill", "list", "--job", job, "-q").out.split()
    assert done.json["backfill_id"] in listed


def test_a_backfill_is_paused_resumed_and_cancelled(hourhand, job: str) -> None:
    made = hourhand("backfill", "create", job, "--from", hours_ago(24), "--rate", "1/h", "-q").out.strip()
    assert "state        paused" in hourhand("backfill", "pause", made).out
    assert "would be resumed" in hourhand("backfill", "resume", made, "--dry-run").err
    assert "state        running" in hourhand("backfill", "resume", made).out
    assert "state        cancelled" in hourhand("backfill", "cancel", made).out
    assert hourhand("backfill", "resume", made).code == 5
    assert hourhand("backfill", "show", "B-0000000000001").code == 3
    assert hourhand("backfill", "create", job, "--from", hours_ago(-1)).code == 2


def test_a_date_is_its_midnight_in_the_jobs_zone(hourhand, job: str, request: pytest.FixtureRequest) -> None:
    hourhand("jobs", "update", job, "--tz", "Europe/Berlin")
    asked = ["backfill", "create", job, "--from", "2026-07-10", "--to", "2026-11-10", "--force", "--dry-run"]
    made = hourhand(*asked, "--json").json
    assert (made["from"], made["to"]) == ("2026-07-09T22:00:00Z", "2026-11-09T23:00:00Z")
    made = hourhand(*asked, "--json", "--tz", "UTC").json
    assert made["from"] == "2026-07-10T00:00:00Z"
    assert hourhand("backfill", "create", job, "--from", "2026-02-30").code == 2
    made = hourhand("backfill", "create", job, "--from", hours_ago(3), "--rate", "1/h", "-q").out.strip()
    assert f"job          {request.node.name} ({job})\n" in hourhand("backfill", "show", made).out
    hourhand("backfill", "cancel", made)


def test_a_time_is_skipped_and_not(hourhand, job: str) -> None:
    done = hourhand("jobs", "skip", job, "--note", "holiday")
    assert "is skipped" in done.err
    assert "skipped: holiday" in hourhand("jobs", "next", job, "-n", "1").out
    assert "runs" in hourhand("jobs", "skip", job, "--undo").err
    assert "skipped" not in hourhand("jobs", "next", job, "-n", "1").out


def test_a_clone_is_paused_unless_asked_otherwise(hourhand, job: str) -> None:
    made = hourhand("jobs", "clone", job, "--json").json
    assert (made["state"], made["name"].endswith(" (copy)")) == ("paused", True)
    other = hourhand("jobs", "clone", job, "other", "--every", "2h", "--no-paused", "--json").json
    assert (other["state"], other["name"], other["every"]) == ("active", "other", "2h")


def test_a_run_is_repeated(hourhand, job: str) -> None:
    first = hourhand("jobs", "run", job, "--wait", "-q").out.strip()
    assert "would be repeated" in hourhand("runs", "rerun", first, "--dry-run").out
    again = hourhand("runs", "rerun", first, "--wait", "--json")
    assert again.code == 0, again.err
    assert again.json["rerun_of"] == first
    assert f"repeated by  {again.json['run_id']}" in hourhand("runs", "show", first).out
