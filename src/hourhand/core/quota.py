"""How much a tenant may have, and whether it still fits. Pure: what is there comes in, what is refused goes out.

Scheduled runs are counted by what schedules come to: a recurring job has a rate, its mean number of runs a minute,
and the sum of a tenant's rates may not exceed what it may run. Runs that somebody asks for, one-time jobs among
them, take tokens from a bucket that fills in a minute.
"""

from collections.abc import Sequence
from functools import lru_cache

import msgspec

from hourhand.core.bucket import Limit
from hourhand.core.instant import DAY_US, MINUTE_US
from hourhand.core.model import JobSpec, OnceTiming
from hourhand.core.schedule.every import Every
from hourhand.core.schedule.rule import parse_key

NO_LIMIT = 0
RATE_UNIT = 1_000  # rates are whole thousandths of a run a minute
RETRY_AFTER_S = 60  # where only a deletion makes room, nobody knows when
MOST = 1_000_000_000_000  # that can be set as a limit
MOST_RUNS = 1_000_000  # a minute
MOST_DAYS = 3_660  # of history
_COUNTED_FROM = 20_089 * DAY_US  # 2025-01-01, so that the same rule has the same rate always
_COUNTED_US = 1_461 * DAY_US  # four years, one of them a leap year


class Quota(msgspec.Struct, frozen=True, kw_only=True):
    """The most that a tenant may have of everything; 0: no limit."""

    jobs: int = NO_LIMIT
    runs_per_minute: int = NO_LIMIT
    payload_bytes: int = NO_LIMIT  # of one job
    document_bytes: int = NO_LIMIT  # of all its jobs
    history_days: int = NO_LIMIT  # that an ended run can be read, where that is less than for all

    def overridden(self, by: "QuotaOverride") -> "Quota":
        """With what was set for one tenant."""
        return msgspec.structs.replace(
            self, **{name: value for name, value in msgspec.structs.asdict(by).items() if value is not None}
        )

    def part(self, databases: int) -> "Quota":
        """What one of several databases may hold of it: an even part, rounded up."""
        if databases == 1:
            return self
        return Quota(
            jobs=-(-self.jobs // databases),
            runs_per_minute=-(-self.runs_per_minute // databases),
            payload_bytes=self.payload_bytes,
            document_bytes=-(-self.document_bytes // databases),
            history_days=self.history_days,
        )

    def kept_us(self, keep_us: int) -> int:
        """How long ended runs can be read, where they are kept for so long for all."""
        return min(keep_us, self.history_days * DAY_US) if self.history_days else keep_us

    @property
    def runs(self) -> Limit | None:
        """The bucket of runs that are asked for."""
        if not self.runs_per_minute:
            return None
        return Limit(burst=self.runs_per_minute, per_s=max(0.001, min(1e6, self.runs_per_minute / 60)))


class QuotaOverride(msgspec.Struct, frozen=True, kw_only=True):
    """What those who run the system set for one tenant; None: as for all."""

    jobs: int | None = None
    runs_per_minute: int | None = None
    payload_bytes: int | None = None
    document_bytes: int | None = None
    history_days: int | None = None


class Use(msgspec.Struct, frozen=True, kw_only=True):
    """What a tenant has, or would get more."""

    jobs: int = 0
    document_bytes: int = 0
    rate: int = 0  # see RATE_UNIT
    runs: int = 0  # asked for

    def plus(self, other: "Use") -> "Use":
        """Both together."""
        return Use(
            jobs=self.jobs + other.jobs,
            document_bytes=self.document_bytes + other.document_bytes,
            rate=self.rate + other.rate,
            runs=self.runs + other.runs,
        )

    def minus(self, other: "Use") -> "Use":
        """Without what it has more by another."""
        return Use(
            jobs=self.jobs - other.jobs,
            document_bytes=self.document_bytes - other.document_bytes,
            rate=self.rate - other.rate,
            runs=self.runs - other.runs,
        )


class Room(msgspec.Struct, frozen=True, kw_only=True):
    """What a tenant may have in one database and what it has there: all that a judgement needs."""

    quota: Quota = Quota()
    use: Use = Use()
    runs_left: int = 0  # that may be asked for now; without meaning where the quota has no bucket

    def plus(self, more: Use) -> "Room":
        """Once the tenant has more."""
        return msgspec.structs.replace(self, use=self.use.plus(more), runs_left=self.runs_left - more.runs)


class OverQuota(msgspec.Struct, frozen=True, kw_only=True):
    """What does not fit, in words; and when to ask again."""

    why: str
    retry_after_s: int = RETRY_AFTER_S
    too_large: bool = False  # it will never fit


def rate_of(spec: JobSpec) -> int:
    """How many runs a minute a job's rule makes on average, in thousandths; 0 for a job without one."""
    rule = spec.rule
    return 0 if rule is None else _rate(rule.key)


def size_of(spec: JobSpec) -> int:
    """How many bytes a job's document has, as databases keep and count it."""
    return len(msgspec.json.encode(spec))


def asked_by(quota: Quota, spec: JobSpec) -> Use:
    """What a new job takes; sizes are only looked at where they count."""
    size = size_of(spec) if quota.document_bytes else 0
    runs = int(isinstance(spec.timing, OnceTiming))
    return Use(jobs=1, document_bytes=size, rate=rate_of(spec), runs=runs)


def asked_by_edit(quota: Quota, old: JobSpec, new: JobSpec) -> Use:
    """What a job takes more once it is another; one that gets another single time asks for a run."""
    before, after = asked_by(quota, old), asked_by(quota, new)
    runs = after.runs if new.timing != old.timing else 0
    return msgspec.structs.replace(after.minus(before), runs=runs)


def refusal(quota: Quota, use: Use, more: Use) -> OverQuota | None:
    """Why a tenant may not have this more; None where it may. What is not more is never refused."""
    limits = (
        ("jobs", quota.jobs, use.jobs, more.jobs, 1),
        ("bytes of job documents", quota.document_bytes, use.document_bytes, more.document_bytes, 1),
        ("scheduled runs a minute", quota.runs_per_minute, use.rate, more.rate, RATE_UNIT),
    )
    for words, limit, has, wants, unit in limits:
        if limit and wants > 0 and has + wants > limit * unit:
            shown, extra = f"{has / unit:,.10g}", f"{wants / unit:,.10g}"
            return OverQuota(
                why=f"the tenant may have {limit:,} {words}; it has {shown}, and this would be {extra} more"
            )
    return None


def too_large(quota: Quota, spec: JobSpec) -> OverQuota | None:
    """Why a job's payload is too large for its tenant; None where it is not."""
    size = len(bytes(spec.payload)) if quota.payload_bytes else 0
    if size <= quota.payload_bytes:
        return None
    why = f"payload: the tenant may have at most {quota.payload_bytes:,} bytes of JSON, got {size:,}"
    return OverQuota(why=why, too_large=True)


def no_runs_left(limit: Limit, asked: int, left: int, retry_after_us: int) -> OverQuota:
    """Why runs that somebody asks for are not made."""
    why = f"the tenant may ask for {limit.burst:,} runs a minute; {left:,} are left now, and this asks for {asked:,}"
    return OverQuota(why=why, retry_after_s=max(1, -(-retry_after_us // 1_000_000)))


def too_many_runs(room: Room, asked: int) -> OverQuota | None:
    """Why a tenant may not ask for so many runs now; None where it may."""
    limit = room.quota.runs
    if limit is None or asked <= max(0, room.runs_left):
        return None
    return no_runs_left(limit, asked, max(0, room.runs_left), min(MINUTE_US, limit.token_us * asked))


def over_by(room: Room, spec: JobSpec, more: Use) -> OverQuota | None:
    """Why a tenant may not have a new job; None where it may."""
    return (
        too_large(room.quota, spec) or refusal(room.quota, room.use, more) or too_many_runs(room, more.runs)
    )


def over_by_edit(room: Room, old: JobSpec, new: JobSpec, more: Use) -> OverQuota | None:
    """Why a job may not become another, as far as what its tenant keeps goes; None where it may."""
    over = refusal(room.quota, room.use, more)
    return too_large(room.quota, new) if over is None and new.payload != old.payload else over


def fitting(room: Room, asked: Sequence[tuple[JobSpec, Use]]) -> list[OverQuota | None]:
    """Which of some new jobs a tenant may have, the first ones first."""
    answers: list[OverQuota | None] = []
    for spec, more in asked:
        found = over_by(room, spec, more)
        answers.append(found)
        if found is None:
            room = room.plus(more)
    return answers


@lru_cache(maxsize=20_000)
def _rate(key: str) -> int:
    rule = parse_key(key)
    if isinstance(rule, Every):
        return -(-MINUTE_US * RATE_UNIT // rule.interval_us)
    count = rule.count(_COUNTED_FROM, _COUNTED_FROM + _COUNTED_US)
    return max(1, -(-count * RATE_UNIT * MINUTE_US // _COUNTED_US))
