"""Dead letters: list, group, read, requeue, discard."""

from collections.abc import Awaitable, Sequence
from functools import partial
from typing import Annotated, Any, Literal, Protocol

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from hourhand.core.access import Role
from hourhand.core.fault import Fault
from hourhand.core.identity import RunKey, format_run_id, parse_job_id, parse_run_id
from hourhand.errors import Invalid, NotFound
from hourhand.ports.reading import DeadQuery
from hourhand.services.runs import MAX_AT_ONCE
from hourhand.web.access import needs
from hourhand.web.answers import dead_group_answer, dead_letter_answer, json_answer
from hourhand.web.context import WebContext, caller_of
from hourhand.web.cursors import page, read_cursor, write_cursor
from hourhand.web.faults import refusal, validated
from hourhand.web.fields import MAX_CONDITION, shown
from hourhand.web.json_text import read_object
from hourhand.web.names import parents_of_runs
from hourhand.web.openapi import problems, takes
from hourhand.web.requests import (
    CursorText,
    DryRun,
    Limit,
    StrictRoute,
    instant_in,
    job_filter_in,
    json_body,
    run_key_in,
)
from hourhand.web.routes.runs import RunIdText
from hourhand.web.schema import DeadFilterDocument, DeadRequeueDocument, DeadSelectionDocument
from hourhand.web.shapes.dead_letters import DeadChange, DeadGroupList, DeadLetterAnswer, DeadLetterList

router = APIRouter(tags=["dead letters"], route_class=StrictRoute)


class Change(Protocol):
    """Does something with dead letters; says which were there."""

    def __call__(self, tenant: str, keys: Sequence[RunKey], *, dry_run: bool) -> Awaitable[list[RunKey]]: ...


@router.get(
    "/dead-letters",
    summary="Runs that used up their tries",
    response_model=DeadLetterList | DeadGroupList,
    responses=problems(),
)
async def list_dead_letters(
    request: Request,
    job_id: Annotated[str | None, Query(description="Only of this job.")] = None,
    error: Annotated[
        str | None, Query(max_length=MAX_CONDITION, description="Only with this fingerprint.")
    ] = None,
    from_: Annotated[str | None, Query(alias="from", description="Failed at or after.")] = None,
    to: Annotated[str | None, Query(description="Failed at or before.")] = None,
    group_by: Annotated[
        Literal["error", "job"] | None, Query(description="Count them by cause or by job instead.")
    ] = None,
    limit: Limit = 50,
    cursor: CursorText = None,
) -> Response:
    """Newest first; with `group_by` the largest groups first, over all of them."""
    web, tenant = caller_of(request)
    query = DeadQuery(
        job_id=job_filter_in(job_id),
        fingerprint=error,
        failed_from=instant_in(from_, "from"),
        failed_to=instant_in(to, "to"),
        limit=limit,
    )
    if group_by is not None:
        return await _groups(web, tenant, group_by, query)
    place = read_cursor(cursor, "dead", numbers=3)
    if place is not None:
        query = DeadQuery(
            job_id=query.job_id,
            fingerprint=query.fingerprint,
            failed_from=query.failed_from,
            failed_to=query.failed_to,
            before=(place[0], place[1], place[2]),
            limit=limit,
        )
    found = await web.runs.dead_letters(tenant, query)
    onward = None if found.next_before is None else write_cursor("dead", *found.next_before)
    letters = [dead_letter_answer(letter) for letter in found.letters]
    body, headers = page(request, letters, onward, found.missing)
    return json_answer(body, headers=headers)


@router.post(
    "/dead-letters/requeue",
    summary="Send dead letters back",
    response_model=DeadChange,
    responses=problems(body=True),
    openapi_extra=takes(DeadRequeueDocument),
)
@needs(Role.OPERATOR)
async def requeue_dead_letters(request: Request, dry_run: DryRun = False) -> Response:
    """The same runs go on, under the same idempotency key, with all their tries again.

    With `downstream` the runs that were skipped because of them wait for their parents again.
    """
    web, tenant = caller_of(request)
    asked = validated(DeadRequeueDocument, read_object(await json_body(request), "ids or a filter"))
    requeue = partial(web.runs.requeue, downstream=bool(asked.downstream))
    return await _change(asked, web, tenant, requeue, dry_run)


@router.post(
    "/dead-letters/discard",
    summary="Remove dead letters",
    response_model=DeadChange,
    responses=problems(body=True),
    openapi_extra=takes(DeadSelectionDocument),
)
@needs(Role.OPERATOR)
async def discard_dead_letters(request: Request, dry_run: DryRun = False) -> Response:
    """History keeps them."""
    web, tenant = caller_of(request)
    asked = validated(DeadSelectionDocument, read_object(await json_body(request), "ids or a filter"))
    return await _change(asked, web, tenant, web.runs.discard, dry_run)


@router.get(
    "/dead-letters/{run_id}",
    summary="Read a dead letter with its run",
    response_model=DeadLetterAnswer,
    responses=problems(404),
)
async def read_dead_letter(request: Request, run_id: RunIdText) -> Response:
    """404 once it was requeued or discarded; the run itself stays at /runs/{run_id}."""
    web, tenant = caller_of(request)
    key = run_key_in(run_id)
    letters = await web.runs.dead_among(tenant, [key])
    if not letters:
        raise NotFound(f"{format_run_id(*key)} is not among the dead letters")
    run = await web.runs.get(tenant, key)
    return json_answer(dead_letter_answer(letters[0], run, await parents_of_runs(web, tenant, [run])))


async def _groups(web: WebContext, tenant: str, by: str, query: DeadQuery) -> Response:
    filters = (query.job_id, query.fingerprint, query.failed_from, query.failed_to)
    if any(one is not None for one in filters):
        expected = "no other filter beside group_by"
        raise Invalid(f"group_by: expected {expected}", [Fault(pointer="?group_by", expected=expected)])
    groups = await web.runs.dead_groups(tenant, by, query.limit)
    return json_answer({"data": [dead_group_answer(group) for group in groups], "next_cursor": None})


async def _change(
    asked: DeadSelectionDocument, web: WebContext, tenant: str, change: Change, dry_run: bool
) -> Response:
    if (asked.ids is None) == (asked.filter is None):
        got = "neither" if asked.ids is None else "both"
        raise refusal([Fault(pointer="", expected="either ids or filter", got=got)])
    if asked.filter is None:
        wanted = _keys(asked.ids or [])
        more = False
    else:
        wanted = await web.runs.matching(tenant, _query(asked.filter))
        more = len(wanted) == MAX_AT_ONCE
    is_dry = dry_run or bool(asked.dry_run)
    answer = _outcome(wanted, await change(tenant, wanted, dry_run=is_dry), more)
    return json_answer({**answer, "dry_run": True} if is_dry else answer)


def _keys(ids: list[str]) -> list[RunKey]:
    if not 1 <= len(ids) <= MAX_AT_ONCE:
        expected = f"1 to {MAX_AT_ONCE:,} run ids"
        raise refusal([Fault(pointer="/ids", expected=expected, got=f"{len(ids):,}")])
    keys, faults = [], []
    for index, text in enumerate(ids):
        try:
            keys.append(parse_run_id(text))
        except ValueError:
            expected = "a run id such as J-…@20261116T080000Z"
            faults.append(Fault(pointer=f"/ids/{index}", expected=expected, got=shown(text)))
    if faults:
        raise refusal(faults)
    return list(dict.fromkeys(keys))


def _query(asked: DeadFilterDocument) -> DeadQuery:
    job_id = None
    if asked.job_id is not None:
        try:
            job_id = parse_job_id(asked.job_id)
        except ValueError:
            fault = Fault(pointer="/filter/job_id", expected="a job id", got=shown(asked.job_id))
            raise refusal([fault]) from None
    return DeadQuery(job_id=job_id, fingerprint=asked.error, failed_from=asked.from_, failed_to=asked.to)


def _outcome(wanted: Sequence[RunKey], done: Sequence[RunKey], more: bool) -> dict[str, Any]:
    changed = set(done)
    return {
        "count": len(done),
        "run_ids": [format_run_id(*key) for key in done],
        "not_found": [format_run_id(*key) for key in wanted if key not in changed],
        "more": more,
    }
