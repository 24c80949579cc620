"""A backfill: runs for times of a job's rule that have passed, fed behind live traffic at a pace of its own.

Owns its shape, its limits, which times come next and how many may be fed at a moment. Pure; under which
locks a page is written, and that nothing runs twice, is the store's matter.

A backfill has one **mark**: everything on one side of it is fed. It moves with the rows, so a page that
was written is never written again, and one that was not is written by whoever comes next.
"""

from enum import StrEnum

import msgspec

from hourhand.core.fault import Fault
from hourhand.core.instant import SECOND_US, format_instant
from hourhand.core.model import Job, OnceTiming
from hourhand.core.schedule import Rule, parse_key

MAX_TIMES = 100_000  # of one backfill
MAX_OPEN = 1_000
DEFAULT_OPEN = 100
MAX_UNFINISHED = 100  # backfills of a tenant that are not over
MAX_RATE = 1_000  # runs a second
MAX_NOTE = 500
LONGEST_PACE_US = 24 * 3600 * SECOND_US
_BURST_US = SECOND_US  # what was not fed in time is made up for by no more than this


class BackfillState(StrEnum):
    """Where a backfill is. A cancelled one may still wait for runs that had begun."""

    RUNNING = "running"
    PAUSED = "paused"
    DONE = "done"
    CANCELLED = "cancelled"


class Order(StrEnum):
    """Which times are fed first."""

    OLDEST = "oldest"
    NEWEST = "newest"


class BackfillAction(StrEnum):
    """What can be asked of a backfill."""

    PAUSE = "pause"
    RESUME = "resume"
    CANCEL = "cancel"


class BackfillSpec(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody asks for."""

    from_at: int
    to_at: int
    order: Order = Order.OLDEST
    pace_us: int | None = None  # between two runs; None: as fast as they end
    max_open: int = DEFAULT_OPEN
    note: str | None = None
    force: bool = False  # also where history no longer tells what ran


class Tally(msgspec.Struct, frozen=True, kw_only=True):
    """How far a backfill is, in numbers of times."""

    total: int = 0
    fed: int = 0  # runs that were made for it
    already: int = 0  # times that had a run already
    succeeded: int = 0
    failed: int = 0
    skipped: int = 0
    cancelled: int = 0

    @property
    def open(self) -> int:
        """Runs of it that have not ended."""
        return self.fed - self.ended

    @property
    def ended(self) -> int:
        """Runs of it that have ended."""
        return self.succeeded + self.failed + self.skipped + self.cancelled

    @property
    def done(self) -> int:
        """Times that need nothing more."""
        return self.already + self.ended


class Backfill(msgspec.Struct, frozen=True, kw_only=True):
    """A backfill as the store holds it."""

    id: int
    job_id: int
    tenant: str
    state: BackfillState = BackfillState.RUNNING
    spec: BackfillSpec
    rule_key: str  # whose times these are: the job's rule when it was asked for
    present_key: str  # the job's rule as it was last agreed to; another one pauses the backfill
    while_paused: bool = False  # asked for while the job was paused, so that this does not hold it up
    mark: int
    next_at: int = 0  # when the next run may be fed, where it has a pace
    tally: Tally
    reason: str | None = None  # why it is paused or cancelled, where nobody asked for it
    created_at: int
    updated_at: int
    finished_at: int | None = None

    @property
    def rule(self) -> Rule:
        """Whose times these are."""
        return parse_key(self.rule_key)

    @property
    def is_fed(self) -> bool:
        """Whether all its times were fed."""
        if self.spec.order is Order.OLDEST:
            return self.mark >= self.spec.to_at
        return self.mark <= self.spec.from_at


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """The times to feed next, in the order in which they shall run, and the mark behind them."""

    times: list[int]
    mark: int


class Unfit(Exception):
    """A backfill that cannot be, and which fields say so."""

    def __init__(self, *faults: Fault) -> None:
        super().__init__(f"{faults[0].pointer}: expected {faults[0].expected}")
        self.faults = faults


def new_backfill(backfill_id: int, job: Job, spec: BackfillSpec, now_at: int, keep_us: int) -> Backfill:
    """The backfill that somebody asks for, with its times counted; Unfit where it cannot be."""
    rule = job.spec.rule
    if rule is None:
        raise Unfit(_no_rule(job))
    faults = _range_faults(spec, now_at, keep_us) + spec_faults(spec)
    if faults:
        raise Unfit(*faults)
    spec = _within_bounds(job, spec)
    total = rule.count(spec.from_at - 1, spec.to_at)
    if total < 1:
        raise Unfit(Fault(pointer="/from", expected="a range in which the job has a time", got="none"))
    if total > MAX_TIMES:
        hint = f"backfill it in parts; the first could end at {_part_end(rule, spec)}"
        expected = f"at most {MAX_TIMES:,} times from `from` to `to`"
        raise Unfit(Fault(pointer="/from", expected=expected, got=f"{total:,}", hint=hint))
    return Backfill(
        id=backfill_id,
        job_id=job.id,
        tenant=job.tenant,
        spec=spec,
        rule_key=rule.key,
        present_key=rule.key,
        while_paused=job.state == "paused",
        mark=spec.from_at - 1 if spec.order is Order.OLDEST else spec.to_at + 1,
        next_at=now_at,
        tally=Tally(total=total),
        created_at=now_at,
        updated_at=now_at,
    )


def spec_faults(spec: BackfillSpec) -> list[Fault]:
    """What is wrong with the numbers of a backfill."""
    faults = []
    if not 1 <= spec.max_open <= MAX_OPEN:
        expected = f"a whole number from 1 to {MAX_OPEN:,}"
        faults.append(Fault(pointer="/max_open", expected=expected, got=str(spec.max_open)))
    if spec.note is not None and len(spec.note) > MAX_NOTE:
        expected = f"at most {MAX_NOTE} characters"
        faults.append(Fault(pointer="/note", expected=expected, got=f"{len(spec.note):,}"))
    return faults


def next_page(backfill: Backfill, bound_at: int, limit: int) -> Page:
    """The next times up to `bound_at`, beyond which the job's clock may still plan by itself."""
    spec, rule = backfill.spec, backfill.rule
    if limit < 1 or backfill.is_fed:
        return Page(times=[], mark=backfill.mark)
    if spec.order is Order.OLDEST:
        last_at = min(spec.to_at, bound_at)
        times = rule.times(backfill.mark, last_at, limit)
        if len(times) < limit:
            return Page(times=times, mark=max(backfill.mark, last_at))
        return Page(times=times, mark=times[-1])
    if bound_at < spec.to_at:  # the newest are not yet known to be left out
        return Page(times=[], mark=backfill.mark)
    times = _newest_first(rule, spec.from_at, backfill.mark - 1, limit)
    return Page(times=times, mark=times[-1] if len(times) == limit else spec.from_at)


def allowance(backfill: Backfill, now_at: int) -> tuple[int, int]:
    """How many runs may be fed now, and from when on the pace counts them."""
    room = max(0, backfill.spec.max_open - backfill.tally.open)
    pace_us = backfill.spec.pace_us
    if pace_us is None:
        return room, now_at
    since = max(backfill.next_at, now_at - _BURST_US)
    return (0 if since > now_at else min(room, (now_at - since) // pace_us + 1)), since


def parse_rate(text: str) -> int:
    """The pace, in microseconds between two runs, behind a rate such as `50/s`, `10/m` or `100/h`."""
    number, slash, unit = text.strip().partition("/")
    units = {"s": 1, "m": 60, "min": 60, "h": 3600}
    try:
        rate = float(number) / units[unit.strip() if slash else "s"]
    except (ValueError, KeyError):
        raise ValueError(f"not a rate: {text[:40]!r} (expected such as 50/s, 10/m or 100/h)") from None
    if not SECOND_US / LONGEST_PACE_US <= rate <= MAX_RATE:
        raise ValueError(f"not a rate: {text[:40]!r} (expected from 1 a day to {MAX_RATE:,}/s)")
    return round(SECOND_US / rate)


def format_rate(pace_us: int | None) -> str | None:
    """A pace as people write it."""
    if pace_us is None:
        return None
    for unit, length_s in (("s", 1), ("m", 60), ("h", 3600)):
        rate = length_s * SECOND_US / pace_us
        if rate >= 1 or unit == "h":
            return f"{rate:.6g}/{unit}"
    return None


def _no_rule(job: Job) -> Fault:
    if isinstance(job.spec.timing, OnceTiming):
        return Fault(
            pointer="/job",
            expected="a job with a recurring schedule",
            got="a one-time job",
            hint="rerun its run, or run the job now",
        )
    return Fault(
        pointer="/job",
        expected="a job with a schedule of its own",
        got="a job that runs after others",
        hint="backfill the job at the root of its graph",
    )


def _within_bounds(job: Job, spec: BackfillSpec) -> BackfillSpec:
    """The part of the range in which the job may run at all; `max_runs` counts none of a backfill's runs."""
    starts_at, ends_at = job.spec.starts_at, job.spec.ends_at
    from_at = spec.from_at if starts_at is None else max(spec.from_at, starts_at)
    to_at = spec.to_at if ends_at is None else min(spec.to_at, ends_at)
    return msgspec.structs.replace(spec, from_at=from_at, to_at=to_at)


def _range_faults(spec: BackfillSpec, now_at: int, keep_us: int) -> list[Fault]:
    faults = []
    if spec.from_at > spec.to_at:
        faults.append(Fault(pointer="/from", expected="a time before `to`", got=format_instant(spec.from_at)))
    if spec.to_at > now_at:
        faults.append(
            Fault(
                pointer="/to",
                expected="a time that has passed",
                got=format_instant(spec.to_at),
                hint="what is to come is the schedule's",
            )
        )
    if spec.from_at < now_at - keep_us and not spec.force:
        faults.append(
            Fault(
                pointer="/from",
                expected=f"a time since {format_instant(now_at - keep_us)}, as far back as history is kept",
                got=format_instant(spec.from_at),
                hint="what ran before is no longer known and would run again; force says that this is meant",
            )
        )
    return faults


def _part_end(rule: Rule, spec: BackfillSpec) -> str:
    last = rule.nth(spec.from_at - 1, MAX_TIMES)
    return format_instant(spec.to_at if last is None else last)


def _newest_first(rule: Rule, from_at: int, last_at: int, limit: int) -> list[int]:
    found: list[int] = []
    at = rule.newest_in(from_at - 1, last_at)
    while at is not None and len(found) < limit:
        found.append(at)
        at = rule.newest_in(from_at - 1, at - 1)
    return found
