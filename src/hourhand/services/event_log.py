"""The last minutes of events, and the clients that follow them.

Keeps a bounded ring to resume from, and for each client a bounded queue behind its filter. A client whose
filter lets through more than 200 events a second gets one summary a second in their place. How messages
look on the wire, and who may see what, is for the web to say.
"""

import asyncio
from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice

import msgspec

from hourhand.clock import Clock
from hourhand.core.instant import MINUTE_US
from hourhand.errors import Overloaded, Unavailable
from hourhand.ports.events import Counts, Event, EventBatch, EventType

KEPT_US = 5 * MINUTE_US
MAX_KEPT = 10_000
MAX_CLIENTS = 1_000
EVENTS_PER_SECOND = 200  # to one client; above, it gets summaries
MAX_QUEUED = 2 * EVENTS_PER_SECOND  # for a client that reads slowly
_WINDOW_S = 1.0
_RETRY_AFTER_S = 5


class EventFilter(msgspec.Struct, frozen=True, kw_only=True):
    """What a client wants to see."""

    tenant: str
    types: frozenset[EventType] = frozenset(EventType)
    job_id: int | None = None

    def lets_through(self, event: Event) -> bool:
        """Whether an event is for this client."""
        return (
            event.type in self.types
            and event.tenant == self.tenant
            and (self.job_id is None or event.job_id == self.job_id)
        )


class Stats(msgspec.Struct, frozen=True, kw_only=True):
    """What a second held, where not every event was sent.

    Events that were only ever counted have lost their job, so a filter by job counts the whole tenant's.
    """

    last_id: str  # where to resume from
    counts: dict[EventType, int]
    dropped: int  # of them, how many were not sent


class Reset(msgspec.Struct, frozen=True, kw_only=True):
    """Events may be missing before this one: read again what is shown."""

    last_id: str


Message = Event | Stats | Reset


class EventLog:
    """Everything that was heard of late, and who follows it. Used on the event loop only."""

    def __init__(self, *, clock: Clock, max_clients: int = MAX_CLIENTS, max_kept: int = MAX_KEPT) -> None:
        self._clock = clock
        self._max_clients = max_clients
        self._max_kept = max_kept
        self._ring: deque[Event] = deque()
        self._places: dict[str, int] = {}  # of what is in the ring, counted from the first event ever
        self._forgotten = 0  # how many have left the ring
        self._before = f"{clock.now():016d}-start"  # names the place before the ring's first event
        self._followers: dict[EventFilter, set[Subscription]] = {}
        self._clients = 0
        self._closed = False

    @property
    def clients(self) -> int:
        """How many follow."""
        return self._clients

    @property
    def last_id(self) -> str:
        """The newest event's id; that of the beginning, where there is none."""
        return self._ring[-1].id if self._ring else self._before

    def add(self, batch: EventBatch) -> None:
        """Something was heard: keep it, and pass it on."""
        if batch.gap:
            self._forget_all()
        fresh = [event for event in batch.events if event.id not in self._places]
        for event in fresh:
            self._places[event.id] = self._forgotten + len(self._ring)
            self._ring.append(event)
        self._forget_old()
        by_job: dict[int, list[Event]] = {}
        for event in fresh:
            by_job.setdefault(event.job_id, []).append(event)
        last_id = self.last_id
        for asked, subscriptions in self._followers.items():
            among = fresh if asked.job_id is None else by_job.get(asked.job_id, [])
            events = [event for event in among if asked.lets_through(event)]
            tally = _tally(events, asked, batch.counts)  # once for all who asked alike
            for subscription in subscriptions:
                if batch.gap:
                    subscription.reset(last_id)
                if tally:
                    subscription.offer(events, tally, last_id)

    def follow(self, asked: EventFilter, last_id: str | None = None) -> "Subscription":
        """Begin to follow: after the event with that id, or with a reset where it is no longer known."""
        if self._closed:
            raise Unavailable("the server is stopping; come back to another one, or in a moment")
        if self._clients >= self._max_clients:
            raise Overloaded(f"{self._max_clients:,} clients follow events already", _RETRY_AFTER_S)
        subscription = Subscription(self, asked, begins_after=None if last_id else self.last_id)
        self._followers.setdefault(asked, set()).add(subscription)
        self._clients += 1
        if last_id:
            missed = self._after(last_id)
            if missed is None:
                subscription.reset(self.last_id)
            else:
                subscription.replay([event for event in missed if asked.lets_through(event)])
        return subscription

    @property
    def is_closed(self) -> bool:
        """Whether the process is ending."""
        return self._closed

    def close(self) -> None:
        """End every stream; nobody can follow any more."""
        self._closed = True
        for subscriptions in list(self._followers.values()):
            for subscription in list(subscriptions):
                subscription.close()

    def leave(self, subscription: "Subscription") -> None:
        """A client is gone."""
        subscriptions = self._followers.get(subscription.asked, set())
        if subscription in subscriptions:
            subscriptions.remove(subscription)
            self._clients -= 1
            if not subscriptions:
                del self._followers[subscription.asked]

    def _after(self, last_id: str) -> list[Event] | None:
        """What came after an event; None where that cannot be said."""
        self._forget_old()
        if last_id == self._before:
            return list(self._ring)
        place = self._places.get(last_id)
        return None if place is None else list(islice(self._ring, place - self._forgotten + 1, None))

    def _forget_old(self) -> None:
        """Let go of what is too old or too much; the last of them still says where the ring begins."""
        oldest_at = self._clock.now() - KEPT_US
        while self._ring and (len(self._ring) > self._max_kept or self._ring[0].at < oldest_at):
            self._forget_first()

    def _forget_all(self) -> None:
        while self._ring:
            self._forget_first()
        self._before = f"{self._clock.now():016d}-gap"

    def _forget_first(self) -> None:
        self._before = self._ring.popleft().id
        self._forgotten += 1
        del self._places[self._before]


class Subscription:
    """One client: what waits for it, and how much it gets."""

    def __init__(self, log: EventLog, asked: EventFilter, *, begins_after: str | None) -> None:
        self.asked = asked
        self.begins_after = begins_after  # the place to resume from as yet, for a client that knows none
        self._log = log
        self._missed: Sequence[Message] = ()  # before it came; goes first, and counts against nothing
        self._queue: list[Message] = []
        self._ready = asyncio.Event()
        self._closed = False
        self._seen: dict[EventType, int] = {}  # in this second
        self._sent = 0  # of them
        self._summarised = False  # the second before had too many, so this one gets a summary only
        self._last_id = log.last_id
        self._timer: asyncio.TimerHandle | None = None

    async def take(self, patience_s: float) -> Sequence[Message] | None:
        """What waits, at once where something does; nothing after a while without; None at the end."""
        try:
            async with asyncio.timeout(patience_s):
                await self._ready.wait()
        except TimeoutError:
            return ()
        if self._closed:
            return None
        self._ready.clear()
        taken = [*self._missed, *self._queue]
        self._missed, self._queue = (), []
        return taken

    def offer(self, events: Sequence[Event], tally: Mapping[EventType, int], last_id: str) -> None:
        """Queue these, or only count them where they are too many; the tally has more than there are events."""
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_WINDOW_S, self._end_second)
        if not self._summarised:
            room = min(EVENTS_PER_SECOND - self._sent, MAX_QUEUED - len(self._queue))
            sent = events[: max(0, room)]
            self._put(sent)
            self._sent += len(sent)
        seen = self._seen
        for kind, count in tally.items():
            seen[kind] = seen.get(kind, 0) + count
        self._last_id = last_id

    def replay(self, events: Sequence[Event]) -> None:
        """Send what a client missed first."""
        self._missed = events
        self._put(())

    def reset(self, last_id: str) -> None:
        """Tell the client to read everything again; what waited for it is pointless then."""
        self._missed, self._queue = (), []
        self._put([Reset(last_id=last_id)])

    def close(self) -> None:
        """No more."""
        self._closed = True
        self._ready.set()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._log.leave(self)

    def _put(self, messages: Iterable[Message]) -> None:
        self._queue.extend(messages)
        if self._queue or self._missed:
            self._ready.set()

    def _end_second(self) -> None:
        seen, total = Counter(self._seen), sum(self._seen.values())
        dropped = total - self._sent
        self._timer, self._seen, self._sent = None, {}, 0
        self._summarised = total > EVENTS_PER_SECOND
        if dropped:
            last = self._queue[-1] if self._queue else None
            if isinstance(last, Stats):  # a client that does not read gets one summary of all
                self._queue.pop()
                seen, dropped = seen + Counter(last.counts), dropped + last.dropped
            self._put([Stats(last_id=self._last_id, counts=dict(seen), dropped=dropped)])
        if self._summarised:  # look again in a second, so that a quiet one ends the summaries
            self._timer = asyncio.get_running_loop().call_later(_WINDOW_S, self._end_second)


def _tally(events: Sequence[Event], asked: EventFilter, counts: Counts) -> dict[EventType, int]:
    """How many there were of each type, those included that were only counted."""
    left_out = counts.get(asked.tenant, {})
    tally = {kind: count for kind, count in left_out.items() if kind in asked.types}
    for event in events:
        tally[event.type] = tally.get(event.type, 0) + 1
    return tally
