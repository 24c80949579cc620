"""What routes read of a request beside its document: bodies, ids, versions, times and known parameters."""

import re
from collections.abc import Callable
from typing import Annotated, Any

from fastapi import Depends, Header, Query
from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import Response

from hourhand.core.fault import Fault
from hourhand.core.identity import RunKey, parse_job_id, parse_run_id
from hourhand.core.instant import GIVEN_YEARS, OutOfYears, parse_given_instant
from hourhand.errors import HourhandError, Invalid, NotFound
from hourhand.ports.acting import Actor, acting_for
from hourhand.web.access import CALLER, ROLE, Access, Caller, access_of, admitted
from hourhand.web.context import caller_of, context_of
from hourhand.web.direct import Handler, with_short_cut
from hourhand.web.faults import MAX_FAULTS, refusal, unknown_field
from hourhand.web.json_text import read_object
from hourhand.web.keeping import KEYED_METHODS, carried_out_once
from hourhand.web.plain_texts import NUL, nul_fault, pointer_to, refused
from hourhand.web.problems import REQUEST_ID
from hourhand.web.refusals import UnsupportedContent

JSON = "application/json"
NDJSON = ("application/x-ndjson", "application/ndjson", "application/jsonl")
IF_MATCH = "If-Match"
IF_NONE_MATCH = "If-None-Match"
ANY = "*"
_BARE_PLUS = re.compile(r"(?<=\d) (?=\d\d:\d\d$)")  # a plus sign that nobody escaped
_ENTITY_TAG = re.compile(r'(?:W/)?"(\d{1,18})"')

DryRun = Annotated[
    bool, Query(description="Validate and say what would be; change nothing.", examples=[False])
]
Limit = Annotated[int, Query(ge=1, le=1000, description="How many at most.", examples=[50])]
RequestKey = Annotated[
    str | None,
    Header(alias="Idempotency-Key", max_length=255, description="The same key gives the same run."),
]
CursorText = Annotated[str | None, Query(description="Where to go on: `next_cursor` of the page before.")]


IfMatch = Annotated[str | None, Header(alias=IF_MATCH)]
KnownTags = Annotated[str | None, Header(alias=IF_NONE_MATCH)]


async def _version_in(request: Request, if_match: IfMatch = None) -> int | None:
    if IF_NONE_MATCH in request.headers:  # by its id nothing can be created
        raise _wrong_header(request, IF_NONE_MATCH, "it with GET, or as * with PUT of /jobs/by-key alone")
    return _matching_version(request)


async def _wanted_by_key(
    request: Request, if_match: IfMatch = None, if_none_match: KnownTags = None
) -> tuple[int | None, bool | None]:
    version = _matching_version(request)
    if IF_NONE_MATCH in request.headers:
        if _header(request, IF_NONE_MATCH) != ANY:
            raise _wrong_header(request, IF_NONE_MATCH, "*, which lets a key be created and never changed")
        return version, False
    return version, True if _header(request, IF_MATCH) == ANY else None


def _matching_version(request: Request) -> int | None:
    text = _header(request, IF_MATCH)
    if text is None or text == ANY:
        return None
    found = _ENTITY_TAG.fullmatch(text)
    if found is None:
        raise _wrong_header(request, IF_MATCH, 'the ETag of the job, such as "3"')
    return int(found[1])


def _header(request: Request, name: str) -> str | None:
    """What a header says; one that comes several times is a list of all."""
    given = request.headers.getlist(name)
    return ", ".join(given).strip() if given else None


def _wrong_header(request: Request, name: str, expected: str) -> Invalid:
    got = repr((_header(request, name) or "")[:60])
    return Invalid(
        f"{name}: expected {expected}", [Fault(pointer="", expected=f"{name}: {expected}", got=got)]
    )


# The version that If-Match asks for; None when it does not ask or takes any: what is not there is not found. Invalid
# with If-None-Match, which a change must not pass over.
ExpectedVersion = Annotated[int | None, Depends(_version_in)]
# The version that If-Match asks for, and whether anything must be there: True by `If-Match: *`, False by
# `If-None-Match: *`.
ExpectedByKey = Annotated[tuple[int | None, bool | None], Depends(_wanted_by_key)]


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
        raise refusal([unknown_field(pointer_to([name]), name, ()) for name in list(names)[:MAX_FAULTS]])


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
        return with_short_cut(self, super().get_route_handler())


class StrictRoute(GuardedRoute):
    """A guarded route that refuses query parameters it does not have, and texts that nothing can have."""

    def get_inner_handler(self) -> Handler:
        """FastAPI's handler behind the check."""
        handle = super().get_inner_handler()
        known = {field.alias for field in self.dependant.query_params}

        async def strict(request: Request) -> Response:
            if request.scope["query_string"]:
                _check_parameters(request, known)
            if NUL in request.scope["path"]:
                raise _nothing_has_nul(request)
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


def is_known(tags: str | None, tag: str) -> bool:
    """Whether If-None-Match names what would be answered."""
    text = tags or ""
    return text.strip() == "*" or tag in (one.strip().removeprefix("W/") for one in text.split(","))


def prefers_representation(request: Request) -> bool:
    """Whether the client wants the whole job back (RFC 7240)."""
    return _prefers(request, "return=representation")


def prefers_minimal(request: Request) -> bool:
    """Whether the client wants nothing back but the headers."""
    return _prefers(request, "return=minimal")


def _prefers(request: Request, preference: str) -> bool:
    """Whether one of those listed is this one; what follows a semicolon are its parameters."""
    listed = ",".join(request.headers.getlist("prefer")).lower().split(",")
    return any(one.partition(";")[0].replace(" ", "").replace('"', "") == preference for one in listed)


def _actor(request: Request) -> Actor:
    caller: Caller = request.scope[CALLER]
    return Actor(
        subject=caller.principal.subject, via=caller.principal.via, request_id=request.scope.get(REQUEST_ID)
    )


def _check_parameters(request: Request, known: set[str]) -> None:
    names = [name for name in request.query_params if name not in known][:MAX_FAULTS]
    if not names:
        if b"%00" in request.scope["query_string"]:
            _check_for_nul(request)
        return
    told = [name[:60] for name in names]
    faults = [
        unknown_field(f"?{short}", name, known, "a query parameter of this route")
        for short, name in zip(told, names, strict=True)
    ]
    allowed, named = ", ".join(sorted(known)) or "none", ", ".join(told)
    raise Invalid(f"no such query parameter: {named}; allowed: {allowed}", faults)


def _check_for_nul(request: Request) -> None:
    named = [name for name, text in request.query_params.multi_items() if NUL in text]
    if named:
        raise refused([nul_fault(f"?{name}") for name in dict.fromkeys(named)])


def _nothing_has_nul(request: Request) -> HourhandError:
    """No id has it, so there is nothing of that id; a key is what somebody wants something to have."""
    if NUL in request.path_params.get("key", ""):
        return refused([nul_fault("/key")])
    return NotFound("there is nothing whose id has the character NUL (U+0000)")
