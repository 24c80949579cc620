"""Answers that are kept for requests with an `Idempotency-Key`, and the promise that a request changes things once.

The promise travels beside the calls of a request. Stores check its fence in each transaction that changes
something under it, and note there that something was changed: so whoever takes over after a crash knows.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol

import msgspec

from hourhand.core.repeating import Answer, Fate


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """A request with a key."""

    tenant: str
    key: str
    sum: bytes


class Begun(msgspec.Struct, frozen=True, kw_only=True):
    """What the store says to a request with a key."""

    fate: Fate
    fence: int = 0
    since: int = 0
    answer: Answer | None = None  # of a replay
    retry_after_us: int = 0  # while another is in flight


class Past(msgspec.Struct, frozen=True, kw_only=True):
    """What those before had changed when they were fenced off."""

    applied: bool = False  # something that cannot be told again
    made: Mapping[int, int] = {}  # jobs, by their place among those of the request


class Promise(msgspec.Struct, kw_only=True):
    """A request that must not be carried out twice, while it is carried out. Not frozen: it counts, and it ends."""

    tenant: str
    key: str
    fence: int
    since: int
    made: Mapping[int, int] = {}
    numbered: int = 0
    is_open: bool = True

    def number(self, count: int) -> range:
        """Places for so many more jobs; a repeat gives the same job the same place."""
        start, self.numbered = self.numbered, self.numbered + count
        return range(start, self.numbered)


class Numbered(msgspec.Struct, frozen=True, kw_only=True):
    """Which job of which promised request a draft is."""

    key: str
    since: int
    place: int


_PROMISE: ContextVar[Promise | None] = ContextVar("hourhand.promise", default=None)
_HARMLESS: ContextVar[bool] = ContextVar("hourhand.harmless", default=False)


def promise() -> Promise | None:
    """The promise that the present call is made under, if there is one."""
    found = _PROMISE.get()
    return found if found is not None and found.is_open else None


def numbered(count: int) -> list[Numbered | None]:
    """Places for so many jobs of the present request; none without a promise."""
    under = promise()
    if under is None:
        return [None] * count
    return [Numbered(key=under.key, since=under.since, place=place) for place in under.number(count)]


def leaves_traces() -> bool:
    """Whether what is written now must be noted as something that a repeat may not do again."""
    return not _HARMLESS.get()


@contextmanager
def promising(one: Promise) -> Iterator[None]:
    """Everything within is done under a promise; what outlives it is not."""
    before = _PROMISE.set(one)
    try:
        yield
    finally:
        one.is_open = False
        _PROMISE.reset(before)


@contextmanager
def harmless() -> Iterator[None]:
    """What is written within may be written again, or is found again by itself. The fence is checked all the same."""
    before = _HARMLESS.set(True)
    try:
        yield
    finally:
        _HARMLESS.reset(before)


class AnswerVerbs(Protocol):
    """The verbs about kept answers."""

    async def begin_answer(self, asked: Asked) -> Begun:
        """Take a turn with a key, or say why not; atomic among all who send it."""
        ...

    async def fence_off(self, tenant: str, key: str, *, fence: int, since: int) -> Past:
        """Refuse from now on what is written under earlier fences of a key; says what they had changed.

        Whoever takes over a key asks for this before anything else. Unavailable where one database is silent.
        """
        ...

    async def finish_answer(self, tenant: str, key: str, fence: int, answer: Answer) -> bool:
        """Keep the answer; False where another has taken over."""
        ...

    async def abandon_answer(self, tenant: str, key: str, fence: int) -> None:
        """Give the turn back without an answer: a repeat takes over at once."""
        ...
