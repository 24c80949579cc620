"""The clients' transport: what is tried again, how errors are typed, how pages are walked; both alike."""

import json
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from hourhand.client import AsyncClient, Client, Unreachable
from hourhand.client.exchange import IN_FLIGHT_S, LONGEST_PAUSE_S, Patience
from hourhand.client.flow import Answer
from hourhand.client.problems import retry_after_s
from hourhand.clock import monotonic_us
from hourhand.core.instant import SECOND_US
from hourhand.core.repeating import LEASE_US
from hourhand.errors import (
    Ambiguous,
    Conflict,
    HourhandError,
    InFlight,
    Invalid,
    NotAllowed,
    NotFound,
    Outdated,
    Overloaded,
    StorageFull,
    Unavailable,
)

ROOT = Path(__file__).resolve().parents[2]
SHORT_S = 0.3
HANG_UP = "hang up"
Reply = tuple[int, Any, dict[str, str]] | str


@dataclass
class Recorder:
    """A server that gives prepared replies in order, the last again and again, and keeps what it was asked."""

    url: str = ""
    replies: list[Reply] = field(default_factory=list)
    requests: list[tuple[str, str, dict[str, str], Any]] = field(default_factory=list)
    timeout_s: float = 30.0  # of whoever asks
    delay_s: float = 0
    never: threading.Event = field(default_factory=threading.Event)

    def next_reply(self) -> Reply:
        return self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]


@pytest.fixture
def recorder() -> Iterator[Recorder]:
    recorder = Recorder()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            recorder.requests.append((self.command, self.path, dict(self.headers), body))
            reply = recorder.next_reply()
            recorder.never.wait(recorder.delay_s)
            if reply == HANG_UP:
                self.close_connection = True
                return
            status, document, headers = reply
            text = document if isinstance(document, bytes) else json.dumps(document).encode()
            self.send_response(status)
            for name, value in {"Content-Length": str(len(text)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(text)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = answer  # noqa: N815 -- names of the base class

        def log_message(self, *arguments: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: object, client_address: object) -> None:
            """A client may hang up at any moment, and what is told of that here would be taken for its own words."""
            if not isinstance(sys.exception(), ConnectionError):
                super().handle_error(request, client_address)

    server = Server(("127.0.0.1", 0), Handler)
    recorder.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield recorder
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hourhand.client.exchange.FIRST_PAUSE_S", 0.001)
    monkeypatch.setattr("hourhand.client.exchange.LONGEST_PAUSE_S", 0.002)
    monkeypatch.setattr("hourhand.client.resources.endpoints.FIRST_LOOK_S", 0.001)


Ask = Callable[[str, str, tuple[Any, ...], dict[str, Any]], Any]


@pytest.fixture(params=["blocking", "awaiting"])
async def ask(request: pytest.FixtureRequest, recorder: Recorder):
    """Calls `client.resource.method(…)` on either client; listings become lists."""

    async def ask(call: str, *args: Any, **kwargs: Any) -> Any:
        resource, method = call.split(".")
        if request.param == "blocking":
            with Client(recorder.url, retries=2, timeout_s=recorder.timeout_s) as client:
                answer = getattr(getattr(client, resource), method)(*args, **kwargs)
                return answer if isinstance(answer, dict) else list(answer)
        async with AsyncClient(recorder.url, retries=2, timeout_s=recorder.timeout_s) as client:
            answer = getattr(getattr(client, resource), method)(*args, **kwargs)
            if hasattr(answer, "__aiter__"):
                return [one async for one in answer]
            return await answer

    return ask


def problem(status: int, code: str, **more: Any) -> Reply:
    return status, {"title": "t", "status": status, "code": code, "detail": "words", **more}, {}


OK: Reply = (200, {"job_id": "J-1"}, {})
BUSY: Reply = (503, {"title": "t", "code": "unavailable", "detail": "down"}, {"Retry-After": "0"})
LIMITED: Reply = (429, {"title": "t", "code": "overloaded", "detail": "slow down"}, {"Retry-After": "0"})
IN_FLIGHT: Reply = (409, {"title": "t", "code": "in_flight", "detail": "wait"}, {"Retry-After": "0"})
FOR_LONG: Reply = (429, {"title": "t", "code": "overloaded", "detail": "not today"}, {"Retry-After": "3600"})


@pytest.mark.parametrize(
    ("call", "arguments", "replies", "requests"),
    [
        ("jobs.get", ["J-1"], [BUSY, HANG_UP, OK], 3),
        ("jobs.replace", ["J-1", {}], [HANG_UP, OK], 2),
        ("jobs.run", ["J-1"], [HANG_UP, BUSY, OK], 3),
        ("jobs.pause", ["J-1"], [BUSY, OK], 2),
        ("jobs.create", [{}], [LIMITED, OK], 2),
        ("jobs.create", [{}], [HANG_UP, IN_FLIGHT, OK], 3),
        ("jobs.update", ["J-1", {}], [BUSY, HANG_UP, OK], 3),
        ("jobs.delete", ["J-1"], [LIMITED, OK], 2),
    ],
)
async def test_what_may_be_repeated_is_tried_again(
    ask, recorder: Recorder, call: str, arguments: list[Any], replies: list[Reply], requests: int
) -> None:
    recorder.replies = list(replies)
    assert await ask(call, *arguments) == {"job_id": "J-1"}
    assert len(recorder.requests) == requests


@pytest.mark.parametrize(
    ("call", "arguments", "reply", "error"),
    [
        ("jobs.delete", ["J-1"], HANG_UP, Unreachable),
        ("jobs.create", [{}], problem(409, "conflict"), Conflict),
        ("jobs.get", ["J-1"], problem(404, "not_found"), NotFound),
    ],
)
async def test_what_may_have_happened_is_not_repeated(
    ask, recorder: Recorder, call: str, arguments: list[Any], reply: Reply, error: type[Exception]
) -> None:
    recorder.replies = [reply, OK]
    with pytest.raises(error):
        await ask(call, *arguments)
    assert len(recorder.requests) == 1


async def test_a_change_that_is_meant_for_a_version_is_not_sent_twice(ask, recorder: Recorder) -> None:
    """The second would meet the first, and say that somebody else was faster."""
    recorder.replies = [HANG_UP, problem(412, "outdated")]
    with pytest.raises(Unreachable, match="may have been carried out"):
        await ask("jobs.replace", "J-1", {}, version=1)
    assert len(recorder.requests) == 1
    recorder.replies = [LIMITED, OK]
    assert await ask("jobs.replace", "J-1", {}, version=1) == {"job_id": "J-1"}, "that one changed nothing"


async def test_patience_ends(ask, recorder: Recorder) -> None:
    recorder.replies = [LIMITED]
    with pytest.raises(Overloaded):
        await ask("jobs.get", "J-1")
    assert len(recorder.requests) == 3


async def test_a_request_whose_server_died_is_waited_for_until_a_repeat_takes_over(
    ask, recorder: Recorder
) -> None:
    recorder.replies = [HANG_UP, *[IN_FLIGHT] * 20, BUSY, OK]
    assert await ask("jobs.run", "J-1") == {"job_id": "J-1"}
    assert len({headers["Idempotency-Key"] for _, _, headers, _ in recorder.requests}) == 1


async def test_waiting_for_a_request_in_flight_ends(
    ask, recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert LEASE_US / SECOND_US < IN_FLIGHT_S < 2 * LEASE_US / SECOND_US
    monkeypatch.setattr("hourhand.client.exchange.IN_FLIGHT_S", 0.01)
    recorder.replies = [IN_FLIGHT]
    with pytest.raises(InFlight):
        await ask("jobs.run", "J-1")
    assert 5 < len(recorder.requests) < 15
    with Client(recorder.url, retries=0) as client, pytest.raises(InFlight):
        client.jobs.run("J-1")


async def test_who_is_asked_to_wait_for_long_is_told_at_once(ask, recorder: Recorder) -> None:
    recorder.replies = [FOR_LONG, OK]
    with pytest.raises(Overloaded) as caught:
        await ask("jobs.get", "J-1")
    assert len(recorder.requests) == 1
    assert caught.value.retry_after_s == 3600


@pytest.mark.parametrize(
    ("status", "headers", "expected_s"),
    [(429, {"Retry-After": "3600"}, 3600), (503, {"Retry-After": "120"}, 120), (429, {}, 1), (503, {}, None)],
)
@pytest.mark.parametrize("body", [b"slow down", {"title": "t", "detail": "slow down"}])
async def test_how_long_a_proxy_asks_to_wait_is_told_too(
    ask, recorder: Recorder, status: int, headers: dict[str, str], expected_s: int | None, body: Any
) -> None:
    recorder.replies = [(status, body, headers)]
    with pytest.raises((Overloaded, Unavailable)) as caught:
        await ask("jobs.get", "J-1")
    assert getattr(caught.value, "retry_after_s", None) == expected_s


@pytest.mark.parametrize(
    ("headers", "asked_s"),
    [
        ({"retry-after": "7"}, 7),
        ({"retry-after": "Mon, 16 Nov 2026 08:00:30 GMT", "date": "Mon, 16 Nov 2026 08:00:10 GMT"}, 20),
        ({"retry-after": "Mon, 16 Nov 2026 08:00:00 GMT", "date": "Mon, 16 Nov 2026 08:00:10 GMT"}, 0),
        ({"retry-after": "Mon, 16 Nov 2026 08:00:30 GMT"}, None),
        ({"retry-after": "soon", "date": "Mon, 16 Nov 2026 08:00:10 GMT"}, None),
        ({"retry-after": "-1"}, None),
        ({}, None),
    ],
)
def test_how_long_to_wait_is_asked_in_seconds_or_by_a_date(
    headers: dict[str, str], asked_s: float | None
) -> None:
    assert retry_after_s(Answer(status=429, headers=headers, body=b"")) == asked_s


async def test_the_pause_is_as_long_as_asked(
    ask, recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hourhand.client.exchange.LONGEST_PAUSE_S", 30.0)
    recorder.replies = [(*LIMITED[:2], {"Retry-After": "1"}), OK]
    began_us = monotonic_us()
    await ask("jobs.get", "J-1")
    assert monotonic_us() - began_us >= SECOND_US


CHANGING: list[tuple[str, list[Any]]] = [
    ("jobs.create", [{}]),
    ("jobs.update", ["J-1", {}]),
    ("jobs.pause", ["J-1"]),
    ("jobs.resume", ["J-1"]),
    ("jobs.run", ["J-1"]),
    ("jobs.skip", ["J-1"]),
    ("jobs.clone", ["J-1"]),
    ("jobs.apply", [[{}]]),
    ("jobs.bulk", [[{}]]),
    ("runs.cancel", ["r"]),
    ("runs.rerun", ["r"]),
    ("dead_letters.requeue", [["r"]]),
    ("dead_letters.discard", [["r"]]),
    ("backfills.create", [{}]),
    ("backfills.pause", ["B-1"]),
    ("backfills.resume", ["B-1"]),
    ("backfills.cancel", ["B-1"]),
    ("operations.create", ["pause", {}]),
    ("operations.cancel", ["O-1"]),
]


@pytest.mark.parametrize(("call", "arguments"), CHANGING, ids=[call for call, _ in CHANGING])
async def test_whatever_changes_something_carries_a_key(
    ask, recorder: Recorder, call: str, arguments: list[Any]
) -> None:
    recorder.replies = [LIMITED, OK]
    await ask(call, *arguments)
    await ask(call, *arguments)
    keys = [headers.get("Idempotency-Key") for _, _, headers, _ in recorder.requests]
    assert keys[0], "it has none"
    assert keys[0] == keys[1] != keys[2]
    recorder.requests.clear()
    if call != "jobs.bulk":
        await ask(call, *arguments, dry_run=True)
        assert "Idempotency-Key" not in recorder.requests[0][2]


def test_only_those_go_without_a_key_that_have_no_use_for_one() -> None:
    """Requests are made in one place, which gives them keys; here is who says no to that."""
    texts = {path.stem: path.read_text() for path in (ROOT / "src/hourhand/client/resources").glob("*.py")}
    assert [name for name, text in texts.items() if " Request(" in text] == ["endpoints"]
    without = {name: text.count("keyed=False") for name, text in texts.items() if "keyed=False" in text}
    assert without == {"runs": 1, "schedules": 1}  # a report has its token, a preview changes nothing


async def test_all_tries_of_a_run_carry_one_key_and_each_run_its_own(ask, recorder: Recorder) -> None:
    recorder.replies = [HANG_UP, OK]
    await ask("jobs.run", "J-1")
    await ask("jobs.run", "J-1")
    await ask("jobs.run", "J-1", idempotency_key="mine")
    keys = [headers["Idempotency-Key"] for _, _, headers, _ in recorder.requests]
    assert keys[0] == keys[1]
    assert len(set(keys)) == 3
    assert keys[3] == "mine"


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (422, "invalid", Invalid),
        (400, "malformed_json", Invalid),
        (404, "not_found", NotFound),
        (404, "no_such_route", NotFound),
        (403, "wrong_host", NotAllowed),
        (409, "conflict", Conflict),
        (409, "ambiguous", Ambiguous),
        (412, "outdated", Outdated),
        (503, "storage_full", StorageFull),
        (500, "internal", HourhandError),
    ],
)
async def test_errors_are_typed_by_code_then_by_status(
    ask, recorder: Recorder, status: int, code: str, kind: type[HourhandError]
) -> None:
    faults = [{"pointer": "/cron", "expected": "x", "got": None, "hint": "y"}]
    recorder.replies = [problem(status, code, errors=faults)]
    with pytest.raises(HourhandError) as caught:
        await ask("jobs.update", "J-1", {})
    assert type(caught.value) is kind
    assert caught.value.message == "words"
    assert caught.value.problem is not None
    assert caught.value.problem["code"] == caught.value.code == code
    if isinstance(caught.value, Invalid):
        assert [fault.pointer for fault in caught.value.faults] == ["/cron"]


@pytest.mark.parametrize("errors", [5, "x", True, {"a": 1}, [5, None, {"pointer": 5}], None])
async def test_faults_in_another_shape_than_ours_are_left_out(ask, recorder: Recorder, errors: Any) -> None:
    recorder.replies = [problem(422, "invalid", errors=errors)]
    with pytest.raises(Invalid, match="words") as caught:
        await ask("jobs.update", "J-1", {})
    assert caught.value.faults == ()


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (200, b"<html>", Unreachable),
        (200, b"{}", Unreachable),
        (200, b"[]", Unreachable),
        (200, b"null", Unreachable),
        (200, b'"x"', Unreachable),
        (200, b"", Unreachable),
        (404, b"<html>", NotFound),
        (502, b"", Unavailable),
        (418, b"[]", HourhandError),
        (301, b"", HourhandError),
    ],
)
async def test_something_else_that_answers_is_no_crash(
    ask, recorder: Recorder, status: int, body: bytes, kind: type[HourhandError]
) -> None:
    recorder.replies = [(status, body, {})]
    with pytest.raises(HourhandError) as caught:
        await ask("jobs.update", "J-1", {})
    assert type(caught.value) is kind


async def test_a_list_without_its_data_and_a_broken_body_are_no_crash(ask, recorder: Recorder) -> None:
    for document in ({"a": 1}, {"data": None}, {"data": "x"}):
        recorder.replies = [(200, document, {})]
        with pytest.raises(Unreachable, match="not hourhand"):
            await ask("jobs.list")
    recorder.replies = [(200, b"[1]\n", {})]
    with pytest.raises(Unreachable, match="not hourhand"):
        await ask("jobs.export")
    recorder.replies = [(200, b"no gzip", {"Content-Encoding": "gzip"})]
    for call in ("jobs.list", "jobs.export"):
        with pytest.raises(Unreachable):
            await ask(call)


async def test_nobody_there(ask, recorder: Recorder, unused_tcp_port: int) -> None:
    recorder.url = f"http://127.0.0.1:{unused_tcp_port}"
    with pytest.raises(Unreachable) as caught:
        await ask("jobs.create", {})
    assert caught.value.message == f"no hourhand answers at {recorder.url}; start one with `hourhand up`"


async def test_lists_walk_all_pages_with_their_filters(ask, recorder: Recorder) -> None:
    recorder.replies = [
        (200, {"data": [{"n": 1}, {"n": 2}], "next_cursor": "c1"}, {}),
        (200, {"data": [], "next_cursor": "c2"}, {}),
        (200, {"data": [{"n": 3}], "next_cursor": None}, {}),
    ]
    assert [one["n"] for one in await ask("jobs.list", limit=2, failing=True, tag=None)] == [1, 2, 3]
    paths = [path for _, path, _, _ in recorder.requests]
    assert paths == [
        "/api/v1/jobs?limit=2&failing=true",
        "/api/v1/jobs?limit=2&cursor=c1&failing=true",
        "/api/v1/jobs?limit=2&cursor=c2&failing=true",
    ]


async def test_filters_say_no_and_from(ask, recorder: Recorder) -> None:
    recorder.replies = [(200, {"data": [], "next_cursor": None}, {})]
    await ask("runs.list", from_="2026-11-16T00:00:00Z", to=None)
    await ask("jobs.page", payload=False, limit=0)
    await ask("deeds.list", from_="2026", to="2027")
    await ask("deeds.page", from_="2026")
    await ask("webhooks.deliveries", "W-1", from_="2026", state="failed")
    await ask("webhooks.deliveries_page", "W-1", from_="2026")
    paths = [path.removeprefix("/api/v1") for _, path, _, _ in recorder.requests]
    assert paths == [
        "/runs?limit=200&from=2026-11-16T00%3A00%3A00Z",
        "/jobs?limit=0&payload=false",
        "/deeds?limit=200&from=2026&to=2027",
        "/deeds?limit=50&from=2026",
        "/webhooks/W-1/deliveries?limit=200&from=2026&state=failed",
        "/webhooks/W-1/deliveries?limit=50&from=2026",
    ]


@pytest.mark.parametrize(
    ("call", "args", "kwargs", "expected"),
    [
        ("jobs.get", ["a/b?c"], {}, ("GET", "/jobs/a%2Fb%3Fc", None)),
        ("jobs.get", [{"job_id": "J-9"}], {}, ("GET", "/jobs/J-9", None)),
        ("jobs.resolve", ["my job"], {}, ("GET", "/jobs/resolve?ref=my+job", None)),
        ("jobs.upsert", ["a/b c", {"x": 1}], {}, ("PUT", "/jobs/by-key/a/b%20c", {"x": 1})),
        ("jobs.update", ["J-1", {"x": 1}], {"dry_run": True}, ("PATCH", "/jobs/J-1?dry_run=true", {"x": 1})),
        ("jobs.pause", ["J-1"], {"note": "n"}, ("POST", "/jobs/J-1/pause", {"note": "n"})),
        ("jobs.resume", ["J-1"], {}, ("POST", "/jobs/J-1/resume", {})),
        ("jobs.delete", ["J-1"], {"cancel_running": True}, ("DELETE", "/jobs/J-1?cancel_running=true", None)),
        ("jobs.status", ["J-1"], {}, ("GET", "/jobs/J-1/status", None)),
        ("jobs.next", ["J-1"], {"n": 3}, ("GET", "/jobs/J-1/next?n=3", None)),
        ("jobs.versions", ["J-1"], {}, ("GET", "/jobs/J-1/versions", None)),
        ("jobs.bulk", [[{"a": 1}]], {}, ("POST", "/jobs/bulk", [{"a": 1}])),
        (
            "jobs.strips",
            [["J-1", {"job_id": "J-2"}]],
            {},
            ("GET", "/jobs/strips?job_id=J-1&job_id=J-2&limit=30", None),
        ),
        (
            "schedules.preview",
            [{"cron": "0 9 * * *"}],
            {"n": 3},
            ("POST", "/schedules/preview", {"cron": "0 9 * * *", "n": 3}),
        ),
        (
            "jobs.pause",
            [{"job_id": "J-9"}],
            {"note": "INC-42"},
            ("POST", "/jobs/J-9/pause", {"note": "INC-42"}),
        ),
        ("system.overview", [], {}, ("GET", "/overview", None)),
        (
            "deeds.page",
            [],
            {"job_id": "J-1", "action": "job.*", "from": "2026"},
            ("GET", "/deeds?limit=50&job_id=J-1&action=job.%2A&from=2026", None),
        ),
        ("system.nodes", [], {}, ("GET", "/nodes", None)),
        ("runs.get", ["J-1@2026"], {}, ("GET", "/runs/J-1@2026", None)),
        ("runs.cancel", [{"run_id": "J-1@2026"}], {}, ("POST", "/runs/J-1@2026/cancel", {})),
        ("runs.page", [], {"state": ["A", "B"]}, ("GET", "/runs?limit=50&state=A&state=B", None)),
        ("dead_letters.groups", ["job"], {}, ("GET", "/dead-letters?group_by=job", None)),
        ("dead_letters.requeue", [["r"]], {}, ("POST", "/dead-letters/requeue", {"ids": ["r"]})),
        (
            "dead_letters.discard",
            [],
            {"filter": {"error": "e"}, "dry_run": True},
            ("POST", "/dead-letters/discard", {"filter": {"error": "e"}, "dry_run": True}),
        ),
    ],
)
async def test_each_method_is_one_request(
    ask,
    recorder: Recorder,
    call: str,
    args: list[Any],
    kwargs: dict[str, Any],
    expected: tuple[str, str, Any],
) -> None:
    recorder.replies = [OK]
    await ask(call, *args, **kwargs)
    ((method, path, _, body),) = recorder.requests
    assert (method, path.removeprefix("/api/v1"), body) == expected


@pytest.mark.parametrize(
    ("call", "arguments"),
    [
        ("jobs.upsert", ["team/../prod", {}]),
        ("jobs.upsert", ["./prod", {}]),
        ("jobs.get", [".."]),
        ("jobs.delete", ["."]),
        ("runs.get", [".."]),
        ("tokens.revoke", [".."]),
    ],
)
async def test_nothing_else_is_asked_for_than_what_is_named(
    ask, recorder: Recorder, call: str, arguments: list[Any]
) -> None:
    """The HTTP library would resolve the dots, and the request mean another job or none."""
    recorder.replies = [OK]
    with pytest.raises(Invalid, match="in a path it would"):
        await ask(call, *arguments)
    assert recorder.requests == []
    await ask("jobs.upsert", "team/...prod/.x", {})
    assert recorder.requests[0][1] == "/api/v1/jobs/by-key/team/...prod/.x"


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf")])
async def test_numbers_that_json_does_not_have_are_refused_by_their_place(
    ask, recorder: Recorder, number: float
) -> None:
    recorder.replies = [OK]
    document = {"payload": {"a/b": [1.5, {"c": number}], "d": (number,)}}
    with pytest.raises(Invalid, match="/payload/a~1b/1/c: expected a finite number") as caught:
        await ask("jobs.create", document)
    assert [fault.pointer for fault in caught.value.faults] == ["/payload/a~1b/1/c", "/payload/d/0"]
    with pytest.raises(Invalid, match="/0/payload"):
        await ask("jobs.bulk", [{"payload": number}])
    assert recorder.requests == []


async def test_versions_are_guarded_by_their_tag(ask, recorder: Recorder) -> None:
    recorder.replies = [OK]
    await ask("jobs.replace", "J-1", {}, version=3)
    await ask("jobs.replace", "J-1", {})
    guarded, free = (headers for _, _, headers, _ in recorder.requests)
    assert guarded["If-Match"] == '"3"'
    assert "If-Match" not in free


async def test_waiting_ends_with_the_final_state(ask, recorder: Recorder) -> None:
    states = ["PENDING", "PENDING", "RUNNING", "RETRYING", "SUCCEEDED"]
    recorder.replies = [(200, {"run_id": "r", "status": state}, {}) for state in states]
    assert (await ask("runs.wait", "r"))["status"] == "SUCCEEDED"
    recorder.replies = [(200, {"run_id": "r", "status": state}, {}) for state in states]
    changes = [one["status"] for one in await ask("runs.watch", "r")]
    assert changes == ["PENDING", "RUNNING", "RETRYING", "SUCCEEDED"]


async def test_waiting_gives_up(ask, recorder: Recorder) -> None:
    recorder.replies = [(200, {"run_id": "r", "status": "RUNNING"}, {})]
    with pytest.raises(TimeoutError, match="still RUNNING"):
        await ask("runs.wait", "r", timeout_s=0.01)


@pytest.mark.parametrize("timeout_s", [30, None])
async def test_waiting_outlasts_a_server_that_is_away(
    ask, recorder: Recorder, timeout_s: float | None
) -> None:
    states = [(200, {"run_id": "r", "status": state}, {}) for state in ("RUNNING", "SUCCEEDED")]
    recorder.replies = [states[0], *[HANG_UP] * 4, BUSY, LIMITED, *[HANG_UP] * 4, states[1]]
    assert (await ask("runs.wait", "r", timeout_s=timeout_s))["status"] == "SUCCEEDED"
    assert len(recorder.requests) == 12


async def test_waiting_may_begin_while_the_server_is_away_where_it_has_time(ask, recorder: Recorder) -> None:
    recorder.replies = [*[HANG_UP] * 6, (200, {"run_id": "r", "status": "FAILED"}, {})]
    assert (await ask("runs.wait", "r", timeout_s=30))["status"] == "FAILED"
    recorder.replies = [*[HANG_UP] * 3, OK]
    with pytest.raises(Unreachable, match="did not answer"):
        await ask("runs.wait", "r")
    recorder.replies = [problem(404, "not_found"), OK]
    with pytest.raises(NotFound):
        await ask("runs.wait", "r", timeout_s=30)
    recorder.replies = [FOR_LONG, OK]
    with pytest.raises(Overloaded):
        await ask("runs.wait", "r", timeout_s=30)


async def test_waiting_for_nobody_ends_in_time_and_says_why(
    ask, recorder: Recorder, unused_tcp_port: int
) -> None:
    recorder.url = f"http://127.0.0.1:{unused_tcp_port}"
    with pytest.raises(TimeoutError, match=r"nothing is known of it after 0.05 s: no hourhand answers"):
        await ask("runs.wait", "r", timeout_s=0.05)
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        recorder.url = f"http://127.0.0.1:{deaf.getsockname()[1]}"
        began_us = monotonic_us()
        with pytest.raises(TimeoutError, match=r"nothing is known of it after 0.3 s: .* did not answer"):
            await ask("runs.wait", "r", timeout_s=SHORT_S)
    assert monotonic_us() - began_us < recorder.timeout_s * SECOND_US / 4


def test_where_and_who_come_from_the_environment(recorder: Recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    recorder.replies = [OK]
    monkeypatch.setenv("HOURHAND_URL", f"{recorder.url}/")
    monkeypatch.setenv("HOURHAND_TOKEN", "t0ken")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    with Client() as client:
        client.jobs.get("J-1")
    assert recorder.requests[0][2]["Authorization"] == "Bearer t0ken"


@pytest.mark.parametrize(
    "url",
    [
        "nonsense",
        "ftp://x",
        "http://",
        "http://256.1.1.1",
        "http://h/?a=s3cret",
        "http://h/#s3cret",
        "http://h?",
    ],
)
def test_a_url_that_is_none_is_refused(url: str) -> None:
    for kind in (Client, AsyncClient):
        with pytest.raises(Invalid, match="http://127") as caught:
            kind(url)
        assert "s3cret" not in caught.value.message


def test_pauses_grow_and_keep_to_what_is_asked() -> None:
    patience = Patience(salt=0x1234567890ABCDEF)
    pauses = [patience.pause_s(tries, None) for tries in range(1, 4)]
    assert pauses == sorted(pauses)
    assert patience.pause_s(1, 0.0015) == 0.0015
    assert patience.pause_s(40, None) <= LONGEST_PAUSE_S
    assert patience.pause_s(100_000, None) <= LONGEST_PAUSE_S


@pytest.mark.parametrize("options", [{"timeout_s": 0}, {"retries": -1}])
def test_options_that_make_no_sense_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(Invalid, match="timeout_s is over 0"):
        Client(**options)


async def test_a_server_that_does_not_answer_is_given_up(ask, recorder: Recorder) -> None:
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        recorder.url, recorder.timeout_s = f"http://127.0.0.1:{deaf.getsockname()[1]}", SHORT_S
        with pytest.raises(Unreachable, match="may have been carried out"):
            await ask("jobs.create", {})


@pytest.mark.skipif(
    sys.platform != "linux", reason="elsewhere a full queue of connections is not left unanswered"
)
async def test_what_was_never_connected_has_not_happened(ask, recorder: Recorder) -> None:
    recorder.timeout_s = SHORT_S
    with ExitStack() as stack:
        full = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        for _ in range(3):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(full.getsockname())
        recorder.url = f"http://127.0.0.1:{full.getsockname()[1]}"
        with pytest.raises(Unreachable, match="no hourhand answers"):
            await ask("jobs.delete", "J-1")


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\nContent-Length: %d\r\n\r\n"
LINE = b'{"job_id": "J-1"}\n'


@contextmanager
def dripping(*answers: tuple[bytes, bytes]) -> Iterator[str]:
    """A server of one connection: the first part of an answer comes at once, the rest a byte each 30 ms."""
    done = threading.Event()

    def drip() -> None:
        connection, _ = listener.accept()
        with connection, suppress(OSError):
            for at_once, drop_by_drop in answers:
                connection.recv(65_536)
                connection.sendall(at_once)
                for byte in drop_by_drop:
                    done.wait(0.03)
                    connection.sendall(bytes([byte]))

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=drip)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            done.set()
            thread.join()


@pytest.mark.parametrize("at_once", [b"", HEAD % 1_000], ids=["the head", "the body"])
async def test_an_answer_that_drips_is_no_answer_in_time(ask, recorder: Recorder, at_once: bytes) -> None:
    whole = HEAD % 1_000 + b" " * 1_000
    recorder.timeout_s = SHORT_S
    with dripping((at_once, whole.removeprefix(at_once))) as recorder.url:
        began_us = monotonic_us()
        with pytest.raises(Unreachable, match="may have been carried out"):
            await ask("jobs.delete", "J-1")
        assert monotonic_us() - began_us < 10 * SHORT_S * SECOND_US


async def test_a_stream_may_drip_for_as_long_as_it_likes(ask, recorder: Recorder) -> None:
    recorder.timeout_s = SHORT_S
    with dripping((HEAD % len(LINE), LINE)) as recorder.url:
        began_us = monotonic_us()
        assert await ask("jobs.export") == [{"job_id": "J-1"}]
        assert monotonic_us() - began_us > SHORT_S * SECOND_US


def test_a_connection_that_a_stream_has_opened_keeps_to_the_time_of_requests() -> None:
    answers = (HEAD % len(LINE) + LINE, b""), (HEAD % 1_000, b" " * 1_000)
    with dripping(*answers) as url, Client(url, timeout_s=SHORT_S, retries=0) as client:
        assert len(list(client.jobs.export())) == 1
        began_us = monotonic_us()
        with pytest.raises(Unreachable):
            client.jobs.get("J-1")
        assert monotonic_us() - began_us < 10 * SHORT_S * SECOND_US


async def test_who_asks_the_server_to_wait_waits_for_longer(ask, recorder: Recorder) -> None:
    recorder.timeout_s, recorder.delay_s = SHORT_S, 2 * SHORT_S
    recorder.replies = [(200, {"data": [], "next_after": None, "done": True}, {})]
    assert await ask("runs.log", "r", wait_s=5) == {"data": [], "next_after": None, "done": True}
    assert await ask("runs.logs", "r", follow=True) == []
    assert len(recorder.requests) == 2
