"""`Idempotency-Key`: a POST or PATCH with one is carried out once, and answered alike for a day.

The key belongs to a tenant and to one request: method, path, query, `If-Match`, content type and body. Dry runs change
nothing and go their way. What is never kept: failures of the server, 401, 403, 429, streams, and answers that say
`no-store` because they hold a secret.
"""

import re
from collections.abc import Awaitable, Callable
from contextlib import suppress
from hashlib import sha256

import structlog
from fastapi.exceptions import RequestValidationError
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from hourhand.core.fault import Fault
from hourhand.core.repeating import MAX_ANSWER_BYTES, MAX_KEY, Answer
from hourhand.errors import HourhandError, Invalid, TooLarge, Unavailable
from hourhand.ports.answers import Asked, Promise, promising
from hourhand.services.repeats import Repeats
from hourhand.web.problems import answer_error, bad_parameters

KEY_HEADER = "Idempotency-Key"
REPLAYED_HEADER = "Idempotency-Replayed"
KEYED_METHODS = frozenset({"POST", "PATCH"})
KEYED_BYTES = 32 * 1024 * 1024  # of a body that comes with a key: it is read as a whole
_KEPT_HEADERS = ("content-type", "etag", "link", "location", "preference-applied")
PASSING = frozenset({401, 403, 429})
_VISIBLE = re.compile(rf"[\x21-\x7e]{{1,{MAX_KEY}}}")
_NO_DRY_RUN = frozenset({"", "0", "false", "f", "no", "n", "off"})
_LOG = structlog.get_logger("hourhand.web")

Handle = Callable[[Request], Awaitable[Response]]


async def carried_out_once(request: Request, tenant: str, repeats: Repeats, handle: Handle) -> Response:
    """What `handle` answers, or what it answered when the same request came before."""
    key = request.headers.get(KEY_HEADER)
    if key is None:
        return await handle(request)
    if _VISIBLE.fullmatch(key) is None:
        expected = f"1 to {MAX_KEY} visible ASCII characters"
        fault = Fault(pointer="", expected=f"{KEY_HEADER}: {expected}", got=f"{len(key)} characters")
        raise Invalid(f"{KEY_HEADER}: expected {expected}", [fault])
    if request.query_params.get("dry_run", "").lower() not in _NO_DRY_RUN:
        return await handle(request)
    asked = Asked(tenant=tenant, key=key, sum=_sum(request, await _body(request)))
    begun = await repeats.begin(asked)
    if isinstance(begun, Answer):
        return _replayed(begun)
    return await _under(begun, request, repeats, handle)


async def _under(under: Promise, request: Request, repeats: Repeats, handle: Handle) -> Response:
    try:
        with promising(under):
            response = await handle(request)
    except HourhandError as error:
        response = answer_error(error, request.scope)
    except RequestValidationError as error:
        response = bad_parameters(error, request.scope)
    except BaseException:
        with suppress(Unavailable):
            await repeats.give_up(under)
        raise
    answer = _worth_keeping(response)
    try:
        if answer is None:
            await repeats.give_up(under)
        else:
            await repeats.keep(under, answer)
    except Unavailable as error:  # what was done is done, and its mark tells a repeat
        _LOG.warning("an answer could not be kept", error=error.message)
    return response


async def _body(request: Request) -> bytes:
    """The whole body, which stays with the request for its route; refused where it is too large to be held."""
    chunks, size = [], 0
    async for chunk in request.stream():
        chunks.append(chunk)
        size += len(chunk)
        if size > KEYED_BYTES:
            raise TooLarge(
                f"with an {KEY_HEADER} a body has at most {KEYED_BYTES:,} bytes; send less at once, "
                "or give the jobs keys and leave it out"
            )
    request._body = b"".join(chunks)  # where Starlette itself keeps it
    return request._body


def _sum(request: Request, body: bytes) -> bytes:
    path: str = request.scope["path"]
    parts = (
        request.method,
        path.removeprefix("/api"),  # the same route under both of its names
        request.scope["query_string"].decode("latin-1"),
        request.headers.get("if-match", ""),
        request.headers.get("content-type", ""),
    )
    found = sha256("\0".join(parts).encode())
    found.update(b"\0" + body)
    return found.digest()


def _worth_keeping(response: Response) -> Answer | None:
    if response.status_code >= 500 or response.status_code in PASSING:
        return None
    if isinstance(response, StreamingResponse) or "no-store" in response.headers.get("cache-control", ""):
        return None
    body = bytes(response.body)
    if len(body) > MAX_ANSWER_BYTES:
        return None
    headers = {name: response.headers[name] for name in _KEPT_HEADERS if name in response.headers}
    return Answer(status=response.status_code, headers=headers, body=body)


def _replayed(answer: Answer) -> Response:
    return Response(answer.body, answer.status, {**answer.headers, REPLAYED_HEADER: "true"})
