"""Dead letters in answers."""

from hourhand.web.shapes.parts import A_JOB, A_RUN, A_TIME, Shape, always, sometimes
from hourhand.web.shapes.runs import RunAnswer


class DeadLetterAnswer(Shape):
    """A run that used up its tries and waits for a person."""

    run_id: str = always("The run.", A_RUN)
    job_id: str = always("Its job.", A_JOB)
    job_name: str = always("Its job's name.", "daily-report")
    scheduled_at: str = always("Its nominal time.", A_TIME)
    failed_at: str = always("When it was given up.", A_TIME)
    tries: int = always("How often it was tried.", 4)
    trigger: str = always("Why it exists.", "scheduled")
    error: str = always("The last error.", "HTTP 500")
    fingerprint: str = always("Alike errors have the same.", "5f2a9c01")
    run: RunAnswer | None = sometimes("The whole run, where one is asked for.", None)


class DeadLetterList(Shape):
    """A page of dead letters, newest first, or groups of them."""

    data: list[DeadLetterAnswer] = always("The dead letters.", [])
    next_cursor: str | None = always("Where the next page begins; null on the last.", None)
    partial: list[str] | None = sometimes("Databases that did not answer: theirs are not here.", ["shard 1"])


class DeadGroupAnswer(Shape):
    """Dead letters with one cause or of one job."""

    value: str = always("The error fingerprint, or the job's name.", "5f2a9c01")
    count: int = always("How many.", 12)
    sample: DeadLetterAnswer = always("The newest of them.", None)


class DeadGroupList(Shape):
    """Dead letters by cause or by job, the largest group first."""

    data: list[DeadGroupAnswer] = always("The groups.", [])
    next_cursor: None = always("Always null.", None)


class DeadChange(Shape):
    """What became of dead letters."""

    count: int = always("How many were changed, or would be.", 1)
    run_ids: list[str] = always("Which.", [A_RUN])
    not_found: list[str] = always("Asked for, but not among the dead letters.", [])
    more: bool = always("Whether more match the filter than one request changes.", False)
    dry_run: bool | None = sometimes("True where nothing was written.", True)
