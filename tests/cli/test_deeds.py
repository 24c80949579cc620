"""`deeds` against a running server: who did what, and by whom each version was made."""

import json

import pytest

pytestmark = pytest.mark.usefixtures("server")


@pytest.fixture
def job(hourhand, request: pytest.FixtureRequest) -> str:
    name = request.node.name
    made = hourhand(
        "jobs", "create", name, "--cron", "0 * * * *", "--python", "functions_for_cli:succeed", "-q"
    )
    assert made.code == 0, made.err
    return made.out.strip()


def test_what_was_done_to_a_job_is_listed_with_the_versions_it_made(hourhand, job: str) -> None:
    hourhand("jobs", "pause", job, "--note", "INC-42", "--dry-run")
    hourhand("jobs", "pause", job, "--note", "INC-42")
    listed = hourhand("deeds", "--job", job)
    head, pause, create = listed.out.splitlines()
    assert head.split() == ["WHEN", "WHO", "VIA", "ACTION", "WHAT", "VERSION", "COUNT", "NOTE"]
    assert ["local", "local", "job.pause", job, "2", "–", "INC-42"] == pause.split()[-7:]
    assert ["local", "local", "job.create", job, "1", "–"] == create.split()[-6:]
    versions = hourhand("jobs", "versions", job)
    assert versions.out.splitlines()[0].split()[:2] == ["VERSION", "BY"]
    assert [
        json.loads(line)["by"] for line in hourhand("jobs", "versions", job, "--jsonl").out.splitlines()
    ] == [
        "local",
        "local",
    ]


def test_filters_and_pages(hourhand, job: str) -> None:
    hourhand("jobs", "delete", job, "-y")
    gone = hourhand("deeds", "--job", job, "--action", "job.delete", "--by", "local", "--json").json["data"]
    assert [(one["action"], one["what"], one["version"]) for one in gone] == [("job.delete", job, 2)]
    assert hourhand("deeds", "--job", job, "--to", "2020-01-01", "-q").out == ""
    first = hourhand("deeds", "--job", job, "--limit", "1", "--json").json
    rest = hourhand("deeds", "--job", job, "--cursor", first["next_cursor"], "--json").json["data"]
    assert [one["action"] for one in rest] == ["job.create"]
    assert "nobody did anything" in hourhand("deeds", "--system", "--by", "somebody").err


def test_what_is_no_action_is_said(hourhand) -> None:
    done = hourhand("deeds", "--action", "job.creat")
    assert (done.code, "did you mean job.create?" in done.err) == (2, True)
