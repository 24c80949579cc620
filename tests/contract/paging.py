"""Lists that are read to their end, page by page."""

import msgspec

from hourhand.core.model import DEFAULT_TENANT, Job
from hourhand.core.run import DeadLetter, RunView
from hourhand.ports.reading import DeadQuery, JobQuery, RunQuery
from hourhand.ports.store import Store

_MOST_PAGES = 5_000


async def all_jobs(store: Store, query: JobQuery, tenant: str = DEFAULT_TENANT) -> list[Job]:
    found: list[Job] = []
    for _ in range(_MOST_PAGES):
        page = await store.list_jobs(tenant, query)
        assert page.missing == ()
        found += page.jobs
        if page.next_before_id is None:
            return found
        query = msgspec.structs.replace(query, before_id=page.next_before_id)
    raise AssertionError("the list does not end")


async def all_runs(store: Store, query: RunQuery, tenant: str = DEFAULT_TENANT) -> list[RunView]:
    found: list[RunView] = []
    for _ in range(_MOST_PAGES):
        page = await store.list_runs(tenant, query)
        assert len(page.runs) <= query.limit
        found += page.runs
        if page.next_before is None:
            return found
        query = msgspec.structs.replace(query, before=page.next_before)
    raise AssertionError("the list does not end")


async def all_letters(store: Store, query: DeadQuery, tenant: str = DEFAULT_TENANT) -> list[DeadLetter]:
    found: list[DeadLetter] = []
    for _ in range(_MOST_PAGES):
        page = await store.dead_letters(tenant, query)
        assert len(page.letters) <= query.limit
        found += page.letters
        if page.next_before is None:
            return found
        query = msgspec.structs.replace(query, before=page.next_before)
    raise AssertionError("the list does not end")
