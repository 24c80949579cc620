"""Backfills: runs for times that have passed. Ask for them, look at them, pause, resume, cancel."""

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request
from starlette.responses import Response

from hourhand.core.access import Role
from hourhand.core.backfill import DEFAULT_OPEN, Backfill, BackfillAction, BackfillSpec, Order, format_rate
from hourhand.core.fault import Fault
from hourhand.core.identity import format_backfill_id, format_job_id, parse_backfill_id
from hourhand.core.instant import format_instant
from hourhand.errors import Ambiguous, NotFound
from hourhand.ports.backfills import BackfillQuery
from hourhand.web.access import needs
from hourhand.web.answers import instant, json_answer
from hourhand.web.context import WebContext, caller_of
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
    job_filter_in,
    json_body,
)
from hourhand.web.schema import BackfillDocument
from hourhand.web.shapes.backfills import BackfillAnswer, BackfillList

router = APIRouter(tags=["backfills"], route_class=StrictRoute)

BackfillIdText = Annotated[str, Path(description="The backfill's id.", examples=["B-0d3x8m2k7q1vt"])]


@router.post(
    "/backfills",
    status_code=202,
    summary="Run a job for times that have passed",
    response_model=BackfillAnswer,
    responses=problems(409, 429, body=True),
    openapi_extra=takes(BackfillDocument),
)
@needs(Role.OPERATOR)
async def create_backfill(request: Request, dry_run: DryRun = False) -> Response:
    """The times of the job's present schedule that have no run yet, behind live traffic, at a pace of its own."""
    web, tenant = caller_of(request)
    asked = validated(BackfillDocument, read_object(await json_body(request), "a backfill"))
    try:
        job = await web.jobs.resolve(tenant, asked.job)
    except (NotFound, Ambiguous) as error:
        fault = Fault(pointer="/job", expected="a job's id, key or unambiguous name", got=shown(asked.job))
        raise refusal([fault]) from error
    spec = BackfillSpec(
        from_at=asked.from_,
        to_at=web.clock.now() if asked.to is None else asked.to,
        order=asked.order or Order.OLDEST,
        pace_us=asked.rate,
        max_open=DEFAULT_OPEN if asked.max_open is None else asked.max_open,
        note=asked.note,
        force=bool(asked.force),
    )
    made = await web.backfills.create(job, spec, dry_run=dry_run)
    if dry_run:
        return json_answer({**backfill_answer(made), "dry_run": True})
    location = f"{api_prefix(request)}/backfills/{format_backfill_id(made.id)}"
    return json_answer(backfill_answer(made), 202, {"Location": location})


@router.get(
    "/backfills", summary="List backfills, newest first", response_model=BackfillList, responses=problems()
)
async def list_backfills(
    request: Request,
    job_id: Annotated[str | None, Query(description="Only of this job.")] = None,
    limit: Limit = 50,
    cursor: CursorText = None,
) -> Response:
    """Those that are over too, as long as history is kept."""
    web, tenant = caller_of(request)
    place = read_cursor(cursor, "backfills")
    query = BackfillQuery(job_id=job_filter_in(job_id), before_id=place[0] if place else None, limit=limit)
    found = await web.backfills.page(tenant, query)
    onward = None if found.next_before_id is None else write_cursor("backfills", found.next_before_id)
    answers = [backfill_answer(one) for one in found.backfills]
    body, headers = page(request, answers, onward, found.missing)
    return json_answer(body, headers=headers)


@router.get(
    "/backfills/{backfill_id}",
    summary="Read a backfill",
    response_model=BackfillAnswer,
    responses=problems(404),
)
async def read_backfill(request: Request, backfill_id: BackfillIdText) -> Response:
    """How far it is; what has ended is counted within about a second."""
    web, tenant = caller_of(request)
    return json_answer(backfill_answer(await web.backfills.get(tenant, _id_in(backfill_id))))


@router.post(
    "/backfills/{backfill_id}/pause",
    summary="Pause a backfill",
    response_model=BackfillAnswer,
    responses=problems(404, 409, body=True),
)
@needs(Role.OPERATOR)
async def pause_backfill(request: Request, backfill_id: BackfillIdText, dry_run: DryRun = False) -> Response:
    """No more runs are made; those that were made go on."""
    web, tenant = caller_of(request)
    return await _change(request, web, tenant, backfill_id, BackfillAction.PAUSE, dry_run)


@router.post(
    "/backfills/{backfill_id}/resume",
    summary="Resume a backfill",
    response_model=BackfillAnswer,
    responses=problems(404, 409, body=True),
)
@needs(Role.OPERATOR)
async def resume_backfill(request: Request, backfill_id: BackfillIdText, dry_run: DryRun = False) -> Response:
    """Goes on with the times it was made for, also where the job was paused or given other times meanwhile."""
    web, tenant = caller_of(request)
    return await _change(request, web, tenant, backfill_id, BackfillAction.RESUME, dry_run)


@router.post(
    "/backfills/{backfill_id}/cancel",
    summary="Cancel a backfill",
    response_model=BackfillAnswer,
    responses=problems(404, 409, body=True),
)
@needs(Role.OPERATOR)
async def cancel_backfill(request: Request, backfill_id: BackfillIdText, dry_run: DryRun = False) -> Response:
    """Runs that nobody has taken yet are removed; what executes goes on to its end."""
    web, tenant = caller_of(request)
    return await _change(request, web, tenant, backfill_id, BackfillAction.CANCEL, dry_run)


def backfill_answer(backfill: Backfill) -> dict[str, Any]:
    """A backfill and how far it is."""
    spec, tally = backfill.spec, backfill.tally
    return {
        "backfill_id": format_backfill_id(backfill.id) if backfill.id else None,
        "job_id": format_job_id(backfill.job_id),
        "state": backfill.state,
        "from": format_instant(spec.from_at),
        "to": format_instant(spec.to_at),
        "order": spec.order,
        "rate": format_rate(spec.pace_us),
        "max_open": spec.max_open,
        "note": spec.note,
        "reason": backfill.reason,
        "total": tally.total,
        "done": tally.done,
        "open": tally.open,
        "succeeded": tally.succeeded,
        "failed": tally.failed,
        "skipped": tally.skipped,
        "cancelled": tally.cancelled,
        "already_there": tally.already,
        "created_at": format_instant(backfill.created_at),
        "updated_at": format_instant(backfill.updated_at),
        "finished_at": instant(backfill.finished_at),
    }


async def _change(
    request: Request, web: WebContext, tenant: str, text: str, action: BackfillAction, dry_run: bool
) -> Response:
    await empty_body(request)
    changed = await web.backfills.change(tenant, _id_in(text), action, dry_run=dry_run)
    answer = backfill_answer(changed)
    return json_answer({**answer, "dry_run": True} if dry_run else answer)


def _id_in(text: str) -> int:
    """The backfill id in a path; what is none does not exist."""
    try:
        return parse_backfill_id(text)
    except ValueError as error:
        raise NotFound(str(error)) from None
