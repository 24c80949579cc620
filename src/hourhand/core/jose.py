"""Signed tokens as text: the three parts of a JWT (JWS, compact form), read strictly before any key is asked.

What is refused here is refused whoever signed it: everything by which a token would choose how it is checked, or
could be read in two ways. Whether the signature is right is for whoever has the keys; `core.claims` judges what
the token says.
"""

import base64
import json
import re
from typing import Any

import msgspec

from hourhand.core.access import MAX_TOKEN

ALGORITHMS = ("HS256", "RS256", "ES256", "EdDSA")
MAX_KID = 200
_TYPES = {"jwt", "at+jwt", "application/at+jwt"}
_PART = re.compile(r"[A-Za-z0-9_-]+")
_KID = re.compile(rf"[A-Za-z0-9._~:/+=@#-]{{1,{MAX_KID}}}")
# A key or the address of one, brought along by the token; or rules that change how it is read.
_CHOOSING = ("jku", "x5u", "x5c", "jwk", "crit", "b64", "zip", "enc")


class TokenRefused(ValueError):
    """A token that proves nothing. Says why in general words, without any part of the token."""


class SignedToken(msgspec.Struct, frozen=True, kw_only=True):
    """A token taken apart; nothing of it may be believed before its signature is checked."""

    algorithm: str
    kid: str | None
    signed: bytes  # what the signature is over
    signature: bytes
    claims: bytes


def is_signed_token(token: str) -> bool:
    """Whether this means to be a JWT, right or wrong, and not another kind of token."""
    return "." in token or token.startswith("{")


def read_token(token: str) -> SignedToken:
    """Take a token apart; TokenRefused for whatever is not plainly one."""
    if len(token) > MAX_TOKEN:
        raise TokenRefused(f"the token is longer than {MAX_TOKEN:,} characters")
    parts = token.split(".")
    if len(parts) != 3:
        raise TokenRefused("the token is not a JWT of three parts, with one signature")
    header = read_members(_bytes_of(parts[0]), "the token's header")
    for name in _CHOOSING:
        if name in header:
            raise TokenRefused(f"the token's header has {name}, which is not taken")
    return SignedToken(
        algorithm=_algorithm(header),
        kid=_kid(header),
        signed=f"{parts[0]}.{parts[1]}".encode("ascii"),
        signature=_bytes_of(parts[2]),
        claims=_bytes_of(parts[1]),
    )


def read_members(text: bytes, what: str) -> dict[str, Any]:
    """The members of a JSON object that can be read in one way only; TokenRefused for anything else."""
    try:
        value = json.loads(
            text.decode("utf-8"), object_pairs_hook=_each_once, parse_constant=_refuse_constant
        )
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise TokenRefused(f"{what} is not a JSON object that has each member once")
    return value


def is_kid(name: object) -> bool:
    """Whether this can name a key: plain characters, and nothing that climbs out of a folder."""
    return isinstance(name, str) and _KID.fullmatch(name) is not None and ".." not in name


def _algorithm(header: dict[str, Any]) -> str:
    algorithm, kind = header.get("alg"), header.get("typ", "JWT")
    if not isinstance(algorithm, str) or algorithm not in ALGORITHMS:
        raise TokenRefused(f"the token's algorithm is none of {', '.join(ALGORITHMS)}")
    if not isinstance(kind, str) or kind.lower() not in _TYPES:
        raise TokenRefused("the token is of another type than JWT")
    return algorithm


def _kid(header: dict[str, Any]) -> str | None:
    if "kid" not in header:
        return None
    if not is_kid(header["kid"]):
        raise TokenRefused("the token's kid is not the name of a key")
    return str(header["kid"])


def _bytes_of(part: str) -> bytes:
    """What base64url stands for; only in the one spelling that the bytes have."""
    if not _PART.fullmatch(part) or len(part) % 4 == 1:
        raise TokenRefused("a part of the token is not base64url")
    found = base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))
    if base64.urlsafe_b64encode(found).decode("ascii").rstrip("=") != part:
        raise TokenRefused("a part of the token is not base64url as it is written")
    return found


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("a member stands twice")
    return members


def _refuse_constant(name: str) -> None:
    raise ValueError(name)
