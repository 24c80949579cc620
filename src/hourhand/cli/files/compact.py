"""Jobs as short documents: what is as the server would have it anyway is left out. Pure but for asking for defaults."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from hourhand.errors import HourhandError

if TYPE_CHECKING:
    from hourhand.client import Client

_ONLY_READ = frozenset({
    "job_id", "state", "version", "paused_until", "created_at", "updated_at",
    "next_fire_time", "schedule_in_words", "effective_from", "dry_run",
})  # fmt: skip
_FIRST = ("key", "name")
_ALWAYS = frozenset({"key", "cron", "every", "phase", "at", "after", "target"})  # what makes a job this job
_NESTED = frozenset({"dst", "retry", "misfire"})
_NEEDED = {"http": "url", "python": "function", "shell": "argv"}  # what a target cannot be without
_BESIDE = {"wait": "1d"}  # defaults of what a job has only beside another schedule than that of _NO_JOB
_NO_JOB = {"cron": "@yearly", "target": {"type": "http", "url": "https://example.com"}}

Document = dict[str, Any]


class Defaults:
    """What the server has for a job that does not say; an operator may have changed some of it."""

    def __init__(self, client: "Client") -> None:
        self._client = client
        self.job: Mapping[str, Any] = client.jobs.create(_NO_JOB, dry_run=True)
        self._targets: dict[str, Mapping[str, Any]] = {"http": self.job["target"]}

    def target(self, target: Mapping[str, Any]) -> Mapping[str, Any]:
        """The fields of a target of this type, unless it names them; empty where that cannot be asked."""
        kind = str(target.get("type"))
        if kind not in self._targets:
            self._targets[kind] = self._ask(kind, target)
        return self._targets[kind]

    def _ask(self, kind: str, target: Mapping[str, Any]) -> Mapping[str, Any]:
        needed = _NEEDED.get(kind)
        if needed is None:
            return {}
        document = {**_NO_JOB, "target": {"type": kind, needed: target[needed]}}
        try:
            asked: Mapping[str, Any] = self._client.jobs.create(document, dry_run=True)["target"]
        except HourhandError:
            return {}
        return {name: value for name, value in asked.items() if name != needed}


def compact(job: Mapping[str, Any], defaults: Defaults, parent_key: Callable[[str], str]) -> Document:
    """A job's document with only what differs from the defaults, its key first."""
    names = (*_FIRST, *(name for name in job if name not in _FIRST and name not in _ONLY_READ))
    document: Document = {}
    for name in names:
        value = job.get(name)
        if value is None or (name not in _ALWAYS and value == defaults.job.get(name, _BESIDE.get(name))):
            continue
        if name in _NESTED:
            value = _differing(value, defaults.job.get(name) or {})
        elif name == "target":
            value = _short_target(value, defaults.target(value))
        elif name == "after":
            value = sorted(parent_key(parent) for parent in value)  # the server has them by id
        document[name] = value
    return document


def _differing(value: Mapping[str, Any], defaults: Mapping[str, Any]) -> Document:
    return {name: one for name, one in value.items() if one != defaults.get(name)}


def _short_target(target: Mapping[str, Any], defaults: Mapping[str, Any]) -> Document | str:
    needed = _NEEDED.get(str(target["type"]))
    short = {
        name: value
        for name, value in target.items()
        if name in ("type", needed) or (value is not None and value != defaults.get(name))
    }
    if short.keys() == {"type", "url"}:
        return str(short["url"])
    return short
