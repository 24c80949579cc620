"""Many jobs by key: created, changed or left alone, with the difference; never un-paused, never another set's."""

from typing import Any

import httpx2
import pytest

from hourhand.errors import Unavailable
from hourhand.stores.sqlite import SqliteStore
from hourhand.web.shapes.batches import ApplyAnswer, ApplyResult
from tests.web.test_jobs_routes import DAILY, total

DOCUMENT = {**DAILY, "key": "a"}


async def apply(client: httpx2.AsyncClient, *documents: Any, query: str = "") -> ApplyAnswer:
    answer = await client.post(f"/v1/jobs/apply{query}", json=list(documents))
    assert answer.status_code == 200, answer.text
    return ApplyAnswer.model_validate(answer.json())


async def apply_one(client: httpx2.AsyncClient, query: str = "", **fields: Any) -> ApplyResult:
    return (await apply(client, {**DOCUMENT, **fields}, query=query)).results[0]


async def read(client: httpx2.AsyncClient, key: str = "a") -> Any:
    return (await client.get("/v1/jobs/resolve", params={"ref": key})).json()


async def test_creates_then_leaves_alone_then_changes(client: httpx2.AsyncClient) -> None:
    first = await apply_one(client)
    assert (first.action, first.status, first.version) == ("created", 201, 1)
    assert len(first.next_after or ()) == 3
    assert (await apply_one(client)).action == "unchanged"
    changed = await apply_one(client, retry={"max": 5}, cron="30 9 * * *")
    assert (changed.action, changed.version, changed.job_id) == ("changed", 2, first.job_id)
    assert [(one.field, one.before, one.after) for one in changed.changes or ()] == [
        ("cron", "0 9 * * *", "30 9 * * *"),
        ("retry.max", 3, 5),
    ]
    assert changed.next_before == first.next_after != changed.next_after


async def test_a_dry_run_says_the_same_and_does_nothing(client: httpx2.AsyncClient) -> None:
    tried = await apply_one(client, "?dry_run=true")
    assert (tried.action, tried.job_id) == ("created", None)
    assert await total(client) == 0
    await apply_one(client)
    before = await read(client)
    tried = await apply_one(client, "?dry_run=true", timeout="1m")
    assert tried.action == "changed"
    assert [(one.field, one.after) for one in tried.changes or ()] == [("timeout", "1m")]
    assert (await apply_one(client, "?dry_run=true")).action == "unchanged"
    assert await read(client) == before


async def test_each_stands_for_itself_and_has_its_problem(client: httpx2.AsyncClient) -> None:
    answer = await apply(
        client, DOCUMENT, DAILY, {**DOCUMENT, "key": 5}, {**DAILY, "key": "b", "crn": "x"}, []
    )
    assert [(one.action, one.status) for one in answer.results] == [("created", 201)] + [("failed", 422)] * 4
    assert (answer.created, answer.failed) == (1, 4)
    pointers = [one.error.errors[0].pointer for one in answer.results[1:] if one.error and one.error.errors]
    assert pointers == ["/key", "/key", "/crn", ""]


@pytest.mark.parametrize("payload", ['{"b": [1, 2.0],  "a": null}', '{"a":null,"b":[1,2.0]}'])
async def test_another_spelling_of_the_payload_is_no_change(client: httpx2.AsyncClient, payload: str) -> None:
    await apply_one(client, payload={"a": None, "b": [1, 2.0]})
    body = b'[{"key":"a","cron":"0 9 * * *","target":"https://example.com","payload":%s}]' % payload.encode()
    await client.post("/v1/jobs/apply", content=body)
    version = (await read(client))["version"]
    again = await client.post("/v1/jobs/apply", content=body)
    assert (again.json()["unchanged"], (await read(client))["version"]) == (1, version)
    assert (await apply_one(client, payload={"a": None, "b": [1, 2]})).action == "changed"


@pytest.mark.parametrize("fields", [{}, {"paused": False}, {"paused": False, "note": None}])
async def test_what_a_person_paused_stays_paused(client: httpx2.AsyncClient, fields: dict[str, Any]) -> None:
    job_id = (await apply_one(client)).job_id
    await client.post(f"/v1/jobs/{job_id}/pause", json={"note": "INC-42"})
    assert (await apply_one(client, **fields)).action == "unchanged"
    changed = await apply_one(client, timeout="1m", **fields)
    assert (changed.action, changed.paused) == ("changed", True)
    job = await read(client)
    assert (job["paused"], job["note"], job["timeout"]) == (True, "INC-42", "1m")


async def test_a_job_of_another_set_is_refused_until_it_is_taken_over(client: httpx2.AsyncClient) -> None:
    assert (await apply_one(client, set="one")).action == "created"
    assert (await apply_one(client)).action == "unchanged"  # one that names no set leaves it where it is
    refused = await apply_one(client, set="two")
    assert (refused.action, refused.status) == ("failed", 409)
    assert refused.error is not None
    assert "'one'" in (refused.error.detail or "")
    taken = await apply_one(client, "?take_over=true", set="two")
    assert [(one.field, one.before, one.after) for one in taken.changes or ()] == [("set", "one", "two")]
    listed = (await client.get("/v1/jobs", params={"set": "two"})).json()["data"]
    assert [job["key"] for job in listed] == ["a"]
    assert (await client.get("/v1/jobs", params={"set": "one"})).json()["data"] == []


async def test_a_job_without_a_set_joins_one_and_leaves_it_by_a_patch(client: httpx2.AsyncClient) -> None:
    job_id = (await apply_one(client)).job_id
    assert (await apply_one(client, set="one")).action == "changed"
    put = await client.put("/v1/jobs/by-key/a", json=DAILY)
    assert put.json()["set"] == "one"  # stays unless it is named
    patched = await client.patch(f"/v1/jobs/{job_id}", json={"set": None})
    assert patched.json()["set"] is None


async def test_many_at_once(client: httpx2.AsyncClient) -> None:
    documents = [{**DOCUMENT, "key": f"k{n}"} for n in range(1_000)]
    assert (await apply(client, *documents)).created == 1_000
    assert (await apply(client, *documents)).unchanged == 1_000
    answer = await client.post("/v1/jobs/apply", json=[*documents, DOCUMENT])
    assert answer.status_code == 422


async def test_a_one_time_job_whose_time_has_passed_is_not_made_again(client: httpx2.AsyncClient) -> None:
    at = {"key": "once", "at": "2027-01-15T07:00:00Z", "target": "https://example.com"}
    answer = await apply(client, at)
    assert (answer.passed, answer.results[0].action, await total(client)) == (1, "passed", 0)
    created = await client.post("/v1/jobs", json=at)  # whoever means it says so
    assert created.status_code == 201
    assert (await apply(client, at)).unchanged == 1


async def test_a_key_comes_once(client: httpx2.AsyncClient) -> None:
    answer = await apply(client, DOCUMENT, {**DOCUMENT, "timeout": "1m"})
    assert [one.action for one in answer.results] == ["created", "failed"]


async def test_while_the_store_is_away_nothing_is_answered_for(
    client: httpx2.AsyncClient, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that whoever repeats it, or keeps the answer under a key, does not take it for done."""

    async def away(*_: object, **__: object) -> Any:
        raise Unavailable("the database is away")

    with monkeypatch.context() as patch:
        patch.setattr(store, "find_jobs", away)
        answer = await client.post("/v1/jobs/apply", json=[{**DAILY, "key": "a"}, {**DAILY, "key": "b"}])
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
    again = await client.post("/v1/jobs/apply", json=[{**DAILY, "key": "a"}])
    assert again.json()["created"] == 1
