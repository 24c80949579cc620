"""The store's verbs for an audit: jobs with their versions, and what there is of them in a window. Part of `ports.store`."""

from collections.abc import Sequence
from typing import Protocol

import msgspec

from hourhand.core.audit import AuditedJob, ClockFacts, JobRuns


class AuditQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which jobs to look at; in the store's own order, after a place."""

    tenant: str | None = None  # None: of all tenants
    job_id: int | None = None
    from_at: int  # versions that ended before it, and jobs that were deleted before it, are left out
    after: tuple[int, ...] | None = None  # a place of an earlier page; what it means is the store's
    limit: int = 1_000


class AuditPage(msgspec.Struct, frozen=True, kw_only=True):
    """Some jobs, and where to go on."""

    jobs: tuple[AuditedJob, ...]
    next_after: tuple[int, ...] | None
    unread: tuple[int, ...] = ()  # jobs with more versions than can be read
    missing: tuple[int, ...] = ()  # shards that did not answer


class Asked(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A job whose runs are wanted, with the times that it should have, and how many lines it may take."""

    job_id: int
    times: Sequence[int]
    most: int
    in_graph: bool = False  # it follows others or is followed: then its times are not all known


class AuditedRuns(msgspec.Struct, frozen=True, kw_only=True):
    """What there is of some jobs, each of which is in one of the two."""

    plain: list[int]  # of jobs with one line for each of their times, its end: what these lines say
    runs: dict[int, JobRuns] = {}  # of the others, by id


class AuditVerbs(Protocol):
    """What an audit reads. Never writes, and takes no locks."""

    async def audited_jobs(self, query: AuditQuery) -> AuditPage:
        """A page of jobs with their versions, deleted ones too; each job on one page only."""
        ...

    async def audited_runs(self, asked: Sequence[Asked], from_at: int, to_at: int) -> AuditedRuns:
        """What there is of each of these jobs in [from_at, to_at), as of one moment; they are asked for by id.

        What is live is only looked for where history alone does not tell everything: where lines are missing or
        too many, or runs failed or were skipped, and so may have been sent back; and in graphs, where also what is
        yet to be told is looked for.
        """
        ...

    async def audited_clocks(
        self, asked: Sequence[tuple[int, str]], from_at: int, to_at: int
    ) -> dict[tuple[int, str], ClockFacts]:
        """How far the clocks of some jobs' rules are, and what they missed in a window; by job and rule."""
        ...
