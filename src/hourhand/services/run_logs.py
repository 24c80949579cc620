"""Reads what a run's attempts said, and waits for more: any API instance can, since it looks at the store.

Whoever follows asks again and again with a bounded wait. What was said stands in the store before the attempt's
outcome does, but for what a function or a slow store leaves till last: so an end counts a second later.
"""

import asyncio
from collections.abc import Callable, Sequence

import msgspec

from hourhand.clock import Clock
from hourhand.core.identity import RunKey
from hourhand.core.instant import SECOND_US
from hourhand.core.lifecycle import FINAL, State
from hourhand.core.log import LogChunk, LogPlace
from hourhand.core.run import RunView
from hourhand.errors import NotFound
from hourhand.ports.store import Store
from hourhand.services.runs import Runs

MAX_WAIT_S = 20.0
MAX_WAITING = 200  # who wait at once; others are answered with what there is
SETTLE_US = SECOND_US
_FIRST_LOOK_S = 0.1
_LONGEST_LOOK_S = 1.0
_LAST_SEQ = (1 << 31) - 1
_MOST_NAMED = 20


class LogPage(msgspec.Struct, frozen=True, kw_only=True):
    """Some of a log, where to go on, and whether more can come."""

    chunks: Sequence[LogChunk]
    next_after: LogPlace
    done: bool


class RunLogs:
    """Use cases over the store; counts only who waits."""

    def __init__(self, *, store: Store, runs: Runs, clock: Clock) -> None:
        self._store = store
        self._runs = runs
        self._clock = clock
        self._waiting = 0

    async def read(
        self,
        tenant: str,
        key: RunKey,
        *,
        attempt: int | None = None,
        after: LogPlace | None = None,
        limit: int = 100,
        wait_s: float = 0.0,
        stopped: Callable[[], bool] = lambda: False,
    ) -> LogPage:
        """What was said behind a place; where there is nothing yet, waits for it, until it is done or `stopped`."""
        place = LogPlace(max(0, attempt - 1), _LAST_SEQ) if attempt else LogPlace()
        place = max(place, after or LogPlace())
        page = await self._look(tenant, key, place, attempt, limit, waits=wait_s > 0)
        if wait_s <= 0 or self._waiting >= MAX_WAITING:
            return page
        self._waiting += 1
        try:
            ends_s = asyncio.get_running_loop().time() + min(wait_s, MAX_WAIT_S)
            look_s = _FIRST_LOOK_S
            while not page.chunks and not page.done and not stopped():
                left_s = ends_s - asyncio.get_running_loop().time()
                if left_s <= 0:
                    break
                await asyncio.sleep(min(look_s, left_s))
                look_s = min(look_s * 1.5, _LONGEST_LOOK_S)
                page = await self._look(tenant, key, place, attempt, limit, waits=True)
        finally:
            self._waiting -= 1
        return page

    async def _look(
        self, tenant: str, key: RunKey, place: LogPlace, attempt: int | None, limit: int, *, waits: bool
    ) -> LogPage:
        run = await self._runs.get(tenant, key)  # before the log: what ended before has said everything
        chunks = await self._store.read_log(key, place, attempt, limit)
        if attempt is not None and not chunks and not _has(run, attempt, waits):
            numbers = ", ".join(str(row.attempt) for row in run.attempts[-_MOST_NAMED:]) or "none"
            raise NotFound(f"{run.run_id} has no attempt {attempt}; it has {numbers}")
        onward = LogPlace(chunks[-1].attempt, chunks[-1].seq) if chunks else place
        over_at = _over_at(run, attempt)
        over = over_at is not None and over_at + SETTLE_US <= self._clock.now()
        return LogPage(chunks=chunks, next_after=onward, done=over and len(chunks) < limit)


def _has(run: RunView, attempt: int, waits: bool) -> bool:
    """Whether a run has an attempt, or will have it next; who waits may also mean a later one."""
    if any(row.attempt == attempt for row in run.attempts):
        return True
    if run.state in FINAL:
        return False
    going_on = attempt == run.fence and run.state is State.RUNNING
    return going_on or attempt == run.fence + 1 or (waits and attempt > run.fence)


def _over_at(run: RunView, attempt: int | None) -> int | None:
    """When the last word was spoken: by the run, or by one attempt of it; None where it is still to come."""
    ended = [row for row in run.attempts if attempt is None or row.attempt >= attempt]
    if run.state in FINAL:
        return ended[-1].finished_at if ended else 0
    return ended[0].finished_at if attempt is not None and ended else None
