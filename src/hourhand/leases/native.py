"""Leases kept by the store itself: nothing else to run.

With a single process, as on SQLite, it plans every segment.
"""

from collections.abc import Sequence

from hourhand.ids import IdSource
from hourhand.ports.store import Store

LEASE_US = 30_000_000


class NativeLeases:
    """One node's membership, through the store's verbs."""

    def __init__(self, *, store: Store, ids: IdSource, kind: str, name: str, segments: int) -> None:
        self._store = store
        self._ids = ids
        self._kind = kind
        self._name = name
        self._segments = range(segments)
        self._node_id = 0

    async def join(self) -> int:
        """Begin under a new id."""
        node_id = self._ids.node_id()
        await self._renew(node_id)
        self._node_id = node_id  # only now: a join that failed must not be taken for a renewal
        return node_id

    async def renew(self) -> None:
        """Prolong the lease in the store."""
        await self._renew(self._node_id)

    async def leave(self) -> None:
        """End the lease; the sweeper takes what is left."""
        await self._store.end_node(self._node_id)

    async def segments(self) -> Sequence[int]:
        """All of them."""
        return self._segments

    async def _renew(self, node_id: int) -> None:
        await self._store.renew_node(node_id, self._kind, self._name, LEASE_US)
