"""Ctrl-C while a command waits: 130, and the id of what goes on."""

import os
import signal
import subprocess
import sys
from typing import Any

import msgspec
import pytest

from hourhand.client import Client
from hourhand.clock import SystemClock
from hourhand.core.instant import DAY_US, format_instant
from tests.cli.conftest import DEADLINE_S, Done, read_until

pytestmark = pytest.mark.usefixtures("server")


def interrupted(*arguments: str) -> Done:
    """A command that got Ctrl-C once it had begun to wait, as its first line tells."""
    with subprocess.Popen(
        [sys.executable, "-m", "hourhand", *arguments, "--wait", "--jsonl"],
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        first = read_until(process.stdout.fileno(), rb"\{.*\}")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=DEADLINE_S)
    return Done(process.returncode, (first + out).decode(), err.decode())


@pytest.fixture
def job(hourhand: Any, request: pytest.FixtureRequest) -> str:
    made = hourhand(
        *("jobs", "create", request.node.name, "--cron", "0 0 1 1 *", "--tag", request.node.name, "-q"),
        *("--python", "functions_for_cli:hang"),
    )
    assert made.code == 0, made.err
    return str(made.out.strip())


def test_a_run(server: str, job: str) -> None:
    done = interrupted("jobs", "run", job)
    run_id = msgspec.json.decode(done.out.partition("\n")[0])["run_id"]
    with Client(server) as client:
        client.runs.cancel(run_id)
    assert done.code == 130
    assert done.err == f"error: interrupted; {run_id} goes on, see `hourhand runs watch {run_id}`\n"


def test_an_operation(server: str, job: str, request: pytest.FixtureRequest) -> None:
    chosen = ("--filter", f"tag={request.node.name}", "--rate", "1/h", "-y")
    done = interrupted("operations", "create", "run", *chosen)
    with Client(server) as client:
        made = client.operations.page()["data"][0]
        client.operations.cancel(made)
    ident = made["operation_id"]
    assert (done.code, f"{ident} goes on, see `hourhand operations show {ident}`" in done.err) == (130, True)


def test_a_backfill(server: str, job: str) -> None:
    since = format_instant(SystemClock().now() - 800 * DAY_US)
    done = interrupted("backfill", "create", job, "--from", since, "--rate", "1/h", "--force")
    with Client(server) as client:
        made = client.backfills.page(job_id=job)["data"][0]
        client.backfills.cancel(made)
    ident = made["backfill_id"]
    assert (done.code, f"{ident} goes on, see `hourhand backfill show {ident}`" in done.err) == (130, True)
