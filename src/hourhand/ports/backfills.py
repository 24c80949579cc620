"""The store's verbs about times beside the coming ones: backfills, skipped times, reruns. Part of `ports.store`."""

from collections.abc import Callable
from typing import Protocol

import msgspec

from hourhand.core.backfill import Backfill, BackfillAction
from hourhand.core.identity import RunKey
from hourhand.core.model import Job
from hourhand.core.skipping import Skip

DecideBackfill = Callable[[Job, int], Backfill]  # of the job and the store's time; may raise what it refuses


class BackfillQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which backfills to list; newest first, after a cursor."""

    job_id: int | None = None
    before_id: int | None = None
    limit: int = 50


class BackfillPage(msgspec.Struct, frozen=True, kw_only=True):
    """Some backfills, and where to go on."""

    backfills: tuple[Backfill, ...]
    next_before_id: int | None
    missing: tuple[int, ...] = ()  # shards that did not answer


class Feeding(msgspec.Struct, frozen=True, kw_only=True):
    """What one step did for a backfill."""

    backfill: Backfill
    passed: int = 0  # times behind which the mark moved
    fed: int = 0  # runs that were made
    ended: int = 0  # runs that were counted as ended


class BackfillVerbs(Protocol):
    """Backfills, skips and reruns."""

    async def add_backfill(self, tenant: str, job_id: int, decide: DecideBackfill) -> Backfill | None:
        """Store what `decide(job, now)` makes, under the job's lock; None when there is no such job.

        Conflict while the job has another that is not over, Overloaded when the tenant has too many.
        """
        ...

    async def get_backfill(self, tenant: str, backfill_id: int) -> Backfill | None:
        """One backfill."""
        ...

    async def list_backfills(self, tenant: str, query: BackfillQuery) -> BackfillPage:
        """A page of backfills, newest first."""
        ...

    async def change_backfill(self, tenant: str, backfill_id: int, action: BackfillAction) -> Backfill | None:
        """Pause, resume or cancel; doing so twice changes nothing, and Conflict says what is over already.

        Cancelling removes the runs that nobody ever took, so that another backfill may make them; what was
        taken once and waits, for a retry too, ends as cancelled; what executes goes on. None when there is none.
        """
        ...

    async def unfinished_backfills(self, after_id: int, limit: int) -> list[int]:
        """Backfills with something left to feed or to count, by id."""
        ...

    async def feed_backfill(self, backfill_id: int) -> Feeding | None:
        """Count what has ended, then make its next runs as far as its bounds allow; None when it is gone.

        Under the locks of the job's clock and of the job: no time gets a second run, whoever else plans,
        edits or feeds; the mark moves with the rows. Never beyond what the job's clock has planned.
        """
        ...

    async def skip_time(
        self, tenant: str, job_id: int, at: int | None, note: str | None, *, version: int | None = None
    ) -> Skip | None:
        """Mark a coming time, the next unless given, as one that will not run; None when there is no such job.

        NoSuchTime for a time that is none of the job's, Conflict when a worker holds the run or it has ended,
        Outdated where the job is not at this version.
        The mark outlives pauses and edits after which the job still has that time.
        """
        ...

    async def unskip_time(
        self, tenant: str, job_id: int, at: int | None, *, version: int | None = None
    ) -> Skip | None:
        """Take a mark back, that of the next marked time unless given; None when there is none. Outdated as above."""
        ...

    async def skips(self, tenant: str, job_id: int) -> list[Skip]:
        """The coming times of a job that will not run, oldest first."""
        ...

    async def end_skips(self, limit: int) -> int:
        """End marked times that have come as skipped; says how many were looked at."""
        ...

    async def rerun(self, tenant: str, key: RunKey, request_key: str | None) -> RunKey | None:
        """A new run, due now, that repeats one which has ended; the same request key gives the same run.

        Conflict while it has not ended; None when there is no such run.
        """
        ...
