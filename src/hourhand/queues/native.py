"""The queue without a broker: workers claim through the store."""

from collections.abc import Callable

from hourhand.ports.store import Claim, ClaimRequest, Store


class NativeQueue:
    """Claims what waits in the store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.on_arrival: Callable[[], None] = lambda: None  # never called: the store's hints wake the worker

    async def start(self) -> None:
        """Nothing to listen to."""

    async def take(self, request: ClaimRequest) -> Claim:
        """Runs for a worker with a live lease."""
        return await self._store.claim(request)

    async def close(self) -> None:
        """Nothing to let go."""
