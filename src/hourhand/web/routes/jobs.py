"""Jobs as things: create, list, read, change, replace, delete."""

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query, Request
from starlette.responses import Response

from hourhand.core.identity import format_job_id
from hourhand.core.instant import format_instant
from hourhand.core.model import Job, JobState
from hourhand.ports.reading import JobQuery
from hourhand.ports.store import Changed
from hourhand.services.jobs import NewJob
from hourhand.web.answers import entity_tag, instant, job_answer, json_answer, marks_answer
from hourhand.web.context import WebContext, caller_of, context_of
from hourhand.web.cursors import page, read_cursor, write_cursor
from hourhand.web.documents import parse_document, still_paused
from hourhand.web.fields import MAX_CONDITION
from hourhand.web.json_text import read_document
from hourhand.web.lines import job_lines, wants_lines
from hourhand.web.names import parents_of_jobs
from hourhand.web.openapi import gives_lines, problems, takes
from hourhand.web.patches import patched, read_patch
from hourhand.web.references import referenced
from hourhand.web.requests import (
    CursorText,
    DryRun,
    ExpectedByKey,
    ExpectedVersion,
    KnownTags,
    Limit,
    StrictRoute,
    api_prefix,
    is_known,
    job_filter_in,
    job_id_in,
    json_body,
    prefers_minimal,
    prefers_representation,
)
from hourhand.web.schema import JobDocument
from hourhand.web.shapes.jobs import Created, Deleted, JobAnswer, JobList
from hourhand.web.shapes.runs import StripList

router = APIRouter(tags=["jobs"], route_class=StrictRoute)

EMPTY = {"description": "It is done, with `Prefer: return=minimal`."}
MAX_STRIPS = 100
MAX_MARKS = 100

JobIdText = Annotated[str, Path(description="The job's id.", examples=["J-0d3x8m2k7q1vt"])]
WithRoots = Annotated[
    bool, Query(description="Give the other roots of its graph the same times at the same moment.")
]
KeyText = Annotated[
    str,
    Path(
        description="The job's key; may contain slashes. One with a line feed names nothing.",
        examples=["billing/daily"],
    ),
]


@router.post(
    "/jobs",
    status_code=201,
    summary="Create a job",
    response_model=Created | JobAnswer,
    responses=problems(409, 429, body=True),
    openapi_extra=takes(JobDocument),
)
async def create_job(request: Request, dry_run: DryRun = False) -> Response:
    """Answers `{job_id, next_fire_time}`; the whole job with `Prefer: return=representation`."""
    web, tenant = caller_of(request)
    body = await json_body(request)
    document = await referenced(web, tenant, read_document(body, "a job document"))
    new = parse_document(document, web.clock.now(), rules=web.settings.documents)
    job = await web.jobs.create(tenant, new, dry_run=dry_run)
    next_at = web.jobs.next_at(job)
    applied = {}
    if prefers_representation(request):
        answer = job_answer(job, next_at, await parents_of_jobs(web, tenant, [job]))
        applied = {"Preference-Applied": "return=representation"}
    else:
        answer = {"job_id": format_job_id(job.id) if job.id else None, "next_fire_time": instant(next_at)}
    if dry_run:
        return json_answer({**answer, "dry_run": True}, headers=applied)
    location = f"{request.url.path}/{format_job_id(job.id)}"
    return json_answer(answer, 201, {"Location": location, **entity_tag(job), **applied})


@router.get(
    "/jobs",
    summary="List jobs, newest first",
    response_model=JobList,
    responses={**gives_lines(JobAnswer), **problems()},
)
async def list_jobs(
    request: Request,
    state: Annotated[JobState | None, Query(description="Only jobs in this state.")] = None,
    tag: Annotated[
        str | None, Query(max_length=MAX_CONDITION, description="Only jobs with this tag.")
    ] = None,
    set_name: Annotated[
        str | None,
        Query(alias="set", max_length=MAX_CONDITION, description="Only jobs applied from this set of files."),
    ] = None,
    name: Annotated[
        str | None, Query(max_length=MAX_CONDITION, description="Only names that begin so.")
    ] = None,
    failing: Annotated[
        bool, Query(description="Only jobs with something in dead letters or retrying.")
    ] = False,
    sort: Annotated[Literal["-created_at"], Query(description="The order; there is one.")] = "-created_at",
    payload: Annotated[bool, Query(description="False leaves payloads out; they may be large.")] = True,
    count: Annotated[
        Literal["estimate"] | None, Query(description="Say about how many there are in all.")
    ] = None,
    limit: Limit = 50,
    cursor: CursorText = None,
) -> Response:
    """A page may hold fewer than `limit` jobs although there are more: go on while `next_cursor` is there.

    With `Accept: application/x-ndjson` all that match come in one answer, a job on each line; then `limit` has no meaning.
    """
    web, tenant = caller_of(request)
    place = read_cursor(cursor, "jobs")
    query = JobQuery(
        state=state,
        tag=tag,
        set_name=set_name,
        name_prefix=name or None,
        failing=failing,
        before_id=place[0] if place else None,
        limit=limit,
    )
    if wants_lines(request):
        return await job_lines(web, tenant, query, payload=payload)
    found = await web.jobs.page(tenant, query)
    onward = None if found.next_before_id is None else write_cursor("jobs", found.next_before_id)
    names = await parents_of_jobs(web, tenant, found.jobs)
    jobs = [job_answer(job, web.jobs.next_at(job), names) for job in found.jobs]
    if not payload:
        jobs = [{**job, "payload": None} for job in jobs]
    body, headers = page(request, jobs, onward, found.missing)
    if count is not None:
        counted = await web.jobs.count(tenant, query)
        body["count"] = {"estimate": counted.count, "or_more": counted.or_more}
    return json_answer(body, headers={**headers, "Vary": "Accept"})


@router.get(
    "/jobs/strips",
    summary="The last runs of some jobs",
    response_model=StripList,
    responses=problems(),
)
async def job_strips(
    request: Request,
    job_id: Annotated[list[str], Query(max_length=MAX_STRIPS, description="A job; may be repeated.")],
    limit: Annotated[int, Query(ge=1, le=MAX_MARKS, description="Runs of each.", examples=[30])] = 30,
) -> Response:
    """What a list of jobs shows beside each: how its last runs ended, and what is under way."""
    web, tenant = caller_of(request)
    ids = [one for text in job_id if (one := job_filter_in(text)) is not None]
    return json_answer({"data": [marks_answer(one) for one in await web.runs.marks(tenant, ids, limit)]})


@router.get(
    "/jobs/resolve",
    summary="Find one job by id, key or name",
    response_model=JobAnswer,
    responses=problems(404, 409),
)
async def resolve_job(
    request: Request,
    ref: Annotated[
        str,
        Query(
            min_length=1, max_length=300, description="An id, a key or a name.", examples=["billing/daily"]
        ),
    ],
) -> Response:
    """404 when nothing has it, 409 when several jobs have the name."""
    web, tenant = caller_of(request)
    return await _job(web, await web.jobs.resolve(tenant, ref))


@router.put(
    "/jobs/by-key/{key:path}",
    summary="Create or replace the job with a key",
    response_model=JobAnswer,
    responses={
        201: {"model": JobAnswer, "description": "It was created."},
        204: EMPTY,
        **problems(404, 409, 412, body=True),
    },
    openapi_extra=takes(JobDocument),
)
async def upsert_job(
    request: Request, key: KeyText, wanted: ExpectedByKey, dry_run: DryRun = False
) -> Response:
    """A document that changes nothing makes no version. Never un-pauses: that is for people to decide.

    With `If-None-Match: *` it only creates, with `If-Match: *` it only replaces; else 412 and nothing is changed.
    """
    web, tenant = caller_of(request)
    body = await json_body(request)
    document = await referenced(web, tenant, read_document(body, "a job document"))

    def change(job: Job | None, now_at: int) -> NewJob:
        new = parse_document(document, now_at, rules=web.settings.documents, replaces=job, key=key)
        return new if job is None else still_paused(new, job)

    version, is_there = wanted
    changed, created = await web.jobs.upsert(tenant, key, change, version, is_there=is_there, dry_run=dry_run)
    status = 201 if created and not dry_run else 200
    return await changed_answer(request, changed, dry_run, status)


@router.get(
    "/jobs/{job_id}",
    summary="Read a job",
    response_model=JobAnswer,
    responses={304: {"description": "It is still at the version that If-None-Match names."}, **problems(404)},
)
async def read_job(request: Request, job_id: JobIdText, known: KnownTags = None) -> Response:
    """The ETag is the version; give it back as If-Match to change only what you have seen."""
    web, tenant = caller_of(request)
    job = await web.jobs.get(tenant, job_id_in(job_id))
    tag = entity_tag(job)
    if is_known(known, tag["ETag"]):
        return Response(status_code=304, headers=tag)
    return await _job(web, job)


@router.patch(
    "/jobs/{job_id}",
    summary="Change fields of a job",
    response_model=JobAnswer,
    responses={204: EMPTY, **problems(404, 409, 412, body=True)},
    openapi_extra=takes(JobDocument, "application/merge-patch+json", "application/json"),
)
async def patch_job(
    request: Request,
    job_id: JobIdText,
    with_roots: WithRoots = False,
    dry_run: DryRun = False,
    version: ExpectedVersion = None,
) -> Response:
    """A merge patch: what it does not name stays, null resets to the default, another schedule replaces the present one."""
    web, tenant = caller_of(request)
    patch = await referenced(web, tenant, read_patch(await json_body(request)))

    def change(job: Job, now_at: int) -> NewJob:
        return patched(job, patch, now_at, rules=web.settings.documents)

    changed = await web.jobs.update(
        tenant, job_id_in(job_id), change, version, with_roots=with_roots, dry_run=dry_run
    )
    return await changed_answer(request, changed, dry_run)


@router.put(
    "/jobs/{job_id}",
    summary="Replace a job",
    response_model=JobAnswer,
    responses={204: EMPTY, **problems(404, 409, 412, body=True)},
    openapi_extra=takes(JobDocument),
)
async def replace_job(
    request: Request,
    job_id: JobIdText,
    with_roots: WithRoots = False,
    dry_run: DryRun = False,
    version: ExpectedVersion = None,
) -> Response:
    """What the document leaves out has its default, but a paused job stays paused unless `paused` is named."""
    web, tenant = caller_of(request)
    body = await json_body(request)
    document = await referenced(web, tenant, read_document(body, "a job document"))

    def change(job: Job, now_at: int) -> NewJob:
        return parse_document(document, now_at, rules=web.settings.documents, replaces=job)

    changed = await web.jobs.update(
        tenant, job_id_in(job_id), change, version, with_roots=with_roots, dry_run=dry_run
    )
    return await changed_answer(request, changed, dry_run)


@router.delete(
    "/jobs/{job_id}", summary="Delete a job", response_model=Deleted, responses=problems(404, 409, 412)
)
async def delete_job(
    request: Request,
    job_id: JobIdText,
    cancel_running: Annotated[bool, Query(description="Cancel what runs; else it finishes.")] = False,
    dry_run: DryRun = False,
    version: ExpectedVersion = None,
) -> Response:
    """Its coming runs are dropped; its versions and history stay. 409 names the jobs that still follow it."""
    web, tenant = caller_of(request)
    await web.jobs.delete(
        tenant,
        job_id_in(job_id),
        cancel_running=cancel_running,
        expected_version=version,
        dry_run=dry_run,
    )
    return json_answer({"deleted": True, "dry_run": True} if dry_run else {"deleted": True})


async def changed_answer(request: Request, changed: Changed, dry_run: bool, status: int = 200) -> Response:
    """A job after a change, and from when on the change holds; nothing but headers where that is preferred."""
    web = context_of(request)
    headers = entity_tag(changed.job)
    if status == 201:
        headers["Location"] = f"{api_prefix(request)}/jobs/{format_job_id(changed.job.id)}"
    if prefers_minimal(request) and not dry_run:
        return bare_answer(204 if status == 200 else status, headers)
    names = await parents_of_jobs(web, changed.job.tenant, [changed.job])
    answer: dict[str, Any] = job_answer(changed.job, web.jobs.next_at(changed.job), names)
    answer["effective_from"] = format_instant(changed.effective_from)
    if dry_run:
        return json_answer({**answer, "dry_run": True})
    return json_answer(answer, status, headers)


def bare_answer(status: int, headers: dict[str, str]) -> Response:
    """For whom headers are enough."""
    return Response(status_code=status, headers={**headers, "Preference-Applied": "return=minimal"})


async def _job(web: WebContext, job: Job) -> Response:
    names = await parents_of_jobs(web, job.tenant, [job])
    return json_answer(job_answer(job, web.jobs.next_at(job), names), headers=entity_tag(job))
