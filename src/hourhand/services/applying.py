"""Applies many wanted jobs by key: creates those that are not there, changes those that differ, leaves the rest.

Each stands for itself, and none is un-paused or taken from another set. A job comes after those of the request that
it follows, and roots of one graph whose times all change alike change at once. Whether all of them are right before
the first is written, and what is no longer wanted, is for the caller, who sees all parts of a set.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum

import msgspec

from hourhand.core.model import EveryTiming, Job, OnceTiming, Timing
from hourhand.errors import Conflict, HourhandError, Invalid, NotFound
from hourhand.services.foreseen import Foreseen
from hourhand.services.jobs import Jobs, NewJob

_TOGETHER = 64  # at once: enough to share commits, few enough to leave room for others

Change = Callable[[Job | None, int], NewJob]


class Action(StrEnum):
    """What applying did to a job, or would do."""

    CREATED = "created"
    CHANGED = "changed"
    UNCHANGED = "unchanged"
    PASSED = "passed"  # a one-time job that is not there, and whose time is over: it may well have run


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """A job as somebody wants it: its key, whom it follows, and what to make of the present one.

    `prepare` is asked once those that it follows are there.
    """

    key: str
    prepare: Callable[[], Awaitable[Change]]
    after: tuple[str, ...] = ()


class Applied(msgspec.Struct, frozen=True, kw_only=True):
    """A job before and after."""

    action: Action
    before: Job | None = None
    after: Job | None = None  # None where it passed


class _Passed(HourhandError):
    """A one-time job would be created after its time: finished ones are forgotten some day, and must not run again."""


class Applying:
    """One request: what was wanted, and what has become of it so far. With `foreseen` nothing is written."""

    def __init__(
        self, jobs: Jobs, tenant: str, *, foreseen: Foreseen | None = None, take_over: bool = False
    ) -> None:
        self._jobs = jobs
        self._tenant = tenant
        self._foreseen = foreseen
        self._take_over = take_over
        self._wanted: dict[str, Wanted] = {}
        self._changed_along: dict[str, Job] = {}  # roots that another one's change took along, as they were
        self._passed: set[str] = set()
        self._roots = asyncio.Lock()

    async def apply(self, wanted: Sequence[Wanted]) -> list[Applied | Exception]:
        """What became of each, in order, whatever went wrong with another. Keys must differ."""
        self._wanted = {one.key: one for one in wanted}
        answers: dict[int, Applied | Exception] = {}
        for part in _in_order(wanted):
            found = await asyncio.gather(*(self._apply(wanted[index]) for index in part))
            answers.update(zip(part, found, strict=True))
        return [answers[index] for index in range(len(wanted))]

    async def _apply(self, wanted: Wanted) -> Applied | Exception:
        if not self._passed.isdisjoint(wanted.after):
            self._passed.add(wanted.key)
            return Applied(action=Action.PASSED)  # like the one that it follows
        try:
            change = await wanted.prepare()
            try:
                return await self._upsert(wanted, change)
            except Invalid as error:
                if wanted.after or not _is_about_graph(error):
                    raise
                async with self._roots:
                    if not await self._all_roots_want(wanted, change):
                        raise
                    return await self._upsert(wanted, change, with_roots=True)
        except _Passed:
            self._passed.add(wanted.key)
            return Applied(action=Action.PASSED)
        except Exception as error:  # others may be stored by now, and their answer must come
            return error

    async def _upsert(self, wanted: Wanted, change: Change, *, with_roots: bool = False) -> Applied:
        before: Job | None = None

        def checked(job: Job | None, now_at: int) -> NewJob:
            nonlocal before
            before = job
            new = change(job, now_at)
            if job is None and isinstance(new.spec.timing, OnceTiming) and new.spec.timing.at <= now_at:
                raise _Passed("its one time is over")
            _check_set(job, new, self._take_over)
            return new

        changed, created = await self._jobs.upsert(
            self._tenant,
            wanted.key,
            checked,
            with_roots=with_roots,
            dry_run=self._foreseen is not None,
            foreseen=self._foreseen,
        )
        if created:
            return Applied(action=Action.CREATED, after=changed.job)
        before = self._changed_along.get(wanted.key, before)
        same = before is not None and before.version == changed.job.version
        return Applied(action=Action.UNCHANGED if same else Action.CHANGED, before=before, after=changed.job)

    async def _all_roots_want(self, wanted: Wanted, change: Change) -> bool:
        """Whether the other roots of a root's graph are wanted with the same new times; remembers how they were."""
        try:
            job = await self._jobs.resolve(self._tenant, wanted.key)
        except NotFound:
            return False  # a new one has no graph yet: it is its own document that is wrong
        timing = change(job, job.updated_at).spec.timing
        others = await self._jobs.other_roots(self._tenant, job.id)
        for other in others:
            same = self._wanted.get(other.spec.key or "")
            if same is None or same.after:
                return False
            new = (await same.prepare())(other, job.updated_at)
            if not _alike(new.spec.timing, timing):
                return False
        for other in others:
            self._changed_along.setdefault(other.spec.key or "", other)
        return True


def _in_order(wanted: Sequence[Wanted]) -> Iterator[list[int]]:
    """Places of jobs, some at a time, each after all of the request that it follows."""
    places = {one.key: index for index, one in enumerate(wanted)}
    parents = {index: [places[key] for key in one.after if key in places] for index, one in enumerate(wanted)}
    for level in _by_level(parents):
        for start in range(0, len(level), _TOGETHER):
            yield level[start : start + _TOGETHER]


def _by_level(parents: Mapping[int, Iterable[int]]) -> list[list[int]]:
    """Places level by level; those of circles come last, and are refused when their turn comes."""
    open_parents = {index: set(above) for index, above in parents.items()}
    children: dict[int, list[int]] = {}
    for index, above in open_parents.items():
        for parent in above:
            children.setdefault(parent, []).append(index)
    found: list[list[int]] = []
    ready = [index for index, above in open_parents.items() if not above]
    while ready:
        found.append(sorted(ready))
        following = []
        for index in ready:
            for child in children.get(index, ()):
                open_parents[child].discard(index)
                if not open_parents[child]:
                    following.append(child)
        ready = following
    return [*found, [index for index, above in open_parents.items() if above]]


def _alike(one: Timing, other: Timing) -> bool:
    """Whether two roots are to have the same times; where intervals count from is settled by the first."""
    if isinstance(one, EveryTiming) and isinstance(other, EveryTiming):
        return one.interval_us == other.interval_us
    return one == other


def _is_about_graph(error: Invalid) -> bool:
    return any(fault.pointer == "/after" for fault in error.faults)


def _check_set(job: Job | None, new: NewJob, take_over: bool) -> None:
    if job is None or take_over or job.spec.set_name in (None, new.spec.set_name):
        return
    raise Conflict(
        f"the job with the key {job.spec.key!r} belongs to the set {job.spec.set_name!r}; "
        "take it out of those files, or apply with take_over"
    )
