"""Webhooks over HTTP: what is taken, what is refused and in which words; secrets shown once."""

from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest
from fastapi import FastAPI

from hourhand.clock import ManualClock
from hourhand.core.access import Role
from hourhand.core.instant import SECOND_US
from hourhand.core.signature import parse_secret
from hourhand.core.webhooks import Answered, Tried
from hourhand.stores.sqlite.store import SqliteStore
from hourhand.web.shapes.webhooks import DeliveryAnswer, DeliveryList, WebhookAnswer, WebhookList
from tests.web.conftest import ADDRESS, MakeApp
from tests.web.test_access import Doorman, bearer
from tests.web.test_backfill_routes import get, post
from tests.web.test_jobs_routes import DAILY

URL = "https://example.com/hook"


async def make(client: httpx2.AsyncClient, **fields: Any) -> Any:
    return await post(client, "/webhooks", {"url": URL, **fields}, 201)


async def told(client: httpx2.AsyncClient, store: SqliteStore, webhook_id: str) -> Any:
    while (await store.spread_events(100)).events:
        pass
    return (await get(client, f"/webhooks/{webhook_id}/deliveries"))["data"]


async def test_one_is_made_with_a_secret_that_is_shown_once(client: httpx2.AsyncClient) -> None:
    answer = await client.post("/v1/webhooks", json={"url": URL})
    assert answer.status_code == 201
    made = answer.json()
    WebhookAnswer.model_validate(made)
    assert len(parse_secret(made["secret"])) == 32
    assert answer.headers["location"] == f"/v1/webhooks/{made['webhook_id']}"
    found = await get(client, f"/webhooks/{made['webhook_id']}")
    listed = await get(client, "/webhooks")
    WebhookList.model_validate(listed)
    assert listed["data"] == [found]
    assert "secret" not in found
    assert made["secret"] not in str([found, listed])
    assert {**found, "secret": made["secret"]} == made
    assert (made["types"], made["enabled"], made["waiting"], made["dropped"]) == (["*"], True, 0, 0)


async def test_a_secret_is_not_kept_for_a_repeated_request(client: httpx2.AsyncClient) -> None:
    made = await make(client)
    for path, body in (("/webhooks", {"url": URL}), (f"/webhooks/{made['webhook_id']}/rotate", None)):
        headers = {"Idempotency-Key": path}
        first = await client.post(f"/v1{path}", json=body, headers=headers)
        assert first.is_success, first.text
        assert first.headers["cache-control"] == "no-store"
        again = await client.post(f"/v1{path}", json=body, headers=headers)
        assert (again.status_code, first.json()["secret"] in again.text) == (409, False), again.text
    assert len((await get(client, "/webhooks"))["data"]) == 2


async def test_a_patch_changes_what_it_names(client: httpx2.AsyncClient) -> None:
    made = await make(client, types=["run.failed"], tags=["billing"], description="chat")
    path = f"/api/v1/webhooks/{made['webhook_id']}"
    changed = (await client.patch(path, json={"types": ["job.*"], "tags": None})).json()
    assert (changed["types"], changed["tags"], changed["description"]) == (["job.*"], [], "chat")
    disabled = (await client.patch(path, json={"enabled": False})).json()
    assert (disabled["enabled"], disabled["types"]) == (False, ["job.*"])
    assert (await client.patch(path, json={"enabled": True})).json()["enabled"] is True
    for patch, pointer in (
        ({"url": None}, "/url"),
        ({"types": ["run.exploded"]}, "/types"),
        ({"typs": []}, "/typs"),
        ({"jobs": ["J-x"]}, "/jobs/0"),
        ({"webhook_id": "x"}, "/webhook_id"),
    ):
        answer = await client.patch(path, json=patch)
        assert answer.status_code == 422, patch
        assert answer.json()["errors"][0]["pointer"] == pointer
    assert (await client.get(path)).json()["types"] == ["job.*"]


@pytest.mark.parametrize(
    ("document", "pointer", "word"),
    [
        ({}, "/url", "a value"),
        ({"url": "ftp://x"}, "/url", "http"),
        ({"url": "http://user:canary@example.com"}, "/url", "signed"),
        ({"url": URL, "types": []}, "/types", "1 to"),
        ({"url": URL, "types": ["run.progress"]}, "/types", "some of"),
        ({"url": URL, "jobs": ["x"]}, "/jobs/0", "job id"),
        ({"url": URL, "enabled": "yes"}, "/enabled", "true or false"),
        ({"url": URL, "description": "x" * 501}, "/description", "500"),
    ],
)
async def test_what_is_wrong_is_named(
    client: httpx2.AsyncClient, document: dict[str, Any], pointer: str, word: str
) -> None:
    answer = await post(client, "/webhooks", document, 422)
    assert answer["errors"][0]["pointer"] == pointer
    assert word in answer["errors"][0]["expected"]
    assert "canary" not in str(answer)


async def test_what_happens_is_listed_with_its_document(
    client: httpx2.AsyncClient, store: SqliteStore, clock: ManualClock
) -> None:
    webhook_id = (await make(client))["webhook_id"]
    job_id = (await client.post("/v1/jobs", json={**DAILY, "name": "report"})).json()["job_id"]
    [delivery] = await told(client, store, webhook_id)
    DeliveryAnswer.model_validate(delivery)
    assert delivery["event"]["job_id"] == job_id
    assert (delivery["event_id"], delivery["type"]) == (f"{job_id}.v1", "job.created")
    assert (delivery["state"], delivery["tries"]) == ("pending", 0)
    [batch] = await store.take_calls(1, 10, SECOND_US)
    failed = Answered(at=clock.now(), status=500, error="it answered 500", took_ms=7)
    tried = [Tried(delivery=one, answer=failed) for one in batch.deliveries]
    await store.record_calls(batch.webhook.id, batch.fence, tried)
    found = await get(client, f"/webhooks/{webhook_id}/deliveries/{job_id}.v1")
    assert (found["tries"], found["status"], found["error"], found["took_ms"]) == (
        1,
        500,
        "it answered 500",
        7,
    )
    webhook = await get(client, f"/webhooks/{webhook_id}")
    assert (webhook["waiting"], webhook["last_error"]) == (1, "it answered 500")
    assert webhook["failing_since"] is not None
    assert (await get(client, f"/webhooks/{webhook_id}/deliveries?state=delivered"))["data"] == []
    again = await post(client, f"/webhooks/{webhook_id}/deliveries/{job_id}.v1/redeliver", None, 202)
    assert (again["state"], again["tries"]) == ("pending", 0)
    await post(client, f"/webhooks/{webhook_id}/deliveries/nothing/redeliver", None, 404)
    await get(client, f"/webhooks/{webhook_id}/deliveries/nothing", 404)


async def test_deliveries_are_read_page_by_page(client: httpx2.AsyncClient, store: SqliteStore) -> None:
    webhook_id = (await make(client))["webhook_id"]
    for _ in range(5):
        await client.post("/v1/jobs", json=DAILY)
    whole = [one["event_id"] for one in await told(client, store, webhook_id)]
    seen, address = [], f"/api/v1/webhooks/{webhook_id}/deliveries?limit=2"
    while address:
        page = await client.get(address)
        DeliveryList.model_validate(page.json())
        seen += [one["event_id"] for one in page.json()["data"]]
        address = page.links["next"]["url"] if "next" in page.links else ""
    assert seen == whole
    assert len(seen) == 5


async def test_a_test_is_a_delivery(client: httpx2.AsyncClient, store: SqliteStore) -> None:
    webhook_id = (await make(client, types=["run.failed"]))["webhook_id"]
    made = await post(client, f"/webhooks/{webhook_id}/test", None, 202)
    assert made["type"] == made["event"]["type"] == "webhook.test"
    assert [one["event_id"] for one in await told(client, store, webhook_id)] == [made["event_id"]]
    await client.patch(f"/v1/webhooks/{webhook_id}", json={"enabled": False})
    refused = await post(client, f"/webhooks/{webhook_id}/test", None, 409)
    assert "enable it first" in refused["detail"]
    assert (await client.post(f"/v1/webhooks/{webhook_id}/test?dry_run=true")).status_code == 409


async def test_a_secret_is_rotated(client: httpx2.AsyncClient) -> None:
    made = await make(client)
    rotated = await post(client, f"/webhooks/{made['webhook_id']}/rotate")
    assert parse_secret(rotated["secret"]) != parse_secret(made["secret"])
    assert rotated["previous_secret_until"] == "2027-01-16T08:00:00Z"
    assert "secret" not in await get(client, f"/webhooks/{made['webhook_id']}")


async def test_one_is_deleted(client: httpx2.AsyncClient) -> None:
    made = await make(client)
    path = f"/v1/webhooks/{made['webhook_id']}"
    assert (await client.delete(path)).json() == {"deleted": True}
    assert (await client.delete(path)).status_code == 404
    assert (await client.get(f"{path}/deliveries")).status_code == 404
    assert (await client.get("/v1/webhooks/J-0000000000000")).status_code == 404


@pytest.fixture
async def guarded(make_app: MakeApp) -> AsyncIterator[httpx2.AsyncClient]:
    app: FastAPI = make_app(authenticators=[Doorman()])
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), base_url=ADDRESS) as opened:
        yield opened


async def test_another_tenants_webhook_does_not_exist_and_hears_nothing(
    guarded: httpx2.AsyncClient, store: SqliteStore
) -> None:
    headers, others = bearer("acme"), bearer("globex")
    made = (await guarded.post("/v1/webhooks", json={"url": URL}, headers=headers)).json()
    path = f"/v1/webhooks/{made['webhook_id']}"
    await guarded.post("/v1/jobs", json=DAILY, headers=others)
    test_id = (await guarded.post(f"{path}/test", headers=headers)).json()["event_id"]
    while (await store.spread_events(100)).events:
        pass
    mine = (await guarded.get(f"{path}/deliveries", headers=headers)).json()["data"]
    assert [one["event_id"] for one in mine] == [test_id]
    for method, tail, body in (
        ("GET", "", None),
        ("PATCH", "", {"description": "mine"}),
        ("DELETE", "", None),
        ("POST", "/rotate", None),
        ("POST", "/test", None),
        ("GET", "/deliveries", None),
        ("GET", f"/deliveries/{test_id}", None),
        ("POST", f"/deliveries/{test_id}/redeliver", None),
    ):
        answer = await guarded.request(method, path + tail, json=body, headers=others)
        assert answer.status_code == 404, f"{method} {tail}"
    assert (await guarded.get("/v1/webhooks", headers=others)).json()["data"] == []
    assert (await guarded.get("/v1/webhooks", headers=bearer("acme", Role.EDITOR))).status_code == 403
