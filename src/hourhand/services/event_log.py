"""The clients that follow events: how many there may be, what waits for each, and how much it gets.

Each client has a bounded queue behind its filter. One whose filter lets through more than 200 events a second gets
one summary a second in their place. What was heard of late, and where to resume, is `services.event_ring`'s; how
messages look on the wire, and who may see what, is for the web to say.
"""

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from hourhand.clock import Clock
from hourhand.errors import Overloaded, Unavailable
from hourhand.ports.events import Counts, Event, EventBatch, EventType
from hourhand.services.event_ring import MAX_KEPT, EventRing

MAX_CLIENTS = 1_000
MAX_CLIENTS_OF_TENANT = 250  # so that one tenant leaves room for others
MAX_CLIENTS_OF_USER = 50
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
    """Passes on what is heard to those who follow it. Used on the event loop only."""

    def __init__(
        self,
        *,
        clock: Clock,
        max_clients: int = MAX_CLIENTS,
        max_of_tenant: int = MAX_CLIENTS_OF_TENANT,
        max_of_user: int = MAX_CLIENTS_OF_USER,
        max_kept: int = MAX_KEPT,
    ) -> None:
        self._ring = EventRing(clock=clock, max_kept=max_kept)
        self._max_clients = max_clients
        self._max_of_tenant = max_of_tenant
        self._max_of_user = max_of_user
        self._followers: dict[EventFilter, set[Subscription]] = {}
        self._of_tenants: Counter[str] = Counter()  # clients that count against somebody
        self._of_users: Counter[str] = Counter()
        self._clients = 0
        self._closed = False

    @property
    def clients(self) -> int:
        """How many follow."""
        return self._clients

    def place(self, tenant: str) -> str:
        """Where a tenant resumes that has seen all of its events."""
        return self._ring.place(tenant)

    def add(self, batch: EventBatch) -> None:
        """Something was heard: keep it, and pass it on."""
        fresh = self._ring.add(batch)
        by_job: dict[int, list[Event]] = {}
        for event in fresh:
            by_job.setdefault(event.job_id, []).append(event)
        for asked, subscriptions in self._followers.items():
            among = fresh if asked.job_id is None else by_job.get(asked.job_id, [])
            events = [event for event in among if asked.lets_through(event)]
            tally = _tally(events, asked, batch.counts)  # once for all who asked alike
            if not tally and not batch.gap:
                continue
            place = self._ring.place(asked.tenant)
            for subscription in subscriptions:
                if batch.gap:
                    subscription.reset(place)
                if tally:
                    subscription.offer(events, tally, place)

    def follow(
        self, asked: EventFilter, last_id: str | None = None, user: str | None = None
    ) -> "Subscription":
        """Begin to follow: after the event with that id, or with a reset where it is no longer known.

        `user` is who asks, of whom there may be so many; None for nobody in particular, on loopback.
        """
        if self._closed:
            raise Unavailable("the server is stopping; come back to another one, or in a moment")
        self._check_room(asked.tenant, user)
        begins_after = None if last_id else self._ring.place(asked.tenant)
        subscription = Subscription(self, asked, begins_after=begins_after, user=user)
        self._followers.setdefault(asked, set()).add(subscription)
        self._count(subscription, 1)
        if last_id:
            missed = self._ring.after(asked.tenant, last_id)
            if missed is None:
                subscription.reset(self._ring.place(asked.tenant))
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
            self._count(subscription, -1)
            if not subscriptions:
                del self._followers[subscription.asked]

    def _check_room(self, tenant: str, user: str | None) -> None:
        """Overloaded where somebody has too many clients: first of all the one who asks."""
        if user is not None and self._of_users[user] >= self._max_of_user:
            whose, limit = "of yours follow events already, as many as one user may have", self._max_of_user
        elif user is not None and self._of_tenants[tenant] >= self._max_of_tenant:
            whose, limit = "of the tenant follow events already, as many as it may have", self._max_of_tenant
        elif self._clients >= self._max_clients:
            whose, limit = "follow events already", self._max_clients
        else:
            return
        raise Overloaded(f"{limit:,} clients {whose}; close one, or try again later", _RETRY_AFTER_S)

    def _count(self, subscription: "Subscription", more: int) -> None:
        self._clients += more
        if subscription.user is None:
            return
        for counter, name in (
            (self._of_users, subscription.user),
            (self._of_tenants, subscription.asked.tenant),
        ):
            counter[name] += more
            if not counter[name]:
                del counter[name]


class Subscription:
    """One client: what waits for it, and how much it gets."""

    def __init__(
        self, log: EventLog, asked: EventFilter, *, begins_after: str | None, user: str | None
    ) -> None:
        self.asked = asked
        self.user = user  # whom it counts against
        self.begins_after = begins_after  # the place to resume from as yet, for a client that knows none
        self._log = log
        self._missed: Sequence[Message] = ()  # before it came; goes first, and counts against nothing
        self._queue: list[Message] = []
        self._ready = asyncio.Event()
        self._closed = False
        self._seen: dict[EventType, int] = {}  # in this second
        self._sent = 0  # of them
        self._summarised = False  # the second before had too many, so this one gets a summary only
        self._last_id = log.place(asked.tenant)
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
