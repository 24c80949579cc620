"""Errors as people, scripts and shells meet them: words or problem+json on stderr, and an exit code."""

import re
from typing import TYPE_CHECKING, Any

import typer

from hourhand.cli.output import Form, Output
from hourhand.cli.text import clean
from hourhand.errors import HourhandError, Invalid

if TYPE_CHECKING:
    from hourhand.core.schedule import ScheduleError

USAGE = 2
NOT_SUCCEEDED = 7
FINDINGS = 8
TIMED_OUT = 9
INTERRUPTED = 130


def report(error: Exception, out: Output) -> int:
    """Print an error that is meant for people and answer its exit code; raise any other again."""
    from hourhand.core.schedule import ScheduleError  # here, since few commands need schedules

    match error:
        case HourhandError():
            problem, words, code = error.problem or _problem(error), _words(error), error.exit_code
        case ScheduleError():
            problem, words, code = _schedule_problem(error), [f"error: {error}"], USAGE
        case typer.TyperException():
            code = getattr(error, "exit_code", 1)
            words = [f"error: {error.format_message()}", *_hint(error)]
            problem = {"title": "Usage", "status": 400, "code": "usage", "detail": error.format_message()}
        case TimeoutError():
            words, code = [f"error: {error}"], TIMED_OUT
            problem = {"title": "Timed out", "status": 504, "code": "wait_timed_out", "detail": str(error)}
        case _:
            raise error
    if out.form is Form.JSON:
        out.problem(problem)
    else:
        for line in words:
            typer.echo(clean(line), err=True)
    return code


def _words(error: HourhandError) -> list[str]:
    lines = [
        f"error: {line}" if not number else line for number, line in enumerate(error.message.split("\n"))
    ]
    if isinstance(error, Invalid):
        for fault in error.faults:
            field = fault.pointer.removeprefix("/").replace("/", ".") or "the document"
            line = f"  {field}: expected {fault.expected}"
            line += f", got {fault.got}" if fault.got else ""
            line += f" ({fault.hint})" if fault.hint else ""
            if field not in lines[0] or len(error.faults) > 1 or fault.got or fault.hint:
                lines.append(line)
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


def _hint(error: typer.TyperException) -> list[str]:
    context = getattr(error, "ctx", None)
    return [] if context is None else [f"try: {context.command_path} --help"]
