"""The store's verbs about operations on many jobs or dead letters. Part of `ports.store`.

A store keeps operations; carrying them out is `services.operator`'s. Of several databases each has its own part
under the same id, and whoever asks all of them sees one.
"""

from typing import Protocol

import msgspec

from hourhand.core.operation import Operation


class OperationPage(msgspec.Struct, frozen=True, kw_only=True):
    """Some operations, newest first, and where to go on."""

    operations: tuple[Operation, ...]
    next_before_id: int | None
    missing: tuple[int, ...] = ()  # shards that did not answer


class OperationVerbs(Protocol):
    """Operations."""

    async def add_operation(self, operation: Operation) -> None:
        """Store one; Overloaded when the tenant has too many that are not over."""
        ...

    async def get_operation(self, tenant: str, operation_id: int) -> Operation | None:
        """One operation."""
        ...

    async def list_operations(self, tenant: str, before_id: int | None, limit: int) -> OperationPage:
        """A page of operations, newest first."""
        ...

    async def cancel_operation(self, tenant: str, operation_id: int) -> Operation | None:
        """End it where it is; again changes nothing, Conflict when it is done. None when there is none."""
        ...

    async def unfinished_operations(self, after_id: int, limit: int) -> list[Operation]:
        """Those with something left to do, by id."""
        ...

    async def move_operation(self, operation: Operation) -> bool:
        """Keep how far it is, if nobody changed it since it was read; says whether it was kept."""
        ...
