"""The API keeps what the last release promised; and whoever compares them notices what breaks."""

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest

from tools.api_changes import RELEASED, breaking_changes, present_document

Change = Callable[[dict[str, Any]], None]


def test_nothing_of_the_last_release_is_broken() -> None:
    released = json.loads(RELEASED.read_text())
    assert len(released["paths"]) > 40
    assert breaking_changes(released, present_document()) == []


def change(*path: str, to: Any = None, drop: bool = False) -> Change:
    def apply(document: dict[str, Any]) -> None:
        at: Any = document
        for step in path[:-1]:
            at = at[step]
        if drop:
            del at[path[-1]]
        else:
            at[path[-1]] = to

    return apply


SMALL: dict[str, Any] = {
    "paths": {
        "/jobs": {
            "post": {
                "parameters": [
                    {"name": "limit", "in": "query", "schema": {"type": "integer", "maximum": 10}}
                ],
                "requestBody": {
                    "required": True,
                    "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Job"}}},
                },
                "responses": {
                    "201": {
                        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Made"}}}
                    }
                },
            }
        }
    },
    "components": {
        "schemas": {
            "Job": {
                "type": "object",
                "properties": {
                    "name": {"type": "string"},
                    "kind": {"anyOf": [{"enum": ["a", "b"], "type": "string"}, {"type": "null"}]},
                },
                "required": ["name"],
            },
            "Made": {
                "type": "object",
                "properties": {
                    "id": {"type": "string"},
                    "at": {"type": "array", "items": {"type": "string"}},
                },
                "required": ["id"],
            },
        }
    },
}
POST = ("paths", "/jobs", "post")
JOB = ("components", "schemas", "Job")
MADE = ("components", "schemas", "Made")
LIMIT = {"name": "limit", "in": "query"}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (change("paths", to={}), "POST /jobs: is gone"),
        (change(*POST, "parameters", to=[]), "the query parameter limit is gone"),
        (
            change(*POST, "parameters", to=[{**LIMIT, "schema": {"type": "integer", "maximum": 5}}]),
            "maximum is 5 now",
        ),
        (
            change(*POST, "parameters", to=[{**LIMIT, "required": True, "schema": {"type": "integer"}}]),
            "the query parameter limit is required now",
        ),
        (
            change(
                *POST,
                "parameters",
                to=[{**LIMIT, "schema": {"anyOf": [{"type": "integer", "maximum": 5}, {"type": "null"}]}}],
            ),
            "maximum is 5 now",
        ),
        (change(*JOB, "required", to=["name", "kind"]), "the field kind is required now"),
        (change(*JOB, "properties", "name", drop=True), "the field name is gone"),
        (change(*JOB, "properties", "name", to={"type": "integer"}), "may not be string any more"),
        (change(*JOB, "properties", "kind", to={"type": "string", "enum": ["a"]}), 'may not be "b" any more'),
        (change(*MADE, "properties", "id", drop=True), "the field id is gone"),
        (change(*MADE, "properties", "id", to={"type": ["string", "null"]}), "/id: may be null now"),
        (change(*MADE, "required", to=[]), "the field id may be missing now"),
        (change(*MADE, "properties", "at", "items", to={"type": "integer"}), "/at[]: may be integer now"),
        (change(*POST, "responses", to={"200": {}}), "does not answer 201 any more"),
    ],
)
def test_what_breaks_is_noticed(changes: Change, words: str) -> None:
    new = copy.deepcopy(SMALL)
    changes(new)
    found = breaking_changes(SMALL, new)
    assert any(words in line for line in found), found


@pytest.mark.parametrize(
    "changes",
    [
        change("paths", "/runs", to={"get": {"responses": {}}}),
        change(*JOB, "properties", "more", to={"type": "string"}),
        change(*MADE, "properties", "more", to={"type": "string"}),
        change(*JOB, "properties", "name", to={"type": ["string", "integer"]}),
        change(
            *JOB,
            "properties",
            "kind",
            "anyOf",
            to=[{"enum": ["a", "b", "c"], "type": "string"}, {"type": "null"}],
        ),
        change(*POST, "parameters", to=[{**LIMIT, "schema": {"type": "integer", "maximum": 50}}]),
        change(*POST, "responses", "409", to={}),
        change(
            *POST,
            "parameters",
            to=[
                {
                    **LIMIT,
                    "schema": {"anyOf": [{"type": "integer", "maximum": 10}, {"type": "null"}]},
                }
            ],
        ),
    ],
)
def test_what_does_not_break_is_let_be(changes: Change) -> None:
    new = copy.deepcopy(SMALL)
    changes(new)
    assert breaking_changes(SMALL, new) == []
