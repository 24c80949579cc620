"""Texts that no store keeps, in every place that takes one: refused with their place, alike on every store."""

from typing import Any

import httpx2
import msgspec
import pytest

from hourhand.web.cursors import write_cursor
from tests.web.test_jobs_routes import DAILY

NUL = "\0"
NOTE = {"note": f"a{NUL}b"}
AGES = {"from": "2027-01-01T00:00:00Z"}

# method, path, body; and where the fault points to
BODIES: dict[str, tuple[str, str, Any, str]] = {
    "a job's note": ("POST", "/jobs", {**DAILY, **NOTE}, "/note"),
    "a job's name": ("POST", "/jobs", {**DAILY, "name": NUL}, "/name"),
    "a tag": ("POST", "/jobs", {**DAILY, "tags": ["a", NUL]}, "/tags/1"),
    "a parent": ("POST", "/jobs", {"after": [NUL], "callback_url": "https://e.com"}, "/after/0"),
    "a header": (
        "POST",
        "/jobs",
        {"every": "1m", "target": {"url": "https://e.com", "headers": {"a/b": NUL}}},
        "/target/headers/a~1b",
    ),
    "a name of a field": ("POST", "/jobs", {**DAILY, NUL: 1}, ""),
    "a patch": ("PATCH", "/jobs/{job}", NOTE, "/note"),
    "a replacement": ("PUT", "/jobs/{job}", {**DAILY, **NOTE}, "/note"),
    "a document by key": ("PUT", "/jobs/by-key/k", {**DAILY, **NOTE}, "/note"),
    "a key": ("PUT", "/jobs/by-key/a%00b", DAILY, "/key"),
    "a clone": ("POST", "/jobs/{job}/clone", NOTE, "/note"),
    "a pause": ("POST", "/jobs/{job}/pause", NOTE, "/note"),
    "a skip": ("POST", "/jobs/{job}/skip", NOTE, "/note"),
    "a backfill's note": ("POST", "/backfills", {"job": "{job}", **AGES, **NOTE}, "/note"),
    "a backfill's job": ("POST", "/backfills", {"job": NUL, **AGES}, "/job"),
    "an operation's note": (
        "POST",
        "/operations",
        {"action": "pause", "filter": {"tag": "a"}, **NOTE},
        "/note",
    ),
    **{
        f"an operation's {name}": (
            "POST",
            "/operations",
            {"action": action, "filter": {name: NUL}},
            f"/filter/{name}",
        )
        for name, action in (("name", "pause"), ("set", "pause"), ("tag", "run"), ("error", "requeue"))
    },
    "a requeue": ("POST", "/dead-letters/requeue", {"filter": {"error": NUL}}, "/filter/error"),
    "a discard": ("POST", "/dead-letters/discard", {"filter": {"error": NUL}}, "/filter/error"),
    "a token's tenant": ("POST", "/tokens", {"name": "a", "tenant": NUL}, "/tenant"),
    "a webhook": ("POST", "/webhooks", {"url": "https://e.com", "description": NUL}, "/description"),
    "a preview": ("POST", "/schedules/preview", {"cron": NUL}, "/cron"),
}
QUERIES = {
    "/jobs?name=%00": "?name",
    "/jobs?set=a%00": "?set",
    "/jobs?tag=%00": "?tag",
    "/jobs/resolve?ref=%00": "?ref",
    "/jobs/strips?job_id=%00": "?job_id",
    "/dead-letters?error=%00": "?error",
    "/deeds?tenant=%00": "?tenant",
    "/deeds?subject=%00": "?subject",
    "/tokens?tenant=%00": "?tenant",
    f"/tenants?cursor={write_cursor('tenants', NUL)}": "?cursor",
}
NOWHERE = (
    "/jobs/%00",
    "/runs/%00",
    "/backfills/a%00b",
    "/operations/%00",
    "/webhooks/%00",
    "/webhooks/{webhook}/deliveries/a%00b",
    "/dead-letters/%00",
)


async def made(client: httpx2.AsyncClient) -> dict[str, str]:
    job = await client.post("/v1/jobs", json=DAILY)
    webhook = await client.post("/v1/webhooks", json={"url": "https://example.com/"})
    return {"{job}": job.json()["job_id"], "{webhook}": webhook.json()["webhook_id"]}


def filled(text: str, ids: dict[str, str]) -> str:
    for name, value in ids.items():
        text = text.replace(name, value)
    return text


def told(answer: httpx2.Response) -> tuple[int, str | None]:
    errors = answer.json().get("errors")
    return answer.status_code, errors[0]["pointer"] if errors else None


async def test_nul_is_refused_in_every_text_of_a_body(each_client: httpx2.AsyncClient) -> None:
    ids, got = await made(each_client), {}
    for name, (method, path, body, _) in BODIES.items():
        text = filled(msgspec.json.encode(body).decode(), ids)
        answer = await each_client.request(
            method, f"/v1{filled(path, ids)}", content=text, headers={"Content-Type": "application/json"}
        )
        got[name] = told(answer)
    assert got == {name: (422, pointer) for name, (*_, pointer) in BODIES.items()}


async def test_nul_is_refused_in_every_text_of_an_address(each_client: httpx2.AsyncClient) -> None:
    ids = await made(each_client)
    got = {path: told(await each_client.get(f"/v1{path}")) for path in QUERIES}
    assert got == {path: (422, pointer) for path, pointer in QUERIES.items()}
    statuses = {path: (await each_client.get(f"/v1{filled(path, ids)}")).status_code for path in NOWHERE}
    assert statuses == dict.fromkeys(NOWHERE, 404)


@pytest.mark.parametrize("route", ["bulk", "apply"])
async def test_nul_in_one_document_of_many_harms_no_other(
    each_client: httpx2.AsyncClient, route: str
) -> None:
    documents = [
        {**DAILY, "key": "a"},
        {**DAILY, "key": "b", **NOTE},
        {**DAILY, "key": NUL},
        {**DAILY, "key": "c"},
    ]
    answer = await each_client.post(f"/v1/jobs/{route}", json=documents)
    assert [one["status"] for one in answer.json()["results"]] == [201, 422, 422, 201]


async def test_a_payload_is_kept_with_whatever_is_in_it(each_client: httpx2.AsyncClient) -> None:
    payload = {"a\0": ["\0", "\\u0000"]}
    job_id = (await each_client.post("/v1/jobs", json={**DAILY, "payload": payload})).json()["job_id"]
    note = {"note": "a backslash, and \\u0000 behind it"}
    assert (await each_client.patch(f"/v1/jobs/{job_id}", json=note)).status_code == 200
    kept = (await each_client.get(f"/v1/jobs/{job_id}")).json()
    assert (kept["payload"], kept["note"]) == (payload, note["note"])
