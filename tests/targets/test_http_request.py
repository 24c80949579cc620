"""What is sent: every header of the surface, the user's beside them, the body byte by byte."""

import re

import msgspec
import pytest

from hourhand.core.model import HttpTarget
from hourhand.core.signature import sign
from hourhand.targets.http_request import Uncallable, body_of, headers_for, prepare, traceparent
from tests.targets.runs import SCHEDULED_AT, claimed, http_run

RUN_ID = "J-000000000002d@20261116T080000Z"
NOW = SCHEDULED_AT + 1_500_000


def sent(
    target: HttpTarget, payload: object = None, keys: tuple[bytes, ...] = (), fence: int = 3
) -> dict[str, str]:
    run = claimed(target, payload, fence=fence)
    prepared = prepare(target)
    body = body_of(run, prepared.method)
    base, token = "https://hh.example/api/v1", "abc"
    headers = headers_for(run, prepared, body, now_at=NOW, keys=keys, report_base=base, report_token=token)
    assert len(set(headers)) == len(headers), "a header is sent twice"
    return {name.lower(): value for name, value in headers.items()}


def test_every_header_of_the_surface() -> None:
    headers = sent(HttpTarget(url="http://example.com/x"), {"a": 1}, keys=(b"k" * 24, b"o" * 24))
    assert headers.pop("user-agent").startswith("hourhand/")
    assert re.fullmatch("00-[0-9a-f]{32}-[0-9a-f]{16}-01", headers.pop("traceparent"))
    assert headers == {
        "accept": "*/*",
        "accept-encoding": "identity",
        "content-type": "application/json",
        "idempotency-key": RUN_ID,
        "webhook-id": RUN_ID,
        "webhook-timestamp": "1794816001",
        "webhook-signature": sign([b"k" * 24, b"o" * 24], RUN_ID, 1_794_816_001, b'{"a":1}'),
        "hourhand-job": "J-000000000002d",
        "hourhand-scheduled-at": "2026-11-16T08:00:00Z",
        "hourhand-attempt": "3",
        "hourhand-deadline": "2026-11-16T08:05:00Z",
        "hourhand-report-url": f"https://hh.example/api/v1/runs/{RUN_ID}/report",
        "hourhand-report-token": "abc",
    }


def test_without_a_secret_nothing_is_signed() -> None:
    assert "webhook-signature" not in sent(HttpTarget(url="http://example.com/"))


def test_the_users_headers_replace_defaults() -> None:
    own = {"Content-Type": "text/x", "user-agent": "mine", "Authorization": "Bearer t", "Traceparent": "00-x"}
    headers = sent(HttpTarget(url="http://ann:secret@example.com/", headers=own), "text")
    for name, value in own.items():
        assert headers[name.lower()] == value


def test_a_password_in_the_url_becomes_basic_authorization() -> None:
    target = HttpTarget(url="http://ann:s%40cret@example.com:81/a?b=c#d")
    assert sent(target)["authorization"] == "Basic YW5uOnNAY3JldA=="
    prepared = prepare(target)
    assert str(prepared.url) == "http://example.com:81/a?b=c"
    assert prepared.place == "example.com:81"


@pytest.mark.parametrize(
    ("method", "payload", "body"),
    [
        ("POST", {"a": [1, "ü"]}, '{"a":[1,"ü"]}'.encode()),
        ("POST", "text", b'"text"'),
        ("POST", None, b"null"),
        ("GET", None, None),
        ("HEAD", None, None),
        ("DELETE", None, None),
        ("GET", {"a": 1}, b'{"a":1}'),
    ],
)
def test_body(method: str, payload: object, body: bytes | None) -> None:
    assert body_of(http_run("http://a/", payload), method) == body
    assert ("content-type" in sent(HttpTarget(url="http://a/", method=method), payload)) is (body is not None)


def test_a_payload_is_sent_as_it_was_written() -> None:
    run = http_run("http://a/")
    spec = msgspec.structs.replace(run.spec, payload=msgspec.Raw(b'{ "b":1.0,\n"a" : 1e3}'))
    assert body_of(msgspec.structs.replace(run, spec=spec), "POST") == b'{ "b":1.0,\n"a" : 1e3}'


def test_a_trace_belongs_to_the_run_and_its_span_to_the_attempt() -> None:
    first, second, other = traceparent(RUN_ID, 1), traceparent(RUN_ID, 2), traceparent(RUN_ID + "x", 1)
    assert first == traceparent(RUN_ID, 1)
    assert first.split("-")[1] == second.split("-")[1] != other.split("-")[1]
    assert first.split("-")[2] != second.split("-")[2]


@pytest.mark.parametrize(
    ("target", "says"),
    [
        (HttpTarget(url="ftp://example.com/"), "http:// or https://"),
        (HttpTarget(url="http://"), "no host"),
        (HttpTarget(url="http://a b/"), "no spaces"),
        (HttpTarget(url="http://a/", method="CONNECT"), "method"),
        (HttpTarget(url="http://a/", method="GET / HTTP/1.1\r\nX: y\r\n\r\nGET"), "method"),
        (HttpTarget(url="http://a/", headers={"Host": "b"}), "headers/Host"),
        (HttpTarget(url="http://a/", headers={"X": "a\r\nY: b"}), "headers/X"),
        (HttpTarget(url="http://a/", headers={"Idempotency-Key": "mine"}), "headers/Idempotency-Key"),
    ],
)
def test_what_cannot_be_called_says_why(target: HttpTarget, says: str) -> None:
    with pytest.raises(Uncallable, match=says):
        prepare(target)
