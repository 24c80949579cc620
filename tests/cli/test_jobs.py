"""`jobs` against a running server: create, look at, change, run."""

import json
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.usefixtures("server")

SUCCEED = ["--python", "functions_for_cli:succeed"]


@pytest.fixture
def job(hourhand, request: pytest.FixtureRequest) -> str:
    """A job that seldom fires, named after the test."""
    name = f"{request.node.name}-job"
    done = hourhand("jobs", "create", name, "--every", "1h", *SUCCEED)
    assert done.code == 0, done.err
    return name


def test_creating_prints_words_times_and_the_next_change_of_the_clocks(hourhand) -> None:
    done = hourhand("jobs", "create", "report", "--cron", "0 9 * * *", "--tz", "Europe/Berlin", *SUCCEED)
    assert done.code == 0
    lines = done.out.splitlines()
    assert lines[0].startswith("id           J-")
    assert lines[2] == "schedule     at 09:00 every day, Europe/Berlin"
    times = [line for line in lines if " 09:00:00 +0" in line]
    assert len(times) == 3
    assert times[0].startswith("next  ")
    assert lines[-2].startswith("DST  ")
    assert "clocks go" in lines[-2]
    assert lines[-1].startswith("beside  ")
    assert done.err == "created\n"


@pytest.mark.parametrize("name", ["", " "])
def test_whom_it_follows_is_named(hourhand, name: str) -> None:
    done = hourhand("jobs", "create", "w2", "--after", name, *SUCCEED)
    assert (done.code, done.err) == (2, "error: --after: expected a job's id, key or name\n")


def test_a_name_of_spaces_is_refused(hourhand) -> None:
    done = hourhand("jobs", "create", "  ", "--every", "1h", *SUCCEED)
    assert (done.code, "name: expected a name that can be seen, or none" in done.err) == (2, True)


def test_every_field_has_its_flag(hourhand) -> None:
    created = hourhand(
        *("jobs", "create", "all-fields", "--cron", "30 2 * * *", "--tz", "Europe/Berlin"),
        *("--gap", "skip", "--fold", "second", "--starts-at", "2030-01-01T00:00:00Z"),
        *("--ends-at", "2031-01-01T00:00:00Z", "--max-runs", "5", "--url", "https://example.com/x"),
        *("--method", "put", "--header", "X-One: 1", "--header", "X-Two: a:b", "--target-timeout", "3s"),
        *("--payload", '{"a": [1]}', "--key", "cli/all", "--shard-key", "s", "--tag", "t1", "--tag", "t2"),
        *("--priority", "high", "--durability", "fire_and_forget", "--pool", "p", "--timeout", "1m"),
        *("--delivery", "at_most_once", "--retries", "0", "--retry-first", "2s", "--retry-factor", "3"),
        *("--retry-max-delay", "1m", "--concurrency", "unlimited", "--overlap", "skip"),
        *("--misfire", "catch_up", "--misfire-grace", "5s", "--misfire-limit", "7", "--jitter", "2s"),
        *("--paused", "--note", "not yet", "--json"),
    )
    assert created.code == 0, created.err
    expected = {
        "name": "all-fields",
        "cron": "30 2 * * *",
        "tz": "Europe/Berlin",
        "dst": {"gap": "skip", "fold": "second"},
        "starts_at": "2030-01-01T00:00:00Z",
        "ends_at": "2031-01-01T00:00:00Z",
        "max_runs": 5,
        "target": {
            "type": "http",
            "url": "https://example.com/x",
            "method": "PUT",
            "headers": {"X-One": "1", "X-Two": "a:b"},
            "timeout": "3s",
        },
        "payload": {"a": [1]},
        "key": "cli/all",
        "shard_key": "s",
        "tags": ["t1", "t2"],
        "priority": "HIGH",
        "durability": "fire_and_forget",
        "pool": "p",
        "timeout": "1m",
        "delivery": "at_most_once",
        "retry": {"max": 0, "first": "2s", "factor": 3, "max_delay": "1m"},
        "concurrency": "unlimited",
        "overlap": "skip",
        "misfire": {"policy": "catch_up", "grace": "5s", "limit": 7},
        "jitter": "2s",
        "paused": True,
        "note": "not yet",
    }
    assert {name: created.json[name] for name in expected} == expected


def test_a_document_may_come_from_a_file_and_options_go_first(hourhand, tmp_path: Path) -> None:
    document = {
        "name": "filed",
        "every": "2h",
        "target": {"type": "python", "function": "a:b"},
        "timeout": "9s",
    }
    (tmp_path / "job.json").write_text(json.dumps(document))
    done = hourhand("jobs", "create", "--file", str(tmp_path / "job.json"), "--timeout", "8s", "--json")
    assert (done.json["name"], done.json["every"], done.json["timeout"]) == ("filed", "2h", "8s")


def test_a_dry_run_creates_nothing(hourhand) -> None:
    done = hourhand("jobs", "create", "never-made", "--every", "1h", *SUCCEED, "--dry-run")
    assert done.code == 0
    assert "would be created" in done.err
    assert hourhand("jobs", "show", "never-made").code == 3


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["x", "--cron", "99 * * * *", "--url", "https://example.com"], "cron"),
        (["x", "--every", "1h"], "target"),
        (["x", "--every", "1h", "--url", "ftp://example.com"], "target/url"),
        (["x", "--every", "1h", *SUCCEED, "--payload", "{"], "--payload"),
        (["x", "--every", "1h", *SUCCEED, "--payload", "@/absent"], "cannot read /absent"),
        (["x", "--every", "1h", *SUCCEED, "--header", "nonsense"], "--header"),
        (["x", "--every", "1h", *SUCCEED, "--retries", "many"], "--retries"),
        (["x", "--file", "/absent"], "cannot read /absent"),
    ],
)
def test_what_is_wrong_with_a_job_is_named(hourhand, arguments: list[str], words: str) -> None:
    done = hourhand("jobs", "create", *arguments)
    assert (done.code, done.out) == (2, "")
    assert words in done.err


def test_json_errors_are_the_servers_problem(hourhand) -> None:
    problem = hourhand("jobs", "create", "--cron", "99 * * * *", *SUCCEED, "--json").problem
    assert problem["errors"][0]["pointer"] == "/cron"
    assert problem["request_id"]


def test_lists_in_all_forms(hourhand, job: str) -> None:
    table = hourhand("jobs", "list", "--name", job)
    head, row = table.out.splitlines()
    assert head.split() == ["ID", "NAME", "STATE", "SCHEDULE", "NEXT"]
    job_id = row.split()[0]
    assert "\x1b" not in table.out
    assert hourhand("jobs", "list", "--name", job, "-q").out == f"{job_id}\n"
    page = hourhand("jobs", "list", "--name", job, "--json").json
    assert [one["name"] for one in page["data"]] == [job]
    assert page["next_cursor"] is None
    line = hourhand("jobs", "list", "--name", job, "--jsonl").out
    assert json.loads(line) == page["data"][0]


def test_empty_lists_say_what_to_do(hourhand) -> None:
    done = hourhand("jobs", "list", "--tag", "nobody-has-it")
    assert (done.code, done.out, done.err) == (0, "", "nothing matches\n")


def test_pages_go_on_where_the_last_ended(hourhand) -> None:
    for _ in range(3):
        assert hourhand("jobs", "create", "paged", "--every", "1h", *SUCCEED).code == 0
    first = hourhand("jobs", "list", "--name", "paged", "--limit", "2", "-q")
    cursor = first.err.split()[-1]
    second = hourhand("jobs", "list", "--name", "paged", "--limit", "2", "-q", "--cursor", cursor)
    assert len({*first.out.split(), *second.out.split()}) == 3
    assert second.err == ""


def test_a_name_of_several_jobs_is_ambiguous_and_an_unknown_one_not_found(hourhand) -> None:
    for _ in range(2):
        hourhand("jobs", "create", "twin", "--every", "1h", *SUCCEED)
    assert hourhand("jobs", "show", "twin").code == 5
    assert hourhand("jobs", "show", "nobody").code == 3


def test_names_cannot_play_with_the_terminal(hourhand) -> None:
    assert hourhand("jobs", "create", "evil\u202e[bold]name", "--every", "1h", *SUCCEED).code == 0
    out = hourhand("jobs", "list", "--name", "evil").out
    assert "evil\\u202e[bold]name" in out


def test_show_says_everything(hourhand, job: str) -> None:
    out = hourhand("jobs", "show", job).out
    for line in ("state        active", "target       functions_for_cli:succeed", "status       PENDING"):
        assert line in out
    assert hourhand("jobs", "show", job, "--json").json["name"] == job


def test_update_changes_what_is_named_only(hourhand, job: str) -> None:
    done = hourhand("jobs", "update", job, "--timeout", "9s", "--tag", "x", "--json")
    assert (done.json["timeout"], done.json["tags"], done.json["version"]) == ("9s", ["x"], 2)
    assert done.json["every"] == "1h"
    back = hourhand("jobs", "update", job, "--unset", "timeout", "--json").json
    assert (back["timeout"], back["tags"]) == ("5m", ["x"])
    trial = hourhand("jobs", "update", job, "--timeout", "7s", "--dry-run")
    assert "would be changed" in trial.err
    assert hourhand("jobs", "show", job, "--json").json["timeout"] == "5m"


def test_update_needs_something_to_change(hourhand, job: str) -> None:
    done = hourhand("jobs", "update", job)
    assert done.code == 2
    assert "nothing to change" in done.err


def test_edit_goes_through_the_editor(hourhand, job: str, tmp_path: Path, monkeypatch) -> None:
    script = tmp_path / "editor.py"
    script.write_text("import pathlib, sys\np = pathlib.Path(sys.argv[1])\np.write_text(p.read_text())\n")
    monkeypatch.setenv("EDITOR", f"{sys.executable} {script}")
    assert hourhand("jobs", "edit", job).err == "nothing changed\n"
    script.write_text(script.read_text().replace(".read_text()", ".read_text().replace('5m', '4m')"))
    assert hourhand("jobs", "edit", job, "--json").json["timeout"] == "4m"
    script.write_text("import pathlib, sys\npathlib.Path(sys.argv[1]).write_text('{')\n")
    broken = hourhand("jobs", "edit", job)
    assert broken.code == 2
    kept = Path(broken.err.split("kept in ")[1].strip())
    assert kept.read_text() == "{"
    kept.unlink()
    monkeypatch.setenv("EDITOR", "/absent/editor")
    assert "cannot start the editor" in hourhand("jobs", "edit", job).err


def test_pause_and_resume(hourhand, job: str) -> None:
    paused = hourhand(
        "jobs", "pause", job, "--note", "INC-42", "--until", "2040-01-01T00:00:00Z", "--json"
    ).json
    assert (paused["state"], paused["note"], paused["paused_until"]) == (
        "paused",
        "INC-42",
        "2040-01-01T00:00:00Z",
    )
    assert hourhand("jobs", "next", job).err == "no time to come: the job is paused\n"
    assert "paused until 2040-01-01 00:00:00 +00:00: INC-42" in hourhand("jobs", "show", job).out
    assert hourhand("jobs", "resume", job, "--json").json["state"] == "active"


def test_delete_asks_unless_told_otherwise(hourhand, job: str) -> None:
    asked = hourhand("jobs", "delete", job)
    assert asked.code == 2
    assert "-y" in asked.err
    assert hourhand("jobs", "delete", job, "--dry-run").code == 0
    assert hourhand("-y", "jobs", "delete", job, "--json").json == {"deleted": True}
    assert hourhand("jobs", "delete", job, "-y").code == 3


def test_next_versions_and_history(hourhand, job: str) -> None:
    times = hourhand("jobs", "next", job, "-n", "2").out.splitlines()
    assert len(times) == 2
    assert all("+00:00" in line and " in " in line for line in times)
    assert hourhand("jobs", "next", job, "-n", "1", "--tz", "Asia/Kolkata").out.count("+05:30") == 1
    hourhand("jobs", "update", job, "--every", "2h")
    versions = hourhand("jobs", "versions", job, "--jsonl").out.splitlines()
    assert [json.loads(line)["job"]["every"] for line in versions] == ["1h", "2h"]
    [coming] = hourhand("jobs", "history", job, "-q").out.split()
    run_id = hourhand("jobs", "run", job, "--wait", "-q").out.strip()
    assert hourhand("jobs", "history", job, "-q").out.split() == [coming, run_id]


def test_creating_tells_what_else_fires_in_that_second(hourhand) -> None:
    target = ("--cron", "17 3 29 2 *", "--url", "https://example.com")
    assert "beside" in hourhand("jobs", "create", "leap-1", *target).out
    told = hourhand("jobs", "create", "leap-2", *target).out
    assert "in that second: leap-1" in told
