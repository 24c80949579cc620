"""`audit` against a running server, and how its equation reads."""

import pytest

from hourhand.cli.audits import equation
from hourhand.client.resources.audits import added

NUMBERS = {
    "expected": 1_440, "succeeded": 1_432, "skipped": 6, "failed": 0, "cancelled": 0, "waiting": 2, "missed": 4,
    "lost": 0, "beside": 3,
}  # fmt: skip


def test_the_equation_names_what_there_is() -> None:
    assert equation(NUMBERS) == "expected 1,440 = 1,432 succeeded + 6 skipped + 2 waiting"
    assert equation({**NUMBERS, "waiting": 1, "lost": 1}).endswith("6 skipped + 1 waiting + 1 LOST")
    assert equation(dict.fromkeys(NUMBERS, 0)) == "expected 0 = 0"


def test_parts_of_an_audit_are_added_up() -> None:
    part = {
        **NUMBERS,
        "jobs_checked": 5,
        "findings": [{"run_id": "a"}],
        "kinds": {"lost": 1, "double": 0},
        "by_job": [],
        "unread": [],
        "partial": ["shard 1"],
        "complete": False,
        "next_cursor": "x",
        "from": "2026-11-16T08:00:00Z",
        "to": "2026-11-16T09:00:00Z",
    }
    last = {**part, "findings": [{"run_id": "b"}], "partial": [], "next_cursor": None, "complete": True}
    whole = added(part, last)
    assert (whole["expected"], whole["jobs_checked"], whole["kinds"]) == (2_880, 10, {"lost": 2, "double": 0})
    assert whole["findings"] == [{"run_id": "a"}, {"run_id": "b"}]
    assert (whole["complete"], whole["next_cursor"], whole["partial"]) == (False, None, ["shard 1"])
    assert whole["from"] == "2026-11-16T08:00:00Z"


@pytest.mark.usefixtures("server")
class TestOnAServer:
    def test_a_sound_history_ends_with_zero(self, hourhand, request: pytest.FixtureRequest) -> None:
        target = ["--python", "functions_for_cli:succeed"]
        done = hourhand("jobs", "create", request.node.name, "--every", "1h", *target, "-q")
        job = done.out.strip()
        assert hourhand("jobs", "run", job, "--wait").code == 0
        done = hourhand("audit", "--job", job)
        assert done.code == 0, done.err
        assert done.out.splitlines() == ["expected 0 = 0", "beside the schedule: 1 run"]
        document = hourhand("audit", "--job", job, "--json").json
        assert (document["complete"], document["beside"]) == (True, 1)
        assert hourhand("audit", "-q").out == ""

    def test_each_job_has_an_equation_of_its_own(self, hourhand, request: pytest.FixtureRequest) -> None:
        target = ["--python", "functions_for_cli:succeed"]
        for name in ("one", "other"):
            hourhand("jobs", "create", f"{request.node.name}-{name}", "--every", "1h", *target, "-q")
        lines = hourhand("audit", "--by-job", "--from", "yesterday 00:00").out.splitlines()
        for name in ("one", "other"):
            assert f"{request.node.name}-{name}: expected 0 = 0" in lines
        assert hourhand("audit", "--from", "yesterday 00:00", "--json").json["by_job"] == []
        found = hourhand("audit", "--by-job", "--json").json
        assert len(found["by_job"]) == found["jobs_checked"] >= 2
        assert sum(one["expected"] for one in found["by_job"]) == found["expected"]

    def test_a_deleted_job_is_known_by_its_id(self, hourhand, request: pytest.FixtureRequest) -> None:
        target = ["--python", "functions_for_cli:succeed"]
        done = hourhand("jobs", "create", request.node.name, "--every", "1h", *target, "-q")
        job = done.out.strip()
        assert hourhand("jobs", "delete", job, "-y").code == 0
        assert hourhand("audit", "--job", job, "--json").json["by_job"][0]["job_name"] == request.node.name
        assert hourhand("audit", "--job", request.node.name).code == 3
        assert hourhand("audit", "--job", job[:-1] + "z").code == 3

    def test_a_window_that_cannot_be_is_refused(self, hourhand) -> None:
        done = hourhand("audit", "--from", "2020-01-01T00:00:00Z")
        assert done.code == 2
        assert "how long history is kept" in done.err
        done = hourhand("audit", "--from", "2999-01-01T00:00:00Z")
        assert (done.code, done.err.splitlines()) == (
            2,
            [
                "error: there is no such window to be audited",
                "  from: expected a time that has passed, got 2999-01-01T00:00:00Z; what is to come cannot be audited",
            ],
        )
        assert hourhand("audit", "--from", "whenever").code == 2
        assert hourhand("audit", "--job", "nobody").code == 3
