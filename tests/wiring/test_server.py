"""The server of a process: whom it believes about where a request comes from."""

import asyncio

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from hourhand.wiring.server import Server, address_of, bind

FORGED = {"X-Forwarded-For": "10.9.9.9", "X-Forwarded-Proto": "https"}
DEADLINE_S = 30


async def seen(request: Request) -> Response:
    assert request.client is not None
    return JSONResponse([request.client.host, request.url.scheme])


@pytest.mark.parametrize(
    ("trusted", "told"),
    [
        ([], ["127.0.0.1", "http"]),
        (["10.0.0.0/8"], ["127.0.0.1", "http"]),
        (["127.0.0.1"], ["10.9.9.9", "https"]),
        (["127.0.0.0/8"], ["10.9.9.9", "https"]),
    ],
)
async def test_forwarded_addresses_are_believed_of_trusted_proxies_only(
    monkeypatch: pytest.MonkeyPatch, trusted: list[str], told: list[str]
) -> None:
    monkeypatch.setenv("FORWARDED_ALLOW_IPS", "*")  # which the server itself would heed
    listener = bind("127.0.0.1", 0)
    server = Server(Starlette(routes=[Route("/", seen)]), trusted)
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        async with httpx2.AsyncClient(trust_env=False, timeout=DEADLINE_S) as client:
            assert (await client.get(address_of(listener), headers=FORGED)).json() == told
    finally:
        server.stop()
        await serving
