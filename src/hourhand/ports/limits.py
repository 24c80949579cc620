"""Limits: how often something may happen, counted by whoever all callers share.

Contract: each key is a token bucket of its own, full at first. `take` is atomic, also among processes where the
adapter is shared by them, and takes all tokens or none. Time is the adapter's. Buckets that are full again are
forgotten. Unavailable when the server that counts does not answer: the caller decides whether to let it pass.
"""

from typing import NamedTuple, Protocol

from hourhand.core.bucket import Limit, Verdict


class Limits(Protocol):
    """Counts for many keys."""

    async def take(self, key: str, limit: Limit, amount: int = 1) -> Verdict:
        """Take tokens from the bucket of a key, if they are there."""
        ...


class Portion(NamedTuple):
    """Tokens that a process took at once, to use them up by itself."""

    taken: int
    left: int  # in the bucket
    retry_after_us: int = 0  # until the fewest that were asked for are there
