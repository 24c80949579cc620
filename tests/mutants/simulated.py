"""python -m tests.mutants.simulated HOW INVARIANT SEED…: the first of some seeds that breaks an invariant, as one line.

Clusters of the simulation, smaller than those of `make sim`, with a referee who looks at every call. In a simulation
without hints nobody is told anything; in one with a broker, runs go through one that does everything wrong. Exits with 1
if a seed did, with 0 if none. Without an invariant (-) any violation counts.
"""

import sys
from typing import Any

from hourhand.core.run import ClaimedRun
from tests.mutants.mutant import BROKERED, UNHEARD
from tests.mutants.referee import Referee
from tests.sim import simulation
from tests.sim.outside import Outside
from tests.sim.simulation import World, run_seed

SIZE = 0.3
BROKEN = 1
_LONGEST = 300


class RefereedWorld(World):
    """A world whose every call is looked at."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._referee = Referee(self)
        self.target.execute = self._looked_at(self.target)  # type: ignore[method-assign]

    async def carry_out(self, verb: str, fault: Any, args: Any, kwargs: Any) -> Any:
        """Have the store do it, and look at what it did."""
        before = self._referee.before(verb, args)
        answer = await super().carry_out(verb, fault, args, kwargs)
        self._referee.after(verb, args, before, answer)
        return answer

    def _looked_at(self, target: Outside) -> Any:
        execute = target.execute

        async def look_and_execute(run: ClaimedRun) -> Any:
            self._referee.begins(run)
            return await execute(run)

        return look_and_execute


class UnheardWorld(RefereedWorld):
    """The same, and no hint ever arrives."""

    def _hinted(self, hint: Any) -> None:
        pass


def main(how: str, invariant: str, seeds: list[int]) -> int:
    """Look until somebody notices."""
    simulation.World = UnheardWorld if how == UNHEARD else RefereedWorld  # type: ignore[misc]
    for seed in seeds:
        for violation in run_seed(seed, size=SIZE, brokered=how == BROKERED).violations:
            if how == UNHEARD and violation.startswith("I10 "):
                continue  # who is told nothing looks every few seconds, which is no fault of a flood
            if invariant in ("-", violation.partition(" ")[0]):
                print(f"{seed} {' '.join(violation.split())[:_LONGEST]}")
                return BROKEN
            print(f"seed {seed}: {violation}"[:_LONGEST], file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], [int(seed) for seed in sys.argv[3:]]))
