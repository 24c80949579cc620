"""How a claim's room is divided among the classes of lanes.

HIGH goes first, but with everything waiting 2 of 20 claims go to MEDIUM and 1 to LOW, and background
work gets what is left over or 1 in 100: so nothing starves. Pure arithmetic over a running counter.
"""

from hourhand.core.identity import BACKGROUND
from hourhand.core.model import Priority

_MEDIUM_EVERY = 10  # 2 of 20
_LOW_EVERY = 20
_BACKGROUND_EVERY = 100


def floors(room: int, taken_before: int) -> dict[int, int]:
    """The least share of each lower class in the next `room` claims after `taken_before` earlier ones.

    Counting on from earlier claims keeps the shares true for workers that claim one run at a time.
    """
    end = taken_before + room

    def multiples(step: int) -> int:
        return end // step - taken_before // step

    return {
        Priority.MEDIUM: multiples(_MEDIUM_EVERY),
        Priority.LOW: multiples(_LOW_EVERY),
        BACKGROUND: multiples(_BACKGROUND_EVERY),
    }


def divide(room: int, waiting: dict[int, int], taken_before: int) -> dict[int, int]:
    """How many to take from each class, given how many wait in each: floors first, then by rank."""
    share = {
        run_class: min(waiting.get(run_class, 0), floor)
        for run_class, floor in floors(room, taken_before).items()
    }
    left = room - sum(share.values())
    while left < 0:  # tiny rooms can owe more floors than they hold; the lowest class waits
        lowest = max(run_class for run_class, count in share.items() if count)
        share[lowest] -= 1
        left += 1
    for run_class in (Priority.HIGH, Priority.MEDIUM, Priority.LOW, BACKGROUND):
        more = min(left, waiting.get(run_class, 0) - share.get(run_class, 0))
        share[run_class] = share.get(run_class, 0) + more
        left -= more
    return share
