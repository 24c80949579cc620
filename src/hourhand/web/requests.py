"""What routes read of a request beside its document: bodies, ids, versions, times and known parameters."""

import re
from collections.abc import Callable, Coroutine
from typing import Annotated, Any

from fastapi import Header, Query
from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import Response

from hourhand.core.fault import Fault
from hourhand.core.identity import RunKey, parse_job_id, parse_run_id
from hourhand.core.instant import GIVEN_YEARS, OutOfYears, parse_given_instant
from hourhand.errors import Invalid, NotFound
from hourhand.ports.acting import Actor, acting_for
from hourhand.web.access import CALLER, ROLE, Access, Caller, access_of, admitted
from hourhand.web.context import caller_of, context_of
from hourhand.web.faults import pointer_to, refusal, unknown_field
from hourhand.web.json_text import read_object
from hourhand.web.keeping import KEYED_METHODS, carried_out_once
from hourhand.web.problems import REQUEST_ID
from hourhand.web.refusals import UnsupportedContent

JSON = "application/json"
NDJSON = ("application/x-ndjson", "application/ndjson", "application/jsonl")
_BARE_PLUS = re.compile(r"(?<=\d) (?=\d\d:\d\d$)")  # a plus sign that nobody escaped
_ENTITY_TAG = re.compile(r'(?:W/)?"(\d{1,18})"')

Handler = Callable[[Request], Coroutine[Any, Any, Response]]

DryRun = Annotated[
    bool, Query(description="Validate and say what would be; change nothing.", examples=[False])
]
Limit = Annotated[int, Query(ge=1, le=1000, description="How many at most.", examples=[50])]
RequestKey = Annotated[
    str | None,
    Header(alias="Idempotency-Key", max_length=255, description="The same key gives the same run."),
]
CursorText = Annotated[str | None, Query(description="Where to go on: `next_cursor` of the page before.")]


async def json_body(request: Request) -> bytes:
    """The body of a request that takes JSON."""
    check_json(request)
    return await request.body()


def check_json(request: Request) -> None:
    """Refuse a body that says it is something else."""
    kind = content_type(request)
    if kind and kind != JSON and not (kind.startswith("application/") and kind.endswith("+json")):
        raise UnsupportedContent(f"expected Content-Type: {JSON}, got {kind[:80]}")


async def empty_body(request: Request) -> None:
    """Refuse a body that says something where there is nothing to say."""
    body = (await json_body(request)).strip()
    if body in (b"", b"null"):
        return
    names = read_object(body, "an empty body")
    if names:
        raise refusal([unknown_field(pointer_to([name]), name, ()) for name in names])


def content_type(request: Request) -> str:
    """The media type of the body, without parameters."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


class GuardedRoute(APIRoute):
    """A route that asks who is there before it looks at anything else; see `web.access`."""

    def __init__(self, path: str, endpoint: Callable[..., Any], **given: Any) -> None:
        super().__init__(path, endpoint, **given)
        if self.access.role is not None:
            self.openapi_extra = {**(self.openapi_extra or {}), ROLE: self.access.role.value}

    @property
    def access(self) -> Access:
        """What it asks of its callers."""
        return access_of(self.endpoint, self.methods or set())

    def get_route_handler(self) -> Handler:
        """FastAPI's handler behind the guard."""
        handle, access = self.get_inner_handler(), self.access
        if access.role is None:
            return handle

        async def guarded(request: Request) -> Response:
            web = context_of(request)
            principal = await web.identity.of(request)
            await web.request_limit.admit(principal, request.scope)
            request.scope[CALLER] = admitted(principal, access, request)
            with acting_for(_actor(request)):
                if request.method in KEYED_METHODS:
                    web, tenant = caller_of(request)
                    return await carried_out_once(request, tenant, web.repeats, handle)
                return await handle(request)

        return guarded

    def get_inner_handler(self) -> Handler:
        """What is asked once the caller may."""
        return super().get_route_handler()


class StrictRoute(GuardedRoute):
    """A guarded route that refuses query parameters it does not have."""

    def get_inner_handler(self) -> Handler:
        """FastAPI's handler behind the check."""
        handle = super().get_inner_handler()
        known = {field.alias for field in self.dependant.query_params}

        async def strict(request: Request) -> Response:
            if request.scope["query_string"]:
                _check_parameters(request, known)
            return await handle(request)

        return strict


def job_id_in(text: str) -> int:
    """The job id in a path; what is none does not exist."""
    try:
        return parse_job_id(text)
    except ValueError as error:
        raise NotFound(str(error)) from None


def job_filter_in(text: str | None) -> int | None:
    """A job id given as query parameter."""
    if text is None:
        return None
    try:
        return parse_job_id(text)
    except ValueError as error:
        fault = Fault(pointer="?job_id", expected="a job id", got=repr(text[:60]))
        raise Invalid(str(error), [fault]) from None


def run_key_in(text: str) -> RunKey:
    """The run id in a path; what is none does not exist."""
    try:
        return parse_run_id(text)
    except ValueError as error:
        raise NotFound(str(error)) from None


def instant_in(text: str | None, name: str) -> int | None:
    """A time given as query parameter."""
    if text is None:
        return None
    try:
        return parse_given_instant(_BARE_PLUS.sub("+", text))
    except ValueError as error:
        expected = "an RFC 3339 time with its offset, such as 2026-11-16T08:00:00Z"
        hint = f"within {GIVEN_YEARS}" if isinstance(error, OutOfYears) else None
        fault = Fault(pointer=f"?{name}", expected=expected, got=repr(text[:60]), hint=hint)
        raise Invalid(str(error), [fault]) from None


def api_prefix(request: Request) -> str:
    """The prefix that a request came under, for addresses in its answer."""
    path: str = request.scope["path"]
    return path[: path.index("/v1") + 3]


def expected_version(request: Request) -> int | None:
    """The version that If-Match asks for; None when it does not ask or takes any."""
    text = request.headers.get("if-match")
    if text is None or text.strip() == "*":
        return None
    found = _ENTITY_TAG.fullmatch(text.strip())
    if found is None:
        fault = Fault(pointer="", expected='If-Match: the ETag of the job, such as "3"', got=repr(text[:60]))
        raise Invalid('If-Match: expected the ETag of the job, such as "3"', [fault])
    return int(found[1])


def is_known(request: Request, tag: str) -> bool:
    """Whether If-None-Match names what would be answered."""
    text = request.headers.get("if-none-match", "")
    return text.strip() == "*" or tag in (one.strip().removeprefix("W/") for one in text.split(","))


def prefers_representation(request: Request) -> bool:
    """Whether the client wants the whole job back (RFC 7240)."""
    return _prefers(request, "return=representation")


def prefers_minimal(request: Request) -> bool:
    """Whether the client wants nothing back but the headers."""
    return _prefers(request, "return=minimal")


def _prefers(request: Request, preference: str) -> bool:
    return preference in request.headers.get("prefer", "").replace(" ", "").replace('"', "").lower()


def _actor(request: Request) -> Actor:
    caller: Caller = request.scope[CALLER]
    return Actor(
        subject=caller.principal.subject, via=caller.principal.via, request_id=request.scope.get(REQUEST_ID)
    )


def _check_parameters(request: Request, known: set[str]) -> None:
    names = [name for name in request.query_params if name not in known]
    if not names:
        return
    faults = [unknown_field(f"?{name}", name, known, "a query parameter of this route") for name in names]
    allowed, named = ", ".join(sorted(known)) or "none", ", ".join(name[:60] for name in names)
    raise Invalid(f"no such query parameter: {named}; allowed: {allowed}", faults)
