"""Standard Webhooks: the published vector, rotation, tolerance, and every altered byte is refused."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hourhand.core.instant import SECOND_US
from hourhand.core.signature import TOLERANCE_US, parse_secret, sign, why_not_signed

KEY = parse_secret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
OTHER = b"o" * 24
SENT_S = 1_614_265_330
NOW = SENT_S * SECOND_US


def verdict(**changes: object) -> str | None:
    given_: dict[str, object] = {
        "message_id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "timestamp": str(SENT_S),
        "signatures": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
        "body": b'{"test": 2432232314}',
        "now_at": NOW,
        **changes,
    }
    keys = given_.pop("keys", (KEY,))
    return why_not_signed(keys, **given_)  # type: ignore[arg-type]


def test_the_vector_of_the_specification() -> None:
    signature = sign([KEY], "msg_p5jXN8AQM9LWM0D4loKWxJek", SENT_S, b'{"test": 2432232314}')
    assert signature == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
    assert verdict() is None


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"message_id": "msg_other"}, "no signature matches"),
        ({"body": b'{"test": 2432232315}'}, "no signature matches"),
        ({"keys": (OTHER,)}, "no signature matches"),
        ({"keys": ()}, "no signature matches"),
        ({"timestamp": str(SENT_S + 1)}, "no signature matches"),
        ({"signatures": "v2,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="}, "no signature matches"),
        ({"signatures": "g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="}, "no signature matches"),
        ({"signatures": "v1,"}, "no signature matches"),
        ({"signatures": ""}, "missing"),
        ({"signatures": None}, "missing"),
        ({"message_id": None}, "missing"),
        ({"timestamp": None}, "missing"),
        ({"timestamp": "soon"}, "not a number"),
        ({"timestamp": "-1"}, "not a number"),
        ({"timestamp": "²"}, "not a number"),
        ({"timestamp": "9" * 500}, "not a number"),
        ({"now_at": NOW + TOLERANCE_US + 1}, "in the past"),
        ({"now_at": NOW - TOLERANCE_US - 1}, "in the future"),
    ],
)
def test_what_is_not_genuine_is_refused(changes: dict[str, object], reason: str) -> None:
    refusal = verdict(**changes)
    assert refusal is not None
    assert reason in refusal


@pytest.mark.parametrize("away_us", [TOLERANCE_US, -TOLERANCE_US])
def test_the_tolerance_is_inclusive(away_us: int) -> None:
    assert verdict(now_at=NOW + away_us) is None


def test_while_a_secret_rotates_either_side_may_be_ahead() -> None:
    both = sign([OTHER, KEY], "id", SENT_S, b"x")
    assert both.count("v1,") == 2
    for keys in ((KEY,), (OTHER,), (KEY, OTHER)):
        assert verdict(message_id="id", body=b"x", signatures=both, keys=keys) is None


@given(st.binary(max_size=64), st.text(st.characters(codec="utf-8"), min_size=1, max_size=20))
def test_what_is_signed_is_accepted(body: bytes, message_id: str) -> None:
    signatures = sign([KEY], message_id, SENT_S, body)
    assert verdict(message_id=message_id, body=body, signatures=signatures) is None
    assert verdict(message_id=message_id, body=body + b"\0", signatures=signatures) is not None


def test_secrets_are_read_with_and_without_their_prefix() -> None:
    encoded = base64.b64encode(b"k" * 24).decode()
    assert parse_secret(f"whsec_{encoded}") == parse_secret(f" {encoded}\n") == b"k" * 24


@pytest.mark.parametrize("text", ["", "whsec_", "whsec_!!!", "secret", "whsec_" + "QUJD" * 2])
def test_weak_or_wrong_secrets_are_refused_without_showing_them(text: str) -> None:
    with pytest.raises(ValueError, match="a signing secret") as refusal:
        parse_secret(text)
    assert len(text) < 7 or text[6:] not in str(refusal.value)
