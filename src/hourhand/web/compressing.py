"""Answers as gzip, where the client takes it and it pays; event streams and what is packed already stay as they are."""

import re

from starlette.middleware.gzip import GZipResponder, IdentityResponder
from starlette.types import ASGIApp, Message, Receive, Scope, Send

SMALLEST_BYTES = 1024
_NOTHING = re.compile(r"q=0(\.0*)?")
_LEVEL = 4  # most of the gain for a third of the time


class Compressor:
    """The ASGI layer. A stream is packed piece by piece, so it is never held as a whole."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI."""
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        passed_on = send

        async def packing(message: Message) -> None:
            nonlocal passed_on
            if message["type"] == "http.response.start" and not _is_small(message):
                passed_on = _responder(scope, self._app, send).send_with_compression
            await passed_on(message)

        return await self._app(scope, receive, packing)


def _is_small(start: Message) -> bool:
    """Most answers say that they are too short to be packed, and need no further look."""
    for name, value in start.get("headers", ()):
        if name == b"content-length":
            return int(value) < SMALLEST_BYTES
    return False


def _responder(scope: Scope, app: ASGIApp, send: Send) -> IdentityResponder:
    accepted = b",".join(value for name, value in scope["headers"] if name == b"accept-encoding")
    takes = takes_gzip(accepted.decode("latin-1"))
    layer = GZipResponder(app, SMALLEST_BYTES, _LEVEL) if takes else IdentityResponder(app, SMALLEST_BYTES)
    layer.send = send
    return layer


def takes_gzip(accepted: str) -> bool:
    """Whether an Accept-Encoding takes gzip: named, or by a star, and not with a weight of nothing."""
    taken: dict[str, bool] = {}
    for one in accepted.lower().split(","):
        name, _, weight = one.partition(";")
        taken[name.strip()] = _NOTHING.fullmatch(weight.replace(" ", "")) is None
    return taken.get("gzip", taken.get("*", False))
