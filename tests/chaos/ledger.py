"""What was asked for and what was acknowledged, as spans of time: all that the checker may know of jobs.

A version holds for certain after `from_hi` and perhaps after `from_lo`: they are the same instant where
the answer said `effective_from`, and apart where an answer was lost or says nothing. From that each
nominal time is owed, possible or forbidden. The times are computed here, by the plainest code there is.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

SECOND_US = 1_000_000


@dataclass(frozen=True, slots=True)
class Every:
    """Every whole interval, counted from a phase."""

    interval_us: int
    phase_at: int = 0

    def times(self, after_at: int, until_at: int) -> Iterator[int]:
        """The times in (after_at, until_at]."""
        at = after_at + 1 + (self.phase_at - after_at - 1) % self.interval_us
        while at <= until_at:
            yield at
            at += self.interval_us


@dataclass(frozen=True, slots=True)
class Seconds:
    """A cron expression with these values in its seconds field and stars elsewhere."""

    allowed: frozenset[int]

    def times(self, after_at: int, until_at: int) -> Iterator[int]:
        """The times in (after_at, until_at], second by second."""
        for second in range(after_at // SECOND_US + 1, until_at // SECOND_US + 1):
            if second % 60 in self.allowed:
                yield second * SECOND_US


@dataclass(frozen=True, slots=True)
class Once:
    """One time; it fires although the job was created after it."""

    at: int

    def times(self, after_at: int, until_at: int) -> Iterator[int]:
        """The one time, whenever one asks about its job's beginning."""
        if self.at <= until_at:
            yield self.at


Rule = Every | Seconds | Once


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """What a job was from some instant on; no rule: paused or deleted."""

    rule: Rule | None
    from_lo: int
    from_hi: int


@dataclass(slots=True, kw_only=True)
class JobLife:
    """One acknowledged job: its versions, its manual runs, and what may honestly become of its runs."""

    job: str
    name: str
    versions: list[Version]
    tolerated: frozenset[str] = frozenset()  # "SKIPPED overlap", "FAILED": ends without an effect
    at_most_once: bool = False
    deleted: bool = False
    manual: set[str] = field(default_factory=set)  # run ids that a 202 named

    def owed(self, until_at: int) -> set[int]:
        """Nominal times that must have come to something."""
        found: set[int] = set()
        for version, end_at in self._spans(until_at, certain=True):
            found.update(_times(version, version.from_hi, end_at))
        return found

    def possible(self, until_at: int) -> set[int]:
        """Nominal times that may have come to something; all others are phantoms."""
        found: set[int] = set()
        for version, end_at in self._spans(until_at, certain=False):
            found.update(_times(version, version.from_lo, end_at))
        return found

    def _spans(self, until_at: int, *, certain: bool) -> Iterator[tuple[Version, int]]:
        for index, version in enumerate(self.versions):
            end_at = until_at
            if index + 1 < len(self.versions):
                following = self.versions[index + 1]
                end_at = min(until_at, following.from_lo if certain else following.from_hi)
            if version.rule is not None:
                yield version, end_at


def _times(version: Version, after_at: int, until_at: int) -> Iterator[int]:
    assert version.rule is not None
    return version.rule.times(after_at, until_at)
