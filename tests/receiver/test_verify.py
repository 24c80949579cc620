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
    for gone in headers():
        rest = {name: value for name, value in headers().items() if name != gone}
        with pytest.raises(InvalidSignature, match=f"^{gone.lower()} is missing"):
            verify(rest, b"{}", SECRET, clock=CLOCK)
    with pytest.raises(InvalidSignature, match="in the future"):
        verify(headers(), b"{}", SECRET, clock=ManualClock(CLOCK.now() - 301 * SECOND_US))
    with pytest.raises(InvalidSignature, match="not a number"):
        verify({**headers(), "WEBHOOK-TIMESTAMP": "soon"}, b"{}", SECRET, clock=CLOCK)
    with pytest.raises(InvalidSignature, match="in the past"):
        verify(headers(), b"{}", SECRET, clock=ManualClock(CLOCK.now() + 301 * SECOND_US))
    with pytest.raises(InvalidSignature, match="in the past"):
        verify({**headers(), "WEBHOOK-TIMESTAMP": "1"}, b"{}", SECRET)  # by the machine's own clock


def test_a_secret_that_is_none_is_the_receivers_own_mistake() -> None:
    with pytest.raises(ValueError, match="signing secret"):
        verify(headers(), b"{}", "password", clock=CLOCK)
    with pytest.raises(ValueError, match="no secret was given"):
        verify(headers(), b"{}", [], clock=CLOCK)
    with pytest.raises(TypeError, match="before any parsing; got dict"):
        verify(headers(), {}, SECRET, clock=CLOCK)  # type: ignore[arg-type]


@pytest.mark.parametrize("secret", [SECRET.encode(), [SECRET.encode()], [OTHER, None], None, 7])
def test_a_secret_that_is_no_text(secret: object) -> None:
    with pytest.raises(
        TypeError, match="a secret is the text whsec_…, or a list of such texts; got "
    ) as caught:
        verify(headers(), b"{}", secret, clock=CLOCK)  # type: ignore[arg-type]
    assert SECRET[6:] not in str(caught.value)


def test_secrets_in_any_collection_do() -> None:
    for secrets in ((OTHER, SECRET), {OTHER, SECRET}, iter([OTHER, SECRET])):
        assert verify(headers(), b"{}", secrets, clock=CLOCK) == "J-1@x"  # type: ignore[arg-type]


def test_while_secrets_rotate_either_side_may_be_ahead() -> None:
    both = sign([parse_secret(OTHER), parse_secret(SECRET)], "J-1@x", SENT_S, b"{}")
    rotating = {**headers(), "webhook-signature": both}
    for secret in (SECRET, OTHER, [SECRET, OTHER]):
        assert verify(rotating, b"{}", secret, clock=CLOCK) == "J-1@x"
    foreign = {**headers(), "webhook-signature": f"v1a,abc v2,{both.split(',')[1]} {both}"}
    assert verify(foreign, b"{}", SECRET, clock=CLOCK) == "J-1@x"
    relabelled = {**headers(), "webhook-signature": headers()["webhook-signature"].replace("v1,", "v2,")}
    with pytest.raises(InvalidSignature, match="no signature matches"):
        verify(relabelled, b"{}", SECRET, clock=CLOCK)


def test_the_tolerance_is_the_receivers_to_choose() -> None:
    late = ManualClock(CLOCK.now() + 60 * SECOND_US)
    assert verify(headers(), b"{}", SECRET, clock=late) == "J-1@x"
    with pytest.raises(InvalidSignature, match="in the past"):
        verify(headers(), b"{}", SECRET, clock=late, tolerance_us=59 * SECOND_US)


def test_headers_of_every_framework_do() -> None:
    from django.http.request import HttpHeaders
    from starlette.datastructures import Headers
    from werkzeug.datastructures import EnvironHeaders

    given = headers()
    environ = {f"HTTP_{name.upper().replace('-', '_')}": value for name, value in given.items()}
    raw = [(name.lower().encode(), value.encode()) for name, value in given.items()]
    for kind in (Headers(raw=raw), EnvironHeaders(environ), HttpHeaders(environ)):
        assert verify(kind, b"{}", SECRET, clock=CLOCK) == "J-1@x"
    assert verify(given, memoryview(b"{}"), SECRET, clock=CLOCK) == "J-1@x"
