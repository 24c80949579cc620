"""Tokens, what is kept of reports, repeats, and how far a deadline moves."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hourhand.core.lifecycle import State
from hourhand.core.report import (
    Report,
    ReportOutcome,
    detail_of,
    extended_deadline,
    is_repeat,
    is_token_of,
    outcome_of,
    report_token,
    shortened_message,
)
from hourhand.core.retry import Failure, Outcome
from hourhand.core.run import AttemptRow

OK, BAD = ReportOutcome.SUCCEEDED, ReportOutcome.FAILED
KEY = bytes(range(32))
RUN = "J-000000000002d@20261116T080000Z"


def told(outcome: ReportOutcome = OK, **fields: object) -> Report:
    return Report(attempt=1, outcome=outcome, **fields)  # type: ignore[arg-type]


def ended(report: Report, state: State) -> AttemptRow:
    detail = msgspec.json.decode(msgspec.json.encode(detail_of(report)))
    return AttemptRow(
        attempt=1,
        state=state,
        due_at=0,
        started_at=0,
        finished_at=0,
        worker=None,
        version=1,
        detail=detail,
    )


def test_a_token_is_the_same_everywhere_and_of_one_attempt_only() -> None:
    token = report_token(KEY, RUN, 1)
    assert token == "uyl3bQaz4ZNd5RkLb02FPHcq6M9smsGKEIp51UF5GBE"
    assert is_token_of(KEY, RUN, 1, token)
    for other in ((bytes(32), RUN, 1), (KEY, RUN + "x", 1), (KEY, RUN, 2), (KEY, RUN.lower(), 1)):
        assert not is_token_of(*other, token)
    for other in ("", token[:-1], token + "=", "\ud800"):
        assert not is_token_of(KEY, RUN, 1, other)


def test_a_report_is_decided_about_like_an_attempt() -> None:
    assert outcome_of(told()) == (Outcome.SUCCEEDED, Failure())
    assert outcome_of(told(BAD)) == (Outcome.FAILED, Failure(retryable=True))
    assert outcome_of(told(BAD, retryable=False)) == (Outcome.FAILED, Failure(retryable=False))


def test_little_is_kept_of_what_is_long() -> None:
    assert detail_of(told()) == {"reported": True}
    assert detail_of(told(result=[1])) == {"response": {"value": [1]}, "reported": True}
    long = detail_of(told(result="ü" * 5_000))["response"]
    assert (long["truncated"], len(long["text"].encode()) <= 4096) == (True, True)
    assert len(detail_of(told(BAD, error="x" * 5_000))["error"]) == 2_000
    assert detail_of(told(BAD))["error"] == "the target reported a failure"
    assert shortened_message("a\0" + "b" * 300) == "a\N{REPLACEMENT CHARACTER}" + "b" * 198
    assert shortened_message("") is None


@given(
    st.sampled_from([OK, BAD]),
    st.recursive(st.none() | st.booleans() | st.floats(allow_nan=False) | st.text(), st.lists, max_leaves=5),
    st.none() | st.text(),
    st.booleans(),
)
def test_a_report_is_a_repeat_of_itself(
    outcome: ReportOutcome, result: object, error: str | None, retryable: bool
) -> None:
    if error is not None:
        error = error.encode("utf-8", "replace").decode()
    fields = {"result": result} if outcome is OK else {"error": error, "retryable": retryable}
    report = told(outcome, **fields)
    state = State.SUCCEEDED if outcome is OK else State.RETRYING
    assert is_repeat(ended(report, state), report)
    assert not is_repeat(ended(report, State.FAILED if outcome is OK else State.SUCCEEDED), report)


def test_what_ended_otherwise_is_no_repeat() -> None:
    row = ended(told(BAD, error="x"), State.RETRYING)
    for other in (told(), told(BAD), told(BAD, error="y"), told(BAD, error="x", retryable=False)):
        assert not is_repeat(row, other)
    by_worker = msgspec.structs.replace(row, detail={"error": "x"})
    assert not is_repeat(by_worker, told(BAD, error="x"))
    assert not is_repeat(msgspec.structs.replace(row, detail=None), told(BAD, error="x"))
    assert not is_repeat(row, told(ReportOutcome.PROGRESS))


@pytest.mark.parametrize(
    ("deadline_at", "extend_us", "expected"),
    [(150, 20, 150), (150, 50, 150), (150, 60, 160), (150, 70, 170), (150, 5_000, 170), (100, 1, 101)],
)
def test_a_deadline_moves_by_at_most_one_timeout_from_now(
    deadline_at: int, extend_us: int, expected: int
) -> None:
    assert extended_deadline(deadline_at, 100, extend_us, timeout_us=70) == expected
