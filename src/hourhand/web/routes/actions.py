"""What one asks of a job: pause, resume, run; and its status, history, coming times and versions."""

from typing import Annotated

from fastapi import APIRouter, Header, Query, Request
from starlette.responses import Response

from hourhand.core.identity import format_job_id, format_run_id
from hourhand.core.instant import SECOND_US, format_instant
from hourhand.core.model import Job
from hourhand.core.schedule import Occurrence, preview
from hourhand.web.answers import (
    in_words,
    json_answer,
    missed_answers,
    run_answer,
    status_answer,
    time_answers,
    version_answers,
)
from hourhand.web.context import WebContext, caller_of
from hourhand.web.cursors import page, read_cursor, write_cursor
from hourhand.web.faults import validated
from hourhand.web.json_text import read_object
from hourhand.web.names import parents_of_jobs, parents_of_runs
from hourhand.web.openapi import problems, takes
from hourhand.web.requests import (
    CursorText,
    DryRun,
    Limit,
    StrictRoute,
    api_prefix,
    empty_body,
    job_id_in,
    json_body,
)
from hourhand.web.routes.jobs import JobIdText, changed_answer
from hourhand.web.schema import PauseDocument, RunDocument
from hourhand.web.shapes import JobAnswer, MissedList, NextTimes, RunList, Started, StatusAnswer, VersionList

router = APIRouter(tags=["jobs"], route_class=StrictRoute)

RequestKey = Annotated[
    str | None,
    Header(alias="Idempotency-Key", max_length=255, description="The same key gives the same run."),
]


@router.post(
    "/jobs/{job_id}/pause",
    summary="Pause a job",
    response_model=JobAnswer,
    responses=problems(404, body=True),
    openapi_extra=takes(PauseDocument, required=False),
)
async def pause_job(request: Request, job_id: JobIdText, dry_run: DryRun = False) -> Response:
    """Takes effect at `effective_from`; what passes while it is paused is not made up for."""
    web, tenant = caller_of(request)
    body = await json_body(request)
    asked = validated(PauseDocument, read_object(body, "a note and until") if body.strip() else {})
    changed = await web.jobs.pause(
        tenant, job_id_in(job_id), note=asked.note, until_at=asked.until, dry_run=dry_run
    )
    return await changed_answer(web, changed, dry_run)


@router.post(
    "/jobs/{job_id}/resume",
    summary="Resume a job",
    response_model=JobAnswer,
    responses=problems(404, body=True),
)
async def resume_job(request: Request, job_id: JobIdText, dry_run: DryRun = False) -> Response:
    """Makes runs again from `effective_from` on."""
    web, tenant = caller_of(request)
    await empty_body(request)
    changed = await web.jobs.resume(tenant, job_id_in(job_id), dry_run=dry_run)
    return await changed_answer(web, changed, dry_run)


@router.post(
    "/jobs/{job_id}/run",
    status_code=202,
    summary="Run a job now, beside its schedule",
    response_model=Started,
    responses=problems(404, 429, body=True),
    openapi_extra=takes(RunDocument, required=False),
)
async def run_job(
    request: Request,
    job_id: JobIdText,
    dry_run: DryRun = False,
    request_key: RequestKey = None,
) -> Response:
    """The run waits for a free slot like any other. With `downstream` all that follow the job run after it."""
    web, tenant = caller_of(request)
    body = (await json_body(request)).strip()
    asked = validated(RunDocument, {} if body in (b"", b"null") else read_object(body, "how to run it"))
    downstream, number = bool(asked.downstream), job_id_in(job_id)
    more = {"followed_by": len(await web.graphs.followers(tenant, number))} if downstream else {}
    if dry_run:
        await web.jobs.get(tenant, number)
        return json_answer({"run_id": None, **more, "dry_run": True})
    key = await web.jobs.run_now(tenant, number, request_key=request_key or None, downstream=downstream)
    run_id = format_run_id(*key)
    location = f"{api_prefix(request)}/runs/{run_id}"
    return json_answer({"run_id": run_id, **more}, 202, {"Location": location})


@router.get(
    "/jobs/{job_id}/status",
    summary="What a job is up to",
    response_model=StatusAnswer,
    responses=problems(404),
)
async def job_status(request: Request, job_id: JobIdText) -> Response:
    """The newest run that is due and neither skipped nor cancelled speaks for the job; PENDING before the first."""
    web, tenant = caller_of(request)
    job = await web.jobs.get(tenant, job_id_in(job_id))
    return json_answer(status_answer(job, await web.runs.status(job, web.jobs.next_at(job))))


@router.get(
    "/jobs/{job_id}/history",
    summary="A job's runs, newest first",
    response_model=RunList,
    responses=problems(404),
)
async def job_history(
    request: Request,
    job_id: JobIdText,
    coming: Annotated[bool, Query(description="False leaves out those whose time lies ahead.")] = True,
    limit: Limit = 50,
    cursor: CursorText = None,
) -> Response:
    """The scheduled and running ones are included."""
    web, tenant = caller_of(request)
    place = read_cursor(cursor, "history")
    job = await web.jobs.get(tenant, job_id_in(job_id))
    # A manual run may be named a few microseconds after the moment at which it was asked for.
    newest_at = None if coming else web.clock.now() + SECOND_US
    runs = await web.runs.history(job, before_at=place[0] if place else newest_at, limit=limit)
    onward = write_cursor("history", runs[-1].scheduled_at) if len(runs) == limit else None
    names = await parents_of_runs(web, tenant, runs)
    body, headers = page(request, [run_answer(run, names) for run in runs], onward)
    return json_answer(body, headers=headers)


@router.get(
    "/jobs/{job_id}/next", summary="A job's coming times", response_model=NextTimes, responses=problems(404)
)
async def next_times(
    request: Request,
    job_id: JobIdText,
    n: Annotated[int, Query(ge=1, le=1000, description="How many.", examples=[10])] = 10,
) -> Response:
    """With what DST moves, drops or repeats; none while the job is paused."""
    web, tenant = caller_of(request)
    job = await web.jobs.get(tenant, job_id_in(job_id))
    return json_answer(
        {
            "job_id": format_job_id(job.id),
            "schedule_in_words": in_words(job, await parents_of_jobs(web, tenant, [job])),
            "data": time_answers(_coming(web, job, n)),
        }
    )


@router.get(
    "/jobs/{job_id}/versions",
    summary="What a job was, and when",
    response_model=VersionList,
    responses=problems(404),
)
async def job_versions(request: Request, job_id: JobIdText) -> Response:
    """Oldest first; the last is in force."""
    web, tenant = caller_of(request)
    return json_answer({"data": version_answers(await web.jobs.versions(tenant, job_id_in(job_id)))})


@router.get(
    "/jobs/{job_id}/missed",
    summary="What a job missed while nothing planned",
    response_model=MissedList,
    responses=problems(404),
)
async def job_missed(request: Request, job_id: JobIdText) -> Response:
    """Newest first: how many times passed in an outage, and how many of them its misfire policy still ran."""
    web, tenant = caller_of(request)
    job = await web.jobs.get(tenant, job_id_in(job_id))
    return json_answer({"data": missed_answers(await web.runs.missed(job))})


def _coming(web: WebContext, job: Job, count: int) -> list[Occurrence]:
    times = web.jobs.next_times(job, count)
    rule = job.spec.rule
    if rule is None or not times:
        return [Occurrence(at=at, local=format_instant(at)) for at in times]
    after = max(web.clock.now(), job.since)
    return [one for one in preview(rule, after, len(times)) if one.at <= job.until]
