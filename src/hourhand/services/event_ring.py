"""The last minutes of events, and the places in them that clients resume from.

One ring for all tenants, bounded by age and number. A place is always one tenant's own: the id of its newest event, or,
of one that has had none yet, the moment at which it looked. So nothing that others do can be read from it, and
what is no place of the tenant's is unknown, whosever it may be.
"""

import re
from collections import deque
from itertools import islice
from typing import NamedTuple

from hourhand.clock import Clock
from hourhand.core.instant import MINUTE_US, SECOND_US
from hourhand.ports.events import Event, EventBatch

KEPT_US = 5 * MINUTE_US
MAX_KEPT = 10_000
SKEW_US = 10 * SECOND_US  # by which processes may hear of an event at different times, by their own clocks

_MOMENT = re.compile(r"([0-9]{16})-since-([0-9]{16})")


class _Heard(NamedTuple):
    at: int  # when, by our clock: an event's own time is its publisher's, and may be long ago
    event: Event


class EventRing:
    """Everything that was heard of late."""

    def __init__(self, *, clock: Clock, max_kept: int = MAX_KEPT) -> None:
        self._clock = clock
        self._max_kept = max_kept
        self._ring: deque[_Heard] = deque()
        self._places: dict[str, int] = {}  # of what is in the ring, counted from the first event ever
        self._left = 0  # how many have left the ring
        self._newest: dict[str, str] = {}  # each tenant's newest event in the ring
        self._forgotten: dict[str, _Heard] = {}  # each tenant's newest that has left, the longest ago first
        self._at = clock.now()
        self._began_at = self._at  # from when on all is known that is not forgotten
        self._unknown_to_at = 0  # up to when tenants that are not in `_forgotten` may have had events

    def place(self, tenant: str) -> str:
        """The place behind all of a tenant's events."""
        newest = self._newest.get(tenant)
        if newest is not None:
            return newest
        gone = self._forgotten.get(tenant)
        return f"{self._look():016d}-since-{self._began_at:016d}" if gone is None else gone.event.id

    def add(self, batch: EventBatch) -> list[Event]:
        """Keep what is new; answers it."""
        now_at = self._look()
        if batch.gap:
            now_at = self._forget_all()
        fresh = [event for event in batch.events if event.id not in self._places]
        for event in fresh:
            self._places[event.id] = self._left + len(self._ring)
            self._newest[event.tenant] = event.id
            self._ring.append(_Heard(now_at, event))
        self._forget_old()
        return fresh

    def after(self, tenant: str, last_id: str) -> list[Event] | None:
        """What a tenant had after a place of its own; None where that cannot be said."""
        self._forget_old()
        found = self._places.get(last_id)
        if found is not None:
            if self._ring[found - self._left].event.tenant != tenant:
                return None
            later = islice(self._ring, found - self._left + 1, None)
            return [one.event for one in later if one.event.tenant == tenant]
        gone = self._forgotten.get(tenant)
        since = 0 if gone is not None and gone.event.id == last_id else self._moment(tenant, last_id)
        if since is None:
            return None
        return [one.event for one in self._ring if one.event.tenant == tenant and one.at >= since]

    def _moment(self, tenant: str, last_id: str) -> int | None:
        """From when on a tenant has not seen what we heard; None where we cannot know all of that."""
        match = _MOMENT.fullmatch(last_id)
        if match is None:
            return None
        at, began_at = int(match[1]), int(match[2])
        since = at if began_at == self._began_at else at - SKEW_US  # another process said it, by its clock
        gone = self._forgotten.get(tenant)
        known = since > self._unknown_to_at if gone is None else since > gone.at
        return since if known and since >= self._began_at else None

    def _look(self) -> int:
        """The time, which never goes back: what is heard later has not been heard before."""
        self._at = max(self._at, self._clock.now())
        return self._at

    def _forget_old(self) -> None:
        """Let go of what is too old or too much."""
        oldest_at = self._clock.now() - KEPT_US
        while self._ring and (len(self._ring) > self._max_kept or self._ring[0].event.at < oldest_at):
            self._forget_first()

    def _forget_all(self) -> int:
        """Something was missed: only moments from now on count, which the answer is."""
        self._left += len(self._ring)
        self._ring.clear()
        for known in (self._places, self._newest, self._forgotten):
            known.clear()
        self._at = self._began_at = self._look() + 1
        return self._at

    def _forget_first(self) -> None:
        gone = self._ring.popleft()
        event = gone.event
        self._left += 1
        del self._places[event.id]
        if self._newest.get(event.tenant) == event.id:
            del self._newest[event.tenant]
        self._forgotten.pop(event.tenant, None)
        self._forgotten[event.tenant] = gone
        if len(self._forgotten) > MAX_KEPT:
            self._unknown_to_at = self._forgotten.pop(next(iter(self._forgotten))).at
