"""The routes of a process without an API: health for everybody, metrics for those who run the system."""

import httpx2
import pytest
from prometheus_client import CollectorRegistry, Counter

from hourhand.core.access import EVERY_TENANT, Role
from hourhand.web.identity import Identity
from hourhand.web.probes import create_probes
from tests.web.conftest import ADDRESS
from tests.web.test_access import Doorman, bearer


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
