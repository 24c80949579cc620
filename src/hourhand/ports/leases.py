"""Leases: who is alive, and who plans which segments. For liveness only; safety is the store's fences.

Contract: a node is known by an id that is new at every start. `renew` prolongs its lease and raises
`LeaseLost` once it has run out: the node must then stop its attempts and `join` again under a new id.
Nodes of one kind share the segments evenly. Segments that are held may be held by somebody else too, for
a moment: plans carry the segment's fence, which grows whenever it changes hands, and the store refuses
those made under an older one. Where a lease server helps and is away, everybody goes on: the store decides.
"""

from collections.abc import Callable, Mapping
from typing import Protocol


class Leases(Protocol):
    """One node's membership."""

    @property
    def lease_us(self) -> int:
        """How long a renewal lasts, from some moment between its request and its answer."""
        ...

    async def join(self) -> int:
        """Begin under a new id, and say which."""
        ...

    async def renew(self) -> None:
        """Prolong the lease, and take or give back segments; LeaseLost when it had run out."""
        ...

    async def leave(self) -> None:
        """Give everything back at once."""
        ...

    async def segments(self) -> Mapping[int, int]:
        """The segments that this node plans as of its last renewal, each with its fence."""
        ...

    @property
    def parts(self) -> Mapping[str, str | None]:
        """What it needs beside the store, and what is wrong with it although it goes on, None where nothing is."""
        ...

    def subscribe(self, wake: Callable[[], None]) -> None:
        """Have `wake` called when a renewal is worth making before its time, where anybody tells."""
        ...
