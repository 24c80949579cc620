"""The transaction that an operation works in, as every SQL store offers it.

On SQLite an operation never really waits: the writer thread drives it from start to end. On PostgreSQL
each statement is a round trip. Parameters go by name or by place, as the statement of that name says.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol, TypeVar

from hourhand.ports.acting import Actor

T = TypeVar("T")

Parameters = Sequence[Any] | dict[str, Any]


class ChangedMeanwhile(Exception):
    """What an operation had read before it could lock it is no longer so; the engine starts it over."""


class Tx(Protocol):
    """Named statements on one connection, all or nothing."""

    now_at: int  # the store's time
    hints: set[str]  # what others may wait for, told after the commit
    actor: Actor | None  # on whose behalf all this is done; nobody's for duties

    async def run(self, name: str, parameters: Parameters = ()) -> int:
        """Execute a named statement; says how many rows it touched."""
        ...

    async def one(self, name: str, parameters: Parameters = ()) -> Any:
        """The first row of a named query, None where there is none."""
        ...

    async def all(self, name: str, parameters: Parameters = ()) -> list[Any]:
        """All rows of a named query."""
        ...

    async def insert(self, name: str, rows: Sequence[Sequence[Any]]) -> None:
        """Execute a named one-row insert for many rows, in as few steps as possible."""
        ...

    def array(self, values: Sequence[int] | Sequence[str]) -> Any:
        """Many values as one parameter."""
        ...

    async def look_at_clock(self) -> None:
        """Read the store's time again: locks may have been waited for since it was read."""
        ...


Operation = Callable[[Tx], Awaitable[T]]


class Engine(Protocol):
    """Where operations are executed."""

    async def write(self, operation: Operation[T]) -> T:
        """Execute in a transaction that is durable when this returns."""
        ...

    async def read(self, operation: Operation[T]) -> T:
        """Execute on a snapshot, beside the writers."""
        ...

    async def glance(self, operation: Operation[T]) -> T:
        """The same for a few rows by their keys: without handing over to a thread, which would cost more than they."""
        ...

    async def close(self) -> None:
        """Finish what is under way."""
        ...
