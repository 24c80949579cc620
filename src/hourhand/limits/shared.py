"""Limits counted in the store, for all processes that share it, without a round trip for each request.

A process takes tokens in portions and serves requests from what it has in hand. So what all processes let pass is
never more than the bucket gave out, and at any moment at most a portion of each process is given out and not used:
within any time, a caller gets at most burst + rate x time + (processes x portion) through, and is refused only while
less than (processes x portion) is left. A portion is a share of the burst, at least one token.
"""

import asyncio
from typing import Protocol

from hourhand.clock import Clock
from hourhand.core.bucket import Limit, Verdict
from hourhand.errors import Unavailable
from hourhand.ports.limits import Portion

PORTION_SHARE = 20  # a portion is the burst divided by this
PATIENCE_S = 0.5  # a request waits behind it
MOST_KEYS = 100_000


class Buckets(Protocol):
    """Where the buckets are; the store."""

    async def take_tokens(self, key: str, limit: Limit, least: int, most: int) -> Portion:
        """Take tokens under the bucket's lock."""
        ...


class _Hand:
    """What this process has of one bucket."""

    __slots__ = ("again_at", "left", "lock", "tokens")

    def __init__(self) -> None:
        self.tokens = 0
        self.left = 0  # in the bucket, when it was last asked
        self.again_at = 0  # before this there is no portion to be had
        self.lock = asyncio.Lock()


class SharedLimits:
    """Buckets of the store. What is in hand of too many keys is forgotten, which lets nobody through twice."""

    def __init__(
        self, buckets: Buckets, clock: Clock, *, patience_s: float = PATIENCE_S, most_keys: int = MOST_KEYS
    ) -> None:
        self._buckets = buckets
        self._clock = clock
        self._patience_s = patience_s
        self._most_keys = most_keys
        self._hands: dict[str, _Hand] = {}

    async def take(self, key: str, limit: Limit, amount: int = 1) -> Verdict:
        """From what is in hand; the store is asked for another portion when that is used up."""
        if not 1 <= amount <= limit.burst:
            raise ValueError(f"from 1 to {limit.burst} tokens can be taken at once, got {amount}")
        hand = self._hand(key)
        if hand.tokens < amount:
            async with hand.lock:
                if hand.tokens < amount and (hand.left >= amount or self._clock.now() >= hand.again_at):
                    await self._fetch(key, hand, limit, amount)
        if hand.tokens < amount:
            wait_us = max(limit.token_us, hand.again_at - self._clock.now())
            return Verdict(False, hand.left + hand.tokens, wait_us)
        hand.tokens -= amount
        return Verdict(True, hand.left + hand.tokens)

    def _hand(self, key: str) -> _Hand:
        hand = self._hands.get(key)
        if hand is None:
            if len(self._hands) >= self._most_keys:
                self._hands = {name: one for name, one in self._hands.items() if one.lock.locked()}
            hand = self._hands[key] = _Hand()
        return hand

    async def _fetch(self, key: str, hand: _Hand, limit: Limit, amount: int) -> None:
        """Get a portion, or what is there of one; after less than a portion the next is waited for."""
        portion = max(amount - hand.tokens, limit.burst // PORTION_SHARE)
        try:
            async with asyncio.timeout(self._patience_s):
                got = await self._buckets.take_tokens(key, limit, amount - hand.tokens, portion)
        except TimeoutError as error:
            raise Unavailable("the store that counts requests does not answer in time") from error
        hand.tokens += got.taken
        hand.left = got.left
        if got.taken < portion:
            hand.again_at = self._clock.now() + max(
                got.retry_after_us, (portion - got.taken - got.left) * limit.token_us
            )
