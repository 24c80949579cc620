"""Pings: one GET through the guard; whatever goes wrong is a line in the log and nothing more."""

import asyncio

import pytest
import structlog

from hourhand.targets.addresses import parse_allowed
from hourhand.targets.pinging import Pinger
from tests.targets.conftest import Serve

LOCAL = parse_allowed(("127.0.0.1",))


class Sink:
    """Answers every request alike and keeps its first line."""

    def __init__(self, answer: bytes = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n") -> None:
        self.lines: list[bytes] = []
        self._answer = answer

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.lines.append((await reader.readuntil(b"\r\n\r\n")).split(b"\r\n")[0])
        writer.write(self._answer)
        await writer.drain()


async def test_asks_once_by_get(serve: Serve) -> None:
    sink = Sink()
    server = await serve(sink)
    with structlog.testing.capture_logs() as lines:
        await Pinger(server.url, LOCAL).ping()
    assert sink.lines == [b"GET /hook HTTP/1.1"]
    assert lines == []


async def test_goes_nowhere_that_the_guard_forbids(serve: Serve) -> None:
    sink = Sink()
    server = await serve(sink)
    with structlog.testing.capture_logs() as lines:
        await Pinger(server.url, ()).ping()
    assert (sink.lines, server.connections) == ([], 0)
    assert "targets.allow_hosts" in lines[0]["why"]


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 503 Away\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n",
    ],
)
async def test_an_answer_other_than_2xx_is_told_and_followed_nowhere(serve: Serve, answer: bytes) -> None:
    server = await serve(Sink(answer))
    with structlog.testing.capture_logs() as lines:
        await Pinger(server.url, LOCAL).ping()
    assert lines[0]["status"] in (302, 503)


async def test_a_server_that_is_gone_or_no_url_at_all_raises_nothing() -> None:
    with structlog.testing.capture_logs() as lines:
        await Pinger("http://127.0.0.1:1/secret-path", LOCAL).ping()
        await Pinger("", LOCAL).ping()
    assert len(lines) == 1
    assert "secret-path" not in str(lines)
