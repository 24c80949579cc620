"""What is refused before any route sees it, and what every answer carries."""

from collections.abc import AsyncIterator

import httpx2
import pytest
from fastapi import FastAPI
from starlette.types import Message

from hourhand.web.context import WebSettings
from hourhand.web.guards import DOCUMENT_SLACK_BYTES
from hourhand.web.problems import Problem
from tests.web.conftest import ADDRESS, MakeApp
from tests.web.test_jobs_routes import DAILY, total


def asking(app: FastAPI, address: str = ADDRESS) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(
        transport=httpx2.ASGITransport(app=app, raise_app_exceptions=True), base_url=address
    )


# --- host and origin


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1:7070",
        "localhost:7070",
        "LOCALHOST:7070",
        "[::1]:7070",
        "127.8.9.10:7070",
        "localhost.:7070",
    ],
)
async def test_loopback_with_our_port_is_ours(client: httpx2.AsyncClient, host: str) -> None:
    assert (await client.get("/healthz", headers={"Host": host})).status_code == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:7070",
        "127.0.0.1",
        "127.0.0.1:7071",
        "localhost.evil.example:7070",
        "127.0.0.1.nip.io:7070",
        "10.0.0.1:7070",
        "0.0.0.0:7070",
        "user@127.0.0.1:7070",
        "127.0.0.1:70x0",
        "[::1",
        "",
    ],
)
async def test_any_other_host_is_refused_on_every_route(client: httpx2.AsyncClient, host: str) -> None:
    for method, path in (("GET", "/healthz"), ("GET", "/"), ("POST", "/v1/jobs"), ("GET", "/nowhere")):
        answer = await client.request(method, path, headers={"Host": host})
        assert (answer.status_code, answer.json()["code"]) == (403, "wrong_host")


@pytest.mark.parametrize("headers", [[], [(b"host", b"127.0.0.1:7070"), (b"host", b"evil.example")]])
async def test_no_host_or_two_are_refused(app: FastAPI, headers: list[tuple[bytes, bytes]]) -> None:
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": "GET",
        "path": "/healthz",
        "query_string": b"",
        "headers": headers,
        "server": ("127.0.0.1", 7070),
    }
    await app(scope, receive, send)
    assert sent[0]["status"] == 403


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        ("http://127.0.0.1:7070", 201),
        ("http://localhost:7070", 201),
        ("http://evil.example", 403),
        ("http://127.0.0.1:9999", 403),
        ("http://localhost", 403),
        ("null", 403),
        ("", 403),
        ("file://", 403),
    ],
)
async def test_pages_of_other_sites_are_refused(client: httpx2.AsyncClient, origin: str, status: int) -> None:
    answer = await client.post("/v1/jobs", json=DAILY, headers={"Origin": origin})
    assert answer.status_code == status
    assert await total(client) == (1 if status == 201 else 0)


async def test_the_configured_address_is_ours_too(make_app: MakeApp) -> None:
    app = make_app(WebSettings(url="https://hourhand.example.com/base"))
    async with asking(app) as client:
        for host in ("hourhand.example.com", "hourhand.example.com:443", "127.0.0.1:7070"):
            assert (await client.get("/healthz", headers={"Host": host})).status_code == 200
        ours = {"Host": "hourhand.example.com", "Origin": "https://hourhand.example.com"}
        assert (await client.get("/healthz", headers=ours)).status_code == 200
        for host in ("other.example.com", "hourhand.example.com:81"):
            assert (await client.get("/healthz", headers={"Host": host})).status_code == 403


BEYOND = "https://hourhand.example.com:8443"


@pytest.mark.parametrize(
    ("url", "host", "origin", "status"),
    [
        ("", "hourhand.internal:7070", None, 200),
        ("", "hourhand.internal", None, 200),
        ("", "10.1.2.3:7070", None, 200),
        ("", "user@hourhand.internal", None, 403),
        ("", "hour hand", None, 403),
        ("", "hourhand.internal/path", None, 403),
        ("", "hourhand.internal?x", None, 403),
        ("", "hourhand.internal:99999", None, 403),
        ("", "", None, 403),
        ("", "hourhand.internal:7070", "http://hourhand.internal:7070", 200),
        ("", "hourhand.internal", "https://hourhand.internal", 200),
        ("", "hourhand.internal", "http://evil.example", 403),
        ("", "hourhand.internal:7070", "http://hourhand.internal", 403),
        ("", "hourhand.internal", "http://hourhand.internal.evil.example", 403),
        ("", "hourhand.internal", "null", 403),
        ("", "hourhand.internal", "file://hourhand.internal", 403),
        (BEYOND, "hourhand.example.com:8443", BEYOND, 200),
        (BEYOND, "10.1.2.3:7070", None, 200),
        (BEYOND, "[fd00::1]:7070", None, 200),
        (BEYOND, "10.1.2.3:7070", "http://10.1.2.3:7070", 200),
        (BEYOND, "10.1.2.3:80", None, 403),
        (BEYOND, "10.1.2.3.nip.io:7070", None, 403),
        (BEYOND, "hourhand.internal:7070", None, 403),
        (BEYOND, "10.1.2.3:7070", "http://10.1.2.4:7070", 403),
    ],
)
async def test_beyond_loopback_a_bent_name_gets_nothing_and_other_pages_may_not_ask(
    make_app: MakeApp, url: str, host: str, origin: str | None, status: int
) -> None:
    app = make_app(WebSettings(url=url, any_host=True))
    headers = {"Host": host} | ({"Origin": origin} if origin is not None else {})
    async with asking(app) as client:
        assert (await client.get("/healthz", headers=headers)).status_code == status


# --- bodies


async def test_a_body_over_the_limit_is_refused_by_its_length(client: httpx2.AsyncClient) -> None:
    limit = 256 * 1024 + DOCUMENT_SLACK_BYTES
    answer = await client.post("/v1/jobs", content=b" " * (limit + 1))
    assert (answer.status_code, answer.json()["code"], answer.headers["connection"]) == (
        413,
        "too_large",
        "close",
    )
    assert (await client.post("/v1/jobs", content=b" " * limit)).status_code == 422


@pytest.mark.parametrize("path", ["/v1/jobs", "/v1/schedules/preview", "/v1/dead-letters/discard"])
async def test_no_more_than_the_limit_is_read_of_a_stream(client: httpx2.AsyncClient, path: str) -> None:
    read = 0

    async def stream() -> AsyncIterator[bytes]:
        nonlocal read
        for _ in range(1_000):
            read += 64 * 1024
            yield b" " * (64 * 1024)

    answer = await client.post(path, content=stream())
    assert answer.status_code == 413
    assert read <= 512 * 1024


async def test_a_payload_over_the_limit_is_refused(client: httpx2.AsyncClient) -> None:
    answer = await client.post("/v1/jobs", json={**DAILY, "payload": "x" * (256 * 1024)})
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (413, "/payload")
    fits = {**DAILY, "payload": "x" * (256 * 1024 - 2)}
    assert (await client.post("/v1/jobs", json=fits)).status_code == 201


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "json"]
)
async def test_other_content_types_are_refused(client: httpx2.AsyncClient, kind: str) -> None:
    answer = await client.post("/v1/jobs", content=b"{}", headers={"Content-Type": kind})
    assert (answer.status_code, answer.json()["code"]) == (415, "unsupported_content_type")


@pytest.mark.parametrize(
    "kind", ["application/json; charset=utf-8", "APPLICATION/JSON", "application/merge-patch+json"]
)
async def test_json_is_taken_under_its_names(client: httpx2.AsyncClient, kind: str) -> None:
    answer = await client.post("/v1/jobs?dry_run=1", json=DAILY, headers={"Content-Type": kind})
    assert answer.status_code == 200


# --- problems


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "code"),
    [
        ("GET", "/nowhere", None, 404, "no_such_route"),
        ("GET", "/api/v1/nowhere", None, 404, "no_such_route"),
        ("GET", "/jobs", None, 404, "no_such_route"),
        ("GET", "/v1/jobs/", None, 404, "no_such_route"),
        ("DELETE", "/v1/jobs", None, 405, "method_not_allowed"),
        ("POST", "/v1/jobs", b'{"cron": ', 400, "malformed_json"),
        ("POST", "/v1/jobs", b"", 422, "invalid"),
        ("POST", "/v1/jobs", b'{"payload": NaN}', 422, "invalid"),
        ("POST", "/v1/jobs", b"[" * 100_000, 422, "invalid"),
        ("POST", "/v1/jobs", b"\xff\xfe", 400, "malformed_json"),
        ("GET", "/v1/jobs/J-0000000000000", None, 404, "not_found"),
        ("GET", "/v1/jobs?limit=x", None, 422, "invalid"),
    ],
)
async def test_whatever_goes_wrong_is_a_problem(
    client: httpx2.AsyncClient, method: str, path: str, body: bytes | None, status: int, code: str
) -> None:
    answer = await client.request(method, path, content=body, headers={"X-Request-Id": "abc-1"})
    problem = Problem.model_validate(answer.json())
    assert answer.headers["content-type"] == "application/problem+json"
    assert (answer.status_code, problem.status, problem.code) == (status, status, code)
    assert problem.type == f"urn:hourhand:problem:{code}"
    assert (problem.request_id, problem.retryable) == ("abc-1", False)
    assert problem.title
    assert problem.detail


async def test_a_wrong_method_is_told_the_right_ones(client: httpx2.AsyncClient) -> None:
    assert (await client.delete("/api/v1/jobs")).headers["allow"] == "GET, POST"
    assert (await client.post("/v1/jobs/J-1")).headers["allow"] == "DELETE, GET, PATCH, PUT"
    assert (await client.post("/healthz")).headers["allow"] == "GET, HEAD"


async def test_what_nobody_expected_says_nothing_about_the_inside(
    app: FastAPI, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    async def boom() -> None:
        raise RuntimeError("s3cret-inside")

    app.add_api_route("/boom", boom)
    async with asking(app) as client:
        answer = await client.get("/boom", headers={"X-Request-Id": "abc-1"})
    problem = Problem.model_validate(answer.json())
    assert (answer.status_code, problem.code, problem.request_id) == (500, "internal", "abc-1")
    assert "s3cret" not in answer.text
    assert "Traceback" not in answer.text
    logged = capsys.readouterr()
    assert "abc-1" in logged.out + logged.err + caplog.text


# --- ids and metrics


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ("abc-1", True),
        ("4bf92f35/77", True),
        ("x" * 128, True),
        ("x" * 129, False),
        ("a b", False),
        ("", False),
    ],
)
async def test_request_ids_are_kept_if_they_are_plain_words(
    client: httpx2.AsyncClient, sent: str, kept: bool
) -> None:
    answer = await client.get("/healthz", headers={"X-Request-Id": sent})
    assert (answer.headers["x-request-id"] == sent) is kept


async def test_requests_without_an_id_are_given_different_ones(client: httpx2.AsyncClient) -> None:
    given = [(await client.get("/healthz")).headers["x-request-id"] for _ in range(3)]
    assert len(set(given)) == 3


async def test_metrics_go_by_route_and_status(client: httpx2.AsyncClient) -> None:
    for path in ("/v1/jobs/J-1", "/api/v1/jobs/J-2", "/nowhere/1", "/nowhere/2"):
        await client.get(path)
    await client.get("/healthz", headers={"Host": "evil.example"})
    text = (await client.get("/metrics")).text
    count = "hourhand_http_request_seconds_count"
    assert f'{count}{{method="GET",route="/jobs/{{job_id}}",status="404"}} 2.0' in text
    assert f'{count}{{method="GET",route="none",status="404"}} 2.0' in text
    assert f'{count}{{method="GET",route="none",status="403"}} 1.0' in text
    assert "nowhere" not in text
