"""Everybody at once on one store: whatever the order, runs are in one place, slots and fences hold, no time is lost."""

import pytest

from tests.contract.harness import Harness
from tests.contract.storm import Storm


@pytest.mark.parametrize("seed", range(8))
async def test_a_storm_loses_and_doubles_nothing(store_harness: Harness, seed: int) -> None:
    if store_harness.threaded and seed >= 3:
        pytest.skip("a few seeds are enough where each write goes to the disk")
    await weather(store_harness, seed)


@pytest.mark.parametrize("seed", range(100, 103))
async def test_a_clock_that_jumps_an_hour_either_way_loses_and_doubles_nothing(
    store_harness: Harness, seed: int
) -> None:
    await weather(store_harness, seed, clock_jumps=True)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(1_000, 1_400))
async def test_many_storms(store_harness: Harness, seed: int) -> None:
    await weather(store_harness, seed, clock_jumps=seed % 2 == 0)


async def weather(harness: Harness, seed: int, clock_jumps: bool = False) -> None:
    storm = Storm(harness, seed, clock_jumps)
    await storm.rage(steps=60)
    await storm.calm()
    await storm.check()
