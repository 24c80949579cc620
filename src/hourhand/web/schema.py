"""The shape of the documents that people send, field by field, as OpenAPI shows it.

Shapes and words only: `null` and a field left out mean its default. What the fields mean together, and
how they become a job, is `documents`'; limits of values are `core.specification`'s.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag

from hourhand.core.model import NO_RETRY_CODES
from hourhand.web.fields import (
    ActionWord,
    Concurrency,
    DeliveryWord,
    DurabilityWord,
    Duration,
    FoldWord,
    GapWord,
    Instant,
    InstantCondition,
    Method,
    MisfireWord,
    OrderWord,
    OverlapWord,
    PriorityWord,
    Rate,
    RoleWord,
    StateCondition,
    SwitchCondition,
    TextCondition,
)

_CONFIG = ConfigDict(extra="forbid", strict=True, frozen=True, hide_input_in_errors=True)

# Answers carry these beside the document. Sent back with a whole document they are passed over.
READ_ONLY = frozenset(
    {
        "job_id",
        "state",
        "version",
        "paused_until",
        "created_at",
        "updated_at",
        "next_fire_time",
        "schedule_in_words",
        "effective_from",
    }
)


def _field(description: str, example: Any, default: Any = None, **more: Any) -> Any:
    """A field that may be left out; its default as people would write it."""
    return Field(
        default=None,
        description=description,
        examples=[example],
        json_schema_extra={"default": default},
        **more,
    )


def _without_default(schema: dict[str, Any]) -> None:
    schema.pop("default", None)


def _condition(description: str, example: Any, **more: Any) -> Any:
    """A condition of a filter: one that is left out holds for all, and has no value that says so."""
    return Field(
        default=None,
        description=description,
        examples=[example],
        json_schema_extra=_without_default,
        **more,
    )


class DstDocument(BaseModel):
    """What becomes of wall times that a zone change drops or repeats."""

    model_config = _CONFIG

    gap: GapWord | None = _field("A time that does not exist that day.", "after", "after")
    fold: FoldWord | None = _field("A time that comes twice that day.", "auto", "auto")


class HttpTargetDocument(BaseModel):
    """An HTTP call; the payload is its body."""

    model_config = _CONFIG

    type: Literal["http"] = Field(default="http", description="An HTTP call.", examples=["http"])
    url: str = Field(
        description="What is called; http or https.", examples=["https://example.com/hooks/daily"]
    )
    method: Method | None = _field("The HTTP method.", "POST", "POST")
    headers: dict[str, str] | None = _field("More headers for the call.", {"Authorization": "Bearer …"}, {})
    timeout: Duration | None = _field("Of one exchange.", "30s", "30s")


class PythonTargetDocument(BaseModel):
    """A function that a worker has imported; the payload is its arguments."""

    model_config = _CONFIG

    type: Literal["python"] = Field(default="python", description="A Python function.", examples=["python"])
    function: str = Field(description="Module and function.", examples=["app.tasks:daily_report"])


class ShellTargetDocument(BaseModel):
    """A command, run by workers whose operator allows it; the payload is its stdin."""

    model_config = _CONFIG

    type: Literal["shell"] = Field(default="shell", description="A command.", examples=["shell"])
    argv: list[str] = Field(
        description="The command and its arguments; no shell reads them.", examples=[["backup", "--all"]]
    )
    env: dict[str, str] | None = _field("Variables beside the few that are passed on.", {"LEVEL": "3"}, {})
    cwd: str | None = _field("Its working directory; the worker's unless given.", "/srv/backup")
    success_codes: list[int] | None = _field("Exit codes that mean success.", [0], [0])
    no_retry_codes: list[int] | None = _field(
        "Exit codes after which it is not tried again.", [64, 65], list(NO_RETRY_CODES)
    )


def target_kind(value: Any) -> str | None:
    """Which shape of target this is; a plain text is a URL, and `type` may be left out."""
    if isinstance(value, str):
        return "url"
    if not isinstance(value, dict):
        return "http"  # whose shape then says that an object was expected
    kind = value.get("type")
    if kind is None:
        return "python" if "function" in value else "shell" if "argv" in value else "http"
    return kind if isinstance(kind, str) else None


TargetDocument = Annotated[
    Annotated[str, Tag("url")]
    | Annotated[HttpTargetDocument, Tag("http")]
    | Annotated[PythonTargetDocument, Tag("python")]
    | Annotated[ShellTargetDocument, Tag("shell")],
    Discriminator(target_kind),
]


class RetryDocument(BaseModel):
    """How often and how patiently a failed attempt is tried again."""

    model_config = _CONFIG

    max: int | None = _field("Retries after the first attempt.", 3, 3)
    first: Duration | None = _field("The pause before the first retry.", "1s", "1s")
    factor: float | None = _field("By how much each pause is longer than the one before.", 2, 2)
    max_delay: Duration | None = _field("The longest pause.", "10m", "10m")


class MisfireDocument(BaseModel):
    """What becomes of fire times that were missed in an outage."""

    model_config = _CONFIG

    policy: MisfireWord | None = _field("Run the newest, none, or all of them.", "run_once", "run_once")
    grace: Duration | None = _field("How late a run may be and still count as on time.", "60s", "1m")
    limit: int | None = _field("How many `catch_up` makes up for at most.", 100, 100)


class JobDocument(BaseModel):
    """A job: exactly one of cron, every, at and after says when; target or callback_url says what."""

    model_config = ConfigDict(
        **_CONFIG,
        json_schema_extra={
            "examples": [
                {
                    "name": "daily-report",
                    "cron": "0 9 * * *",
                    "tz": "Europe/Berlin",
                    "callback_url": "https://example.com/hooks/daily",
                    "priority": "HIGH",
                    "payload": {"region": "eu"},
                },
                {"cron": "*/5 * * * *", "target": "https://example.com/ping", "payload": "{}"},
                {
                    "name": "cleanup",
                    "every": "15m",
                    "target": {"type": "python", "function": "app.tasks:cleanup"},
                },
            ]
        },
    )

    name: str | None = _field("A label for people; need not be unique.", "daily-report", "")
    key: str | None = _field("A name of your own, unique; for PUT /jobs/by-key/{key}.", "billing/daily")
    shard_key: str | None = _field("Jobs with the same one stay together; fixed at creation.", "billing")
    tags: list[str] | None = _field("Words to find it by.", ["billing"], [])
    set: str | None = _field("The set of files that it is applied from; stays unless it is named.", "billing")
    cron: str | None = _field("When, as 5 fields, 6 with seconds in front, or @daily.", "0 9 * * *")
    tz: str | None = _field("The zone that a cron expression is read in.", "Europe/Berlin", "UTC")
    dst: DstDocument | None = _field(
        "What DST does to a cron expression.", {"gap": "after", "fold": "auto"}, {}
    )
    every: Duration | None = _field("When, as the time between two runs.", "15m")
    phase: Instant | None = _field(
        "An instant that `every` counts from; the second of creation unless given.", "2026-11-16T00:00:00Z"
    )
    at: Instant | None = _field("When, once. A time in the past fires now.", "2026-11-16T08:00:00Z")
    after: list[str] | None = _field(
        "When, as jobs that it follows, by id or key: it runs when all have succeeded for the same time.",
        ["J-0000000000000", "billing/daily"],
    )
    wait: Duration | None = _field(
        "How long a run waits for the last of the jobs in `after`, once the first has ended.", "2h", "1d"
    )
    starts_at: Instant | None = _field("No run before it.", "2026-11-16T00:00:00Z")
    ends_at: Instant | None = _field("No run after it.", "2027-11-16T00:00:00Z")
    max_runs: int | None = _field("How many runs there will be, skipped ones included.", 10)
    target: TargetDocument | None = _field(
        "What is run: a URL, or an object with its `type`.",
        {"type": "http", "url": "https://example.com/hooks/daily", "method": "POST"},
    )
    callback_url: str | None = _field("Short for an HTTP target.", "https://example.com/hooks/daily")
    payload: Any = _field(
        "What the target gets: any JSON up to the limit. A text that is itself a JSON object or array "
        "is taken as that; a patch replaces it whole.",
        {"region": "eu"},
    )
    priority: PriorityWord | None = _field("Workers take HIGH first.", "HIGH", "MEDIUM")
    durability: DurabilityWord | None = _field(
        "Picks the queue where two are configured.", "critical", "critical"
    )
    pool: str | None = _field("The workers that run it.", "default", "default")
    timeout: Duration | None = _field("Of one attempt.", "5m", "5m")
    delivery: DeliveryWord | None = _field(
        "Whether an attempt that may have had its effect is tried again.", "at_least_once", "at_least_once"
    )
    retry: RetryDocument | None = _field("When and how often a failure is tried again.", {"max": 3}, {})
    concurrency: Concurrency | None = _field('How many runs at once, or "unlimited".', 1, 1)
    overlap: OverlapWord | None = _field(
        "What a run does when all slots are taken.", "queue_one", "queue_one"
    )
    misfire: MisfireDocument | None = _field("What becomes of missed times.", {"policy": "run_once"}, {})
    jitter: Duration | None = _field("Spreads the start over this long, up to 30s.", "10s", "0s")
    paused: bool | None = _field("Make no runs until resumed.", False, False)
    note: str | None = _field("Why it is paused.", "INC-42")


class PauseDocument(BaseModel):
    """Why and until when a job is paused."""

    model_config = _CONFIG

    note: str | None = _field("Why; shown with the job.", "INC-42")
    until: Instant | None = _field("When it goes on by itself.", "2026-11-16T08:00:00Z")


class SkipDocument(BaseModel):
    """Which coming time shall not run, and why."""

    model_config = _CONFIG

    at: Instant | None = _field(
        "One of the job's coming times; the next unless given.", "2026-11-16T08:00:00Z"
    )
    note: str | None = _field("Why; kept with the run that was skipped.", "holiday")
    undo: bool | None = _field(
        "Let it run after all; the next skipped one unless `at` is given.", False, False
    )


class BackfillDocument(BaseModel):
    """The passed times of a job that shall run."""

    model_config = _CONFIG

    job: str = Field(description="The job's id, key or unambiguous name.", examples=["J-0000000000000"])
    from_: Instant = Field(alias="from", description="The first time.", examples=["2026-11-01T00:00:00Z"])
    to: Instant | None = _field("The last time; now unless given.", "2026-11-15T00:00:00Z")
    rate: Rate | None = _field("How many runs are made in a time; as fast as they end unless given.", "50/s")
    max_open: int | None = _field("How many of its runs may be open at once.", 100, 100)
    order: OrderWord | None = _field("Which times come first.", "oldest", "oldest")
    note: str | None = _field("Why; shown with it.", "INC-42")
    force: bool | None = _field(
        "Also times before history begins: what ran then is not known and runs again.", False, False
    )


class TokenDocument(BaseModel):
    """An API token to be made."""

    model_config = _CONFIG

    name: str = Field(description="What it is for; shown with all that is done by it.", examples=["ci"])
    role: RoleWord | None = _field("What its owner may do.", "editor", "viewer")
    tenant: str | None = _field(
        'Whose jobs it is for, the caller\'s own unless given; "*": of those who run the system.', "acme"
    )
    expires_in: Duration | None = _field("How long it holds; for ever unless given.", "90d")
    expires_at: Instant | None = _field("Until when it holds, instead.", "2027-11-16T08:00:00Z")


class QuotaDocument(BaseModel):
    """What a tenant may have; 0: no limit, null: as the settings say."""

    model_config = _CONFIG

    jobs: int | None = _field("Jobs.", 10_000)
    runs_per_minute: int | None = _field("Runs a minute, scheduled and asked for.", 600)
    payload_bytes: int | None = _field("Bytes of one job's payload; at most what the settings allow.", 65_536)
    document_bytes: int | None = _field("Bytes of all its job documents.", 1_000_000)
    history_days: int | None = _field(
        "Days for which ended runs can be read; at most as long as history is kept for all.", 7
    )


class DeadFilterDocument(BaseModel):
    """Which dead letters; all conditions must hold, none means all."""

    model_config = _CONFIG

    job_id: TextCondition = _condition("Of one job.", "J-0000000000000")
    error: TextCondition = _condition("With this error fingerprint.", "5f2a9c01")
    from_: InstantCondition = _condition("Failed at or after.", "2026-11-16T08:00:00Z", alias="from")
    to: InstantCondition = _condition("Failed before.", "2026-11-16T09:00:00Z")


class DeadSelectionDocument(BaseModel):
    """Dead letters by their run ids or by a filter; at most 1,000 are changed by one request."""

    model_config = _CONFIG

    ids: list[str] | None = _field("Run ids.", ["J-0000000000000@20261116T080000Z"])
    filter: DeadFilterDocument | None = _field(
        "Which ones, by what they have in common.", {"error": "5f2a9c01"}
    )
    dry_run: bool | None = _field("Say what would be done, and do nothing.", False, False)


class DeadRequeueDocument(DeadSelectionDocument):
    """Dead letters to send back."""

    downstream: bool | None = _field(
        "Let what was skipped because of them wait for its parents again.", False, False
    )


class OperationFilterDocument(BaseModel):
    """Which jobs, or which dead letters, by what they have in common; all conditions must hold, none means all."""

    model_config = _CONFIG

    state: StateCondition = _condition("Jobs in this state.", "active")
    tag: TextCondition = _condition("Jobs with this tag.", "billing")
    set: TextCondition = _condition("Jobs applied from this set of files.", "billing")
    name: TextCondition = _condition("Jobs whose names begin so.", "report-")
    failing: SwitchCondition = _condition("Jobs with something in dead letters or retrying.", False)
    job_id: TextCondition = _condition("Dead letters of one job.", "J-0000000000000")
    error: TextCondition = _condition("Dead letters with this error fingerprint.", "5f2a9c01")
    from_: InstantCondition = _condition(
        "Dead letters that failed at or after.", "2026-11-16T08:00:00Z", alias="from"
    )
    to: InstantCondition = _condition("Dead letters that failed before.", "2026-11-16T09:00:00Z")


class OperationDocument(BaseModel):
    """One action on all that match."""

    model_config = _CONFIG

    action: ActionWord = Field(
        description="What is done: pause, resume, run and delete jobs; requeue and discard dead letters.",
        examples=["pause"],
    )
    filter: OperationFilterDocument = Field(description="With which.", examples=[{"tag": "billing"}])
    expected_count: int | None = _field("Refuse with 409 where more than so many match.", 40)
    rate: Rate | None = _field("How many in a time; as fast as it goes unless given.", "50/s")
    note: str | None = _field("Why; kept with it, and with jobs that it pauses.", "INC-42")
    dry_run: bool | None = _field("Count what matches, and do nothing.", False, False)


class RunDocument(BaseModel):
    """How a job is run by hand."""

    model_config = _CONFIG

    downstream: bool | None = _field("Run all that follow it after it.", False, False)


class ScheduleDocument(BaseModel):
    """A recurring schedule to look at before a job has it."""

    model_config = _CONFIG

    cron: str | None = _field("A cron expression.", "0 9 * * mon-fri")
    tz: str | None = _field("The zone that it is read in.", "Europe/Berlin", "UTC")
    dst: DstDocument | None = _field("What DST does to it.", {"gap": "after", "fold": "auto"}, {})
    every: Duration | None = _field("Or the time between two runs.", "15m")
    phase: Instant | None = _field("An instant that `every` counts from.", "2026-11-16T00:00:00Z")
    n: int | None = _field("How many times to show, up to 1,000.", 10, 10)
    after: Instant | None = _field("From when on; now unless given.", "2026-11-16T00:00:00Z")
