"""The use case of a report: what a target that answered 202 says of its attempt, held against where the run is.

Decides by the same policy as a worker, and commits by the same verb: whoever comes second, another report,
the sweeper or a cancel, is refused there. What is refused is read again, and then it is a repeat or a conflict.
"""

from collections.abc import Callable, Sequence

import msgspec

from hourhand.core.identity import RunKey, format_run_id
from hourhand.core.lifecycle import State, after
from hourhand.core.report import (
    Report,
    ReportOutcome,
    detail_of,
    extended_deadline,
    is_repeat,
    is_token_of,
    outcome_of,
    shortened_message,
    was_unreported,
)
from hourhand.core.retry import settled
from hourhand.core.run import (
    AttemptFacts,
    AttemptRow,
    ClaimedRun,
    OpenAttempt,
    Progress,
    ProgressNote,
    Settlement,
)
from hourhand.errors import Conflict, TooLate, Unavailable, WrongToken
from hourhand.ports.store import Store
from hourhand.services.progress import Noted, unseen
from hourhand.telemetry import Telemetry

_TRIES = 3  # each time somebody else was faster, which ends all but a few races
_encode = msgspec.json.Encoder().encode

Settled = Callable[[Sequence[tuple[ClaimedRun, Settlement]]], None]


class Receipt(msgspec.Struct, frozen=True, kw_only=True):
    """What a report did."""

    state: State  # of the run, as this attempt left it
    deadline_at: int | None = None  # where it is still under way
    due_at: int | None = None  # of the next attempt, where there is one
    repeated: bool = False  # it was here before, and nothing changed


class Reports:
    """Takes reports; stateless, any number of instances."""

    def __init__(
        self,
        *,
        store: Store,
        telemetry: Telemetry | None = None,
        settled: Settled = lambda batch: None,
        noted: Noted = unseen,
    ) -> None:
        self._store = store
        self._telemetry = telemetry
        self._settled = settled
        self._noted = noted

    async def take(self, key: RunKey, token: str, report: Report, *, dry_run: bool = False) -> Receipt:
        """What became of the attempt.

        WrongToken, whether there is such a run or not; Conflict for an attempt that is over or was never;
        TooLate past its deadline.
        """
        secret = await self._store.report_key(key.job_id)
        run_id = format_run_id(*key)
        if secret is None or not is_token_of(secret, run_id, report.attempt, token):
            raise WrongToken("the token is not that of this attempt; it came to the target with the call")
        for _ in range(_TRIES):
            facts = await self._store.find_attempt(key, report.attempt)
            if facts.open is None:
                return _over(facts.ended, report)
            if facts.now_at >= facts.open.run.deadline_at:
                raise TooLate(
                    f"the deadline of attempt {report.attempt} has passed; the report was not taken"
                )
            receipt = await self._apply(facts, facts.open, report, dry_run)
            if receipt is not None:
                return receipt
        raise Unavailable("the run is being changed by others at this moment; report again")

    async def _apply(
        self, facts: AttemptFacts, attempt: OpenAttempt, report: Report, dry_run: bool
    ) -> Receipt | None:
        if report.outcome is ReportOutcome.PROGRESS:
            return await self._note(facts, attempt, report, dry_run)
        settlement = _settlement(attempt, report, facts.now_at)
        if not dry_run:
            if await self._store.settle("", [settlement]):
                return None
            self._tell(attempt.run, settlement)
        state = after(State.RUNNING, settlement.event)
        return Receipt(state=state, due_at=settlement.due_at if state is State.RETRYING else None)

    async def _note(
        self, facts: AttemptFacts, attempt: OpenAttempt, report: Report, dry_run: bool
    ) -> Receipt | None:
        run = attempt.run
        deadline_at = run.deadline_at
        if report.extend_us is not None:
            timeout_us = run.spec.timeout_us
            deadline_at = extended_deadline(deadline_at, facts.now_at, report.extend_us, timeout_us)
        note = ProgressNote(
            job_id=run.job_id,
            scheduled_at=run.scheduled_at,
            slot=run.slot,
            fence=run.fence,
            fraction=report.fraction,
            message=shortened_message(report.message),
            deadline_at=deadline_at if deadline_at > run.deadline_at else None,
        )
        if not dry_run:
            if await self._store.note_progress([note]):
                return None
            self._noted(run, Progress(fraction=note.fraction, message=note.message, noted_at=facts.now_at))
        return Receipt(state=State.RUNNING, deadline_at=deadline_at)

    def _tell(self, run: ClaimedRun, settlement: Settlement) -> None:
        if self._telemetry is not None:
            self._telemetry.runs_settled([settlement])
        self._settled([(run, settlement)])


def _settlement(attempt: OpenAttempt, report: Report, now_at: int) -> Settlement:
    outcome, failure = outcome_of(report)
    if attempt.deleted:  # there is nothing left to try it again for
        failure = msgspec.structs.replace(failure, retryable=False)
    detail = _encode(detail_of(report)).decode()
    return settled(attempt.run, outcome, failure, started_at=attempt.began_at, now_at=now_at, detail=detail)


def _over(ended: AttemptRow | None, report: Report) -> Receipt:
    """The attempt is not under way: this report ended it, or it comes too late, or it is about nothing."""
    if ended is None:
        raise Conflict(
            f"attempt {report.attempt} is not under way: the run was cancelled, given back or never got there"
        )
    if is_repeat(ended, report):
        return Receipt(state=ended.state, repeated=True)
    if was_unreported(ended):
        raise TooLate(f"attempt {report.attempt} was given up: no report came within its timeout")
    raise Conflict(f"attempt {report.attempt} is over: it ended as {ended.state}")
