"""Gathers what arrives while a batch is on its way: single requests share transactions, a lone one does not wait.

A batch that fails for another reason than an outage is tried again one adder at a time, so that a value that
cannot be stored harms nobody else.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

from hourhand.errors import Unavailable

I = TypeVar("I")  # noqa: E741 - items
R = TypeVar("R")


class Gathering(Generic[I, R]):
    """Calls `apply` with many items at once, one call at a time; each adder gets the answers to its own."""

    def __init__(self, apply: Callable[[Sequence[I]], Awaitable[list[R]]], most: int) -> None:
        self._apply = apply
        self._most = most
        self._waiting: list[tuple[Sequence[I], asyncio.Future[list[R]]]] = []
        self._runner: asyncio.Task[None] | None = None

    async def add(self, items: Sequence[I]) -> list[R]:
        """The answers to these items, in their order."""
        if len(items) >= self._most:
            return await self._apply(items)
        future: asyncio.Future[list[R]] = asyncio.get_running_loop().create_future()
        self._waiting.append((items, future))
        if self._runner is None:
            self._runner = asyncio.create_task(self._run(), name="gathering")
        return await future

    async def _run(self) -> None:
        while self._waiting:
            batch: list[tuple[Sequence[I], asyncio.Future[list[R]]]] = []
            count = 0
            while self._waiting and (not batch or count + len(self._waiting[0][0]) <= self._most):
                batch.append(self._waiting.pop(0))
                count += len(batch[-1][0])
            await self._answer(batch)
        self._runner = None

    async def _answer(self, batch: Sequence[tuple[Sequence[I], asyncio.Future[list[R]]]]) -> None:
        try:
            answers = await self._apply([item for items, _ in batch for item in items])
        except Exception as error:
            if len(batch) > 1 and not isinstance(error, Unavailable):
                for one in batch:
                    await self._answer([one])
                return
            for _, future in batch:
                if not future.done():
                    future.set_exception(error)
            return
        start = 0
        for items, future in batch:
            if not future.done():
                future.set_result(answers[start : start + len(items)])
            start += len(items)
