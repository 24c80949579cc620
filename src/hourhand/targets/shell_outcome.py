"""What the end of a command means for the run."""

import errno
import signal

from hourhand.core.model import ShellTarget
from hourhand.core.retry import Failure, Outcome
from hourhand.core.shell import SIGNALLED, Meaning, meaning_of
from hourhand.ports.target import Result

CANNOT_START = 126
NOT_FOUND = 127
_NO_ROOM = frozenset({errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE})


def exited(code: int, target: ShellTarget) -> Result:
    """The command has ended."""
    match meaning_of(code, target):
        case Meaning.SUCCEEDED:
            return Result(outcome=Outcome.SUCCEEDED, detail={"response": {"exit_code": code}})
        case meaning:
            failure = Failure(retryable=meaning is Meaning.FAILED)
            return Result(outcome=Outcome.FAILED, detail=_told(code), failure=failure)


def not_started(error: Exception, target: ShellTarget) -> Result:
    """The command could not even be started; nothing has happened."""
    if isinstance(error, OSError) and error.errno in _NO_ROOM:
        words = f"not started: this worker has no room for another process ({error.strerror})"
        return _failed(words, Failure(before_sending=True, unserved=True))
    code, why = _cause(error, target)
    retryable = meaning_of(code, target) is not Meaning.FAILED_FOR_GOOD
    return _failed(f"not started: {why}", Failure(retryable=retryable, before_sending=True))


def not_allowed() -> Result:
    """This worker runs no commands: the run waits for one that does."""
    words = "this worker runs no commands; start one with --allow-shell"
    return _failed(words, Failure(before_sending=True, unserved=True))


def _cause(error: Exception, target: ShellTarget) -> tuple[int, str]:
    """The exit code that a shell would give, and why."""
    if not isinstance(error, OSError):
        return CANNOT_START, f"the command cannot be written down here ({type(error).__name__})"
    if target.cwd is not None and error.filename == target.cwd:
        return CANNOT_START, f"the working directory {target.cwd!r} cannot be entered: {error.strerror}"
    name = target.argv[0][:200]
    if isinstance(error, FileNotFoundError):
        return NOT_FOUND, f"there is no command {name!r} on this worker"
    return CANNOT_START, f"the command {name!r} cannot be executed: {error.strerror}"


def _told(code: int) -> dict[str, object]:
    if code > SIGNALLED:
        try:
            name = signal.Signals(code - SIGNALLED).name
        except ValueError:
            name = ""
        if name:
            return {"error": f"exit code {code} ({name})", "exit_code": code}
    return {"error": f"exit code {code}", "exit_code": code}


def _failed(words: str, failure: Failure) -> Result:
    return Result(outcome=Outcome.FAILED, detail={"error": words}, failure=failure)
