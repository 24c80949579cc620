"""HTTP calls against servers on 127.0.0.1: well-behaved ones, and every kind that is not."""

import asyncio
import gzip
import socket
from collections.abc import AsyncIterator

import pytest

import hourhand
from hourhand.clock import ManualClock
from hourhand.core.model import Delivery
from hourhand.core.report import ReportTokens, report_token
from hourhand.core.retry import Failure, Outcome
from hourhand.core.signature import parse_secret
from hourhand.ports.target import Result
from hourhand.targets.addresses import parse_allowed
from hourhand.targets.http import HttpExecutor, HttpSettings
from hourhand.targets.http_answer import KEPT_BYTES
from tests.targets.conftest import Serve
from tests.targets.runs import WAIT_S, Request, answer, http_run, read_request

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


@pytest.fixture
async def http() -> AsyncIterator[HttpExecutor]:
    settings = HttpSettings(allowed=parse_allowed(["127.0.0.1"]), signing_keys=(parse_secret(SECRET),))
    executor = HttpExecutor(ManualClock(), settings)
    yield executor
    await executor.close()


async def execute(http: HttpExecutor, url: str, payload: object = None, **fields: object) -> Result:
    async with asyncio.timeout(WAIT_S):
        return await http.execute(http_run(url, payload, **fields))


def error_of(result: Result) -> str:
    assert result.outcome is Outcome.FAILED
    assert result.detail is not None
    return str(result.detail["error"])


async def test_a_receiver_can_verify_what_arrives(http: HttpExecutor, serve: Serve) -> None:
    requests: list[Request] = []

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        requests.append(await read_request(reader))
        writer.write(answer("201 Created", b'{"ok":1}', Content_Type="application/json"))

    server = await serve(handler)
    result = await execute(http, server.url, {"a": 1}, headers={"X-Own": "grün"})
    assert result.outcome is Outcome.SUCCEEDED
    assert result.detail == {
        "response": {"status": 201, "content_type": "application/json", "body": '{"ok":1}'}
    }
    (request,) = requests
    assert (request.method, request.path, request.body) == ("POST", "/hook", b'{"a":1}')
    assert request.headers["host"] == f"127.0.0.1:{server.port}"
    assert request.headers["content-length"] == "7"
    names = [name.lower() for name, _ in request.pairs]
    assert len(names) == len(set(names))
    run_id = hourhand.verify(request.headers, request.body, SECRET, clock=ManualClock())
    assert run_id == request.headers["idempotency-key"] == "J-000000000002d@20261116T080000Z"


async def test_connections_are_kept_and_answers_not_mixed_up(http: HttpExecutor, serve: Serve) -> None:
    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        number = 0
        while not reader.at_eof():
            await read_request(reader)
            number += 1
            writer.write(answer(body=str(number).encode()))

    server = await serve(handler)
    bodies = [(await execute(http, server.url)).detail["response"]["body"] for _ in range(5)]  # type: ignore[index]
    assert bodies == ["1", "2", "3", "4", "5"]
    assert server.connections == 1


async def test_a_call_that_must_not_be_sent_twice_gets_a_new_connection(
    http: HttpExecutor, serve: Serve
) -> None:
    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(answer())

    server = await serve(handler)
    for _ in range(3):
        result = await execute(http, server.url, delivery=Delivery.AT_MOST_ONCE)
        assert result.outcome is Outcome.SUCCEEDED
    assert server.connections == 3


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "POST"])
async def test_nothing_is_sent_again_unseen(http: HttpExecutor, serve: Serve, method: str) -> None:
    requests = []

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        requests.append(await read_request(reader))
        writer.close()

    server = await serve(handler)
    result = await execute(http, server.url, method=method)
    assert error_of(result) == f"127.0.0.1:{server.port} closed the connection without an answer"
    assert result.failure == Failure()
    assert len(requests) == server.connections == 1


async def test_redirects_are_not_followed(http: HttpExecutor, serve: Serve) -> None:
    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(answer("302 Found", Location=f"http://127.0.0.1:{server.port}/secret"))

    server = await serve(handler)
    result = await execute(http, server.url)
    assert "redirects are not followed" in error_of(result)
    assert not result.failure.retryable
    assert server.connections == 1


async def test_proxy_variables_are_ignored(
    http: HttpExecutor, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(answer())

    server, proxy = await serve(handler), await serve(handler)
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    assert (await execute(http, server.url)).outcome is Outcome.SUCCEEDED
    assert (server.connections, proxy.connections) == (1, 0)


async def test_retry_after_is_handed_on(http: HttpExecutor, serve: Serve) -> None:
    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(answer("429 Too Many Requests", Retry_After="90"))

    result = await execute(http, (await serve(handler)).url)
    assert result.failure == Failure(retry_after_us=90_000_000)


async def test_of_a_long_answer_the_beginning_is_kept_and_the_rest_never_read(
    http: HttpExecutor, serve: Serve
) -> None:
    sent = 0

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        await read_request(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 10000000000\r\n\r\n")
        while True:
            writer.write(b"x" * 65_536)
            await writer.drain()
            sent += 65_536

    server = await serve(handler)
    result = await execute(http, server.url)
    assert result.outcome is Outcome.SUCCEEDED
    assert result.detail == {"response": {"status": 200, "body": "x" * KEPT_BYTES, "truncated": True}}
    async with asyncio.timeout(WAIT_S):
        await server.hung_up.wait()
    assert sent < 32 * 1024 * 1024


async def test_an_endless_answer_in_chunks_is_cut_too(http: HttpExecutor, serve: Serve) -> None:
    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(b"HTTP/1.1 500 Oops\r\nTransfer-Encoding: chunked\r\n\r\n")
        while True:
            writer.write(b"400\r\n" + b"y" * 1024 + b"\r\n")
            await writer.drain()

    server = await serve(handler)
    result = await execute(http, server.url)
    assert error_of(result) == "the target answered 500 Internal Server Error"
    async with asyncio.timeout(WAIT_S):
        await server.hung_up.wait()


async def test_what_comes_packed_is_not_unpacked(http: HttpExecutor, serve: Serve) -> None:
    packed = gzip.compress(b"0" * 1_000_000)

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert (await read_request(reader)).headers["accept-encoding"] == "identity"
        writer.write(answer(body=packed, Content_Encoding="gzip"))

    result = await execute(http, (await serve(handler)).url)
    assert len(packed) < KEPT_BYTES  # so only what was unpacked could be too long
    assert result.detail == {"response": {"status": 200, "encoding": "gzip"}}


async def test_a_slow_body_ends_at_the_timeout_with_what_the_status_said(
    http: HttpExecutor, serve: Serve
) -> None:
    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc")

    server = await serve(handler)
    result = await execute(http, server.url, timeout_ms=100)
    assert result.outcome is Outcome.SUCCEEDED
    assert result.detail == {"response": {"status": 200, "body": "abc", "truncated": True}}
    async with asyncio.timeout(WAIT_S):
        await server.hung_up.wait()


async def test_a_body_that_breaks_off_ends_with_what_the_status_said(
    http: HttpExecutor, serve: Serve
) -> None:
    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 100\r\n\r\nabc")
        writer.close()

    result = await execute(http, (await serve(handler)).url)
    assert error_of(result) == "the target answered 404 Not Found"
    assert result.detail is not None
    assert result.detail["response"] == {"status": 404, "body": "abc", "truncated": True}


async def test_no_answer_within_the_timeout(http: HttpExecutor, serve: Serve) -> None:
    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)

    server = await serve(handler)
    result = await execute(http, server.url, timeout_ms=100)
    assert error_of(result) == f"no answer from 127.0.0.1:{server.port} within 100ms"
    assert result.failure == Failure(before_sending=False)
    async with asyncio.timeout(WAIT_S):
        await server.hung_up.wait()


async def test_a_head_that_drips_is_no_answer(http: HttpExecutor, serve: Serve) -> None:
    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nX-Slow: a")

    server = await serve(handler)
    result = await execute(http, server.url, timeout_ms=100)
    assert error_of(result).startswith("no answer from")


async def test_an_endless_header_is_cut(http: HttpExecutor, serve: Serve) -> None:
    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nX-Long: ")
        while True:
            writer.write(b"z" * 65_536)
            await writer.drain()

    server = await serve(handler)
    assert "not HTTP, or too long a header" in error_of(await execute(http, server.url))
    async with asyncio.timeout(WAIT_S):
        await server.hung_up.wait()


async def test_endless_headers_are_cut(http: HttpExecutor, serve: Serve) -> None:
    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(b"HTTP/1.1 200 OK\r\n")
        while True:
            writer.write(b"X-Again: and again\r\n" * 1000)
            await writer.drain()

    server = await serve(handler)
    assert "not HTTP, or too long a header" in error_of(await execute(http, server.url))


@pytest.mark.parametrize(
    "garbage",
    [b"\x00\xff garbage\r\n\r\n", b"HTTP/9.9 what\r\n\r\n", b"SSH-2.0-OpenSSH_9.2\r\n", b"<html>\n\n"],
)
async def test_garbage_is_a_failure(http: HttpExecutor, serve: Serve, garbage: bytes) -> None:
    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(garbage)
        writer.close()

    result = await execute(http, (await serve(handler)).url)
    assert "not HTTP" in error_of(result)
    assert result.failure == Failure()


async def test_a_reset_is_a_failure_that_may_have_had_an_effect(http: HttpExecutor, serve: Serve) -> None:
    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.get_extra_info("socket").setsockopt(
            socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00"
        )
        writer.transport.abort()

    result = await execute(http, (await serve(handler)).url)
    assert "broke" in error_of(result) or "closed the connection" in error_of(result)
    assert result.failure == Failure()


async def test_refused_connections_are_known_not_to_have_been_sent(http: HttpExecutor) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound but not listening
        port = taken.getsockname()[1]
        result = await execute(http, f"http://ann:canary@127.0.0.1:{port}/?canary")
    assert error_of(result) == f"connection refused by 127.0.0.1:{port}"
    assert result.failure == Failure(before_sending=True)


async def test_a_full_backlog_is_a_connect_timeout(http: HttpExecutor) -> None:
    with socket.socket() as listening, socket.socket() as first, socket.socket() as second:
        listening.bind(("127.0.0.1", 0))
        listening.listen(0)
        for filler in (first, second):
            filler.setblocking(False)
            filler.connect_ex(listening.getsockname())
        port = listening.getsockname()[1]
        result = await execute(http, f"http://127.0.0.1:{port}/", timeout_ms=2000)
    assert error_of(result) == f"no connection to 127.0.0.1:{port} within 1s800ms"
    assert result.failure == Failure(before_sending=True)


async def test_plain_http_is_no_tls(http: HttpExecutor, serve: Serve) -> None:
    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    server = await serve(handler)
    result = await execute(http, server.url.replace("http:", "https:"))
    assert error_of(result).startswith("no TLS connection with 127.0.0.1:")
    assert result.failure.before_sending


@pytest.mark.parametrize("host", ["127.0.0.2", "[::1]", "127.1", "2130706433", "0.0.0.0"])
async def test_the_guard_refuses_for_good(http: HttpExecutor, serve: Serve, host: str) -> None:
    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)

    server = await serve(handler)
    result = await execute(http, f"http://{host}:{server.port}/")
    assert error_of(result).startswith("not called: ")
    assert result.failure == Failure(retryable=False, before_sending=True)
    assert server.connections == 0


async def test_what_cannot_be_called_fails_for_good(http: HttpExecutor) -> None:
    result = await execute(http, "http://127.0.0.1/", headers={"X": "canary\r\nHost: b"})
    assert error_of(result).startswith("not called: headers/X: ")
    assert "canary" not in error_of(result)
    assert result.failure == Failure(retryable=False, before_sending=True)


async def test_cancelling_closes_the_socket_at_once(http: HttpExecutor, serve: Serve) -> None:
    arrived = asyncio.Event()

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        arrived.set()

    server = await serve(handler)
    task = asyncio.create_task(http.execute(http_run(server.url)))
    async with asyncio.timeout(WAIT_S):
        await arrived.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await server.hung_up.wait()


async def test_a_crowd_at_one_origin_waits_without_losing_its_timeout(serve: Serve) -> None:
    inside, most, release = 0, 0, asyncio.Event()
    full = asyncio.Event()

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal inside, most
        while not reader.at_eof():
            await read_request(reader)
            inside += 1
            most = max(most, inside)
            if inside == 2:
                full.set()
            await release.wait()
            inside -= 1
            writer.write(answer())

    async def at_once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(answer())

    slow, quick = await serve(handler), await serve(at_once)
    allowed = parse_allowed(["127.0.0.1"])
    http = HttpExecutor(ManualClock(), HttpSettings(allowed=allowed, connections_per_origin=2))
    tasks = [asyncio.create_task(http.execute(http_run(slow.url))) for _ in range(6)]
    async with asyncio.timeout(WAIT_S):
        await full.wait()
        assert (await http.execute(http_run(quick.url))).outcome is Outcome.SUCCEEDED
        tasks.pop().cancel()
        release.set()
        results = await asyncio.gather(*tasks)
    assert [result.outcome for result in results] == [Outcome.SUCCEEDED] * 5
    assert most == 2
    await http.close()


async def test_after_close_it_can_be_opened_again(http: HttpExecutor, serve: Serve) -> None:
    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(answer())

    server = await serve(handler)
    await execute(http, server.url)
    await http.close()
    async with asyncio.timeout(WAIT_S):
        await server.hung_up.wait()
    assert (await execute(http, server.url)).outcome is Outcome.SUCCEEDED


async def test_a_target_that_can_report_may_accept(serve: Serve) -> None:
    requests: list[Request] = []

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        requests.append(await read_request(reader))
        writer.write(answer("202 Accepted", b"later"))

    server = await serve(handler)
    settings = HttpSettings(allowed=parse_allowed(["127.0.0.1"]), report_base="https://hh.example/api/v1")
    tokens = ReportTokens()
    for expected in (Outcome.SUCCEEDED, Outcome.ACCEPTED):
        executor = HttpExecutor(ManualClock(), settings, tokens.token_for)
        result = await executor.execute(http_run(server.url))
        assert result.outcome is expected
        tokens.learn(0, b"k" * 32)
        await executor.close()
    unable, able = (request.headers for request in requests)
    assert not {name for name in unable if "report" in name}
    run = http_run(server.url)
    assert able["hourhand-report-url"] == f"https://hh.example/api/v1/runs/{run.run_id}/report"
    assert able["hourhand-report-token"] == report_token(b"k" * 32, run.run_id, run.fence)
