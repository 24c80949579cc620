"""What a scheduled run does when it is due and its job has no free slot; which slots are free, and who may have them.

Pure. The store calls it under the job's lock with what it read, and applies the answer.
"""

from collections.abc import Iterable, Sequence

import msgspec

from hourhand.core.model import MAX_QUEUED, Overlap


class FullVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """What to do with a run that found its job full, and with those already waiting."""

    wait: bool  # else it is skipped
    skip_waiting: tuple[int, ...] = ()  # scheduled_at of waiting scheduled runs to skip
    cancel_running: bool = False


def when_full(overlap: Overlap, waiting: Sequence[int], scheduled_at: int) -> FullVerdict:
    """Judge a scheduled run; `waiting` are the nominal times of scheduled runs already in the queue."""
    match overlap:
        case Overlap.SKIP:
            return FullVerdict(wait=False)
        case Overlap.QUEUE:
            return FullVerdict(wait=len(waiting) < MAX_QUEUED)
        case Overlap.QUEUE_ONE | Overlap.CANCEL_RUNNING:
            newest = all(scheduled_at > other for other in waiting)
            return FullVerdict(
                wait=newest,
                skip_waiting=tuple(waiting) if newest else (),
                cancel_running=newest and overlap is Overlap.CANCEL_RUNNING,
            )


def free_slots(limit: int | None, used: Iterable[int], wanted: Sequence[int]) -> list[int]:
    """Slots for the runs with these nominal times, as many as there are; may be fewer than wanted.

    Without a limit a run's slot is its nominal time. A lowered limit drains: a free low slot is given
    only while fewer than `limit` are taken at all.
    """
    if limit is None:
        return list(wanted)
    taken = set(used)
    room = min(limit - len(taken), len(wanted))
    free: list[int] = []
    slot = 0
    while len(free) < room and slot < limit:
        if slot not in taken:
            free.append(slot)
        slot += 1
    return free


def in_order(candidates: Iterable[tuple[int, int | None]]) -> set[int]:
    """The nominal times of a job's candidates for its slots that go ahead of none that stays planned.

    Each comes with the time of the run before it, if that one still waits, oldest first: it may be taken
    ahead of time together with that one, not without it.
    """
    kept: set[int] = set()
    for scheduled_at, behind_at in candidates:
        if behind_at is None or behind_at in kept:
            kept.add(scheduled_at)
    return kept
