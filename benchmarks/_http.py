"""HTTP in as few instructions as possible, so that what is measured is the other side.

A client that keeps connections and sends the next request as soon as the last is answered, and a server
(`python -m benchmarks._http`) that answers 200 to everything, 202 at `/accept`, and says at `/count` how often it did.
"""

import asyncio
import re
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import cast

import uvloop

_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_OK = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nok"
_ACCEPTED = b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n"
_PATIENCE_S = 600.0


@dataclass(slots=True)
class Driven:
    """What came of some requests."""

    statuses: Counter[int] = field(default_factory=Counter)
    latencies_ms: list[float] = field(default_factory=list)
    took_s: float = 0.0

    @property
    def rate(self) -> float:
        """Answers a second."""
        return self.statuses.total() / self.took_s


async def drive(port: int, requests: Iterator[bytes], connections: int) -> Driven:
    """Send all requests over some kept connections, each one at a time; waits for all answers."""
    loop = asyncio.get_running_loop()
    driven = Driven()
    callers = [_Caller(requests, driven) for _ in range(connections)]
    for caller in callers:
        await loop.create_connection(lambda caller=caller: caller, "127.0.0.1", port)  # type: ignore[misc]
    began = time.perf_counter()
    for caller in callers:
        caller.send_next()
    async with asyncio.timeout(_PATIENCE_S):
        await asyncio.gather(*(caller.done for caller in callers))
    driven.took_s = time.perf_counter() - began
    return driven


def post(port: int, path: str, body: bytes, content_type: str = "application/json") -> bytes:
    """A whole request."""
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: {content_type}\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


def get(port: int, path: str) -> bytes:
    """A whole request."""
    return f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode()


class _Caller(asyncio.Protocol):
    """One connection of the client."""

    def __init__(self, requests: Iterator[bytes], driven: Driven) -> None:
        self._requests = requests
        self._driven = driven
        self._transport: asyncio.Transport | None = None
        self._answer = b""
        self._sent_s = 0.0
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.done.done():
            self.done.set_exception(exc or ConnectionError("the server hung up"))

    def data_received(self, data: bytes) -> None:
        self._answer += data
        head_end = self._answer.find(b"\r\n\r\n") + 4
        if head_end < 4:
            return
        length = _LENGTH.search(self._answer, 0, head_end)
        if length is None or len(self._answer) < head_end + int(length[1]):
            return
        self._driven.statuses[int(self._answer[9:12])] += 1
        self._driven.latencies_ms.append((time.perf_counter() - self._sent_s) * 1000)
        self._answer = b""
        self.send_next()

    def send_next(self) -> None:
        """Send a request, or end when there is none left."""
        assert self._transport is not None
        request = next(self._requests, None)
        if request is None:
            self.done.set_result(None)
            self._transport.close()
            return
        self._sent_s = time.perf_counter()
        self._transport.write(request)


class _Answering(asyncio.Protocol):
    """One connection of the server."""

    count = 0

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._request = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._request += data
        while (head_end := self._request.find(b"\r\n\r\n") + 4) >= 4:
            length = _LENGTH.search(self._request, 0, head_end)
            end = head_end + (int(length[1]) if length else 0)
            if len(self._request) < end:
                return
            self._answer(self._request.startswith(b"GET /count "), b" /accept " in self._request[:20])
            self._request = self._request[end:]

    def _answer(self, asks_count: bool, accepts: bool) -> None:
        assert self._transport is not None
        if asks_count:
            text = str(_Answering.count).encode()
            self._transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(text), text))
            return
        _Answering.count += 1
        self._transport.write(_ACCEPTED if accepts else _OK)


async def _serve() -> None:
    loop = asyncio.get_running_loop()
    listening = await loop.create_server(_Answering, "127.0.0.1", 0, backlog=1024)
    print(listening.sockets[0].getsockname()[1], flush=True)
    async with listening:
        await listening.serve_forever()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve())
