"""The queue through brokers: messages say which runs are due, the store says who gets them.

A task per broker reads messages into a small buffer and stops while it is full; `take` claims the runs that they
name, HIGH first, and acknowledges them once that is durable. What cannot be taken yet is kept and named again. In
any case runs that are late are claimed by the lanes of the store: that is what makes messages disposable.
"""

import asyncio
import contextlib
import heapq
from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec

from hourhand.clock import Clock
from hourhand.core.identity import RunKey
from hourhand.core.instant import SECOND_US
from hourhand.core.lanes import BRIEF_LEAD_US, divide
from hourhand.core.model import Priority
from hourhand.errors import Unavailable
from hourhand.ports.queue import Feed, Message
from hourhand.ports.store import Claim, ClaimRequest, LeftRun, Store
from hourhand.telemetry import Telemetry, logger

_CLASSES: tuple[int, ...] = tuple(Priority)  # background work is not offered
LATE_US = SECOND_US  # from here on runs are claimed whether a message came or not
LOOK_US = 3 * SECOND_US // 4  # how often late ones are looked for at least
_LOOK_SOON_US = SECOND_US // 5  # and at most, unless there were some
_KEPT_BACK = 10  # one in so many places is for late ones, however many messages there are
_MOST_BUFFERED = 2_000  # messages of a class
_PREFETCHED = 4  # a full worker still reads ahead for a quarter of what it can run
_MOST_LEFT = 10_000
_NAME_AGAIN_US = SECOND_US // 2  # a slot may have become free before a run's time
_NAME_SOON_US = 50_000
_MOST_ACKS = 20_000
_NEVER = 2**63 - 1  # an instant beyond all others
_GLANCE_S = 0.02  # how often classes with room are looked at while others have none
_FIRST_PAUSE_S = 0.1
_MOST_PAUSE_S = 1.0
_CLOSE_PATIENCE_S = 1.0

_log = logger("hourhand.queue")


class BrokerQueue:
    """Claims what messages name, and what is late."""

    def __init__(self, *, store: Store, feeds: Sequence[Feed], clock: Clock, telemetry: Telemetry) -> None:
        self._store = store
        self._clock = clock
        self._telemetry = telemetry
        self._listeners = [_Listener(feed, self._room, self._arrived) for feed in feeds]
        self._left: dict[RunKey, int] = {}  # what could not be taken yet, and when to name it again
        self._native_at = 0  # when to look for late runs next
        self._looks = False  # whether it has just done so
        # Counted apart, since shares and turns go by them: claims that take turns would else see every other number,
        # and of two tenants the same one would be first each time.
        self._taken_named = 0
        self._taken_late = 0
        self._free = 0  # places that the worker had after it was last asked
        self._most_room = 1
        self.on_arrival: Callable[[], None] = lambda: None

    async def start(self) -> None:
        """Begin to listen."""
        for listener in self._listeners:
            listener.start()

    async def close(self) -> None:
        """Stop listening; what was not named is somebody else's again."""
        await asyncio.gather(*(listener.close() for listener in self._listeners))

    async def take(self, request: ClaimRequest) -> Claim:
        """Claim what messages name, or what is late if it is time to look for it; one of them at a time."""
        now_at = self._clock.now()
        self._most_room = max(self._most_room, request.room)
        until_at = now_at + request.lead_us
        has_named = self._has_named(now_at, until_at)
        is_time = not now_at < self._native_at <= now_at + LOOK_US
        self._looks = is_time and not (self._looks and has_named)  # messages have their turn in between
        if self._looks:
            room = -(-request.room // _KEPT_BACK) if has_named else request.room
            claim = await self._take_late(msgspec.structs.replace(request, room=room), now_at)
        else:
            claim = await self._take_named(request, now_at, until_at)
        self._free = request.room - len(claim.runs)
        for listener in self._listeners:
            listener.resume()
        moments = [self._native_at, *([min(self._left.values())] if self._left else [])]
        if until_at < (first_at := self._first_at()) < _NEVER:
            moments.append(first_at - request.lead_us)
        return Claim(
            runs=claim.runs,
            now_at=now_at,
            next_at=max(now_at, min(moments)),
            progressed=claim.progressed or (self._looks and has_named),
            cursors=claim.cursors,
        )

    # --- by message

    def _has_named(self, now_at: int, until_at: int) -> bool:
        """Whether there are runs to claim by name, and to begin not later than so."""
        if any(at <= now_at for at in self._left.values()):
            return True
        return self._first_at() <= until_at

    def _first_at(self) -> int:
        """When the first run is due of which there is a message."""
        return min(buffer.first_at for listener in self._listeners for buffer in listener.buffers.values())

    async def _take_named(self, request: ClaimRequest, now_at: int, until_at: int) -> Claim:
        again = [key for key, at in self._left.items() if at <= now_at][: request.room]
        chosen = self._choose(request.room - len(again), now_at, until_at)
        keys = tuple(dict.fromkeys([*again, *(one.message.offer.key for one in chosen)]))
        if not keys:
            return Claim(runs=[], now_at=now_at, next_at=None, progressed=False, cursors=request.cursors)
        try:
            claim = await self._store.claim(msgspec.structs.replace(request, named=keys, room=len(keys)))
            self._taken_named += len(claim.runs)
        except BaseException:
            for one in chosen:
                one.listener.put_back(one.message)
            raise
        for one in chosen:
            one.listener.acknowledge(one.message)
        for key in keys:
            self._left.pop(key, None)
        self._leave(claim.left, request.lead_us, now_at)
        taken = len(claim.runs)
        self._telemetry.queue_taken(by_message=taken, stale=len(keys) - taken - len(claim.left))
        return claim

    def _choose(self, room: int, now_at: int, until_at: int) -> list["_Buffered"]:
        """Messages for so many places. What is due goes by class, as the store divides places; what is not yet, by its
        time: else the highest class would fill the places ahead of time that others need now."""
        soon_at = min(until_at, now_at + BRIEF_LEAD_US)
        waiting = {
            run_class: sum(listener.buffers[run_class].count(soon_at) for listener in self._listeners)
            for run_class in _CLASSES
        }
        chosen: list[_Buffered] = []
        shares = divide(room, waiting, self._taken_named)
        for run_class in _CLASSES:
            share = shares[run_class]
            for listener in self._listeners:
                messages = listener.buffers[run_class].take(share, soon_at)
                chosen += [_Buffered(listener, message) for message in messages]
                share -= len(messages)
        heads = [(listener, buffer) for listener in self._listeners for buffer in listener.buffers.values()]
        while len(chosen) < room and heads:
            listener, buffer = min(heads, key=lambda head: head[1].first_at)
            if buffer.first_at > until_at:
                break
            chosen += [_Buffered(listener, message) for message in buffer.take(1, until_at)]
        return chosen

    def _leave(self, left: Sequence[LeftRun], lead_us: int, now_at: int) -> None:
        """Keep what waits still, as long as messages are of use to it and as far as there is room."""
        for run in left:
            if len(self._left) >= _MOST_LEFT or run.due_at <= now_at - LATE_US:
                continue
            if run.due_at > now_at:
                at = max(run.due_at - lead_us, min(run.due_at, now_at + _NAME_AGAIN_US))
            else:
                at = now_at + _NAME_SOON_US
            self._left[run.key] = at

    # --- by the store's own way

    async def _take_late(self, request: ClaimRequest, now_at: int) -> Claim:
        """Claim what is late by the lanes."""
        asked = msgspec.structs.replace(request, lead_us=-LATE_US, taken_before=self._taken_late)
        late = await self._store.claim(asked)
        self._taken_late += len(late.runs)
        self._native_at = now_at  # where there were some, there may be more
        if not late.progressed:
            later_at = now_at + LOOK_US if late.next_at is None else min(now_at + LOOK_US, late.next_at)
            self._native_at = max(now_at + _LOOK_SOON_US, later_at)
        self._telemetry.queue_taken(by_store=len(late.runs))
        return late

    # --- what listeners ask

    def _room(self, run_class: int) -> int:
        """How many messages of a class may be read now."""
        ahead = max(self._free, -(-self._most_room // _PREFETCHED))
        buffered = sum(len(listener.buffers[run_class]) for listener in self._listeners)
        return max(0, min(_MOST_BUFFERED, ahead) - buffered)

    def _arrived(self, count: int) -> None:
        self._telemetry.queue_read(count)
        self.on_arrival()


class _Buffer:
    """Messages of a class, those first whose runs are due first: the stream is not always in that order."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Message]] = []
        self._count = 0  # of messages so far; of two that are due together the older one is first

    def __len__(self) -> int:
        return len(self._heap)

    def add(self, message: Message) -> None:
        """Put one in its place."""
        self._count += 1
        heapq.heappush(self._heap, (message.offer.due_at, self._count, message))

    @property
    def first_at(self) -> int:
        """When the first is due."""
        return self._heap[0][0] if self._heap else _NEVER

    def count(self, until_at: int) -> int:
        """How many are due up to an instant."""
        return sum(due_at <= until_at for due_at, _, _ in self._heap)

    def take(self, most: int, until_at: int) -> list[Message]:
        """The first of those that are due up to an instant."""
        taken: list[Message] = []
        while len(taken) < most and self._heap and self._heap[0][0] <= until_at:
            taken.append(heapq.heappop(self._heap)[2])
        return taken


class _Buffered(NamedTuple):
    """A message, and who read it."""

    listener: "_Listener"
    message: Message


class _Listener:
    """Reads one broker and acknowledges to it, each in a task that outlives the broker's failures."""

    def __init__(self, feed: Feed, room: Callable[[int], int], arrived: Callable[[int], None]) -> None:
        self._feed = feed
        self._room = room
        self._arrived = arrived
        self._has_room = asyncio.Event()
        self._has_acks = asyncio.Event()
        self._acks: deque[Message] = deque(maxlen=_MOST_ACKS)  # the oldest may be lost: they come again
        self._tasks: list[asyncio.Task[None]] = []
        self._closing = False  # libraries have been seen to swallow that a task is cancelled
        self.buffers = {run_class: _Buffer() for run_class in _CLASSES}

    def start(self) -> None:
        """Begin, unless it has."""
        if not self._tasks:
            self._tasks = [asyncio.create_task(self._listen()), asyncio.create_task(self._acknowledge())]

    def resume(self) -> None:
        """There may be room again."""
        self._has_room.set()

    def put_back(self, message: Message) -> None:
        """A message that was not used after all."""
        self.buffers[message.offer.run_class].add(message)

    def acknowledge(self, message: Message) -> None:
        """Tell the broker soon; nobody waits for it."""
        self._acks.append(message)
        self._has_acks.set()

    async def close(self) -> None:
        """Say what is to be acknowledged if the broker listens, and let go."""
        self._closing = True
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        with contextlib.suppress(Unavailable, TimeoutError):
            async with asyncio.timeout(_CLOSE_PATIENCE_S):
                if self._acks:
                    await self._feed.ack(list(self._acks))
        self._acks.clear()
        await self._feed.close()

    async def _listen(self) -> None:
        pause_s = 0.0
        while not self._closing:
            self._has_room.clear()
            room = {run_class: self._room(run_class) for run_class in _CLASSES}
            if not any(room.values()):
                await self._has_room.wait()
                continue
            try:
                messages = await self._feed.read(room)
            except Exception as error:
                pause_s = await self._pause(
                    "messages do not come; late runs come from the store", error, pause_s
                )
                continue
            if pause_s:
                _log.info("messages come again")
                pause_s = 0.0
            for message in messages:
                self.buffers[message.offer.run_class].add(message)
            if messages:
                self._arrived(len(messages))
            elif not all(room.values()):
                await self._room_or_a_while()

    async def _room_or_a_while(self) -> None:
        """Some classes are full and the others have nothing."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_GLANCE_S):
                await self._has_room.wait()

    async def _acknowledge(self) -> None:
        pause_s = 0.0
        while not self._closing:
            await self._has_acks.wait()
            self._has_acks.clear()
            while self._acks:
                batch = list(self._acks)
                self._acks.clear()
                try:
                    await self._feed.ack(batch)
                    pause_s = 0.0
                except Exception as error:
                    pause_s = await self._pause("messages cannot be acknowledged", error, pause_s)

    async def _pause(self, what: str, error: Exception, before_s: float) -> float:
        """Leave the broker alone for a while; said once per outage."""
        if not before_s:
            if isinstance(error, Unavailable):
                _log.warning(what, why=error.message)
            else:
                _log.exception(what)
        pause_s = min(before_s * 2 or _FIRST_PAUSE_S, _MOST_PAUSE_S)
        await asyncio.sleep(pause_s)
        return pause_s
