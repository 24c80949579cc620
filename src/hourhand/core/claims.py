"""What a signed token says, once its signature is known to be right: for whom, by whom, until when, and who it is.

Pure: the time is handed in. Everything is required that a mistake of the issuer could leave out.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from hourhand.core.access import EVERY_TENANT, MAX_SUBJECT, TENANT_WORDS, Principal, Role, Via, is_tenant
from hourhand.core.instant import SECOND_US
from hourhand.core.jose import TokenRefused

LEEWAY_US = 30 * SECOND_US  # by which the issuer's clock may differ from ours
_LAST_S = 253_402_300_799  # the end of the year 9999


class Expected(msgspec.Struct, frozen=True, kw_only=True):
    """Whose tokens are taken, and for whom they must be."""

    issuer: str
    audience: str


def judge_claims(claims: Mapping[str, Any], expected: Expected, now_at: int) -> Principal:
    """Who the claims are about; TokenRefused where they are not for us, not now, or not whole."""
    expires_at = _instant(claims, "exp")
    if expires_at is None:
        raise TokenRefused("the token lacks the claim exp")
    if expires_at + LEEWAY_US <= now_at:
        raise TokenRefused("the token has expired")
    for name in ("nbf", "iat"):
        begins_at = _instant(claims, name)
        if begins_at is not None and begins_at - LEEWAY_US > now_at:
            raise TokenRefused(f"the token is of a later time ({name})")
    if _text(claims, "iss") != expected.issuer:
        raise TokenRefused("the token is of another issuer than auth.issuer")
    if _audience(claims) != expected.audience:
        raise TokenRefused("the token is for another audience than auth.audience")
    return _principal(claims, expires_at)


def _principal(claims: Mapping[str, Any], expires_at: int) -> Principal:
    tenant, subject, role = (_text(claims, name) for name in ("tenant", "sub", "role"))
    if tenant != EVERY_TENANT and not is_tenant(tenant):
        raise TokenRefused(f"the token's claim tenant: expected {TENANT_WORDS}, or {EVERY_TENANT} for all")
    if not 0 < len(subject) <= MAX_SUBJECT or not subject.isprintable() or not subject.strip():
        raise TokenRefused(f"the token's claim sub: expected 1 to {MAX_SUBJECT} printable characters")
    if role not in set(Role):
        raise TokenRefused(f"the token's claim role: expected one of {', '.join(Role)}")
    return Principal(subject=subject, tenant=tenant, role=Role(role), via=Via.JWT, expires_at=expires_at)


def _audience(claims: Mapping[str, Any]) -> str:
    """The one whom the token is for. Of several, each could show it to the others as its own."""
    given = claims.get("aud")
    if isinstance(given, list) and len(given) == 1:
        return _text({"aud": given[0]}, "aud")
    if isinstance(given, list):
        raise TokenRefused("the token's claim aud: expected one audience, not a list of several")
    return _text(claims, "aud")


def _text(claims: Mapping[str, Any], name: str) -> str:
    value = claims.get(name)
    if value is None:
        raise TokenRefused(f"the token lacks the claim {name}")
    if not isinstance(value, str):
        raise TokenRefused(f"the token's claim {name}: expected a text")
    return value


def _instant(claims: Mapping[str, Any], name: str) -> int | None:
    """A time in seconds since the epoch, as our instant; None where the claim is not there."""
    if name not in claims:
        return None
    value = claims[name]
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _LAST_S:
        raise TokenRefused(f"the token's claim {name}: expected a time in seconds")
    return int(value * SECOND_US)
