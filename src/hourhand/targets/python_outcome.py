"""What a function's return or exception means for the run, and how much of it is kept.

Never raises: a value that cannot be printed, or an exception that cannot be shown, is still an outcome.
"""

import traceback
from typing import Any

import msgspec

from hourhand.core.instant import format_duration
from hourhand.core.retry import Failure, Outcome
from hourhand.functions.arguments import WrongArguments
from hourhand.functions.signals import GiveUp, RetryLater, Skip
from hourhand.ports.target import OK, Result

KEPT_BYTES = 4 * 1024
_MESSAGE_MAX = 500
_TRACEBACK_MAX = 2 * 1024
_FRAMES_MAX = 8
_OWN_FILES = ("hourhand/targets/", "hourhand\\targets\\")


def returned(value: Any) -> Result:
    """Succeeded, with the value as JSON, or as text where it is too long or no JSON."""
    if value is None:
        return OK
    return Result(outcome=Outcome.SUCCEEDED, detail={"response": _kept(value)})


def raised(error: BaseException) -> Result:
    """Skipped, given up, or failed with type, message and the last frames."""
    match error:
        case Skip():
            return Result(
                outcome=Outcome.SKIPPED, detail={"reason": _message(error) or "the function said so"}
            )
        case RetryLater(delay_us=delay_us):
            failure = Failure(before_sending=True, retry_after_us=delay_us)
            return _failed(_message(error) or f"try again in {format_duration(delay_us)}", failure)
        case GiveUp():
            words = f"gave up: {_message(error)}" if error.args else "gave up"
            return _failed(words, Failure(retryable=False))
        case _:
            message = _message(error)
            name = type(error).__name__
            return _failed(f"{name}: {message}" if message else name, Failure(), traceback=_frames(error))


def wrong_arguments(error: WrongArguments) -> Result:
    """The payload does not fit, and will not the next time."""
    return _failed(_safe(str(error), _MESSAGE_MAX), Failure(retryable=False, before_sending=True))


def no_such_function(name: str) -> Result:
    """Another worker may know it, or this one after its next start: the run waits."""
    module = name.partition(":")[0]
    words = f"no function {name!r} is registered on this worker; start it with --import {module}"
    return _failed(words, Failure(before_sending=True, unserved=True))


def no_thread(error: Exception) -> Result:
    """The worker has no thread to run it on: the run waits."""
    return _failed(f"not started: {error}", Failure(before_sending=True, unserved=True))


def held_the_loop(seconds: float) -> Result:
    """An async function did not yield, and everything else stood still meanwhile."""
    words = (
        f"held the event loop for {seconds:g} s without yielding, and was interrupted; "
        "make it a plain def, which runs on a thread, or await"
    )
    return _failed(words, Failure())


def cancelled_itself() -> Result:
    """The function raised CancelledError although nobody cancelled the run."""
    return _failed("CancelledError: raised inside the function; nobody cancelled the run", Failure())


def _failed(words: str, failure: Failure, **more: str) -> Result:
    return Result(outcome=Outcome.FAILED, detail={"error": words, **more}, failure=failure)


def _kept(value: Any) -> dict[str, Any]:
    try:
        encoded = msgspec.json.encode(value)
        if len(encoded) <= KEPT_BYTES:
            return {"value": msgspec.json.decode(encoded)}  # a copy: the function may go on changing its own
        return {"text": encoded[:KEPT_BYTES].decode("utf-8", "ignore"), "truncated": True}
    except Exception:  # no JSON: sets of odd things, objects, lone surrogates, endless nesting
        text = _printed(value)
        shown = _safe(text, KEPT_BYTES)
        return {"text": shown, "truncated": True} if shown != text else {"text": shown}


def _printed(value: Any) -> str:
    try:
        return repr(value)
    except BaseException:
        return f"<{type(value).__name__} that cannot be printed>"


def _message(error: BaseException) -> str:
    try:
        return _safe(str(error), _MESSAGE_MAX)
    except BaseException:
        return "an exception that cannot be printed"


def _frames(error: BaseException) -> str:
    """Where it happened, in the user's own code; the end is what matters."""
    try:
        frames = [
            frame
            for frame in traceback.extract_tb(error.__traceback__, limit=-_FRAMES_MAX)
            if not any(own in frame.filename for own in _OWN_FILES)
        ]
        text = "".join(traceback.format_list(frames)).rstrip()
    except Exception:
        return ""
    return _safe(text[-_TRACEBACK_MAX:], _TRACEBACK_MAX)


def _safe(text: str, limit_bytes: int) -> str:
    """Text that every store takes: no lone surrogates, at most so many bytes of UTF-8."""
    encoded = text.encode("utf-8", "backslashreplace")
    return encoded[:limit_bytes].decode("utf-8", "ignore")
