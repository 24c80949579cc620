"""What statuses, Retry-After and errors mean for the run."""

import errno
import socket

import aiohttp
import pytest

from hourhand.core.instant import SECOND_US
from hourhand.core.retry import Failure, Outcome
from hourhand.targets.guard import Refused
from hourhand.targets.http_answer import KEPT_BYTES, Answer, failed_call, judge, retry_after_us

NOW = 1_794_816_000_000_000  # Mon, 16 Nov 2026 08:00:00 GMT


@pytest.mark.parametrize("status", [200, 201, 203, 204, 299])
def test_2xx_succeeds(status: int) -> None:
    result = judge(Answer(status=status), NOW)
    assert result.outcome is Outcome.SUCCEEDED
    assert result.detail is not None
    assert result.detail["response"] == {"status": status}


def test_202_is_accepted_where_the_target_was_told_how_to_report() -> None:
    assert judge(Answer(status=202), NOW).outcome is Outcome.ACCEPTED
    untold = judge(Answer(status=202), NOW, may_report=False)
    assert (untold.outcome, untold.detail) == (Outcome.SUCCEEDED, {"response": {"status": 202}})


@pytest.mark.parametrize("status", [408, 409, 423, 425, 429, 500, 502, 503, 504, 599])
def test_what_may_pass_is_retried(status: int) -> None:
    result = judge(Answer(status=status, retry_after="7"), NOW)
    assert result.outcome is Outcome.FAILED
    assert result.failure == Failure(retryable=True, retry_after_us=7 * SECOND_US)


@pytest.mark.parametrize("status", [101, 300, 301, 304, 307, 400, 401, 403, 404, 405, 410, 413, 422, 451])
def test_what_will_not_pass_is_not(status: int) -> None:
    result = judge(Answer(status=status, retry_after="7"), NOW)
    assert result.outcome is Outcome.FAILED
    assert result.failure == Failure(retryable=False)


def test_an_error_says_what_was_answered() -> None:
    assert judge(Answer(status=503), NOW).detail == {
        "error": "the target answered 503 Service Unavailable",
        "response": {"status": 503},
    }
    assert judge(Answer(status=302), NOW).detail == {
        "error": "the target answered 302 Found; redirects are not followed",
        "response": {"status": 302},
    }
    assert judge(Answer(status=799), NOW).detail == {
        "error": "the target answered 799",
        "response": {"status": 799},
    }


@pytest.mark.parametrize(
    ("text", "wait_us"),
    [
        ("0", 0),
        ("120", 120 * SECOND_US),
        (" 3 ", 3 * SECOND_US),
        ("Mon, 16 Nov 2026 08:01:00 GMT", 60 * SECOND_US),
        ("Mon, 16 Nov 2026 07:00:00 GMT", 0),
        ("Monday, 16-Nov-26 08:01:00 GMT", 60 * SECOND_US),
        ("9" * 400, 365 * 86_400 * SECOND_US),
        ("-1", None),
        ("1.5", None),
        ("soon", None),
        ("", None),
        ("Mon, 99 Nov 2026 08:01:00 GMT", None),
    ],
)
def test_retry_after(text: str, wait_us: int | None) -> None:
    assert retry_after_us(text, NOW) == wait_us


@pytest.mark.parametrize(
    ("answer", "shown"),
    [
        (
            Answer(status=200, body=b"hi", content_type="text/plain"),
            {"content_type": "text/plain", "body": "hi"},
        ),
        (Answer(status=200, body=b"\xff\x00a"), {"body": "\ufffd\x00a"}),
        (Answer(status=200, body=b"x" * (KEPT_BYTES + 1)), {"body": "x" * KEPT_BYTES, "truncated": True}),
        (Answer(status=200, body=b"x" * KEPT_BYTES), {"body": "x" * KEPT_BYTES}),
        (Answer(status=200, body=b"x", whole=False), {"body": "x", "truncated": True}),
        (Answer(status=200, body=b"\x1f\x8b", encoding="gzip"), {"encoding": "gzip"}),
        (Answer(status=200, body=b"a", encoding="identity"), {"body": "a"}),
    ],
)
def test_what_is_kept(answer: Answer, shown: dict[str, object]) -> None:
    assert judge(answer, NOW).detail == {"response": {"status": 200, **shown}}


def connect_error(cause: OSError) -> aiohttp.ClientConnectorError:
    return aiohttp.ClientConnectorError(None, cause)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("error", "words", "failure"),
    [
        (
            connect_error(ConnectionRefusedError(errno.ECONNREFUSED, "x")),
            "connection refused by h:9",
            Failure(before_sending=True),
        ),
        (connect_error(OSError(errno.EHOSTUNREACH, "x")), "no route to h:9", Failure(before_sending=True)),
        (
            connect_error(OSError(errno.EMFILE, "x")),
            "no connection to h:9: this worker has too many open files",
            Failure(before_sending=True),
        ),
        (
            aiohttp.ClientConnectorDNSError(None, socket.gaierror(-2, "Name or service not known")),  # type: ignore[arg-type]
            "the name of h:9 cannot be resolved (Name or service not known)",
            Failure(before_sending=True),
        ),
        (aiohttp.ConnectionTimeoutError(), "no connection to h:9 within 10s", Failure(before_sending=True)),
        (TimeoutError(), "no answer from h:9 within 30s", Failure()),
        (aiohttp.ServerDisconnectedError(), "h:9 closed the connection without an answer", Failure()),
        (
            aiohttp.ClientOSError(errno.ECONNRESET, "Connection reset by peer"),
            "the connection to h:9 broke (Connection reset by peer)",
            Failure(),
        ),
        (
            aiohttp.ClientPayloadError("secret"),
            "h:9 answered something that is not HTTP, or too long a header",
            Failure(),
        ),
        (Refused("because"), "not called: because", Failure(before_sending=True, retryable=False)),
        (
            aiohttp.InvalidURL("http://ann:secret@h/"),
            "not called: the host of h:9 is not written in the usual way",
            Failure(before_sending=True, retryable=False),
        ),
        (RuntimeError("secret"), "the call to h:9 failed (RuntimeError)", Failure()),
    ],
)
def test_errors_in_words(error: Exception, words: str, failure: Failure) -> None:
    result = failed_call(error, "h:9", 30 * SECOND_US)
    assert result.outcome is Outcome.FAILED
    assert result.detail == {"error": words}
    assert result.failure == failure
