"""Reports on runs that their target accepted with 202: who may send one, what it says, and what is kept of it.

Pure. The token of an attempt is computed from a key that a database keeps, so that nobody has to remember
tokens; what becomes of the run is `core.retry`'s to decide, as after any other attempt.
"""

import base64
import hmac
from enum import StrEnum
from typing import Any

import msgspec

from hourhand.core.identity import shard_of
from hourhand.core.lifecycle import State
from hourhand.core.retry import Failure, Outcome
from hourhand.core.run import AttemptRow, ClaimedRun

KEPT_BYTES = 4 * 1024  # of a result
MAX_ERROR = 2_000  # characters
MAX_MESSAGE = 200  # characters beside a progress
UNREPORTED = "unreported"  # marks an attempt that ended because nobody reported it in time

_REPORTED = "reported"  # marks an attempt that a report has ended
_DEFAULT_ERROR = "the target reported a failure"


class ReportOutcome(StrEnum):
    """What a report is about."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    PROGRESS = "progress"


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What a target says about an attempt that it accepted."""

    attempt: int
    outcome: ReportOutcome
    result: Any = None  # with succeeded
    error: str | None = None  # with failed
    retryable: bool = True  # with failed
    fraction: float | None = None  # with progress, from 0 to 1
    message: str | None = None  # with progress
    extend_us: int | None = None  # with progress: how long from now it may still take


class ReportTokens:
    """Makes the tokens of attempts, by the key of the database that a run lives in."""

    def __init__(self) -> None:
        self._keys: dict[int, bytes] = {}

    def learn(self, shard: int, key: bytes) -> None:
        """The key of a database."""
        self._keys[shard] = key

    def token_for(self, run: ClaimedRun) -> str | None:
        """The token of this attempt; None while the key of its database is not known."""
        key = self._keys.get(shard_of(run.job_id))
        return None if key is None else report_token(key, run.run_id, run.fence)


def report_token(key: bytes, run_id: str, attempt: int) -> str:
    """What lets its bearer report on one attempt, and on nothing else."""
    digest = hmac.digest(key, f"report {run_id} {attempt}".encode(), "sha256")
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def is_token_of(key: bytes, run_id: str, attempt: int, token: str) -> bool:
    """Whether a token is that of an attempt; takes the same time wherever it differs."""
    return hmac.compare_digest(report_token(key, run_id, attempt).encode(), token.encode(errors="replace"))


def outcome_of(report: Report) -> tuple[Outcome, Failure]:
    """How an attempt ended, for the policy that decides about its run."""
    if report.outcome is ReportOutcome.SUCCEEDED:
        return Outcome.SUCCEEDED, Failure()
    return Outcome.FAILED, Failure(retryable=report.retryable)


def detail_of(report: Report) -> dict[str, Any]:
    """What history keeps of a final report."""
    if report.outcome is ReportOutcome.SUCCEEDED:
        kept = {} if report.result is None else {"response": _kept(report.result)}
        return {**kept, _REPORTED: True}
    error = (report.error or _DEFAULT_ERROR)[:MAX_ERROR]
    return {"error": error, _REPORTED: True, **({} if report.retryable else {"retryable": False})}


def is_repeat(ended: AttemptRow, report: Report) -> bool:
    """Whether an attempt was ended by this very report."""
    if report.outcome is ReportOutcome.PROGRESS or ended.detail is None:
        return False
    succeeded = report.outcome is ReportOutcome.SUCCEEDED
    told = msgspec.json.decode(msgspec.json.encode(detail_of(report)))
    return succeeded == (ended.state is State.SUCCEEDED) and ended.detail == told


def was_unreported(ended: AttemptRow) -> bool:
    """Whether an attempt ended because no report came within its timeout."""
    return bool((ended.detail or {}).get(UNREPORTED))


def extended_deadline(deadline_at: int, now_at: int, extend_us: int, timeout_us: int) -> int:
    """The new deadline: at most one timeout from now, and never earlier than it was."""
    return max(deadline_at, now_at + min(extend_us, timeout_us))


def shortened_message(message: str | None) -> str | None:
    """What is kept of the words beside a progress; NUL, which not every store takes, is shown as unknown."""
    if not message:
        return None
    return message[:MAX_MESSAGE].replace("\0", "\N{REPLACEMENT CHARACTER}")


def _kept(result: Any) -> dict[str, Any]:
    encoded = msgspec.json.encode(result)
    if len(encoded) <= KEPT_BYTES:
        return {"value": result}
    return {"text": encoded[:KEPT_BYTES].decode("utf-8", "ignore"), "truncated": True}
