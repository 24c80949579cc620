"""The headers of requests and answers in the description of the API: each said once, and where it goes by rule.

The rules go by what an operation says of itself (its role, method, statuses, parameters and shapes), so that a new
route has its headers described without asking for it. What the headers do is for others to say.
"""

from typing import Any

from hourhand.core.access import TENANT_WORDS
from hourhand.core.repeating import MAX_KEY
from hourhand.web.access import ROLE, TENANT_HEADER
from hourhand.web.keeping import KEY_HEADER, KEYED_METHODS, PASSING, REPLAYED_HEADER

PREFER_HEADER = "Prefer"
_TEXT: dict[str, Any] = {"type": "string"}
SENT: dict[str, dict[str, Any]] = {
    KEY_HEADER: {
        "description": "Carry the request out once: the same again within 24 hours gets the same answer.",
        "schema": {"type": "string", "minLength": 1, "maxLength": MAX_KEY, "pattern": r"^[\x21-\x7e]+$"},
        "example": "6f1c2a90-order-42",
    },
    TENANT_HEADER: {
        "description": f"Whose jobs it is about, for those who run the system: {TENANT_WORDS}. For others their own.",
        "schema": {"type": "string", "pattern": "^[a-z0-9][a-z0-9._-]{0,62}$"},
        "example": "acme",
    },
    "If-Match": {
        "description": "The ETag of the job as it was read: it is changed only while it is at that version.",
        "schema": {"type": "string", "pattern": r'^ *(\*|(W/)?"[0-9]{1,18}") *$'},
        "example": '"3"',
    },
    "If-None-Match": {
        "description": "With GET an ETag that is known already: 304 while the job is at that version. With PUT of a key `*`: only create.",
        "schema": _TEXT,
        "example": '"3"',
    },
    PREFER_HEADER: {
        "description": "How much of the job to answer with: `return=representation` all of it, `return=minimal` as little as there is.",
        "schema": _TEXT,
        "example": "return=representation",
    },
}  # name: what is said of it as a parameter
GIVEN: dict[str, dict[str, Any]] = {
    "X-Request-Id": {
        "description": "The request's name in logs and problems: the one that came with it, or a new one.",
        "schema": _TEXT,
        "example": "r-63a1b2c3d4e5f-17",
    },
    "RateLimit": {
        "description": "What is left of the user's requests, and in how many seconds all are there again; where they are limited.",
        "schema": _TEXT,
        "example": '"user";r=99;t=1',
    },
    "RateLimit-Policy": {
        "description": "How many requests the user may make in a window of so many seconds; where they are limited.",
        "schema": _TEXT,
        "example": '"user";q=100;w=10',
    },
    "Retry-After": {
        "description": "After how many seconds it is worth another try.",
        "schema": {"type": "integer", "minimum": 0},
        "example": 5,
    },
    "WWW-Authenticate": {"description": "How to say who asks.", "schema": _TEXT, "example": "Bearer"},
    REPLAYED_HEADER: {
        "description": f"`true` where this is the answer to an earlier request with the same {KEY_HEADER}.",
        "schema": {"type": "string", "enum": ["true"]},
    },
    "Location": {
        "description": "Where to read what was made.",
        "schema": {"type": "string", "format": "uri-reference"},
        "example": "/api/v1/jobs/J-0d3x8m2k7q1vt",
    },
    "ETag": {
        "description": "The job's version; for If-Match and If-None-Match.",
        "schema": {"type": "string", "pattern": '^"[0-9]{1,18}"$'},
        "example": '"3"',
    },
    "Preference-Applied": {
        "description": "Which preference of the header Prefer was followed.",
        "schema": _TEXT,
        "example": "return=minimal",
    },
    "Link": {
        "description": 'The address of the next page, as `rel="next"`; not on the last one.',
        "schema": _TEXT,
        "example": '</api/v1/jobs?cursor=…>; rel="next"',
    },
}  # name: the component
_VERSIONED = {"JobAnswer", "Created"}  # shapes of one job, which come with its version
_UNREADABLE = {"NewTokenAnswer"}  # shapes of what is made and has no address of its own


def describe_headers(document: dict[str, Any]) -> None:
    """Complete a document: the components, and which operation takes and gives which header."""
    document["components"]["headers"] = GIVEN
    for response in document["components"]["responses"].values():
        response["headers"] = _references(["X-Request-Id"])
    for methods in document["paths"].values():
        for method, operation in methods.items():
            _add_sent(operation, method.upper())
            for status, response in list(operation["responses"].items()):
                names = _given(operation, method.upper(), status, response)
                operation["responses"][status] = {**response, "headers": _references(names)}


def _references(names: list[str]) -> dict[str, dict[str, str]]:
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}


def _add_sent(operation: dict[str, Any], method: str) -> None:
    """What any route takes that asks for a role; and, of what a route itself takes, what there is to say."""
    parameters = operation.setdefault("parameters", [])
    for parameter in parameters:
        known = SENT.get(parameter["name"]) if parameter["in"] == "header" else None
        if known is not None:
            parameter.update({**known, "description": parameter.get("description", known["description"])})
    if ROLE not in operation:
        return
    rules = {
        TENANT_HEADER: True,
        KEY_HEADER: method in KEYED_METHODS,
        PREFER_HEADER: any(_follows_preference(method, *one) for one in operation["responses"].items()),
    }
    for name in (name for name, holds in rules.items() if holds):
        if all(parameter["name"] != name for parameter in parameters):
            parameters.append({"name": name, "in": "header", "required": False, **SENT[name]})


def _given(operation: dict[str, Any], method: str, status: str, response: dict[str, Any]) -> list[str]:
    """The headers of an answer, by rule."""
    guarded, code = ROLE in operation, int(status)
    keyed = guarded and method in KEYED_METHODS
    rules = {
        "X-Request-Id": True,
        "RateLimit": guarded,
        "RateLimit-Policy": guarded,
        "Retry-After": code in (429, 503) or (keyed and code == 409),
        "WWW-Authenticate": code == 401,
        REPLAYED_HEADER: keyed and code < 500 and code not in PASSING,
        "Location": code in (201, 202) and not _shapes(response) & _UNREADABLE,
        "ETag": _is_job(status, response),
        "Preference-Applied": _follows_preference(method, status, response),
        "Link": code == 200 and any(one["name"] == "cursor" for one in operation["parameters"]),
    }
    return [name for name, holds in rules.items() if holds]


def _follows_preference(method: str, status: str, response: dict[str, Any]) -> bool:
    return method != "GET" and _is_job(status, response)


def _is_job(status: str, response: dict[str, Any]) -> bool:
    """Whether it is about one job; without a body it stands for the job's."""
    return bool(_shapes(response) & _VERSIONED) or status in ("204", "304")


def _shapes(response: dict[str, Any]) -> set[str]:
    """The names of what may be in the answer."""
    schema = response.get("content", {}).get("application/json", {}).get("schema", {})
    return {str(one.get("$ref", "")).rpartition("/")[2] for one in schema.get("anyOf", [schema])}
