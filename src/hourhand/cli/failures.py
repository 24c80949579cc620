"""Errors as people, scripts and shells meet them: words or problem+json on stderr, and an exit code."""

import errno
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer

from hourhand.cli.output import Form, Output
from hourhand.cli.text import clean, shortened
from hourhand.errors import HourhandError, Invalid, WrongToken

if TYPE_CHECKING:
    from hourhand.core.schedule import ScheduleError

USAGE = 2
NOT_SUCCEEDED = 7
FINDINGS = 8
TIMED_OUT = 9
INTERRUPTED = 130
DEBUG = "HOURHAND_DEBUG"  # set: what nobody foresaw is shown with its traceback
_LONGEST_WORDS = 300
_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})


class Usage(HourhandError):
    """The command line does not say what is needed."""

    code = "usage"
    status = 400
    exit_code = USAGE


class StillRunning(TimeoutError):
    """A command waited for a run no longer; the run goes on, and whoever made it has its id from here alone."""

    def __init__(self, words: str, run_id: str) -> None:
        super().__init__(f"{words}; go on with `hourhand runs watch {run_id}`")
        self.run_id = run_id


class Interrupted(HourhandError):
    """Ctrl-C while a command waited; what it made goes on."""

    code = "interrupted"
    status = 499
    exit_code = INTERRUPTED


@contextmanager
def waiting_for(ident: str, look: str) -> Iterator[None]:
    """Ctrl-C within names what was waited for, as a timeout does: whoever made it has its id from here alone."""
    try:
        yield
    except KeyboardInterrupt:
        raise Interrupted(f"interrupted; {ident} goes on, see `{look}`") from None


def report(error: Exception, out: Output, *, traces: bool = False) -> int:
    """Print an error and answer its exit code; with `traces` one that nobody foresaw is raised again, to show where."""
    from hourhand.core.schedule import ScheduleError  # here, since few commands need schedules

    match error:
        case HourhandError():
            problem, words, code = error.problem or _problem(error), _words(error), error.exit_code
        case ScheduleError():
            problem, words, code = _schedule_problem(error), [f"error: {error}"], USAGE
        case typer.TyperException():
            code = getattr(error, "exit_code", 1)
            words = _usage_words(error)
            problem = {"title": "Usage", "status": 400, "code": "usage", "detail": error.format_message()}
        case TimeoutError():
            words, code = [f"error: {error}"], TIMED_OUT
            problem = {"title": "Timed out", "status": 504, "code": "wait_timed_out", "detail": str(error)}
            problem |= {"run_id": error.run_id} if isinstance(error, StillRunning) else {}
        case _ if traces:
            raise error
        case OSError() if error.errno in _NO_ROOM and error.filename is None:  # of a stream, mostly stdout
            told = f"cannot write: {error.strerror}"
            words, code = [f"error: {told}"], 1
            problem = {"title": "Cannot write", "status": 500, "code": "cannot_write", "detail": told}
        case _:
            problem, words, code = *_unforeseen(error), 1
    if out.form is Form.JSON:
        out.problem(problem)
    else:
        for line in words:
            typer.echo(clean(line), err=True)
    return code


def _unforeseen(error: Exception) -> tuple[dict[str, Any], list[str]]:
    """A fault of this program, or of a server that answers what no hourhand does; neither helps by its traceback."""
    told = shortened(f"{type(error).__name__}: {error}".partition("\n")[0], _LONGEST_WORDS)
    problem = {"title": "Internal error", "status": 500, "code": "internal", "detail": told}
    return problem, [f"error: {told}", f"  this was not foreseen; {DEBUG}=1 shows where it happened"]


def _words(error: HourhandError) -> list[str]:
    first, *rest = error.message.split("\n")
    lines = [f"error: {first}", *rest]
    begun = re.sub("^[/?]", "", first)
    for fault in error.faults if isinstance(error, Invalid) else ():
        field = re.sub("^[/?]", "", fault.pointer).replace("/", ".") or "the document"
        told = fault.expected in first and (not fault.hint or fault.hint in first)
        if not told:
            got = f", got {fault.got}" if fault.got else ""
            hint = f"; {fault.hint}" if fault.hint else ""
            words = f"{field}: expected {fault.expected}{got}{hint}"
            if words.startswith(begun):  # the message was cut, or says less than its fault
                lines[0], begun = f"error: {words}", words
            else:
                lines.append(f"  {words}")
    if isinstance(error, WrongToken):
        lines.append(
            "  the token is read from HOURHAND_TOKEN; an admin makes one with `hourhand token create`"
        )
    return lines


def _problem(error: HourhandError) -> dict[str, Any]:
    problem: dict[str, Any] = {
        "type": "about:blank",
        "title": re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(error).__name__),
        "status": error.status,
        "detail": error.message,
        "code": error.code,
        "retryable": error.retryable,
    }
    if isinstance(error, Invalid):
        problem["errors"] = error.faults
    return problem


def _schedule_problem(error: "ScheduleError") -> dict[str, Any]:
    fault = {"pointer": "/cron", "expected": error.allowed, "got": str(error.value), "hint": error.hint}
    return {
        "type": "about:blank",
        "title": "Invalid",
        "status": 422,
        "detail": str(error),
        "code": "invalid",
        "retryable": False,
        "errors": [{**fault, "field": error.field}],
    }


def _usage_words(error: typer.TyperException) -> list[str]:
    words = error.format_message()
    if words.startswith("Usage:"):  # a group without a command says what there is
        return words.split("\n")
    context = getattr(error, "ctx", None)
    return [f"error: {words}"] + ([f"try: {context.command_path} --help"] if context else [])
