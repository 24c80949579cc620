"""Pages of other sites that the operator allows to ask: what browsers need to hear (CORS). None unless configured.

Never with credentials, so browsers show such a page no answer to a request with a cookie: who asks is known by the
token that the page sends. That other origins are turned away is `guards`', and changes by a cookie `identity`'s.
"""

from collections.abc import Sequence

from starlette.datastructures import MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_METHODS = "GET, POST, PUT, PATCH, DELETE"
_SENT = (
    "Authorization, Content-Type, Hourhand-Tenant, Idempotency-Key, If-Match, If-None-Match, Last-Event-ID, Prefer, "
    "X-Request-Id, traceparent"
)
_SEEN = (
    "ETag, Idempotency-Replayed, Link, Location, Preference-Applied, RateLimit, RateLimit-Policy, Retry-After, "
    "WWW-Authenticate, X-Request-Id"
)
_REMEMBERED_S = 600


class Cors:
    """The ASGI layer: answers preflights of allowed origins, and names the origin in every answer to them."""

    def __init__(self, app: ASGIApp, *, origins: Sequence[str]) -> None:
        self._app = app
        self._origins = frozenset(origin.encode() for origin in origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI."""
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        origins = [value for name, value in scope["headers"] if name == b"origin"]
        origin = origins[0].decode("latin-1") if len(origins) == 1 and origins[0] in self._origins else None
        asks_first = any(name == b"access-control-request-method" for name, _ in scope["headers"])
        if origin is not None and scope["method"] == "OPTIONS" and asks_first:
            return await _preflight(origin)(scope, receive, send)

        async def named(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.add_vary_header("Origin")
                if origin is not None:
                    headers["Access-Control-Allow-Origin"] = origin
                    headers["Access-Control-Expose-Headers"] = _SEEN
            await send(message)

        return await self._app(scope, receive, named)


def _preflight(origin: str) -> Response:
    return Response(
        status_code=204,
        headers={
            "Access-Control-Allow-Origin": origin,
            "Access-Control-Allow-Methods": _METHODS,
            "Access-Control-Allow-Headers": _SENT,
            "Access-Control-Max-Age": str(_REMEMBERED_S),
            "Vary": "Origin, Access-Control-Request-Method, Access-Control-Request-Headers",
        },
    )
