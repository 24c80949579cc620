"""Many jobs in one request: a JSON list, or lines of JSON that are stored while they come in.

Each document stands for itself: one that is wrong gets its own problem and harms no other. Reading gives
way to other work every few documents, so that a large import does not make due runs wait.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

from fastapi import APIRouter, Request
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import Scope

from hourhand.core.identity import format_job_id
from hourhand.core.model import Job
from hourhand.errors import HourhandError, TooLarge
from hourhand.services.jobs import MAX_BULK, NewJob
from hourhand.web.answers import json_answer
from hourhand.web.context import WebContext, caller_of
from hourhand.web.documents import parse_document
from hourhand.web.guards import DOCUMENT_SLACK_BYTES
from hourhand.web.json_text import read_document
from hourhand.web.lists import listed_documents
from hourhand.web.many_problems import ManyProblems
from hourhand.web.openapi import problems, takes_many
from hourhand.web.problems import REQUEST_ID, in_our_words
from hourhand.web.references import parents_named, referenced
from hourhand.web.requests import NDJSON, DryRun, StrictRoute, content_type
from hourhand.web.schema import JobDocument
from hourhand.web.shapes.batches import BulkAnswer

router = APIRouter(tags=["jobs"], route_class=StrictRoute)

MAX_LINES = 100_000
_BATCH_BYTES = 8 * 1024 * 1024
_BREATH = 10  # documents read before other work gets its turn


@router.post(
    "/jobs/bulk",
    summary="Create many jobs",
    response_model=BulkAnswer,
    responses=problems(body=True),
    openapi_extra=takes_many(JobDocument, MAX_BULK),
)
async def create_jobs(request: Request, dry_run: DryRun = False) -> Response:
    """A JSON list of up to 1,000 documents, or up to 100,000 lines of JSON (application/x-ndjson).

    One may follow another that comes before it, by its key. Answers 200 with the fate of each. Lines are stored in batches as they come: those of a batch that was
    answered for are durable even if the request breaks off later.
    """
    web, tenant = caller_of(request)
    import_ = _Import(web, tenant, dry_run, request.scope)
    try:
        if content_type(request) in NDJSON:
            await _take_lines(request, import_)
        else:
            for document in await listed_documents(request, MAX_BULK, else_=f"as lines of JSON, {NDJSON[0]}"):
                await import_.take(document)
        await import_.store()
    except ClientDisconnect:  # there is nobody to be told
        raise
    except Exception as error:
        if not import_.created:
            raise
        import_.break_off(error)
    return json_answer(import_.answer())


class _Import:
    """Collects documents into batches, stores these, and remembers what became of each."""

    def __init__(self, web: WebContext, tenant: str, dry_run: bool, scope: Scope) -> None:
        self._web = web
        self._tenant = tenant
        self._dry_run = dry_run
        self._scope = scope
        self._problems = ManyProblems(scope.get(REQUEST_ID))
        self._results: list[dict[str, Any]] = []
        self._batch: list[tuple[int, NewJob]] = []
        self._batch_keys: set[str | None] = set()
        self._foreseen = web.jobs.foresee(tenant) if dry_run else None
        self._batch_bytes = 0
        self.created = 0  # so many are durable, so the answer must say which, whatever happens

    @property
    def longest_line(self) -> int:
        """How many bytes one document may have."""
        return self._web.settings.documents.payload_bytes + DOCUMENT_SLACK_BYTES

    @property
    def taken(self) -> int:
        """How many documents have come so far."""
        return len(self._results)

    async def take(self, document: bytes) -> None:
        """Read one document; store a batch when it is full."""
        index = len(self._results)
        self._results.append({"index": index})
        try:
            value = read_document(document, "a job document")
        except HourhandError as error:
            self._fail(index, error)
        else:
            await self._add(index, value)
        self._batch_bytes += len(document)
        if len(self._batch) >= MAX_BULK or self._batch_bytes >= _BATCH_BYTES:
            await self.store()
        elif index % _BREATH == _BREATH - 1:
            await asyncio.sleep(0)

    async def store(self) -> None:
        """Store what was collected."""
        batch, self._batch, self._batch_bytes = self._batch, [], 0
        self._batch_keys.clear()
        if not batch:
            return
        news = [new for _, new in batch]
        answers = await self._stored(news)
        for (index, _), answer in zip(batch, answers, strict=True):
            if isinstance(answer, HourhandError):
                self._fail(index, answer)
            else:
                self.created += 1
                job_id = format_job_id(answer.id) if answer.id else None
                self._results[index] |= {"status": 201, "job_id": job_id}

    def refuse(self, error: HourhandError) -> None:
        """Record a document that was not read at all."""
        self._results.append({"index": len(self._results)})
        self._fail(len(self._results) - 1, error)

    def break_off(self, reason: Exception) -> None:
        """Record what ended the request: of every document whose fate is open, else of what follows."""
        error = in_our_words(reason, self._scope)
        open_ = [index for index, result in enumerate(self._results) if "status" not in result]
        for index in open_:
            self._fail(index, error)
        if not open_:
            self.refuse(error)

    def answer(self) -> dict[str, Any]:
        """What became of all of them."""
        failed = len(self._results) - self.created
        body: dict[str, Any] = {"created": self.created, "failed": failed, "results": self._results}
        return {**body, "dry_run": True} if self._dry_run else body

    async def _add(self, index: int, document: dict[str, Any]) -> None:
        """Add a document's job; those that it follows may have come before it in this request."""
        if not self._batch_keys.isdisjoint(parents_named(document)):
            await self.store()
        try:
            document = await referenced(self._web, self._tenant, document, self._foreseen)
            new = parse_document(document, self._web.clock.now(), rules=self._web.settings.documents)
        except HourhandError as error:
            self._fail(index, error)
        else:
            self._batch.append((index, new))
            self._batch_keys.add(new.spec.key)

    async def _stored(self, news: Sequence[NewJob]) -> Sequence[Job | HourhandError]:
        try:
            return await self._web.jobs.create_many(
                self._tenant, news, dry_run=self._dry_run, foreseen=self._foreseen
            )
        except Exception as error:
            if not self.created:
                raise
            return [in_our_words(error, self._scope)] * len(news)

    def _fail(self, index: int, error: HourhandError) -> None:
        self._results[index] |= {"status": error.status, "error": self._problems.told(error)}


async def _take_lines(request: Request, import_: _Import) -> None:
    longest = import_.longest_line
    async for line in _lines(request, longest):
        if import_.taken == MAX_LINES:
            import_.refuse(TooLarge(f"at most {MAX_LINES:,} lines in one request; send the rest in another"))
            return
        if line is None:
            import_.refuse(TooLarge(f"a line is longer than {longest:,} bytes; what follows was not read"))
            return
        await import_.take(line)


async def _lines(request: Request, longest_bytes: int) -> AsyncIterator[bytes | None]:
    """Lines that are not empty, as they come in; None for one that is too long."""
    rest = b""
    async for chunk in request.stream():
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            if line.strip():
                yield line
        if len(rest) > longest_bytes:
            yield None
            return
    if rest.strip():
        yield rest
