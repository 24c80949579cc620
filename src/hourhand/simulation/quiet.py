"""Which runs need no simulation: where nothing can meet, every life goes as foreseen.

Pure. A job is alone if its own runs never meet and workers have room for whatever the others do; it takes no part at
all. What is left is taken apart into stretches of runs that touch one another in time; a stretch is quiet if no run in
it finds its job or the workers full.
"""

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from hourhand.simulation.foresight import Life

Spans = Sequence[tuple[int, int]]


class Stretch(NamedTuple):
    """Runs that touch one another, and whether nothing can come of that."""

    from_at: int
    to_at: int
    runs: Sequence[Life]
    is_quiet: bool


class Stretches:
    """A schedule in stretches, by time."""

    def __init__(self, stretches: Sequence[Stretch]) -> None:
        self._stretches = stretches
        self._starts = [stretch.from_at for stretch in stretches]

    def quiet_from(self, at: int) -> Sequence[Stretch]:
        """The quiet stretches that follow one another from this instant on; none where none begins at it."""
        first = last = bisect_left(self._starts, at)
        if first == len(self._starts) or self._starts[first] != at:
            return ()
        while last < len(self._stretches) and self._stretches[last].is_quiet:
            last += 1
        return self._stretches[first:last]


def alone(by_job: Mapping[int, Sequence[Life]], *, slots: int, lead_us: int, outages: Spans) -> set[int]:
    """The jobs that need no simulation at all, by their numbers."""
    found = {
        number
        for number, runs in by_job.items()
        if all(run.is_known and not _touches(run.scheduled_at, run.end_at, outages) for run in runs)
        and _job_has_room(runs)
    }
    reserved = 0
    for number in by_job.keys() - found:
        limit = by_job[number][0].limit if by_job[number] else 0
        if limit is None:
            return set()  # nobody can say how much room that one leaves
        reserved += limit
    fits = _has_room([run for number in found for run in by_job[number]], slots - reserved, lead_us)
    return found if fits else set()


def stretches(runs: Iterable[Life], *, slots: int, lead_us: int, outages: Spans) -> Stretches:
    """Take runs, by nominal time, apart where nothing goes on."""
    found: list[Stretch] = []
    together: list[Life] = []
    to_at = 0
    for run in runs:
        if together and run.scheduled_at - lead_us > to_at:
            found.append(_stretch(together, to_at, slots, lead_us, outages))
            together = []
        to_at = max(to_at, run.end_at) if together else run.end_at
        together.append(run)
    if together:
        found.append(_stretch(together, to_at, slots, lead_us, outages))
    return Stretches(found)


def _stretch(runs: Sequence[Life], to_at: int, slots: int, lead_us: int, outages: Spans) -> Stretch:
    from_at = runs[0].scheduled_at
    by_job: dict[int, list[Life]] = {}
    for run in runs:
        by_job.setdefault(run.job_id, []).append(run)
    is_quiet = (
        all(run.is_known for run in runs)
        and not _touches(from_at, to_at, outages)
        and all(_job_has_room(own) for own in by_job.values())
        and _has_room(runs, slots, lead_us)
    )
    return Stretch(from_at, to_at, runs, is_quiet)


def _touches(from_at: int, to_at: int, outages: Spans) -> bool:
    return any(begin_at <= to_at and from_at <= over_at for begin_at, over_at in outages)


def _has_room(runs: Sequence[Life], slots: int, lead_us: int) -> bool:
    """Whether workers never are full, with what they hold ahead of time."""
    if len(runs) <= slots:
        return True
    moments: list[tuple[int, int]] = []
    for run in runs:
        for begin_at, end_at in run.attempts:
            moments += ((begin_at - lead_us, 1), (end_at + 1, -1))
    held = 0
    for _, change in sorted(moments):
        held += change
        if held > slots:
            return False
    return True


def _job_has_room(runs: Sequence[Life]) -> bool:
    """Whether no run of a job is due while it is full; a run holds its slot until its last attempt has ended."""
    if not runs or runs[0].limit is None:
        return True
    limit = runs[0].limit
    moments: list[tuple[int, int]] = []
    for run in runs:
        moments += ((run.due_at, 1), (run.end_at + 1, -1))
    held = 0
    for _, change in sorted(moments):
        held += change
        if held > limit:
            return False
    return True
