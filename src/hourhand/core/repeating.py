"""Requests that may be sent again under the same key: what becomes of a repeat. Pure.

A key belongs to one request of one tenant for a day. While its first sender may still be at work a repeat has to
wait; once the answer is kept a repeat gets that; and where the sender went silent a repeat takes over, under a fence
by which everything that the silent one would still write is refused.
"""

from collections.abc import Mapping
from enum import StrEnum

import msgspec

from hourhand.core.instant import DAY_US, SECOND_US

KEPT_US = DAY_US
LEASE_US = 60 * SECOND_US  # how long a request may take before a repeat takes over
MAX_KEY = 255
MAX_ANSWER_BYTES = 1024 * 1024  # of a body that is kept


class Fate(StrEnum):
    """What becomes of a request with a key."""

    NEW = "new"
    AGAIN = "again"  # whoever had it went silent, or its answer could not be kept: it takes over
    REPLAY = "replay"
    IN_FLIGHT = "in_flight"
    OTHER = "other"  # the key belongs to another request


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """An answer as it is kept."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """Who has a key at present, and since when it means this request."""

    sum: bytes  # of everything that makes the request what it is
    fence: int
    since: int  # the fence of the first who had it for this request
    lease_until: int
    began_at: int
    is_answered: bool = False


def judge(turn: Turn, sum_: bytes, now_at: int) -> Fate:
    """What becomes of a request whose key is known."""
    if turn.began_at + KEPT_US <= now_at:
        return Fate.NEW
    if turn.sum != sum_:
        return Fate.OTHER
    if turn.is_answered:
        return Fate.REPLAY
    return Fate.IN_FLIGHT if turn.lease_until > now_at else Fate.AGAIN


def taken(turn: Turn | None, fate: Fate, sum_: bytes, now_at: int) -> Turn:
    """The turn of a request that is new or takes over: its fence is above all before it."""
    fence = now_at if turn is None else max(now_at, turn.fence + 1)
    again = turn if fate is Fate.AGAIN else None
    return Turn(
        sum=sum_,
        fence=fence,
        since=again.since if again else fence,
        lease_until=now_at + LEASE_US,
        began_at=again.began_at if again else now_at,
    )
