"""`hourhand.verify`, as a receiver uses it."""

import base64

import pytest

from hourhand import InvalidSignature, verify
from hourhand.clock import ManualClock
from hourhand.core.instant import SECOND_US
from hourhand.core.signature import parse_secret, sign

SECRET = "whsec_" + base64.b64encode(b"k" * 24).decode()
OTHER = "whsec_" + base64.b64encode(b"o" * 24).decode()
CLOCK = ManualClock()
SENT_S = CLOCK.now() // SECOND_US


def headers(body: bytes = b"{}", secret: str = SECRET) -> dict[str, str]:
    return {
        "Webhook-Id": "J-1@x",
        "WEBHOOK-TIMESTAMP": str(SENT_S),
        "webhook-signature": sign([parse_secret(secret)], "J-1@x", SENT_S, body),
    }


def test_a_genuine_call_names_its_run() -> None:
    assert verify(headers(), b"{}", SECRET, clock=CLOCK) == "J-1@x"
    assert verify(headers(), "{}", [OTHER, SECRET], clock=CLOCK) == "J-1@x"


def test_others_are_refused() -> None:
    with pytest.raises(InvalidSignature, match="no signature matches"):
        verify(headers(), b"{} ", SECRET, clock=CLOCK)
    with pytest.raises(InvalidSignature, match="no signature matches"):
        verify(headers(secret=OTHER), b"{}", SECRET, clock=CLOCK)
    with pytest.raises(InvalidSignature, match="missing"):
        verify({}, b"{}", SECRET, clock=CLOCK)
    with pytest.raises(InvalidSignature, match="in the past"):
        verify(headers(), b"{}", SECRET, clock=ManualClock(CLOCK.now() + 301 * SECOND_US))
    with pytest.raises(InvalidSignature, match="in the past"):
        verify({**headers(), "WEBHOOK-TIMESTAMP": "1"}, b"{}", SECRET)  # by the machine's own clock


def test_a_secret_that_is_none_is_the_receivers_own_mistake() -> None:
    with pytest.raises(ValueError, match="signing secret"):
        verify(headers(), b"{}", "password", clock=CLOCK)
