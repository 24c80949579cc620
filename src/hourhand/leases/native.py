"""Leases kept by the store itself: nothing else to run."""

from collections.abc import Callable, Mapping

from hourhand.ids import IdSource
from hourhand.ports.store import LeaseLost, Store

LEASE_US = 30_000_000


class NativeLeases:
    """One node's membership, through the store's verbs. `plans`: it takes its part of the segments."""

    def __init__(
        self, *, store: Store, ids: IdSource, kind: str, name: str, plans: bool, lease_us: int = LEASE_US
    ) -> None:
        self._store = store
        self._ids = ids
        self._kind = kind
        self._name = name
        self._plans = plans
        self.lease_us = lease_us
        self._node_id = 0
        self._held: Mapping[int, int] = {}

    async def join(self) -> int:
        """Begin under a new id."""
        node_id = self._ids.node_id()
        await self._renew(node_id)
        self._node_id = node_id  # only now: a join that failed must not be taken for a renewal
        return node_id

    async def renew(self) -> None:
        """Prolong the lease in the store."""
        try:
            await self._renew(self._node_id)
        except LeaseLost:
            self._held = {}
            raise

    async def leave(self) -> None:
        """End the lease, which frees its segments; the sweeper takes what is left."""
        self._held = {}
        await self._store.end_node(self._node_id)

    async def segments(self) -> Mapping[int, int]:
        """As the store said last."""
        return self._held

    @property
    def parts(self) -> Mapping[str, str | None]:
        """Nothing: the store is known to everybody."""
        return {}

    def subscribe(self, wake: Callable[[], None]) -> None:
        """Never: the store tells nobody of segments."""

    async def _renew(self, node_id: int) -> None:
        if self._plans:
            self._held = await self._store.hold_segments(node_id, self._kind, self._name, self.lease_us)
        else:
            await self._store.renew_node(node_id, self._kind, self._name, self.lease_us)
