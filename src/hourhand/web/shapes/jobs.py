"""Jobs in answers: what they are, what they were, what they missed."""

from typing import Any, Literal

from pydantic import Field

from hourhand.web.shapes.parts import A_JOB, A_TIME, Shape, SpanShape, StateWord, always, sometimes


class Created(Shape):
    """A job was created."""

    job_id: str | None = always("The id it was given; null in a dry run.", A_JOB)
    next_fire_time: str | None = always("When it fires first; null if it is paused.", A_TIME)
    dry_run: bool | None = sometimes("True where nothing was written.", True)


class JobAnswer(Shape):
    """A job: its document, and what only answers carry."""

    job_id: str | None = always("Its id; null in a dry run of creating it.", A_JOB)
    name: str = always("A label.", "daily-report")
    key: str | None = always("A name of your own, unique.", "billing/daily")
    shard_key: str | None = always("Jobs with the same one stay together.", None)
    tags: list[str] = always("Words to find it by.", ["billing"])
    set: str | None = always("The set of files that it is applied from.", "billing")
    cron: str | None = sometimes("A cron expression.", "0 9 * * *")
    tz: str | None = sometimes("The zone that it is read in.", "Europe/Berlin")
    dst: dict[str, str] | None = sometimes("What DST does to it.", {"gap": "after", "fold": "auto"})
    every: str | None = sometimes("Or the time between two runs.", "15m")
    phase: str | None = sometimes("An instant that `every` counts from.", A_TIME)
    at: str | None = sometimes("Or the one time.", A_TIME)
    after: list[str] | None = sometimes("Or the jobs that it follows, by id.", [A_JOB])
    wait: str | None = sometimes("How long its runs wait for the last of those.", "1d")
    starts_at: str | None = always("No run before it.", None)
    ends_at: str | None = always("No run after it.", None)
    max_runs: int | None = always("How many runs there will be.", None)
    target: dict[str, Any] = always(
        "What is run.", {"type": "http", "url": "https://example.com/hooks/daily"}
    )
    payload: Any = always("What the target gets.", {"region": "eu"})
    priority: str = always("HIGH, MEDIUM or LOW.", "MEDIUM")
    durability: str = always("critical or fire_and_forget.", "critical")
    pool: str = always("The workers that run it.", "default")
    timeout: str = always("Of one attempt.", "5m")
    delivery: str = always("at_least_once or at_most_once.", "at_least_once")
    retry: dict[str, Any] = always("Retries.", {"max": 3, "first": "1s", "factor": 2, "max_delay": "10m"})
    concurrency: int | str = always('How many runs at once, or "unlimited".', 1)
    overlap: str = always("What a run does when all slots are taken.", "queue_one")
    misfire: dict[str, Any] = always("Missed times.", {"policy": "run_once", "grace": "1m", "limit": 100})
    jitter: str = always("Spreads the start.", "0s")
    paused: bool = always("Whether it is paused.", False)
    note: str | None = always("Why it is paused.", None)
    state: Literal["active", "paused", "completed"] = always("Whether it makes runs.", "active")
    version: int = always("Grows with each change; its ETag.", 1)
    paused_until: str | None = always("When a pause ends by itself.", None)
    created_at: str = always("When it was created.", A_TIME)
    updated_at: str = always("When it was changed last.", A_TIME)
    next_fire_time: str | None = always("When it fires next.", A_TIME)
    schedule_in_words: str = always("The schedule in words.", "at 09:00 every day, Europe/Berlin")
    effective_from: str | None = sometimes("From when on a change holds.", A_TIME)
    dry_run: bool | None = sometimes("True where nothing was written.", True)


class CountAnswer(Shape):
    """How many there are, counted up to a bound."""

    estimate: int = always("How many.", 1200)
    or_more: bool = always("There are at least so many: counting stopped there.", False)


class JobList(Shape):
    """A page of jobs, newest first."""

    data: list[JobAnswer] = always("The jobs.", [])
    next_cursor: str | None = always("Where the next page begins; null on the last.", None)
    partial: list[str] | None = sometimes("Databases that did not answer: theirs are not here.", ["shard 1"])
    count: CountAnswer | None = sometimes(
        "With `count=estimate`: of all pages.", {"estimate": 1200, "or_more": False}
    )


class StatusAnswer(Shape):
    """What a job is up to."""

    job_id: str = always("The job.", A_JOB)
    status: StateWord = always(
        "Of the newest run that is due and neither skipped nor cancelled.", "SUCCEEDED"
    )
    last_run: str | None = always("The nominal time of that run; null before the first.", A_TIME)
    next_run: str | None = always("The next nominal time that is not skipped.", A_TIME)
    skipped: list[str] | None = sometimes(
        "Coming times that somebody wants skipped, where there are any.", [A_TIME]
    )
    retry_count: int = always("Failed attempts of that run.", 0)
    state: Literal["active", "paused", "completed"] = always("Whether it makes runs.", "active")


class Deleted(Shape):
    """A job is gone."""

    deleted: bool = always("True.", True)
    dry_run: bool | None = sometimes("True where nothing was written.", True)


class VersionAnswer(SpanShape):
    """What a job was for a time."""

    version: int = always("Its number.", 1)
    by: str | None = always(
        "Who made it; null where nobody asked for it, or that is longer ago than history is kept.", "ann"
    )
    from_: str = Field(alias="from", description="From when.", examples=[A_TIME])
    to: str | None = always("Until when; null while in force.", None)
    paused: bool = always("Whether it was paused.", False)
    note: str | None = always("Why.", None)
    deleted: bool = always("Whether this is its end.", False)
    job: dict[str, Any] = always("The document.", {"name": "daily-report", "cron": "0 9 * * *"})


class VersionList(Shape):
    """All versions of a job, oldest first."""

    data: list[VersionAnswer] = always("The versions.", [])


class MissedAnswer(SpanShape):
    """Times that passed while nobody planned, and what the misfire policy made of them."""

    version: int = always("The version in force.", 1)
    from_: str = Field(alias="from", description="The first of them at the earliest.", examples=[A_TIME])
    to: str = always("The last of them at the latest.", A_TIME)
    missed: int = always("How many times.", 12)
    ran: int = always("How many of them ran late; they are in the history.", 1)
    policy: str = always("The misfire policy that decided.", "run_once")


class MissedList(Shape):
    """What a job missed, newest first."""

    data: list[MissedAnswer] = always("The gaps.", [])
