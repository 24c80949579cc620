"""The gate: its two limits, and that a caller who gives up takes no place with it."""

import asyncio

import pytest

from hourhand.targets.gate import Gate
from tests.targets.runs import WAIT_S


async def entered(gate: Gate, origin: str) -> None:
    await asyncio.wait_for(gate.enter(origin), WAIT_S)


async def waits(gate: Gate, origin: str) -> asyncio.Task[None]:
    """A caller that has come as far as it can without anybody leaving."""
    task = asyncio.create_task(gate.enter(origin))
    await asyncio.wait([task], timeout=0)
    for _ in range(3):
        await asyncio.sleep(0)
    assert not task.done()
    return task


async def give_up(task: asyncio.Task[None]) -> None:
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_each_origin_has_its_own_limit() -> None:
    gate = Gate(total=10, per_origin=1)
    await entered(gate, "a")
    second = await waits(gate, "a")
    await entered(gate, "b")
    gate.leave("a")
    await asyncio.wait_for(second, WAIT_S)


async def test_the_limit_in_all() -> None:
    gate = Gate(total=1, per_origin=1)
    await entered(gate, "a")
    other = await waits(gate, "b")
    gate.leave("a")
    await asyncio.wait_for(other, WAIT_S)


async def test_giving_up_while_waiting_for_the_total_frees_the_origin() -> None:
    gate = Gate(total=1, per_origin=1)
    await entered(gate, "a")
    kept = await waits(gate, "b")  # keeps the origin known while the next one gives up
    await give_up(await waits(gate, "b"))
    await give_up(kept)
    gate.leave("a")
    await entered(gate, "b")


async def test_a_place_given_up_goes_to_the_next() -> None:
    gate = Gate(total=1, per_origin=1)
    await entered(gate, "a")
    holder = await waits(gate, "b")  # has the origin's place, waits for the total
    behind = await waits(gate, "b")  # waits for the origin's place
    await give_up(holder)
    gate.leave("a")
    await asyncio.wait_for(behind, WAIT_S)


async def test_origins_are_forgotten() -> None:
    gate = Gate(total=1, per_origin=1)
    await entered(gate, "a")
    await give_up(await waits(gate, "b"))
    gate.leave("a")
    assert gate.origins == 0
