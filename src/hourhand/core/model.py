"""The nouns: a job as it is stored and run, with every field's default.

Owns the shapes and their limits. How people write a job down (durations as text, `callback_url`)
belongs to the web edge; when a job fires belongs to `core.schedule`; what a run may become to
`core.lifecycle`. Instants are int microseconds since the epoch in UTC, durations microseconds.
"""

from enum import IntEnum, StrEnum
from functools import lru_cache

import msgspec

from hourhand.core.instant import DAY_US, MINUTE_US, SECOND_US
from hourhand.core.schedule import Cron, Every, Rule, parse_cron

DEFAULT_TENANT = "default"
DEFAULT_POOL = "default"
MAX_CONCURRENCY = 1_000
MAX_PAYLOAD_BYTES = 256 * 1024
MAX_QUEUED = 100  # how many runs of one job may wait for its slots
FOREVER = (1 << 62) - 1  # an `until` that never comes; leaves room to add a duration without overflow


class Priority(IntEnum):
    """Which class of lanes a job's runs wait in; a lower number is taken first."""

    HIGH = 0
    MEDIUM = 1
    LOW = 2


class Durability(StrEnum):
    """Picks the queue where two are configured."""

    CRITICAL = "critical"
    FIRE_AND_FORGET = "fire_and_forget"


class Delivery(StrEnum):
    """What happens when a worker is lost in the middle of an attempt."""

    AT_LEAST_ONCE = "at_least_once"
    AT_MOST_ONCE = "at_most_once"


class Overlap(StrEnum):
    """What a scheduled run does when it is due and all slots of its job are taken."""

    QUEUE_ONE = "queue_one"
    QUEUE = "queue"
    SKIP = "skip"
    CANCEL_RUNNING = "cancel_running"


class MisfirePolicy(StrEnum):
    """What becomes of fire times that nobody planned or claimed within the grace."""

    RUN_ONCE = "run_once"
    SKIP = "skip"
    CATCH_UP = "catch_up"


class Trigger(StrEnum):
    """Why a run exists. Only scheduled runs are judged by the misfire policy, and only they and those that
    followed their parents by the overlap policy."""

    SCHEDULED = "scheduled"
    MANUAL = "manual"
    BACKFILL = "backfill"
    CATCH_UP = "catch_up"
    REQUEUED = "requeued"
    RERUN = "rerun"
    UPSTREAM = "upstream"


class JobState(StrEnum):
    """Whether a job makes new runs."""

    ACTIVE = "active"
    PAUSED = "paused"
    COMPLETED = "completed"


class CronTiming(msgspec.Struct, frozen=True, kw_only=True, tag="cron", omit_defaults=True):
    """Fires when a cron expression matches in a zone."""

    expression: str
    tz: str = "UTC"
    gap: str = "after"
    fold: str = "auto"


class EveryTiming(msgspec.Struct, frozen=True, kw_only=True, tag="every"):
    """Fires every interval, counted from a phase; the phase is the creation second unless given."""

    interval_us: int
    phase_at: int


class OnceTiming(msgspec.Struct, frozen=True, kw_only=True, tag="at"):
    """Fires once."""

    at: int


class AfterTiming(msgspec.Struct, frozen=True, kw_only=True, tag="after", omit_defaults=True):
    """Fires when all of some other jobs have succeeded for the same nominal time."""

    parents: tuple[int, ...]  # sorted job ids
    wait_us: int = DAY_US  # for the last of them, from when the first has ended


Timing = CronTiming | EveryTiming | OnceTiming | AfterTiming


class HttpTarget(msgspec.Struct, frozen=True, kw_only=True, tag="http", omit_defaults=True):
    """Calls a URL; the payload is the body."""

    url: str
    method: str = "POST"
    headers: dict[str, str] = {}
    timeout_us: int = 30 * SECOND_US


class PythonTarget(msgspec.Struct, frozen=True, kw_only=True, tag="python"):
    """Calls a registered function; the payload is its keyword arguments."""

    function: str


# Exit codes that say that the same again cannot help: wrong usage, bad data, no permission, bad configuration (as
# sysexits.h numbers them), not executable, not found.
NO_RETRY_CODES = (64, 65, 77, 78, 126, 127)


class ShellTarget(msgspec.Struct, frozen=True, kw_only=True, tag="shell", omit_defaults=True):
    """Runs a command; the payload is its stdin. Never a text for a shell to parse."""

    argv: tuple[str, ...]
    env: dict[str, str] = {}
    cwd: str | None = None  # the worker's own, unless given
    success_codes: tuple[int, ...] = (0,)
    no_retry_codes: tuple[int, ...] = NO_RETRY_CODES


Target = HttpTarget | PythonTarget | ShellTarget


class Retry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How often and how patiently a failed attempt is tried again."""

    max: int = 3
    first_us: int = SECOND_US
    factor: float = 2.0
    max_delay_us: int = 10 * MINUTE_US


class Misfire(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The misfire policy and its bounds."""

    policy: MisfirePolicy = MisfirePolicy.RUN_ONCE
    grace_us: int = 60 * SECOND_US
    limit: int = 100


class JobSpec(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Everything a person decides about a job. A change of any of it makes a new version."""

    timing: Timing
    target: Target
    name: str = ""
    key: str | None = None
    shard_key: str | None = None
    tags: tuple[str, ...] = ()
    set_name: str | None = None  # the set of files that it was applied from
    starts_at: int | None = None
    ends_at: int | None = None
    max_runs: int | None = None
    payload: msgspec.Raw = msgspec.Raw(b"null")
    priority: Priority = Priority.MEDIUM
    durability: Durability = Durability.CRITICAL
    pool: str = DEFAULT_POOL
    timeout_us: int = 5 * MINUTE_US
    delivery: Delivery = Delivery.AT_LEAST_ONCE
    retry: Retry = Retry()
    concurrency: int | None = 1
    overlap: Overlap = Overlap.QUEUE_ONE
    misfire: Misfire = Misfire()
    jitter_us: int = 0

    @property
    def rule(self) -> Rule | None:
        """When it recurs; None for a one-time job and for one that follows others."""
        return rule_of(self.timing)


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """A job as the store holds it."""

    id: int
    tenant: str
    spec: JobSpec
    version: int = 1
    version_from: int = 0  # from when on this version holds, which may be yet to come
    state: JobState = JobState.ACTIVE
    note: str | None = None
    paused_until: int | None = None
    since: int  # only nominal times after it are this version's to plan
    until: int = FOREVER  # and only up to here: ends_at and max_runs in one number
    created_at: int
    updated_at: int


class Version(msgspec.Struct, frozen=True, kw_only=True):
    """What a job was from one instant to another. Append-only; outlives history."""

    job_id: int
    version: int
    spec: JobSpec
    paused: bool
    note: str | None
    from_at: int
    until: int  # bounds of this version's nominal times, not its end
    to_at: int | None  # None while in force
    deleted: bool = False


@lru_cache(maxsize=10_000)
def rule_of(timing: Timing) -> Rule | None:
    """The recurrence behind a timing, None where there is none; remembered, since many jobs share one."""
    match timing:
        case CronTiming(expression=expression, tz=tz, gap=gap, fold=fold):
            return parse_cron(expression, tz=tz, gap=gap, fold=fold)
        case EveryTiming(interval_us=interval_us, phase_at=phase_at):
            return Every(interval_us=interval_us, phase_us=phase_at)
        case OnceTiming() | AfterTiming():
            return None


__all__ = [
    "AfterTiming",
    "Cron",
    "CronTiming",
    "Delivery",
    "Durability",
    "Every",
    "EveryTiming",
    "HttpTarget",
    "Job",
    "JobSpec",
    "JobState",
    "Misfire",
    "MisfirePolicy",
    "OnceTiming",
    "Overlap",
    "Priority",
    "PythonTarget",
    "Retry",
    "Rule",
    "ShellTarget",
    "Target",
    "Timing",
    "Trigger",
    "Version",
    "rule_of",
]
