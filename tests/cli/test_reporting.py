"""`hourhand.report` for receivers, and `runs report`, `show` and `watch` for people, against a running server."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import Queue
from typing import Any

import pytest

from hourhand import report, report_async
from hourhand.client import Client
from hourhand.client.reporting import REPORT_HEADERS
from hourhand.errors import Conflict, Invalid, WrongToken

PATIENCE_S = 30


@pytest.fixture
def receiver() -> Iterator[tuple[str, Queue[dict[str, str]]]]:
    """A target that accepts everything, and what it was told."""
    calls: Queue[dict[str, str]] = Queue()

    class Hook(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            calls.put(dict(self.headers))
            self.send_response(202)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *arguments: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Hook)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}/", calls
    server.shutdown()
    server.server_close()
    thread.join()


class Long:
    """A long run on the server, and the headers its target got."""

    def __init__(self, hourhand: Any, receiver: tuple[str, Queue[dict[str, str]]], name: str) -> None:
        url, calls = receiver
        done = hourhand("jobs", "create", name, "--every", "1h", "--url", url, "--retries", "0", "-q")
        assert done.code == 0, done.err
        self.run_id = str(hourhand("jobs", "run", done.out.strip(), "--json").json["run_id"])
        self.headers = calls.get(timeout=PATIENCE_S)
        with Client() as client:
            watched = client.runs.watch(self.run_id, timeout_s=PATIENCE_S)
            next(run for run in watched if run["awaits_report"])  # the acceptance is committed


@pytest.fixture
def long(hourhand, server, receiver, request: pytest.FixtureRequest) -> Long:
    return Long(hourhand, receiver, request.node.name)


def test_a_receiver_reports_by_the_headers_it_got(hourhand, long: Long) -> None:
    kept = {name: long.headers[name] for name in REPORT_HEADERS}
    assert report(kept, "progress", progress=0.4, message="loading")["status"] == "RUNNING"
    shown = hourhand("runs", "show", long.run_id)
    assert "40 %, loading" in shown.out
    answer = report({name.upper(): value for name, value in kept.items()}, result={"rows": 3})
    assert (answer["status"], answer["repeated"]) == ("SUCCEEDED", False)
    assert report(kept, result={"rows": 3})["repeated"]
    with pytest.raises(Conflict):
        report(kept, "failed", error="after all")


async def test_the_same_on_an_event_loop(long: Long) -> None:
    assert (await report_async(long.headers, "failed", error="no disk", retryable=False))[
        "status"
    ] == "FAILED"


def test_what_is_wrong_with_headers_is_said(long: Long) -> None:
    for name in REPORT_HEADERS:
        with pytest.raises(Invalid, match=name):
            report({**long.headers, name: ""})
    with pytest.raises(Invalid, match="Report-Url"):
        report({**long.headers, "Hourhand-Report-Url": "http://example.com/"})
    with pytest.raises(WrongToken):
        report({**long.headers, "Hourhand-Report-Token": "x"})


def test_people_see_that_a_report_is_awaited_and_can_send_it(
    hourhand, long: Long, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = hourhand("runs", "list", "--state", "RUNNING", "--json").json["data"]
    assert long.run_id in [run["run_id"] for run in listed]
    told = ("runs", "report", long.run_id, "--attempt", "1")
    monkeypatch.delenv("HOURHAND_REPORT_TOKEN", raising=False)
    refused = hourhand(*told)
    assert (refused.code, "HOURHAND_REPORT_TOKEN" in refused.err) == (2, True)
    monkeypatch.setenv("HOURHAND_REPORT_TOKEN", "x")
    assert hourhand(*told).code == 4
    monkeypatch.setenv("HOURHAND_REPORT_TOKEN", long.headers["Hourhand-Report-Token"])
    assert hourhand(*told, "--failed", "x", "--progress", "1").code == 2
    done = hourhand(*told, "--progress", "0.5", "--message", "half", "--extend", "2m")
    assert (done.code, "is RUNNING, to be reported until" in done.err) == (0, True)
    assert "would be SUCCEEDED" in hourhand(*told, "--dry-run").err
    done = hourhand(*told, "--result", '{"rows": 3}')
    assert "is SUCCEEDED" in done.err
    assert hourhand("runs", "watch", long.run_id).code == 0
    assert hourhand(*told, "--failed", "x", "--final").code == 5


def test_watching_tells_of_acceptance_and_progress(hourhand, long: Long) -> None:
    report(long.headers, "progress", progress=0.25, message="quarter")
    done = hourhand("runs", "watch", long.run_id, "--timeout", "50ms")
    assert done.code == 9, "it is still under way"
    assert "the target accepted it; waiting for its report, until" in done.err
    assert "25 %, quarter" in done.err
    report(long.headers)
    assert "SUCCEEDED" in hourhand("runs", "watch", long.run_id, "--timeout", "20s").out
