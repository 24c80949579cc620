"""The outermost layer: gives each request its id, counts and times it, and keeps failures inside.

A request id that comes in is kept if it is a short plain word; metrics go by route template, never by path.
"""

import re
from collections.abc import Iterable
from itertools import count

from prometheus_client import CollectorRegistry, Histogram
from starlette.datastructures import MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hourhand.clock import Clock
from hourhand.core.instant import SECOND_US
from hourhand.web.problems import REQUEST_ID, answer_unexpected
from hourhand.web.request_limit import RATE_HEADERS

_PLAIN_WORD = re.compile(rb"[A-Za-z0-9._:/+=@-]{1,128}")
_BUCKETS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_NO_ROUTE = "none"
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


class HttpMetrics:
    """Request counts and durations by method, route template and status."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._durations = Histogram(
            "hourhand_http_request_seconds",
            "Requests by route and status.",
            labelnames=("method", "route", "status"),
            buckets=_BUCKETS_S,
            registry=registry,
        )
        self._children: dict[tuple[str, str, int], Histogram] = {}

    def observe(self, method: str, route: str, status: int, took_us: int) -> None:
        """One request was answered."""
        key = (method, route, status)
        child = self._children.get(key)
        if child is None:
            child = self._children[key] = self._durations.labels(method, route, str(status))
        child.observe(max(took_us, 0) / SECOND_US)


class Observer:
    """The ASGI layer."""

    def __init__(self, app: ASGIApp, *, clock: Clock, metrics: HttpMetrics) -> None:
        self._app = app
        self._clock = clock
        self._metrics = metrics
        self._prefix = f"r-{clock.now():x}-"  # differs between processes; the counter within one
        self._counter = count(1)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI."""
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        started_at = self._clock.now()
        request_id = scope[REQUEST_ID] = self._request_id(scope)
        status = 0

        async def observed(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                headers["x-request-id"] = request_id
                headers["x-content-type-options"] = "nosniff"
                headers.update(scope.get(RATE_HEADERS, {}))
            await send(message)

        try:
            await self._app(scope, receive, observed)
        except ClientDisconnect:
            status = status or 499
        except Exception as error:
            answer = answer_unexpected(error, scope)
            if status:
                raise  # the answer had begun: the server can only break the connection
            await answer(scope, receive, observed)
        finally:
            route = getattr(scope.get("route"), "path", _NO_ROUTE)
            method = scope["method"] if scope["method"] in _METHODS else "other"
            self._metrics.observe(method, route, status, self._clock.now() - started_at)
        return None

    def _request_id(self, scope: Scope) -> str:
        return sent_id(scope["headers"]) or f"{self._prefix}{next(self._counter)}"


def sent_id(headers: Iterable[tuple[bytes, bytes]]) -> str | None:
    """The request id that came in, if one did that can be kept."""
    for name, value in headers:
        if name == b"x-request-id" and _PLAIN_WORD.fullmatch(value):
            return str(value, "ascii")
    return None
