"""Walks the route table: every route is described, has both prefixes, knows its parameters and can be tried dry."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import httpx2
import pytest
from fastapi import FastAPI
from fastapi.routing import APIRoute

from hourhand.clock import ManualClock
from hourhand.stores.sqlite.store import SqliteStore
from hourhand.web.routes import ALIAS, API, PREFIX, PROCESS
from tests.web.test_jobs_routes import DAILY, create
from tests.web.test_runs_routes import Scene

ROUTES = [route for route in API.routes if isinstance(route, APIRoute)]
CHANGES_NOTHING = {"preview_schedule"}
CHANGING = [route for route in ROUTES if route.methods != {"GET"} and route.name not in CHANGES_NOTHING]
TRIED_APART = {"report_run"}  # needs a token; see test_reports_routes
HOOK = {"url": "https://example.com/hook"}


def operations(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield method.upper(), path, operation


@pytest.fixture
def document(app: FastAPI) -> dict[str, Any]:
    return app.openapi()


# --- the document


def test_every_route_is_in_the_document_once(document: dict[str, Any]) -> None:
    described = {(method, path) for method, path, _ in operations(document)}
    expected = {
        (method, PREFIX + route.path.replace(":path", ""))
        for route in ROUTES
        for method in route.methods or ()
    }
    expected |= {
        (method, route.path)
        for route in PROCESS.routes
        if isinstance(route, APIRoute) and route.include_in_schema
        for method in route.methods or ()
    }
    assert described == expected
    assert len(described) >= 24


def test_every_operation_is_described(document: dict[str, Any]) -> None:
    names = [operation["operationId"] for _, _, operation in operations(document)]
    assert sorted(names) == sorted(set(names))
    for method, path, operation in operations(document):
        where = f"{method} {path}"
        assert operation["summary"], where
        assert operation["description"], where
        assert operation["tags"], where
        for parameter in operation.get("parameters", []):
            assert parameter.get("description"), f"{where} {parameter['name']}"
        problems = {status for status in operation["responses"] if status >= "400"}
        assert {"403", "422", "500", "503"} <= problems, where
        for status in problems - ({"503"} if path == "/readyz" else set()):
            assert "application/problem+json" in operation["responses"][status]["content"], (
                f"{where} {status}"
            )
        if "requestBody" in operation:
            assert {"400", "413", "415"} <= problems, where
        if "{" in path and "by-key" not in path:
            assert "404" in problems, where


def test_every_reference_leads_somewhere(document: dict[str, Any]) -> None:
    text = str(document)
    named = set(re.findall(r"#/components/schemas/(\w+)", text))
    assert named >= {"JobDocument", "Problem", "JobAnswer", "RunAnswer"}
    assert named <= set(document["components"]["schemas"])


def test_every_field_of_every_shape_is_described(document: dict[str, Any]) -> None:
    for name, shape in document["components"]["schemas"].items():
        for field, description in shape.get("properties", {}).items():
            assert description.get("description"), f"{name}.{field}"
            assert description.get("examples") is not None, f"{name}.{field}"


def test_examples_of_documents_are_accepted(document: dict[str, Any]) -> None:
    from hourhand.web.documents import parse_document

    examples = document["components"]["schemas"]["JobDocument"]["examples"]
    assert len(examples) == 3
    for example in examples:
        parse_document(example, 0)


# --- every route


@pytest.mark.parametrize("prefix", [PREFIX, ALIAS])
async def test_every_route_answers_under_both_prefixes_and_knows_its_parameters(
    client: httpx2.AsyncClient, prefix: str
) -> None:
    for route in ROUTES:
        path = prefix + re.sub(r"\{\w+(:path)?\}", "J-0000000000000", route.path)
        for method in route.methods or ():
            answer = await client.request(method, f"{path}?zzz=1", json={})
            assert answer.status_code == 422, f"{method} {path}"
            assert answer.json()["errors"][0]["pointer"] == "?zzz"


def test_every_change_can_be_tried() -> None:
    assert len(CHANGING) >= 12
    for route in CHANGING:
        assert "dry_run" in {field.name for field in route.dependant.query_params}, route.name


async def test_no_dry_run_changes_anything(
    client: httpx2.AsyncClient, store: SqliteStore, clock: ManualClock
) -> None:
    names = await _one_of_each(client, Scene(client, store, clock))
    bodies = _bodies(names)
    tried = [route for route in CHANGING if route.name not in TRIED_APART]
    assert set(bodies) == {route.name for route in tried}
    before = await _everything(client, names["job_id"])
    for route in tried:
        run_id = names["dead_id" if route.name == "rerun_run" else "waiting_id"]
        path = route.path.replace(":path", "").format_map({**names, "run_id": run_id})
        [method] = route.methods or ()
        answer = await client.request(method, f"/v1{path}?dry_run=true", json=bodies[route.name])
        assert answer.status_code == 200, f"{route.name}: {answer.text}"
        assert answer.json()["dry_run"] is True, route.name
        assert await _everything(client, names["job_id"]) == before, route.name


async def _one_of_each(client: httpx2.AsyncClient, scene: Scene) -> dict[str, str]:
    """What routes are about, by the words that stand for it in their paths."""

    async def made(path: str, name: str, body: dict[str, Any] | None = None) -> str:
        return str((await client.post(f"/v1{path}", json=body)).json()[name])

    job_id = await create(client, key="a")
    webhook_id = await made("/webhooks", "webhook_id", HOOK)
    return {
        "tenant": "default",
        "key": "a",
        "job_id": job_id,
        "other_id": await create(client),
        "dead_id": await scene.dead(job_id),
        "waiting_id": await scene.run(job_id),
        "backfill_id": await made(
            "/backfills", "backfill_id", {"job": job_id, "from": "2027-01-10T00:00:00Z"}
        ),
        "operation_id": await made(
            "/operations", "operation_id", {"action": "resume", "filter": {"tag": "none"}}
        ),
        "token_id": await made("/tokens", "token_id", {"name": "one"}),
        "webhook_id": webhook_id,
        "event_id": await made(f"/webhooks/{webhook_id}/test", "event_id"),
    }


def _bodies(names: Mapping[str, str]) -> dict[str, Any]:
    """What each route that changes something is sent."""
    return {
        "create_job": DAILY,
        "create_jobs": [DAILY],
        "apply_jobs": [{**DAILY, "key": "a", "name": "new"}, {**DAILY, "key": "b"}],
        "upsert_job": {**DAILY, "name": "new", "key": None},
        "patch_job": {"name": "new"},
        "replace_job": {**DAILY, "name": "new"},
        "delete_job": None,
        "pause_job": {"note": "x"},
        "resume_job": None,
        "run_job": None,
        "skip_time": {"note": "x"},
        "clone_job": {"name": "copy"},
        "cancel_run": None,
        "rerun_run": None,
        "create_operation": {"action": "pause", "filter": {}},
        "cancel_operation": None,
        "create_backfill": {"job": names["other_id"], "from": "2027-01-10T00:00:00Z"},
        "pause_backfill": None,
        "resume_backfill": None,
        "cancel_backfill": None,
        "create_webhook": HOOK,
        "patch_webhook": {"description": "x"},
        "delete_webhook": None,
        "rotate_webhook": None,
        "try_webhook": None,
        "redeliver_event": None,
        "set_quota": {"jobs": 1},
        "requeue_dead_letters": {"ids": [names["dead_id"]]},
        "discard_dead_letters": {"filter": {}},
        "create_token": {"name": "ci", "role": "admin", "expires_in": "1d"},
        "revoke_token": None,
    }


async def _everything(client: httpx2.AsyncClient, job_id: str) -> list[Any]:
    of_job = (f"/jobs/{job_id}/{word}" for word in ("history", "versions", "status"))
    paths = ("/jobs", *of_job, "/dead-letters", "/backfills", "/operations", "/quota", "/tokens", "/webhooks")
    return [(await client.get(f"/v1{path}")).json() for path in paths]


@pytest.mark.parametrize(
    "body",
    [
        b"null",
        b"[]",
        b"5",
        b'"x"',
        b"{}",
        b'{"": ""}',
        b'{"a/b~c": 1}',
        b'{"cron": []}',
        b'{"target": {"type": null}}',
        b'{"target": []}',
        b'{"retry": []}',
        b'{"every": -1}',
        b'{"every": 1e300}',
        b'{"every": true}',
        b'{"at": "9999-12-31T23:59:59.999999Z"}',
        b'{"tags": {}}',
        b'{"payload": {"a": [[[]]]}}',
        b'{"ids": [null]}',
        b'{"filter": []}',
        b'{"until": {}}',
        b'{"n": 1e10, "cron": "* * * * *"}',
        b'{"every": "100000w"}',
        b'{"max_runs": 99999999999999999999999999}',
    ],
)
async def test_no_body_is_answered_with_a_crash(client: httpx2.AsyncClient, body: bytes) -> None:
    job_id = await create(client)
    for route in ROUTES:
        path = re.sub(r"\{\w+(:path)?\}", job_id, route.path)
        for method in (route.methods or set()) - {"GET", "DELETE"}:
            answer = await client.request(
                method, f"/v1{path}", content=body, headers={"Content-Type": "application/json"}
            )
            assert answer.status_code < 500, f"{method} {path} {answer.text}"


TIMED = [
    (route, name)
    for route in ROUTES
    for name in sorted({field.alias for field in route.dependant.query_params} & {"at", "from", "to"})
]


@pytest.mark.parametrize(
    "text",
    [
        "9999-12-31T23:59:59Z",
        "9999-12-31T23:59:59-23:59",
        "9899-01-01T00:00:00Z",
        "0101-12-31T23:59:59Z",
        "0001-01-01T00:00:00Z",
        "0001-01-01T00:00:00+23:59",
    ],
)
async def test_times_too_far_away_are_refused_with_the_years_that_are_not(
    client: httpx2.AsyncClient, text: str
) -> None:
    job_id = await create(client)
    assert {route.name for route, _ in TIMED} == {
        "audit",
        "job_graph",
        "job_why",
        "list_dead_letters",
        "list_deeds",
        "list_runs",
    }
    for route, name in TIMED:
        path = route.path.replace("{job_id}", job_id)
        answer = await client.get(f"/v1{path}", params={name: text})
        assert answer.status_code == 422, f"{path} {answer.text}"
        [fault] = answer.json()["errors"]
        assert (fault["pointer"], fault["hint"]) == (f"?{name}", "within the years 0102 to 9898 in UTC")
    answer = await client.post("/v1/jobs", json={**DAILY, "starts_at": text})
    assert answer.status_code == 422, answer.text
    [fault] = answer.json()["errors"]
    assert (fault["pointer"], fault["hint"]) == ("/starts_at", "within the years 0102 to 9898 in UTC")


@pytest.mark.parametrize("text", ["9898-12-31T23:59:59.999999Z", "0102-01-01T00:00:00Z"])
@pytest.mark.parametrize(
    "timing",
    [
        {"cron": "0 9 * * *", "tz": "Pacific/Kiritimati"},
        {"cron": "0 0 29 2 *", "tz": "America/New_York"},
        {"cron": None, "tz": None, "every": "36525d"},
        {"cron": None, "tz": None, "at": "9898-12-31T23:59:59.999999Z"},
    ],
)
async def test_the_first_and_the_last_time_that_may_be_given_are_answered(
    client: httpx2.AsyncClient, text: str, timing: dict[str, Any]
) -> None:
    job_id = await create(client, **timing)
    for route, name in TIMED:
        path = route.path.replace("{job_id}", job_id)
        answer = await client.get(f"/v1{path}", params={name: text})
        assert answer.status_code < 500, f"{path} {answer.text}"
    for method, path, body in [
        ("POST", f"/jobs/{job_id}/pause", {"until": text}),
        ("POST", f"/jobs/{job_id}/skip", {"at": text}),
        ("POST", "/backfills", {"job": job_id, "from": text}),
        ("POST", "/backfills", {"job": job_id, "from": "2027-01-10T00:00:00Z", "to": text}),
        ("POST", "/schedules/preview", {"cron": "0 9 * * *", "tz": "Asia/Tokyo", "after": text}),
        ("POST", "/schedules/preview", {"every": "36525d", "after": text, "n": 1}),
        ("GET", f"/jobs/{job_id}", None),
        ("GET", f"/jobs/{job_id}/status", None),
        ("GET", f"/jobs/{job_id}/next", None),
    ]:
        answer = await client.request(method, f"/v1{path}", json=body)
        assert answer.status_code < 500, f"{method} {path} {answer.text}"
