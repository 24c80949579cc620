"""On whose behalf a verb of the store is called.

It travels beside the call, as a trace does, since every change needs it and none decides by it. Stores write it
down with what they change, in the same transaction; where nobody is named, as in duties, they write nothing.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import msgspec

from hourhand.core.access import Via


class Actor(msgspec.Struct, frozen=True, kw_only=True):
    """Who asked for a change, and by which request."""

    subject: str
    via: Via
    request_id: str | None = None


_ACTOR: ContextVar[Actor | None] = ContextVar("hourhand.actor", default=None)


def actor() -> Actor | None:
    """On whose behalf the present call is made; None where nobody asked for it."""
    return _ACTOR.get()


@contextmanager
def acting_for(one: Actor | None) -> Iterator[None]:
    """Name who asked, for everything that is called within; None where it is told elsewhere already, or nobody did."""
    before = _ACTOR.set(one)
    try:
        yield
    finally:
        _ACTOR.reset(before)
