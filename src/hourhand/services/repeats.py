"""Requests with a key: carried out once, however often they are sent; the answer is kept for a day.

Whoever takes over from one that went silent first fences it off, and learns what it had changed: jobs that it made
are found again, anything else is not done a second time. How an answer looks is the web's.
"""

import math

from hourhand.core.instant import SECOND_US
from hourhand.core.repeating import Answer, Fate
from hourhand.errors import AnswerLost, InFlight, KeyReused
from hourhand.ports.answers import Asked, Promise
from hourhand.ports.store import Store

_LONGEST_PAUSE_S = 2  # most requests that are in flight will be answered by then


class Repeats:
    """Use cases over the store; stateless, any number of instances."""

    def __init__(self, *, store: Store) -> None:
        self._store = store

    async def begin(self, asked: Asked) -> Promise | Answer:
        """A promise to carry the request out under, or the answer that was kept.

        KeyReused, InFlight or AnswerLost where there is neither.
        """
        begun = await self._store.begin_answer(asked)
        match begun.fate:
            case Fate.REPLAY if begun.answer is not None:
                return begun.answer
            case Fate.OTHER:
                raise KeyReused(
                    "this Idempotency-Key came with another request in the last 24 hours; take a new key"
                )
            case Fate.IN_FLIGHT:
                left_s = math.ceil(begun.retry_after_us / SECOND_US)
                raise InFlight(
                    "a request with this Idempotency-Key is being carried out",
                    retry_after_s=max(1, min(left_s, _LONGEST_PAUSE_S)),
                )
        under = Promise(tenant=asked.tenant, key=asked.key, fence=begun.fence, since=begun.since)
        if begun.fate is Fate.AGAIN:
            await self._take_over(under)
        return under

    async def keep(self, under: Promise, answer: Answer) -> None:
        """Keep the answer for whoever sends the request again."""
        await self._store.finish_answer(under.tenant, under.key, under.fence, answer)

    async def give_up(self, under: Promise) -> None:
        """Let a repeat begin at once: this one has no answer that is worth keeping."""
        await self._store.abandon_answer(under.tenant, under.key, under.fence)

    async def _take_over(self, under: Promise) -> None:
        try:
            past = await self._store.fence_off(under.tenant, under.key, fence=under.fence, since=under.since)
        except BaseException:
            await self.give_up(under)
            raise
        if past.applied:
            await self.give_up(under)
            raise AnswerLost(
                "this request was carried out before, but its answer was not kept; it is not carried out again: "
                "read what is there, and take a new key to change it"
            )
        under.made = past.made
