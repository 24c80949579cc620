"""Who follows whom: checks a change of the graph against the rest of it, and keeps the edges.

Whoever adds or changes `after` holds the tenant's graph lock, so that two changes cannot close a circle between
them. A parent is held against deletion by its own row. Edges hold for nominal times after a cut, as versions do.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from hourhand.core.dag import (
    MAX_GRAPH,
    MOST_NAMED,
    GraphFault,
    GraphJob,
    check,
    parents_of,
    roots_hint,
    still_followed,
)
from hourhand.core.fault import Fault
from hourhand.core.identity import format_job_id
from hourhand.core.model import FOREVER, AfterTiming, Timing
from hourhand.errors import Conflict, Invalid
from hourhand.ports.store import Hint, JobDraft, Unfit
from hourhand.stores.relational.rows import decode_spec
from hourhand.stores.relational.tx import Tx


async def lock_graph(tx: Tx, tenant: str) -> None:
    """Let nobody else change who follows whom in this tenant."""
    await tx.all("lock_graph", (tenant,))


class GraphReader:
    """Reads the parts of a tenant's graph that checks need, each job once."""

    def __init__(self, tx: Tx, tenant: str) -> None:
        self._tx = tx
        self._tenant = tenant
        self._known: dict[int, GraphJob] = {}

    def assume(self, job: GraphJob) -> None:
        """Take a job to be as it is about to become."""
        self._known[job.id] = job

    async def around(self, changed: Iterable[int]) -> dict[int, GraphJob]:
        """Some jobs, all that follow them, and all that any of those follow."""
        below = await self.below(changed)
        found: dict[int, GraphJob] = {}
        frontier = sorted(below)
        while frontier:
            found |= await self.jobs(frontier)
            if len(found) > MAX_GRAPH:
                raise GraphFault(f"at most {MAX_GRAPH:,} jobs may hang together")
            above = {parent for one in frontier if one in found for parent in found[one].parents}
            frontier = sorted(above - set(found) - set(frontier))
        return found

    async def below(self, jobs: Iterable[int]) -> set[int]:
        """Some jobs and all that follow them, however far down."""
        found = set(jobs)
        frontier = sorted(found)
        while frontier:
            rows = await self._tx.all("children_now", (self._tx.array(frontier), MAX_GRAPH + 1))
            frontier = sorted({row[1] for row in rows} - found)
            found |= set(frontier)
            if len(found) > MAX_GRAPH:
                raise GraphFault(f"at most {MAX_GRAPH:,} jobs may hang together")
        return found

    async def jobs(self, ids: Sequence[int]) -> dict[int, GraphJob]:
        """Those of some jobs that there are."""
        unknown = [one for one in ids if one not in self._known]
        if unknown:
            rows = await self._tx.all("graph_jobs", (self._tenant, self._tx.array(unknown)))
            for job_id, name, key, paused, until, spec in rows:
                self._known[job_id] = GraphJob(
                    id=job_id,
                    name=name,
                    timing=decode_spec(spec).timing,
                    key=key,
                    paused=bool(paused),
                    until=until,
                )
        return {one: self._known[one] for one in ids if one in self._known}


async def unfit_drafts(tx: Tx, drafts: Sequence[JobDraft]) -> list[Unfit | None]:
    """Which drafts may not follow whom they are to follow; one may follow another of the batch before it."""
    answers: list[Unfit | None] = []
    readers: dict[str, GraphReader] = {}
    for draft in drafts:
        fault = None
        if isinstance(draft.spec.timing, AfterTiming):
            if draft.tenant not in readers:
                await lock_graph(tx, draft.tenant)
                readers[draft.tenant] = GraphReader(tx, draft.tenant)
                _assume_before(readers[draft.tenant], drafts[: len(answers)], answers, draft.tenant)
            await tx.all("share_jobs", (tx.array(sorted(draft.spec.timing.parents)),))
            fault = await _fault_in(readers[draft.tenant], _graph_job(draft))
        answers.append(None if fault is None else Unfit(why=str(fault)))
        if fault is None and draft.tenant in readers:
            readers[draft.tenant].assume(_graph_job(draft))
    return answers


def edge_rows(job_id: int, timing: Timing, since_at: int) -> list[tuple[int, int, int, int]]:
    """The edges of a job that follows others for times after an instant."""
    return [(parent, job_id, since_at, FOREVER) for parent in parents_of(timing)]


async def add_edges(tx: Tx, rows: Sequence[tuple[int, int, int, int]]) -> None:
    """Let jobs follow others; of runs that ended ahead of their time nobody else would tell them."""
    if not rows:
        return
    await tx.insert("add_edge", sorted(rows))
    await _tell_ahead(tx, sorted({row[0] for row in rows}), min(row[2] for row in rows))


async def check_change(tx: Tx, tenant: str, changed: Sequence[GraphJob]) -> None:
    """Whether jobs may become so, all at once; Invalid says what stands against it."""
    reader = GraphReader(tx, tenant)
    for job in changed:
        reader.assume(job)
    for job in changed:
        await tx.all("share_jobs", (tx.array(sorted(job.parents)),))
        fault = await _fault_in(reader, job)
        if fault is not None:
            raise graph_refusal(str(fault), roots_hint(job, fault))


async def rewire(tx: Tx, job_id: int, before: Timing, after: Timing, cut: int) -> None:
    """A job follows others than it did, for times after the cut.

    Runs after the cut that wait already, since one of their parents ended ahead of its time, wait anew.
    """
    old, new = set(parents_of(before)), set(parents_of(after))
    if old == new:
        return
    await tx.run("drop_signals_after", (job_id, cut))
    await tx.run("drop_waiting_after", (job_id, cut))
    if old - new:
        await tx.run(
            "end_edges", {"child_id": job_id, "parent_ids": tx.array(sorted(old - new)), "until": cut}
        )
    if new - old:
        await tx.insert("add_edge", [row for row in edge_rows(job_id, after, cut) if row[0] not in old])
    await _tell_ahead(tx, sorted(new), cut)


async def has_children(tx: Tx, job_id: int) -> bool:
    """Whether any job follows this one at present."""
    return bool(await tx.all("children_now", (tx.array([job_id]), 1)))


async def refuse_if_followed(tx: Tx, tenant: str, job_id: int) -> None:
    """A job that others follow cannot go: they would wait for it in vain."""
    rows = await tx.all("children_now", (tx.array([job_id]), MOST_NAMED + 1))
    if rows:
        children = await GraphReader(tx, tenant).jobs(sorted(row[1] for row in rows))
        raise Conflict(still_followed(list(children.values())))


async def other_roots(tx: Tx, tenant: str, job_id: int) -> list[int]:
    """The other roots of the graphs that a root belongs to."""
    around = await GraphReader(tx, tenant).around([job_id])
    return sorted(
        one.id for one in around.values() if one.id != job_id and not isinstance(one.timing, AfterTiming)
    )


async def graph(tx: Tx, tenant: str, job_id: int) -> list[GraphJob]:
    """A job with all that hang together with it, in any direction; as many as a graph may have."""
    reader = GraphReader(tx, tenant)
    found = await reader.jobs([job_id])
    while True:
        try:
            around = await reader.around(found)
        except GraphFault:  # several graphs that share jobs may come to more than one may have
            around = found
        if len(around) == len(found):
            return [found[one] for one in sorted(found)]
        found = around


async def peek_jobs(tx: Tx, tenant: str, ids: Sequence[int]) -> list[GraphJob]:
    """What a graph needs to know of some jobs, in their order; those that there are."""
    return list((await GraphReader(tx, tenant).jobs(ids)).values())


def graph_refusal(why: str, hint: str | None = None) -> Invalid:
    """A refusal of a graph, as people get it."""
    expected = "a graph without circles whose roots agree"
    return Invalid(why, [Fault(pointer="/after", expected=expected, hint=hint)])


async def _tell_ahead(tx: Tx, parents: Sequence[int], after_at: int) -> None:
    """Tell once more of runs of parents that ended ahead of their time."""
    ended = await tx.all("ended_ahead", (tx.array(parents), after_at)) if parents else []
    if ended:
        await tx.insert("add_descent", [tuple(row) for row in ended])
        tx.hints.add(Hint.GRAPHS)


async def _fault_in(reader: GraphReader, job: GraphJob) -> GraphFault | None:
    """What stands against a job in its graph."""
    reader.assume(job)
    try:
        around = await reader.around([job.id])
        above = await reader.jobs(sorted(job.parents))
        missing = [parent for parent in job.parents if parent not in above]
        if missing:
            return GraphFault(f"there is no job {format_job_id(missing[0])} to follow")
        check(job, around)
    except GraphFault as fault:
        return fault
    return None


def _assume_before(
    reader: GraphReader, drafts: Sequence[JobDraft], answers: Sequence[Any], tenant: str
) -> None:
    for draft, answer in zip(drafts, answers, strict=True):
        if answer is None and draft.tenant == tenant:
            reader.assume(_graph_job(draft))


def _graph_job(draft: JobDraft) -> GraphJob:
    return GraphJob(id=draft.id, name=draft.spec.name, timing=draft.spec.timing, key=draft.spec.key)
