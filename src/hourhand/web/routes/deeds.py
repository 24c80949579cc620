"""Who did what."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from hourhand.core.access import MAX_SUBJECT, Role
from hourhand.core.deeds import names_of_acts
from hourhand.errors import NotAllowed
from hourhand.ports.deeds import DeedQuery
from hourhand.web.access import CALLER, Caller, needs
from hourhand.web.answers import json_answer
from hourhand.web.context import context_of
from hourhand.web.cursors import page, read_cursor, write_cursor
from hourhand.web.faults import refusal, unknown_field
from hourhand.web.openapi import problems
from hourhand.web.requests import CursorText, Limit, StrictRoute, instant_in, job_filter_in
from hourhand.web.shapes.deeds import DeedList, deed_answer

router = APIRouter(tags=["deeds"], route_class=StrictRoute)


@router.get("/deeds", summary="Who did what, newest first", response_model=DeedList, responses=problems())
@needs(Role.ADMIN)
async def list_deeds(
    request: Request,
    job_id: Annotated[
        str | None, Query(description="Only to this job and its runs; deleted ones too.")
    ] = None,
    subject: Annotated[
        str | None,
        Query(
            max_length=MAX_SUBJECT,
            description="Only by this one, as `subject` has it: a token with its id.",
            examples=["ci:T-0d3x8m2k7q1vt"],
        ),
    ] = None,
    action: Annotated[
        str | None, Query(description="Only this; `job.*` means all of a kind.", examples=["job.delete"])
    ] = None,
    from_: Annotated[str | None, Query(alias="from", description="At this time or after.")] = None,
    to: Annotated[str | None, Query(description="Before this time.")] = None,
    tenant: Annotated[
        str | None,
        Query(
            description='For those who run the system: of this tenant; "*": what belongs to none, such as their own tokens.',
            examples=["acme"],
        ),
    ] = None,
    limit: Limit = 50,
    cursor: CursorText = None,
) -> Response:
    """One for each thing that was changed, as long as history is kept. A page may hold fewer than `limit` although there are more."""
    web = context_of(request)
    names = names_of_acts()
    if action is not None and action not in names:
        raise refusal([unknown_field("?action", action, names, "an action, or all of a kind")])
    query = DeedQuery(
        job_id=job_filter_in(job_id),
        subject=subject,
        action=action,
        from_at=instant_in(from_, "from"),
        to_at=instant_in(to, "to"),
        before=read_cursor(cursor, "deeds", numbers=1, or_more=True),
        limit=limit,
    )
    found = await web.store.deeds(_whose(request, tenant), query)
    onward = None if found.next_before is None else write_cursor("deeds", *found.next_before)
    body, headers = page(request, [deed_answer(one) for one in found.deeds], onward, found.missing)
    return json_answer(body, headers=headers)


def _whose(request: Request, asked: str | None) -> str:
    caller: Caller = request.scope[CALLER]
    if asked is None or asked == caller.tenant:
        return caller.tenant
    if not caller.principal.runs_the_system:
        raise NotAllowed("only those who run the system see what was done in another tenant than their own")
    return asked
