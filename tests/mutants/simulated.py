"""One cluster of the simulation from one seed, a small one: what mutants of services are held against.

Not among the tests that are found by themselves: `tests/sim` holds more seeds against the source as it is.
"""

import pytest

from tests.sim.__main__ import complaint
from tests.sim.simulation import run_seed

SIZE = 0.3


@pytest.mark.parametrize("seed", range(20))
def test_a_cluster_survives_its_bad_days(seed: int) -> None:
    report = run_seed(seed, size=SIZE)
    assert not report.violations, complaint(report)
