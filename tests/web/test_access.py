"""Walks the route table as somebody unknown, somebody of each role, and somebody of another tenant's."""

import re
from collections.abc import AsyncIterator

import httpx2
import pytest
from fastapi import FastAPI
from fastapi.routing import APIRoute

from hourhand.core.access import EVERY_TENANT, Principal, Role, Via
from hourhand.errors import WrongToken
from hourhand.web.requests import GuardedRoute
from hourhand.web.routes import ALIAS, API, PREFIX, PROCESS
from tests.web.conftest import ADDRESS, MakeApp
from tests.web.test_jobs_routes import DAILY

OPEN = {"health", "readiness", "report_run"}
ROUTES = [route for router in (API, PROCESS) for route in router.routes if isinstance(route, GuardedRoute)]


class Doorman:
    """Knows people by a word such as `acme:viewer:ann`."""

    async def authenticate(self, token: str) -> Principal | None:
        if token.count(":") != 2:
            return None
        tenant, role, subject = token.split(":")
        if role not in set(Role):
            raise WrongToken("no such role")
        return Principal(subject=subject, tenant=tenant, role=Role(role), via=Via.TOKEN)


def bearer(tenant: str = "acme", role: Role = Role.ADMIN, subject: str = "ann") -> dict[str, str]:
    return {"Authorization": f"Bearer {tenant}:{role}:{subject}"}


@pytest.fixture
def app(make_app: MakeApp) -> FastAPI:
    return make_app(authenticators=[Doorman()])


@pytest.fixture
async def client(app: FastAPI) -> AsyncIterator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), base_url=ADDRESS) as opened:
        yield opened


def places(route: APIRoute) -> list[str]:
    path = re.sub(r"\{\w+(:path)?\}", "J-0000000000000", route.path)
    prefixes = (PREFIX, ALIAS) if route in API.routes else ("", PREFIX, ALIAS)
    return [prefix + path for prefix in prefixes]


def test_every_route_is_guarded() -> None:
    routes = [route for router in (API, PROCESS) for route in router.routes]
    assert routes == ROUTES
    assert {route.name for route in ROUTES if route.access.role is None} == OPEN


@pytest.mark.parametrize("headers", [{}, {"Cookie": "token=x"}], ids=["nothing", "a cookie of others"])
async def test_every_route_but_health_answers_401_to_the_anonymous(
    client: httpx2.AsyncClient, headers: dict[str, str]
) -> None:
    for route in ROUTES:
        for path in places(route):
            for method in route.methods or ():
                answer = await client.request(method, path, headers=headers)
                where = f"{method} {path}"
                if route.name in OPEN - {"report_run"}:
                    assert answer.status_code == 200, where
                    continue
                assert answer.status_code == 401, where
                assert answer.headers["www-authenticate"] == "Bearer", where
                assert answer.json()["code"] == "wrong_token", where


@pytest.mark.parametrize(
    "given",
    ["Bearer", "Bearer ", "Basic YTpi", "Bearer nobody", "Bearer acme:king:ann", "bearer" + " x" * 5_000],
)
async def test_what_is_no_token_is_refused_everywhere(client: httpx2.AsyncClient, given: str) -> None:
    for route in ROUTES:
        if route.name in OPEN:
            continue
        for method in route.methods or ():
            answer = await client.request(method, places(route)[0], headers={"Authorization": given})
            assert answer.status_code == 401, f"{method} {route.path}"
            assert "nobody" not in answer.text


async def test_two_tokens_are_none(client: httpx2.AsyncClient) -> None:
    two = [("Authorization", "Bearer acme:admin:ann"), ("Authorization", "Bearer acme:admin:bob")]
    assert (await client.get("/v1/jobs", headers=two)).status_code == 401


async def test_every_route_answers_403_below_its_role(client: httpx2.AsyncClient) -> None:
    seen: dict[Role, int] = {}
    for route in ROUTES:
        needed = route.access.role
        if needed is None:
            continue
        seen[needed] = seen.get(needed, 0) + 1
        for role in Role:
            for method in route.methods or ():
                answer = await client.request(
                    method, places(route)[0] + "?zzz=1", headers=bearer(EVERY_TENANT, role), json={}
                )
                where = f"{method} {route.path} as {role}"
                if role.covers(needed):
                    assert answer.status_code != 403, f"{where}: {answer.text}"
                else:
                    assert answer.status_code == 403, where
                    assert f"the role {needed}" in answer.json()["detail"], where
    assert seen[Role.VIEWER] > 10
    assert seen[Role.OPERATOR] > 10
    assert seen[Role.EDITOR] > 5


async def test_what_belongs_to_no_tenant_is_not_for_tenants(client: httpx2.AsyncClient) -> None:
    of_system = [route for route in ROUTES if route.access.of_system]
    assert "metrics" in {route.name for route in of_system}
    for route in of_system:
        for method in route.methods or ():
            path = places(route)[0] + "?zzz=1"
            assert (await client.request(method, path, headers=bearer())).status_code == 403, route.name
            answer = await client.request(method, path, headers=bearer(EVERY_TENANT))
            assert answer.status_code != 403, route.name


async def test_jobs_belong_to_the_tenant_of_the_token(client: httpx2.AsyncClient) -> None:
    made = await client.post("/v1/jobs", json={**DAILY, "key": "a"}, headers=bearer("acme"))
    again = await client.post("/v1/jobs", json={**DAILY, "key": "a"}, headers=bearer("globex"))
    assert (made.status_code, again.status_code) == (201, 201)
    for tenant, own in (("acme", made), ("globex", again)):
        listed = (await client.get("/v1/jobs", headers=bearer(tenant))).json()["data"]
        assert [job["job_id"] for job in listed] == [own.json()["job_id"]]
    assert (await client.get("/v1/jobs", headers=bearer("initech"))).json()["data"] == []


async def test_a_tenant_cannot_ask_for_another(client: httpx2.AsyncClient) -> None:
    own = {**bearer("acme"), "Hourhand-Tenant": "acme"}
    other = {**bearer("acme"), "Hourhand-Tenant": "globex"}
    assert (await client.get("/v1/jobs", headers=own)).status_code == 200
    answer = await client.get("/v1/jobs", headers=other)
    assert (answer.status_code, answer.json()["code"]) == (403, "not_allowed")


@pytest.mark.parametrize("tenant", ["acme", EVERY_TENANT])
async def test_a_request_is_about_one_tenant(client: httpx2.AsyncClient, tenant: str) -> None:
    for names in (("acme", "globex"), ("acme", "acme")):
        headers = [*bearer(tenant).items(), *(("Hourhand-Tenant", name) for name in names)]
        answer = await client.get("/v1/jobs", headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid")


async def test_who_runs_the_system_names_the_tenant(client: httpx2.AsyncClient) -> None:
    await client.post("/v1/jobs", json=DAILY, headers=bearer("acme"))
    for tenant, count in (("acme", 1), ("globex", 0)):
        headers = {**bearer(EVERY_TENANT), "Hourhand-Tenant": tenant}
        assert len((await client.get("/v1/jobs", headers=headers)).json()["data"]) == count
    for name in ("", "*", "Acme", "-a", "a" * 64, "a/b", "a b"):
        answer = await client.get("/v1/jobs", headers={**bearer(EVERY_TENANT), "Hourhand-Tenant": name})
        assert answer.status_code == 403, name
