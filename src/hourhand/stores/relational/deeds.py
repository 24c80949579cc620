"""Who did what: written by the operations that change something, read by people, dropped when it is old.

On whose behalf an operation works is its transaction's `actor`; without one nothing is written. Rows are only ever added.
"""

from collections.abc import Sequence
from typing import Any

from hourhand.core.deeds import MAX_NOTE, Act, Deed, is_one_of
from hourhand.core.model import FOREVER, Job
from hourhand.errors import Invalid
from hourhand.ports.acting import Actor
from hourhand.ports.deeds import DeedPage, DeedQuery
from hourhand.stores.relational.tx import Engine, Tx

MOST_LOOKED_AT = 5_000  # rows that one page may look at before it answers with less
_END = (FOREVER, FOREVER)


class DeedReading:
    """The verbs of `ports.deeds` over an engine."""

    _engine: Engine

    async def deeds(self, tenant: str, query: DeedQuery) -> DeedPage:
        return await self._engine.read(lambda tx: deeds(tx, tenant, query))

    async def makers(self, tenant: str, job_id: int) -> dict[int, str]:
        return await self._engine.read(lambda tx: makers(tx, tenant, job_id))


async def note_deed(
    tx: Tx,
    tenant: str,
    act: Act,
    *,
    job_id: int | None = None,
    scheduled_at: int | None = None,
    object_id: str | None = None,
    version: int | None = None,
    count: int | None = None,
    note: str | None = None,
) -> None:
    """Write down what this transaction does, if it does it for somebody."""
    if tx.actor is not None:
        what = (job_id, scheduled_at, object_id, version, count, None if note is None else note[:MAX_NOTE])
        await tx.insert("add_deed", [_row(tx, tx.actor, tenant, act, *what)])


async def note_runs(tx: Tx, tenant: str, act: Act, runs: Sequence[tuple[int, int, int | None]]) -> None:
    """The same of many runs at once: job, nominal time, and how many runs that came to."""
    if tx.actor is not None and runs:
        rows = [
            _row(tx, tx.actor, tenant, act, job_id, at, None, None, count, None) for job_id, at, count in runs
        ]
        await tx.insert("add_deed", rows)


async def note_creations(tx: Tx, made: Sequence[tuple[Job, Actor | None]]) -> None:
    """New jobs, each with whoever asked for it: requests of several people may share a transaction.

    Those of one import differ in nothing but the job, so they are one statement.
    """
    asked = [(job, actor) for job, actor in made if actor is not None]
    if len({(job.tenant, actor) for job, actor in asked}) == 1:
        job, actor = asked[0]
        await tx.run(
            "add_creations",
            {
                "at": tx.now_at,
                "job_ids": tx.array([job.id for job, _ in asked]),
                "version": job.version,
                "tenant": job.tenant,
                "subject": actor.subject,
                "via": actor.via.value,
                "action": Act.JOB_CREATE.value,
                "request_id": actor.request_id,
            },
        )
    elif asked:
        rows = [
            _row(tx, actor, job.tenant, Act.JOB_CREATE, job.id, None, None, job.version, None, None)
            for job, actor in asked
        ]
        await tx.insert("add_deed", rows)


async def deeds(tx: Tx, tenant: str, query: DeedQuery) -> DeedPage:
    """A page of deeds, newest first; looks at a bounded number of rows."""
    before = _place(query.before)
    bounds = {"from_at": query.from_at or 0, "to_at": FOREVER if query.to_at is None else query.to_at}
    name, whose = "deeds_page", dict[str, object](tenant=tenant)
    if query.job_id is not None:
        name, whose = "deeds_page_of", {"tenant": tenant, "job_id": query.job_id}
    found: list[Deed] = []
    looked = 0
    while looked < MOST_LOOKED_AT:
        size = min(MOST_LOOKED_AT - looked, max(query.limit, looked))  # ever more, where few fit
        place = {"before_at": before[0], "before_id": before[1], "limit": size}
        rows = await tx.all(name, {**whose, **bounds, **place})
        looked += size
        for deed in map(_deed, rows):
            before = (deed.at, deed.id)
            if _fits(deed, query):
                found.append(deed)
                if len(found) == query.limit:
                    return DeedPage(deeds=tuple(found), next_before=before)
        if len(rows) < size:
            return DeedPage(deeds=tuple(found), next_before=None)
    return DeedPage(deeds=tuple(found), next_before=before)


async def makers(tx: Tx, tenant: str, job_id: int) -> dict[int, str]:
    """Who made which version of a job."""
    return dict(tuple(row) for row in await tx.all("makers_of", (tenant, job_id)))


def _row(
    tx: Tx,
    actor: Actor,
    tenant: str,
    act: Act,
    job_id: int | None,
    scheduled_at: int | None,
    object_id: str | None,
    version: int | None,
    count: int | None,
    note: str | None,
) -> tuple[Any, ...]:
    """The columns of a deed, in the order of `add_deed`."""
    who = (tenant, actor.subject, actor.via.value, act.value)
    return (tx.now_at, job_id, scheduled_at, version, count, *who, object_id, note, actor.request_id)


def _deed(row: Sequence[Any]) -> Deed:
    """A deed from its row, in the order of `deeds_page`."""
    return Deed(
        at=row[0],
        id=row[1],
        job_id=row[2],
        scheduled_at=row[3],
        version=row[4],
        count=row[5],
        tenant=row[6],
        subject=row[7],
        via=row[8],
        action=row[9],
        object_id=row[10],
        note=row[11],
        request_id=row[12],
    )


def _fits(deed: Deed, query: DeedQuery) -> bool:
    return (query.subject is None or deed.subject == query.subject) and (
        query.action is None or is_one_of(deed.action, query.action)
    )


def _place(before: tuple[int, ...] | None) -> tuple[int, int]:
    if before is None:
        return _END
    if len(before) != 2:
        raise Invalid("cursor: expected the next_cursor of this list")
    return before[0], before[1]
