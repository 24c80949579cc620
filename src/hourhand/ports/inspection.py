"""What a store can be asked from outside, without working on it: for whoever looks whether all is well."""

import msgspec

from hourhand.ports.store import NodeInfo

MOST_JOBS = 100_000  # that are looked at for what they call


class CalledFunction(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """A function that jobs with times to come call, in a pool."""

    function: str
    pool: str


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """An old view of the data that somebody still holds: what was deleted since cannot be cleaned away."""

    age_s: float
    process: int
    program: str


class StoreFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What a store says of itself and of those who work on it."""

    now_at: int  # by the store's clock
    tzdata: str | None  # the newest zone data that a process on it had
    nodes: tuple[NodeInfo, ...]
    called: tuple[CalledFunction, ...]
    snapshot: Snapshot | None = None  # the oldest that is too old
