"""Server-sent events on the wire: frames, keep-alive, and an answer that lets go of its client when it ends."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import msgspec
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from hourhand.ports.events import Event, event_document
from hourhand.services.event_log import Message, Reset, Stats, Subscription

CONTENT_TYPE = "text/event-stream"
KEEP_ALIVE_S = 15
_RETRY_MS = 2_000  # how long a browser waits before it comes back
_FRAMES_AT_ONCE = 100
_MAX_FRAMES_KEPT = 1_000
_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
_KEEP_ALIVE = b": keep-alive\n\n"

_ENCODER = msgspec.json.Encoder()
_frames: dict[str, tuple[Event, bytes]] = {}  # of late; many clients get the same


class EventStream(StreamingResponse):
    """Everything that a subscription gets, until either side ends it or its owner is no longer known."""

    def __init__(self, subscription: Subscription, still_known: Callable[[], Awaitable[bool]]) -> None:
        self._subscription = subscription
        super().__init__(_stream(subscription, still_known), media_type=CONTENT_TYPE, headers=_HEADERS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._subscription.close()


async def _stream(
    subscription: Subscription, still_known: Callable[[], Awaitable[bool]]
) -> AsyncIterator[bytes]:
    yield b"retry: %d\n\n" % _RETRY_MS
    if subscription.begins_after is not None:
        # An id without data makes no event, but whoever is cut off before the first knows where to go on.
        yield b"id: %b\n\n" % subscription.begins_after.encode()
    while (messages := await subscription.take(KEEP_ALIVE_S)) is not None:
        if not await still_known():
            return
        if not messages:
            yield _KEEP_ALIVE
        for start in range(0, len(messages), _FRAMES_AT_ONCE):
            yield b"".join(map(frame, messages[start : start + _FRAMES_AT_ONCE]))


def frame(message: Message) -> bytes:
    """One message on the wire."""
    match message:
        case Event():
            event, text = _frames.get(message.id, (None, b""))
            if event is not message:
                if len(_frames) >= _MAX_FRAMES_KEPT:
                    _frames.clear()
                text = _frame(message.id, message.type, event_document(message))
                _frames[message.id] = (message, text)
            return text
        case Stats():
            body = {"counts": message.counts, "dropped": message.dropped}
            return _frame(message.last_id, "stats", body)
        case Reset():
            return _frame(message.last_id, "reset", {})


def _frame(event_id: str, kind: str, body: dict[str, Any]) -> bytes:
    return b"id: %b\nevent: %b\ndata: %b\n\n" % (event_id.encode(), kind.encode(), _ENCODER.encode(body))
