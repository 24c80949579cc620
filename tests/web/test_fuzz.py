"""Headers and bodies of any bytes: each gets an answer in bounded time that is no failure of ours and echoes nothing odd.

The application is driven as a server drives it, but with bytes that servers refuse: what holds here holds behind any.
"""

import asyncio
import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import msgspec
import pytest
from fastapi import FastAPI
from hypothesis import example, given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry
from pydantic import BaseModel

from hourhand.clock import ManualClock
from hourhand.core.specification import SpecLimits
from hourhand.ids import IdSource
from hourhand.services.jobs import Jobs
from hourhand.services.runs import Runs
from hourhand.stores.sqlite.store import SqliteStore
from hourhand.web import schema
from hourhand.web.app import create_app
from tests.identity.issuer import authenticator, signed
from tests.web.test_jobs_routes import DAILY

CLOCK = ManualClock()
LONGEST_S = 5
GOOD = b"Bearer " + signed("HS256").encode()
Headers = list[tuple[bytes, bytes]]

VALUES: dict[bytes, Sequence[bytes]] = {
    b"authorization": [
        GOOD,
        b"Bearer",
        b"bearer " + GOOD[7:],
        b"Basic dTpw",
        b"Bearer hh_\x00",
        GOOD + b"\r\nX: y",
    ],
    b"if-match": [b'"1"', b'W/"1"', b"*", b'"1", "2"', b'"' + b"9" * 5_000 + b'"', b'"\xb2"', b'"-1"', b'"1'],
    b"if-none-match": [b'"1"', b"*", b'W/"1"', b'"' + b"9" * 5_000 + b'"', b'"\xb2"'],
    b"idempotency-key": [b"k", b"", b'"k"', b"k" * 300, b"\x00", b"k\r\nX: y", b"\xff"],
    b"prefer": [
        b"return=minimal",
        b"return=representation",
        b"wait=99999999999999999999",
        b"return=",
        b"=;,",
    ],
    b"last-event-id": [b"0", b"1-1", b"9" * 5_000, b"-1", b"\xb2", b"1\n2"],
    b"hourhand-tenant": [b"acme", b"*", b"", b"Not A Tenant", b"../acme", b"acme\x00", b"a" * 5_000],
    b"accept-encoding": [
        b"gzip",
        b"gzip;q=0",
        b"gzip;q=\xb2",
        b"*;q=1",
        b"identity;q=0",
        b"gzip;q=nan",
        b",,;;",
    ],
    b"accept": [b"application/x-ndjson", b"text/event-stream", b"*/*;q=x", b"\xff/\xff"],
    b"content-length": [b"0", b"-1", b"9" * 5_000, b"1e3", b"\xb2", b" 5", b"5, 5", b"0x10", b"1_0"],
    b"content-type": [
        b"application/json",
        b"application/x-ndjson",
        b"application/json; charset=\xff",
        b"",
        b";",
    ],
    b"content-encoding": [b"gzip", b"identity", b"br, gzip", b"\x00"],
    b"x-request-id": [b"r-1", b"\x1b[31m", b"r\r\nX: y", b"r" * 5_000, b"\xff", b""],
    b"traceparent": [
        b"00-" + b"a" * 32 + b"-" + b"b" * 16 + b"-01",
        b"00-0-0-0",
        b"ff-" + b"0" * 52,
        b"\x00-\xff",
    ],
    b"origin": [b"http://127.0.0.1:7070", b"null", b"http://[", b"http://a:b:c", b"\xff"],
    b"cookie": [b"hourhand=x", b"a=b; a=c; =;", b"hourhand=\x00\xff", b"x" * 5_000],
}
# What a request asks for: paths that read each of these headers, and some that change something.
ASKED = [
    ("GET", "/v1/jobs"),
    ("GET", "/v1/jobs?limit=1&count=estimate"),
    ("GET", "/v1/jobs/{job}"),
    ("GET", "/v1/jobs/{job}/history"),
    ("GET", "/v1/events"),
    ("GET", "/v1/quota"),
    ("GET", "/healthz"),
    ("GET", "/"),
    ("POST", "/v1/jobs"),
    ("POST", "/v1/jobs/bulk"),
    ("PATCH", "/v1/jobs/{job}"),
    ("POST", "/v1/jobs/{job}/pause"),
    ("POST", "/v1/operations?dry_run=true"),
    ("DELETE", "/v1/jobs/J-0000000000000"),
    ("OPTIONS", "/v1/jobs"),
]
TAKES_A_BODY = [
    ("POST", "/v1/jobs?dry_run=true"),
    ("POST", "/v1/jobs/bulk?dry_run=true"),
    ("POST", "/v1/jobs/apply?dry_run=true"),
    ("PATCH", "/v1/jobs/{job}?dry_run=true"),
    ("PUT", "/v1/jobs/by-key/k?dry_run=true"),
    ("POST", "/v1/jobs/{job}/pause?dry_run=true"),
    ("POST", "/v1/jobs/{job}/run?dry_run=true"),
    ("POST", "/v1/jobs/{job}/skip?dry_run=true"),
    ("POST", "/v1/backfills?dry_run=true"),
    ("POST", "/v1/operations?dry_run=true"),
    ("POST", "/v1/dead-letters/requeue?dry_run=true"),
    ("POST", "/v1/schedules/preview"),
    ("POST", "/v1/tokens?dry_run=true"),
    ("POST", "/v1/webhooks?dry_run=true"),
    ("POST", "/v1/runs/{job}@20270115T080000Z/report"),
]
NAMES = st.sampled_from(sorted(VALUES))


@st.composite
def hostile_headers(draw: st.DrawFn) -> Headers:
    """A few headers, each of any bytes, or of ones that mean something with some changed; some of them twice."""
    headers: Headers = []
    for name in draw(st.lists(NAMES, min_size=1, max_size=4)):
        value = draw(st.sampled_from(VALUES[name]) | st.binary(max_size=60))
        if draw(st.booleans()):
            at = draw(st.integers(0, len(value)))
            value = value[:at] + draw(st.binary(max_size=4)) + value[at + draw(st.integers(0, 2)) :]
        headers.append((name, value))
    return headers


LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=12)
FIELDS = st.sampled_from(
    sorted(
        {
            name
            for model in vars(schema).values()
            if isinstance(model, type) and issubclass(model, BaseModel)
            for name in model.model_fields
        }
    )
)
ANYTHING = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(FIELDS | st.text(max_size=5), inner, max_size=4)
    ),
)
DOCUMENTS = st.dictionaries(FIELDS, ANYTHING, max_size=4)


@st.composite
def hostile_bodies(draw: st.DrawFn) -> bytes:
    """Any bytes, any JSON, or a good document with fields of anything and a few bytes changed."""
    kind = draw(st.integers(0, 3))
    if kind == 0:
        return draw(st.binary(max_size=200))
    if kind == 1:
        return json.dumps(draw(ANYTHING)).encode()
    document = {**DAILY, **draw(DOCUMENTS)}
    body = json.dumps([document] if draw(st.booleans()) else document).encode()
    if kind == 2:
        return body
    at = draw(st.integers(0, len(body)))
    return body[:at] + draw(st.binary(max_size=4)) + body[at + draw(st.integers(0, 4)) :]


class Answer(NamedTuple):
    """What came back."""

    status: int
    headers: Headers
    body: bytes


class World:
    """An application with logins, and one loop on which it is asked."""

    def __init__(self) -> None:
        self._runner = asyncio.Runner()
        store = SqliteStore.in_memory(clock=CLOCK)
        self._app: FastAPI = create_app(
            jobs=Jobs(store=store, ids=IdSource(CLOCK, seed=1), clock=CLOCK, limits=SpecLimits()),
            runs=Runs(store=store, clock=CLOCK, horizon_us=60_000_000),
            store=store,
            clock=CLOCK,
            registry=CollectorRegistry(),
            authenticators=[authenticator(CLOCK)],
        )
        self._store = store
        made = self.ask(
            "POST", "/v1/jobs", [(b"content-type", b"application/json")], msgspec.json.encode(DAILY)
        )
        assert made.status == 201, made.body
        self.job = msgspec.json.decode(made.body)["job_id"]

    def ask(self, method: str, path: str, headers: Headers, body: bytes = b"") -> Answer:
        """One request, cut off once an endless answer has begun."""
        return self._runner.run(asyncio.wait_for(self._ask(method, path, headers, body), LONGEST_S))

    def close(self) -> None:
        self._runner.run(self._store.close())
        self._runner.close()

    async def _ask(self, method: str, path: str, headers: Headers, body: bytes) -> Answer:
        path, _, query = path.partition("?")
        named = {name for name, _ in headers}
        usual = {b"host": b"127.0.0.1:7070", b"authorization": GOOD, b"content-type": b"application/json"}
        said = [(name, value) for name, value in usual.items() if name not in named] + headers
        begun = asyncio.Event()
        incoming = [{"type": "http.request", "body": body, "more_body": False}]
        found: dict[str, Any] = {"body": b""}

        async def receive() -> dict[str, Any]:
            if incoming:
                return incoming.pop()
            await begun.wait()
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            if message["type"] == "http.response.start":
                found.update(status=message["status"], headers=[*message["headers"]])
                if (b"content-type", b"text/event-stream; charset=utf-8") in found["headers"]:
                    begun.set()
            else:
                found["body"] += message.get("body", b"")
                if not message.get("more_body"):
                    begun.set()

        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "root_path": "",
            "headers": said,
            "client": ("127.0.0.1", 5),
            "server": ("127.0.0.1", 7070),
        }
        await self._app(scope, receive, send)
        return Answer(**found)


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    opened = World()
    yield opened
    opened.close()


def check(answer: Answer) -> None:
    """It is an answer, and none of its headers holds what could end a line or paint a terminal."""
    assert 200 <= answer.status < 500, answer.body
    for name, value in answer.headers:
        assert all(byte >= 32 and byte != 127 for byte in name + value), (name, value)
    told = dict(answer.headers)
    if told.get(b"content-type") == b"application/problem+json" and b"content-encoding" not in told:
        problem = msgspec.json.decode(answer.body)
        assert problem["status"] == answer.status
        assert not any(byte < 32 or byte == 127 for byte in answer.body), answer.body


@given(st.sampled_from(ASKED), hostile_headers())
@example(("PATCH", "/v1/jobs/{job}"), [(b"if-match", b'"\xb2"')])
@example(("POST", "/v1/jobs/bulk"), [(b"content-length", b"\xb2")])
@example(("GET", "/v1/events"), [(b"last-event-id", b"\xb2")])
def test_headers_of_any_bytes_get_an_answer(world: World, asked: tuple[str, str], headers: Headers) -> None:
    method, path = asked
    body = b'{"note": "x"}' if method in ("POST", "PATCH") else b""
    check(world.ask(method, path.replace("{job}", world.job), headers, body))


@pytest.mark.parametrize("name", sorted(VALUES), ids=bytes.decode)
def test_each_odd_value_of_each_header_on_each_path(world: World, name: bytes) -> None:
    for method, path in ASKED:
        for value in VALUES[name]:
            body = b'{"note": "x"}' if method in ("POST", "PATCH") else b""
            check(world.ask(method, path.replace("{job}", world.job), [(name, value)], body))


@given(st.sampled_from(TAKES_A_BODY), hostile_bodies(), st.booleans())
@example(
    ("POST", "/v1/jobs?dry_run=true"),
    b'{"cron": "\\u0000 9 * * *", "callback_url": "https://a.example/"}',
    False,
)
@example(
    ("POST", "/v1/jobs?dry_run=true"),
    b'{"at": "9999-12-31T23:59:60Z", "callback_url": "https://a.example/"}',
    False,
)
def test_bodies_of_any_bytes_get_an_answer(
    world: World, asked: tuple[str, str], body: bytes, as_lines: bool
) -> None:
    method, path = asked
    kind = b"application/x-ndjson" if as_lines and "bulk" in path else b"application/json"
    headers = [(b"content-type", kind), (b"content-length", str(len(body)).encode())]
    check(world.ask(method, path.replace("{job}", world.job), headers, body))


@given(ANYTHING)
def test_any_payload_comes_back_as_it_was_or_is_refused(world: World, payload: Any) -> None:
    body = json.dumps({**DAILY, "payload": payload}).encode()
    headers = [(b"content-type", b"application/json"), (b"prefer", b"return=representation")]
    answer = world.ask("POST", "/v1/jobs?dry_run=true", headers, body)
    check(answer)
    if answer.status < 300:
        assert json.loads(answer.body)["payload"] == payload
