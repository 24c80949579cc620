"""The queue without a broker: workers claim through the store."""

from hourhand.ports.store import Claim, ClaimRequest, Store


class NativeQueue:
    """Claims what waits in the store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def take(self, request: ClaimRequest) -> Claim:
        """Runs for a worker with a live lease."""
        return await self._store.claim(request)
