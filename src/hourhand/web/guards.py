"""What is refused before any route sees it: foreign Host or Origin, and bodies over their limit.

`up` on loopback asks for no login, so a page of another site, or a name bent to this address, must not
get through: Host has to be a loopback name with our port or the configured URL's, and so has Origin. Beyond
loopback everybody is asked who they are, and what browsers send along by themselves goes by Host: there a
bent name gets nothing, so any Host may be (with a configured URL, its own or a bare address), and Origin may be that too.
"""

import asyncio
import re
from collections.abc import Sequence
from functools import lru_cache
from ipaddress import ip_address
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hourhand.errors import HourhandError, TooLarge
from hourhand.web.problems import answer_error
from hourhand.web.refusals import SlowBody, UnsupportedContent, WrongHost

DOCUMENT_SLACK_BYTES = 64 * 1024  # what a document may have beside its payload
LIST_BYTES = 32 * 1024 * 1024  # of a list of documents, which is held in memory
BULK_BYTES = 256 * 1024 * 1024  # of a stream of documents
REPORT_BYTES = 64 * 1024  # of what a target reports
BODY_WAIT_S = 20.0  # for the next part of a body
LEAST_BODY_RATE = 4 * 1024  # bytes a second, after that: whoever drips holds a connection
_BULK_PATHS = ("/jobs/bulk", "/jobs/apply")
_REPORT_PATH = "/report"
_MOST_DIGITS = 18  # of a length
_HOST = re.compile(rb"(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::\d{1,5})?")
_DEFAULT_PORTS = {"http": 80, "https": 443}


class HostGuard:
    """Answers 403 to requests for another host or from another origin."""

    def __init__(
        self, app: ASGIApp, *, url: str = "", any_host: bool = False, origins: Sequence[str] = ()
    ) -> None:
        self._app = app
        self._origins = frozenset(origin.encode() for origin in origins)
        self._own = _place(url) if url else None
        self._any_host = any_host
        self._is_ours = lru_cache(maxsize=256)(self._judge)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI."""
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        hosts = [value for name, value in scope["headers"] if name == b"host"]
        origins = [value for name, value in scope["headers"] if name == b"origin"]
        port = scope["server"][1] if scope.get("server") else None
        wrong = self._wrong(hosts, origins, port)
        if wrong is None:
            return await self._app(scope, receive, send)
        return await answer_error(wrong, scope)(scope, receive, send)

    def _wrong(self, hosts: list[bytes], origins: list[bytes], port: int | None) -> HourhandError | None:
        if len(hosts) != 1 or not (
            self._is_ours(b"http://" + hosts[0], port) or self._may_be(hosts[0], port)
        ):
            return WrongHost(
                "the Host header names another host or port; use localhost or a loopback address with port "
                f"{port}, or the configured server.url"
            )
        if any(
            origin not in self._origins
            and not self._is_ours(origin, port)
            and not (self._any_host and _same_site(origin, hosts[0]))
            for origin in origins
        ):
            return WrongHost("the Origin header names another site")
        return None

    def _may_be(self, host: bytes, port: int | None) -> bool:
        """Whether a host that is not known as ours may be, since it gives nobody anything."""
        if not self._any_host or not _HOST.fullmatch(host):
            return False
        place = _place("http://" + host.decode("ascii"))
        if place is None:
            return False
        return self._own is None or (_is_address(place[0]) and place[1] == port)

    def _judge(self, text: bytes, port: int | None) -> bool:
        place = _place(text.decode("latin-1"))
        if place is None:
            return False
        if place == self._own or (self._own and place[0] == self._own[0] and place[1] in (80, 443, port)):
            return True
        return _is_loopback(place[0]) and place[1] == port


class BodyLimit:
    """Answers 413 to a body over the limit before reading more of it than that."""

    def __init__(self, app: ASGIApp, *, payload_bytes: int) -> None:
        self._app = app
        self._limit_bytes = payload_bytes + DOCUMENT_SLACK_BYTES

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI."""
        if scope["type"] != "http" or scope["method"] in ("GET", "HEAD", "OPTIONS"):
            return await self._app(scope, receive, send)
        packed = next((value for name, value in scope["headers"] if name == b"content-encoding"), b"identity")
        if packed.lower() != b"identity":  # a little of it could become very much
            refused = UnsupportedContent("the body comes packed (Content-Encoding); send it as it is")
            answer = answer_error(refused, scope)
            answer.headers["Connection"] = "close"
            return await answer(scope, receive, send)
        limit = self._limit_bytes
        streams = scope["path"].endswith(_BULK_PATHS)  # lines may be written while they are sent
        if streams:
            limit = BULK_BYTES
        elif scope["path"].endswith(_REPORT_PATH):
            limit = REPORT_BYTES
        announced = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
        if announces_more(announced, limit):
            answer = answer_error(_too_large(limit), scope)
            answer.headers["Connection"] = "close"  # the rest of the body is not wanted
            return await answer(scope, receive, send)
        taken, whole = 0, False
        clock = asyncio.get_running_loop().time
        began_s = clock()

        async def limited() -> Message:
            nonlocal taken, whole
            if whole:
                return await receive()  # whoever asks now waits for the client to go
            patience_s = BODY_WAIT_S
            if not streams:
                patience_s = min(patience_s, began_s + BODY_WAIT_S + taken / LEAST_BODY_RATE - clock())
            try:
                async with asyncio.timeout(patience_s):
                    message = await receive()
            except TimeoutError:
                raise SlowBody(
                    f"no more of the body came for {BODY_WAIT_S:g} s, or less than {LEAST_BODY_RATE:,} bytes a second"
                ) from None
            whole = not message.get("more_body", False)
            taken += len(message.get("body", b""))
            if taken > limit:
                raise _too_large(limit)
            return message

        return await self._app(scope, limited, send)


def announces_more(announced: bytes, limit_bytes: int) -> bool:
    """Whether a Content-Length says more than a limit; digits without end are not even read."""
    return announced.isdigit() and (len(announced) > _MOST_DIGITS or int(announced) > limit_bytes)


def _too_large(limit_bytes: int) -> TooLarge:
    return TooLarge(f"the body is larger than {limit_bytes:,} bytes")


def _place(url: str) -> tuple[str, int] | None:
    """Host and port of a URL or an origin; None where it has none."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        return None
    if not host or parts.scheme not in _DEFAULT_PORTS or parts.username is not None:
        return None
    return host.rstrip("."), port or _DEFAULT_PORTS[parts.scheme]


def _same_site(origin: bytes, host: bytes) -> bool:
    """Whether a page's origin is the host that it asks; https may have ended at a proxy on its own port."""
    text = origin.decode("latin-1")
    scheme = text.partition("://")[0]
    return _place(text) is not None and _place(text) == _place(f"{scheme}://{host.decode('latin-1')}")


def _is_loopback(host: str) -> bool:
    return host == "localhost" or (_is_address(host) and ip_address(host).is_loopback)


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
