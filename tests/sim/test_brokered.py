"""The same bad days with a broker between schedulers and workers that loses, repeats, reorders, delays and forgets."""

import pytest

from tests.sim.__main__ import complaint
from tests.sim.simulation import run_seed

SEEDS = (200, 202, 203, 206, 14)
SIZE = 0.4
SHORT = 0.15


@pytest.mark.parametrize("seed", SEEDS)
def test_whatever_a_broker_does_promises_are_kept(seed: int) -> None:
    report = run_seed(seed, size=SIZE, brokered=True)
    assert not report.violations, f"seed {seed} broke its promises\n{complaint(report, SIZE, True)}"
    assert report.by_message > 0


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(200_000, 200_300))
def test_whatever_a_broker_does_promises_are_kept_in_many_stories(seed: int) -> None:
    report = run_seed(seed, brokered=True)
    assert not report.violations, f"seed {seed} broke its promises\n{complaint(report, 1.0, True)}"


def test_with_a_broker_too_the_same_seed_is_the_same_trace() -> None:
    first, second = (run_seed(SEEDS[0], size=SHORT, brokered=True) for _ in range(2))
    assert first.trace == second.trace
