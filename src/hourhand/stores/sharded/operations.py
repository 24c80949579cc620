"""Operations over several databases: each carries out its part under the same id, and they are told as one."""

import asyncio
from collections import defaultdict
from contextlib import suppress

import msgspec

from hourhand.core.operation import Operation, OperationState, joined
from hourhand.errors import Conflict, HourhandError, Unavailable
from hourhand.ports.acting import acting_for, actor
from hourhand.ports.operations import OperationPage
from hourhand.stores.sharded.asking import Shards


class ShardedOperations:
    """The verbs over all shards."""

    _shards: Shards

    async def add_operation(self, operation: Operation) -> None:
        """To every shard, each at its part of the pace; where one refuses, what others began is cancelled.

        The last to be asked keeps who asked, once for all of them.
        """
        count = len(self._shards)
        spec = operation.spec
        if spec.pace_us is not None:
            spec = msgspec.structs.replace(spec, pace_us=spec.pace_us * count)
        part = msgspec.structs.replace(operation, spec=spec)
        added: list[int] = []
        try:
            for index in range(count):
                with acting_for(actor() if index == count - 1 else None):
                    await self._shards.ask(index, lambda shard: shard.add_operation(part))
                added.append(index)
        except HourhandError:
            for index in added:
                with suppress(Unavailable, Conflict), acting_for(None):
                    await self._shards.ask(
                        index, lambda shard: shard.cancel_operation(operation.tenant, operation.id)
                    )
            raise

    async def get_operation(self, tenant: str, operation_id: int) -> Operation | None:
        found = await self._shards.ask_all(lambda shard: shard.get_operation(tenant, operation_id))
        parts = [part for part in found.values() if part is not None]
        return joined(parts) if parts else None

    async def list_operations(self, tenant: str, before_id: int | None, limit: int) -> OperationPage:
        found = await self._shards.ask_all(lambda shard: shard.list_operations(tenant, before_id, limit))
        parts: dict[int, list[Operation]] = defaultdict(list)
        for page in found.values():
            for part in page.operations:
                parts[part.id].append(part)
        newest = sorted(parts, reverse=True)[:limit]
        has_more = len(newest) == limit
        return OperationPage(
            operations=tuple(joined(parts[one]) for one in newest),
            next_before_id=newest[-1] if has_more else None,
            missing=self._shards.missing(found),
        )

    async def cancel_operation(self, tenant: str, operation_id: int) -> Operation | None:
        """Every part that is not done; Conflict where all are. The first that goes on keeps who asked."""

        async def cancel(index: int) -> Operation | Conflict | None:
            try:
                return await self._shards.ask(
                    index, lambda shard: shard.cancel_operation(tenant, operation_id)
                )
            except Conflict as error:
                return error

        found = await self._shards.ask_all(lambda shard: shard.get_operation(tenant, operation_id))
        for index, part in found.items():
            is_open = part is not None and part.state is OperationState.RUNNING
            if is_open and isinstance(await cancel(index), Operation):
                break
        with acting_for(None):
            answers = await asyncio.gather(*(cancel(index) for index in range(len(self._shards))))
        refusals = [answer for answer in answers if isinstance(answer, Conflict)]
        if not any(isinstance(answer, Operation) for answer in answers):
            if refusals:
                raise refusals[0]
            return None
        return await self.get_operation(tenant, operation_id)
