"""The shape of answers about backfills and skipped times, as OpenAPI shows them."""

from typing import Literal

from pydantic import Field

from hourhand.web.shapes.parts import A_JOB, A_RUN, A_TIME, Shape, SpanShape, always, sometimes


class SkipAnswer(Shape):
    """A coming time that will not run, or will after all."""

    job_id: str = always("The job.", A_JOB)
    run_id: str = always("The run that will end as skipped.", A_RUN)
    at: str = always("Its nominal time.", A_TIME)
    skipped: bool = always("False where it runs after all.", True)
    note: str | None = always("Why.", "holiday")
    next_run: str | None = always("The job's next time that will run.", A_TIME)
    dry_run: bool | None = sometimes("True where nothing was written.", True)


class BackfillAnswer(SpanShape):
    """A backfill and how far it is, in numbers of times."""

    backfill_id: str | None = always("Its id; null in a dry run of creating it.", "B-0d3x8m2k7q1vt")
    job_id: str = always("Its job.", A_JOB)
    state: Literal["running", "paused", "done", "cancelled"] = always("Whether it makes runs.", "running")
    from_: str = Field(alias="from", description="The first time.", examples=[A_TIME])
    to: str = always("The last time.", A_TIME)
    order: Literal["oldest", "newest"] = always("Which times come first.", "oldest")
    rate: str | None = always("How many runs are made in a time.", "50/s")
    max_open: int = always("How many of its runs may be open at once.", 100)
    note: str | None = always("Why.", "INC-42")
    reason: str | None = always("Why it was paused or cancelled, where nobody asked for it.", None)
    total: int = always("Times in the range.", 1000)
    done: int = always("Of them, those that need nothing more.", 400)
    open: int = always("Runs of it that have not ended.", 100)
    succeeded: int = always("Runs of it that succeeded.", 390)
    failed: int = always("Runs of it that became dead letters.", 1)
    skipped: int = always("Runs of it that were skipped.", 0)
    cancelled: int = always("Runs of it that were cancelled.", 0)
    already_there: int = always("Times that had a run already.", 9)
    created_at: str = always("When it was asked for.", A_TIME)
    updated_at: str = always("When it last moved on.", A_TIME)
    finished_at: str | None = always("When its last run had ended.", None)
    dry_run: bool | None = sometimes("True where nothing was written.", True)


class BackfillList(Shape):
    """A page of backfills, newest first."""

    data: list[BackfillAnswer] = always("The backfills.", [])
    next_cursor: str | None = always("Where the next page begins; null on the last.", None)
    partial: list[str] | None = sometimes("Databases that did not answer: theirs are not here.", ["shard 1"])
