"""What `hourhand simulate` takes, and what it says where it cannot."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hourhand.__main__ import Wired
from hourhand.cli.app import run
from tests.cli.conftest import Done

JOBS = """
jobs:
  - {key: sync, name: nightly sync, every: 1h, target: "https://x.example/"}
  - {key: etl-a, every: 1h, target: "https://x.example/"}
  - {key: etl-b, every: 1h, target: "https://x.example/"}
"""
SINCE = ("--start", "2026-11-16T00:00:00Z", "--days", "1")


class Heard(Wired):
    """Notes what is asked for, and simulates nothing."""

    def __init__(self) -> None:
        self.wish: Any = None

    def simulate(self, wish: Any) -> dict[str, Any]:
        self.wish = wish
        return {}


@pytest.fixture
def jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "jobs.yaml"
    path.write_text(JOBS)
    return path


def test_durations_and_failures_are_for_all_or_for_those_named(jobs: Path) -> None:
    heard = Heard()
    given = (
        "--duration",
        "2s",
        "--duration",
        "etl-*=1m/5m",
        "--fail",
        "nightly sync=2.5%",
        "--fail",
        "etl-b=0.5",
    )
    assert run(["simulate", "jobs.yaml", *SINCE, *given, "--json"], heard) == 0
    habits = [(job.p50_us // 1_000_000, job.p99_us // 1_000_000, job.fails) for job in heard.wish.jobs]
    assert habits == [(2, 2, 0.025), (60, 300, 0.0), (60, 300, 0.5)]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (("--duration", "snyc=1m"), "no job is called 'snyc'; did you mean sync?"),
        (("--duration", "soon"), "'soon' is not a duration"),
        (("--duration", "5m/1m"), "the smaller first"),
        (("--fail", "120%"), "from 0% to 100%"),
        (("--fail", "often"), "from 0% to 100%"),
        (("--outage", "2026-11-16T01:00:00Z"), "expected FROM..TO"),
        (("--outage", "2026-11-16T02:00:00Z..2026-11-16T01:00:00Z"), "FROM before TO"),
        (("--outage", "2026-11-16T02:00:00Z..2026-11-18T01:00:00Z"), "within the days"),
        (("--start", "9999-12-31T00:00:00Z"), "outside of the years 0102 to 9898"),
        (("--start", "9898-12-31T00:00:00Z"), "outside of the years 0102 to 9898"),
        (("--outage", "2026-11-16T02:00:00Z..9999-12-31T23:59:59-23:59"), "outside of the years"),
        (("--from-server",), "either files and modules, or --from-server"),
    ],
)
def test_what_is_not_right_is_told(
    jobs: Path, given: tuple[str, ...], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    heard = Heard()
    assert run(["simulate", "jobs.yaml", *SINCE, *given], heard) == 2
    assert words in capsys.readouterr().err
    assert heard.wish is None


def test_nothing_to_simulate(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["simulate"], Heard()) == 2
    assert "say what to simulate" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["", "# none yet\n"])
def test_files_without_anything(jobs: Path, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    jobs.write_text(text)
    assert run(["simulate", "jobs.yaml", *SINCE], Heard()) == 2
    told = capsys.readouterr().err
    assert told.startswith("error: 1 fault; nothing was simulated\n  jobs.yaml: holds no jobs")


@pytest.mark.parametrize("text", ["jobs: []\n", "set: a\njobs: []\n", "[]"])
def test_files_without_jobs(jobs: Path, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    jobs.write_text(text)
    heard = Heard()
    assert run(["simulate", "jobs.yaml", *SINCE], heard) == 2
    assert capsys.readouterr().err == "error: there are no jobs in jobs.yaml; nothing was simulated\n"
    assert heard.wish is None


@pytest.mark.parametrize("start", ["9898-12-30T23:59:59Z", "0102-01-01T00:00:00Z"])
def test_the_first_and_the_last_days_there_are(
    jobs: Path, start: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["simulate", "jobs.yaml", "--start", start, "--days", "1"], Wired()) == 0
    assert "3 jobs, 72 runs expected" in capsys.readouterr().out


def test_pools_are_no_limit_and_that_is_said(jobs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["simulate", "jobs.yaml", *SINCE], Wired()) == 0
    assert capsys.readouterr().err == ""
    jobs.write_text(JOBS.replace("key: etl-a,", "key: etl-a, pool: gpu,").replace("b,", "b, pool: default,"))
    assert run(["simulate", "jobs.yaml", *SINCE], Wired()) == 0
    assert capsys.readouterr().err == "note: simulated workers serve all pools, also gpu\n"


def test_a_servers_jobs(hourhand: Callable[..., Done], server: str) -> None:
    made = {}
    for name, options in {
        "sim-hourly": ("--cron", "0 * * * *", "--overlap", "skip", "--timeout", "3h"),
        "sim-follows": ("--after", "sim-hourly", "--pool", "big"),
        "sim-paused": ("--every", "1m"),
        "sim-once": ("--at", "2099-11-16T12:00:00Z"),
    }.items():
        made[name] = hourhand(
            "jobs", "create", name, *options, "--url", "https://x.example/", "-q"
        ).out.strip()
    hourhand("jobs", "pause", "sim-paused")
    before = hourhand("jobs", "list", "--json").json["data"]
    command = ("simulate", "--from-server", "--start", "2099-11-16T00:00:00Z", "--days", "1")
    done = hourhand(*command, "--duration", "sim-hourly=90m", "--json", simulate=Wired().simulate)
    assert done.code == 0, done.err
    found = {job["name"]: job for job in done.json["jobs"]}
    counts = {name: (found[name]["expected"], found[name]["succeeded"]) for name in made}
    assert counts["sim-paused"] == (0, 0)
    assert counts["sim-once"] == (1, 1)
    assert counts["sim-hourly"][0] == counts["sim-follows"][0] == 24
    assert found["sim-hourly"]["skipped"] == {"overlap": 12}
    assert found["sim-follows"]["skipped"] == {"upstream": 12}
    assert hourhand("jobs", "list", "--json").json["data"] == before
    for job in made.values():
        hourhand("jobs", "delete", job, "-y")


def test_a_file_that_is_not_there(jobs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["simulate", "nowhere.yaml", *SINCE], Wired()) == 2
    assert "nothing was simulated\n  nowhere.yaml: cannot be read" in capsys.readouterr().err


def test_faults_name_their_lines(jobs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    jobs.write_text(JOBS + '  - {key: bad, cron: "61 * * * *", target: "https://x.example/"}\n')
    assert run(["simulate", "jobs.yaml", *SINCE], Wired()) == 2
    told = capsys.readouterr().err
    assert "nothing was simulated" in told
    assert "jobs.yaml:6: bad: cron" in told
