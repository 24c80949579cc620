"""Every error that people can meet, in one tree; each knows its code and whether a retry can help.

HourhandError
├── Invalid            the request is wrong; `faults` name the fields            (422, exit 2)
│   ├── TooLarge       more bytes than are allowed                               (413)
│   └── KeyReused      the Idempotency-Key belongs to another request
├── NotFound           there is no such job, run or dead letter                  (404, exit 3)
├── NotAllowed         the operator's settings forbid it                         (403, exit 4)
│   └── WrongToken     the token is missing, or of something else                (401)
├── Conflict           it exists already, or is not in a state for this          (409, exit 5)
│   ├── Ambiguous      a name that means several jobs
│   ├── InFlight       a request with the same Idempotency-Key is under way; retry
│   ├── AnswerLost     it was carried out before, but nobody kept the answer
│   ├── Outdated       the job changed since it was read (If-Match)              (412)
│   └── TooLate        the attempt's deadline has passed                         (410)
├── Overloaded         a limit is reached; try later                             (429)
├── Unavailable        the store cannot be reached or cannot write right now     (503, exit 6)
│   └── StorageFull    no space left
└── CannotStart        wrong settings, a foreign or newer file                   (exit 1)
    └── AlreadyRuns    another process holds the file
"""

from collections.abc import Mapping, Sequence
from typing import Any

from hourhand.core.fault import Fault


class HourhandError(Exception):
    """Anything hourhand reports to people."""

    code = "error"
    status = 500
    exit_code = 1
    retryable = False
    problem: Mapping[str, Any] | None = None  # the document, where a server sent one

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class Invalid(HourhandError):
    """The request is wrong, and says where."""

    code = "invalid"
    status = 422
    exit_code = 2

    def __init__(self, message: str, faults: Sequence[Fault] = ()) -> None:
        super().__init__(message)
        self.faults = tuple(faults)


class TooLarge(Invalid):
    """More bytes than are allowed."""

    code = "too_large"
    status = 413


class KeyReused(Invalid):
    """The Idempotency-Key came with another request before."""

    code = "idempotency_key_reused"


class NotFound(HourhandError):
    """There is no such thing, or not in this tenant."""

    code = "not_found"
    status = 404
    exit_code = 3


class NotAllowed(HourhandError):
    """The operator's settings forbid it."""

    code = "not_allowed"
    status = 403
    exit_code = 4


class WrongToken(NotAllowed):
    """The token is missing, or of something else. Says nothing about what it was sent to."""

    code = "wrong_token"
    status = 401


class Conflict(HourhandError):
    """It clashes with what is there."""

    code = "conflict"
    status = 409
    exit_code = 5


class Ambiguous(Conflict):
    """A name that means several jobs."""

    code = "ambiguous"


class InFlight(Conflict):
    """A request with the same Idempotency-Key is being carried out."""

    code = "in_flight"
    retryable = True

    def __init__(self, message: str, retry_after_s: int = 1) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class AnswerLost(Conflict):
    """The same request was carried out before, and nobody kept its answer. It is not carried out again."""

    code = "answer_lost"


class Outdated(Conflict):
    """The job changed since it was read."""

    code = "outdated"
    status = 412


def check_version(present: int, expected: int | None) -> None:
    """Refuse a change that was meant for another version."""
    if expected is not None and present != expected:
        raise Outdated(f"the job is at version {present} now, not {expected}; read it again")


class TooLate(Conflict):
    """The attempt's deadline has passed."""

    code = "too_late"
    status = 410


class Overloaded(HourhandError):
    """A limit is reached."""

    code = "overloaded"
    status = 429
    retryable = True

    def __init__(self, message: str, retry_after_s: int = 1) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class Unavailable(HourhandError):
    """The store cannot be reached or cannot write right now."""

    code = "unavailable"
    status = 503
    exit_code = 6
    retryable = True


class StorageFull(Unavailable):
    """No space left where the store lives."""

    code = "storage_full"


class CannotStart(HourhandError):
    """The process refuses to begin, and says why."""

    code = "cannot_start"


class AlreadyRuns(CannotStart):
    """Another process holds the file."""
