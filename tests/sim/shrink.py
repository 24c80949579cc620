"""Makes a failing story short: leaves out as many items as it can while the same invariant still breaks.

Delta debugging: whole parts first, then smaller and smaller ones. Every try is a whole simulation, so there is a limit.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from tests.sim.script import Item, Script
from tests.sim.simulation import Report, run_script

MOST_TRIES = 150


class Shrunk(NamedTuple):
    """What is left, and what comes of it."""

    script: Script
    report: Report
    tries: int


def invariants_broken(report: Report) -> set[str]:
    """The names of what was violated."""
    return {violation.split(" ", 1)[0] for violation in report.violations}


def shrink(script: Script, report: Report, *, tries: int = MOST_TRIES) -> Shrunk:
    """The shortest story that was found which breaks one of the same invariants."""
    wanted = invariants_broken(report)
    best = [Shrunk(script, report, 0)]
    count = 0

    def still_breaks(items: Sequence[Item]) -> bool:
        nonlocal count
        count += 1
        shorter = script._replace(items=tuple(items))
        found = run_script(shorter)
        if not wanted & invariants_broken(found):
            return False
        best[0] = Shrunk(shorter, found, count)
        return True

    minimise(script.items, still_breaks, lambda: count >= tries)
    return best[0]._replace(tries=count)


def minimise(
    items: Sequence[Item], still_breaks: Callable[[Sequence[Item]], bool], is_enough: Callable[[], bool]
) -> list[Item]:
    """Leave out parts, halving their size whenever none can go."""
    left = list(items)
    size = max(1, len(left) // 2)
    while left and not is_enough():
        removed = False
        start = 0
        while start < len(left) and not is_enough():
            candidate = left[:start] + left[start + size :]
            if still_breaks(candidate):
                left, removed = candidate, True
            else:
                start += size
        if size == 1 and not removed:
            break
        size = max(1, size // 2)
    return left
