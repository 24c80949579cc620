"""How a claim's room is divided among the classes of lanes.

HIGH goes first, but with everything waiting 2 of 20 claims go to MEDIUM and 1 to LOW, and background
work gets what is left over or 1 in 100: so nothing starves. Pure arithmetic over a running counter.
"""

import msgspec

from hourhand.core.identity import BACKGROUND
from hourhand.core.model import Priority

# While there is not room for all that is due, nothing is taken further ahead of its time than this: a place
# that waits for a high run in two seconds could have done a hundred low ones that are late. It is longer than
# the time between two claims of a worker that has all its places in use, so that what is due meanwhile is in
# its hand and starts on time, whatever else waits.
BRIEF_LEAD_US = 250_000

# Where more is due in a lane than there is room for, one for so many is taken of what is due next and of what was due
# last: tenants share lanes, and what one of them has left lying must not stand before all that the others get.
NEWEST_SHARE = 4

# Of the claims in a row, each lower class is owed those whose number has its remainder. No two classes
# meet at one number, so that a worker that claims one run at a time owes each its share too.
_OWED = {
    Priority.MEDIUM: (10, 0),  # 2 of 20
    Priority.LOW: (20, 5),
    BACKGROUND: (100, 97),
}


class Cursor(msgspec.Struct, frozen=True, array_like=True):
    """Where in a lane a walk ahead of time goes on."""

    due_at: int
    scheduled_at: int
    job_id: int


def floors(room: int, taken_before: int) -> dict[int, int]:
    """The least share of each lower class in the next `room` claims after `taken_before` earlier ones.

    Counting on from earlier claims keeps the shares true for workers that claim one run at a time.
    """
    end = taken_before + room
    return {
        run_class: (end - remainder) // every - (taken_before - remainder) // every
        for run_class, (every, remainder) in _OWED.items()
    }


def divide(room: int, waiting: dict[int, int], taken_before: int) -> dict[int, int]:
    """How many to take from each class, given how many wait in each: floors first, then by rank."""
    share = {
        run_class: min(waiting.get(run_class, 0), floor)
        for run_class, floor in floors(room, taken_before).items()
    }
    left = room - sum(share.values())
    for run_class in (Priority.HIGH, Priority.MEDIUM, Priority.LOW, BACKGROUND):
        more = min(left, waiting.get(run_class, 0) - share.get(run_class, 0))
        share[run_class] = share.get(run_class, 0) + more
        left -= more
    return share
