"""What a server has for a job that does not say; an operator may have changed some of it.

Asked by creating a job that is not kept. Whoever may create none, as a viewer or at a quota, has it from the server's
description of its API, which tells nothing of the operator's settings: what depends on them counts as unknown.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import hourhand
from hourhand.errors import HourhandError

if TYPE_CHECKING:
    from hourhand.client import Client

NEEDED = {"http": "url", "python": "function", "shell": "argv"}  # what a target cannot be without
NESTED = frozenset({"dst", "retry", "misfire"})
_BESIDE = {"wait": "1d"}  # defaults of what a job has only beside another schedule than that of _NO_JOB
_NO_JOB = {"cron": "@yearly", "target": {"type": "http", "url": "https://example.com"}}
_JOB = "JobDocument"
_TARGETS = {"http": "HttpTargetDocument", "python": "PythonTargetDocument", "shell": "ShellTargetDocument"}
_BY_SETTINGS = {"MisfireDocument": frozenset({"grace"}), "HttpTargetDocument": frozenset({"timeout"})}


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """Defaults as far as a description of the API tells them; what is missing is unknown."""

    job: Mapping[str, Any] = field(default_factory=dict)
    targets: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


class Defaults:
    """What the server has for a job that does not say; what is missing is unknown."""

    def __init__(self, client: "Client") -> None:
        self._client = client
        self._targets: dict[str, Mapping[str, Any]] = {}
        self._may_create = True
        try:
            self.job: Mapping[str, Any] = {**_BESIDE, **client.jobs.create(_NO_JOB, dry_run=True)}
            self._targets["http"] = self.job["target"]
        except HourhandError:
            self._may_create = False
            self.job = self._described.job

    def target(self, target: Mapping[str, Any]) -> Mapping[str, Any]:
        """The fields of a target of this type, unless it names them; empty where they are unknown."""
        kind = str(target.get("type"))
        if kind not in self._targets:
            self._targets[kind] = self._ask(kind, target)
        return self._targets[kind]

    def _ask(self, kind: str, target: Mapping[str, Any]) -> Mapping[str, Any]:
        needed = NEEDED.get(kind)
        if needed is None:
            return {}
        if not self._may_create:
            return self._described.targets.get(kind, {})
        document = {**_NO_JOB, "target": {"type": kind, needed: target[needed]}}
        try:
            asked: Mapping[str, Any] = self._client.jobs.create(document, dry_run=True)["target"]
        except HourhandError:
            return {}
        return {name: value for name, value in asked.items() if name != needed}

    @cached_property
    def _described(self) -> Described:
        from hourhand.client.exchange import Patience, document_in, exchange
        from hourhand.client.flow import Request

        request = Request(method="GET", path="/openapi.json", repeatable=True)
        server = self._client.url
        return described(document_in(self._client.run(exchange(request, Patience(), server)), server))


def described(api: Mapping[str, Any]) -> Described:
    """The defaults that an OpenAPI document tells. Of another version nobody here knows what is left to settings there."""
    if api.get("info", {}).get("version") != hourhand.__version__:
        return Described()
    shapes = api["components"]["schemas"]
    job = {**_of_shape(shapes, _JOB)}
    for name in NESTED:
        job[name] = _of_shape(shapes, _shape_named(shapes[_JOB]["properties"][name]))
    return Described(job=job, targets={kind: _of_shape(shapes, name) for kind, name in _TARGETS.items()})


def _of_shape(shapes: Mapping[str, Any], name: str) -> dict[str, Any]:
    unknown: frozenset[str] = _BY_SETTINGS.get(name, frozenset())
    fields: Mapping[str, Any] = shapes[name]["properties"]
    return {one: told["default"] for one, told in fields.items() if "default" in told and one not in unknown}


def _shape_named(told: Mapping[str, Any]) -> str:
    """The shape of a field that may be left out."""
    return next(str(one["$ref"]).rpartition("/")[2] for one in told["anyOf"] if "$ref" in one)
