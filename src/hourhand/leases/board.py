"""What a lease server is to us: a board where the schedulers of one database say that they live and who has what.

Contract: a member is gone when it has not renewed for its lease's time by the server's clock, or has left. What
it held stays written under its name until somebody takes it. Each change of a segment is compare-and-set, with
the living as the server sees them then. Every call ends within the board's patience, with `Away` where the
server did not answer; what was asked may have happened all the same, and may be asked again.
"""

from collections.abc import Callable, Collection, Mapping
from typing import Protocol

import msgspec


class Away(Exception):
    """The lease server does not answer, or not as it should; the text says how."""


class Forgotten(Exception):
    """The lease server does not know what it knew before: it was emptied, or replaced by another."""


class View(msgspec.Struct, frozen=True, kw_only=True):
    """What is written on the board."""

    members: frozenset[int]
    holders: Mapping[int, int]  # of each segment that has one, dead or alive

    def of(self, node_id: int) -> set[int]:
        """The segments under a node's name."""
        return {segment for segment, holder in self.holders.items() if holder == node_id}


class Board(Protocol):
    """The board of one database's schedulers, as one of them sees it."""

    @property
    def where(self) -> str:
        """The server, for people; no password."""
        ...

    async def enter(self, node_id: int, claims: Collection[int]) -> View:
        """Become a member; `claims`, which the store has given it, are written under its name in any case."""
        ...

    async def renew(self, node_id: int) -> View:
        """Stay a member. LeaseLost when it is none any more; Forgotten when the server has lost its memory."""
        ...

    async def change(self, node_id: int, gives: Collection[int], takes: Mapping[int, int]) -> View:
        """Erase its name where it stands, and write it where still is what `takes` names: 0 for nothing, or
        a node that is no member. LeaseLost when it is no member itself."""
        ...

    async def leave(self, node_id: int) -> None:
        """Be no member at once, and have nothing."""
        ...

    def subscribe(self, wake: Callable[[], None]) -> None:
        """Have `wake` called when others changed something, where the server tells."""
        ...

    async def close(self) -> None:
        """Let go of the server."""
        ...
