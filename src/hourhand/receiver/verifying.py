"""`verify`: whether a call is genuine, and which run it is about."""

from collections.abc import Iterable, Sequence
from typing import Any

from hourhand.clock import Clock, SystemClock
from hourhand.core.calls import RUN_HEADER, Headers, by_lower_name
from hourhand.core.signature import TOLERANCE_US, parse_secret, why_not_signed
from hourhand.errors import HourhandError

_CLOCK = SystemClock()


class InvalidSignature(HourhandError):
    """The call is not from who it says, was altered on its way, or is too old. Answer 401."""

    code = "invalid_signature"
    status = 401


def verify(
    headers: Headers,
    body: bytes | bytearray | memoryview | str,
    secret: str | Sequence[str],
    *,
    clock: Clock = _CLOCK,
    tolerance_us: int = TOLERANCE_US,
) -> str:
    """The run's id if the call is genuine; InvalidSignature says why where it is not.

    `body` is what arrived, before any parsing. Give several secrets while one is being replaced. The id
    is also the idempotency key: it is the same whenever the run is tried again.
    """
    keys = _keys_in(secret)
    given = by_lower_name(headers)
    message_id = given.get(RUN_HEADER)
    reason = why_not_signed(
        keys,
        message_id=message_id,
        timestamp=given.get("webhook-timestamp"),
        signatures=given.get("webhook-signature"),
        body=_as_bytes(body),
        now_at=clock.now(),
        tolerance_us=tolerance_us,
    )
    if reason is not None or message_id is None:
        raise InvalidSignature(reason or f"{RUN_HEADER} is missing")
    return message_id


def _keys_in(secret: Any) -> list[bytes]:
    """What may have signed. Errors show kinds alone: what was given is secret."""
    one = isinstance(secret, str | bytes) or not isinstance(secret, Iterable)
    keys = [_key_in(text) for text in ([secret] if one else secret)]
    if not keys:
        raise ValueError("no secret was given, so no call could ever be genuine")
    return keys


def _key_in(text: object) -> bytes:
    if not isinstance(text, str):
        raise TypeError(f"a secret is the text whsec_…, or a list of such texts; got {type(text).__name__}")
    return parse_secret(text)


def _as_bytes(body: object) -> bytes:
    """What was signed. A parsed body is not: written again it would differ in some space."""
    if isinstance(body, str):
        return body.encode()
    if isinstance(body, bytes | bytearray | memoryview):
        return bytes(body)
    raise TypeError(f"body is what arrived, as bytes and before any parsing; got {type(body).__name__}")
