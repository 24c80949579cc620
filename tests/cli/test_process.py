"""The command as a process: Ctrl-C, a reader that goes away, and what is not loaded to start fast."""

import os
import signal
import subprocess
import sys

import pytest

from tests.cli.conftest import DEADLINE_S, read_until

HOURHAND = [sys.executable, "-m", "hourhand"]


def environment(**more: str) -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("HOURHAND_")} | more


def test_ctrl_c_in_a_waiting_command_ends_with_130(hourhand, server: str) -> None:
    target = ["--python", "functions_for_cli:hang"]
    assert hourhand("jobs", "create", "hanging", "--every", "1h", *target).code == 0
    command = [*HOURHAND, "jobs", "run", "hanging", "--wait", "--jsonl"]
    with subprocess.Popen(
        command,
        env=environment(HOURHAND_URL=server, PYTHONUNBUFFERED="1"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        read_until(process.stdout.fileno(), rb'"run_id".*')
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 130
    assert b"Traceback" not in errors


def test_a_reader_that_has_seen_enough_is_no_error() -> None:
    with subprocess.Popen(
        [*HOURHAND, "next", "* * * * *", "-n", "10000"],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr is not None
        errors = process.stderr.read()
        assert process.wait(DEADLINE_S) == 0
    assert errors == b"every minute, UTC\n"


@pytest.mark.parametrize("count", ["1", "10000"])
def test_no_room_for_the_answer_is_told_as_that(count: str) -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [*HOURHAND, "next", "* * * * *", "-n", count],
            env=environment(),
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert (done.returncode, done.stderr.splitlines()[1:]) == (
        1,
        [b"error: cannot write: No space left on device"],
    )


@pytest.mark.parametrize(("given", "code", "told"), [(3, 3, ""), (None, 0, ""), ("over", 1, "over\n")])
def test_whoever_ends_the_process_keeps_its_code(
    hourhand, given: int | str | None, code: int, told: str
) -> None:
    def leave(*_: object) -> int:
        raise SystemExit(given)

    done = hourhand("doctor", examine=leave)
    assert (done.code, done.err) == (code, told)


def test_commands_without_a_server_load_no_server_and_no_client() -> None:
    script = """
import sys
from hourhand.cli.app import run
assert run(["next", "@daily"], None) == 0
assert run(["jobs", "--help"], None) == 0
heavy = {"yaml", "httpx2", "fastapi", "aiohttp", "uvicorn", "rich.table", "prometheus_client", "hourhand.config"}
sys.exit(", ".join(sorted(heavy & sys.modules.keys())) or 0)
"""
    done = subprocess.run([sys.executable, "-c", script], env=environment(), capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
