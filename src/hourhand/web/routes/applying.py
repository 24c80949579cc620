"""Many jobs made what their documents say, by key: what `hourhand apply` asks for."""

import asyncio
from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from hourhand.core.fault import Fault
from hourhand.core.identity import format_job_id
from hourhand.core.instant import format_instant
from hourhand.core.model import CronTiming, Job, JobState
from hourhand.core.moves import MOST_WALKED, PLAN_US, Moves, moves, tells_fires
from hourhand.errors import HourhandError, Unavailable
from hourhand.services.applying import Action, Applied, Applying, Change, Wanted
from hourhand.services.foreseen import Foreseen
from hourhand.services.jobs import MAX_BULK, NewJob
from hourhand.web.answers import in_words, json_answer
from hourhand.web.changes import field_changes
from hourhand.web.context import WebContext, caller_of
from hourhand.web.documents import job_document, parse_document, still_paused
from hourhand.web.faults import refusal
from hourhand.web.fields import shown
from hourhand.web.json_text import read_document
from hourhand.web.lists import listed_documents
from hourhand.web.many_problems import ManyProblems
from hourhand.web.names import Names, parents_of_jobs
from hourhand.web.openapi import problems, takes_many
from hourhand.web.problems import REQUEST_ID, in_our_words
from hourhand.web.references import parents_named, referenced
from hourhand.web.requests import DryRun, StrictRoute
from hourhand.web.schema import JobDocument
from hourhand.web.shapes.batches import ApplyAnswer

router = APIRouter(tags=["jobs"], route_class=StrictRoute)

SHOWN_TIMES = 3
_BREATH = 10  # documents read before other work gets its turn
MOST_WALKED_AT_ONCE = (
    10 * MOST_WALKED
)  # fires that one request walks to tell how they move; a fraction of a second


@router.post(
    "/jobs/apply",
    summary="Make many jobs what their documents say, by key",
    response_model=ApplyAnswer,
    responses=problems(body=True),
    openapi_extra=takes_many(JobDocument, MAX_BULK, lines=False),
)
async def apply_jobs(
    request: Request,
    take_over: Annotated[
        bool, Query(description="Also those that belong to another set.", examples=[False])
    ] = False,
    dry_run: DryRun = False,
) -> Response:
    """A JSON list of up to 1,000 documents, each with a key. What is as its document says is left alone.

    Answers 200 with the fate of each and, where it was changed, the difference; a dry run also what becomes of its
    fires in the next 7 days. Never un-pauses. A one-time job
    that is not there and whose time has passed is not created: it may have run and been forgotten.
    """
    web, tenant = caller_of(request)
    documents = await listed_documents(request, MAX_BULK)
    results: list[dict[str, Any]] = [{"index": index, "key": None} for index in range(len(documents))]
    foreseen = web.jobs.foresee(tenant) if dry_run else None
    refused = ManyProblems(request.scope.get(REQUEST_ID))
    wanted: list[Wanted] = []
    places: list[int] = []
    keys: set[str] = set()
    for index, text in enumerate(documents):
        if index % _BREATH == _BREATH - 1:
            await asyncio.sleep(0)
        try:
            one = _wanted(web, tenant, text, foreseen)
            if one.key in keys:
                raise refusal([Fault(pointer="/key", expected="each key once", got=shown(one.key))])
        except HourhandError as error:
            results[index] |= _failure(error, request, refused)
        else:
            keys.add(one.key)
            wanted.append(one)
            results[index]["key"] = one.key
            places.append(index)
    applying = Applying(web.jobs, tenant, foreseen=foreseen, take_over=take_over)
    answers = await applying.apply(wanted)
    if answers and all(isinstance(answer, Unavailable) for answer in answers):
        raise answers[0]  # type: ignore[misc] # nothing was applied, and all of it may be sent again
    after = [answer.after for answer in answers if isinstance(answer, Applied) and answer.after]
    names = await parents_of_jobs(web, tenant, after)
    walks = _Walks(web.clock.now(), MOST_WALKED_AT_ONCE)
    for index, answer in zip(places, answers, strict=True):
        if isinstance(answer, Exception):
            results[index] |= _failure(answer, request, refused)
            continue
        results[index] |= _success(web, answer, names)
        if dry_run and answer.action in (Action.CREATED, Action.CHANGED):
            results[index]["fires"] = walks.told(answer)
            await asyncio.sleep(0)
    counts = {action: sum(one["action"] == action for one in results) for action in (*Action, "failed")}
    body: dict[str, Any] = {**counts, "results": results}
    return json_answer({**body, "dry_run": True} if dry_run else body)


def _wanted(web: WebContext, tenant: str, text: bytes, foreseen: Foreseen | None) -> Wanted:
    document = read_document(text, "a job document")
    key = document.get("key")
    if not isinstance(key, str) or not key:
        raise refusal([Fault(pointer="/key", expected="a key: jobs are applied by it", got=shown(key))])

    async def prepare() -> Change:
        resolved = await referenced(web, tenant, document, foreseen)

        def change(job: Job | None, now_at: int) -> NewJob:
            new = parse_document(resolved, now_at, rules=web.settings.documents, replaces=job)
            return new if job is None else still_paused(new, job)

        return change

    return Wanted(key=key, after=tuple(parents_named(document)), prepare=prepare)


def _success(web: WebContext, applied: Applied, names: Names) -> dict[str, Any]:
    job, before = applied.after, applied.before
    if job is None:
        return {"action": applied.action, "status": 200, "job_id": None}
    timing = job.spec.timing
    answer: dict[str, Any] = {
        "action": applied.action,
        "status": 201 if applied.action is Action.CREATED else 200,
        "job_id": format_job_id(job.id) if job.id else None,
        "version": job.version,
        "paused": job.state is JobState.PAUSED,
    }
    if applied.action is Action.UNCHANGED:
        return answer
    answer |= {
        "schedule_in_words": in_words(job, names),
        "tz": timing.tz if isinstance(timing, CronTiming) else "UTC",
        "next_after": _times(web, job),
    }
    if before is not None:
        answer["next_before"] = _times(web, before)
        answer["changes"] = field_changes(job_document(before), job_document(job))
    return answer


class _Walks:
    """What becomes of fires, job by job, as long as not too many had to be walked."""

    def __init__(self, now_at: int, most: int) -> None:
        self._now_at = now_at
        self._left = most

    def told(self, applied: Applied) -> dict[str, Any] | None:
        """Of one job; None where it follows others, before or after."""
        both = (applied.before, applied.after)
        if not all(tells_fires(job) for job in both if job is not None):
            return None
        until = self._now_at + PLAN_US
        found = moves(*both, self._now_at, until, min(self._left, MOST_WALKED))
        self._left -= min(self._left, MOST_WALKED, found.before + found.after)
        return moves_answer(found, self._now_at, until)


def moves_answer(found: Moves, from_at: int, to_at: int) -> dict[str, Any]:
    """What becomes of a job's fires, as clients read it."""
    return {
        "from": format_instant(from_at),
        "to": format_instant(to_at),
        "before": found.before,
        "after": found.after,
        "added": found.added,
        "removed": found.removed,
        "moved": found.moved,
        "added_at": [format_instant(at) for at in found.added_at],
        "removed_at": [format_instant(at) for at in found.removed_at],
        "moved_at": [{"from": format_instant(a), "to": format_instant(b)} for a, b in found.moved_at],
    }


def _times(web: WebContext, job: Job) -> list[str]:
    return [format_instant(at) for at in web.jobs.next_times(job, SHOWN_TIMES)]


def _failure(reason: Exception, request: Request, told: ManyProblems) -> Mapping[str, Any]:
    error = in_our_words(reason, request.scope)
    return {"action": "failed", "status": error.status, "error": told.told(error)}
