"""Quotas from outside: everybody sees their own, those who run the system see and set all, too much is 429."""

from collections.abc import AsyncIterator
from typing import Any

import httpx2
import msgspec
import pytest

from hourhand.core.access import EVERY_TENANT, Role
from tests.web.conftest import ADDRESS, MakeApp
from tests.web.test_access import Doorman, bearer
from tests.web.test_jobs_routes import DAILY

SYSTEM = bearer(EVERY_TENANT)


@pytest.fixture
async def client(make_app: MakeApp) -> AsyncIterator[httpx2.AsyncClient]:
    app = make_app(authenticators=[Doorman()])
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), base_url=ADDRESS) as opened:
        yield opened


async def allow(client: httpx2.AsyncClient, tenant: str = "acme", **limits: Any) -> httpx2.Response:
    return await client.put(f"/v1/tenants/{tenant}/quota", json=limits, headers=SYSTEM)


async def test_everybody_sees_what_their_tenant_may_have_and_has(client: httpx2.AsyncClient) -> None:
    await client.post("/v1/jobs", json=DAILY, headers=bearer())
    answer = (await client.get("/v1/quota", headers=bearer(role=Role.VIEWER))).json()
    assert answer["tenant"] == "acme"
    assert answer["limits"] == {
        "jobs": None,
        "runs_per_minute": None,
        "payload_bytes": 262_144,
        "document_bytes": None,
    }
    assert answer["own"] == dict.fromkeys(answer["limits"])
    assert answer["use"]["jobs"] == 1
    assert answer["use"]["document_bytes"] > 100
    assert answer["use"]["runs_per_minute"] == pytest.approx(1 / 1440, abs=0.001)
    assert (await client.get("/v1/quota", headers=bearer("globex"))).json()["use"]["jobs"] == 0


async def test_those_who_run_the_system_set_it(client: httpx2.AsyncClient) -> None:
    tried = await client.put("/v1/tenants/acme/quota?dry_run=true", json={"jobs": 5}, headers=SYSTEM)
    assert (tried.status_code, tried.json()["dry_run"], tried.json()["limits"]["jobs"]) == (200, True, 5)
    assert (await client.get("/v1/quota", headers=bearer())).json()["limits"]["jobs"] is None
    done = await allow(client, jobs=5, payload_bytes=1 << 30, runs_per_minute=0)
    assert done.json()["limits"] == {
        "jobs": 5,
        "runs_per_minute": None,
        "payload_bytes": 262_144,
        "document_bytes": None,
    }
    assert done.json()["own"]["runs_per_minute"] == 0
    assert (await client.get("/v1/quota", headers=bearer())).json()["own"]["jobs"] == 5
    assert (await allow(client)).json()["own"]["jobs"] is None, "what is left out is as the settings say"
    for headers in (bearer(), bearer(EVERY_TENANT, Role.EDITOR)):
        answer = await client.put("/v1/tenants/acme/quota", json={}, headers=headers)
        assert answer.status_code == 403
    assert (await allow(client, "Not a tenant")).status_code == 404


@pytest.mark.parametrize(
    ("body", "pointer"),
    [({"jobs": -1}, "/jobs"), ({"runs_per_minute": 10**7}, "/runs_per_minute"), ({"job": 1}, "/job")],
)
async def test_what_is_no_quota(client: httpx2.AsyncClient, body: dict[str, Any], pointer: str) -> None:
    answer = await allow(client, **body)
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["pointer"] == pointer


async def test_tenants_are_listed_in_pages_for_those_who_run_the_system(client: httpx2.AsyncClient) -> None:
    for number in range(5):
        await client.post("/v1/jobs", json=DAILY, headers=bearer(f"tenant-{number}"))
    seen: list[str] = []
    path = "/v1/tenants?limit=2"
    while path:
        page = await client.get(path, headers=SYSTEM)
        seen += [one["tenant"] for one in page.json()["data"]]
        path = page.links["next"]["url"] if "next" in page.links else ""
    assert seen == [f"tenant-{number}" for number in range(5)]
    assert (await client.get("/v1/tenants", headers=bearer())).status_code == 403
    cursor = (await client.get("/v1/jobs?limit=1", headers=bearer("tenant-1"))).json()["next_cursor"]
    for wrong in (cursor, "x", "AAAA"):
        if wrong:
            answer = await client.get("/v1/tenants", params={"cursor": wrong}, headers=SYSTEM)
            assert answer.status_code == 422


async def test_one_job_too_many_is_429_and_says_limit_and_use(client: httpx2.AsyncClient) -> None:
    await allow(client, jobs=1)
    assert (await client.post("/v1/jobs", json=DAILY, headers=bearer())).status_code == 201
    for request in (
        ("POST", "/v1/jobs", DAILY),
        ("PUT", "/v1/jobs/by-key/new", DAILY),
    ):
        refused = await client.request(request[0], request[1], json=request[2], headers=bearer())
        assert refused.status_code == 429
        assert refused.headers["retry-after"] == "60"
        assert refused.json()["detail"] == "the tenant may have 1 jobs; it has 1, and this would be 1 more"
    assert (await client.post("/v1/jobs", json=DAILY, headers=bearer("globex"))).status_code == 201
    listed = (await client.get("/v1/jobs", headers=bearer())).json()["data"]
    assert len(listed) == 1
    await client.delete(f"/v1/jobs/{listed[0]['job_id']}", headers=bearer())
    assert (await client.post("/v1/jobs", json=DAILY, headers=bearer())).status_code == 201


@pytest.mark.parametrize("as_lines", [False, True])
async def test_an_import_is_answered_line_by_line(client: httpx2.AsyncClient, as_lines: bool) -> None:
    await allow(client, jobs=1_100)
    documents = [DAILY] * (2_500 if as_lines else 1_000)
    headers = bearer()
    if as_lines:
        content = b"\n".join(map(msgspec.json.encode, documents))
        headers |= {"Content-Type": "application/x-ndjson"}
        answer = await client.post("/v1/jobs/bulk", content=content, headers=headers)
        created = 1_100
    else:
        answer = await client.post("/v1/jobs/bulk", json=documents, headers=headers)
        created = 1_000
    body = answer.json()
    assert (body["created"], body["failed"]) == (created, len(documents) - created)
    assert [one["status"] for one in body["results"]] == [201] * created + [429] * (len(documents) - created)
    use = (await client.get("/v1/quota", headers=bearer())).json()["use"]
    assert use["jobs"] == created


async def test_runs_that_are_asked_for_are_429_when_there_are_too_many(client: httpx2.AsyncClient) -> None:
    await allow(client, runs_per_minute=2)
    made = await client.post("/v1/jobs", json=DAILY, headers=bearer())
    path = f"/v1/jobs/{made.json()['job_id']}/run"
    statuses = [(await client.post(path, headers=bearer())).status_code for _ in range(3)]
    assert statuses == [202, 202, 429]


async def test_a_payload_that_is_too_large_for_the_tenant_is_413(client: httpx2.AsyncClient) -> None:
    await allow(client, payload_bytes=10)
    answer = await client.post("/v1/jobs", json={**DAILY, "payload": "x" * 20}, headers=bearer())
    assert answer.status_code == 413
    assert "at most 10 bytes" in answer.json()["detail"]
