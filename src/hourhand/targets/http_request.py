"""What goes out to an HTTP target: URL, headers, body and signature.

Pure: the time and the keys come in. What depends only on the job is prepared once and kept; what names
the run is added per attempt, after the user's headers, so that nobody can speak in its name.
"""

import base64
import hashlib
from collections.abc import Sequence
from functools import lru_cache

import msgspec
from multidict import CIMultiDict, istr
from yarl import URL

from hourhand import __version__
from hourhand.core.headers import header_faults
from hourhand.core.instant import SECOND_US, format_instant
from hourhand.core.model import HttpTarget
from hourhand.core.run import ClaimedRun
from hourhand.core.signature import sign
from hourhand.core.url import url_faults

Headers = CIMultiDict[str]

_instant_text = lru_cache(maxsize=1024)(format_instant)  # a herd shares its times

_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_BODY_ONLY_IF_GIVEN = frozenset({"GET", "HEAD", "DELETE", "OPTIONS"})
_NO_PAYLOAD = b"null"

_IDEMPOTENCY_KEY = istr("Idempotency-Key")
_WEBHOOK_ID = istr("webhook-id")
_WEBHOOK_TIMESTAMP = istr("webhook-timestamp")
_WEBHOOK_SIGNATURE = istr("webhook-signature")
_JOB = istr("Hourhand-Job")
_SCHEDULED_AT = istr("Hourhand-Scheduled-At")
_ATTEMPT = istr("Hourhand-Attempt")
_DEADLINE = istr("Hourhand-Deadline")
_REPORT_URL = istr("Hourhand-Report-Url")
_REPORT_TOKEN = istr("Hourhand-Report-Token")
_TRACEPARENT = istr("traceparent")
_CONTENT_TYPE = istr("Content-Type")


class Uncallable(ValueError):
    """A target that cannot be called as it is written, and never could be."""


class Prepared(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a call that is the same for every run of a job."""

    method: str
    url: URL
    place: str  # host:port, for people and for the limit per origin
    headers: Headers


def prepare(target: HttpTarget) -> Prepared:
    """Checks a target and takes it apart; Uncallable says what is wrong with it."""
    faults = url_faults(target.url) + header_faults(target.headers)
    if faults:
        fault = faults[0]
        got = f", got {fault.got}" if fault.got else ""
        raise Uncallable(f"{fault.pointer.removeprefix('/target/')}: expected {fault.expected}{got}")
    method = target.method.upper()
    if method not in _METHODS:
        raise Uncallable(f"method: expected one of {', '.join(sorted(_METHODS))}")
    try:
        url = URL(target.url)
    except ValueError:
        raise Uncallable("url: it cannot be understood") from None
    if not url.host or not url.raw_host or url.port is None:
        raise Uncallable("url: it has no host")
    host = f"[{url.host}]" if ":" in url.host else url.host
    return Prepared(
        method=method,
        url=url.with_user(None).with_fragment(None),
        place=f"{host}:{url.port}",
        headers=_lasting_headers(target, url),
    )


def body_of(run: ClaimedRun, method: str) -> bytes | None:
    """The payload's JSON, byte by byte; None where nothing is sent."""
    payload = bytes(run.spec.payload)
    return None if payload == _NO_PAYLOAD and method in _BODY_ONLY_IF_GIVEN else payload


def headers_for(
    run: ClaimedRun,
    prepared: Prepared,
    body: bytes | None,
    *,
    now_at: int,
    keys: Sequence[bytes],
    report_base: str | None = None,
    report_token: str | None = None,
) -> Headers:
    """Everything that one attempt says of itself, on top of the job's own headers."""
    headers = prepared.headers.copy()
    run_id = run.run_id
    timestamp_s = now_at // SECOND_US
    headers[_IDEMPOTENCY_KEY] = run_id
    headers[_WEBHOOK_ID] = run_id
    headers[_WEBHOOK_TIMESTAMP] = str(timestamp_s)
    if keys:
        headers[_WEBHOOK_SIGNATURE] = sign(keys, run_id, timestamp_s, body or b"")
    headers[_JOB] = run_id.partition("@")[0]
    headers[_SCHEDULED_AT] = _instant_text(run.scheduled_at)
    headers[_ATTEMPT] = str(run.fence)
    headers[_DEADLINE] = _instant_text(run.deadline_at)
    if report_token is not None:
        headers[_REPORT_URL] = f"{report_base}/runs/{run_id}/report"
        headers[_REPORT_TOKEN] = report_token
    headers.setdefault(_TRACEPARENT, traceparent(run_id, run.fence))
    if body is not None:
        headers.setdefault(_CONTENT_TYPE, "application/json")
    return headers


def traceparent(run_id: str, fence: int) -> str:
    """W3C trace context: one trace per run, one span per attempt, the same on every node."""
    digest = hashlib.blake2b(run_id.encode(), digest_size=24).hexdigest()
    span = int(digest[32:], 16) ^ fence
    return f"00-{digest[:32]}-{span:016x}-01"


def _lasting_headers(target: HttpTarget, url: URL) -> Headers:
    headers: Headers = CIMultiDict()
    headers["User-Agent"] = f"hourhand/{__version__}"
    headers["Accept"] = "*/*"
    headers["Accept-Encoding"] = "identity"  # little is kept of an answer, and nothing can be unpacked
    if url.user is not None or url.password is not None:
        userinfo = f"{url.user or ''}:{url.password or ''}".encode()
        headers["Authorization"] = "Basic " + base64.b64encode(userinfo).decode()
    headers.update(target.headers)
    return headers
