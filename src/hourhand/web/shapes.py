"""The shape of answers, as OpenAPI shows them. Answers are built in `answers`; a test holds the two together."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from hourhand.web.problems import Problem

_CONFIG = ConfigDict(extra="forbid", strict=True)
_TIME = "2026-11-16T08:00:00Z"
_JOB = "J-0d3x8m2k7q1vt"
_RUN = f"{_JOB}@20261116T080000Z"

StateWord = Literal["PENDING", "RUNNING", "RETRYING", "SUCCEEDED", "FAILED", "SKIPPED", "CANCELLED"]


def _is(description: str, example: Any) -> Any:
    return Field(description=description, examples=[example])


def _may_be(description: str, example: Any) -> Any:
    """A field that only some answers have."""
    return Field(default=None, description=description, examples=[example])


class Created(BaseModel):
    """A job was created."""

    model_config = _CONFIG

    job_id: str | None = _is("The id it was given; null in a dry run.", _JOB)
    next_fire_time: str | None = _is("When it fires first; null if it is paused.", _TIME)
    dry_run: bool | None = _may_be("True where nothing was written.", True)


class JobAnswer(BaseModel):
    """A job: its document, and what only answers carry."""

    model_config = _CONFIG

    job_id: str | None = _is("Its id; null in a dry run of creating it.", _JOB)
    name: str = _is("A label.", "daily-report")
    key: str | None = _is("A name of your own, unique.", "billing/daily")
    shard_key: str | None = _is("Jobs with the same one stay together.", None)
    tags: list[str] = _is("Words to find it by.", ["billing"])
    set: str | None = _is("The set of files that it is applied from.", "billing")
    cron: str | None = _may_be("A cron expression.", "0 9 * * *")
    tz: str | None = _may_be("The zone that it is read in.", "Europe/Berlin")
    dst: dict[str, str] | None = _may_be("What DST does to it.", {"gap": "after", "fold": "auto"})
    every: str | None = _may_be("Or the time between two runs.", "15m")
    phase: str | None = _may_be("An instant that `every` counts from.", _TIME)
    at: str | None = _may_be("Or the one time.", _TIME)
    after: list[str] | None = _may_be("Or the jobs that it follows, by id.", [_JOB])
    wait: str | None = _may_be("How long its runs wait for the last of those.", "1d")
    starts_at: str | None = _is("No run before it.", None)
    ends_at: str | None = _is("No run after it.", None)
    max_runs: int | None = _is("How many runs there will be.", None)
    target: dict[str, Any] = _is("What is run.", {"type": "http", "url": "https://example.com/hooks/daily"})
    payload: Any = _is("What the target gets.", {"region": "eu"})
    priority: str = _is("HIGH, MEDIUM or LOW.", "MEDIUM")
    durability: str = _is("critical or fire_and_forget.", "critical")
    pool: str = _is("The workers that run it.", "default")
    timeout: str = _is("Of one attempt.", "5m")
    delivery: str = _is("at_least_once or at_most_once.", "at_least_once")
    retry: dict[str, Any] = _is("Retries.", {"max": 3, "first": "1s", "factor": 2, "max_delay": "10m"})
    concurrency: int | str = _is('How many runs at once, or "unlimited".', 1)
    overlap: str = _is("What a run does when all slots are taken.", "queue_one")
    misfire: dict[str, Any] = _is("Missed times.", {"policy": "run_once", "grace": "1m", "limit": 100})
    jitter: str = _is("Spreads the start.", "0s")
    paused: bool = _is("Whether it is paused.", False)
    note: str | None = _is("Why it is paused.", None)
    state: Literal["active", "paused", "completed"] = _is("Whether it makes runs.", "active")
    version: int = _is("Grows with each change; its ETag.", 1)
    paused_until: str | None = _is("When a pause ends by itself.", None)
    created_at: str = _is("When it was created.", _TIME)
    updated_at: str = _is("When it was changed last.", _TIME)
    next_fire_time: str | None = _is("When it fires next.", _TIME)
    schedule_in_words: str = _is("The schedule in words.", "at 09:00 every day, Europe/Berlin")
    effective_from: str | None = _may_be("From when on a change holds.", _TIME)
    dry_run: bool | None = _may_be("True where nothing was written.", True)


class JobList(BaseModel):
    """A page of jobs, newest first."""

    model_config = _CONFIG

    data: list[JobAnswer] = _is("The jobs.", [])
    next_cursor: str | None = _is("Where the next page begins; null on the last.", None)
    partial: list[str] | None = _may_be("Databases that did not answer: theirs are not here.", ["shard 1"])


class StatusAnswer(BaseModel):
    """What a job is up to."""

    model_config = _CONFIG

    job_id: str = _is("The job.", _JOB)
    status: StateWord = _is("Of the newest run that is due and neither skipped nor cancelled.", "SUCCEEDED")
    last_run: str | None = _is("The nominal time of that run; null before the first.", _TIME)
    next_run: str | None = _is("The next nominal time that is not skipped.", _TIME)
    skipped: list[str] | None = _may_be(
        "Coming times that somebody wants skipped, where there are any.", [_TIME]
    )
    retry_count: int = _is("Failed attempts of that run.", 0)
    state: Literal["active", "paused", "completed"] = _is("Whether it makes runs.", "active")


class Deleted(BaseModel):
    """A job is gone."""

    model_config = _CONFIG

    deleted: bool = _is("True.", True)
    dry_run: bool | None = _may_be("True where nothing was written.", True)


class Started(BaseModel):
    """A run beside the schedule."""

    model_config = _CONFIG

    run_id: str | None = _is("The run; null in a dry run.", _RUN)
    followed_by: int | None = _may_be("How many jobs have a run after it, with `downstream`.", 3)
    dry_run: bool | None = _may_be("True where nothing was written.", True)


class AttemptAnswer(BaseModel):
    """One try of a run, or its end without one."""

    model_config = _CONFIG

    attempt: int = _is("Its number; grows with every claim.", 1)
    status: StateWord = _is("What it led to.", "SUCCEEDED")
    due_at: str = _is("When it was due.", _TIME)
    started_at: str | None = _is("When it began; null if it never did.", _TIME)
    finished_at: str = _is("When it ended.", _TIME)
    duration_ms: int | None = _is("How long it took.", 12)
    worker: str | None = _is("Who did it.", "worker-1")
    version: int = _is("Of the job.", 1)
    response: Any = _is("What the target answered.", {"status": 200})
    error: str | None = _is("What went wrong.", None)
    reason: str | None = _is("Why it was skipped or cancelled.", None)
    detail: dict[str, Any] | None = _is("What else was kept.", None)


class MentionedJob(BaseModel):
    """Another job that has to do with a run."""

    model_config = _CONFIG

    job_id: str = _is("Its id.", _JOB)
    name: str | None = _is("What people call it.", "daily-report")


class UpstreamAnswer(MentionedJob):
    """The job because of whom a run was skipped."""

    outcome: str = _is("How its run ended; MISSING where it had none.", "FAILED")


class ProgressAnswer(BaseModel):
    """How far an attempt is, as it was last told."""

    model_config = _CONFIG

    fraction: float | None = _is("From 0 to 1.", 0.4)
    message: str | None = _is("In words.", "loading")
    at: str = _is("When it was told.", _TIME)


class RunAnswer(BaseModel):
    """A run, wherever it is in its life."""

    model_config = _CONFIG

    run_id: str = _is("Its id, and the idempotency key given to targets.", _RUN)
    job_id: str = _is("Its job.", _JOB)
    status: StateWord = _is("Where it is.", "SUCCEEDED")
    scheduled_at: str = _is("Its nominal time.", _TIME)
    due_at: str = _is("When it may start, or is tried again.", _TIME)
    started_at: str | None = _is("When its first attempt began.", _TIME)
    finished_at: str | None = _is("When it ended.", _TIME)
    lag_ms: int | None = _is("How late its first attempt began.", 3)
    attempts: list[AttemptAnswer] = _is("All tries, oldest first.", [])
    response: Any = _is("Of the last attempt.", {"status": 200})
    error: str | None = _is("Of the last attempt.", None)
    reason: str | None = _is("Why it was skipped or cancelled.", None)
    trigger: str = _is("Why it exists.", "scheduled")
    worker: str | None = _is("Who has it, or had it last.", "worker-1")
    version: int | None = _is("Of the job; null before it is taken.", 1)
    retry_count: int = _is("Failed attempts since it was last requeued.", 0)
    waits_for_slot: bool = _is("Whether it waits for another run of its job to end.", False)
    waits_for: list[MentionedJob] = _is("Jobs that it follows and whose runs have not ended.", [])
    wait_until: str | None = _is("When it waits for them no longer.", None)
    upstream: UpstreamAnswer | None = _is("Because of whom it was skipped.", None)
    skip_asked: bool = _is("Whether it will be skipped when its time comes.", False)
    rerun_of: str | None = _is("The run that it repeats.", None)
    reruns: list[str] = _is("The runs that repeat it.", [])
    cancel_asked: bool = _is("Whether somebody wants it cancelled.", False)
    awaits_report: bool = _is("Whether its target accepted it and is to report.", False)
    deadline_at: str | None = _is("Until when the present attempt may take; null unless it runs.", None)
    progress: ProgressAnswer | None = _is("How far the present attempt is, where it was told.", None)
    dry_run: bool | None = _may_be("True where nothing was written.", True)


class ReportAnswer(BaseModel):
    """What a report did."""

    model_config = _CONFIG

    run_id: str = _is("The run.", _RUN)
    attempt: int = _is("The attempt that it was about.", 1)
    status: StateWord = _is("Of the run, as this attempt left it; RUNNING after progress.", "SUCCEEDED")
    deadline_at: str | None = _is("Until when the next report must come; null once it has ended.", None)
    due_at: str | None = _is("When it is tried again; null where it is not.", None)
    repeated: bool = _is("Whether this report was here before, and changed nothing now.", False)
    dry_run: bool | None = _may_be("True where nothing was written.", True)


class RunList(BaseModel):
    """A page of runs, newest first."""

    model_config = _CONFIG

    data: list[RunAnswer] = _is("The runs.", [])
    next_cursor: str | None = _is("Where the next page begins; null on the last.", None)
    partial: list[str] | None = _may_be("Databases that did not answer: theirs are not here.", ["shard 1"])


class LogChunkAnswer(BaseModel):
    """A piece of what an attempt said."""

    model_config = _CONFIG

    attempt: int = _is("Which attempt said it.", 1)
    seq: int = _is("Its place within the attempt, from 1.", 1)
    at: str = _is("When the worker read it.", _TIME)
    stream: Literal["output", "log", "system"] = _is(
        "A command's stdout and stderr, a function's log, or a note of hourhand's own.", "output"
    )
    text: str = _is("Text as it came, control characters included; not always whole lines.", "done\n")


class LogAnswer(BaseModel):
    """What the attempts of a run said, in order."""

    model_config = _CONFIG

    data: list[LogChunkAnswer] = _is("The pieces.", [])
    next_after: str = _is("Where to go on: give it as `after`.", "1-7")
    done: bool = _is("Whether that was all, and no more can come.", True)


class TimeAnswer(BaseModel):
    """A time that fires, or one that DST keeps from firing."""

    model_config = _CONFIG

    at: str = _is("In UTC.", _TIME)
    local: str = _is("In the schedule's zone, with its offset.", "2026-11-16T09:00:00+01:00")
    fires: bool = _is("False for a time that DST drops, or that somebody wants skipped.", True)
    note: str | None = _is("What DST does to it, or why it is skipped.", None)
    skipped: bool | None = _may_be("True where somebody wants it skipped.", True)


class NextTimes(BaseModel):
    """The coming times of a job."""

    model_config = _CONFIG

    job_id: str = _is("The job.", _JOB)
    schedule_in_words: str = _is("The schedule in words.", "at 09:00 every day, Europe/Berlin")
    data: list[TimeAnswer] = _is("The times.", [])


class ZoneChangeAnswer(BaseModel):
    """A change of a zone's offset."""

    model_config = _CONFIG

    at: str = _is("When.", "2027-03-28T01:00:00Z")
    old_offset_s: int = _is("Seconds east of UTC before.", 3600)
    new_offset_s: int = _is("And after.", 7200)


class Preview(BaseModel):
    """What a schedule means."""

    model_config = _CONFIG

    schedule_in_words: str = _is("In words.", "at 09:00 on Monday to Friday, Europe/Berlin")
    tz: str = _is("The zone that it is read in.", "Europe/Berlin")
    data: list[TimeAnswer] = _is("The coming times.", [])
    next_change: ZoneChangeAnswer | None = _is("The zone's next change; null where it has none.", None)


class VersionAnswer(BaseModel):
    """What a job was for a time."""

    model_config = ConfigDict(**_CONFIG, populate_by_name=True)

    version: int = _is("Its number.", 1)
    from_: str = Field(alias="from", description="From when.", examples=[_TIME])
    to: str | None = _is("Until when; null while in force.", None)
    paused: bool = _is("Whether it was paused.", False)
    note: str | None = _is("Why.", None)
    deleted: bool = _is("Whether this is its end.", False)
    job: dict[str, Any] = _is("The document.", {"name": "daily-report", "cron": "0 9 * * *"})


class VersionList(BaseModel):
    """All versions of a job, oldest first."""

    model_config = _CONFIG

    data: list[VersionAnswer] = _is("The versions.", [])


class MissedAnswer(BaseModel):
    """Times that passed while nobody planned, and what the misfire policy made of them."""

    model_config = ConfigDict(**_CONFIG, populate_by_name=True)

    version: int = _is("The version in force.", 1)
    from_: str = Field(alias="from", description="The first of them at the earliest.", examples=[_TIME])
    to: str = _is("The last of them at the latest.", _TIME)
    missed: int = _is("How many times.", 12)
    ran: int = _is("How many of them ran late; they are in the history.", 1)
    policy: str = _is("The misfire policy that decided.", "run_once")


class MissedList(BaseModel):
    """What a job missed, newest first."""

    model_config = _CONFIG

    data: list[MissedAnswer] = _is("The gaps.", [])


class BulkResult(BaseModel):
    """What became of one document."""

    model_config = _CONFIG

    index: int = _is("Its place in the request, from 0.", 0)
    status: int = _is("201, or what a single request would have got.", 201)
    job_id: str | None = _may_be("The job, where it was created.", _JOB)
    error: Problem | None = _may_be("What is wrong with it.", None)


class BulkAnswer(BaseModel):
    """What became of many documents."""

    model_config = _CONFIG

    created: int = _is("How many jobs were created.", 1)
    failed: int = _is("How many were not.", 0)
    results: list[BulkResult] = _is("Each, in order.", [])
    dry_run: bool | None = _may_be("True where nothing was written.", True)


class FieldChange(BaseModel):
    """What a field was and becomes."""

    model_config = _CONFIG

    field: str = _is("Its place in the document.", "retry.max")
    before: Any = _is("What it was; null where it was not there.", 3)
    after: Any = _is("What it becomes.", 5)


class ApplyResult(BaseModel):
    """What became of one document that was applied."""

    model_config = _CONFIG

    index: int = _is("Its place in the request, from 0.", 0)
    key: str | None = _is("Its key.", "billing/daily")
    action: Literal["created", "changed", "unchanged", "passed", "failed"] = _is("What was done.", "changed")
    status: int = _is("What a single request would have got.", 200)
    job_id: str | None = _may_be("The job; null where it would be created.", _JOB)
    version: int | None = _may_be("Its version.", 2)
    paused: bool | None = _may_be("Whether it is paused: applying never resumes it.", False)
    schedule_in_words: str | None = _may_be("Its schedule in words.", "at 09:00 every day, Europe/Berlin")
    tz: str | None = _may_be("The zone of its times.", "Europe/Berlin")
    changes: list[FieldChange] | None = _may_be("Field by field, where it was changed.", [])
    next_before: list[str] | None = _may_be("Its coming times before.", [_TIME])
    next_after: list[str] | None = _may_be("And after.", [_TIME])
    error: Problem | None = _may_be("What is wrong with it.", None)


class ApplyAnswer(BaseModel):
    """What became of many documents that were applied."""

    model_config = _CONFIG

    created: int = _is("How many jobs were created.", 1)
    changed: int = _is("How many were changed.", 0)
    unchanged: int = _is("How many were as their document says.", 96)
    passed: int = _is("How many one-time jobs were not created, since their time is over.", 0)
    failed: int = _is("How many documents were refused.", 0)
    results: list[ApplyResult] = _is("Each, in order.", [])
    dry_run: bool | None = _may_be("True where nothing was written.", True)


class DeadLetterAnswer(BaseModel):
    """A run that used up its tries and waits for a person."""

    model_config = _CONFIG

    run_id: str = _is("The run.", _RUN)
    job_id: str = _is("Its job.", _JOB)
    job_name: str = _is("Its job's name.", "daily-report")
    scheduled_at: str = _is("Its nominal time.", _TIME)
    failed_at: str = _is("When it was given up.", _TIME)
    tries: int = _is("How often it was tried.", 4)
    trigger: str = _is("Why it exists.", "scheduled")
    error: str = _is("The last error.", "HTTP 500")
    fingerprint: str = _is("Alike errors have the same.", "5f2a9c01")
    run: RunAnswer | None = _may_be("The whole run, where one is asked for.", None)


class DeadLetterList(BaseModel):
    """A page of dead letters, newest first, or groups of them."""

    model_config = _CONFIG

    data: list[DeadLetterAnswer] = _is("The dead letters.", [])
    next_cursor: str | None = _is("Where the next page begins; null on the last.", None)
    partial: list[str] | None = _may_be("Databases that did not answer: theirs are not here.", ["shard 1"])


class DeadGroupAnswer(BaseModel):
    """Dead letters with one cause or of one job."""

    model_config = _CONFIG

    value: str = _is("The error fingerprint, or the job's name.", "5f2a9c01")
    count: int = _is("How many.", 12)
    sample: DeadLetterAnswer = _is("The newest of them.", None)


class DeadGroupList(BaseModel):
    """Dead letters by cause or by job, the largest group first."""

    model_config = _CONFIG

    data: list[DeadGroupAnswer] = _is("The groups.", [])
    next_cursor: None = _is("Always null.", None)


class DeadChange(BaseModel):
    """What became of dead letters."""

    model_config = _CONFIG

    count: int = _is("How many were changed, or would be.", 1)
    run_ids: list[str] = _is("Which.", [_RUN])
    not_found: list[str] = _is("Asked for, but not among the dead letters.", [])
    more: bool = _is("Whether more match the filter than one request changes.", False)
    dry_run: bool | None = _may_be("True where nothing was written.", True)


class NodeAnswer(BaseModel):
    """A process of the cluster."""

    model_config = _CONFIG

    node_id: str = _is("New at every start.", "1f3c5a7b9d0e2f41")
    kind: str = _is("What it does.", "up")
    name: str = _is("Host and process.", "host-1:4711")
    started_at: str = _is("Since when.", _TIME)
    lease_until: str = _is("When it counts as gone without a sign.", _TIME)
    alive: bool = _is("Whether its lease still runs.", True)


class NodeList(BaseModel):
    """All processes known."""

    model_config = _CONFIG

    data: list[NodeAnswer] = _is("The processes.", [])


class MarkAnswer(BaseModel):
    """A run, as little of it as a strip of runs needs."""

    model_config = _CONFIG

    run_id: str = _is("The run.", _RUN)
    scheduled_at: str = _is("Its nominal time.", _TIME)
    status: StateWord = _is("What became of it.", "SUCCEEDED")
    lag_ms: int | None = _is("From due to start of its last attempt; null if it never began.", 3)
    duration_ms: int | None = _is("Of that attempt.", 12)


class StripAnswer(BaseModel):
    """The last runs of a job."""

    model_config = _CONFIG

    job_id: str = _is("The job.", _JOB)
    running: int = _is("How many of its runs a worker has now.", 0)
    retrying: int = _is("How many wait to be tried again.", 0)
    runs: list[MarkAnswer] = _is("Those that ended, oldest first.", [])


class StripList(BaseModel):
    """The last runs of some jobs, in the order they were asked for; jobs that do not exist are left out."""

    model_config = _CONFIG

    data: list[StripAnswer] = _is("Each job's.", [])


class SizesAnswer(BaseModel):
    """How much there is of everything; counted up to a bound, and a moment ago."""

    model_config = _CONFIG

    jobs: int = _is("Jobs.", 12)
    planned: int = _is("Runs that are written and not yet taken.", 3)
    running: int = _is("Runs in a worker's hand or between two attempts.", 1)
    blocked: int = _is("Runs that wait for a slot of their job.", 0)
    dead: int = _is("Dead letters.", 0)
    oldest_due_at: str | None = _is("Since when the oldest run waits for a worker; may lie ahead.", _TIME)
    counted_at: str = _is("When this was counted.", _TIME)


class ProcessesAnswer(BaseModel):
    """Processes of one kind."""

    model_config = _CONFIG

    kind: str = _is("What they do.", "up")
    alive: int = _is("How many have a lease.", 1)


class MinuteAnswer(BaseModel):
    """What a minute held, or an hour."""

    model_config = ConfigDict(**_CONFIG, populate_by_name=True)

    from_: str = Field(alias="from", description="Its beginning.", examples=[_TIME])
    succeeded: int = _is("Runs that succeeded.", 60)
    failed: int = _is("Runs that used up their tries.", 0)
    retrying: int = _is("Attempts that failed and will be repeated.", 0)
    skipped: int = _is("Runs that were skipped.", 0)
    cancelled: int = _is("Runs that were cancelled.", 0)
    lag_p50_ms: int | None = _is("Half of the starts were at most this late; null without one.", 2)
    lag_p99_ms: int | None = _is("99 of 100 starts were at most this late.", 12)
    lag_max_ms: int | None = _is("The latest start.", 15)


class ChangeAnswer(BaseModel):
    """Something that changed of a job."""

    model_config = _CONFIG

    at: str = _is("When.", _TIME)
    type: str = _is("What: job.created, job.changed, job.paused, job.resumed or job.deleted.", "job.paused")
    job_id: str = _is("The job.", _JOB)
    name: str | None = _is("Its name, cut if it is long.", "daily-report")
    state: str = _is("Its state since.", "paused")
    version: int | None = _is("Its version since.", 2)


class OverviewAnswer(BaseModel):
    """How everything stands."""

    model_config = _CONFIG

    now: str = _is("The server's time.", _TIME)
    parts: dict[str, str] = _is("Each part of this process: ok, or what is wrong.", {"planner": "ok"})
    sizes: SizesAnswer = _is("How much there is.", None)
    processes: list[ProcessesAnswer] = _is("The live processes by kind.", [])
    since: str = _is("From when on this process has heard what happens; an hour ago at the earliest.", _TIME)
    hour: MinuteAnswer = _is("The last hour in sum.", None)
    minutes: list[MinuteAnswer] = _is("Its minutes, oldest first; empty ones are left out.", [])
    changes: list[ChangeAnswer] = _is("What changed of jobs, newest first, at most 50.", [])


class Health(BaseModel):
    """The process is up."""

    model_config = _CONFIG

    status: Literal["ok"] = _is("ok.", "ok")
    version: str = _is("Of hourhand.", "0.1.0")


class Readiness(BaseModel):
    """Whether the process can do its work."""

    model_config = _CONFIG

    status: Literal["ready", "not ready"] = _is("ready, or not.", "ready")
    parts: dict[str, str] = _is("Each part: ok, or what is wrong.", {"store": "ok"})
