"""Operations on many jobs or dead letters, as they are kept: one row each, changed by compare-and-set."""

import msgspec

from hourhand.core.deeds import Act
from hourhand.core.identity import format_operation_id
from hourhand.core.operation import MAX_UNFINISHED, Operation, OperationState, cancelled
from hourhand.errors import Conflict, Overloaded
from hourhand.ports.operations import OperationPage
from hourhand.ports.store import Hint
from hourhand.stores.relational.deeds import note_deed
from hourhand.stores.relational.tx import Engine, Tx

_NEWEST_ID = (1 << 63) - 1
_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder(Operation)


class KeepsOperations:
    """The verbs over an engine."""

    _engine: Engine

    async def add_operation(self, operation: Operation) -> None:
        await self._engine.write(lambda tx: add_operation(tx, operation))

    async def get_operation(self, tenant: str, operation_id: int) -> Operation | None:
        return await self._engine.read(lambda tx: get_operation(tx, tenant, operation_id))

    async def list_operations(self, tenant: str, before_id: int | None, limit: int) -> OperationPage:
        return await self._engine.read(lambda tx: list_operations(tx, tenant, before_id, limit))

    async def cancel_operation(self, tenant: str, operation_id: int) -> Operation | None:
        return await self._engine.write(lambda tx: cancel_operation(tx, tenant, operation_id))

    async def unfinished_operations(self, after_id: int, limit: int) -> list[Operation]:
        return await self._engine.read(lambda tx: unfinished_operations(tx, after_id, limit))

    async def move_operation(self, operation: Operation) -> bool:
        return await self._engine.write(lambda tx: move_operation(tx, operation))


async def add_operation(tx: Tx, operation: Operation) -> None:
    """Store one of a tenant that has not too many."""
    if (await tx.one("count_unfinished_operations", (operation.tenant, MAX_UNFINISHED)))[0] >= MAX_UNFINISHED:
        raise Overloaded(f"{MAX_UNFINISHED} operations are under way already", retry_after_s=60)
    await tx.run("add_operation", (operation.id, operation.tenant, _text(operation)))
    await note_deed(
        tx,
        operation.tenant,
        Act.OPERATION_CREATE,
        object_id=format_operation_id(operation.id),
        count=operation.matched,
        note=operation.spec.note,
    )
    tx.hints.add(Hint.OPERATIONS)


async def get_operation(tx: Tx, tenant: str, operation_id: int) -> Operation | None:
    """One operation of a tenant."""
    row = await tx.one("get_operation", (operation_id, tenant))
    return None if row is None else _operation(row)


async def list_operations(tx: Tx, tenant: str, before_id: int | None, limit: int) -> OperationPage:
    """A page of operations, newest first."""
    rows = await tx.all("operations_page", (tenant, before_id or _NEWEST_ID, limit))
    found = tuple(_operation(row) for row in rows)
    return OperationPage(operations=found, next_before_id=found[-1].id if len(found) == limit else None)


async def cancel_operation(tx: Tx, tenant: str, operation_id: int) -> Operation | None:
    """End one where it is."""
    row = await tx.one("hold_operation", (operation_id, tenant))
    if row is None:
        return None
    seen = _operation(row)
    if seen.state is OperationState.DONE:
        raise Conflict(f"the operation {format_operation_id(operation_id)} is done already")
    if seen.state is OperationState.CANCELLED:
        return seen
    ended = cancelled(seen, tx.now_at)
    await move_operation(tx, ended)
    await note_deed(tx, tenant, Act.OPERATION_CANCEL, object_id=format_operation_id(operation_id))
    return ended


async def unfinished_operations(tx: Tx, after_id: int, limit: int) -> list[Operation]:
    """Operations with something left to do."""
    return [_operation(row) for row in await tx.all("unfinished_operations", (after_id, limit))]


async def move_operation(tx: Tx, operation: Operation) -> bool:
    """Keep one that nobody changed meanwhile."""
    values = {
        "id": operation.id,
        "revision": operation.revision,
        "finished_at": operation.finished_at,
        "body": _text(operation),
    }
    return await tx.run("move_operation", values) == 1


def _text(operation: Operation) -> str:
    return _ENCODER.encode(msgspec.structs.replace(operation, revision=0)).decode()


def _operation(row: tuple[int, str]) -> Operation:
    revision, body = row
    return msgspec.structs.replace(_DECODER.decode(body), revision=revision)
