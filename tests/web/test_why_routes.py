"""`GET /jobs/{id}/why`: the document, the times it takes, and what it refuses."""

from typing import Any

import httpx2
import pytest

from hourhand.clock import ManualClock
from hourhand.core.instant import DAY_US
from hourhand.stores.sqlite.store import SqliteStore
from hourhand.web.shapes.why import WhyAnswer

DAILY = {
    "name": "daily",
    "cron": "0 9 * * *",
    "tz": "Europe/Berlin",
    "target": {"type": "http", "url": "https://example.com/hook"},
}


async def create(client: httpx2.AsyncClient, **fields: Any) -> str:
    answer = await client.post("/v1/jobs", json={**DAILY, **fields})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["job_id"])


async def why(client: httpx2.AsyncClient, job_id: str, query: str = "") -> WhyAnswer:
    answer = await client.get(f"/v1/jobs/{job_id}/why{query}")
    assert answer.status_code == 200, answer.text
    return WhyAnswer.model_validate(answer.json())


async def test_a_coming_time_with_everything_that_is_known(client: httpx2.AsyncClient) -> None:
    job_id = await create(client)
    found = await why(client, job_id, "?at=next")
    assert (found.verdict, found.cause, found.status) == ("waiting", "not_due", None)
    assert (found.at, found.local, found.tz) == (
        "2027-01-16T08:00:00Z",
        "2027-01-16 09:00:00 +01:00",
        "Europe/Berlin",
    )
    assert found.run_id == f"{job_id}@20270116T080000Z"
    assert found.nearest is not None
    assert (found.nearest.before, found.nearest.after) == (None, "2027-01-17T08:00:00Z")
    assert "no worker lives" in found.summary
    assert len(found.change) == 2


async def test_the_newest_due_time_unless_another_is_named(
    client: httpx2.AsyncClient, clock: ManualClock
) -> None:
    job_id = await create(client)
    assert (await why(client, job_id)).at == "2027-01-16T08:00:00Z"  # nothing is due yet: the first to come
    clock.advance(2 * DAY_US + 1)
    for query in ("", "?at=last"):
        assert (await why(client, job_id, query)).at == "2027-01-17T08:00:00Z"
    named = await why(client, job_id, "?at=2027-01-16T09:00:00%2B01:00")
    assert (named.at, named.verdict, named.cause) == ("2027-01-16T08:00:00Z", "waiting", "not_planned")


async def test_a_deleted_job_still_answers(client: httpx2.AsyncClient) -> None:
    job_id = await create(client)
    await client.delete(f"/v1/jobs/{job_id}")
    found = await why(client, job_id, "?at=2027-01-16T08:00:00Z")
    assert (found.verdict, found.cause) == ("not expected", "deleted")


@pytest.mark.parametrize("at", ["tomorrow", "2027-01-16T08:00:00", ""])
async def test_what_is_no_time_is_refused(client: httpx2.AsyncClient, at: str) -> None:
    answer = await client.get(f"/v1/jobs/{await create(client)}/why", params={"at": at})
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["pointer"] == "?at"


async def test_a_job_without_any_time_asks_for_one(client: httpx2.AsyncClient) -> None:
    parent = await create(client)
    child = {"name": "child", "after": [parent], "callback_url": "https://example.com/hook"}
    job_id = (await client.post("/v1/jobs", json=child)).json()["job_id"]
    answer = await client.get(f"/v1/jobs/{job_id}/why")
    assert answer.status_code == 422
    assert "name the time" in answer.json()["detail"]


async def test_no_job_is_not_found(client: httpx2.AsyncClient, store: SqliteStore) -> None:
    for query in ("", "?at=2027-01-16T08:00:00Z"):
        assert (await client.get(f"/v1/jobs/J-0000000000001/why{query}")).status_code == 404
