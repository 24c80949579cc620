"""The job routes over the real store: as drawn, under both prefixes, with versions, dry runs and lists."""

import asyncio
from collections import Counter
from typing import Any

import httpx2
import pytest

from hourhand.clock import ManualClock
from hourhand.core.instant import HOUR_US, MINUTE_US, SECOND_US
from hourhand.stores.sqlite.store import SqliteStore
from hourhand.web.shapes.jobs import Created, Deleted, JobAnswer, JobList, StatusAnswer
from hourhand.web.shapes.runs import RunList
from tests.web import worker

URL = "https://example.com/hook"
DAILY: dict[str, Any] = {
    "name": "daily",
    "cron": "0 9 * * *",
    "callback_url": URL,
    "priority": "HIGH",
    "payload": {"region": "eu"},
}


async def create(client: httpx2.AsyncClient, **fields: Any) -> str:
    answer = await client.post("/api/v1/jobs", json={**DAILY, **fields})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["job_id"])


async def total(client: httpx2.AsyncClient) -> int:
    return len((await client.get("/v1/jobs", params={"limit": 1000})).json()["data"])


# --- the four routes of the requirements


@pytest.mark.parametrize("prefix", ["/api/v1", "/v1"])
async def test_the_four_routes_answer_as_drawn(
    client: httpx2.AsyncClient, store: SqliteStore, clock: ManualClock, prefix: str
) -> None:
    created = await client.post(f"{prefix}/jobs", json=DAILY)
    assert created.status_code == 201
    job_id = created.json()["job_id"]
    assert created.json() == {"job_id": job_id, "next_fire_time": "2027-01-15T09:00:00Z"}
    assert created.headers["location"] == f"{prefix}/jobs/{job_id}"
    assert created.headers["etag"] == '"1"'

    status = await client.get(f"{prefix}/jobs/{job_id}/status")
    assert status.json() == {
        "job_id": job_id,
        "status": "PENDING",
        "last_run": None,
        "next_run": "2027-01-15T09:00:00Z",
        "retry_count": 0,
        "state": "active",
    }

    await client.post(f"{prefix}/jobs/{job_id}/run")
    clock.advance(SECOND_US)
    [run_id] = await worker.succeed(store, clock)
    history = await client.get(f"{prefix}/jobs/{job_id}/history")
    assert history.status_code == 200
    coming, ran = history.json()["data"]
    assert (coming["run_id"], coming["status"]) == (f"{job_id}@20270115T090000Z", "PENDING")
    assert (ran["run_id"], ran["status"]) == (run_id, "SUCCEEDED")
    assert (await client.get(f"{prefix}/runs/{coming['run_id']}")).json()["status"] == "PENDING"
    status = await client.get(f"{prefix}/jobs/{job_id}/status")
    assert (status.json()["status"], status.json()["last_run"]) == (
        "SUCCEEDED",
        "2027-01-15T08:00:00.000001Z",
    )

    gone = await client.delete(f"{prefix}/jobs/{job_id}")
    assert (gone.status_code, gone.json()) == (200, {"deleted": True})
    assert (await client.delete(f"{prefix}/jobs/{job_id}")).status_code == 404
    assert (await client.get(f"{prefix}/jobs/{job_id}/status")).status_code == 404


async def test_the_shortest_document_is_enough(client: httpx2.AsyncClient) -> None:
    answer = await client.post("/v1/jobs", json={"cron": "*/5 * * * *", "target": URL, "payload": "{}"})
    assert answer.json()["next_fire_time"] == "2027-01-15T08:05:00Z"


# --- create


async def test_the_whole_job_is_answered_where_it_is_preferred(client: httpx2.AsyncClient) -> None:
    answer = await client.post("/v1/jobs", json=DAILY, headers={"Prefer": "wait=5, return=representation"})
    job = JobAnswer.model_validate(answer.json())
    assert (job.name, job.state, job.version) == ("daily", "active", 1)
    assert job.schedule_in_words == "at 09:00 every day, UTC"


@pytest.mark.parametrize(
    ("fields", "next_fire_time"),
    [
        ({"cron": None, "at": "2020-01-01T00:00:00Z"}, "2027-01-15T08:00:00Z"),  # in the past: now
        ({"cron": None, "at": "2030-01-01T00:00:00Z"}, "2030-01-01T00:00:00Z"),
        ({"cron": None, "every": "15m"}, "2027-01-15T08:15:00Z"),
        ({"starts_at": "2027-02-01T00:00:00Z"}, "2027-02-01T09:00:00Z"),
        ({"tz": "Europe/Berlin"}, "2027-01-16T08:00:00Z"),
        ({"paused": True}, None),
    ],
)
async def test_the_first_fire_time(
    client: httpx2.AsyncClient, fields: dict[str, Any], next_fire_time: str | None
) -> None:
    answer = await client.post("/v1/jobs", json={**DAILY, **fields})
    assert answer.json()["next_fire_time"] == next_fire_time


async def test_limits_that_shape_alone_cannot_say(client: httpx2.AsyncClient) -> None:
    answer = await client.post("/v1/jobs", json={**DAILY, "jitter": "31s", "cron": None, "every": "10ms"})
    assert answer.status_code == 422
    assert {error["pointer"] for error in answer.json()["errors"]} == {"/jitter", "/every"}
    assert await total(client) == 0


async def test_a_key_belongs_to_one_job(client: httpx2.AsyncClient) -> None:
    await create(client, key="a")
    answer = await client.post("/v1/jobs", json={**DAILY, "key": "a"})
    assert (answer.status_code, answer.json()["code"]) == (409, "conflict")
    answer = await client.post("/v1/jobs?dry_run=true", json={**DAILY, "key": "a"})
    assert answer.status_code == 409


# --- read and list


async def test_a_job_reads_back_whole(client: httpx2.AsyncClient) -> None:
    job_id = await create(client, tags=["x"], note=None)
    answer = await client.get(f"/v1/jobs/{job_id}")
    job = JobAnswer.model_validate(answer.json())
    assert (job.job_id, job.payload, job.tags) == (job_id, {"region": "eu"}, ["x"])
    assert answer.headers["etag"] == '"1"'


@pytest.mark.parametrize("wrong", ["J-0000000000000", "daily", "J-x", "..%2F..", "J-" + "z" * 13, "☃"])
async def test_what_is_not_there_is_not_found(client: httpx2.AsyncClient, wrong: str) -> None:
    await create(client)
    for path in ("", "/status", "/history", "/next", "/versions"):
        answer = await client.get(f"/v1/jobs/{wrong}{path}")
        assert (answer.status_code, answer.headers["content-type"]) == (404, "application/problem+json")


async def test_lists_go_on_by_cursor_and_miss_nothing(client: httpx2.AsyncClient) -> None:
    made = [await create(client, name=f"job-{n}") for n in range(7)]
    seen: list[str] = []
    address: str | None = "/v1/jobs?limit=3"
    while address is not None:
        answer = await client.get(address)
        page = JobList.model_validate(answer.json())
        seen += [str(job.job_id) for job in page.data]
        assert len(page.data) <= 3
        link = answer.headers.get("link")
        assert (link is None) == (page.next_cursor is None)
        address = None if link is None else link.removeprefix("<").partition(">")[0]
    assert seen == made[::-1]


async def test_filters(client: httpx2.AsyncClient, store: SqliteStore, clock: ManualClock) -> None:
    red = await create(client, name="red-1", tags=["a", "b"])
    blue = await create(client, name="blue", paused=True)
    failing = await create(client, name="red-2")
    await client.post(f"/v1/jobs/{failing}/run")
    clock.advance(SECOND_US)
    await worker.fail(store, clock)

    async def found(**query: Any) -> list[str]:
        return [job["job_id"] for job in (await client.get("/v1/jobs", params=query)).json()["data"]]

    assert await found(name="red") == [failing, red]
    assert await found(tag="b") == [red]
    assert await found(state="paused") == [blue]
    assert await found(state="active") == [failing, red]
    assert await found(failing="true") == [failing]
    assert await found(name="%") == []


@pytest.mark.parametrize(
    ("query", "pointer", "word"),
    [
        ("limti=5", "?limti", "did you mean limit?"),
        ("zzzzzz=5", "?zzzzzz", "cursor, failing, limit, name, payload, set, sort, state, tag"),
        ("sort=name", "?sort", "-created_at"),
        ("limit=0", "?limit", "at least 1"),
        ("limit=1001", "?limit", "at most 1000"),
        ("limit=x", "?limit", "a whole number"),
        ("state=busy", "?state", "'active', 'paused' or 'completed'"),
        ("failing=perhaps", "?failing", "true or false"),
        ("cursor=abc", "?cursor", "the next_cursor of this list"),
        ("cursor=%01%ff", "?cursor", "the next_cursor of this list"),
    ],
)
async def test_parameters_that_are_refused(
    client: httpx2.AsyncClient, query: str, pointer: str, word: str
) -> None:
    answer = await client.get(f"/v1/jobs?{query}")
    assert answer.status_code == 422
    [error] = answer.json()["errors"]
    assert error["pointer"] == pointer
    assert word in f"{error['expected']} {error['hint']}"


async def test_a_cursor_of_another_list_is_refused(client: httpx2.AsyncClient) -> None:
    for _ in range(2):
        job_id = await create(client)
    cursor = (await client.get("/v1/jobs?limit=1")).json()["next_cursor"]
    assert (await client.get(f"/v1/jobs/{job_id}/history", params={"cursor": cursor})).status_code == 422


async def test_jobs_are_found_by_id_key_or_one_name(client: httpx2.AsyncClient) -> None:
    keyed = await create(client, name="report", key="billing/report")
    for _ in range(2):
        await create(client, name="twin")

    async def resolved(reference: str) -> httpx2.Response:
        return await client.get("/v1/jobs/resolve", params={"ref": reference})

    for reference in (keyed, "billing/report", "report"):
        assert (await resolved(reference)).json()["job_id"] == keyed
    assert (await resolved("nobody")).status_code == 404
    assert ((await resolved("twin")).status_code, (await resolved("twin")).json()["code"]) == (
        409,
        "ambiguous",
    )
    assert (await client.get("/v1/jobs/resolve")).status_code == 422


# --- change


async def test_a_patch_changes_what_it_names(client: httpx2.AsyncClient, clock: ManualClock) -> None:
    job_id = await create(client)
    clock.advance(SECOND_US)
    before = (await client.get(f"/v1/jobs/{job_id}")).json()
    answer = await client.patch(
        f"/v1/jobs/{job_id}",
        json={"priority": "LOW"},
        headers={"If-Match": '"1"', "Content-Type": "application/merge-patch+json"},
    )
    after = answer.json()
    assert (answer.status_code, answer.headers["etag"]) == (200, '"2"')
    assert after.pop("effective_from") == "2027-01-15T08:00:01Z"
    changed = {name for name in after if after[name] != before[name]}
    assert changed == {"priority", "version", "updated_at"}


async def test_another_schedule_holds_from_the_lead_on(client: httpx2.AsyncClient) -> None:
    job_id = await create(client)
    answer = await client.patch(f"/v1/jobs/{job_id}", json={"every": "15m"})
    job = JobAnswer.model_validate(answer.json())
    assert (job.cron, job.every, job.effective_from) == (None, "15m", "2027-01-15T08:00:02Z")
    assert job.next_fire_time == "2027-01-15T08:15:00Z"


@pytest.mark.parametrize("method", ["PATCH", "PUT"])
async def test_a_stale_version_is_refused(client: httpx2.AsyncClient, method: str) -> None:
    job_id = await create(client)
    await client.patch(f"/v1/jobs/{job_id}", json={"name": "second"})
    answer = await client.request(method, f"/v1/jobs/{job_id}", json=DAILY, headers={"If-Match": '"1"'})
    assert (answer.status_code, answer.json()["code"]) == (412, "outdated")
    assert (await client.get(f"/v1/jobs/{job_id}")).json()["name"] == "second"
    for good in ('"2"', "*", 'W/"4"'):
        changed = {**DAILY, "name": good}
        answer = await client.request(method, f"/v1/jobs/{job_id}", json=changed, headers={"If-Match": good})
        assert answer.status_code == 200, good
    answer = await client.request(method, f"/v1/jobs/{job_id}", json=DAILY, headers={"If-Match": "two"})
    assert answer.status_code == 422


async def test_what_changes_nothing_makes_no_version(client: httpx2.AsyncClient) -> None:
    job_id = await create(client, note="what it is for")
    path = f"/v1/jobs/{job_id}"
    for method, where, body in (
        ("PATCH", path, {}),
        ("PATCH", path, {"name": DAILY["name"]}),
        ("PUT", path, {**DAILY, "note": "what it is for"}),
        ("POST", f"{path}/resume", None),
    ):
        answer = await client.request(method, where, json=body, headers={"If-Match": '"1"'})
        assert (answer.status_code, answer.json()["version"]) == (200, 1), (method, body)
        assert answer.json()["note"] == "what it is for"
    for note, version in (("INC-42", 2), ("INC-42", 2), ("INC-43", 3)):
        answer = await client.post(f"{path}/pause", json={"note": note})
        assert answer.json()["version"] == version
    assert (await client.post(f"{path}/resume")).json()["note"] is None
    assert len((await client.get(f"{path}/versions")).json()["data"]) == 4
    stale = await client.patch(path, json={}, headers={"If-Match": '"1"'})
    assert stale.status_code == 412, "also where it would change nothing"


async def test_what_is_asked_for_again_holds_from_when_it_was_promised(
    client: httpx2.AsyncClient, clock: ManualClock
) -> None:
    """Whoever had no answer asks again, and may rely on what is told then: times before it come to nothing."""
    job_id = await create(client, key="billing/daily")
    weekly = {**DAILY, "key": "billing/daily", "cron": "0 9 * * 1"}
    for method, where, body in (
        ("POST", f"/v1/jobs/{job_id}/pause", None),
        ("POST", f"/v1/jobs/{job_id}/resume", None),
        ("PATCH", f"/v1/jobs/{job_id}", {"cron": "0 7 * * *"}),
        ("PUT", f"/v1/jobs/{job_id}", weekly),
        ("PUT", "/v1/jobs/by-key/billing/daily", {**weekly, "paused": True}),
    ):
        first, second = [(await client.request(method, where, json=body)).json() for _ in range(2)]
        assert first == second, (method, where)
        clock.advance(HOUR_US)
        third = (await client.request(method, where, json=body)).json()
        assert third["version"] == first["version"]
        assert third["effective_from"] > first["effective_from"], "by then it holds anyway"


async def test_what_was_read_can_be_put_back(client: httpx2.AsyncClient) -> None:
    job_id = await create(client, tags=["x"], retry={"max": 9}, paused=True, note="INC-42")
    before = (await client.get(f"/v1/jobs/{job_id}")).json()
    answer = await client.put(f"/v1/jobs/{job_id}", json={**before, "name": "other"})
    after = answer.json()
    assert answer.status_code == 200
    changed = {name for name in before if after[name] != before[name]}
    assert changed <= {"name", "version", "updated_at"}


async def test_put_resets_what_it_leaves_out_but_does_not_resume(client: httpx2.AsyncClient) -> None:
    job_id = await create(client, tags=["x"], paused=True, note="INC-42")
    job = (await client.put(f"/v1/jobs/{job_id}", json=DAILY)).json()
    assert (job["tags"], job["paused"], job["note"]) == ([], True, "INC-42")
    job = (await client.put(f"/v1/jobs/{job_id}", json={**DAILY, "paused": False})).json()
    assert job["paused"] is False


async def test_changing_what_is_not_there(client: httpx2.AsyncClient) -> None:
    for method in ("PATCH", "PUT"):
        answer = await client.request(method, "/v1/jobs/J-0000000000000", json=DAILY)
        assert answer.status_code == 404


async def test_a_shard_key_is_fixed(client: httpx2.AsyncClient) -> None:
    job_id = await create(client, shard_key="a")
    assert (await client.put(f"/v1/jobs/{job_id}", json=DAILY)).json()["shard_key"] == "a"
    answer = await client.patch(f"/v1/jobs/{job_id}", json={"shard_key": "b"})
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, "/shard_key")


# --- upsert


async def test_an_upsert_creates_once_and_changes_only_what_differs(
    client: httpx2.AsyncClient, clock: ManualClock
) -> None:
    path = "/v1/jobs/by-key/billing/daily"
    first = await client.put(path, json={**DAILY, "cron": None, "every": "15m"})
    assert (first.status_code, first.json()["key"], first.headers["etag"]) == (201, "billing/daily", '"1"')
    clock.advance(7 * MINUTE_US)
    again = await client.put(path, json={**DAILY, "cron": None, "every": "15m"})
    assert (again.status_code, again.headers["etag"]) == (200, '"1"')
    assert again.json()["phase"] == first.json()["phase"]
    changed = await client.put(path, json={**DAILY, "name": "other"})
    assert (changed.status_code, changed.headers["etag"]) == (200, '"2"')
    assert changed.json()["job_id"] == first.json()["job_id"]
    assert await total(client) == 1
    assert (await client.put(path, json={**DAILY, "key": "another"})).status_code == 422


@pytest.mark.parametrize("paused", [None, False])
async def test_an_upsert_never_resumes(client: httpx2.AsyncClient, paused: bool | None) -> None:
    job_id = (await client.put("/v1/jobs/by-key/a", json=DAILY)).json()["job_id"]
    await client.post(f"/v1/jobs/{job_id}/pause", json={"note": "INC-42"})
    job = (await client.put("/v1/jobs/by-key/a", json={**DAILY, "name": "new", "paused": paused})).json()
    assert (job["name"], job["state"], job["note"]) == ("new", "paused", "INC-42")


@pytest.mark.parametrize("query", ["", "?dry_run=true"])
async def test_an_upsert_may_only_create_or_only_replace(client: httpx2.AsyncClient, query: str) -> None:
    path, only_new, only_old = "/v1/jobs/by-key/a", {"If-None-Match": "*"}, {"If-Match": "*"}
    refused = await client.put(f"{path}{query}", json=DAILY, headers=only_old)
    assert (refused.status_code, refused.json()["code"]) == (412, "outdated")
    assert await total(client) == 0
    assert (await client.put(path, json=DAILY, headers=only_new)).status_code == 201
    for document in (DAILY, {**DAILY, "name": "other"}):
        refused = await client.put(f"{path}{query}", json=document, headers=only_new)
        assert (refused.status_code, refused.json()["code"]) == (412, "outdated")
    both = await client.put(f"{path}{query}", json=DAILY, headers={**only_new, "If-Match": '"1"'})
    assert both.status_code == 412
    assert (await client.put(path, json=DAILY, headers={"If-None-Match": '"1"'})).status_code == 422
    changed = await client.put(path, json={**DAILY, "name": "new"}, headers=only_old)
    assert (changed.status_code, changed.json()["version"]) == (200, 2)


@pytest.mark.parametrize("header", ["If-Match", "If-None-Match"])
async def test_of_many_that_only_create_or_replace_the_same_key_at_once_the_store_decides(
    each_client: httpx2.AsyncClient, header: str
) -> None:
    async def put(number: int) -> int:
        document = {**DAILY, "name": f"{number}"}
        return (await each_client.put("/v1/jobs/by-key/a", json=document, headers={header: "*"})).status_code

    statuses = Counter(await asyncio.gather(*(put(number) for number in range(8))))
    assert statuses == ({412: 8} if header == "If-Match" else {201: 1, 412: 7})
    versions = {one["version"] for one in (await each_client.get("/v1/jobs")).json()["data"]}
    assert versions == (set() if header == "If-Match" else {1})


async def test_an_upsert_with_a_version_needs_that_version(client: httpx2.AsyncClient) -> None:
    path, stale = "/v1/jobs/by-key/a", {"If-Match": '"9"'}
    assert (await client.put(path, json=DAILY, headers=stale)).status_code == 412
    await client.put(path, json=DAILY)
    assert (await client.put(path, json=DAILY, headers=stale)).status_code == 412


async def test_a_name_does_not_count_as_a_key(client: httpx2.AsyncClient) -> None:
    await create(client, name="daily")
    assert (await client.put("/v1/jobs/by-key/daily", json=DAILY)).status_code == 201


# --- dry runs


async def test_dry_runs_say_what_would_be_and_write_nothing(client: httpx2.AsyncClient) -> None:
    answer = await client.post("/v1/jobs?dry_run=true", json=DAILY)
    assert answer.status_code == 200
    assert answer.json() == {"job_id": None, "next_fire_time": "2027-01-15T09:00:00Z", "dry_run": True}
    Created.model_validate(answer.json())
    answer = await client.put("/v1/jobs/by-key/a?dry_run=1", json=DAILY)
    assert (answer.status_code, answer.json()["job_id"]) == (200, None)
    assert await total(client) == 0

    job_id = await create(client)
    before = (await client.get(f"/v1/jobs/{job_id}")).json()
    answer = await client.patch(f"/v1/jobs/{job_id}?dry_run=true", json={"every": "15m"})
    assert (answer.json()["every"], answer.json()["version"], answer.json()["dry_run"]) == ("15m", 2, True)
    assert "etag" not in answer.headers
    answer = await client.put(f"/v1/jobs/{job_id}?dry_run=true", json={**DAILY, "name": "x"})
    assert answer.json()["name"] == "x"
    answer = await client.delete(f"/v1/jobs/{job_id}?dry_run=true")
    assert Deleted.model_validate(answer.json()).dry_run is True
    assert (await client.get(f"/v1/jobs/{job_id}")).json() == before
    assert (await client.patch(f"/v1/jobs/{job_id}?dry_run=true", json={"jitter": "1h"})).status_code == 422
    stale = {"If-Match": '"7"'}
    assert (await client.patch(f"/v1/jobs/{job_id}?dry_run=true", json={}, headers=stale)).status_code == 412
    assert (await client.delete("/v1/jobs/J-0000000000000?dry_run=true")).status_code == 404


# --- deleting


async def test_a_running_run_finishes_unless_it_is_to_be_cancelled(
    client: httpx2.AsyncClient, store: SqliteStore, clock: ManualClock
) -> None:
    for cancel, asked in (("", False), ("?cancel_running=true", True)):
        job_id = await create(client)
        await client.post(f"/v1/jobs/{job_id}/run")
        clock.advance(SECOND_US)
        [run] = await worker.take(store)
        assert (await client.delete(f"/v1/jobs/{job_id}{cancel}")).json() == {"deleted": True}
        held = [one for one in await store.held_runs(worker.NODE) if one.job_id == run.job_id]
        assert [one.cancel_asked for one in held] == [asked]


# --- shapes


async def test_answers_have_the_documented_shape(
    client: httpx2.AsyncClient, store: SqliteStore, clock: ManualClock
) -> None:
    for fields in ({}, {"cron": None, "every": "1h"}, {"cron": None, "at": "2027-01-15T08:00:30Z"}):
        job_id = await create(client, **fields)
        clock.advance(HOUR_US)
        await worker.succeed(store, clock)
        StatusAnswer.model_validate((await client.get(f"/v1/jobs/{job_id}/status")).json())
        RunList.model_validate((await client.get(f"/v1/jobs/{job_id}/history")).json())
    JobList.model_validate((await client.get("/v1/jobs")).json())
