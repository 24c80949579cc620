"""What is wrong with a document, in plain words: the validator's findings as faults with JSON pointers.

Values of headers and payloads may be secret and appear in no fault; a field that does not exist is named
with the one that was probably meant, and without its value.
"""

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from hourhand.core.fault import Fault
from hourhand.core.schedule.errors import nearest
from hourhand.errors import Invalid
from hourhand.web.fields import shown
from hourhand.web.json_text import json_kind
from hourhand.web.plain_texts import pointer_to
from hourhand.web.report_document import ReportDocument
from hourhand.web.schema import (
    BackfillDocument,
    DeadFilterDocument,
    DeadRequeueDocument,
    DeadSelectionDocument,
    DstDocument,
    HttpTargetDocument,
    JobDocument,
    MisfireDocument,
    OperationDocument,
    OperationFilterDocument,
    PauseDocument,
    PythonTargetDocument,
    QuotaDocument,
    RetryDocument,
    RunDocument,
    ScheduleDocument,
    ShellTargetDocument,
    SkipDocument,
    TokenDocument,
)
from hourhand.web.webhook_document import WebhookDocument

TARGET_KINDS = ("http", "python", "shell")
_LATER_TARGETS = ("grpc", "container")

_ELSEWHERE = {  # what other schedulers call a field whose name here is not near
    "timezone": "tz",
    "time_zone": "tz",
    "schedule": "cron",
    "crontab": "cron",
    "interval": "every",
    "run_at": "at",
    "eta": "at",
    "start_date": "starts_at",
    "end_date": "ends_at",
    "url": "callback_url",
    "queue": "pool",
    "args": "payload",
    "kwargs": "payload",
    "body": "payload",
    "data": "payload",
    "labels": "tags",
    "retries": "retry",
    "max_retries": "retry",
    "depends_on": "after",
    "enabled": "paused",
}
_EXPECTED = {
    "string_type": "a text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "finite_number": "a finite number",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "an object",
    "model_type": "an object",
    "model_attributes_type": "an object",
    "string_unicode": "a text in UTF-8",
}
_NESTED: dict[tuple[str, ...], type[BaseModel]] = {
    ("dst",): DstDocument,
    ("retry",): RetryDocument,
    ("misfire",): MisfireDocument,
    ("target", "http"): HttpTargetDocument,
    ("target", "python"): PythonTargetDocument,
    ("target", "shell"): ShellTargetDocument,
    ("filter",): DeadFilterDocument,
}
MAX_FAULTS = 20

Document = TypeVar(
    "Document",
    QuotaDocument,
    JobDocument,
    PauseDocument,
    SkipDocument,
    BackfillDocument,
    DeadSelectionDocument,
    DeadRequeueDocument,
    RunDocument,
    ScheduleDocument,
    DeadFilterDocument,
    OperationDocument,
    ReportDocument,
    TokenDocument,
    WebhookDocument,
)


def validated(model: type[Document], value: dict[str, Any]) -> Document:
    """The document behind a JSON object; Invalid with a fault for each field that is wrong."""
    try:
        return model.model_validate(value)
    except ValidationError as error:
        raise refusal(faults_of(error, model)) from None


def faults_of(error: ValidationError, model: type[BaseModel]) -> list[Fault]:
    """One fault per finding."""
    return [_fault(found, model) for found in error.errors(include_url=False)[:MAX_FAULTS]]


def refusal(faults: Sequence[Fault]) -> Invalid:
    """The error for faults, told by the first of them."""
    return Invalid(told(faults[0]), faults)


def told(fault: Fault) -> str:
    """A fault as a sentence."""
    where = fault.pointer.lstrip("/") or "the document"
    words = f"{where}: expected {fault.expected}"
    if fault.got is not None:
        words += f", got {fault.got}"
    return f"{words}; {fault.hint}" if fault.hint else words


def unknown_field(
    pointer: str, name: str, known: Iterable[str], expected: str = "a field that exists"
) -> Fault:
    """The fault of a field that does not exist, with the one that was probably meant."""
    known = sorted(known)
    meant = elsewhere if (elsewhere := _ELSEWHERE.get(name.lower())) in known else nearest(name, known)
    return Fault(
        pointer=pointer,
        expected=expected,
        got=shown(name),
        hint=f"did you mean {meant}?" if meant else f"allowed: {', '.join(known) or 'none'}",
    )


def _fault(found: Any, model: type[BaseModel]) -> Fault:
    kind, steps, value = found["type"], tuple(found["loc"]), found.get("input")
    pointer = pointer_to(_without_tag(steps))
    match kind:
        case "misfit":
            context = found["ctx"]
            return Fault(
                pointer=pointer, expected=context["expected"], got=context["got"], hint=context["hint"]
            )
        case "extra_forbidden":
            return unknown_field(pointer, str(steps[-1]), _known(model, steps[:-1]))
        case "missing":
            return Fault(pointer=pointer, expected="a value", got="nothing")
        case "union_tag_invalid" | "union_tag_not_found":
            return _target_fault(value)
        case "literal_error":
            return Fault(pointer=pointer, expected=str(found["ctx"]["expected"]), got=json_kind(value))
        case _:
            return Fault(pointer=pointer, expected=_EXPECTED.get(kind, "another value"), got=json_kind(value))


def _target_fault(value: Any) -> Fault:
    kind = value.get("type") if isinstance(value, dict) else None
    hint = f"{kind} targets are not available in this version" if kind in _LATER_TARGETS else None
    allowed = f"{', '.join(TARGET_KINDS[:-1])} or {TARGET_KINDS[-1]}"
    return Fault(pointer="/target/type", expected=allowed, got=shown(kind), hint=hint)


def _known(model: type[BaseModel], steps: tuple[str | int, ...]) -> list[str]:
    place = tuple(str(step) for step in steps)
    at = _NESTED.get(place, model)
    if model is OperationDocument and place == ("filter",):
        at = OperationFilterDocument
    return [info.alias or name for name, info in at.model_fields.items()]


def _without_tag(steps: tuple[str | int, ...]) -> tuple[str | int, ...]:
    """A target's steps without the kind that the validator puts between."""
    return (steps[0], *steps[2:]) if len(steps) > 1 and steps[0] == "target" else steps
