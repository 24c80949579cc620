"""`jobs create --shell` and `runs logs` against a running server: output as text, live, and off unless allowed."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import DEADLINE_S, Done, read_until, started

Hourhand = Callable[..., Done]


@pytest.fixture
def make(hourhand: Hourhand, server: str, request: pytest.FixtureRequest) -> Callable[..., str]:
    """Creates a job and answers its id."""

    def make(*target: str) -> str:
        done = hourhand("jobs", "create", request.node.name[:60], "--every", "1h", "-q", *target)
        assert done.code == 0, done.err
        return done.out.strip()

    return make


def run(hourhand: Hourhand, job: str) -> str:
    """Run a job to its end; the run's id."""
    return hourhand("jobs", "run", job, "--wait", "-q").out.strip()


def test_a_command_and_what_it_said(hourhand: Hourhand, make: Callable[..., str]) -> None:
    job = make(
        "--env", "LEVEL=3", "--payload", '{"a": 1}', "--shell", "--", "sh", "-c", "echo $LEVEL; cat; exit 0"
    )
    target = hourhand("jobs", "show", job, "--json").json["target"]
    assert target["argv"] == ["sh", "-c", "echo $LEVEL; cat; exit 0"]
    done = hourhand("runs", "logs", run(hourhand, job))
    assert (done.code, done.out, done.err) == (0, '3\n{"a":1}\n', "")


def test_creating_one_says_what_it_needs(hourhand: Hourhand, server: str) -> None:
    done = hourhand("jobs", "create", "needy", "--every", "1h", "--dry-run", "--shell", "--", "true")
    assert "started with --allow-shell" in done.err


def test_a_failure_says_where_its_output_is(hourhand: Hourhand, make: Callable[..., str]) -> None:
    job = make("--no-retry-code", "3", "--shell", "--", "sh", "-c", "echo broken >&2; exit 3")
    done = hourhand("jobs", "run", job, "--wait")
    assert done.code == 7
    assert "exit code 3" in done.out
    run_id = done.out.splitlines()[-1].split()[0]
    assert f"what it said: hourhand runs logs {run_id}" in done.err
    assert hourhand("runs", "logs", run_id).out == "broken\n"


def test_what_a_terminal_would_act_on_is_shown_as_text(hourhand: Hourhand, make: Callable[..., str]) -> None:
    printed = r"printf '\033]0;title\007\033[31mred\r\n\tü\342\200\256x'"
    run_id = run(hourhand, make("--shell", "--", "sh", "-c", printed))
    assert hourhand("runs", "logs", run_id).out == "\\x1b]0;title\\x07\\x1b[31mred\n\tü\\u202ex\n"
    assert hourhand("runs", "logs", run_id, "--raw").out == "\x1b]0;title\x07\x1b[31mred\r\n\tü\u202ex"


def test_attempts_apart_and_together(hourhand: Hourhand, make: Callable[..., str]) -> None:
    job = make(
        "--retries",
        "1",
        "--retry-first",
        "1ms",
        "--shell",
        "--",
        "sh",
        "-c",
        "echo $HOURHAND_ATTEMPT; exit 1",
    )
    run_id = run(hourhand, job)
    done = hourhand("runs", "logs", run_id)
    assert (done.out, done.err) == ("1\n2\n", "attempt 2\n")
    assert hourhand("runs", "logs", run_id, "--attempt", "2").out == "2\n"
    none = hourhand("runs", "logs", run_id, "--attempt", "9")
    assert (none.code, none.out) == (3, "")
    assert "has no attempt 9; it has 1, 2" in none.err


def test_as_documents(hourhand: Hourhand, make: Callable[..., str]) -> None:
    run_id = run(hourhand, make("--shell", "--", "echo", "hi"))
    document = hourhand("runs", "logs", run_id, "--json").json
    assert [(chunk["attempt"], chunk["stream"], chunk["text"]) for chunk in document["data"]] == [
        (1, "output", "hi\n")
    ]
    assert hourhand("runs", "logs", run_id, "--jsonl").json == document["data"][0]
    assert hourhand("runs", "logs", run_id, "-f", "--json").code == 2


def test_a_function_that_logs(hourhand: Hourhand, make: Callable[..., str]) -> None:
    run_id = run(hourhand, make("--python", "functions_for_cli:talk"))
    assert (
        hourhand("runs", "logs", run_id).out == "INFO beginning step=1\nWARNING going on step=2 path=/tmp\n"
    )


def test_nothing_said(hourhand: Hourhand, make: Callable[..., str]) -> None:
    done = hourhand("runs", "logs", run(hourhand, make("--shell", "--", "true")))
    assert (done.code, done.out, done.err) == (0, "", "it said nothing\n")


def test_following_shows_it_live_and_ends_with_the_run(
    hourhand: Hourhand, make: Callable[..., str], server: str, tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "go")
    job = make("--shell", "--", "sh", "-c", f"echo ready; cat {tmp_path}/go")
    run_id = hourhand("jobs", "run", job, "-q").out.strip()
    environment = {**os.environ, "HOURHAND_URL": server}
    command = [sys.executable, "-m", "hourhand", "runs", "logs", "-f", run_id]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE) as following:
        assert following.stdout is not None
        read_until(following.stdout.fileno(), rb"ready")
        (tmp_path / "go").write_text("went\n")
        rest, _ = following.communicate(timeout=DEADLINE_S)
    assert (rest, following.returncode) == (b"went\n", 0)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--shell",), "expected a command at the end"),
        (("--url", "https://example.com", "--", "ls"), "unexpected argument 'ls'"),
        (("--env", "canary", "--shell", "--", "ls"), "expected NAME=VALUE"),
    ],
)
def test_wrong_usage(hourhand: Hourhand, server: str, arguments: tuple[str, ...], words: str) -> None:
    done = hourhand("jobs", "create", "wrong", "--every", "1h", *arguments)
    assert done.code == 2
    assert words in done.err
    assert "canary" not in done.err


def test_a_change_of_the_command(hourhand: Hourhand, make: Callable[..., str]) -> None:
    job = make("--shell", "--", "true")
    assert hourhand("jobs", "update", job, "--cwd", "/", "--shell", "--", "echo", "-n", "x").code == 0
    target = hourhand("jobs", "show", job, "--json").json["target"]
    assert (target["argv"], target["cwd"]) == (["echo", "-n", "x"], "/")


def test_off_unless_allowed(hourhand: Hourhand, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with started(tmp_path) as url:
        monkeypatch.setenv("HOURHAND_URL", url)
        made = hourhand(
            "jobs", "create", "x", "--every", "1h", "-q", "--shell", "--", "touch", str(tmp_path / "done")
        )
        done = hourhand("jobs", "run", made.out.strip(), "--wait", "--timeout", "1s", "--json")
        assert done.code == 9
        run_id = hourhand("jobs", "history", made.out.strip(), "--json").json["data"][-1]["run_id"]
        shown = hourhand("runs", "show", run_id, "--json").json
        why = hourhand("why", run_id)
    assert (shown["status"], shown["retry_count"], shown["attempts"]) == ("PENDING", 0, [])
    assert shown["offered_at"] > shown["due_at"]
    assert "no live worker of the pool default may run commands" in why.out
    assert "would change it: a worker that may run commands: hourhand up --allow-shell" in why.out
    assert not (tmp_path / "done").exists()
