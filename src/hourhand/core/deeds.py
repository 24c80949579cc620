"""Who did what: one record for each thing that somebody changed, with the version it made. How it is kept is the stores'."""

from enum import StrEnum

import msgspec

from hourhand.core.identity import format_job_id, format_run_id

MAX_NOTE = 500  # characters of a note that are kept beside a deed
_FAMILY = ".*"


class Act(StrEnum):
    """What can be done, as people name it: to what, and which of its changes."""

    JOB_CREATE = "job.create"
    JOB_UPDATE = "job.update"
    JOB_PAUSE = "job.pause"
    JOB_RESUME = "job.resume"
    JOB_DELETE = "job.delete"
    JOB_RUN = "job.run"
    JOB_SKIP = "job.skip"
    JOB_UNSKIP = "job.unskip"
    RUN_CANCEL = "run.cancel"
    RUN_RERUN = "run.rerun"
    DEAD_REQUEUE = "dead_letters.requeue"
    DEAD_DISCARD = "dead_letters.discard"
    BACKFILL_CREATE = "backfill.create"
    BACKFILL_PAUSE = "backfill.pause"
    BACKFILL_RESUME = "backfill.resume"
    BACKFILL_CANCEL = "backfill.cancel"
    OPERATION_CREATE = "operation.create"
    OPERATION_CANCEL = "operation.cancel"
    TOKEN_CREATE = "token.create"  # noqa: S105 - a word, no secret
    TOKEN_REVOKE = "token.revoke"  # noqa: S105 - a word, no secret
    QUOTA_SET = "quota.set"
    WEBHOOK_CREATE = "webhook.create"
    WEBHOOK_UPDATE = "webhook.update"
    WEBHOOK_ROTATE = "webhook.rotate"
    WEBHOOK_DELETE = "webhook.delete"
    WEBHOOK_TEST = "webhook.test"
    WEBHOOK_REDELIVER = "webhook.redeliver"


class Deed(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that somebody did. Never changed once it is written."""

    id: int  # tells deeds of one moment apart, within one database
    at: int
    tenant: str
    subject: str
    via: str
    action: str  # an `Act`, or what a newer version calls its own
    job_id: int | None = (
        None  # the job that it was about, also where it was done to a run or a backfill of it
    )
    scheduled_at: int | None = None  # of the run
    object_id: str | None = None  # of what is neither a job nor a run
    version: int | None = None  # of the job, that it made
    count: int | None = None  # how many runs or jobs it was about, where they are not one
    note: str | None = None
    request_id: str | None = None

    @property
    def done_to(self) -> str | None:
        """The id of what it was done to."""
        if self.object_id is not None or self.job_id is None:
            return self.object_id
        if self.scheduled_at is None:
            return format_job_id(self.job_id)
        return format_run_id(self.job_id, self.scheduled_at)


def is_one_of(action: str, asked: str) -> bool:
    """Whether an action is the one that is asked for, or one of a family such as `job.*`."""
    return action.startswith(asked[:-1]) if asked.endswith(_FAMILY) else action == asked


def names_of_acts() -> list[str]:
    """What can be asked for: every action, and every family of them."""
    families = dict.fromkeys(act.partition(".")[0] + _FAMILY for act in Act)
    return [*families, *Act]
