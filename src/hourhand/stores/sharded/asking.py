"""How shards are asked: one, a job's own, all of them, or each for its part; and what it means that one is silent.

Any failure but silence is raised. What the answers come to, and where jobs go, is `stores.sharded.store`'s.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TypeVar

from hourhand.core.identity import RunKey, shard_of
from hourhand.core.run import ProgressNote, Settlement
from hourhand.errors import Unavailable
from hourhand.ports.store import Store

T = TypeVar("T")
R = TypeVar("R", ProgressNote, Settlement)


class Shards:
    """The databases of a cluster in the order of their indexes; remembers which did not answer when last asked."""

    def __init__(self, stores: Sequence[Store]) -> None:
        self._stores = tuple(stores)
        self.silent: set[int] = set()

    def __len__(self) -> int:
        return len(self._stores)

    def __iter__(self) -> Iterator[Store]:
        return iter(self._stores)

    async def ask(self, index: int, verb: Callable[[Store], Awaitable[T]]) -> T:
        """One shard's answer; remembers whether it gave one."""
        try:
            answer = await verb(self._stores[index])
        except Unavailable as error:
            self.silent.add(index)
            raise type(error)(f"shard {index}: {error.message}") from error
        self.silent.discard(index)
        return answer

    async def ask_home(self, job_id: int, verb: Callable[[Store], Awaitable[T]]) -> T | None:
        """The answer of a job's shard; None where no shard could have such a job."""
        index = shard_of(job_id)
        return await self.ask(index, verb) if index < len(self._stores) else None

    async def ask_all(self, verb: Callable[[Store], Awaitable[T]]) -> dict[int, T]:
        """The answers of the shards that gave one; Unavailable when none did."""
        return await some_answers_of({index: self.ask(index, verb) for index in range(len(self._stores))})

    async def each_key(
        self,
        keys: Sequence[RunKey],
        verb: Callable[[Store, Sequence[RunKey]], Awaitable[list[RunKey]]],
    ) -> list[RunKey]:
        """Do something with runs on their shards; when a shard is away it is done on the others all the same."""
        parts = by_shard(keys, lambda key: key.job_id)

        async def change(index: int) -> list[RunKey]:
            return await self.ask(index, lambda shard: verb(shard, parts[index]))

        asked = {index: change(index) for index in parts if index < len(self._stores)}
        answers = await answers_of(asked)
        if len(answers) < len(asked):
            away = named(set(asked) - set(answers))
            raise Unavailable(f"{away} cannot be reached; what lies elsewhere is done")
        done = {key for part in answers.values() for key in part}
        return [key for key in keys if key in done]

    async def each_id(
        self, ids: Sequence[int], verb: Callable[[Sequence[int], Store], Awaitable[list[T]]]
    ) -> list[T]:
        """What the shards of some jobs say of them."""
        found: list[T] = []
        for index, part in by_shard(ids, lambda one: one).items():
            found += [] if index >= len(self._stores) else await self.ask(index, partial(verb, part))
        return found

    async def each_refusal(
        self, items: Sequence[R], verb: Callable[[Sequence[R], Store], Awaitable[list[R]]]
    ) -> list[R]:
        """What the shards refuse of items that are each about one run, and what no shard could have."""
        refused: list[R] = []
        parts = by_shard(items, lambda item: item.job_id)
        for index, part in parts.items():
            refused += part if index >= len(self._stores) else await self.ask(index, partial(verb, part))
        return refused

    def missing(self, answers: Mapping[int, object]) -> tuple[int, ...]:
        """The shards that are not among those that answered."""
        return tuple(index for index in range(len(self._stores)) if index not in answers)


def by_shard(items: Sequence[T], job_id: Callable[[T], int]) -> dict[int, list[T]]:
    """Items by the shard of the job that each is about."""
    parts: dict[int, list[T]] = {}
    for item in items:
        parts.setdefault(shard_of(job_id(item)), []).append(item)
    return parts


async def answers_of(asked: Mapping[int, Awaitable[T]]) -> dict[int, T]:
    """The answers of the shards that gave one; any failure but silence is raised, once all have ended."""
    ended = await asyncio.gather(*asked.values(), return_exceptions=True)
    answers: dict[int, T] = {}
    for index, answer in zip(asked, ended, strict=True):
        if not isinstance(answer, BaseException):
            answers[index] = answer
        elif not isinstance(answer, Unavailable):
            raise answer
    return answers


async def some_answers_of(asked: Mapping[int, Awaitable[T]]) -> dict[int, T]:
    """The same, but Unavailable when nobody answered."""
    answers = await answers_of(asked)
    if asked and not answers:
        raise Unavailable(f"no database can be reached: {named(asked)}")
    return answers


def named(shards: Iterable[int]) -> str:
    """Shards in words."""
    return " and ".join(f"shard {shard}" for shard in sorted(shards))
