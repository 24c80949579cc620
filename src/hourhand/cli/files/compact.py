"""Jobs as short documents: what is as the server would have it anyway is left out. Pure but for asking for defaults."""

from collections.abc import Callable, Mapping
from typing import Any

from hourhand.cli.files.defaults import NEEDED, NESTED, Defaults

_ONLY_READ = frozenset({
    "job_id", "state", "version", "paused_until", "created_at", "updated_at",
    "next_fire_time", "schedule_in_words", "effective_from", "dry_run",
})  # fmt: skip
_FIRST = ("key", "name")
_ALWAYS = frozenset({"key", "cron", "every", "phase", "at", "after", "target"})  # what makes a job this job

Document = dict[str, Any]


def compact(job: Mapping[str, Any], defaults: Defaults, parent_key: Callable[[str], str]) -> Document:
    """A job's document with only what differs from the defaults, its key first."""
    names = (*_FIRST, *(name for name in job if name not in _FIRST and name not in _ONLY_READ))
    document: Document = {}
    for name in names:
        value = job.get(name)
        if value is None or (name not in _ALWAYS and value == defaults.job.get(name)):
            continue
        if name in NESTED:
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
    needed = NEEDED.get(str(target["type"]))
    short = {
        name: value
        for name, value in target.items()
        if name in ("type", needed) or (value is not None and value != defaults.get(name))
    }
    if short.keys() == {"type", "url"}:
        return str(short["url"])
    return short
