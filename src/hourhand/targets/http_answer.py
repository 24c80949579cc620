"""What an HTTP target's answer, or the lack of one, means for the run.

Pure: judges status and `Retry-After`, and puts errors into words without payload, secret or URL in them.
"""

import email.utils
import errno
import socket
from http import HTTPStatus

import aiohttp
import msgspec

from hourhand.core.instant import DAY_US, SECOND_US, format_duration
from hourhand.core.retry import Failure, Outcome
from hourhand.ports.target import Result
from hourhand.targets.guard import Refused
from hourhand.targets.http_request import Uncallable

KEPT_BYTES = 4 * 1024

_CONNECT_MAX_US = 10 * SECOND_US
_RETRYABLE = frozenset({408, 409, 423, 425, 429})
_LONGEST_WAIT_US = 365 * DAY_US


class Answer(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What is kept of a response."""

    status: int
    content_type: str | None = None
    encoding: str | None = None
    retry_after: str | None = None
    body: bytes = b""
    whole: bool = True  # False where the body went on, or broke off


def judge(answer: Answer, now_at: int, *, may_report: bool = True) -> Result:
    """Accepted by 202, succeeded by any other 2xx; else failed, with what is known about trying again.

    A target that was not told how to report has succeeded with 202 too.
    """
    response = _shown(answer)
    if 200 <= answer.status < 300:
        if answer.status == 202 and may_report:
            return Result(outcome=Outcome.ACCEPTED)
        return Result(outcome=Outcome.SUCCEEDED, detail={"response": response})
    error = f"the target answered {status_words(answer.status)}"
    if 300 <= answer.status < 400:
        error += "; redirects are not followed"
    retryable = answer.status >= 500 or answer.status in _RETRYABLE
    wait_us = retry_after_us(answer.retry_after, now_at) if retryable and answer.retry_after else None
    return Result(
        outcome=Outcome.FAILED,
        detail={"error": error, "response": response},
        failure=Failure(retryable=retryable, retry_after_us=wait_us),
    )


def failed_call(error: Exception, place: str, timeout_us: int) -> Result:
    """A call that got no answer: what happened, and whether anything can have been sent."""
    words, before_sending, retryable = _explained(error, place, timeout_us)
    return Result(
        outcome=Outcome.FAILED,
        detail={"error": words},
        failure=Failure(retryable=retryable, before_sending=before_sending),
    )


def connect_timeout_us(timeout_us: int) -> int:
    """How long a connection may take to come about: less than the whole exchange.

    So a call that is given up before it had a connection is known not to have been sent.
    """
    return min(timeout_us * 9 // 10, _CONNECT_MAX_US)


def retry_after_us(text: str, now_at: int) -> int | None:
    """How long `Retry-After` asks to wait, in seconds or as an HTTP date; None where it says nothing."""
    text = text.strip()
    if text.isascii() and text.isdigit():
        wait_us = int(text[:12]) * SECOND_US
    else:
        try:
            until = email.utils.parsedate_to_datetime(text)
        except (ValueError, TypeError, OverflowError):
            return None
        if until.tzinfo is None:
            return None
        wait_us = int(until.timestamp()) * SECOND_US - now_at
    return max(0, min(wait_us, _LONGEST_WAIT_US))


def _shown(answer: Answer) -> dict[str, object]:
    shown: dict[str, object] = {"status": answer.status}
    if answer.content_type:
        shown["content_type"] = answer.content_type[:200]
    if answer.encoding and answer.encoding.lower() != "identity":
        shown["encoding"] = answer.encoding[:40]  # the body would be unreadable, so it is left out
    elif answer.body:
        shown["body"] = answer.body[:KEPT_BYTES].decode("utf-8", "replace")
    if not answer.whole or len(answer.body) > KEPT_BYTES:
        shown["truncated"] = True
    return shown


def status_words(status: int) -> str:
    """A status with its name."""
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return str(status)


def _explained(error: Exception, place: str, timeout_us: int) -> tuple[str, bool, bool]:
    """(words, before_sending, retryable)"""
    match error:
        case Refused() | Uncallable():
            return f"not called: {error}", True, False
        case aiohttp.InvalidURL():
            return f"not called: the host of {place} is not written in the usual way", True, False
        case aiohttp.ClientConnectorDNSError():
            return f"the name of {place} cannot be resolved ({_os_words(error.os_error)})", True, True
        case aiohttp.ClientConnectorCertificateError():
            return f"the certificate of {place} is not trusted ({_certificate_words(error)})", True, True
        case aiohttp.ClientSSLError():
            return f"no TLS connection with {place} ({_os_words(error.os_error)})", True, True
        case aiohttp.ClientConnectorError():
            return _connect_words(error.os_error, place), True, True
        case aiohttp.ConnectionTimeoutError():
            limit = format_duration(connect_timeout_us(timeout_us))
            return f"no connection to {place} within {limit}", True, True
        case TimeoutError():
            return f"no answer from {place} within {format_duration(timeout_us)}", False, True
        case aiohttp.ServerDisconnectedError():
            return f"{place} closed the connection without an answer", False, True
        case aiohttp.ClientOSError():
            return f"the connection to {place} broke ({_os_words(error)})", False, True
        case aiohttp.ClientResponseError() | aiohttp.ClientPayloadError():
            return f"{place} answered something that is not HTTP, or too long a header", False, True
        case _:
            return f"the call to {place} failed ({type(error).__name__})", False, True


def _connect_words(error: OSError, place: str) -> str:
    match error.errno:
        case errno.ECONNREFUSED:
            return f"connection refused by {place}"
        case errno.ENETUNREACH | errno.EHOSTUNREACH:
            return f"no route to {place}"
        case errno.EMFILE | errno.ENFILE:
            return f"no connection to {place}: this worker has too many open files"
        case _:
            return f"no connection to {place} ({_os_words(error)})"


def _os_words(error: OSError) -> str:
    if isinstance(error, socket.gaierror) and error.args:
        return str(error.args[-1])
    return str(error.strerror or type(error).__name__)[:200]


def _certificate_words(error: aiohttp.ClientConnectorCertificateError) -> str:
    reason = error.certificate_error
    return str(getattr(reason, "verify_message", None) or getattr(reason, "reason", "") or "unknown reason")[
        :200
    ]
