"""Errors as RFC 9457 problem+json: one shape for everything that can go wrong, with words for people.

Turns our errors, the framework's and the unexpected into answers; the last say nothing about the inside.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import Scope

from hourhand.core.fault import Fault
from hourhand.errors import HourhandError, InFlight, Invalid, Overloaded, Unavailable, WrongToken
from hourhand.web.faults import told
from hourhand.web.fields import shown
from hourhand.web.refusals import Unforeseen

CONTENT_TYPE = "application/problem+json"
REQUEST_ID = "hourhand.request_id"  # where a request's id stands in its ASGI scope

_LOG = structlog.get_logger("hourhand.web")
_TITLES = {
    400: "The request cannot be read",
    401: "The token is missing or wrong",
    403: "Not allowed",
    404: "Not found",
    405: "Not a method of this route",
    408: "The request stopped coming",
    409: "It clashes with what is there",
    410: "Too late",
    412: "The job changed meanwhile",
    413: "Too large",
    415: "Not a content type of this route",
    422: "Something in the request is wrong",
    429: "Too much at once",
    431: "The headers are too large",
    500: "Something went wrong here",
    503: "The store cannot be reached or cannot write right now",
}
_QUERY_EXPECTED = {
    "int_parsing": "a whole number",
    "bool_parsing": "true or false",
    "missing": "a value",
}


class ProblemError(BaseModel):
    """One thing that is wrong with a request."""

    model_config = ConfigDict(extra="forbid")

    pointer: str = Field(
        description="JSON pointer into the body; ?name for a query parameter.", examples=["/cron"]
    )
    expected: str = Field(description="What would be right.", examples=["as hour 0 to 23"])
    got: str | None = Field(default=None, description="What came.", examples=["'25'"])
    hint: str | None = Field(
        default=None, description="What was probably meant.", examples=["did you mean name?"]
    )


class Problem(BaseModel):
    """What went wrong, as RFC 9457 draws it."""

    model_config = ConfigDict(extra="forbid")

    type: str = Field(description="The kind of problem.", examples=["urn:hourhand:problem:invalid"])
    title: str = Field(description="The kind of problem in words.", examples=[_TITLES[422]])
    status: int = Field(description="The HTTP status.", examples=[422])
    detail: str = Field(
        description="What happened this time.", examples=["cron: expected as hour 0 to 23, got '25'"]
    )
    code: str = Field(description="The kind of problem for programs.", examples=["invalid"])
    errors: list[ProblemError] = Field(description="Each field that is wrong.", examples=[[]])
    request_id: str | None = Field(description="Names this request in the logs.", examples=["r-1j2k3m4n-7"])
    retryable: bool = Field(description="Whether the same request may succeed later.", examples=[False])


def problem_of(error: HourhandError, request_id: str | None = None) -> dict[str, Any]:
    """The body for one of our errors."""
    faults = error.faults if isinstance(error, Invalid) else ()
    return _problem(
        error.status,
        error.code,
        error.message,
        faults=faults,
        request_id=request_id,
        retryable=error.retryable,
    )


def wrong_method(
    path: str, method: str, methods: Sequence[str], request_id: str | None = None
) -> dict[str, Any]:
    """The body for a method that a path does not answer to."""
    detail = f"{shown(path)} does not answer to {method[:20]}; it does to {', '.join(methods)}"
    return _problem(405, "method_not_allowed", detail, request_id=request_id)


def answer_error(error: HourhandError, scope: Scope) -> Response:
    """The answer for one of our errors."""
    headers = {}
    if isinstance(error, Overloaded | InFlight):
        headers["Retry-After"] = str(error.retry_after_s)
    elif isinstance(error, Unavailable):
        headers["Retry-After"] = "1"
    elif isinstance(error, WrongToken):
        headers["WWW-Authenticate"] = "Bearer"
    return _response(problem_of(error, scope.get(REQUEST_ID)), headers)


def bad_parameters(error: RequestValidationError, scope: Scope) -> Response:
    """The answer for parameters that the framework found wrong."""
    faults = [_parameter_fault(found) for found in error.errors()]
    return answer_error(Invalid(told(faults[0]), faults), scope)


def answer_unexpected(error: Exception, scope: Scope) -> Response:
    """The answer for what should not have happened."""
    return answer_error(in_our_words(error, scope), scope)


def in_our_words(error: Exception, scope: Scope) -> HourhandError:
    """An error as people may see it; what should not have happened is told to the log."""
    if isinstance(error, HourhandError):
        return error
    request_id = scope.get(REQUEST_ID)
    _LOG.error(
        "request failed",
        request_id=request_id,
        method=scope.get("method"),
        path=scope.get("path"),
        error=type(error).__name__,
        exc_info=error,
    )
    return Unforeseen(f"an unexpected error; the log names it by the request id {request_id}")


def install(app: FastAPI, methods_at: Callable[[str], Sequence[str]]) -> None:
    """Make an application answer its errors with problems; `methods_at` knows what a path answers to."""

    async def on_http_error(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        return _http_problem(error, request.scope, methods_at(request.scope["path"]))

    app.add_exception_handler(HourhandError, _on_our_error)
    app.add_exception_handler(RequestValidationError, _on_bad_parameters)
    app.add_exception_handler(HTTPException, on_http_error)


async def _on_our_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HourhandError)
    return answer_error(error, request.scope)


async def _on_bad_parameters(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    return bad_parameters(error, request.scope)


def _http_problem(error: HTTPException, scope: Scope, methods: Sequence[str]) -> Response:
    request_id, headers = scope.get(REQUEST_ID), dict(error.headers or {})
    match error.status_code:
        case 404:
            detail = f"there is no {shown(scope['path'])} here; the API is under /api/v1, see /openapi.json"
            body = _problem(404, "no_such_route", detail, request_id=request_id)
        case 405:
            body = wrong_method(scope["path"], scope["method"], methods, request_id)
            headers = {"Allow": ", ".join(methods)}
        case status:
            body = _problem(status, "refused", str(error.detail), request_id=request_id)
    return _response(body, headers)


def _parameter_fault(found: Mapping[str, Any]) -> Fault:
    kind, place, context = found["type"], found["loc"], found.get("ctx", {})
    match kind:
        case "greater_than_equal":
            expected = f"at least {context['ge']}"
        case "less_than_equal":
            expected = f"at most {context['le']}"
        case "literal_error" | "enum":
            expected = f"one of {context['expected']}"
        case "string_too_long":
            expected = f"at most {context['max_length']} characters"
        case "string_too_short":
            expected = f"at least {context['min_length']} characters"
        case _:
            expected = _QUERY_EXPECTED.get(kind, "another value")
    got = "nothing" if kind == "missing" else shown(found.get("input"))
    mark = "?" if place[0] == "query" else ""
    return Fault(pointer=f"{mark}{place[1]}", expected=expected, got=got)


def _problem(
    status: int,
    code: str,
    detail: str,
    *,
    faults: Sequence[Fault] = (),
    request_id: str | None = None,
    retryable: bool = False,
) -> dict[str, Any]:
    return {
        "type": f"urn:hourhand:problem:{code}",
        "title": _TITLES.get(status, "The request was refused"),
        "status": status,
        "detail": detail,
        "code": code,
        "errors": faults,
        "request_id": request_id,
        "retryable": retryable,
    }


def _response(body: dict[str, Any], headers: Mapping[str, str]) -> Response:
    return Response(
        msgspec.json.encode(body), status_code=body["status"], media_type=CONTENT_TYPE, headers=dict(headers)
    )
