"""The problems in the description of the API: an example for each status, and each is what the API really answers."""

import re
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx2
import pytest
from fastapi import FastAPI

from hourhand.clock import ManualClock
from hourhand.core.access import Role
from hourhand.core.bucket import Limit
from hourhand.errors import HourhandError
from hourhand.limits.local import LocalLimits
from hourhand.web.context import WebSettings
from hourhand.web.problems import Problem
from tests.web.conftest import ADDRESS, MakeApp
from tests.web.test_access import Doorman, bearer
from tests.web.test_jobs_routes import DAILY
from tests.web.test_route_table import operations

PROBLEM = "application/problem+json"
JSON = {"Content-Type": "application/json"}
MET_ELSEWHERE = {408, 410, 431, 500, 503}  # where bodies drip, attempts end, heads are long, and things break


@pytest.fixture
def app(make_app: MakeApp, clock: ManualClock) -> FastAPI:
    few = WebSettings(requests=Limit(burst=1_000, per_s=100))
    return make_app(few, authenticators=[Doorman()], limits=LocalLimits(clock))


@pytest.fixture
async def client(app: FastAPI) -> AsyncIterator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), base_url=ADDRESS) as opened:
        yield opened


@pytest.fixture
def document(app: FastAPI) -> dict[str, Any]:
    return app.openapi()


@pytest.fixture
def examples(document: dict[str, Any]) -> dict[int, dict[str, Any]]:
    """By status; each as the description says it."""
    found = [one["value"] for one in document["components"]["examples"].values()]
    by_status = {one["status"]: one for one in found}
    assert len(by_status) == len(found)
    return by_status


def described(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for method, path, operation in operations(document):
        for status, response in operation["responses"].items():
            if PROBLEM in response.get("content", {}):
                yield f"{method} {path}", status, response["content"][PROBLEM]
    for name, status in {"MethodNotAllowed": "405", "HeadersTooLarge": "431"}.items():
        yield name, status, document["components"]["responses"][name]["content"][PROBLEM]


def codes_of(error: type[HourhandError]) -> Iterator[tuple[int, str]]:
    yield error.status, error.code
    for one in error.__subclasses__():
        yield from codes_of(one)


def test_every_problem_has_an_example_of_its_own_status(document: dict[str, Any]) -> None:
    shared = document["components"]["examples"]
    used = set()
    for where, status, content in described(document):
        [(name, reference)] = content["examples"].items()
        assert reference == {"$ref": f"#/components/examples/{name}"}, where
        assert shared[name]["value"]["status"] == int(status), f"{where} {status}"
        used.add(name)
    assert used == set(shared)
    assert len(used) > 15


def test_examples_have_the_kind_that_errors_have(examples: dict[int, dict[str, Any]]) -> None:
    known = {*codes_of(HourhandError), (405, "method_not_allowed")}
    for status, example in examples.items():
        problem = Problem.model_validate(example)
        assert (status, problem.code) in known
        assert problem.type == f"urn:hourhand:problem:{problem.code}"
        assert problem.retryable is (status in (408, 429, 500, 503))


async def test_examples_are_what_is_answered(
    client: httpx2.AsyncClient, examples: dict[int, dict[str, Any]]
) -> None:
    made = await client.post("/api/v1/jobs", json={**DAILY, "key": "billing/daily"}, headers=bearer())
    job = f"/api/v1/jobs/{made.json()['job_id']}"
    for name in ("two", "three", "four"):
        await client.patch(job, json={"name": name}, headers=bearer())
    large = b'"' + b"x" * 400_000 + b'"'
    asked: list[tuple[int, str, str, dict[str, Any]]] = [
        (400, "POST", "/jobs", {"content": b'{"cron": "0 9 * * *",}', "headers": JSON}),
        (401, "GET", "/jobs", {"headers": {"Authorization": ""}}),
        (403, "POST", "/jobs", {"json": DAILY, "headers": bearer(role=Role.VIEWER)}),
        (404, "GET", "/jobs/J-0d3x8m2k7q1vt", {}),
        (405, "DELETE", "/jobs", {}),
        (409, "POST", "/jobs", {"json": {**DAILY, "key": "billing/daily"}}),
        (412, "PATCH", job.removeprefix("/api/v1"), {"json": {"name": "x"}, "headers": {"If-Match": '"3"'}}),
        (413, "POST", "/jobs", {"content": large, "headers": JSON}),
        (415, "POST", "/jobs", {"content": b"a", "headers": {"Content-Type": "text/plain"}}),
        (422, "POST", "/jobs", {"json": {**DAILY, "cron": "0 25 * * *"}}),
    ]
    for status, method, path, more in asked:
        headers = {**bearer(), **more.pop("headers", {})}
        headers = {name: value for name, value in headers.items() if value}
        answer = await client.request(method, f"/api/v1{path}", headers=headers, **more)
        assert (answer.status_code, _shared(answer.json())) == (status, _shared(examples[status]))
    for _ in range(1_000):
        await client.get("/api/v1/whoami", headers=bearer(subject="eager"))
    answer = await client.get("/api/v1/whoami", headers=bearer(subject="eager"))
    assert (answer.status_code, _shared(answer.json())) == (429, _shared(examples[429]))
    assert {429, *(status for status, *_ in asked)} | MET_ELSEWHERE == set(examples)


def _shared(problem: dict[str, Any]) -> dict[str, Any]:
    return {**problem, "request_id": None}


async def test_a_body_that_nobody_asked_for_is_refused_as_described(
    client: httpx2.AsyncClient, document: dict[str, Any]
) -> None:
    """By what stands before all routes: so every change has these answers, those that take no body too."""
    for method, path, operation in operations(document):
        if method == "GET":
            continue
        assert {"413", "415"} <= set(operation["responses"]), f"{method} {path}"
        if method == "DELETE":
            place = re.sub(r"\{\w+\}", "J-0000000000000", path)
            large = await client.request(method, place, content=b"x" * 2_000_000, headers=bearer())
            packed = await client.request(
                method, place, content=b"x", headers={**bearer(), "Content-Encoding": "gzip"}
            )
            assert (large.status_code, packed.status_code) == (413, 415), path


def test_403_says_what_is_its_usual_reason(document: dict[str, Any]) -> None:
    told = document["paths"]["/api/v1/jobs"]["post"]["responses"]["403"]["description"]
    assert "role" in told
    assert "tenant" in told


def test_what_is_answered_anywhere_is_said_once(document: dict[str, Any]) -> None:
    for name in document["components"]["responses"]:
        assert f"#/components/responses/{name}" in document["info"]["description"]
    everywhere = {status for _, _, one in operations(document) for status in one["responses"]}
    assert not everywhere & {"405", "431"}


def test_texts_have_examples(document: dict[str, Any]) -> None:
    paths = document["paths"]
    [wait] = [one for one in paths["/api/v1/runs/{run_id}/log"]["get"]["parameters"] if one["name"] == "wait"]
    [ref] = [one for one in paths["/api/v1/jobs/resolve"]["get"]["parameters"] if one["name"] == "ref"]
    assert wait["schema"]["examples"]
    assert ref["schema"]["examples"]
    metrics = paths["/metrics"]["get"]["responses"]["200"]["content"]["text/plain"]["example"]
    assert "# TYPE hourhand_jobs gauge\n" in metrics
    stream = paths["/api/v1/events"]["get"]["responses"]["200"]["content"]["text/event-stream"]["example"]
    assert re.search(r"^event: run\.succeeded$", stream, re.MULTILINE)
