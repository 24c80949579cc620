"""Where operations are executed, as every SQL store brings it."""

from typing import Protocol

from hourhand.stores.relational.tx import Operation, T


class Engine(Protocol):
    """Where operations are executed."""

    async def write(self, operation: Operation[T]) -> T:
        """Execute in a transaction that is durable when this returns."""
        ...

    async def read(self, operation: Operation[T]) -> T:
        """Execute on a snapshot, beside the writers."""
        ...

    async def close(self) -> None:
        """Finish what is under way."""
        ...
