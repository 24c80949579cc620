"""The routes of a process without an API: health for everybody, metrics for those who run the system."""

import asyncio

import httpx2
import pytest
from prometheus_client import CollectorRegistry, Counter

from hourhand.core.access import EVERY_TENANT, Role
from hourhand.web.identity import Identity
from hourhand.web.probes import create_probes
from hourhand.wiring.server import Server, bind
from tests.web.conftest import ADDRESS, MakeApp
from tests.web.test_access import Doorman, bearer

DEADLINE_S = 30


def asking(identity: Identity | None) -> httpx2.AsyncClient:
    registry = CollectorRegistry()
    Counter("turns", "Of a wheel.", registry=registry)
    app = create_probes(registry, lambda: {"plan": None}, identity)
    return httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), base_url=ADDRESS)


async def test_where_nobody_is_asked_all_is_told() -> None:
    async with asking(None) as client:
        for path in ("/healthz", "/readyz", "/metrics"):
            assert (await client.get(path)).status_code == 200


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        ({"Authorization": "Bearer nobody"}, 401),
        ({"Authorization": "Basic YTpi"}, 401),
        (bearer("acme", Role.ADMIN), 403),
        (bearer(EVERY_TENANT, Role.VIEWER), 200),
    ],
)
async def test_metrics_are_for_those_who_run_the_system(headers: dict[str, str], status: int) -> None:
    async with asking(Identity([Doorman()])) as client:
        answer = await client.get("/metrics", headers=headers)
        assert answer.status_code == status
        assert ("turns_total" in answer.text) is (status == 200)
        if status == 401:
            assert answer.headers["www-authenticate"] == "Bearer"
        for path in ("/healthz", "/readyz"):
            assert (await client.get(path)).status_code == 200


async def test_head_is_answered_as_get_is(make_app: MakeApp) -> None:
    """Some load balancers ask so. That the body is left out is the server's matter; see below."""
    async with asking(None) as client:
        for path in ("/healthz", "/readyz"):
            assert (await client.head(path)).status_code == 200
    healthy = make_app(authenticators=[Doorman()])
    broken = make_app(parts=lambda: {"planner": "behind by 3 minutes"}, authenticators=[Doorman()])
    for app, ready in ((healthy, 200), (broken, 503)):
        async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), base_url=ADDRESS) as client:
            for path, status in (("/healthz", 200), ("/readyz", ready)):
                for prefix in ("", "/api/v1", "/v1"):
                    told, shown = await client.head(prefix + path), await client.get(prefix + path)
                    assert (told.status_code, shown.status_code) == (status, status), prefix + path
                    assert told.headers["content-length"] == shown.headers["content-length"]


async def test_head_has_no_body_on_the_wire(make_app: MakeApp) -> None:
    listener = bind("127.0.0.1", 0)
    server = Server(make_app())
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    reader, writer = await asyncio.open_connection("127.0.0.1", listener.getsockname()[1])
    writer.write(
        b"HEAD /healthz HTTP/1.1\r\nHost: localhost:%d\r\nConnection: close\r\n\r\n"
        % listener.getsockname()[1]
    )
    async with asyncio.timeout(DEADLINE_S):
        answer = await reader.read()
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert answer.endswith(b"\r\n\r\n")
    writer.close()
    server.stop()
    await serving
