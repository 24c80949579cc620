"""What a change does to a job's coming fires: how many are added, removed and moved in a stretch of time. Pure.

A fire that goes and one that comes beside it, with no other between them, is one that moved. Fires are walked only
while they are few; of more of them numbers are told by arithmetic as far as that goes, and never a guess.
"""

from math import gcd

import msgspec

from hourhand.core.instant import DAY_US, SECOND_US
from hourhand.core.model import AfterTiming, Job, JobState, OnceTiming
from hourhand.core.schedule import Cron, Every, Rule

PLAN_US = 7 * DAY_US
MOST_WALKED = 20_160  # fires of one job, before and after together: one a minute for 7 days
MOST_LISTED = 10  # of each kind, of one job


class Moves(msgspec.Struct, frozen=True, kw_only=True):
    """Fires before and after a change. None: there are too many to tell; the lists are the first of each kind."""

    before: int
    after: int
    added: int | None = 0
    removed: int | None = 0
    moved: int | None = 0
    added_at: tuple[int, ...] = ()
    removed_at: tuple[int, ...] = ()
    moved_at: tuple[tuple[int, int], ...] = ()


class Fires(msgspec.Struct, frozen=True, kw_only=True):
    """When a job fires in (after, until]: by a rule, at one time, or not at all."""

    rule: Rule | None = None
    at: int | None = None
    after: int = 0
    until: int = 0

    def count(self) -> int:
        """How many there are."""
        if self.rule is not None:
            return self.rule.count(self.after, self.until)
        return len(self.times())

    def times(self) -> list[int]:
        """All of them, in order; only for those that are few."""
        if self.rule is not None:
            return self.rule.times(self.after, self.until, MOST_WALKED)
        return [self.at] if self.at is not None and self.after < self.at <= self.until else []


def tells_fires(job: Job) -> bool:
    """Whether a job has times of its own, and does not follow others."""
    return not isinstance(job.spec.timing, AfterTiming)


def fires_of(job: Job | None, after: int, until: int) -> Fires:
    """When a job fires in (after, until], by its present version."""
    if job is None or job.state is not JobState.ACTIVE:
        return Fires()
    if isinstance(job.spec.timing, OnceTiming):
        return Fires(at=job.spec.timing.at, after=after, until=until)
    return Fires(rule=job.spec.rule, after=max(after, job.since), until=max(after, min(until, job.until)))


def moves(before: Job | None, after: Job | None, now_at: int, until: int, most: int = MOST_WALKED) -> Moves:
    """What becomes of the fires in (now, until] when one job takes another's place; walks at most so many."""
    # What fires before the new version holds is not changed by it.
    from_at = max(now_at, after.since) if before is not None and after is not None else now_at
    return compared(fires_of(before, from_at, until), fires_of(after, from_at, until), most)


def compared(old: Fires, new: Fires, most: int = MOST_WALKED) -> Moves:
    """The difference of two courses of fires."""
    counts = old.count(), new.count()
    if old == new or counts == (0, 0):
        return Moves(before=counts[0], after=counts[1])
    if not all(counts):
        return _one_sided(old, new, counts)
    if sum(counts) <= min(most, MOST_WALKED):
        return _walked(old.times(), new.times())
    kept = _kept(old, new, min(most, MOST_WALKED))
    if kept is None:
        return Moves(before=counts[0], after=counts[1], added=None, removed=None, moved=None)
    added, removed = counts[1] - kept, counts[0] - kept
    moved = None if added and removed else 0
    return Moves(before=counts[0], after=counts[1], added=added, removed=removed, moved=moved)


def _one_sided(old: Fires, new: Fires, counts: tuple[int, int]) -> Moves:
    """Everything comes, or everything goes."""
    course = new if counts[1] else old
    rule = course.rule
    first = course.times() if rule is None else rule.times(course.after, course.until, MOST_LISTED)
    return Moves(
        before=counts[0],
        after=counts[1],
        added=counts[1],
        removed=counts[0],
        added_at=tuple(first) if counts[1] else (),
        removed_at=tuple(first) if counts[0] else (),
    )


def _walked(old: list[int], new: list[int]) -> Moves:
    pairs, lone = _paired(set(old), set(new))
    added = [at for at, comes in lone if comes]
    removed = [at for at, comes in lone if not comes]
    return Moves(
        before=len(old),
        after=len(new),
        added=len(added),
        removed=len(removed),
        moved=len(pairs),
        added_at=tuple(added[:MOST_LISTED]),
        removed_at=tuple(removed[:MOST_LISTED]),
        moved_at=tuple(pairs[:MOST_LISTED]),
    )


def _paired(old: set[int], new: set[int]) -> tuple[list[tuple[int, int]], list[tuple[int, bool]]]:
    """Those that moved, from and to, and the others with whether they come; each in order."""
    pairs: list[tuple[int, int]] = []
    lone: list[tuple[int, bool]] = []
    waiting: tuple[int, bool] | None = None
    for at in sorted(old | new):
        one = None if at in old and at in new else (at, at in new)
        if waiting is not None and one is not None and waiting[1] != one[1]:
            pairs.append((one[0], waiting[0]) if waiting[1] else (waiting[0], one[0]))
            waiting = None
            continue
        if waiting is not None:
            lone.append(waiting)
        waiting = one
    return pairs, lone if waiting is None else [*lone, waiting]


def _kept(old: Fires, new: Fires, most: int) -> int | None:
    """How many fires there are in both, by arithmetic; None where that does not tell."""
    after, until = max(old.after, new.after), min(old.until, new.until)
    if after >= until:
        return 0
    few, many = sorted((old, new), key=Fires.count)
    if few.count() <= most:
        return sum(_fires_at(many, at) for at in few.times())
    if few.rule is None or many.rule is None:
        return None
    if few.rule == many.rule:
        return few.rule.count(after, until)
    if isinstance(few.rule, Every) and isinstance(many.rule, Every):
        return _meetings(few.rule, many.rule, after, until)
    if _each_second(many.rule, after, until) and _on_seconds(few.rule):
        return few.rule.count(after, until)
    return None


def _fires_at(fires: Fires, at: int) -> bool:
    if fires.rule is None:
        return at in fires.times()
    return fires.after < at <= fires.until and fires.rule.latest(at) == at


def _meetings(one: Every, other: Every, after: int, until: int) -> int:
    """How many times in (after, until] two intervals share: these are as far apart as their least common multiple."""
    divisor = gcd(one.interval_us, other.interval_us)
    distance = other.phase_us - one.phase_us
    if distance % divisor:
        return 0
    step = other.interval_us // divisor
    turns = distance // divisor * pow(one.interval_us // divisor, -1, step) % step if step > 1 else 0
    phase_us, apart_us = one.phase_us + turns * one.interval_us, one.interval_us * step
    return (until - phase_us) // apart_us - (after - phase_us) // apart_us


def _each_second(rule: Rule, after: int, until: int) -> bool:
    return _on_seconds(rule) and rule.count(after, until) == until // SECOND_US - after // SECOND_US


def _on_seconds(rule: Rule) -> bool:
    return isinstance(rule, Cron) or not (rule.interval_us % SECOND_US or rule.phase_us % SECOND_US)
