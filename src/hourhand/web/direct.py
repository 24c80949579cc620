"""Calls an endpoint at once where a request gives nothing but its path: there are no parameters to read and convert.

The framework goes through query, headers and cookies of every request to find the few that an endpoint takes; for
small requests that is a good part of their cost. What has a query, or an endpoint that takes more, goes the usual way.
"""

import inspect
from collections.abc import Callable, Coroutine
from typing import Any

from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import Response

Handler = Callable[[Request], Coroutine[Any, Any, Response]]


def with_short_cut(route: APIRoute, handle: Handler) -> Handler:
    """The route's handler, with a way around it for requests without a query, if the endpoint can do without it."""
    taken = route.dependant
    if not (_needs_path_alone(taken, route.endpoint) and _answers_itself(route.endpoint)):
        return handle
    name, endpoint = taken.request_param_name, route.endpoint
    assert name is not None
    defaults = {field.name: field.get_default() for field in taken.query_params}

    async def direct(request: Request) -> Response:
        if request.scope["query_string"]:
            return await handle(request)
        answer: Response = await endpoint(**{name: request}, **request.path_params, **defaults)
        return answer

    return direct


def _needs_path_alone(taken: Dependant, endpoint: Callable[..., Any]) -> bool:
    """Whether it takes the request, texts of its path, and of the query what may be left out; and nothing else."""
    known = {taken.request_param_name, *(field.name for field in (*taken.path_params, *taken.query_params))}
    if taken.request_param_name is None or set(inspect.signature(endpoint).parameters) != known:
        return False
    if any(field.field_info.is_required() for field in taken.query_params):
        return False
    return all(
        field.field_info.annotation is str and not field.field_info.metadata for field in taken.path_params
    )


def _answers_itself(endpoint: Callable[..., Any]) -> bool:
    """Whether it makes the response, so that there is nothing to make one of."""
    return inspect.iscoroutinefunction(endpoint) and inspect.signature(endpoint).return_annotation is Response
