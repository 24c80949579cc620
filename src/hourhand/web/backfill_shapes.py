"""The shape of answers about backfills and skipped times, as OpenAPI shows them."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from hourhand.web.shapes import _CONFIG as SHAPE
from hourhand.web.shapes import _JOB as EXAMPLE_JOB
from hourhand.web.shapes import _RUN as EXAMPLE_RUN
from hourhand.web.shapes import _TIME as EXAMPLE_TIME
from hourhand.web.shapes import _is as always
from hourhand.web.shapes import _may_be as sometimes


class SkipAnswer(BaseModel):
    """A coming time that will not run, or will after all."""

    model_config = SHAPE

    job_id: str = always("The job.", EXAMPLE_JOB)
    run_id: str = always("The run that will end as skipped.", EXAMPLE_RUN)
    at: str = always("Its nominal time.", EXAMPLE_TIME)
    skipped: bool = always("False where it runs after all.", True)
    note: str | None = always("Why.", "holiday")
    next_run: str | None = always("The job's next time that will run.", EXAMPLE_TIME)
    dry_run: bool | None = sometimes("True where nothing was written.", True)


class BackfillAnswer(BaseModel):
    """A backfill and how far it is, in numbers of times."""

    model_config = ConfigDict(**SHAPE, populate_by_name=True)

    backfill_id: str | None = always("Its id; null in a dry run of creating it.", "B-0d3x8m2k7q1vt")
    job_id: str = always("Its job.", EXAMPLE_JOB)
    state: Literal["running", "paused", "done", "cancelled"] = always("Whether it makes runs.", "running")
    from_: str = Field(alias="from", description="The first time.", examples=[EXAMPLE_TIME])
    to: str = always("The last time.", EXAMPLE_TIME)
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
    created_at: str = always("When it was asked for.", EXAMPLE_TIME)
    updated_at: str = always("When it last moved on.", EXAMPLE_TIME)
    finished_at: str | None = always("When its last run had ended.", None)
    dry_run: bool | None = sometimes("True where nothing was written.", True)


class BackfillList(BaseModel):
    """A page of backfills, newest first."""

    model_config = SHAPE

    data: list[BackfillAnswer] = always("The backfills.", [])
    next_cursor: str | None = always("Where the next page begins; null on the last.", None)
    partial: list[str] | None = sometimes("Databases that did not answer: theirs are not here.", ["shard 1"])
