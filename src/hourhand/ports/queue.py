"""The run queue: how runs are offered to workers, and how a worker comes by them.

Contract: messages of a broker are disposable hints about runs that are due soon; the store decides who gets what.
A broker may lose, repeat, reorder and delay messages, or be away: whatever it does wrong costs a run a second or
two, since workers with room also claim through the store what is late. So nothing here is ever retried for safety.

* **Offers** is the scheduler's side: `offer` hands a batch to the broker.
* **Feed** is the worker's side of one broker: `read` messages, `ack` them once the claim is durable.
* **Queue** is what a worker asks: `take` answers runs that are durably claimed for it.

`errors.Unavailable` is the one error of Offers and Feed while a broker is away, full or refuses; both reconnect and
mend what they need there (streams, groups, topics) by themselves, and may be called again at any time.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from hourhand.core.offer import Offer
from hourhand.ports.store import Claim, ClaimRequest


class Message(msgspec.Struct, frozen=True, gc=False):
    """An offer as it came from a broker, with whatever its acknowledgement needs; that is the feed's own."""

    offer: Offer
    place: Any


class Offers(Protocol):
    """Hands offers to a broker."""

    @property
    def wants_jobs(self) -> bool:
        """Whether each offer is to carry its job, for messages that tell everything."""
        ...

    async def offer(self, offers: Sequence[Offer]) -> None:
        """Hand over a batch. Unavailable when some were not taken; all of it may then come again, or nothing."""
        ...

    async def close(self) -> None:
        """Let go; never raises."""
        ...


class Feed(Protocol):
    """What one worker reads from a broker. `read` and `ack` may be called side by side, each one at a time."""

    async def read(self, room: Mapping[int, int]) -> Sequence[Message]:
        """Messages, of each class at most as many as there is room for; a class without room is left alone.

        Waits for the first, but not for ever, and only while every class has room: where one has none the answer
        comes at once, since room may come too. An answer without any is no error. Messages that cannot be read
        are dropped. Cancelling loses at most what was about to be answered.
        """
        ...

    async def ack(self, messages: Sequence[Message]) -> None:
        """These need not be told to anybody again: their runs are claimed, or nobody's any more."""
        ...

    async def close(self) -> None:
        """Let go, so that others get what was not acknowledged soon; never raises."""
        ...


class Queue(Protocol):
    """Hands claimed runs to a worker."""

    on_arrival: Callable[[], None]  # set by the worker; called when it pays to `take` sooner than was said

    async def start(self) -> None:
        """Begin to listen; repeated it changes nothing. Never waits for a broker."""
        ...

    async def take(self, request: ClaimRequest) -> Claim:
        """Runs for a worker with a live lease, at most as many as it has room for; durable when answered."""
        ...

    async def close(self) -> None:
        """Stop listening and let go."""
        ...
