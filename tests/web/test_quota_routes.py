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
        "history_days": 30,
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
        "history_days": 30,
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
    [
        ({"jobs": -1}, "/jobs"),
        ({"runs_per_minute": 10**7}, "/runs_per_minute"),
        ({"job": 1}, "/job"),
        ({"history_days": 3_661}, "/history_days"),
    ],
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


async def test_a_shorter_history_holds_for_audits_and_backfills_too(client: httpx2.AsyncClient) -> None:
    made = await client.post("/v1/jobs", json=DAILY, headers=bearer())
    done = await allow(client, history_days=2)
    assert (done.json()["limits"]["history_days"], done.json()["own"]["history_days"]) == (2, 2)
    assert (await client.get("/v1/quota", headers=bearer())).json()["limits"]["history_days"] == 2
    assert (await allow(client, "globex", history_days=400)).json()["limits"]["history_days"] == 30
    window = {"from": "2027-01-12T08:00:00Z"}  # three days ago
    refused = await client.get("/v1/audit", params=window, headers=bearer())
    assert refused.status_code == 422
    assert "how long history is kept" in refused.text
    assert (await client.get("/v1/audit", params=window, headers=bearer("globex"))).status_code == 200
    wanted = {"job": made.json()["job_id"], **window, "to": "2027-01-14T08:00:00Z"}
    too_early = await client.post("/v1/backfills?dry_run=true", json=wanted, headers=bearer())
    assert too_early.status_code == 422
    assert "as far back as history is kept" in too_early.text
    forced = await client.post("/v1/backfills?dry_run=true", json={**wanted, "force": True}, headers=bearer())
    assert forced.status_code < 300


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


HOURLY = {"every": "1h", "target": {"type": "python", "function": "app:run"}}
ONCE = {"at": "2027-02-01T00:00:00Z", "target": {"type": "python", "function": "app:run"}}
OFTEN = {**HOURLY, "every": "1s"}
LARGE = {**HOURLY, "payload": "x" * 500}
JSON_PATCH = {"Content-Type": "application/merge-patch+json"}


@pytest.mark.parametrize(
    ("limits", "method", "path", "body"),
    [
        ({"jobs": 1}, "POST", "/v1/jobs", HOURLY),
        ({"jobs": 1}, "PUT", "/v1/jobs/by-key/new", HOURLY),
        ({"jobs": 1}, "POST", "/v1/jobs/{job}/clone", {}),
        ({"runs_per_minute": 10}, "POST", "/v1/jobs", OFTEN),
        ({"runs_per_minute": 10}, "PATCH", "/v1/jobs/{job}", {"every": "1s"}),
        ({"runs_per_minute": 10}, "PUT", "/v1/jobs/{job}", OFTEN),
        ({"payload_bytes": 100}, "POST", "/v1/jobs", LARGE),
        ({"payload_bytes": 100}, "PATCH", "/v1/jobs/{job}", {"payload": "x" * 500}),
        ({"document_bytes": 300}, "POST", "/v1/jobs", LARGE),
        ({"document_bytes": 300}, "PATCH", "/v1/jobs/{job}", {"name": "x" * 200, "tags": ["x" * 60]}),
    ],
)
async def test_a_dry_run_is_refused_as_the_real_request_would_be(
    client: httpx2.AsyncClient, limits: dict[str, int], method: str, path: str, body: dict[str, Any]
) -> None:
    made = await client.post("/v1/jobs", json=HOURLY, headers=bearer())
    path = path.format(job=made.json()["job_id"])
    headers = bearer() | (JSON_PATCH if method == "PATCH" else {})
    content = msgspec.json.encode(body)
    free = await client.request(method, path, params={"dry_run": "true"}, content=content, headers=headers)
    assert free.status_code == 200, free.text
    await allow(client, **limits)
    dry = await client.request(method, path, params={"dry_run": "true"}, content=content, headers=headers)
    real = await client.request(method, path, content=content, headers=headers)
    assert real.status_code == (413 if "payload_bytes" in limits else 429)
    assert (dry.status_code, dry.json()["detail"]) == (real.status_code, real.json()["detail"])
    assert dry.headers.get("retry-after") == real.headers.get("retry-after")


async def test_a_dry_run_counts_what_is_asked_for_before_it_and_leaves_nothing(
    client: httpx2.AsyncClient,
) -> None:
    await client.post("/v1/jobs", json={**HOURLY, "key": "there"}, headers=bearer())
    await allow(client, jobs=3, runs_per_minute=50)
    documents = [{**HOURLY, "key": f"new-{number}"} for number in range(4)]
    often = {**HOURLY, "key": "there", "every": "1s"}
    for path, wanted in (("/v1/jobs/bulk", documents), ("/v1/jobs/apply", [often, *documents])):
        dry, real = [
            await client.post(f"{path}?dry_run={dry}", json=wanted, headers=bearer())
            for dry in ("true", "false")
        ]
        assert [one["status"] for one in dry.json()["results"]] == [
            one["status"] for one in real.json()["results"]
        ]
        statuses = [one["status"] for one in dry.json()["results"] if one.get("key") != "there"]
        assert sorted(statuses) == [201, 201, 429, 429]
        detail = dry.json()["results"][-1]["error"]["detail"]
        assert detail == "the tenant may have 3 jobs; it has 3, and this would be 1 more"
        for job in (await client.get("/v1/jobs", headers=bearer())).json()["data"]:
            if job["key"] != "there":
                await client.delete(f"/v1/jobs/{job['job_id']}", headers=bearer())
    assert dry.json()["results"][0]["status"] == 429


async def test_runs_that_are_asked_for_are_refused_in_a_dry_run_too(client: httpx2.AsyncClient) -> None:
    job_id = (await client.post("/v1/jobs", json=HOURLY, headers=bearer())).json()["job_id"]
    await allow(client, runs_per_minute=1)
    path = f"/v1/jobs/{job_id}/run"
    assert (await client.post(f"{path}?dry_run=true", headers=bearer())).status_code == 200
    assert (await client.post(path, headers=bearer())).status_code == 202, "the dry run took nothing"
    for one in (path, "/v1/jobs"):
        body = {} if one == path else ONCE
        dry = await client.post(f"{one}?dry_run=true", json=body, headers=bearer())
        real = await client.post(one, json=body, headers=bearer())
        assert (dry.status_code, dry.json()["detail"]) == (429, real.json()["detail"])
