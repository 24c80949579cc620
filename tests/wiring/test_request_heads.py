"""What comes before a body is bounded in bytes, number and time, whoever sends it and in whatever parts."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from hourhand.wiring import request_heads
from hourhand.wiring.request_heads import HEAD_BYTES, HEADERS
from hourhand.wiring.server import Server, bind

DEADLINE_S = 30
SHORT_S = 0.2
START = b"POST / HTTP/1.1\r\nHost: x\r\n"
EMPTY = START + b"Content-Length: 0\r\n\r\n"
OVER = HEAD_BYTES + 1


async def size(request: Request) -> Response:
    return PlainTextResponse(f"{len(request.headers.items())} {len(await request.body())}")


@pytest.fixture
async def port() -> AsyncIterator[int]:
    listener = bind("127.0.0.1", 0)
    server = Server(Starlette(routes=[Route("/", size, methods=["POST"])]))
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    yield listener.getsockname()[1]
    server.stop()
    await serving


async def said(reader: asyncio.StreamReader) -> bytes:
    """Everything until the other side hangs up."""
    async with asyncio.timeout(DEADLINE_S):
        return await reader.read()


async def one_answer(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    async with asyncio.timeout(DEADLINE_S):
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(line for line in head.split(b"\r\n") if line.startswith(b"content-length:"))
        return head, await reader.readexactly(int(length.partition(b":")[2]))


async def flood(writer: asyncio.StreamWriter) -> None:
    """Send until the other side has hung up."""
    async with asyncio.timeout(DEADLINE_S):
        while True:
            writer.write(b"a" * HEAD_BYTES)
            await writer.drain()
            await asyncio.sleep(0.01)


def code(answer: bytes) -> tuple[bytes, str]:
    head, _, body = answer.partition(b"\r\n\r\n")
    assert b"connection: close" in head
    return head.split(b" ")[1], json.loads(body)["code"]


@pytest.mark.parametrize(
    "parts",
    [
        [b"POST / HTTP/1.1\r\nHost: x\r\nX: ", *[b"a" * 4_096] * (OVER // 4_096 + 1)],
        [b"POST /" + b"a" * OVER],
        [b"POST /" + b"a" * OVER + b" HTTP/1.1\r\nHost: x\r\n\r\n"],
        [START + b"X: " + b"a" * OVER + b"\r\n\r\n"],
        [START + b"".join(b"A%d: b\r\n" % number for number in range(HEADERS)) + b"\r\n"],
        [START + b"".join(b"A%d: b\r\n" % number for number in range(OVER // 6))],
        [b"\r\n" * OVER],
    ],
    ids=[
        "a value in parts",
        "no end of a path",
        "a path",
        "a value",
        "headers",
        "no end of headers",
        "nothing",
    ],
)
async def test_a_head_over_the_limit_is_answered_431_and_the_connection_closed(
    port: int, parts: list[bytes]
) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for part in parts:
        writer.write(part)
        await asyncio.sleep(0)
    assert code(await said(reader)) == (b"431", "headers_too_large")
    writer.close()


async def test_what_is_within_the_limits_is_served(port: int) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    most = b"".join(b"A%d: b\r\n" % number for number in range(HEADERS - 3))
    long = b"X: " + b"a" * (HEAD_BYTES - len(most) - 200) + b"\r\n"
    body = b"b" * 3 * HEAD_BYTES
    request = START + most + long + b"Content-Length: %d\r\n\r\n" % len(body) + body
    for _ in range(2):  # the second on the same connection, behind a body that is longer than the limit
        writer.write(request)
        _, answer = await one_answer(reader)
        assert answer == b"%d %d" % (HEADERS, len(body))
    writer.close()


@pytest.mark.parametrize("tail", [b"0\r\nX: ", b"1;"], ids=["trailer", "chunk extension"])
async def test_what_stands_around_chunks_of_a_body_has_an_end_too(port: int, tail: bytes) -> None:
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(START + b"Transfer-Encoding: chunked\r\n\r\n1\r\nb\r\n" + tail)
    await writer.drain()
    with pytest.raises(ConnectionError):
        await flood(writer)
    writer.close()


async def test_a_second_request_in_the_same_piece_is_counted_by_itself(port: int) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    body = b"b" * (HEAD_BYTES * 2)
    writer.write(START + b"Content-Length: %d\r\n\r\n" % len(body) + body + EMPTY)
    assert (await one_answer(reader))[1] == b"2 %d" % len(body)
    assert (await one_answer(reader))[1] == b"2 0"
    writer.close()


@pytest.mark.parametrize(
    ("sent", "told"),
    [(b"", None), (b"PO", (b"408", "slow_headers")), (START, (b"408", "slow_headers"))],
    ids=["nothing", "a method", "half of the headers"],
)
@pytest.mark.parametrize("before", [b"", EMPTY], ids=["at first", "after another"])
async def test_a_head_that_does_not_come_to_its_end_is_not_waited_for(
    port: int, monkeypatch: pytest.MonkeyPatch, before: bytes, sent: bytes, told: tuple[bytes, str] | None
) -> None:
    monkeypatch.setattr(request_heads, "HEAD_WAIT_S", SHORT_S)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    if before:
        writer.write(before)
        await one_answer(reader)
    writer.write(sent)
    answer = await said(reader)
    assert (code(answer) if answer else None) == told
    writer.close()


async def test_a_head_that_trickles_is_not_waited_for_either(
    port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request_heads, "HEAD_WAIT_S", SHORT_S)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(START + b"X: ")
    reading = asyncio.create_task(said(reader))
    while not reading.done():
        writer.write(b"a")
        await asyncio.sleep(SHORT_S / 20)
    assert code(reading.result()) == (b"408", "slow_headers")
    writer.close()


async def test_between_requests_a_connection_is_kept_longer_than_a_head_may_take(
    port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request_heads, "HEAD_WAIT_S", SHORT_S)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for _ in range(2):
        writer.write(EMPTY)
        assert (await one_answer(reader))[1] == b"2 0"
        await asyncio.sleep(SHORT_S * 2)
    writer.close()


@pytest.mark.parametrize(
    "sent",
    [
        b"BREW / HTTP/1.1\r\nHost: x\r\n\r\n",
        START + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n",
        START + b"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        START + b"Content-Length: -1\r\n\r\n",
    ],
)
async def test_what_is_no_request_is_refused_in_our_words(port: int, sent: bytes) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(sent)
    answer = await said(reader)
    assert code(answer) == (b"400", "not_http")
    assert b"\r\nx-request-id: " in answer
    writer.close()


async def test_some_requests_may_wait_behind_one_another(port: int) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(EMPTY * request_heads.PIPELINED)
    for _ in range(request_heads.PIPELINED):
        assert (await one_answer(reader))[0].startswith(b"HTTP/1.1 200")
    writer.close()


async def test_who_sends_ever_more_requests_and_reads_no_answer_is_hung_up_on(port: int) -> None:
    """Each would be kept until those before it are answered: a connection could fill the memory."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(EMPTY * 10_000)
    with contextlib.suppress(ConnectionError):
        answers = await said(reader)
        assert answers.count(b"HTTP/1.1 200") <= request_heads.PIPELINED + 1
    writer.close()
