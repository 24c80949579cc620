"""Requests that share a batch: everybody gets their own answers, errors and nothing of the others'."""

import asyncio
from collections.abc import Sequence

import pytest

from hourhand.errors import Unavailable
from hourhand.stores.postgres.gathering import Gathering


class Server:
    """Answers batches when it is let, and remembers them."""

    def __init__(self, most: int = 10) -> None:
        self.batches: list[list[int]] = []
        self.open = asyncio.Event()
        self.outage: Exception | None = None
        self.gathering: Gathering[int, str] = Gathering(self._apply, most=most)

    async def _apply(self, items: Sequence[int]) -> list[str]:
        self.batches.append(list(items))
        await self.open.wait()
        if self.outage is not None:
            raise self.outage
        if -1 in items:
            raise ValueError("a value that cannot be stored")
        return [f"answer {item}" for item in items]

    def add(self, *items: int) -> "asyncio.Task[list[str]]":
        return asyncio.create_task(self.gathering.add(items))


async def turn() -> None:
    """Let everybody get as far as they can."""
    for _ in range(5):
        await asyncio.sleep(0)


async def test_a_lone_request_does_not_wait() -> None:
    server = Server()
    server.open.set()
    assert await server.add(1, 2) == ["answer 1", "answer 2"]
    assert await server.add() == []
    assert await server.add(3) == ["answer 3"]


async def test_what_comes_meanwhile_goes_together_in_order() -> None:
    server = Server()
    tasks = [server.add(1)]
    await turn()
    tasks += [server.add(2, 3), server.add(4), server.add(5, 6)]
    await turn()
    assert server.batches == [[1]]
    server.open.set()
    answers = await asyncio.gather(*tasks)
    assert answers == [["answer 1"], ["answer 2", "answer 3"], ["answer 4"], ["answer 5", "answer 6"]]
    assert server.batches == [[1], [2, 3, 4, 5, 6]]


async def test_a_batch_is_bounded_and_a_large_request_goes_alone() -> None:
    server = Server(most=4)
    first = server.add(0)
    await turn()
    rest = [server.add(1, 2), server.add(3), server.add(4, 5), server.add(6)]
    large = server.add(*range(10, 15))
    await turn()
    server.open.set()
    await asyncio.gather(first, large, *rest)
    assert server.batches[:2] == [[0], [10, 11, 12, 13, 14]]
    assert server.batches[2:] == [[1, 2, 3], [4, 5, 6]]


async def test_an_outage_reaches_everybody_at_once_and_the_next_request_is_tried() -> None:
    server = Server()
    server.outage = Unavailable("away")
    tasks = [server.add(1)]
    await turn()
    tasks += [server.add(2), server.add(3)]
    await turn()
    server.open.set()
    answers = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(answer) for answer in answers] == [Unavailable] * 3
    assert server.batches == [[1], [2, 3]]
    server.outage = None
    assert await server.add(4) == ["answer 4"]


async def test_a_request_that_cannot_be_stored_harms_only_itself() -> None:
    server = Server()
    first = server.add(1)
    await turn()
    good, bad, other = server.add(2), server.add(-1, 3), server.add(4)
    await turn()
    server.open.set()
    assert await first == ["answer 1"]
    assert await good == ["answer 2"]
    assert await other == ["answer 4"]
    with pytest.raises(ValueError, match="cannot be stored"):
        await bad


async def test_one_who_gives_up_takes_nothing_from_the_others() -> None:
    server = Server()
    first = server.add(1)
    await turn()
    leaving, staying = server.add(2), server.add(3)
    await turn()
    first.cancel()
    leaving.cancel()
    await turn()
    server.open.set()
    assert await staying == ["answer 3"]
    assert first.cancelled()
    assert leaving.cancelled()
    assert await server.add(4) == ["answer 4"]
