"""Walks the description of the API: which headers each operation takes and gives, and that each is said once."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.dependencies.models import Dependant

from hourhand.core.access import is_tenant
from hourhand.web.cors import _SEEN, _SENT
from hourhand.web.headers import GIVEN, SENT
from tests.web.test_route_table import ROUTES, operations

ROLE = "x-hourhand-role"


@pytest.fixture
def document(app: FastAPI) -> dict[str, Any]:
    return app.openapi()


def headers_taken(operation: dict[str, Any]) -> set[str]:
    return {one["name"] for one in operation.get("parameters", ()) if one["in"] == "header"}


def headers_read(dependant: Dependant) -> Iterator[str]:
    yield from (field.alias for field in dependant.header_params)
    for one in dependant.dependencies:
        yield from headers_read(one)


def given(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any], int, set[str]]]:
    for method, path, operation in operations(document):
        for status, response in operation["responses"].items():
            yield method, path, operation, int(status), set(response["headers"])


def test_every_header_of_an_answer_is_a_component_that_is_referenced(document: dict[str, Any]) -> None:
    used = set()
    for _, _, operation in operations(document):
        for response in operation["responses"].values():
            for name, header in response["headers"].items():
                assert header == {"$ref": f"#/components/headers/{name}"}
                used.add(name)
    assert used == set(document["components"]["headers"]) == set(GIVEN)
    for name, component in GIVEN.items():
        assert component["description"], name
        assert component["schema"], name


def test_browsers_of_other_sites_may_send_and_see_what_is_described() -> None:
    assert set(GIVEN) == set(_SEEN.split(", "))
    assert set(SENT) <= set(_SENT.split(", "))


def test_every_operation_gives_what_its_kind_gives(document: dict[str, Any]) -> None:
    for method, path, operation, status, names in given(document):
        where, guarded = f"{method} {path} {status}", ROLE in operation
        keyed = guarded and method in ("POST", "PATCH")
        assert "X-Request-Id" in names, where
        assert ({"RateLimit", "RateLimit-Policy"} <= names) is guarded, where
        assert status not in (429, 503) or "Retry-After" in names, where
        assert ("Idempotency-Replayed" in names) is (keyed and status not in (401, 403, 429, 500, 503)), where
        pages = status == 200 and any(one["name"] == "cursor" for one in operation["parameters"])
        assert ("Link" in names) is pages, where
        assert ("WWW-Authenticate" in names) is (status == 401), where


def test_every_operation_takes_what_its_kind_takes(document: dict[str, Any]) -> None:
    for method, path, operation in operations(document):
        where, taken, guarded = f"{method} {path}", headers_taken(operation), ROLE in operation
        assert ("Hourhand-Tenant" in taken) is guarded, where
        assert ("Idempotency-Key" in taken) is (guarded and method in ("POST", "PATCH")), where
        assert ("If-Match" in taken) is ("412" in operation["responses"]), where
        whole = where in ("POST /api/v1/jobs", "POST /api/v1/jobs/{job_id}/clone")
        assert ("Prefer" in taken) is (whole or "204" in operation["responses"]), where
        creates_only = "If-None-Match: *" in operation.get("description", "")
        assert ("If-None-Match" in taken) is ("304" in operation["responses"] or creates_only), where
        for one in operation["parameters"]:
            if one["name"] in SENT:
                assert one["schema"] == SENT[one["name"]]["schema"], where
                assert one["description"], where
                assert not one["required"], where


def test_headers_that_a_route_reads_by_itself_are_described(document: dict[str, Any]) -> None:
    """What FastAPI hands to a route is in the document; what a version is checked by is handed to it."""
    read = {name for route in ROUTES for name in headers_read(route.dependant)}
    assert read >= {"If-Match", "If-None-Match", "Idempotency-Key", "Last-Event-ID"}
    described: set[str] = set().union(*(headers_taken(one) for _, _, one in operations(document)))
    assert read <= described
    assert len([1 for _, _, one in operations(document) if "If-Match" in headers_taken(one)]) >= 9


def test_what_is_made_says_where_it_is(document: dict[str, Any]) -> None:
    every = list(given(document))
    located = {f"{method} {path}" for method, path, _, _, names in every if "Location" in names}
    made = {f"{method} {path}" for method, path, _, status, _ in every if status in (201, 202)}
    assert made - located == {"POST /api/v1/tokens"}, "tokens are only listed"


def test_lines_are_described(document: dict[str, Any]) -> None:
    listed = document["paths"]["/api/v1/jobs"]["get"]["responses"]["200"]["content"]
    assert listed["application/x-ndjson"]["schema"] == {"$ref": "#/components/schemas/JobAnswer"}
    assert "application/json" in listed
    bulk = document["paths"]["/api/v1/jobs/bulk"]["post"]["requestBody"]["content"]
    assert set(bulk) == {"application/json", "application/x-ndjson"}


@pytest.mark.parametrize("name", ["acme", "a", "a" * 63, "a" * 64, "A", "", "-a", "a b", "a_b.c-d", "é"])
def test_the_description_of_a_tenant_is_the_rule(name: str) -> None:
    described = re.search(SENT["Hourhand-Tenant"]["schema"]["pattern"], name) is not None
    assert described is is_tenant(name)
