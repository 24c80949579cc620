"""The pytest plugin: the fixture `hourhand`, a world of one's own on a clock that the test turns.

Loads nothing of it before a test asks for the fixture.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from hourhand.simulation.bench import Bench


@pytest.fixture
def hourhand() -> Iterator["Bench"]:
    """The real services on a virtual clock: load jobs, let time pass, and see what came of it."""
    from hourhand.simulation.bench import Bench

    bench = Bench()
    yield bench
    bench.close()
