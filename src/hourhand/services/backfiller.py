"""Feeds backfills: lets the store count what has ended and make the next runs, one backfill after another.

Holds nothing: two that do this at once, or one that dies in between, feed nothing twice.
"""

from hourhand.core.backfill import BackfillState
from hourhand.core.instant import SECOND_US
from hourhand.ports.backfills import Feeding
from hourhand.ports.store import Store
from hourhand.services.backfills import BackfillChanged
from hourhand.telemetry import Telemetry

PAGE = 100  # backfills of one step
PERIOD_US = SECOND_US  # between looks at what has ended
BUSY_US = SECOND_US // 10  # where runs were made or ended since the last look


class Backfiller:
    """One bounded page of each backfill per step."""

    def __init__(
        self, *, store: Store, telemetry: Telemetry, changed: BackfillChanged = lambda backfill: None
    ) -> None:
        self._store = store
        self._telemetry = telemetry
        self._changed = changed
        self._after_id = 0

    async def step(self, now_at: int) -> int | None:
        """Feed a page of backfills; answers when to look again, None when there are none."""
        ids = await self._store.unfinished_backfills(self._after_id, PAGE)
        begins = self._after_id == 0
        self._after_id = ids[-1] if len(ids) == PAGE else 0
        wakes = [wake for one in ids if (wake := await self._feed(one, now_at)) is not None]
        if self._after_id or not begins:
            return now_at + BUSY_US  # there are others
        return min(wakes, default=None)

    async def _feed(self, backfill_id: int, now_at: int) -> int | None:
        done = await self._store.feed_backfill(backfill_id)
        if done is None:
            return None
        self._telemetry.backfilled(done.fed)
        if done.passed or done.ended or done.backfill.finished_at is not None:
            self._changed(done.backfill)
        return _next_look(done, now_at)


def _next_look(done: Feeding, now_at: int) -> int | None:
    backfill = done.backfill
    if backfill.finished_at is not None:
        return None
    if done.passed and not done.fed:
        return now_at  # all of them were there already: on to the next
    busy = done.fed or done.ended
    wake_at = now_at + (BUSY_US if busy else PERIOD_US)
    if backfill.spec.pace_us is None or backfill.state is not BackfillState.RUNNING:
        return wake_at
    return max(wake_at, min(backfill.next_at, now_at + PERIOD_US))
