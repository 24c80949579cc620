"""An offer: the hint to workers that a run may be taken, and how it is written down for a broker.

References only: whoever takes a run reads its job then, so that no message is stale or secret. The written form
has a version; a reader leaves alone what it does not know, since the store offers the run by itself a second later.
"""

from typing import Annotated, Literal

import msgspec

from hourhand.core.identity import BACKGROUND, RunKey
from hourhand.core.model import DEFAULT_POOL, Durability, Job

_Id = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]
_Fence = Annotated[int, msgspec.Meta(ge=0, lt=1 << 31)]
_Class = Annotated[int, msgspec.Meta(ge=0, lt=BACKGROUND)]
_Pool = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]


class UpcomingRun(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A run that waits to be taken, as the store tells of it."""

    job_id: int
    scheduled_at: int
    due_at: int
    fence: int
    run_class: int
    pool: str
    durability: Durability
    has_slot: bool  # ready or retrying, so that it waits for nobody


class Offer(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A run that may be taken `lead` before it is due."""

    job_id: int
    scheduled_at: int
    due_at: int
    fence: int  # of the attempts so far, so that an old message is known for what it is
    run_class: int  # HIGH, MEDIUM, LOW; background work is never offered
    pool: str = DEFAULT_POOL
    durability: Durability = Durability.CRITICAL
    job: Job | None = None  # as it is now, for brokers that carry whole messages; not in the compact form

    @property
    def key(self) -> RunKey:
        """The run's identity."""
        return RunKey(self.job_id, self.scheduled_at)


class NotAnOffer(ValueError):
    """A message that is none of ours, or of a version that is not known."""


def encode(offer: Offer) -> bytes:
    """The compact form: one line of JSON."""
    return _encoder.encode(
        _Wire(
            v=1,
            job_id=offer.job_id,
            scheduled_at=offer.scheduled_at,
            due_at=offer.due_at,
            fence=offer.fence,
            run_class=offer.run_class,
            pool=offer.pool,
            durability=offer.durability,
        )
    )


def decode(text: bytes) -> Offer:
    """What was written; fields that a later writer added are left alone. NotAnOffer where it cannot be read."""
    try:
        wire = _decoder.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise NotAnOffer(f"not an offer: {error}") from error
    return Offer(
        job_id=wire.job_id,
        scheduled_at=wire.scheduled_at,
        due_at=wire.due_at,
        fence=wire.fence,
        run_class=wire.run_class,
        pool=wire.pool,
        durability=wire.durability,
    )


class _Wire(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """Version 1. A field that is added has a default; one whose meaning changes makes a new version."""

    v: Literal[1]
    job_id: _Id
    scheduled_at: _Id
    due_at: _Id
    fence: _Fence
    run_class: _Class = msgspec.field(name="class")
    pool: _Pool = DEFAULT_POOL
    durability: Durability = Durability.CRITICAL


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(_Wire)
