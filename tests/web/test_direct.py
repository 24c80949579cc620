"""The short cut around the framework's reading of parameters: taken where it can be, and never noticed."""

from typing import Annotated, Any

import pytest
from fastapi import Depends, FastAPI, Header, Query
from fastapi.routing import APIRoute
from httpx2 import ASGITransport, AsyncClient
from httpx2 import Response as HttpResponse
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from hourhand.web.direct import with_short_cut


async def plain(request: Request, name: str, often: Annotated[int, Query()] = 3) -> Response:
    return JSONResponse([name, often])


async def asking(request: Request, often: int) -> Response:
    return JSONResponse(often)


async def with_header(request: Request, kind: Annotated[str, Header()] = "none") -> Response:
    return JSONResponse(kind)


async def depending(request: Request, given: Annotated[int, Depends(lambda: 7)]) -> Response:
    return JSONResponse(given)


async def converting(request: Request, number: int) -> Response:
    return JSONResponse(number)


async def modelled(request: Request) -> dict[str, int]:
    return {"made": 1}


def app_of(path: str, endpoint: Any) -> tuple[FastAPI, list[str]]:
    """An application with that route, and which of its requests went the usual way."""
    usual: list[str] = []

    class Route(APIRoute):
        def get_route_handler(self) -> Any:
            handle = super().get_route_handler()

            async def noted(request: Request) -> Response:
                usual.append(str(request.url))
                return await handle(request)

            return with_short_cut(self, noted)

    app = FastAPI()
    app.router.route_class = Route
    app.add_api_route(path, endpoint, methods=["GET"], response_model=None)
    return app, usual


async def asked_for(app: FastAPI, path: str) -> HttpResponse:
    async def bare(
        scope: Scope, receive: Receive, send: Send
    ) -> None:  # which is no API of ours to be described
        await app(scope, receive, send)

    async with AsyncClient(transport=ASGITransport(app=bare), base_url="http://test") as client:
        return await client.get(path)


@pytest.mark.parametrize(
    ("path", "endpoint", "asked", "answer", "is_direct"),
    [
        ("/{name}", plain, "/a%20b", ["a b", 3], True),
        ("/{name}", plain, "/a?often=5", ["a", 5], False),
        ("/", asking, "/?often=2", 2, False),
        ("/", with_header, "/", "none", False),
        ("/", depending, "/", 7, False),
        ("/{number}", converting, "/12", 12, False),
        ("/", modelled, "/", {"made": 1}, False),
    ],
)
async def test_answers_are_the_same_by_either_way(
    path: str, endpoint: Any, asked: str, answer: Any, is_direct: bool
) -> None:
    app, usual = app_of(path, endpoint)
    assert (await asked_for(app, asked)).json() == answer
    assert bool(usual) is not is_direct


async def test_what_must_be_in_the_query_is_still_asked_for() -> None:
    app, _ = app_of("/", asking)
    assert (await asked_for(app, "/")).status_code == 422
