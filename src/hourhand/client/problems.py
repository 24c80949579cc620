"""From problem+json, or from silence, to the error that it means."""

from collections.abc import Iterator
from email.utils import parsedate_to_datetime
from typing import Any

import msgspec

from hourhand.client.flow import Answer
from hourhand.core.fault import Fault
from hourhand.errors import (
    Conflict,
    HourhandError,
    InFlight,
    Invalid,
    NotAllowed,
    NotFound,
    Outdated,
    Overloaded,
    TooLarge,
    TooLate,
    Unavailable,
    WrongToken,
)

_BY_STATUS: dict[int, type[HourhandError]] = {
    400: Invalid,
    401: WrongToken,
    403: NotAllowed,
    404: NotFound,
    409: Conflict,
    410: TooLate,
    412: Outdated,
    413: TooLarge,
    415: Invalid,
    422: Invalid,
    429: Overloaded,
    502: Unavailable,
    503: Unavailable,
    504: Unavailable,
}
_LONGEST_WORDS = 500


class Unreachable(HourhandError):
    """No server answers, or something else does."""

    code = "unreachable"
    status = 503
    exit_code = 6
    retryable = True


def error_of(answer: Answer) -> HourhandError:
    """The error behind an answer that is none of 2xx; keeps the problem document."""
    error = _described(answer)
    asked_s = retry_after_s(answer)
    if asked_s is not None:  # whatever the error: proxies and stores ask for it too
        error.retry_after_s = int(asked_s)  # type: ignore[attr-defined]
    return error


def _described(answer: Answer) -> HourhandError:
    problem = _problem_in(answer)
    if problem is None:
        words = f"the server answered {answer.status} without saying why"
        kind = _BY_STATUS.get(answer.status, HourhandError)
        return kind(words)
    words = str(problem.get("detail") or problem.get("title") or f"answered {answer.status}")
    kind = _kind_of(str(problem.get("code")), answer.status)
    words = words[:_LONGEST_WORDS]
    error = kind(words, _faults_in(problem)) if issubclass(kind, Invalid) else kind(words)
    error.problem = problem
    if isinstance(problem.get("code"), str):
        error.code = problem["code"]  # may say more than the class does
    return error


def retry_after_s(answer: Answer) -> float | None:
    """How long the server asks to wait, in seconds or, as proxies do, until a date; by that answer's own clock."""
    text = answer.headers.get("retry-after", "")
    if text.isascii() and text.isdigit() and len(text) < 7:
        return float(text)
    try:
        until = parsedate_to_datetime(text)
        asked = until - parsedate_to_datetime(answer.headers.get("date", ""))
    except (TypeError, ValueError):
        return None
    return max(0.0, asked.total_seconds())


def is_in_flight(answer: Answer) -> bool:
    """Whether the server is carrying out this very request, sent before under the same key."""
    problem = _problem_in(answer)
    return problem is not None and problem.get("code") == InFlight.code


def _kind_of(code: str, status: int) -> type[HourhandError]:
    by_code = {kind.code: kind for kind in _tree(HourhandError)}
    return by_code.get(code) or _BY_STATUS.get(status, HourhandError)


def _tree(kind: type[HourhandError]) -> Iterator[type[HourhandError]]:
    for child in kind.__subclasses__():
        if child.__module__ == HourhandError.__module__:
            yield child
            yield from _tree(child)


def _faults_in(problem: dict[str, Any]) -> list[Fault]:
    faults, errors = [], problem.get("errors")
    for one in errors if isinstance(errors, list) else ():
        try:
            faults.append(msgspec.convert(one, Fault))
        except msgspec.ValidationError:
            continue
    return faults


def _problem_in(answer: Answer) -> dict[str, Any] | None:
    try:
        problem = msgspec.json.decode(answer.body)
    except (msgspec.DecodeError, RecursionError):
        return None
    return problem if isinstance(problem, dict) and ("code" in problem or "title" in problem) else None
