"""Merge patches (RFC 7396) of jobs: what a patch does not name stays as it is, `null` resets to the default.

Three things are not plain merging: another schedule takes the place of the present one with all that
belongs to it, a target of another type replaces the target, and a payload is replaced whole.
"""

from itertools import islice
from typing import Any

import msgspec

from hourhand.core.fault import Fault
from hourhand.core.identity import format_job_id
from hourhand.core.model import Job, OnceTiming
from hourhand.core.specification import MAX_NAME
from hourhand.services.jobs import NewJob
from hourhand.web.documents import RULES, DocumentRules, job_document, parse_document
from hourhand.web.faults import MAX_FAULTS, refusal, unknown_field
from hourhand.web.json_text import read_document
from hourhand.web.plain_texts import pointer_to
from hourhand.web.schema import (
    READ_ONLY,
    DstDocument,
    HttpTargetDocument,
    MisfireDocument,
    PythonTargetDocument,
    RetryDocument,
    ShellTargetDocument,
    target_kind,
)

_BELONGS_TO = {"cron": ("tz", "dst"), "every": ("phase",), "at": (), "after": ("wait",)}
_SCHEDULE_FIELDS = frozenset({"cron", "tz", "dst", "every", "phase", "at", "after", "wait"})
_FIELDS_IN = {
    name: frozenset(field for shape in shapes for field in shape.model_fields)
    for name, shapes in (
        ("dst", (DstDocument,)),
        ("retry", (RetryDocument,)),
        ("misfire", (MisfireDocument,)),
        ("target", (HttpTargetDocument, PythonTargetDocument, ShellTargetDocument)),
    )
}
_COPY = " (copy)"
_HINTS = {
    "state": "pause and resume by POST …/pause and …/resume, or patch paused",
    "paused_until": "give until to POST …/pause",
}


def read_patch(text: bytes) -> dict[str, Any]:
    """A patch as it came; Invalid where it names what cannot be changed."""
    patch = read_document(text, "a merge patch")
    faults = [
        Fault(pointer=f"/{name}", expected="a field that can be changed", got=name, hint=_HINTS.get(name))
        for name in sorted(READ_ONLY & patch.keys())
    ]
    faults += _strange_resets(patch)
    if faults:
        raise refusal(faults)
    return patch


def patched(job: Job, patch: dict[str, Any], now_at: int, *, rules: DocumentRules = RULES) -> NewJob:
    """What a job becomes by a patch."""
    document = job_document(job)
    change = dict(patch)
    _switch_schedule(document, change)
    _settle_target(document, change)
    kept = document.pop("payload")
    payload = {"payload": change.pop("payload")} if "payload" in change else {}
    resets = {name: None for name, value in change.items() if value is None}  # a misspelt one is a fault
    new = parse_document(merged(document, change) | resets | payload, now_at, rules=rules)
    if payload:
        return new
    return msgspec.structs.replace(new, spec=msgspec.structs.replace(new.spec, payload=kept))


def cloned(job: Job, patch: dict[str, Any], now_at: int, *, rules: DocumentRules = RULES) -> NewJob:
    """Another job like this one, changed by a patch; paused, so that nothing runs twice unless that is meant."""
    timing = job.spec.timing
    names_schedule = any(patch.get(name) is not None for name in _BELONGS_TO)
    if isinstance(timing, OnceTiming) and timing.at <= now_at and not names_schedule:
        hint = "give `at`, or another schedule"
        raise refusal(
            [Fault(pointer="/at", expected="a time to come", got="the job's, which has passed", hint=hint)]
        )
    name = patch["name"] if "name" in patch else _copy_name(job.spec.name)
    source = msgspec.structs.replace(job, spec=msgspec.structs.replace(job.spec, key=None, set_name=None))
    changes = {"note": f"copy of {format_job_id(job.id)}", "paused": True, **patch, "name": name}
    if changes["paused"] is False and "note" not in patch:
        changes["note"] = None
    return patched(source, changes, now_at, rules=rules)


def merged(value: Any, patch: Any) -> Any:
    """RFC 7396: what a patch makes of a value."""
    if not isinstance(patch, dict):
        return patch
    result = dict(value) if isinstance(value, dict) else {}
    for name, change in patch.items():
        if change is None:
            result.pop(name, None)
        else:
            result[name] = merged(result.get(name), change)
    return result


def _strange_resets(patch: dict[str, Any]) -> list[Fault]:
    """Fields of nested objects that are set to null and do not exist: merging would lose them without a word.

    A target may name those of every kind, since what another kind has goes with it.
    """
    strange = (
        (name, field, known)
        for name, known in _FIELDS_IN.items()
        if isinstance(patch.get(name), dict)
        for field, value in patch[name].items()
        if value is None and field not in known
    )
    return [
        unknown_field(pointer_to([name, field]), field, known)
        for name, field, known in islice(strange, MAX_FAULTS)
    ]


def _copy_name(name: str) -> str:
    return f"{name[: MAX_NAME - len(_COPY)]}{_COPY}" if name else ""


def _switch_schedule(document: dict[str, Any], change: dict[str, Any]) -> None:
    """Drop of the present schedule what does not belong to the one that the patch names."""
    named = [name for name in _BELONGS_TO if change.get(name) is not None]
    if len(named) != 1:
        return
    keep = {named[0], *_BELONGS_TO[named[0]]}
    if named[0] == "cron" and "=" in str(change["cron"]) and "tz" not in change:
        keep.discard("tz")  # the expression names its own zone
    for name in _SCHEDULE_FIELDS - keep:
        document.pop(name, None)


def _settle_target(document: dict[str, Any], change: dict[str, Any]) -> None:
    """Read short forms as a change of the URL, and let a target of another type replace the present one."""
    url = change.pop("callback_url", None)
    if isinstance(change.get("target"), str):
        url = change.pop("target")
    if url is not None and "target" not in change:
        change["target"] = {"type": "http", "url": url}
    elif url is not None:
        change["callback_url"] = url  # both are named: refused as it would be in a whole document
    target = change.get("target")
    names_kind = isinstance(target, dict) and not target.keys().isdisjoint(
        {"type", "function", "url", "argv"}
    )
    if names_kind and target_kind(target) != document["target"]["type"]:
        document["target"] = {}
