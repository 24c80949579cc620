"""Whole fleets through bad days, from seeds. A failure names the seed that repeats it."""

import pytest

from tests.services.simulation import Fleet
from tests.services.virtual import LoopClock, run_virtual


def simulate(seed: int, seconds: float) -> Fleet:
    async def main(clock: LoopClock) -> Fleet:
        fleet = Fleet(clock, seed)
        await fleet.live(seconds)
        await fleet.end()
        return fleet

    return run_virtual(main)


@pytest.mark.parametrize("seed", range(3))
def test_a_fleet_survives_its_bad_days(seed: int) -> None:
    fleet = simulate(seed, seconds=60)
    assert len(fleet.calls) > 50


def test_the_same_seed_is_the_same_story() -> None:
    assert simulate(77, seconds=20).calls == simulate(77, seconds=20).calls


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(1_000, 1_200))
def test_many_fleets_survive_their_bad_days(seed: int) -> None:
    simulate(seed, seconds=300)
