"""The auditor in the real command: it looks by itself, tells what it found, and pings only when all is well."""

import re
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.chaos.calls import SECOND_US, nominal_of
from tests.chaos.jumping_clock import Dial
from tests.chaos.process import WAIT_S, SinkProcess, Up, wait_for

MINUTE_US = 60 * SECOND_US
TIMES = 3
PERIOD_US = (
    5 * MINUTE_US + 30 * SECOND_US
)  # more than lies between two audits, and less than half of what one sees
AUDITED_S = (
    60 + WAIT_S
)  # the first is a minute after the start, where the clock was turned before anybody looked at it


class Watch:
    """A dead man's switch: notes who called."""

    def __init__(self) -> None:
        self.paths: list[str] = []
        watch = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                watch.paths.append(self.path)
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Not to our output."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}/alive/{{shard}}"


@pytest.fixture
def watch() -> Iterator[Watch]:
    made = Watch()
    thread = threading.Thread(target=made.server.serve_forever, daemon=True)
    thread.start()
    yield made
    made.server.shutdown()
    thread.join(WAIT_S)
    made.server.server_close()


@pytest.fixture
def dial(tmp_path: Path) -> Dial:
    return Dial(tmp_path / "clock")


@pytest.fixture
def watched(make_up: Callable[..., Up], watch: Watch, dial: Dial) -> Up:
    up = make_up(more={"HOURHAND_ALERTS_DEADMAN_URL": watch.url})
    up.launcher = dial.launcher
    return up


def metric(up: Up, name: str) -> float | None:
    """One number of /metrics; None while there is none."""
    text = up.api.expect(200, "GET", "//metrics")
    found = re.search(rf"^{re.escape(name)} (\S+)$", str(text), re.MULTILINE)
    return None if found is None else float(found[1])


def audited(up: Up, expected: int, lost: int) -> bool:
    """Whether the last audit saw so much."""
    return (
        metric(up, 'hourhand_audit_expected{database="0"}') == expected
        and metric(up, 'hourhand_audit_lost{database="0"}') == lost
    )


def test_it_pings_after_a_clean_audit_and_is_silent_once_something_is_lost(
    watched: Up, watch: Watch, dial: Dial, sink: SinkProcess
) -> None:
    up = watched.start()
    job = up.api.create(every="1s", max_runs=TIMES, concurrency="unlimited", callback_url=sink.url("ok"))
    wait_for("its runs", lambda: outcomes(up, job) == ["SUCCEEDED"] * TIMES)
    before = len(watch.paths)
    dial.turn(PERIOD_US)
    wait_for("a clean audit", lambda: audited(up, TIMES, 0), AUDITED_S)
    wait_for("its ping", lambda: len(watch.paths) > before)
    assert set(watch.paths) == {"/alive/0"}
    pings = len(watch.paths)
    lost = sink.log.of(job)[1].key
    forget(up.data, lost)
    dial.turn(PERIOD_US)
    wait_for("an audit that finds it", lambda: audited(up, TIMES, 1), AUDITED_S)
    assert metric(up, 'hourhand_audit_findings{database="0",kind="lost"}') == 1
    asked = audit(up)
    assert (asked.returncode, asked.stdout.split()) == (8, [lost])
    assert up.stop() == 0
    assert len(watch.paths) == pings
    assert "runs do not add up to the schedule" in up.output()
    assert lost in up.output()


def forget(data: Path, run_id: str) -> None:
    """Take a run out of history behind the command's back."""
    connection = sqlite3.connect(data, timeout=WAIT_S)
    with connection:
        done = connection.execute("DELETE FROM history WHERE scheduled_at = ?", (nominal_of(run_id),))
    connection.close()
    assert done.rowcount == 1


def outcomes(up: Up, job: str) -> list[str]:
    return [run["status"] for run in up.api.expect(200, "GET", f"/jobs/{job}/history")["data"]]


def audit(up: Up) -> "subprocess.CompletedProcess[str]":
    """`hourhand audit -q`, as somebody would ask."""
    command = [sys.executable, "-m", "hourhand", "audit", "-q", "--server", f"http://127.0.0.1:{up.port}"]
    return subprocess.run(
        command, capture_output=True, text=True, env=up.environment, timeout=WAIT_S, check=False
    )
