"""The shape of answers about operations on many jobs or dead letters, as OpenAPI shows them."""

from typing import Any, Literal

from hourhand.web.shapes.parts import A_JOB, A_TIME, Shape, always, sometimes


class OperationFailure(Shape):
    """What could not be done."""

    id: str = always("The job.", A_JOB)
    detail: str = always("Why.", "others follow it")


class OperationAnswer(Shape):
    """An operation and how far it is."""

    operation_id: str | None = always("Its id; null in a dry run.", "O-0d3x8m2k7q1vt")
    action: Literal["pause", "resume", "run", "delete", "requeue", "discard"] = always(
        "What is done.", "pause"
    )
    filter: dict[str, Any] = always("With which.", {"tag": "billing"})
    state: Literal["running", "done", "cancelled"] = always("Whether it goes on.", "running")
    rate: str | None = always("How many are done in a time.", "50/s")
    note: str | None = always("Why.", "INC-42")
    matched: int = always("How many matched when it was asked for.", 40)
    matched_is_exact: bool = always("False where there were more than are counted.", True)
    done: int = always("With how many it is done.", 12)
    left_alone: int = always("How many needed nothing, or are gone.", 0)
    failed: int = always("With how many it could not be done.", 0)
    failures: list[OperationFailure] = always("The first of those.", [])
    by: str = always("Who asked for it.", "ann")
    created_at: str = always("When it was asked for.", A_TIME)
    updated_at: str = always("When it last moved on.", A_TIME)
    finished_at: str | None = always("When it ended.", None)
    dry_run: bool | None = sometimes("True where nothing was written.", True)


class OperationList(Shape):
    """A page of operations, newest first."""

    data: list[OperationAnswer] = always("The operations.", [])
    next_cursor: str | None = always("Where the next page begins; null on the last.", None)
    partial: list[str] | None = sometimes("Databases that did not answer: theirs are not here.", ["shard 1"])
