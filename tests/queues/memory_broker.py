"""A broker in memory that does everything wrong that a broker may do, when it is told to.

It loses, repeats, reorders and delays messages, keeps some from being acknowledged, is away, and forgets all it has.
Time comes from the clock it is given and chance from a seed, so that a simulation owns both.
"""

import asyncio
import contextlib
import random
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from hourhand.core.instant import SECOND_US
from hourhand.core.offer import Offer, decode, encode
from hourhand.errors import Unavailable
from hourhand.ports.queue import Message


class Faults(NamedTuple):
    """How likely each mischief is, per message."""

    lose: float = 0.0
    repeat: float = 0.0
    delay: float = 0.0
    most_delay_us: int = 5 * SECOND_US
    reorder: bool = False


class _Entry(NamedTuple):
    number: int
    visible_at: int
    offer: Offer


_ABANDONED_US = 5 * SECOND_US  # what was given for so long and not acknowledged is given again


class MemoryBroker:
    """Messages of all pools and classes; each is given to one reader, and again after `redeliver`."""

    def __init__(self, now: Callable[[], int], *, seed: int = 0, faults: Faults | None = None) -> None:
        self._now = now
        self._random = random.Random(seed)
        self.faults = faults or Faults()
        self.away = False
        self.waiting: list[_Entry] = []
        self.given: dict[int, _Entry] = {}
        self._given_at: dict[int, int] = {}
        self.offered: list[tuple[int, Offer]] = []  # when, and what
        self.acked: list[Offer] = []
        self._numbers = 0
        self._news = asyncio.Event()

    def offers(self, *, wants_jobs: bool = False) -> "MemoryOffers":
        return MemoryOffers(self, wants_jobs)

    def feed(self, *pools: str) -> "MemoryFeed":
        return MemoryFeed(self, pools or ("default",))

    def put(self, offer: Offer) -> None:
        """One message, with whatever happens to it on the way."""
        faults = self.faults
        if self._random.random() < faults.lose:
            return
        for _ in range(2 if self._random.random() < faults.repeat else 1):
            delay_us = (
                self._random.randrange(faults.most_delay_us) if self._random.random() < faults.delay else 0
            )
            self._numbers += 1
            entry = _Entry(self._numbers, self._now() + delay_us, decode(encode(offer)))
            place = self._random.randrange(len(self.waiting) + 1) if faults.reorder else len(self.waiting)
            self.waiting.insert(place, entry)
        self.tell()

    def tell(self) -> None:
        """Let those who wait look again."""
        self._news.set()

    def empty(self) -> None:
        """Forget everything, as a server does that was replaced by an empty one."""
        self.waiting.clear()
        self.given.clear()

    def redeliver(self) -> None:
        """What was given and not acknowledged is given again."""
        self.waiting = [*self.given.values(), *self.waiting]
        self.given = {}
        self.tell()

    def give(self, pools: Sequence[str], room: Mapping[int, int]) -> list[Message]:
        """What can be seen by now of some pools, to somebody who reads, as far as each class has room."""
        now_at, left = self._now(), dict(room)
        found: list[Message] = []
        kept: list[_Entry] = []
        for entry in self.waiting:
            offer = entry.offer
            if entry.visible_at > now_at or offer.pool not in pools or left.get(offer.run_class, 0) <= 0:
                kept.append(entry)
                continue
            left[offer.run_class] -= 1
            self.given[entry.number] = entry
            self._given_at[entry.number] = now_at
            found.append(Message(offer, entry.number))
        self.waiting = kept
        return found

    def take_over(self) -> None:
        """What somebody has had for long, others may have: it may be dead."""
        for number in [number for number, at in self._given_at.items() if at < self._now() - _ABANDONED_US]:
            del self._given_at[number]
            if (entry := self.given.pop(number, None)) is not None:
                self.waiting.append(entry)

    def check(self) -> None:
        """Whether it answers."""
        if self.away:
            raise Unavailable("the broker is away")

    async def wait(self) -> None:
        """Until there may be something new, or what is delayed can be seen; not for ever."""
        self._news.clear()
        now_at = self._now()
        delayed_us = [entry.visible_at - now_at for entry in self.waiting if entry.visible_at > now_at]
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(min([SECOND_US, *delayed_us]) / SECOND_US):
                await self._news.wait()


class MemoryOffers:
    """The scheduler's side."""

    def __init__(self, broker: MemoryBroker, wants_jobs: bool) -> None:
        self._broker = broker
        self.wants_jobs = wants_jobs
        self.closed = False

    async def offer(self, offers: Sequence[Offer]) -> None:
        self._broker.check()
        for offer in offers:
            self._broker.offered.append((self._broker._now(), offer))
            self._broker.put(offer)

    async def close(self) -> None:
        self.closed = True


class MemoryFeed:
    """One worker's side."""

    def __init__(self, broker: MemoryBroker, pools: Sequence[str]) -> None:
        self._broker = broker
        self._pools = pools
        self.closed = False

    async def read(self, room: Mapping[int, int]) -> Sequence[Message]:
        self._broker.check()
        self._broker.take_over()
        found = self._broker.give(self._pools, room)
        if not found and all(room.values()):
            await self._broker.wait()
        return found

    async def ack(self, messages: Sequence[Message]) -> None:
        self._broker.check()
        for message in messages:
            self._broker.given.pop(message.place, None)
            self._broker._given_at.pop(message.place, None)
            self._broker.acked.append(message.offer)

    async def close(self) -> None:
        self.closed = True
