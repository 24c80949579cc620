"""Audits: every time that jobs' versions promise in a window, held against what became of it.

Says which windows can be audited. The audit itself is `services.audit_pass`'s; `services.auditor` does one by itself
every few minutes.
"""

from hourhand.clock import Clock
from hourhand.core.audit import AuditReport, Window
from hourhand.core.fault import Fault
from hourhand.core.identity import format_job_id
from hourhand.core.instant import DAY_US, HOUR_US, format_instant
from hourhand.errors import Invalid, NotFound
from hourhand.ports.store import Store
from hourhand.services.audit_pass import AuditPass

MAX_WINDOW_US = 31 * DAY_US
DEFAULT_WINDOW_US = HOUR_US


class Audit:
    """Audits over a store; stateless, any number of instances.

    The sizes are those of a page and of a unit that is read at once: smaller ones let others have their turn sooner.
    """

    def __init__(
        self, *, store: Store, clock: Clock, keep_us: int, page_jobs: int = 1_000, unit_times: int = 10_000
    ) -> None:
        self._store = store
        self._clock = clock
        self._keep_us = keep_us
        self._page_jobs = page_jobs
        self._unit_times = unit_times

    async def opened(
        self,
        tenant: str,
        from_at: int | None,
        to_at: int | None,
        job_id: int | None = None,
        *,
        by_job: bool = False,
    ) -> Window:
        """The window that somebody asks for; Invalid where it cannot be audited, NotFound without such a job.

        What has not come yet is left out.
        """
        now_at = self._clock.now()
        to_at = min(now_at, now_at if to_at is None else to_at)
        from_at = to_at - DEFAULT_WINDOW_US if from_at is None else from_at
        self._check(from_at, to_at, now_at, await self._store.history_kept_us(tenant))
        if job_id is not None and not await self._store.versions(tenant, job_id):
            raise NotFound(f"there is no job {format_job_id(job_id)}")
        return Window(from_at=from_at, to_at=to_at, tenant=tenant, job_id=job_id, by_job=by_job)

    def reopened(self, tenant: str, from_at: int, to_at: int, *, by_job: bool = False) -> Window:
        """The window of an audit that goes on, as it was opened, though history has become older since."""
        to_at = min(to_at, self._clock.now())
        self._check(from_at, to_at, from_at, self._keep_us)
        return Window(from_at=from_at, to_at=to_at, tenant=tenant, by_job=by_job)

    async def window(
        self, window: Window, *, after: tuple[int, ...] | None = None, within_us: int | None = None
    ) -> AuditReport:
        """Audit a window, from a place on, for about so long; all of it unless told otherwise."""
        now_at = self._clock.now()
        one = AuditPass(self._store, now_at, window, self._page_jobs, self._unit_times)
        return await one.run(after, lambda: within_us is not None and self._clock.now() - now_at > within_us)

    def _check(self, from_at: int, to_at: int, now_at: int, kept_us: int) -> None:
        oldest_at = now_at - min(kept_us, self._keep_us)
        if from_at >= to_at == now_at:
            raise _invalid("from", "a time that has passed", from_at, "what is to come cannot be audited")
        if from_at >= to_at:
            raise _invalid("from", f"a time before `to`, {format_instant(to_at)}", from_at)
        if from_at < oldest_at:
            hint = "that is how long history is kept; what ran before is no longer known"
            raise _invalid("from", f"a time since {format_instant(oldest_at)}", from_at, hint)
        if to_at - from_at > MAX_WINDOW_US:
            hint = f"audit it in parts; the first could end at {format_instant(from_at + MAX_WINDOW_US)}"
            raise _invalid("to", f"at most {MAX_WINDOW_US // DAY_US} days after `from`", to_at, hint)


def _invalid(name: str, expected: str, got: int, hint: str | None = None) -> Invalid:
    fault = Fault(pointer=f"?{name}", expected=expected, got=format_instant(got), hint=hint)
    return Invalid("there is no such window to be audited", [fault])
