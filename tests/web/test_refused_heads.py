"""What is refused before any route is asked has the request's name too, as every answer has."""

import asyncio
import json
from collections.abc import AsyncIterator

import pytest
from fastapi import FastAPI

from hourhand.wiring import request_heads
from hourhand.wiring.request_heads import HEAD_BYTES
from hourhand.wiring.server import Server, bind

DEADLINE_S = 30
START = b"GET /healthz HTTP/1.1\r\nHost: x\r\n"
LONG = b"X: " + b"a" * HEAD_BYTES


@pytest.fixture
async def port(app: FastAPI) -> AsyncIterator[int]:
    listener = bind("127.0.0.1", 0)
    server = Server(app)
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    yield listener.getsockname()[1]
    server.stop()
    await serving


async def refused(port: int, sent: bytes) -> tuple[int, str]:
    """Status and request id; the body says the same id."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(sent)
    async with asyncio.timeout(DEADLINE_S):
        answer = await reader.read()
    writer.close()
    head, _, body = answer.partition(b"\r\n\r\n")
    [given] = [line for line in head.split(b"\r\n") if line.startswith(b"x-request-id: ")]
    request_id = given.partition(b": ")[2].decode()
    assert json.loads(body)["request_id"] == request_id
    return int(head.split(b" ")[1]), request_id


@pytest.mark.parametrize("rest", [b"\r\n\r\n", b""], ids=["at its end", "before its end"])
async def test_too_long_a_head_is_named(port: int, rest: bytes) -> None:
    first, second = [await refused(port, START + LONG + rest) for _ in range(2)]
    assert (first[0], second[0]) == (431, 431)
    assert first[1].startswith("r-")
    assert first[1] != second[1]


@pytest.mark.parametrize(("sent", "kept"), [(b"mine-1", True), (b"no word", False)])
async def test_the_name_that_came_is_kept_if_it_is_one(port: int, sent: bytes, kept: bool) -> None:
    status, request_id = await refused(port, START + b"X-Request-Id: " + sent + b"\r\n" + LONG + b"\r\n\r\n")
    assert (status, request_id == sent.decode()) == (431, kept)


@pytest.mark.parametrize("sent", [b"G", START], ids=["a line", "headers"])
async def test_one_that_does_not_come_to_an_end_is_named(
    port: int, sent: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request_heads, "HEAD_WAIT_S", 0.2)
    status, request_id = await refused(port, sent)
    assert (status, request_id[:2]) == (408, "r-")
