"""A real HTTP server that publishes keys, and does what real ones should not: rotate, hang, flood, lie, go away."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Self

from tests.identity.issuer import ALL_KEYS

Answer = Callable[[asyncio.StreamWriter], Awaitable[None]]
MAX_WAIT_S = 30.0


class KeyServer:
    """Answers every request with what it was last told to."""

    def __init__(self) -> None:
        self.asked = 0
        self.requests: list[bytes] = []
        self.came = asyncio.Event()
        self.go_on = asyncio.Event()
        self._answer: Answer = self._sends(ALL_KEYS)
        self._server: asyncio.Server | None = None
        self._port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}/keys"

    async def start(self) -> Self:
        self._server = await asyncio.start_server(self._handle, "127.0.0.1", self._port)
        self._port = self._server.sockets[0].getsockname()[1]
        return self

    async def stop(self) -> None:
        self.go_on.set()
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()
            self._server = None

    def publish(self, text: bytes, *headers: str, status: str = "200 OK") -> None:
        """Give this document from now on."""
        self._answer = self._sends(text, *headers, status=status)

    def hang(self) -> None:
        """Take requests and say nothing until `go_on`, then answer as before."""
        before = self._answer

        async def answer(writer: asyncio.StreamWriter) -> None:
            await self.go_on.wait()
            await before(writer)

        self._answer = answer

    def flood(self) -> None:
        """Send without an end."""

        async def answer(writer: asyncio.StreamWriter) -> None:
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n" + b'{"keys": [')
            while not self.go_on.is_set():
                writer.write(b" " * 65_536)
                await writer.drain()

        self._answer = answer

    def trickle(self, whole: bytes = ALL_KEYS) -> None:
        """Begin to answer and never end."""

        async def answer(writer: asyncio.StreamWriter) -> None:
            writer.write(f"HTTP/1.1 200 OK\r\nContent-Length: {len(whole)}\r\n\r\n".encode() + whole[:20])
            await writer.drain()
            await self.go_on.wait()

        self._answer = answer

    def _sends(self, text: bytes, *headers: str, status: str = "200 OK") -> Answer:
        lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(text)}", "Connection: close", *headers, "", ""]

        async def answer(writer: asyncio.StreamWriter) -> None:
            writer.write("\r\n".join(lines).encode() + text)
            await writer.drain()

        return answer

    async def _handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            self.requests.append(await reader.readuntil(b"\r\n\r\n"))
            self.asked += 1
            self.came.set()
            async with asyncio.timeout(MAX_WAIT_S):
                await self._answer(writer)
        except (OSError, asyncio.IncompleteReadError, TimeoutError):
            pass
        finally:
            writer.close()
