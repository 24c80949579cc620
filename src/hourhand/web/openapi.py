"""The OpenAPI document: FastAPI's, completed with what routes read by themselves and with our problems.

Routes read bodies as bytes (payloads stay as they came), so their shapes are named here by reference and
the schemas added to the finished document.
"""

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from hourhand import __version__
from hourhand.web.access import ROLE
from hourhand.web.headers import describe_headers
from hourhand.web.keeping import KEYED_METHODS
from hourhand.web.problem_examples import example_of, examples
from hourhand.web.problems import CONTENT_TYPE, Problem
from hourhand.web.report_document import ReportDocument
from hourhand.web.schema import (
    BackfillDocument,
    DeadRequeueDocument,
    DeadSelectionDocument,
    JobDocument,
    OperationDocument,
    PauseDocument,
    QuotaDocument,
    RunDocument,
    ScheduleDocument,
    SkipDocument,
    TokenDocument,
)
from hourhand.web.webhook_document import WebhookDocument, WebhookPatch

_REFERENCE = "#/components/schemas/{model}"
_DOCUMENTS = (
    JobDocument,
    PauseDocument,
    RunDocument,
    DeadSelectionDocument,
    DeadRequeueDocument,
    SkipDocument,
    BackfillDocument,
    OperationDocument,
    ScheduleDocument,
    ReportDocument,
    TokenDocument,
    WebhookDocument,
    WebhookPatch,
    QuotaDocument,
    Problem,
)
_MEANINGS = {
    400: "The body is not JSON.",
    401: "There is no token, or one that proves nothing.",
    403: "The role is below what the route needs, it belongs to another tenant or to those who run the system, Host or Origin is not ours, or the operator's settings forbid it.",
    404: "There is no such thing.",
    405: "The address does not answer to this method; Allow has those that it does answer to.",
    408: "The body stopped coming.",
    409: "It clashes with what is there.",
    410: "The attempt's deadline has passed.",
    412: "The job changed since it was read.",
    413: "The body or the payload is too large; a body that nobody asked for too.",
    415: "The body is not of a type that this route takes, or comes packed.",
    422: "Something in the request is wrong; errors names each field.",
    429: "A limit is reached; try again later.",
    431: "Request line and headers are too long together, or too many.",
    500: "Something unexpected; the log has it under the request id.",
    503: "The store cannot be reached or cannot write right now.",
}
_ALWAYS = (401, 403, 422, 429, 500, 503)
_WITH_BODY = (400, 408, 413, 415)
_UNASKED_BODY = (413, 415)  # what a change may be answered though it takes no body
_ANYWHERE = {"MethodNotAllowed": 405, "HeadersTooLarge": 431}  # before any route is asked: described once
_ABOUT = (
    "Everything is under /api/v1, and the same under /v1. Times are RFC 3339 in UTC. Beside what each operation "
    "names, any address may answer 405 (`#/components/responses/MethodNotAllowed`) and 431 "
    "(`#/components/responses/HeadersTooLarge`)."
)

SCHEME = "bearer"
_SECURITY = {
    SCHEME: {
        "type": "http",
        "scheme": "bearer",
        "description": "An API token or a JWT. Not asked for where the process listens on loopback only.",
    }
}


def problems(*statuses: int, body: bool = False) -> dict[int | str, dict[str, Any]]:
    """The `responses` of a route that may answer with these problems beside those that all have."""
    named = sorted({*_ALWAYS, *statuses, *(_WITH_BODY if body else ())})
    return {status: _problem(status) for status in named}


def takes(model: type[BaseModel], *media_types: str, required: bool = True) -> dict[str, Any]:
    """The `openapi_extra` of a route that takes a document."""
    schema: dict[str, Any] = {"$ref": _REFERENCE.format(model=model.__name__)}
    if not required:  # saying nothing is as good as leaving it out
        schema = {"anyOf": [schema, {"type": "null"}]}
    content = {media_type: {"schema": schema} for media_type in media_types or ("application/json",)}
    return {"requestBody": {"required": required, "content": content}}


def gives_lines(model: type[BaseModel]) -> dict[int | str, dict[str, Any]]:
    """The `responses` of a route that also answers line by line, for who asks so."""
    lines = {"schema": {"$ref": _REFERENCE.format(model=model.__name__)}}
    return {200: {"content": {"application/x-ndjson": lines}}}


def takes_many(model: type[BaseModel], longest: int, *, lines: bool = True) -> dict[str, Any]:
    """The `openapi_extra` of a route that takes documents as a list, or also line by line."""
    # What is wrong with one of them is told in its own result, so that the request as a whole is fine.
    one = {"anyOf": [{"$ref": _REFERENCE.format(model=model.__name__)}, {}]}
    content: dict[str, Any] = {
        "application/json": {"schema": {"type": "array", "items": one, "maxItems": longest}}
    }
    if lines:
        content["application/x-ndjson"] = {"schema": one}
    return {"requestBody": {"required": True, "content": content}}


def describe(app: FastAPI) -> dict[str, Any]:
    """The finished document, made once."""
    if app.openapi_schema is None:
        document = get_openapi(
            title="hourhand",
            version=__version__,
            openapi_version="3.1.0",
            summary="A distributed job scheduler.",
            description=_ABOUT,
            routes=app.routes,
        )
        _, shapes = models_json_schema(
            [(model, "validation") for model in _DOCUMENTS], ref_template=_REFERENCE
        )
        components = document.setdefault("components", {})
        components.setdefault("schemas", {}).update(shapes["$defs"])
        components["securitySchemes"] = _SECURITY
        components["examples"] = examples()
        components["responses"] = {name: _problem(status) for name, status in _ANYWHERE.items()}
        _complete(document)
        describe_headers(document)
        app.openapi_schema = document
    return app.openapi_schema


def _complete(document: dict[str, Any]) -> None:
    """What the framework cannot know: who may, what a dry run answers, that a request may come with a key or a body."""
    for methods in document["paths"].values():
        for method, operation in methods.items():
            role = operation.get(ROLE)
            operation["security"] = [] if role is None else [{SCHEME: []}]
            if role is not None:
                operation["description"] += f"\n\nNeeds the role {role}."
                if method.upper() in KEYED_METHODS:
                    _add_problems(operation, 409, 422)
            if method != "get":
                _add_problems(operation, *_UNASKED_BODY)
            _tell_dry_run(operation)


def _problem(status: int) -> dict[str, Any]:
    schema = {"$ref": _REFERENCE.format(model="Problem")}
    content = {CONTENT_TYPE: {"schema": schema, "examples": example_of(status)}}
    return {"description": _MEANINGS[status], "content": content}


def _add_problems(operation: dict[str, Any], *statuses: int) -> None:
    for status in statuses:
        operation["responses"].setdefault(str(status), _problem(status))


def _tell_dry_run(operation: dict[str, Any]) -> None:
    responses = operation["responses"]
    takes_it = any(one["name"] == "dry_run" for one in operation.get("parameters", ()))
    done = next((status for status in ("201", "202") if status in responses), None)
    if takes_it and done is not None and "200" not in responses:
        responses["200"] = {**responses[done], "description": "What would be, where dry_run is true."}
