"""Token buckets: so many at once, and so many a second after that. Pure: time and state come in and go out.

A bucket is one instant, when it will be full again. So an untouched one needs no state at all, and a refill no
timer.
"""

from typing import NamedTuple

import msgspec

from hourhand.core.instant import SECOND_US


class Limit(msgspec.Struct, frozen=True, kw_only=True):
    """At most `burst` at once, and `per_s` a second on average."""

    burst: int
    per_s: float

    def __post_init__(self) -> None:
        if self.burst < 1 or not 0.001 <= self.per_s <= SECOND_US:
            raise ValueError(f"a limit needs a burst of 1 or more and 0.001 to {SECOND_US:,} a second")

    @property
    def token_us(self) -> int:
        """The time in which one token comes back."""
        return max(1, round(SECOND_US / self.per_s))

    @property
    def window_s(self) -> int:
        """The time in which an empty bucket fills, in whole seconds."""
        return self.refill_s(0)

    def refill_s(self, left: int) -> int:
        """How long until a bucket with so many tokens is full, in whole seconds."""
        return max(1, -(-(self.burst - left) * self.token_us // SECOND_US))


class Verdict(NamedTuple):
    """Whether something may happen now; if not, when to ask again."""

    allowed: bool
    left: int  # tokens
    retry_after_us: int = 0


def take(full_at: int, now_at: int, limit: Limit, amount: int) -> tuple[int, Verdict]:
    """Take tokens from a bucket that is full at an instant; answers when it is now, and whether they were there."""
    if not 1 <= amount <= limit.burst:
        raise ValueError(f"from 1 to {limit.burst} tokens can be taken at once, got {amount}")
    token_us = limit.token_us
    full_at = max(full_at, now_at)
    missing_us = full_at + (amount - limit.burst) * token_us - now_at
    if missing_us > 0:
        return full_at, Verdict(False, limit.burst - -(-(full_at - now_at) // token_us), missing_us)
    full_at += amount * token_us
    return full_at, Verdict(True, limit.burst - -(-(full_at - now_at) // token_us))


def take_some(full_at: int, now_at: int, limit: Limit, least: int, most: int) -> tuple[int, int, Verdict]:
    """Take as many tokens as there are, from `least` to `most`; answers also how many these were."""
    full_at, verdict = take(full_at, now_at, limit, min(most, limit.burst))
    taken = min(most, limit.burst)
    if not verdict.allowed and least < taken:
        taken = max(least, min(most, verdict.left))
        full_at, verdict = take(full_at, now_at, limit, taken)
    return full_at, taken if verdict.allowed else 0, verdict
