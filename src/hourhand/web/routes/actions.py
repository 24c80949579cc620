"""What one asks of a job: pause, resume, run, skip, clone; and its status, history, coming times and versions."""

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from hourhand.core.access import Role
from hourhand.core.identity import format_job_id, format_run_id
from hourhand.core.instant import DAY_US, SECOND_US, format_instant
from hourhand.core.model import Job
from hourhand.core.moves import fires_of, tells_fires
from hourhand.core.schedule import Occurrence, preview
from hourhand.core.skipping import next_time
from hourhand.web.access import needs
from hourhand.web.answers import (
    entity_tag,
    in_words,
    instant,
    job_answer,
    json_answer,
    missed_answers,
    run_answer,
    status_answer,
    time_answers,
    version_answers,
)
from hourhand.web.beside import beside
from hourhand.web.context import WebContext, caller_of
from hourhand.web.cursors import page, read_cursor, write_cursor
from hourhand.web.faults import validated
from hourhand.web.json_text import read_object
from hourhand.web.names import parents_of_jobs, parents_of_runs
from hourhand.web.openapi import problems, takes
from hourhand.web.patches import cloned, read_patch
from hourhand.web.references import referenced
from hourhand.web.requests import (
    CursorText,
    DryRun,
    ExpectedVersion,
    Limit,
    RequestKey,
    StrictRoute,
    api_prefix,
    empty_body,
    job_id_in,
    json_body,
    prefers_minimal,
)
from hourhand.web.routes.jobs import EMPTY, JobIdText, bare_answer, changed_answer
from hourhand.web.schema import JobDocument, PauseDocument, RunDocument, SkipDocument
from hourhand.web.shapes.backfills import SkipAnswer
from hourhand.web.shapes.jobs import JobAnswer, MissedList, StatusAnswer, VersionList
from hourhand.web.shapes.runs import RunList, Started
from hourhand.web.shapes.schedules import NextTimes

router = APIRouter(tags=["jobs"], route_class=StrictRoute)


@router.post(
    "/jobs/{job_id}/pause",
    summary="Pause a job",
    response_model=JobAnswer,
    responses={204: EMPTY, **problems(404, 412, body=True)},
    openapi_extra=takes(PauseDocument, required=False),
)
@needs(Role.OPERATOR)
async def pause_job(
    request: Request, job_id: JobIdText, dry_run: DryRun = False, version: ExpectedVersion = None
) -> Response:
    """Takes effect at `effective_from`; what passes while it is paused is not made up for."""
    web, tenant = caller_of(request)
    body = await json_body(request)
    asked = validated(PauseDocument, read_object(body, "a note and until") if body.strip() else {})
    changed = await web.jobs.pause(
        tenant,
        job_id_in(job_id),
        note=asked.note,
        until_at=asked.until,
        expected_version=version,
        dry_run=dry_run,
    )
    return await changed_answer(request, changed, dry_run)


@router.post(
    "/jobs/{job_id}/resume",
    summary="Resume a job",
    response_model=JobAnswer,
    responses={204: EMPTY, **problems(404, 412, body=True)},
)
@needs(Role.OPERATOR)
async def resume_job(
    request: Request, job_id: JobIdText, dry_run: DryRun = False, version: ExpectedVersion = None
) -> Response:
    """Makes runs again from `effective_from` on."""
    web, tenant = caller_of(request)
    await empty_body(request)
    changed = await web.jobs.resume(tenant, job_id_in(job_id), expected_version=version, dry_run=dry_run)
    return await changed_answer(request, changed, dry_run)


@router.post(
    "/jobs/{job_id}/run",
    status_code=202,
    summary="Run a job now, beside its schedule",
    response_model=Started,
    responses=problems(404, 412, 429, body=True),
    openapi_extra=takes(RunDocument, required=False),
)
@needs(Role.OPERATOR)
async def run_job(
    request: Request,
    job_id: JobIdText,
    dry_run: DryRun = False,
    request_key: RequestKey = None,
    version: ExpectedVersion = None,
) -> Response:
    """The run waits for a free slot like any other. With `downstream` all that follow the job run after it."""
    web, tenant = caller_of(request)
    body = (await json_body(request)).strip()
    asked = validated(RunDocument, {} if body in (b"", b"null") else read_object(body, "how to run it"))
    downstream, number = bool(asked.downstream), job_id_in(job_id)
    more = {"followed_by": len(await web.graphs.followers(tenant, number))} if downstream else {}
    if dry_run:
        await web.jobs.get(tenant, number, version)
        await web.jobs.foresee(tenant).use.run([number] * (1 + more.get("followed_by", 0)))
        return json_answer({"run_id": None, **more, "dry_run": True})
    key = await web.jobs.run_now(
        tenant, number, request_key=request_key or None, downstream=downstream, expected_version=version
    )
    run_id = format_run_id(*key)
    location = f"{api_prefix(request)}/runs/{run_id}"
    return json_answer({"run_id": run_id, **more}, 202, {"Location": location})


@router.post(
    "/jobs/{job_id}/skip",
    summary="Let a coming time pass without a run",
    response_model=SkipAnswer,
    responses=problems(404, 409, 412, body=True),
    openapi_extra=takes(SkipDocument, required=False),
)
@needs(Role.OPERATOR)
async def skip_time(
    request: Request, job_id: JobIdText, dry_run: DryRun = False, version: ExpectedVersion = None
) -> Response:
    """When it comes it ends as SKIPPED, with the note. Outlives pauses, and edits after which the job has that time."""
    web, tenant = caller_of(request)
    body = await json_body(request)
    asked = validated(SkipDocument, read_object(body, "a time and a note") if body.strip() else {})
    number = job_id_in(job_id)
    if asked.undo:
        skip = await web.jobs.unskip(tenant, number, asked.at, expected_version=version, dry_run=dry_run)
    else:
        skip = await web.jobs.skip(
            tenant, number, asked.at, asked.note, expected_version=version, dry_run=dry_run
        )
    job = await web.jobs.get(tenant, skip.job_id)
    skipped = {one.scheduled_at for one in await web.jobs.skips(job)} | {skip.scheduled_at}
    if asked.undo:
        skipped.discard(skip.scheduled_at)
    answer = {
        "job_id": format_job_id(job.id),
        "run_id": format_run_id(job.id, skip.scheduled_at),
        "at": format_instant(skip.scheduled_at),
        "skipped": not asked.undo,
        "note": skip.note,
        "next_run": instant(next_time(job, web.clock.now(), frozenset(skipped))),
    }
    return json_answer({**answer, "dry_run": True} if dry_run else answer)


@router.post(
    "/jobs/{job_id}/clone",
    status_code=201,
    summary="Make another job like this one",
    response_model=JobAnswer,
    responses=problems(404, 409, 412, 429, body=True),
    openapi_extra=takes(JobDocument, "application/merge-patch+json", "application/json", required=False),
)
async def clone_job(
    request: Request, job_id: JobIdText, dry_run: DryRun = False, version: ExpectedVersion = None
) -> Response:
    """Everything but key and id, changed by a merge patch. Paused unless the patch says `"paused": false`."""
    web, tenant = caller_of(request)
    body = await json_body(request)
    patch = await referenced(web, tenant, read_patch(body)) if body.strip() else {}
    job = await web.jobs.get(tenant, job_id_in(job_id), version)
    new = cloned(job, patch, web.clock.now(), rules=web.settings.documents)
    made = await web.jobs.create(tenant, new, dry_run=dry_run)
    headers = {"Location": f"{api_prefix(request)}/jobs/{format_job_id(made.id)}", **entity_tag(made)}
    if prefers_minimal(request) and not dry_run:
        return bare_answer(201, headers)
    answer = job_answer(made, web.jobs.next_at(made), await parents_of_jobs(web, tenant, [made]))
    if dry_run:
        return json_answer({**answer, "dry_run": True})
    return json_answer(answer, 201, headers)


@router.get(
    "/jobs/{job_id}/status",
    summary="What a job is up to",
    response_model=StatusAnswer,
    responses=problems(404),
)
async def job_status(request: Request, job_id: JobIdText) -> Response:
    """The newest run that is due and neither skipped nor cancelled speaks for the job; PENDING before the first."""
    web, tenant = caller_of(request)
    return json_answer(status_answer(await web.runs.status(tenant, job_id_in(job_id), web.jobs.next_at)))


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
    days: Annotated[
        int | None, Query(ge=1, le=366, description="Also count those of so many days.", examples=[7])
    ] = None,
    others: Annotated[bool, Query(description="Also say what else fires in the second of the next.")] = False,
) -> Response:
    """With what DST moves, drops or repeats; none while the job is paused."""
    web, tenant = caller_of(request)
    job = await web.jobs.get(tenant, job_id_in(job_id))
    answer: dict[str, Any] = {
        "job_id": format_job_id(job.id),
        "schedule_in_words": in_words(job, await parents_of_jobs(web, tenant, [job])),
        "data": time_answers(_coming(web, job, n), await web.jobs.skips(job)),
    }
    if days is not None:
        now_at = web.clock.now()
        counted = fires_of(job, now_at, now_at + days * DAY_US).count() if tells_fires(job) else None
        answer["fires"] = counted
    if others:
        answer["beside"] = await beside(web, job)
    return json_answer(answer)


@router.get(
    "/jobs/{job_id}/versions",
    summary="What a job was, and when",
    response_model=VersionList,
    responses=problems(404),
)
async def job_versions(request: Request, job_id: JobIdText) -> Response:
    """Oldest first; the last is in force."""
    web, tenant = caller_of(request)
    number = job_id_in(job_id)
    versions = await web.jobs.versions(tenant, number)
    return json_answer({"data": version_answers(versions, await web.jobs.makers(tenant, number))})


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
