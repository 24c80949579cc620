"""Standard Webhooks signatures: how a call is signed, and how a receiver checks it.

Pure: the time comes in. A secret is `whsec_` and base64; while one is being replaced both sign, and a
receiver accepts a call if any of its secrets matches any of the signatures.
"""

import base64
import binascii
import hmac
from collections.abc import Sequence

from hourhand.core.instant import MINUTE_US, SECOND_US

TOLERANCE_US = 5 * MINUTE_US
MIN_SECRET_BYTES = 24

_PREFIX = "whsec_"
_VERSION = "v1"


def parse_secret(text: str) -> bytes:
    """The key behind `whsec_…`; ValueError, without showing any of it, where it is not one."""
    encoded = text.strip().removeprefix(_PREFIX)
    try:
        key = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("a signing secret is whsec_ followed by base64; this one is not") from None
    if len(key) < MIN_SECRET_BYTES:
        raise ValueError(
            f"a signing secret has at least {MIN_SECRET_BYTES} bytes before base64; this one has {len(key)}"
        )
    return key


def sign(keys: Sequence[bytes], message_id: str, timestamp_s: int, body: bytes) -> str:
    """The value of `webhook-signature`: one signature per key, the newest key first."""
    message = b"%b.%d.%b" % (message_id.encode(), timestamp_s, body)
    return " ".join([f"{_VERSION},{_encoded(key, message)}" for key in keys])


def why_not_signed(
    keys: Sequence[bytes],
    *,
    message_id: str | None,
    timestamp: str | None,
    signatures: str | None,
    body: bytes,
    now_at: int,
    tolerance_us: int = TOLERANCE_US,
) -> str | None:
    """Why a call is not to be trusted, or None where it is. Takes the same time wherever it differs."""
    if not message_id or not timestamp:
        return f"{'webhook-timestamp' if message_id else 'webhook-id'} is missing"
    if not signatures:
        return "webhook-signature is missing: calls are signed where targets.signing_secret is set"
    if not (timestamp.isascii() and timestamp.isdigit() and len(timestamp) <= 12):
        return "webhook-timestamp is not a number of seconds"
    away_us = now_at - int(timestamp) * SECOND_US
    if abs(away_us) > tolerance_us:
        return f"webhook-timestamp is too far {'in the past' if away_us > 0 else 'in the future'}"
    message = b"%b.%d.%b" % (message_id.encode(errors="replace"), int(timestamp), body)
    expected = [_encoded(key, message).encode() for key in keys]
    genuine = False
    for signature in signatures.split(" "):
        version, _, encoded = signature.partition(",")
        for candidate in expected:
            same = hmac.compare_digest(candidate, encoded.encode(errors="replace"))
            genuine |= version == _VERSION and same
    return None if genuine else "no signature matches"


def _encoded(key: bytes, message: bytes) -> str:
    return base64.b64encode(hmac.digest(key, message, "sha256")).decode()
