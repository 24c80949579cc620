"""The use cases of backfills: ask for one, look at it, pause, resume, cancel.

What a backfill may be is `core.backfill`'s; that its runs are made is the matter of `services.backfiller`.
"""

from collections.abc import Callable

import msgspec

from hourhand.clock import Clock
from hourhand.core.backfill import Backfill, BackfillAction, BackfillSpec, Unfit, new_backfill
from hourhand.core.identity import format_backfill_id, shard_of
from hourhand.core.model import Job
from hourhand.errors import Conflict, Invalid, NotFound
from hourhand.ids import IdSource
from hourhand.ports.backfills import BackfillPage, BackfillQuery
from hourhand.ports.store import Store

BackfillChanged = Callable[[Backfill], None]  # told once a change is durable; must not raise


class Backfills:
    """Use cases over the store; stateless, any number of instances."""

    def __init__(
        self,
        *,
        store: Store,
        ids: IdSource,
        clock: Clock,
        keep_us: int,
        changed: BackfillChanged = lambda backfill: None,
    ) -> None:
        self._store = store
        self._ids = ids
        self._clock = clock
        self._keep_us = keep_us  # how far back history tells what ran
        self._changed = changed

    async def create(self, job: Job, spec: BackfillSpec, *, dry_run: bool = False) -> Backfill:
        """Ask for the runs of a range; the job as it is when it is stored decides which times these are."""

        kept_us = min(self._keep_us, await self._store.history_kept_us(job.tenant))

        def decide(present: Job, now_at: int) -> Backfill:
            try:
                return new_backfill(backfill_id, present, spec, now_at, kept_us)
            except Unfit as error:
                raise Invalid(str(error), error.faults) from None

        backfill_id = self._ids.job_id(shard_of(job.id))
        if dry_run:
            return msgspec.structs.replace(decide(job, self._clock.now()), id=0)
        made = await self._store.add_backfill(job.tenant, job.id, decide)
        if made is None:
            raise NotFound("there is no such job")
        self._changed(made)
        return made

    async def get(self, tenant: str, backfill_id: int) -> Backfill:
        """One backfill, or NotFound."""
        found = await self._store.get_backfill(tenant, backfill_id)
        if found is None:
            raise NotFound(f"there is no backfill {format_backfill_id(backfill_id)}")
        return found

    async def page(self, tenant: str, query: BackfillQuery) -> BackfillPage:
        """A page of backfills, newest first."""
        return await self._store.list_backfills(tenant, query)

    async def change(
        self, tenant: str, backfill_id: int, action: BackfillAction, *, dry_run: bool = False
    ) -> Backfill:
        """Pause, resume or cancel."""
        if dry_run:
            backfill = await self.get(tenant, backfill_id)
            if backfill.state not in ("running", "paused"):
                raise Conflict(f"the backfill is {backfill.state} already")
            return backfill
        changed = await self._store.change_backfill(tenant, backfill_id, action)
        if changed is None:
            raise NotFound(f"there is no backfill {format_backfill_id(backfill_id)}")
        self._changed(changed)
        return changed
