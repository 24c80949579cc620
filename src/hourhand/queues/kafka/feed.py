"""The worker's side: messages of one pool, buffered by class up to a bound, and acknowledged after the claim.

The reading itself is `consumer.GroupMember`'s, one for each class in its thread; here is the event loop's end of it.
A class whose buffer is full is held back at the server until half of it has been taken.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable, Mapping, Sequence

from hourhand.errors import Unavailable
from hourhand.ports.queue import Message
from hourhand.queues.kafka.address import KafkaAddress
from hourhand.queues.kafka.consumer import GroupMember, Place

MOST_BUFFERED = 2_000  # of each class

_WAIT_S = 1.0
_LEAVE_S = 3.0


class KafkaFeed:
    """What one worker reads of one pool. `close` before the loop ends."""

    def __init__(self, address: KafkaAddress, pool: str) -> None:
        self._address = address
        self._arrival = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._buffers = {run_class: _Buffer(self._wake) for run_class in address.all_topics.values()}
        self._members = {
            run_class: GroupMember(address, run_class, pool, hand=buffer.add, full=buffer.is_full)
            for run_class, buffer in self._buffers.items()
        }
        self._closed = False

    @property
    def assigned(self) -> int:
        """How many partitions it reads now."""
        return sum(member.assigned for member in self._members.values())

    async def read(self, room: Mapping[int, int]) -> Sequence[Message]:
        """Messages, of each class at most as many as there is room for; waits for the first if all have room."""
        if self._closed:
            raise Unavailable("this side of Kafka has been closed")
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
            for member in self._members.values():
                member.start()
        self._arrival.clear()
        found = self._taken(room)
        if not found and all(room.get(run_class, 0) for run_class in self._buffers):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_WAIT_S):
                    await self._arrival.wait()
            found = self._taken(room)
        if not found:
            self._tell_trouble()
        return found

    async def ack(self, messages: Sequence[Message]) -> None:
        """Their places may be committed; the threads do it with their next round."""
        places: dict[int, list[Place]] = {}
        for message in messages:
            places.setdefault(message.offer.run_class, []).append(message.place)
        for run_class, some in places.items():
            self._members[run_class].ack(some)

    async def close(self) -> None:
        """Leave the groups, so that others get the rest soon; never raises."""
        if self._closed:
            return
        self._closed = True
        self._arrival.set()
        if self._loop is not None:
            members = self._members.values()
            await asyncio.gather(*(asyncio.to_thread(member.end, _LEAVE_S) for member in members))

    def _taken(self, room: Mapping[int, int]) -> list[Message]:
        found: list[Message] = []
        for run_class, buffer in self._buffers.items():
            found += buffer.take(room.get(run_class, 0))
        return found

    def _tell_trouble(self) -> None:
        for member in self._members.values():
            if member.away is not None:
                raise Unavailable(f"Kafka at {self._address.servers}: {member.away}")

    def _wake(self) -> None:
        """From the threads."""
        loop = self._loop
        if loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop is closed, and nobody reads any more
                loop.call_soon_threadsafe(self._arrival.set)


class _Buffer:
    """Messages of one class on their way from a thread to the event loop: a deque is safe between the two."""

    def __init__(self, wake: Callable[[], None]) -> None:
        self._messages: deque[Message] = deque()
        self._wake = wake
        self._full = False

    def add(self, messages: Sequence[Message]) -> None:
        self._messages.extend(messages)
        self._wake()

    def is_full(self) -> bool:
        """From the bound on, until half of it is left."""
        self._full = len(self._messages) >= (MOST_BUFFERED // 2 if self._full else MOST_BUFFERED)
        return self._full

    def take(self, most: int) -> list[Message]:
        """The oldest, without those that another reader gets by now."""
        messages = self._messages
        some = (messages.popleft() for _ in range(min(most, len(messages))))
        return [message for message in some if not message.place[0].lost]
