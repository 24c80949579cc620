"""The clients' transport: keys, how errors are typed, how pages are walked, what each method asks; both alike."""

from pathlib import Path
from typing import Any

import pytest

from hourhand.client import AsyncClient, Client, Unreachable
from hourhand.errors import (
    Ambiguous,
    Conflict,
    HourhandError,
    Invalid,
    NotAllowed,
    NotFound,
    Outdated,
    StorageFull,
    Unavailable,
)
from tests.cli.recorder import HANG_UP, LIMITED, OK, Recorder, ask, problem, recorder, short_pauses

__all__ = ["ask", "recorder", "short_pauses"]

ROOT = Path(__file__).resolve().parents[2]
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


@pytest.mark.parametrize("options", [{"timeout_s": 0}, {"retries": -1}])
def test_options_that_make_no_sense_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(Invalid, match="timeout_s is over 0"):
        Client(**options)
