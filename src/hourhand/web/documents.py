"""Jobs as people write them, and back: JSON documents <-> `NewJob` and `Job`.

Short forms (a URL as target, `callback_url`, a payload as text) become the one full form here, and a job's
own document always reads back as the same job. Shapes are `schema`'s, patches `patches`'; what a job may
be beyond its shape is checked by the services.
"""

from typing import Any

import msgspec

from hourhand.core.fault import Fault
from hourhand.core.identity import format_job_id
from hourhand.core.instant import format_duration, format_instant
from hourhand.core.model import (
    MAX_PAYLOAD_BYTES,
    AfterTiming,
    CronTiming,
    EveryTiming,
    HttpTarget,
    Job,
    JobSpec,
    JobState,
    Misfire,
    OnceTiming,
    PythonTarget,
    Retry,
    ShellTarget,
    Target,
    Timing,
)
from hourhand.core.url import url_faults
from hourhand.services.jobs import NewJob
from hourhand.web.faults import refusal, validated
from hourhand.web.fields import UNLIMITED, shown
from hourhand.web.json_text import NULL, payload_of, read_document, same_json
from hourhand.web.schema import (
    READ_ONLY,
    HttpTargetDocument,
    JobDocument,
    MisfireDocument,
    PythonTargetDocument,
    RetryDocument,
    ShellTargetDocument,
)
from hourhand.web.timings import timing_of

_AS_WRITTEN = (
    "name", "key", "shard_key", "starts_at", "ends_at", "max_runs",
    "priority", "durability", "pool", "delivery", "overlap",
)  # fmt: skip


class DocumentRules(msgspec.Struct, frozen=True, kw_only=True):
    """What an operator decides about documents: the largest payload, and what applies to jobs that do not say."""

    payload_bytes: int = MAX_PAYLOAD_BYTES
    misfire_grace_us: int = Misfire().grace_us
    target_timeout_us: int = HttpTarget(url="").timeout_us


RULES = DocumentRules()


def parse_document(
    data: bytes | dict[str, Any],
    now_at: int,
    *,
    rules: DocumentRules = RULES,
    replaces: Job | None = None,
    key: str | None = None,
) -> NewJob:
    """The job that a document asks for; Invalid with every fault of its shape.

    With `replaces`, what only creation or a person in charge decides stays as it is unless it is named:
    shard_key, set, the phase of the same interval, and whether the job is paused. A `key` that the address
    names need not be repeated in the document, but must not be another there.
    """
    value = read_document(data, "a job document") if isinstance(data, bytes) else dict(data)
    payload = value.pop("payload", None)
    for name in READ_ONLY & value.keys():
        del value[name]
    document = validated(JobDocument, value)
    faults = _key_faults(document, key)
    timing = timing_of(document, now_at, replaces, faults)
    target = _target(document, rules, faults)
    if timing is None or target is None or faults:
        raise refusal(faults)
    given = _given(document, rules)
    if key is not None:
        given["key"] = key
    if replaces is not None:
        given.setdefault("shard_key", replaces.spec.shard_key)
        given.setdefault("set_name", replaces.spec.set_name)
    raw = NULL if payload is None else payload_of(payload, rules.payload_bytes)
    if replaces is not None and same_json(raw, replaces.spec.payload):
        raw = replaces.spec.payload  # spaces and the order of names are no change
    spec = JobSpec(timing=timing, target=target, payload=raw, **given)
    paused, note = _pause(document, replaces)
    return NewJob(spec=spec, paused=paused, note=note)


def still_paused(new: NewJob, job: Job) -> NewJob:
    """What an upsert makes of a job: one that a person paused stays so, whatever the document says."""
    if job.state is not JobState.PAUSED or new.paused:
        return new
    return NewJob(spec=new.spec, paused=True, note=job.note)


def job_document(job: Job) -> dict[str, Any]:
    """The full document of a job; `parse_document` reads it back as the same job."""
    return {**spec_document(job.spec), "paused": job.state is JobState.PAUSED, "note": job.note}


def spec_document(spec: JobSpec) -> dict[str, Any]:
    """Everything of a document but whether it is paused."""
    return {
        "name": spec.name,
        "key": spec.key,
        "shard_key": spec.shard_key,
        "tags": list(spec.tags),
        "set": spec.set_name,
        **_timing_document(spec.timing),
        "starts_at": _instant_or_none(spec.starts_at),
        "ends_at": _instant_or_none(spec.ends_at),
        "max_runs": spec.max_runs,
        "target": _target_document(spec.target),
        "payload": spec.payload,
        "priority": spec.priority.name,
        "durability": spec.durability,
        "pool": spec.pool,
        "timeout": format_duration(spec.timeout_us),
        "delivery": spec.delivery,
        "retry": {
            "max": spec.retry.max,
            "first": format_duration(spec.retry.first_us),
            "factor": _plain(spec.retry.factor),
            "max_delay": format_duration(spec.retry.max_delay_us),
        },
        "concurrency": UNLIMITED if spec.concurrency is None else spec.concurrency,
        "overlap": spec.overlap,
        "misfire": {
            "policy": spec.misfire.policy,
            "grace": format_duration(spec.misfire.grace_us),
            "limit": spec.misfire.limit,
        },
        "jitter": format_duration(spec.jitter_us),
    }


def _key_faults(document: JobDocument, key: str | None) -> list[Fault]:
    if key is None or document.key is None or document.key == key:
        return []
    return [Fault(pointer="/key", expected=f"the key of the address, {shown(key)}", got=shown(document.key))]


def _pause(document: JobDocument, replaces: Job | None) -> tuple[bool, str | None]:
    if replaces is None or document.paused is not None:
        return bool(document.paused), document.note
    note = replaces.note if document.note is None else document.note
    return replaces.state is JobState.PAUSED, note


def _target(document: JobDocument, rules: DocumentRules, faults: list[Fault]) -> Target | None:
    if (document.target is None) == (document.callback_url is None):
        got = "neither" if document.target is None else "both"
        faults.append(Fault(pointer="/target", expected="either target or callback_url", got=got))
        return None
    match document.target:
        case PythonTargetDocument(function=function):
            faults += _function_faults(function)
            return PythonTarget(function=function)
        case ShellTargetDocument() as shell:
            return msgspec.structs.replace(ShellTarget(argv=tuple(shell.argv)), **_shell_fields(shell))
        case HttpTargetDocument() as http:
            faults += url_faults(http.url)
            target = HttpTarget(url=http.url, timeout_us=rules.target_timeout_us)
            return msgspec.structs.replace(target, **_http_fields(http, faults))
        case str() as url:
            faults += url_faults(url, "/target")
            return HttpTarget(url=url, timeout_us=rules.target_timeout_us)
        case _:
            url = str(document.callback_url)
            faults += url_faults(url, "/callback_url")
            return HttpTarget(url=url, timeout_us=rules.target_timeout_us)


def _http_fields(http: HttpTargetDocument, faults: list[Fault]) -> dict[str, Any]:
    if http.timeout == 0:
        faults.append(Fault(pointer="/target/timeout", expected="more than 0", got="0s"))
    fields = {"method": http.method, "headers": http.headers, "timeout_us": http.timeout}
    return {name: value for name, value in fields.items() if value is not None}


def _shell_fields(shell: ShellTargetDocument) -> dict[str, Any]:
    codes = {"success_codes": shell.success_codes, "no_retry_codes": shell.no_retry_codes}
    lists = {name: tuple(value) for name, value in codes.items() if value is not None}
    return {**_named({"env": shell.env, "cwd": shell.cwd}), **lists}


def _function_faults(function: str) -> list[Fault]:
    module, colon, name = function.partition(":")
    words = [*module.split("."), *name.split(".")]
    if colon and all(word.isidentifier() for word in words):
        return []
    return [
        Fault(
            pointer="/target/function",
            expected="module and function, such as app.tasks:daily_report",
            got=shown(function),
        )
    ]


def _given(document: JobDocument, rules: DocumentRules) -> dict[str, Any]:
    """The named fields in the job's own units; what is not named is the job's default."""
    values = document.__dict__
    given = {name: value for name in _AS_WRITTEN if (value := values[name]) is not None}
    if document.set is not None:
        given["set_name"] = document.set
    if document.tags is not None:
        given["tags"] = tuple(document.tags)
    if document.timeout is not None:
        given["timeout_us"] = document.timeout
    if document.jitter is not None:
        given["jitter_us"] = document.jitter
    if document.concurrency is not None:
        given["concurrency"] = None if document.concurrency == UNLIMITED else document.concurrency
    if document.retry is not None:
        given["retry"] = _retry(document.retry)
    if document.misfire is not None or rules.misfire_grace_us != RULES.misfire_grace_us:
        given["misfire"] = _misfire(document.misfire or MisfireDocument(), rules)
    return given


def _retry(document: RetryDocument) -> Retry:
    fields = {
        "max": document.max,
        "first_us": document.first,
        "factor": document.factor,
        "max_delay_us": document.max_delay,
    }
    return msgspec.structs.replace(Retry(), **_named(fields))


def _misfire(document: MisfireDocument, rules: DocumentRules) -> Misfire:
    fields = {"policy": document.policy, "grace_us": document.grace, "limit": document.limit}
    return msgspec.structs.replace(Misfire(grace_us=rules.misfire_grace_us), **_named(fields))


def _named(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _timing_document(timing: Timing) -> dict[str, Any]:
    match timing:
        case CronTiming():
            dst = {"gap": timing.gap, "fold": timing.fold}
            return {"cron": timing.expression, "tz": timing.tz, "dst": dst}
        case EveryTiming():
            return {"every": format_duration(timing.interval_us), "phase": format_instant(timing.phase_at)}
        case OnceTiming():
            return {"at": format_instant(timing.at)}
        case AfterTiming():
            parents = [format_job_id(parent) for parent in timing.parents]
            return {"after": parents, "wait": format_duration(timing.wait_us)}


def _target_document(target: Target) -> dict[str, Any]:
    match target:
        case HttpTarget():
            return {
                "type": "http",
                "url": target.url,
                "method": target.method,
                "headers": target.headers,
                "timeout": format_duration(target.timeout_us),
            }
        case PythonTarget():
            return {"type": "python", "function": target.function}
        case ShellTarget():
            return {
                "type": "shell",
                "argv": list(target.argv),
                "env": target.env,
                "cwd": target.cwd,
                "success_codes": list(target.success_codes),
                "no_retry_codes": list(target.no_retry_codes),
            }


def _instant_or_none(at: int | None) -> str | None:
    return None if at is None else format_instant(at)


def _plain(number: float) -> int | float:
    return int(number) if number == int(number) else number
