"""Runs across jobs: list, read, their logs, cancel, rerun."""

import re
from typing import Annotated

from fastapi import APIRouter, Path, Query, Request
from starlette.responses import Response

from hourhand.core.access import Role
from hourhand.core.fault import Fault
from hourhand.core.identity import format_run_id
from hourhand.core.instant import HOUR_US, SECOND_US
from hourhand.core.lifecycle import FINAL, State
from hourhand.core.log import LogPlace
from hourhand.errors import Conflict, Invalid
from hourhand.ports.reading import RunQuery
from hourhand.services.run_logs import MAX_WAIT_S
from hourhand.web.access import needs
from hourhand.web.answers import json_answer, log_answer, run_answer
from hourhand.web.context import caller_of
from hourhand.web.cursors import page, read_cursor, write_cursor
from hourhand.web.names import parents_of_runs
from hourhand.web.openapi import problems
from hourhand.web.requests import (
    CursorText,
    DryRun,
    Limit,
    RequestKey,
    StrictRoute,
    api_prefix,
    empty_body,
    instant_in,
    job_filter_in,
    run_key_in,
)
from hourhand.web.shapes.logs import LogAnswer
from hourhand.web.shapes.runs import RunAnswer, RunList, Started

router = APIRouter(tags=["runs"], route_class=StrictRoute)

_PLACE = re.compile(r"(\d{1,10})-(\d{1,10})", re.ASCII)

RunIdText = Annotated[str, Path(description="The run's id.", examples=["J-0d3x8m2k7q1vt@20261116T080000Z"])]


@router.get("/runs", summary="Runs across jobs, newest first", response_model=RunList, responses=problems())
async def list_runs(
    request: Request,
    state: Annotated[list[State] | None, Query(description="Only these; may be repeated.")] = None,
    job_id: Annotated[str | None, Query(description="Only of this job.")] = None,
    from_: Annotated[
        str | None, Query(alias="from", description="Finished at or after; an hour before `to` unless given.")
    ] = None,
    to: Annotated[str | None, Query(description="Finished at or before; now unless given.")] = None,
    limit: Limit = 50,
    cursor: CursorText = None,
) -> Response:
    """Finished runs in a window of time; with state RUNNING, RETRYING or PENDING those that hold a slot now."""
    web, tenant = caller_of(request)
    place = read_cursor(cursor, "runs", numbers=3, or_more=True, instants=2)
    if place is None:
        given_to = instant_in(to, "to")
        to_at = web.clock.now() + SECOND_US if given_to is None else given_to
        given_from = instant_in(from_, "from")
        from_at = to_at - HOUR_US if given_from is None else given_from
    else:
        from_at, to_at = place[:2]  # the window of the first page holds for all
    if from_at > to_at:
        raise Invalid(
            "from: expected a time before to", [Fault(pointer="?from", expected="a time before to")]
        )
    query = RunQuery(
        from_at=from_at,
        to_at=to_at,
        job_id=job_filter_in(job_id),
        states=tuple(state or ()),
        before=place[2:] if place else None,
        limit=limit,
    )
    found = await web.runs.page(tenant, query)
    onward = None if found.next_before is None else write_cursor("runs", from_at, to_at, *found.next_before)
    names = await parents_of_runs(web, tenant, found.runs)
    body, headers = page(request, [run_answer(run, names) for run in found.runs], onward, found.missing)
    return json_answer(body, headers=headers)


@router.post(
    "/runs/{run_id}/rerun",
    status_code=202,
    summary="Repeat a run that has ended",
    response_model=Started,
    responses=problems(404, 409, 429, body=True),
)
@needs(Role.OPERATOR)
async def rerun_run(
    request: Request, run_id: RunIdText, dry_run: DryRun = False, request_key: RequestKey = None
) -> Response:
    """A new run with an id of its own, of the job as it is now; it names this one as `rerun_of`."""
    web, tenant = caller_of(request)
    await empty_body(request)
    made = await web.runs.rerun(tenant, run_key_in(run_id), request_key=request_key or None, dry_run=dry_run)
    if made is None:
        return json_answer({"run_id": None, "dry_run": True})
    location = f"{api_prefix(request)}/runs/{format_run_id(*made)}"
    return json_answer({"run_id": format_run_id(*made)}, 202, {"Location": location})


@router.get("/runs/{run_id}", summary="Read a run", response_model=RunAnswer, responses=problems(404))
async def read_run(request: Request, run_id: RunIdText) -> Response:
    """Wherever it is: planned, waiting, running, finished or among the dead letters."""
    web, tenant = caller_of(request)
    run = await web.runs.get(tenant, run_key_in(run_id))
    return json_answer(run_answer(run, await parents_of_runs(web, tenant, [run])))


@router.get(
    "/runs/{run_id}/log", summary="What a run said", response_model=LogAnswer, responses=problems(404)
)
async def read_log(
    request: Request,
    run_id: RunIdText,
    attempt: Annotated[
        int | None, Query(ge=1, le=1 << 31, description="Only of this attempt; all of them unless given.")
    ] = None,
    after: Annotated[
        str | None, Query(description="Go on behind this: `next_after` of the answer before.")
    ] = None,
    limit: Limit = 100,
    wait: Annotated[
        float,
        Query(
            ge=0,
            le=MAX_WAIT_S,
            description="Seconds to wait for more, where there is nothing yet.",
            examples=[5],
        ),
    ] = 0,
) -> Response:
    """Output of commands, and what functions log. To follow it ask again with `after` and `wait` until `done`."""
    web, tenant = caller_of(request)
    page = await web.logs.read(
        tenant,
        run_key_in(run_id),
        attempt=attempt,
        after=_place_in(after),
        limit=limit,
        wait_s=wait,
        stopped=lambda: web.events.is_closed,
    )
    return json_answer(log_answer(page), headers={"Cache-Control": "no-store"})


@router.post(
    "/runs/{run_id}/cancel",
    summary="Cancel a run",
    response_model=RunAnswer,
    responses={
        202: {"model": RunAnswer, "description": "Its worker was asked and will confirm."},
        **problems(404, 409, body=True),
    },
)
@needs(Role.OPERATOR)
async def cancel_run(request: Request, run_id: RunIdText, dry_run: DryRun = False) -> Response:
    """200 when it is cancelled, 202 when its worker was asked to, 409 when it had ended."""
    web, tenant = caller_of(request)
    await empty_body(request)
    key = run_key_in(run_id)
    if dry_run:
        run = await web.runs.get(tenant, key)
        if run.state in FINAL:
            raise Conflict(f"the run has already ended as {run.state}")
        names = await parents_of_runs(web, tenant, [run])
        return json_answer({**run_answer(run, names), "dry_run": True})
    run = await web.runs.cancel(tenant, key)
    names = await parents_of_runs(web, tenant, [run])
    return json_answer(run_answer(run, names), 200 if run.state in FINAL else 202)


def _place_in(text: str | None) -> LogPlace | None:
    if text is None:
        return None
    found = _PLACE.fullmatch(text)
    if found is None:
        fault = Fault(pointer="?after", expected="the next_after of this log", got=repr(text[:60]))
        raise Invalid("after: expected the next_after of this log, such as 1-7", [fault])
    return LogPlace(int(found[1]), int(found[2]))
