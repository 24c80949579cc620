"""What people ask a store for, and the pages that it answers with: jobs, runs and dead letters.

The verbs that take and give them are in `ports.store`.
"""

from collections.abc import Callable, Sequence

import msgspec

from hourhand.core.lifecycle import State
from hourhand.core.model import Job, JobState, Version
from hourhand.core.run import DeadLetter, RunView
from hourhand.core.skipping import Skip


class JobQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which jobs to list; newest first, after a cursor."""

    state: JobState | None = None
    tag: str | None = None
    set_name: str | None = None
    name_prefix: str | None = None
    failing: bool = False
    before_id: int | None = None
    limit: int = 50


class JobPage(msgspec.Struct, frozen=True, kw_only=True):
    """Some jobs, and where to go on."""

    jobs: tuple[Job, ...]
    next_before_id: int | None
    missing: tuple[int, ...] = ()  # shards that did not answer, so that theirs are not among these


class JobCount(msgspec.Struct, frozen=True, kw_only=True):
    """How many jobs there are, counted up to a bound."""

    count: int
    or_more: bool = False  # counting stopped at the bound, or some databases did not answer


class RunQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which runs to list across jobs: finished ones in a window of finish times, newest first."""

    from_at: int
    to_at: int
    job_id: int | None = None
    states: tuple[str, ...] = ()
    before: tuple[int, ...] | None = None  # a place of an earlier page; what it means is the store's
    limit: int = 50


class RunPage(msgspec.Struct, frozen=True, kw_only=True):
    """Some runs, and where to go on."""

    runs: tuple[RunView, ...]
    next_before: tuple[int, ...] | None
    places: tuple[tuple[int, ...], ...] = ()  # where to go on after each run, in a list that has pages
    missing: tuple[int, ...] = ()  # shards that did not answer


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """Which runs of a job somebody wants to see who has seen the job."""

    nominals: Sequence[int]  # times at which its rule may have planned some
    before_at: int
    limit: int


class JobLook(msgspec.Struct, frozen=True, kw_only=True):
    """A job, its coming times that will not run, and its newest runs, all of one moment."""

    job: Job
    skips: tuple[Skip, ...]
    runs: tuple[RunView, ...]


WantRuns = Callable[[Job, Sequence[Version], Sequence[Skip]], Wanted]


class RunMark(msgspec.Struct, frozen=True, array_like=True):
    """A run that ended, as little of it as a strip of runs needs."""

    scheduled_at: int
    state: State
    due_at: int
    started_at: int | None
    finished_at: int


class JobMarks(msgspec.Struct, frozen=True, kw_only=True):
    """The last runs of a job that ended, oldest first, and how many are under way."""

    job_id: int
    marks: tuple[RunMark, ...]
    running: int
    retrying: int


class RunGlance(msgspec.Struct, frozen=True, kw_only=True):
    """How a run of a job stands, in a word."""

    job_id: int
    scheduled_at: int
    state: State


class DeadQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which dead letters; newest first."""

    job_id: int | None = None
    fingerprint: str | None = None
    failed_from: int | None = None
    failed_to: int | None = None
    before: tuple[int, int, int] | None = None  # failed_at, job_id, scheduled_at
    limit: int = 50


class DeadPage(msgspec.Struct, frozen=True, kw_only=True):
    """Some dead letters, and where to go on."""

    letters: tuple[DeadLetter, ...]
    next_before: tuple[int, int, int] | None
    missing: tuple[int, ...] = ()  # shards that did not answer


class DeadGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Dead letters with one cause or of one job."""

    value: str
    count: int
    sample: DeadLetter
