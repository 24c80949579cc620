"""Answers that are read line by line, while the caller waits or on an event loop.

Lines end with a line feed and nothing else: what JSON holds as it is, such as U+2028, ends none.
"""

from collections.abc import AsyncGenerator, Generator
from contextlib import AsyncExitStack, ExitStack
from typing import Any

import httpx2

from hourhand.client.flow import Answer, Trouble
from hourhand.errors import Invalid


class LineStream:
    """One stream at a time."""

    def __init__(self, http: httpx2.Client) -> None:
        self._http = http
        self._open = ExitStack()
        self._lines: Generator[str] | None = None

    def open(self, arguments: dict[str, Any]) -> Answer | Trouble:
        """Ask, and let go of the stream before."""
        self.close()
        try:
            response = self._open.enter_context(self._http.stream(**arguments))
            if not 200 <= response.status_code < 300:
                return _answer(response, response.read())
        except httpx2.RequestError as error:
            return trouble(error)
        self._lines = _lines(response)
        return _answer(response)

    def line(self) -> str | Trouble | None:
        """The next line; None at the end."""
        assert self._lines is not None, "a stream is opened first"
        try:
            return next(self._lines, None)
        except httpx2.RequestError as error:
            return trouble(error)

    def close(self) -> None:
        """Let go of the connection."""
        self._open.close()


class AsyncLineStream:
    """The same on an event loop."""

    def __init__(self, http: httpx2.AsyncClient) -> None:
        self._http = http
        self._open = AsyncExitStack()
        self._lines: AsyncGenerator[str] | None = None

    async def open(self, arguments: dict[str, Any]) -> Answer | Trouble:
        """Ask, and let go of the stream before."""
        await self.close()
        try:
            response = await self._open.enter_async_context(self._http.stream(**arguments))
            if not 200 <= response.status_code < 300:
                return _answer(response, await response.aread())
        except httpx2.RequestError as error:
            return trouble(error)
        self._lines = _lines_async(response)
        return _answer(response)

    async def line(self) -> str | Trouble | None:
        """The next line; None at the end."""
        assert self._lines is not None, "a stream is opened first"
        try:
            return await anext(self._lines, None)
        except httpx2.RequestError as error:
            return trouble(error)

    async def close(self) -> None:
        """Let go of the connection."""
        await self._open.aclose()


class Splitter:
    """Bytes as they come, made lines."""

    def __init__(self) -> None:
        self._rest: list[bytes] = []

    def take(self, chunk: bytes) -> list[str]:
        """The lines that a chunk completes."""
        first, *others = chunk.split(b"\n")
        self._rest.append(first)
        if not others:
            return []
        lines = [b"".join(self._rest), *others[:-1]]
        self._rest = [others[-1]]
        return [_text(line) for line in lines]

    def end(self) -> list[str]:
        """What came after the last line feed."""
        rest = b"".join(self._rest)
        return [_text(rest)] if rest else []


def trouble(error: httpx2.RequestError) -> Trouble:
    """What an error says, and whether the server may have got the request; Invalid where it is none at all."""
    if isinstance(error, httpx2.LocalProtocolError):  # its words show the header or the line that is wrong
        raise Invalid("the request cannot be sent: HTTP does not allow what it holds") from None
    unsent = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout, httpx2.UnsupportedProtocol)
    return Trouble(words=str(error) or type(error).__name__, sent=not isinstance(error, unsent))


def _lines(response: httpx2.Response) -> Generator[str]:
    splitter = Splitter()
    for chunk in response.iter_bytes():
        yield from splitter.take(chunk)
    yield from splitter.end()


async def _lines_async(response: httpx2.Response) -> AsyncGenerator[str]:
    splitter = Splitter()
    async for chunk in response.aiter_bytes():
        for line in splitter.take(chunk):
            yield line
    for line in splitter.end():
        yield line


def _text(line: bytes) -> str:
    return line.removesuffix(b"\r").decode("utf-8", "replace")


def _answer(response: httpx2.Response, body: bytes = b"") -> Answer:
    return Answer(status=response.status_code, headers=response.headers, body=body)
