"""For those who receive calls from hourhand: is this one genuine, and of which run is it?"""

from collections.abc import Mapping, Sequence

from hourhand.clock import Clock, SystemClock
from hourhand.core.signature import TOLERANCE_US, parse_secret, why_not_signed
from hourhand.errors import HourhandError

_CLOCK = SystemClock()


class InvalidSignature(HourhandError):
    """The call is not from who it says, was altered on its way, or is too old. Answer 401."""

    code = "invalid_signature"
    status = 401


def verify(
    headers: Mapping[str, str],
    body: bytes | str,
    secret: str | Sequence[str],
    *,
    clock: Clock = _CLOCK,
    tolerance_us: int = TOLERANCE_US,
) -> str:
    """The run's id if the call is genuine; InvalidSignature says why where it is not.

    `body` is what arrived, before any parsing. Give several secrets while one is being replaced. The id
    is also the idempotency key: it is the same whenever the run is tried again.
    """
    keys = [parse_secret(text) for text in ([secret] if isinstance(secret, str) else secret)]
    ours = {name.lower(): value for name, value in headers.items() if name.lower().startswith("webhook-")}
    message_id = ours.get("webhook-id")
    reason = why_not_signed(
        keys,
        message_id=message_id,
        timestamp=ours.get("webhook-timestamp"),
        signatures=ours.get("webhook-signature"),
        body=body.encode() if isinstance(body, str) else body,
        now_at=clock.now(),
        tolerance_us=tolerance_us,
    )
    if reason is not None or message_id is None:
        raise InvalidSignature(reason or "webhook-id is missing")
    return message_id
