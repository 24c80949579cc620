"""The server's HTTP protocol with bounds on what comes before and around bodies: bytes, headers, and time.

Uvicorn bounds none of these, nor how many requests wait behind one another, and its parser joins a header that comes in
parts anew with each part: without a bound anybody could stall the process and fill its memory before being asked who they
are. Bodies are `web.guards`'.
"""

import asyncio
from itertools import count
from typing import Any

import msgspec
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from hourhand.errors import HourhandError
from hourhand.ids import process_name
from hourhand.web.observing import sent_id
from hourhand.web.problems import CONTENT_TYPE, problem_of
from hourhand.web.refusals import LongHead, NotHttp, SlowHead

HEAD_BYTES = 64 * 1024  # of a request's line and headers together
HEADERS = 100  # of one request
HEAD_WAIT_S = 10.0  # until they are complete, from the first byte on; of a new connection, from its beginning
PIPELINED = 32  # requests of a connection that wait for the answer to one before them
_LINGER_S = 1.0  # for a client that still sends to see why: closed at once, it would see a broken connection
_PREFIX = f"r-{process_name()}-"  # of the ids of refused requests, which get no further than this
_counter = count(1)


class BoundedHttp(HttpToolsProtocol):
    """Answers 431 to a head that is too long, 408 to one that does not come, and hangs up.

    Counted is what came since the parser last passed on something of a body or ended a message, so that trailers
    and the little between the chunks of a body are bounded too. A request that comes in one piece costs two additions.
    """

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._pending_bytes = 0
        self._newest_bytes = 0
        self._deadline: asyncio.TimerHandle | None = None
        self._refused = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Somebody is there, and has so long to say what they want."""
        super().connection_made(transport)
        self._deadline = self.loop.call_later(HEAD_WAIT_S, self._give_up)

    def connection_lost(self, exc: Exception | None) -> None:
        """Nobody waits any more."""
        self._forget_deadline()
        super().connection_lost(exc)
        self.pipeline.clear()

    def data_received(self, data: bytes) -> None:
        """Pass it on, unless too much has come that is no body."""
        if self._refused:
            return
        self._newest_bytes = len(data)
        self._pending_bytes += self._newest_bytes
        super().data_received(data)
        if self._pending_bytes > HEAD_BYTES:
            self._refuse(_too_long())
        elif self._deadline is None and not self._is_answering and self.timeout_keep_alive_task is None:
            # a next request has begun, or a body goes on that nobody reads: both shall end
            self._deadline = self.loop.call_later(HEAD_WAIT_S, self._give_up)

    def on_headers_complete(self) -> None:
        """Start the request, unless its head is too long as a whole."""
        if self._refused:
            return
        # What came is an upper bound of its length; only where that is over the limit it is worth adding up.
        is_long = self._pending_bytes + self._newest_bytes > HEAD_BYTES and self._head_bytes() > HEAD_BYTES
        if is_long or len(self.headers) > HEADERS:
            self._refuse(_too_long())
            return
        if len(self.pipeline) >= PIPELINED:  # uvicorn reads on while answers are made, whatever waits already
            self._refused = True
            self.transport.close()
            return
        self._pending_bytes = 0
        self._forget_deadline()
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """A part of a body, which others bound."""
        self._pending_bytes = 0
        if not self._refused:
            super().on_body(body)

    def on_message_complete(self) -> None:
        """What comes next belongs to the next request."""
        self._pending_bytes = 0
        if not self._refused:
            super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        """The parser gives up."""
        if not self._refused:
            self._refuse(NotHttp("what came is no HTTP request, or does not say clearly where it ends"))

    @property
    def _is_answering(self) -> bool:
        # there is none before the first request, which uvicorn's types do not say
        return self.cycle is not None and not self.cycle.response_complete  # type: ignore[redundant-expr]

    def _head_bytes(self) -> int:
        return len(self.url) + sum(len(name) + len(value) for name, value in self.headers)

    def _give_up(self) -> None:
        """The deadline has passed: say so where a request has begun, else just hang up."""
        self._deadline = None
        if self._pending_bytes and not self._refused:
            self._refuse(SlowHead(f"the request's headers were not complete after {HEAD_WAIT_S:g} s"))
        else:
            self.transport.close()

    def _refuse(self, error: HourhandError) -> None:
        """Say why and hang up; without a word where that would fall into another answer."""
        self._refused = True
        self._forget_deadline()
        if self.transport.is_closing():
            return
        if self._is_answering:
            self.transport.close()
            return
        # what had been read of the headers; there are none before the first request, which uvicorn's types do not say
        known = sent_id(self.headers or ())
        self.transport.write(_answer(error, known or f"{_PREFIX}{next(_counter)}"))
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self._deadline = self.loop.call_later(_LINGER_S, self.transport.close)

    def _forget_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


def _too_long() -> LongHead:
    return LongHead(
        f"the request's line and headers have at most {HEAD_BYTES:,} bytes and {HEADERS} headers; "
        "send long texts in the body"
    )


def _answer(error: HourhandError, request_id: str) -> bytes:
    body = msgspec.json.encode(problem_of(error, request_id))
    headers = (
        f"content-type: {CONTENT_TYPE}\r\ncontent-length: {len(body)}\r\n"
        f"x-request-id: {request_id}\r\nconnection: close\r\n\r\n"
    )
    return STATUS_LINE[error.status] + headers.encode("ascii") + body
