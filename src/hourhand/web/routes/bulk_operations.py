"""Operations: one action on all jobs or dead letters that match. Ask for one, look at it, cancel it."""

from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Path, Request
from starlette.responses import Response

from hourhand.core.access import Role
from hourhand.core.backfill import format_rate
from hourhand.core.fault import Fault
from hourhand.core.identity import format_job_id, format_operation_id, parse_job_id, parse_operation_id
from hourhand.core.instant import format_instant
from hourhand.core.operation import Action, JobFilter, LetterFilter, Operation, OperationSpec
from hourhand.errors import NotAllowed, NotFound
from hourhand.web.access import CALLER, Caller, needs
from hourhand.web.answers import instant, json_answer
from hourhand.web.context import context_of
from hourhand.web.cursors import page, read_cursor, write_cursor
from hourhand.web.faults import refusal, validated
from hourhand.web.fields import shown
from hourhand.web.json_text import read_object
from hourhand.web.openapi import problems, takes
from hourhand.web.requests import (
    CursorText,
    DryRun,
    Limit,
    StrictRoute,
    api_prefix,
    empty_body,
    json_body,
)
from hourhand.web.schema import OperationDocument, OperationFilterDocument
from hourhand.web.shapes.operations import OperationAnswer, OperationList

router = APIRouter(tags=["operations on many"], route_class=StrictRoute)

OperationIdText = Annotated[str, Path(description="The operation's id.", examples=["O-0d3x8m2k7q1vt"])]
_OF_JOBS = ("state", "tag", "set", "name", "failing")
_OF_LETTERS = ("job_id", "error", "from_", "to")


@router.post(
    "/operations",
    status_code=202,
    summary="Do one thing with all that match",
    response_model=OperationAnswer,
    responses=problems(409, 429, body=True),
    openapi_extra=takes(OperationDocument),
)
@needs(Role.OPERATOR)
async def create_operation(request: Request, dry_run: DryRun = False) -> Response:
    """Answers at once; the work is done page by page, at the rate that was asked for, and survives restarts.

    What is created, or fails, after it was asked for is not touched. Look first with `dry_run`, then name what was
    seen as `expected_count`.
    """
    web, caller = context_of(request), _caller(request)
    asked = validated(OperationDocument, read_object(await json_body(request), "an operation"))
    if asked.action is Action.DELETE and not caller.principal.role.covers(Role.EDITOR):
        raise NotAllowed(f"deleting jobs needs the role {Role.EDITOR}; the token has {caller.principal.role}")
    is_dry = dry_run or bool(asked.dry_run)
    made = await web.operations.create(
        caller.tenant,
        _spec(asked),
        caller.principal,
        expected_count=asked.expected_count,
        dry_run=is_dry,
    )
    if is_dry:
        return json_answer({**operation_answer(made), "dry_run": True})
    location = f"{api_prefix(request)}/operations/{format_operation_id(made.id)}"
    return json_answer(operation_answer(made), 202, {"Location": location})


@router.get(
    "/operations", summary="List operations, newest first", response_model=OperationList, responses=problems()
)
async def list_operations(request: Request, limit: Limit = 50, cursor: CursorText = None) -> Response:
    """Those that are over too, as long as history is kept."""
    place = read_cursor(cursor, "operations")
    web, tenant = context_of(request), _caller(request).tenant
    found = await web.operations.page(tenant, place[0] if place else None, limit)
    onward = None if found.next_before_id is None else write_cursor("operations", found.next_before_id)
    answers = [operation_answer(one) for one in found.operations]
    body, headers = page(request, answers, onward, found.missing)
    return json_answer(body, headers=headers)


@router.get(
    "/operations/{operation_id}",
    summary="Read an operation",
    response_model=OperationAnswer,
    responses=problems(404),
)
async def read_operation(request: Request, operation_id: OperationIdText) -> Response:
    """How far it is, and what could not be done."""
    web, tenant = context_of(request), _caller(request).tenant
    return json_answer(operation_answer(await web.operations.get(tenant, _id_in(operation_id))))


@router.post(
    "/operations/{operation_id}/cancel",
    summary="Cancel an operation",
    response_model=OperationAnswer,
    responses=problems(404, 409, body=True),
)
@needs(Role.OPERATOR)
async def cancel_operation(
    request: Request, operation_id: OperationIdText, dry_run: DryRun = False
) -> Response:
    """It ends where it is; what is done stays done."""
    await empty_body(request)
    web, tenant = context_of(request), _caller(request).tenant
    answer = operation_answer(await web.operations.cancel(tenant, _id_in(operation_id), dry_run=dry_run))
    return json_answer({**answer, "dry_run": True} if dry_run else answer)


def operation_answer(operation: Operation) -> dict[str, Any]:
    """An operation and how far it is."""
    spec = operation.spec
    return {
        "operation_id": format_operation_id(operation.id) if operation.id else None,
        "action": spec.action,
        "filter": _filter_answer(spec),
        "state": operation.state,
        "rate": format_rate(spec.pace_us),
        "note": spec.note,
        "matched": operation.matched,
        "matched_is_exact": operation.is_all,
        "done": operation.done,
        "left_alone": operation.left_alone,
        "failed": operation.failed,
        "failures": [{"id": one.what, "detail": one.why} for one in operation.failures],
        "by": operation.subject,
        "created_at": format_instant(operation.created_at),
        "updated_at": format_instant(operation.updated_at),
        "finished_at": instant(operation.finished_at),
    }


def _filter_answer(spec: OperationSpec) -> dict[str, Any]:
    """The filter as it was asked for, without what was left open."""
    if not spec.action.is_of_letters:
        jobs = spec.jobs
        named: dict[str, Any] = {
            "state": jobs.state,
            "tag": jobs.tag,
            "set": jobs.set_name,
            "name": jobs.name_prefix,
            "failing": jobs.failing or None,
        }
    else:
        letters = spec.letters
        named = {
            "job_id": None if letters.job_id is None else format_job_id(letters.job_id),
            "error": letters.fingerprint,
            "from": instant(letters.failed_from),
            "to": instant(letters.failed_to),
        }
    return {name: value for name, value in named.items() if value is not None}


def _spec(asked: OperationDocument) -> OperationSpec:
    spec = OperationSpec(action=asked.action, pace_us=asked.rate, note=asked.note)
    strange = _OF_JOBS if asked.action.is_of_letters else _OF_LETTERS
    about = "dead letters" if asked.action.is_of_letters else "jobs"
    faults = [
        Fault(
            pointer=f"/filter/{name.rstrip('_')}",
            expected=f"a condition for {about}, since the action is {asked.action}",
            got=shown(value),
        )
        for name in strange
        if (value := getattr(asked.filter, name)) is not None
    ]
    if faults:
        raise refusal(faults)
    if asked.action.is_of_letters:
        return msgspec.structs.replace(spec, letters=_letters(asked.filter))
    return msgspec.structs.replace(spec, jobs=_jobs(asked.filter))


def _jobs(asked: OperationFilterDocument) -> JobFilter:
    return JobFilter(
        state=asked.state,
        tag=asked.tag,
        set_name=asked.set,
        name_prefix=asked.name,
        failing=bool(asked.failing),
    )


def _letters(asked: OperationFilterDocument) -> LetterFilter:
    job_id = None
    if asked.job_id is not None:
        try:
            job_id = parse_job_id(asked.job_id)
        except ValueError:
            fault = Fault(pointer="/filter/job_id", expected="a job id", got=shown(asked.job_id))
            raise refusal([fault]) from None
    return LetterFilter(job_id=job_id, fingerprint=asked.error, failed_from=asked.from_, failed_to=asked.to)


def _caller(request: Request) -> Caller:
    caller: Caller = request.scope[CALLER]
    return caller


def _id_in(text: str) -> int:
    """The operation id in a path; what is none does not exist."""
    try:
        return parse_operation_id(text)
    except ValueError as error:
        raise NotFound(str(error)) from None
