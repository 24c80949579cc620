"""Which jobs follow which: whether a graph may be so, and when a dependent run goes.

Pure. A child has a run for a nominal time when its parents have one; it goes when all have succeeded and is
skipped when all have ended and one has not. Who loads the part of a graph that a check needs, and under
which lock, is the store's matter.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum

import msgspec

from hourhand.core.identity import format_job_id
from hourhand.core.instant import format_duration, format_instant
from hourhand.core.lifecycle import State
from hourhand.core.model import (
    FOREVER,
    AfterTiming,
    CronTiming,
    EveryTiming,
    OnceTiming,
    Timing,
    Trigger,
    rule_of,
)

MAX_PARENTS = 100
MAX_GRAPH = 10_000  # jobs that hang together
MAX_DEPTH = 100  # levels, one below the other
MOST_NAMED = 5

_NATURAL = frozenset({Trigger.SCHEDULED, Trigger.CATCH_UP, Trigger.UPSTREAM})
_IN_BACKGROUND = frozenset({Trigger.CATCH_UP, Trigger.BACKFILL})


class GraphFault(Exception):
    """Why jobs may not follow each other like that, in words that name them."""


class MixedRoots(GraphFault):
    """Roots of one graph with different times."""


class Missing(StrEnum):
    """The outcome of a parent that has no run for that time and will have none."""

    MISSING = "MISSING"


ParentOutcome = State | Missing
_WORST_FIRST: tuple[ParentOutcome, ...] = (State.FAILED, State.CANCELLED, State.SKIPPED, Missing.MISSING)


class Step(StrEnum):
    """What becomes of a run that waits for its parents."""

    WAIT = "wait"
    RUN = "run"
    SKIP = "skip"


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """What becomes of it, and because of whom."""

    step: Step
    parent: int | None = None
    outcome: ParentOutcome | None = None


class GraphJob(msgspec.Struct, frozen=True, kw_only=True):
    """What a check needs to know of one job."""

    id: int
    name: str
    timing: Timing
    key: str | None = None
    paused: bool = False
    until: int = FOREVER

    @property
    def label(self) -> str:
        """How people know it."""
        known = self.name or self.key
        return repr(known) if known else format_job_id(self.id)

    @property
    def parents(self) -> tuple[int, ...]:
        """Whom it follows; nobody for a root."""
        return parents_of(self.timing)


def parents_of(timing: Timing) -> tuple[int, ...]:
    """Whom a job with this timing follows."""
    return timing.parents if isinstance(timing, AfterTiming) else ()


def decide(parents: Sequence[int], outcomes: Mapping[int, ParentOutcome]) -> Decision:
    """What becomes of a run that waits for these parents, of which these have ended so.

    It is decided when all have ended, so that one run of a graph is over before the reason is given.
    """
    if any(parent not in outcomes for parent in parents):
        return Decision(step=Step.WAIT)
    for outcome in _WORST_FIRST:
        for parent in parents:
            if outcomes[parent] is outcome:
                return Decision(step=Step.SKIP, parent=parent, outcome=outcome)
    return Decision(step=Step.RUN)


def goes_down(trigger: Trigger) -> bool:
    """Whether a run makes its children wait for it; those that people ask for only do with what they asked for."""
    return trigger in _NATURAL


def trigger_below(trigger: Trigger) -> Trigger:
    """Why the run of a child exists whose parent's run exists for this reason."""
    return Trigger.UPSTREAM if trigger is Trigger.SCHEDULED else trigger


def is_background(trigger: Trigger) -> bool:
    """Whether runs that exist for this reason wait behind live traffic."""
    return trigger in _IN_BACKGROUND


def check(job: GraphJob, others: Mapping[int, GraphJob]) -> None:
    """Whether a job may be so among others: all it follows, all that follow it, and all that those follow."""
    jobs = {**others, job.id: job}
    _check_parents(job, jobs)
    if len(jobs) > MAX_GRAPH:
        raise GraphFault(f"at most {MAX_GRAPH:,} jobs may hang together")
    _check_order(job, jobs)
    _check_roots(jobs.values())


def around(
    job_id: int, jobs: Mapping[int, GraphJob], children: Mapping[int, Iterable[int]]
) -> dict[int, GraphJob]:
    """Of some jobs those that a check of one needs: it, all that follow it, and all that any of those follow."""
    below = _reached([job_id], lambda one: children.get(one, ()))
    found = _reached(below, lambda one: jobs[one].parents if one in jobs else ())
    return {one: jobs[one] for one in found if one in jobs}


def nearest(job_id: int, jobs: Mapping[int, GraphJob], limit: int) -> dict[int, GraphJob]:
    """At most so many jobs of a graph, those that are the fewest steps away from one, whichever way."""
    beside: dict[int, set[int]] = {one: set() for one in jobs}
    for one in jobs.values():
        for parent in one.parents:
            if parent in beside:
                beside[one.id].add(parent)
                beside[parent].add(one.id)
    found = _reached([job_id], lambda one: sorted(beside.get(one, ())), limit)
    return {one: jobs[one] for one in found if one in jobs}


def roots_hint(job: GraphJob, fault: GraphFault) -> str | None:
    """What helps where one of several roots was to get other times."""
    if isinstance(fault, MixedRoots) and not isinstance(job.timing, AfterTiming):
        return "change all of them at once: with_roots=true, --with-roots on the command line"
    return None


def still_followed(children: Sequence[GraphJob], most: int = MOST_NAMED) -> str:
    """Why a job cannot go that others follow, naming some of them."""
    names = ", ".join(child.label for child in children[:most])
    more = " and others" if len(children) > most else ""
    return f"{names}{more} would follow nobody; delete or change what follows this job first"


def levels(parents: Mapping[int, Sequence[int]]) -> dict[int, int]:
    """How far below the roots each job is; those it follows are always further up. No cycles, please."""
    found: dict[int, int] = {}
    for first in parents:
        stack = [first]
        while stack:
            one = stack[-1]
            above = [parent for parent in parents[one] if parent in parents]
            unknown = [parent for parent in above if parent not in found]
            if unknown:
                stack += unknown
            else:
                found[one] = max((found[parent] + 1 for parent in above), default=0)
                stack.pop()
    return found


def _reached(
    first: Iterable[int], onward: Callable[[int], Iterable[int]], limit: int = MAX_GRAPH + 1
) -> dict[int, None]:
    """What can be reached, the nearest first; stops at a limit."""
    found = dict.fromkeys(first)
    for one in (queue := list(found)):  # which grows while it is walked
        for other in onward(one):
            if other not in found and len(found) < limit:
                found[other] = None
                queue.append(other)
    return found


def _check_parents(job: GraphJob, jobs: Mapping[int, GraphJob]) -> None:
    if not isinstance(job.timing, AfterTiming):
        return
    if not 1 <= len(job.parents) <= MAX_PARENTS:
        raise GraphFault(f"a job follows 1 to {MAX_PARENTS} others, got {len(job.parents)}")
    unknown = [parent for parent in job.parents if parent not in jobs]
    if unknown:
        raise GraphFault(f"there is no job {format_job_id(unknown[0])} to follow")


def _check_order(job: GraphJob, jobs: Mapping[int, GraphJob]) -> None:
    """Walk up from a job; coming back to it is a circle, and walking for ever a graph that is too deep."""
    path = [job.id]
    ways = [list(job.parents)]
    deepest: dict[int, int] = {}
    while ways:
        if not ways[-1]:
            ways.pop()
            path.pop()
            continue
        parent = ways[-1].pop()
        if parent == job.id:
            raise GraphFault(_circle([*path, parent], jobs))
        if len(path) > MAX_DEPTH:
            raise GraphFault(f"jobs may follow each other {MAX_DEPTH} levels deep, not more")
        if parent in jobs and deepest.get(parent, 0) < len(path):
            deepest[parent] = len(path)
            path.append(parent)
            ways.append(list(jobs[parent].parents))


def _circle(path: Sequence[int], jobs: Mapping[int, GraphJob]) -> str:
    first, *rest = [jobs[one].label for one in path]
    if len(rest) == 1:
        return f"{first} cannot follow itself"
    return f"these jobs would follow each other in a circle: {first} after " + " after ".join(rest)


def _check_roots(jobs: Iterable[GraphJob]) -> None:
    """One nominal time goes through a graph, so all that begin it must have the same times."""
    roots = [one for one in jobs if not isinstance(one.timing, AfterTiming)]
    for root in roots[1:]:
        if _rhythm_key(root.timing) != _rhythm_key(roots[0].timing):
            raise MixedRoots(
                "all roots of a graph need the same schedule: "
                f"{roots[0].label} has {_rhythm(roots[0].timing)}, {root.label} has {_rhythm(root.timing)}"
            )


def _rhythm_key(timing: Timing) -> object:
    rule = rule_of(timing)
    return timing if rule is None else rule.key


def _rhythm(timing: Timing) -> str:
    match timing:
        case CronTiming(expression=expression, tz=tz):
            return f"{expression!r} in {tz}"
        case EveryTiming(interval_us=interval_us, phase_at=phase_at):
            return f"every {format_duration(interval_us)} counted from {format_instant(phase_at)}"
        case OnceTiming(at=at):
            return f"once at {format_instant(at)}"
        case AfterTiming():
            return "no schedule of its own"
