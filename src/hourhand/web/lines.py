"""Jobs as lines of JSON: all that match in one answer, of which never more than a page is held.

The first page is read before anything is answered, so that what is wrong has its status. A failure after that breaks
the connection: an answer that ends as it should is whole. Each page goes on behind the one before by id, so jobs that
come or go meanwhile move nothing.
"""

from collections.abc import AsyncIterator

import msgspec
from starlette.requests import Request
from starlette.responses import StreamingResponse

from hourhand.errors import Unavailable
from hourhand.ports.reading import JobPage, JobQuery
from hourhand.web.answers import job_answer
from hourhand.web.context import WebContext
from hourhand.web.names import parents_of_jobs
from hourhand.web.requests import NDJSON

PAGE = 100  # jobs that are held at once, with their payloads
_ENCODER = msgspec.json.Encoder()


def wants_lines(request: Request) -> bool:
    """Whether lines are what the client asks for."""
    accepted = request.headers.get("accept", "")
    return any(one.partition(";")[0].strip().lower() in NDJSON for one in accepted.split(","))


async def job_lines(web: WebContext, tenant: str, query: JobQuery, *, payload: bool) -> StreamingResponse:
    """An answer with a line for each job that matches, newest first."""
    query = msgspec.structs.replace(query, limit=PAGE)
    first = await _page(web, tenant, query)

    async def lines() -> AsyncIterator[bytes]:
        page = first
        while True:
            yield await _lines_of(web, tenant, page, payload=payload)
            if page.next_before_id is None:
                return
            page = await _page(web, tenant, msgspec.structs.replace(query, before_id=page.next_before_id))

    return StreamingResponse(lines(), media_type=NDJSON[0], headers={"Vary": "Accept"})


async def _page(web: WebContext, tenant: str, query: JobQuery) -> JobPage:
    found = await web.jobs.page(tenant, query)
    if found.missing:  # a part of them would be taken for all
        away = ", ".join(f"shard {shard}" for shard in found.missing)
        raise Unavailable(f"{away} did not answer, so not all jobs are known; try again")
    return found


async def _lines_of(web: WebContext, tenant: str, page: JobPage, *, payload: bool) -> bytes:
    names = await parents_of_jobs(web, tenant, page.jobs)
    answers = (job_answer(job, web.jobs.next_at(job), names) for job in page.jobs)
    lines = (_ENCODER.encode(one if payload else {**one, "payload": None}) for one in answers)
    # a payload is what came, line breaks between its parts included; within a text JSON has none
    return b"".join(line.replace(b"\n", b" ").replace(b"\r", b" ") + b"\n" for line in lines)
