"""Runs in answers: with their attempts, their reports, or as marks in a strip."""

from typing import Any

from hourhand.web.shapes.parts import A_JOB, A_RUN, A_TIME, Shape, StateWord, always, sometimes


class Started(Shape):
    """A run beside the schedule."""

    run_id: str | None = always("The run; null in a dry run.", A_RUN)
    followed_by: int | None = sometimes("How many jobs have a run after it, with `downstream`.", 3)
    dry_run: bool | None = sometimes("True where nothing was written.", True)


class AttemptAnswer(Shape):
    """One try of a run, or its end without one."""

    attempt: int = always("Its number; grows with every claim.", 1)
    status: StateWord = always("What it led to.", "SUCCEEDED")
    due_at: str = always("When it was due.", A_TIME)
    started_at: str | None = always("When it began; null if it never did.", A_TIME)
    finished_at: str = always("When it ended.", A_TIME)
    duration_ms: int | None = always("How long it took.", 12)
    worker: str | None = always("Who did it.", "worker-1")
    version: int = always("Of the job.", 1)
    response: Any = always("What the target answered.", {"status": 200})
    error: str | None = always("What went wrong.", None)
    reason: str | None = always("Why it was skipped or cancelled.", None)
    detail: dict[str, Any] | None = always("What else was kept.", None)


class MentionedJob(Shape):
    """Another job that has to do with a run."""

    job_id: str = always("Its id.", A_JOB)
    name: str | None = always("What people call it.", "daily-report")


class UpstreamAnswer(MentionedJob):
    """The job because of whom a run was skipped."""

    outcome: str = always("How its run ended; MISSING where it had none.", "FAILED")


class ProgressAnswer(Shape):
    """How far an attempt is, as it was last told."""

    fraction: float | None = always("From 0 to 1.", 0.4)
    message: str | None = always("In words.", "loading")
    at: str = always("When it was told.", A_TIME)


class RunAnswer(Shape):
    """A run, wherever it is in its life."""

    run_id: str = always("Its id, and the idempotency key given to targets.", A_RUN)
    job_id: str = always("Its job.", A_JOB)
    status: StateWord = always("Where it is.", "SUCCEEDED")
    scheduled_at: str = always("Its nominal time.", A_TIME)
    due_at: str = always("When it may start, or is tried again.", A_TIME)
    started_at: str | None = always("When its first attempt began.", A_TIME)
    finished_at: str | None = always("When it ended.", A_TIME)
    lag_ms: int | None = always("How late its first attempt began.", 3)
    attempts: list[AttemptAnswer] = always("All tries, oldest first.", [])
    response: Any = always("Of the last attempt.", {"status": 200})
    error: str | None = always("Of the last attempt.", None)
    reason: str | None = always("Why it was skipped or cancelled.", None)
    trigger: str = always("Why it exists.", "scheduled")
    worker: str | None = always("Who has it, or had it last.", "worker-1")
    version: int | None = always("Of the job; null before it is taken.", 1)
    retry_count: int = always("Failed attempts since it was last requeued.", 0)
    offered_at: str | None = always("No worker could run it so far; when it is offered to one again.", None)
    waits_for_slot: bool = always("Whether it waits for another run of its job to end.", False)
    waits_for: list[MentionedJob] = always("Jobs that it follows and whose runs have not ended.", [])
    wait_until: str | None = always("When it waits for them no longer.", None)
    upstream: UpstreamAnswer | None = always("Because of whom it was skipped.", None)
    skip_asked: bool = always("Whether it will be skipped when its time comes.", False)
    rerun_of: str | None = always("The run that it repeats.", None)
    reruns: list[str] = always("The runs that repeat it.", [])
    cancel_asked: bool = always("Whether somebody wants it cancelled.", False)
    awaits_report: bool = always("Whether its target accepted it and is to report.", False)
    deadline_at: str | None = always("Until when the present attempt may take; null unless it runs.", None)
    progress: ProgressAnswer | None = always("How far the present attempt is, where it was told.", None)
    dry_run: bool | None = sometimes("True where nothing was written.", True)


class ReportAnswer(Shape):
    """What a report did."""

    run_id: str = always("The run.", A_RUN)
    attempt: int = always("The attempt that it was about.", 1)
    status: StateWord = always("Of the run, as this attempt left it; RUNNING after progress.", "SUCCEEDED")
    deadline_at: str | None = always("Until when the next report must come; null once it has ended.", None)
    due_at: str | None = always("When it is tried again; null where it is not.", None)
    repeated: bool = always("Whether this report was here before, and changed nothing now.", False)
    dry_run: bool | None = sometimes("True where nothing was written.", True)


class RunList(Shape):
    """A page of runs, newest first."""

    data: list[RunAnswer] = always("The runs.", [])
    next_cursor: str | None = always("Where the next page begins; null on the last.", None)
    partial: list[str] | None = sometimes("Databases that did not answer: theirs are not here.", ["shard 1"])


class MarkAnswer(Shape):
    """A run, as little of it as a strip of runs needs."""

    run_id: str = always("The run.", A_RUN)
    scheduled_at: str = always("Its nominal time.", A_TIME)
    status: StateWord = always("What became of it.", "SUCCEEDED")
    lag_ms: int | None = always("From due to start of its last attempt; null if it never began.", 3)
    duration_ms: int | None = always("Of that attempt.", 12)


class StripAnswer(Shape):
    """The last runs of a job."""

    job_id: str = always("The job.", A_JOB)
    running: int = always("How many of its runs a worker has now.", 0)
    retrying: int = always("How many wait to be tried again.", 0)
    runs: list[MarkAnswer] = always("Those that ended, oldest first.", [])


class StripList(Shape):
    """The last runs of some jobs, in the order they were asked for; jobs that do not exist are left out."""

    data: list[StripAnswer] = always("Each job's.", [])
