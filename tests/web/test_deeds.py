"""Who did what, by the API: every changing route leaves it, found by walking the route table, and admins read it."""

from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest
from fastapi import FastAPI
from fastapi.routing import APIRoute

from hourhand.clock import ManualClock
from hourhand.core.access import EVERY_TENANT, Role
from hourhand.core.deeds import Act, names_of_acts
from hourhand.core.instant import SECOND_US
from hourhand.stores.sqlite.store import SqliteStore
from hourhand.web.shapes.deeds import DeedList
from hourhand.web.shapes.jobs import VersionList
from tests.web.conftest import ADDRESS, MakeApp
from tests.web.staging import CHANGED_BY_PEOPLE, Stage, bodies_of, path_of, set_stage
from tests.web.test_access import Doorman, bearer
from tests.web.test_jobs_routes import DAILY, create


@pytest.fixture
def app(make_app: MakeApp) -> FastAPI:
    return make_app(authenticators=[Doorman()])


@pytest.fixture
async def client(app: FastAPI) -> AsyncIterator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), base_url=ADDRESS) as opened:
        yield opened


async def read(client: httpx2.AsyncClient, whose: str = "acme", **query: Any) -> list[dict[str, Any]]:
    answer = await client.get("/v1/deeds", params={"limit": 1_000, **query}, headers=bearer(whose))
    assert answer.status_code == 200, answer.text
    DeedList.model_validate(answer.json())
    return answer.json()["data"]  # type: ignore[no-any-return]


async def create_as(client: httpx2.AsyncClient, subject: str) -> str:
    made = await client.post("/v1/jobs", json=DAILY, headers=bearer("acme", subject=subject))
    return str(made.json()["job_id"])


LEAVES = {
    "create_job": ["job.create"],
    "create_jobs": ["job.create"] * 2,
    "apply_jobs": ["job.create", "job.update"],
    "upsert_job": ["job.update"],
    "patch_job": ["job.update"],
    "replace_job": ["job.update"],
    "delete_job": ["job.delete"],
    "pause_job": ["job.pause"],
    "resume_job": ["job.resume"],
    "run_job": ["job.run"],
    "skip_time": ["job.skip"],
    "clone_job": ["job.create"],
    "cancel_run": ["run.cancel"],
    "rerun_run": ["run.rerun"],
    "create_operation": ["operation.create"],
    "cancel_operation": ["operation.cancel"],
    "create_token": ["token.create"],
    "revoke_token": ["token.revoke"],
    "set_quota": ["quota.set"],
    "create_webhook": ["webhook.create"],
    "patch_webhook": ["webhook.update"],
    "rotate_webhook": ["webhook.rotate"],
    "delete_webhook": ["webhook.delete"],
    "try_webhook": ["webhook.test"],
    "redeliver_event": ["webhook.redeliver"],
    "create_backfill": ["backfill.create"],
    "pause_backfill": ["backfill.pause"],
    "resume_backfill": ["backfill.resume"],
    "cancel_backfill": ["backfill.cancel"],
    "requeue_dead_letters": ["dead_letters.requeue"],
    "discard_dead_letters": ["dead_letters.discard"],
}


async def test_every_changing_route_leaves_who_asked_and_a_dry_run_nothing(
    client: httpx2.AsyncClient, store: SqliteStore, clock: ManualClock
) -> None:
    assert {route.name for route in CHANGED_BY_PEOPLE} == set(LEAVES), "say what a new route leaves behind"
    for number, route in enumerate(CHANGED_BY_PEOPLE):
        tenant = f"t{number}"
        stage = await set_stage(client, [store], clock, tenant, bearer(tenant, Role.ADMIN, "before"))
        await _prepare(client, route, stage)
        before = await read(client, tenant)
        access = route.access  # type: ignore[attr-defined]
        whose = EVERY_TENANT if access.of_system else tenant
        who = bearer(whose, access.role or Role.ADMIN, f"who-{number}")
        path, body = path_of(route, stage), bodies_of(stage)[route.name]
        [method] = route.methods or ()
        tried = await client.request(method, f"{path}?dry_run=true", json=body, headers=who)
        assert tried.status_code == 200, f"{route.name}: {tried.text}"
        assert await read(client, tenant) == before, route.name
        answer = await client.request(method, path, json=body, headers=who)
        assert answer.is_success, f"{route.name}: {answer.text}"
        left = await read(client, tenant, subject=f"who-{number}")
        assert sorted(one["action"] for one in left) == LEAVES[route.name], route.name
        for one in left:
            assert one["request_id"] == answer.headers["x-request-id"], route.name
            assert (one["via"], one["what"] is not None) == ("token", True), route.name
        assert len(await read(client, tenant)) == len(before) + len(left)


async def _prepare(client: httpx2.AsyncClient, route: APIRoute, stage: Stage) -> None:
    """What is not paused is not resumed."""
    if route.name in ("resume_backfill", "resume_job"):
        path = path_of(route, stage).replace("/resume", "/pause")
        assert (await client.post(path, headers=stage.headers)).status_code == 200


async def test_what_is_refused_leaves_nothing(client: httpx2.AsyncClient) -> None:
    job_id = await create_as(client, "ann")
    refused = [
        ("POST", "/v1/jobs", {**DAILY, "cron": "no"}, 422),
        ("POST", "/v1/jobs", {**DAILY, "after": ["J-0000000000001"]}, 422),
        ("PATCH", f"/v1/jobs/{job_id}", {"nmae": "x"}, 422),
        ("PATCH", "/v1/jobs/J-0000000000001", {"name": "x"}, 404),
        ("POST", "/v1/dead-letters/requeue", {"ids": [f"{job_id}@20270115T080000Z"]}, 200),
        ("POST", f"/v1/jobs/{job_id}/skip", {"at": "2027-01-15T08:00:01Z"}, 422),
    ]
    for method, path, body, status in refused:
        answer = await client.request(method, path, json=body, headers=bearer("acme"))
        assert answer.status_code == status, answer.text
    viewer = bearer("acme", Role.VIEWER)
    assert (await client.post(f"/v1/jobs/{job_id}/pause", headers=viewer)).status_code == 403
    stale = {**bearer("acme"), "If-Match": '"9"'}
    changed = await client.patch(f"/v1/jobs/{job_id}", json={"name": "x"}, headers=stale)
    assert changed.status_code == 412
    assert [one["action"] for one in await read(client)] == ["job.create"]


async def test_versions_tell_who_made_each(client: httpx2.AsyncClient, clock: ManualClock) -> None:
    job_id = await create_as(client, "ann")
    clock.advance(SECOND_US)
    await client.patch(f"/v1/jobs/{job_id}", json={"name": "x"}, headers=bearer("acme", Role.EDITOR, "bob"))
    clock.advance(SECOND_US)
    runs_it = {**bearer(EVERY_TENANT, subject="root"), "Hourhand-Tenant": "acme"}
    await client.post(f"/v1/jobs/{job_id}/pause", json={"note": "INC-42"}, headers=runs_it)
    answer = await client.get(f"/v1/jobs/{job_id}/versions", headers=bearer("acme", Role.VIEWER))
    versions = VersionList.model_validate(answer.json()).data
    assert [(one.version, one.by) for one in versions] == [(1, "ann"), (2, "bob"), (3, "root")]
    [pause] = await read(client, action="job.pause")
    assert pause == {
        "at": "2027-01-15T08:00:02Z",
        "subject": "root",
        "via": "token",
        "action": "job.pause",
        "what": job_id,
        "job_id": job_id,
        "version": 3,
        "count": None,
        "note": "INC-42",
        "request_id": pause["request_id"],
    }


async def test_why_tells_who_paused_a_job(client: httpx2.AsyncClient) -> None:
    job_id = await create_as(client, "ann")
    await client.post(
        f"/v1/jobs/{job_id}/pause", json={"note": "INC-42"}, headers=bearer("acme", subject="bob")
    )
    answer = await client.get(f"/v1/jobs/{job_id}/why?at=next", headers=bearer("acme", Role.VIEWER))
    verdict = answer.json()
    assert (verdict["cause"], verdict["decided_by"]) == ("paused", "bob")
    assert "paused by version 2, made by bob: INC-42" in [one["text"] for one in verdict["evidence"]]


async def test_pages_and_filters(client: httpx2.AsyncClient, clock: ManualClock) -> None:
    ids = []
    for number in range(5):
        ids.append(await create_as(client, f"p{number % 2}"))
        clock.advance(SECOND_US)
    listed: list[str] = []
    address = "/v1/deeds?limit=2&action=job.*"
    while address:
        page = await client.get(address, headers=bearer("acme"))
        listed += [one["job_id"] for one in page.json()["data"]]
        address = page.links["next"]["url"] if "next" in page.links else ""
    assert listed == ids[::-1]
    assert [one["job_id"] for one in await read(client, subject="p1")] == [ids[3], ids[1]]
    assert [one["job_id"] for one in await read(client, job_id=ids[2])] == [ids[2]]
    window = {"from": "2027-01-15T08:00:01Z", "to": "2027-01-15T08:00:03Z"}
    assert [one["job_id"] for one in await read(client, **window)] == [ids[2], ids[1]]
    assert await read(client, action="job.delete") == []


@pytest.mark.parametrize(
    ("query", "pointer", "hint"),
    [
        ({"action": "job.craete"}, "?action", "did you mean job.create?"),
        ({"job_id": "x"}, "?job_id", None),
        ({"from": "soon"}, "?from", None),
        ({"cursor": "x"}, "?cursor", None),
        ({"who": "ann"}, "?who", None),
    ],
)
async def test_what_is_no_filter_is_said(
    client: httpx2.AsyncClient, query: dict[str, str], pointer: str, hint: str | None
) -> None:
    answer = await client.get("/v1/deeds", params=query, headers=bearer("acme"))
    assert answer.status_code == 422
    [fault] = answer.json()["errors"]
    assert fault["pointer"] == pointer
    assert hint is None or fault["hint"] == hint


async def test_a_cursor_of_another_shape_is_refused(client: httpx2.AsyncClient) -> None:
    from hourhand.web.cursors import write_cursor

    for place in ((1,), (1, 2, 3)):
        asked = {"cursor": write_cursor("deeds", *place)}
        answer = await client.get("/v1/deeds", params=asked, headers=bearer("acme"))
        assert answer.status_code == 422, place


async def test_only_admins_read_them(client: httpx2.AsyncClient) -> None:
    for role in Role:
        answer = await client.get("/v1/deeds", headers=bearer("acme", role))
        assert answer.status_code == (200 if role is Role.ADMIN else 403)


async def test_where_nobody_is_asked_who_they_are_it_is_everybodys_name(make_app: MakeApp) -> None:
    transport = httpx2.ASGITransport(app=make_app())
    async with httpx2.AsyncClient(transport=transport, base_url=ADDRESS) as client:
        job_id = await create(client)
        [deed] = (await client.get("/v1/deeds")).json()["data"]
    assert (deed["subject"], deed["via"], deed["what"]) == ("local", "local", job_id)


async def test_what_belongs_to_no_tenant_is_read_by_who_runs_the_system(client: httpx2.AsyncClient) -> None:
    root = bearer(EVERY_TENANT, subject="root")
    for tenant in ("acme", EVERY_TENANT):
        wish = {"name": f"of {tenant}", "tenant": tenant}
        assert (await client.post("/v1/tokens", json=wish, headers=root)).status_code == 201
    for tenant in ("acme", EVERY_TENANT):
        [deed] = (await client.get("/v1/deeds", params={"tenant": tenant}, headers=root)).json()["data"]
        assert (deed["action"], deed["subject"], deed["note"]) == ("token.create", "root", f"of {tenant}")
    assert [one["note"] for one in await read(client, "acme")] == ["of acme"]
    assert [one["note"] for one in await read(client, "acme", tenant="acme")] == ["of acme"]
    for other in ("globex", EVERY_TENANT):
        answer = await client.get("/v1/deeds", params={"tenant": other}, headers=bearer("acme"))
        assert answer.status_code == 403


def test_families_are_made_of_the_actions() -> None:
    families = {"job.*", "run.*", "dead_letters.*", "backfill.*", "operation.*", "token.*", "webhook.*"}
    assert families <= set(names_of_acts())
    assert set(Act) <= set(names_of_acts())
