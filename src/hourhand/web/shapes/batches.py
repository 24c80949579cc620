"""What became of many documents at once, in answers."""

from typing import Any, Literal

from pydantic import Field

from hourhand.web.problems import Problem
from hourhand.web.shapes.parts import A_JOB, A_TIME, Shape, SpanShape, always, sometimes


class BulkResult(Shape):
    """What became of one document."""

    index: int = always("Its place in the request, from 0.", 0)
    status: int = always("201, or what a single request would have got.", 201)
    job_id: str | None = sometimes("The job, where it was created.", A_JOB)
    error: Problem | None = sometimes("What is wrong with it.", None)


class BulkAnswer(Shape):
    """What became of many documents."""

    created: int = always("How many jobs were created.", 1)
    failed: int = always("How many were not.", 0)
    results: list[BulkResult] = always("Each, in order.", [])
    dry_run: bool | None = sometimes("True where nothing was written.", True)


class FieldChange(Shape):
    """What a field was and becomes."""

    field: str = always("Its place in the document.", "retry.max")
    before: Any = always("What it was; null where it was not there.", 3)
    after: Any = always("What it becomes.", 5)


class MovedFire(SpanShape):
    """A fire that goes, and the one that comes in its place."""

    from_: str = Field(alias="from", description="When it was.", examples=[A_TIME])
    to: str = always("When it will be.", "2026-11-16T08:30:00Z")


class FireMoves(SpanShape):
    """What becomes of a job's fires in the next 7 days; null where there are too many to tell."""

    from_: str = Field(alias="from", description="From when on.", examples=[A_TIME])
    to: str = always("Until when.", "2026-11-23T08:00:00Z")
    before: int = always("How many there were.", 7)
    after: int = always("How many there will be.", 7)
    added: int | None = always("How many come, beside those that move.", 0)
    removed: int | None = always("How many go.", 0)
    moved: int | None = always("How many go while one comes right beside them.", 7)
    added_at: list[str] = always("The first that come.", [])
    removed_at: list[str] = always("The first that go.", [])
    moved_at: list[MovedFire] = always("The first that move.", [])


class ApplyResult(Shape):
    """What became of one document that was applied."""

    index: int = always("Its place in the request, from 0.", 0)
    key: str | None = always("Its key.", "billing/daily")
    action: Literal["created", "changed", "unchanged", "passed", "failed"] = always(
        "What was done.", "changed"
    )
    status: int = always("What a single request would have got.", 200)
    job_id: str | None = sometimes("The job; null where it would be created.", A_JOB)
    version: int | None = sometimes("Its version.", 2)
    paused: bool | None = sometimes("Whether it is paused: applying never resumes it.", False)
    schedule_in_words: str | None = sometimes("Its schedule in words.", "at 09:00 every day, Europe/Berlin")
    tz: str | None = sometimes("The zone of its times.", "Europe/Berlin")
    changes: list[FieldChange] | None = sometimes("Field by field, where it was changed.", [])
    next_before: list[str] | None = sometimes("Its coming times before.", [A_TIME])
    next_after: list[str] | None = sometimes("And after.", [A_TIME])
    fires: FireMoves | None = sometimes(
        "In a dry run: what becomes of its fires; null where it follows others.", None
    )
    error: Problem | None = sometimes("What is wrong with it.", None)


class ApplyAnswer(Shape):
    """What became of many documents that were applied."""

    created: int = always("How many jobs were created.", 1)
    changed: int = always("How many were changed.", 0)
    unchanged: int = always("How many were as their document says.", 96)
    passed: int = always("How many one-time jobs were not created, since their time is over.", 0)
    failed: int = always("How many documents were refused.", 0)
    results: list[ApplyResult] = always("Each, in order.", [])
    dry_run: bool | None = sometimes("True where nothing was written.", True)
