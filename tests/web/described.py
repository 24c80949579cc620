"""Holds answers against the description of the API: a header that it declares anywhere is declared where it came."""

import re
from functools import cache
from typing import Any

import httpx2
from fastapi import FastAPI

from hourhand.web.routes import ALIAS, PREFIX

_Operations = list[tuple[re.Pattern[str], dict[str, Any]]]


def check_headers(app: FastAPI, method: str, path: str, answer: httpx2.Response) -> None:
    """AssertionError for a header that the operation's answer of this status does not declare."""
    declared, operations = _described(app.openapi)
    path = PREFIX + path.removeprefix(ALIAS) if path.startswith(f"{ALIAS}/") else path
    for pattern, methods in operations:
        response = methods.get(method.lower(), {}).get("responses", {}).get(str(answer.status_code))
        if response is None or pattern.fullmatch(path) is None:
            continue
        missing = {name for name in declared if name in answer.headers} - set(response["headers"])
        assert not missing, f"{method} {path} answers {answer.status_code} with {sorted(missing)}, undeclared"
        return


@cache
def _of_all() -> list[tuple[list[str], _Operations]]:
    return []  # the description is the same whatever an application is made of, so it is made once


def _described(describe: Any) -> tuple[list[str], _Operations]:
    if not _of_all():
        document = describe()
        paths = sorted(document["paths"].items(), key=lambda item: item[0].count("{"))  # plain words first
        operations = [(re.compile(_pattern(path)), one) for path, one in paths]
        _of_all().append((list(document["components"]["headers"]), operations))
    return _of_all()[0]


def _pattern(path: str) -> str:
    return re.sub(r"\{(\w+)\}", lambda match: ".+" if match[1] == "key" else "[^/]+", path)
