"""What every route holds to: packed answers, origins, versions, preferences."""

import gzip
import re
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest
from fastapi import FastAPI
from fastapi.routing import APIRoute
from starlette.responses import StreamingResponse

from hourhand.web.compressing import SMALLEST_BYTES, Compressor, takes_gzip
from hourhand.web.context import WebSettings
from hourhand.web.shapes.jobs import JobAnswer
from tests.web.conftest import ADDRESS, MakeApp
from tests.web.test_jobs_routes import DAILY, create
from tests.web.test_route_table import CHANGING

SITE = "https://console.example.com"


def asking(app: FastAPI) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), base_url=ADDRESS)


# --- packing


@pytest.mark.parametrize(
    ("accepted", "takes"),
    [
        ("gzip", True),
        ("br, gzip;q=0.5", True),
        ("*", True),
        ("GZIP", True),
        ("", False),
        ("br", False),
        ("gzip;q=0", False),
        ("gzip; q=0.00", False),
        ("*;q=0, identity", False),
        ("gzip;q=0, *", False),
    ],
)
def test_who_takes_gzip(accepted: str, takes: bool) -> None:
    assert takes_gzip(accepted) is takes


async def test_large_answers_are_packed_where_that_is_accepted(client: httpx2.AsyncClient) -> None:
    await create(client, payload={"text": "x" * SMALLEST_BYTES})
    packed = await client.get("/api/v1/jobs", headers={"Accept-Encoding": "gzip"})
    plain = await client.get("/api/v1/jobs", headers={"Accept-Encoding": "gzip;q=0"})
    assert (packed.headers["content-encoding"], plain.headers.get("content-encoding")) == ("gzip", None)
    assert packed.json() == plain.json()
    assert int(packed.headers["content-length"]) < int(plain.headers["content-length"])
    for answer in (packed, plain):
        assert "accept-encoding" in answer.headers["vary"].lower()
    small = await client.get("/healthz", headers={"Accept-Encoding": "gzip"})
    assert "content-encoding" not in small.headers


async def test_packed_bodies_are_refused(client: httpx2.AsyncClient) -> None:
    bomb = gzip.compress(b" " * 50_000_000)
    headers = {"Content-Encoding": "gzip", "Content-Type": "application/json"}
    for path in ("/api/v1/jobs", "/api/v1/jobs/bulk"):
        answer = await client.post(path, content=bomb, headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (415, "unsupported_content_type")
    as_it_is = {**headers, "Content-Encoding": "identity"}
    assert (await client.post("/api/v1/jobs", json=DAILY, headers=as_it_is)).status_code == 201


# --- other sites


async def test_no_other_site_may_ask_unless_configured(client: httpx2.AsyncClient) -> None:
    for answer in (
        await client.get("/api/v1/jobs", headers={"Origin": SITE}),
        await client.options(
            "/api/v1/jobs", headers={"Origin": SITE, "Access-Control-Request-Method": "POST"}
        ),
    ):
        assert answer.status_code == 403
        assert "access-control-allow-origin" not in answer.headers


async def test_configured_sites_may_ask_and_no_others(make_app: MakeApp) -> None:
    async with asking(make_app(WebSettings(origins=(SITE,)))) as client:
        before = await client.options(
            "/api/v1/jobs/x", headers={"Origin": SITE, "Access-Control-Request-Method": "PATCH"}
        )
        assert before.status_code == 204
        assert before.headers["access-control-allow-origin"] == SITE
        assert "PATCH" in before.headers["access-control-allow-methods"]
        assert "Idempotency-Key" in before.headers["access-control-allow-headers"]
        asked = await client.post("/api/v1/jobs", json=DAILY, headers={"Origin": SITE})
        assert (asked.status_code, asked.headers["access-control-allow-origin"]) == (201, SITE)
        assert "ETag" in asked.headers["access-control-expose-headers"]
        wrong = await client.post("/api/v1/jobs", json={}, headers={"Origin": SITE})
        assert (wrong.status_code, wrong.headers["access-control-allow-origin"]) == (422, SITE)
        for other in (f"{SITE}.evil.com", SITE.replace("https", "http"), f"{SITE}:444", "null"):
            refused = await client.get("/api/v1/jobs", headers={"Origin": other})
            assert refused.status_code == 403
            assert "access-control-allow-origin" not in refused.headers
            before = await client.options(
                "/api/v1/jobs", headers={"Origin": other, "Access-Control-Request-Method": "GET"}
            )
            assert before.status_code == 403
        for answer in (asked, await client.get("/api/v1/jobs")):
            assert "origin" in answer.headers["vary"].lower()
            assert "access-control-allow-credentials" not in answer.headers


# --- versions and preferences


async def test_a_job_that_is_known_is_not_sent_again(client: httpx2.AsyncClient) -> None:
    job = await create(client)
    path = f"/api/v1/jobs/{job}"
    tag = (await client.get(path)).headers["etag"]
    for known in (tag, f"W/{tag}", f'"99", {tag}', "*"):
        answer = await client.get(path, headers={"If-None-Match": known})
        assert (answer.status_code, answer.content, answer.headers["etag"]) == (304, b"", tag)
    assert (await client.get(path, headers={"If-None-Match": '"99"'})).status_code == 200
    await client.patch(path, json={"name": "other"})
    assert (await client.get(path, headers={"If-None-Match": tag})).status_code == 200


CHANGES_OF_A_JOB = {
    "patch_job": {"name": "b"},
    "replace_job": DAILY,
    "upsert_job": DAILY,
    "delete_job": None,
    "pause_job": {},
    "resume_job": None,
    "run_job": {},
    "skip_time": {},
    "clone_job": {},
}


@pytest.mark.parametrize("dry", ["", "?dry_run=true"])
@pytest.mark.parametrize(
    "route",
    [route for route in CHANGING if re.search(r"\{(job_id|key:path)\}", route.path)],
    ids=lambda route: route.name,
)
async def test_every_change_of_a_job_holds_to_if_match(
    client: httpx2.AsyncClient, route: APIRoute, dry: str
) -> None:
    assert route.name in CHANGES_OF_A_JOB, "say with what a new route can be asked"
    job = await create(client, key="k")
    path, [method] = f"/api/v1/jobs/{job}", route.methods or ()
    address = "/api/v1" + route.path.replace("{job_id}", job).replace("{key:path}", "k") + dry
    await client.patch(path, json={"name": "newer"})

    async def standing() -> list[Any]:
        more = ("", "/history", "/next", "/versions")
        return [(await client.get(f"{path}{one}")).json() for one in more]

    before = [*await standing(), (await client.get("/api/v1/jobs")).json()]
    bodies = [CHANGES_OF_A_JOB[route.name]] + ([{"undo": True}] if route.name == "skip_time" else [])
    for body in bodies:
        stale = await client.request(method, address, json=body, headers={"If-Match": '"1"'})
        assert (stale.status_code, stale.json()["code"]) == (412, "outdated")
        wrong = await client.request(method, address, json=body, headers={"If-Match": "two"})
        assert wrong.status_code == 422, wrong.text
        several = [("If-Match", '"2"'), ("If-Match", '"1"')]
        assert (await client.request(method, address, json=body, headers=several)).status_code == 422
        unless = await client.request(method, address, json=body, headers={"If-None-Match": "*"})
        assert unless.status_code == (412 if route.name == "upsert_job" else 422)
    missing = address.replace(job, "J-0000000000000").replace("/k", "/no")
    nothing = await client.request(method, missing, json=bodies[0], headers={"If-Match": "*"})
    assert nothing.status_code == (412 if route.name == "upsert_job" else 404)
    assert [*await standing(), (await client.get("/api/v1/jobs")).json()] == before
    present = await client.request(method, address, json=bodies[0], headers={"If-Match": '"2"'})
    assert present.is_success, present.text


@pytest.mark.parametrize(
    ("given", "followed"),
    [
        (["return=minimal"], True),
        (["Return = Minimal"], True),
        (['wait=5, return="minimal"; why=speed'], True),
        (["wait=5", "return=minimal"], True),
        (["return=minimally"], False),
        (['note="return=minimal"'], False),
        (["return=representation"], False),
    ],
)
async def test_a_preference_is_one_of_those_listed(
    client: httpx2.AsyncClient, given: list[str], followed: bool
) -> None:
    job = (await client.post("/api/v1/jobs", json=DAILY)).json()["job_id"]
    headers = [("Prefer", one) for one in given]
    changed = await client.patch(f"/api/v1/jobs/{job}", json={"name": "other"}, headers=headers)
    assert (changed.status_code == 204) is followed
    assert ("preference-applied" in changed.headers) is followed


async def test_who_prefers_nothing_gets_nothing_but_headers(client: httpx2.AsyncClient) -> None:
    job = await create(client)
    path, headers = f"/api/v1/jobs/{job}", {"Prefer": "return=minimal"}
    changed = await client.patch(path, json={"name": "b"}, headers=headers)
    assert (changed.status_code, changed.content, changed.headers["etag"]) == (204, b"", '"2"')
    assert changed.headers["preference-applied"] == "return=minimal"
    assert (await client.post(f"{path}/pause", headers=headers)).status_code == 204
    made = await client.put("/api/v1/jobs/by-key/k", json=DAILY, headers=headers)
    assert (made.status_code, made.content) == (201, b"")
    copy = await client.post(f"{path}/clone", headers=headers)
    assert (copy.status_code, copy.content) == (201, b"")
    assert (await client.get(copy.headers["location"])).json()["name"] == "b (copy)"


@pytest.mark.parametrize("dry_run", [False, True])
async def test_who_creates_gets_the_whole_job_where_it_is_preferred(
    app: FastAPI, client: httpx2.AsyncClient, dry_run: bool
) -> None:
    whole = await client.post(
        "/api/v1/jobs",
        params={"dry_run": dry_run},
        json=DAILY,
        headers={"Prefer": "return=representation"},
    )
    assert whole.headers["preference-applied"] == "return=representation"
    assert JobAnswer.model_validate(whole.json()).cron == DAILY["cron"]
    answers = app.openapi()["paths"]["/api/v1/jobs"]["post"]["responses"]
    schema = answers[str(whole.status_code)]["content"]["application/json"]["schema"]
    assert {"$ref": "#/components/schemas/JobAnswer"} in schema["anyOf"]


@pytest.mark.parametrize(
    ("kind", "packed"), [("text/event-stream", False), ("application/x-ndjson", True), ("image/png", False)]
)
async def test_streams_are_packed_piece_by_piece_and_events_never(kind: str, packed: bool) -> None:
    async def stream() -> AsyncIterator[bytes]:
        for _ in range(3):
            yield b"data: x\n\n" * 1_000

    layer = Compressor(StreamingResponse(stream(), media_type=kind))
    transport = httpx2.ASGITransport(app=layer)
    async with httpx2.AsyncClient(transport=transport, base_url=ADDRESS) as client:
        answer = await client.get("/", headers={"Accept-Encoding": "gzip"})
    assert ("content-encoding" in answer.headers) is packed
    assert answer.content == b"data: x\n\n" * 3_000
