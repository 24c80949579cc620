"""Finds the route of a request by a look at its first words, instead of holding it against every route in turn.

The framework asks all routes before the right one, and each at two places; with sixty of them that was the largest
part of a small request. What is not found here (another method, no such path) goes the usual way.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache

from fastapi.routing import APIRoute
from starlette.routing import BaseRoute, Match, NoMatchFound
from starlette.types import Receive, Scope, Send

_SELECTED = "hourhand.selected"
_LONGEST = 12  # words of a path; none of ours has more but keys, which go the usual way
_REST = ":path}"  # a parameter that may hold slashes


class Switchboard(BaseRoute):
    """Stands before all routes, and speaks for those that are placed under some prefixes."""

    def __init__(self, routes: Sequence[BaseRoute], prefixes: Iterable[str]) -> None:
        self._routes = [route for route in routes if isinstance(route, APIRoute)]
        self._prefixes = tuple(f"{prefix}/" for prefix in prefixes)
        self._candidates = lru_cache(maxsize=1_024)(self._find_candidates)

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """The route that takes this request, if there is one at all."""
        if scope["type"] != "http":
            return Match.NONE, {}
        path: str = scope["path"]
        for prefix in self._prefixes:
            if path.startswith(prefix):
                return self._match(path[len(prefix) - 1 :], scope["method"])
        return Match.NONE, {}

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the route answer that was found."""
        route: APIRoute = scope.pop(_SELECTED)
        await route.app(scope, receive, send)

    def url_path_for(self, name: str, /, **path_params: object) -> None:  # type: ignore[override]
        """The routes know their own."""
        raise NoMatchFound(name, path_params)

    def _match(self, rest: str, method: str) -> tuple[Match, Scope]:
        words = rest.count("/")
        if words > _LONGEST:
            return Match.NONE, {}
        first = rest[1:].partition("/")[0]
        for route in self._candidates(first[:100], words):
            found = route.path_regex.match(rest)
            if found is None or method not in (route.methods or ()):
                continue
            taken = {
                name: route.param_convertors[name].convert(text) for name, text in found.groupdict().items()
            }
            return Match.FULL, {
                "endpoint": route.endpoint,
                "path_params": taken,
                "route": route,
                _SELECTED: route,
            }
        return Match.NONE, {}

    def _find_candidates(self, first: str, words: int) -> tuple[APIRoute, ...]:
        """Routes that begin so and have as many words, in their order; those with a rest may have more."""
        found = []
        for route in self._routes:
            begins = route.path[1:].partition("/")[0]
            length = route.path.count("/")
            fits = words >= length if _REST in route.path else words == length
            if begins == first and fits:
                found.append(route)
        return tuple(found)
