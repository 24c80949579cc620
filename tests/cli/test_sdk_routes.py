"""Walks the route table and the client: every route has a call, and every call a route."""

import inspect
import re
from collections.abc import Iterator
from typing import Any

from fastapi.routing import APIRoute

from hourhand.client import Client
from hourhand.client.flow import Request, Resource, Stream, endpoint, listing
from hourhand.web.routes import API

ARGUMENTS: dict[str, Any] = {  # by name, where a text does not do
    "document": {},
    "documents": [{}],
    "changes": {},
    "filter": {"state": "active"},
    "jobs": ["J-1"],
    "runs": ["J-1@20261116T080000Z"],
    "attempt": 1,
    "headers": {},
    "schedule": {},
}
ROUTES = {
    (method, route.path): re.compile(re.sub(r"\{[^}]+\}", "[^/]+", route.path))
    for route in API.routes
    if isinstance(route, APIRoute)
    for method in route.methods or ()
}


def calls() -> Iterator[tuple[str, Request]]:
    """Every call of the client with what it would send first."""
    with Client("http://127.0.0.1:9") as client:
        for noun, resource in vars(client).items():
            if not isinstance(resource, Resource):
                continue
            for name, method in vars(type(resource)).items():
                if isinstance(method, endpoint | listing):
                    step = next(flow_of(method, resource))
                    yield f"{noun}.{name}", step.request if isinstance(step, Stream) else step


def flow_of(method: Any, resource: Resource[Any]) -> Any:
    """A call with just what it needs."""
    places: list[Any] = [resource]
    names: dict[str, Any] = {}
    _, *wanted = inspect.signature(method._flow).parameters.values()
    for one in wanted:
        if one.default is not one.empty or one.kind in (one.VAR_KEYWORD, one.VAR_POSITIONAL):
            continue
        value = ARGUMENTS.get(one.name, "x")
        if one.kind is one.KEYWORD_ONLY:
            names[one.name] = value
        else:
            places.append(value)
    return method._flow(*places, **names)


def routes_of(request: Request) -> set[tuple[str, str]]:
    """The routes that a request may go to: a fixed word in a path may look like an id too."""
    return {
        (method, path)
        for (method, path), form in ROUTES.items()
        if method == request.method and form.fullmatch(request.path)
    }


def test_every_call_has_a_route_and_every_route_a_call() -> None:
    found = dict(calls())
    assert len(found) >= 70
    lost = {name: f"{one.method} {one.path}" for name, one in found.items() if not routes_of(one)}
    assert lost == {}
    reached = {route for one in found.values() for route in routes_of(one)}
    assert set(ROUTES) - reached == set()
