"""What a target accepted outlives kill -9 of everything: it is neither called again nor forgotten, and can be reported."""

import json
from urllib.parse import urlsplit

from tests.chaos import tables
from tests.chaos.process import SinkProcess, Up, wait_for

FAR = "2099-01-01T00:00:00Z"


def accepted(up: Up, sink: SinkProcess, **fields: object) -> tuple[str, str, str]:
    """A run that waits for its report: its id, the path of the report and the token."""
    job = up.api.create(at=FAR, callback_url=sink.url("accept"), **fields)
    run_id = str(up.api.expect(202, "POST", f"/jobs/{job}/run")["run_id"])
    wait_for("the answer", lambda: up.api.expect(200, "GET", f"/runs/{run_id}")["awaits_report"])
    calls = [json.loads(line) for line in sink.path.read_text().splitlines()]
    [url, token] = next(call["report"] for call in calls if call["key"] == run_id)
    return run_id, urlsplit(url).path.removeprefix("/api/v1"), token


def test_an_accepted_run_waits_for_its_report_through_a_kill(up: Up, sink: SinkProcess) -> None:
    up.start()
    run_id, path, token = accepted(up, sink)
    bearer = {"Authorization": f"Bearer {token}"}
    progress = {"attempt": 1, "outcome": "progress", "progress": 0.4}
    up.api.expect(200, "POST", path, progress, **bearer)
    up.kill()
    up.start()
    run = up.api.expect(200, "GET", f"/runs/{run_id}")
    assert (run["status"], run["awaits_report"], run["progress"]["fraction"]) == ("RUNNING", True, 0.4)
    done = {"attempt": 1, "outcome": "succeeded", "result": 7}
    assert up.api.expect(200, "POST", path, done, **bearer)["repeated"] is False
    up.kill()  # right after the answer
    up.start()
    assert up.api.expect(200, "POST", path, done, **bearer)["repeated"] is True
    run = up.api.expect(200, "GET", f"/runs/{run_id}")
    assert (run["status"], run["response"], len(run["attempts"])) == ("SUCCEEDED", {"value": 7}, 1)
    assert len([line for line in sink.path.read_text().splitlines() if run_id in line]) == 1
    assert up.stop() == 0
    assert not tables.problems(up.data, {run_id})


def test_a_deadline_that_passes_while_everything_is_down_is_a_timeout(up: Up, sink: SinkProcess) -> None:
    up.start()
    run_id, path, token = accepted(up, sink, timeout="4s", retry={"max": 0})
    up.kill()
    up.start()
    wait_for("the timeout", lambda: up.api.expect(200, "GET", f"/runs/{run_id}")["status"] == "FAILED")
    run = up.api.expect(200, "GET", f"/runs/{run_id}")
    assert run["error"] == "no report within its timeout of 4s"
    late = {"attempt": 1, "outcome": "succeeded"}
    up.api.expect(410, "POST", path, late, Authorization=f"Bearer {token}")
