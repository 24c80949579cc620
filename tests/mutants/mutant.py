"""What a mutant is, and the suites that are to notice it.

A mutant replaces a text that occurs exactly once in one file of the source. Where it is left to the simulation, a seed
must break the mutant's invariant; which one did is kept in seen.json. Else it names a test, which must fail with the
given words.
"""

from typing import NamedTuple

SIMULATION = "simulation"
UNHEARD = "simulation without hints"
BROKERED = "simulation with a broker"
_INTERLEAVINGS = "tests/interleavings/test_interleavings.py"
STEPPED = f"{_INTERLEAVINGS}::test_some_interleavings_on_postgres"
STEPPED_ALL = f"{_INTERLEAVINGS}::test_all_interleavings_on_postgres"
ORDERED = f"{_INTERLEAVINGS}::test_all_orders_of_transactions_on_sqlite"
CHAOS = "tests/chaos"


class Mutant(NamedTuple):
    """One safeguard that is switched off."""

    name: str
    safeguard: str
    file: str  # below src/hourhand
    old: str
    new: str
    caught_by: str  # SIMULATION, UNHEARD, BROKERED, or a test
    invariant: str  # one of those in docs/proof.md
    says: str = ""  # of a test: the words that it fails with
    quick: bool = False  # tried out with every run of the tests

    @property
    def is_simulated(self) -> bool:
        """Whether a seed of the simulation is to notice."""
        return self.caught_by in (SIMULATION, UNHEARD, BROKERED)
