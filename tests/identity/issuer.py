"""Somebody who issues tokens, with real keys; and tokens made by hand, to say what no library would."""

import base64
import hashlib
import hmac
import json
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

from hourhand.clock import ManualClock
from hourhand.core.claims import Expected
from hourhand.identity.jwks import Keyring
from hourhand.identity.jwt import JwtAuthenticator
from hourhand.identity.keys import secret_key

ISSUER, AUDIENCE = "https://id.example.com", "hourhand"
SECRET = "5f1d0c9e7b3a48261d90fbb7e35c8a42ee01"
OTHER_SECRET = "c0ffee12d4b7a9630f5e8d21b6a3947ff8e2"
EXPECTED = Expected(issuer=ISSUER, audience=AUDIENCE)
NOW_S = ManualClock().now() // 1_000_000

RSA = rsa.generate_private_key(public_exponent=65537, key_size=2048)
OTHER_RSA = rsa.generate_private_key(public_exponent=65537, key_size=2048)
EC = ec.generate_private_key(ec.SECP256R1())
ED = ed25519.Ed25519PrivateKey.generate()
PRIVATE = {"RS256": RSA, "ES256": EC, "EdDSA": ED}
_RULES = {"RS256": RSAAlgorithm, "ES256": ECAlgorithm, "EdDSA": OKPAlgorithm}


def jwk(algorithm: str, key: Any = None, **members: Any) -> dict[str, Any]:
    """The public part of a key, as it is published under its algorithm's name."""
    public = (key or PRIVATE[algorithm]).public_key()
    found = _RULES[algorithm].to_jwk(public, as_dict=True)  # type: ignore[attr-defined]
    return {**found, "kid": algorithm.lower(), "use": "sig", "alg": algorithm} | members


def document(*keys: Any) -> bytes:
    return json.dumps({"keys": list(keys)}).encode()


ALL_KEYS = document(*map(jwk, PRIVATE))
PUBLIC_PEM = RSA.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def claims(**changed: Any) -> dict[str, Any]:
    """Good ones, with changes; None leaves one out."""
    good = {
        "iss": ISSUER,
        "aud": AUDIENCE,
        "exp": NOW_S + 600,
        "iat": NOW_S,
        "tenant": "acme",
        "sub": "ann@example.com",
        "role": "editor",
    }
    return {name: value for name, value in {**good, **changed}.items() if value is not None}


def signed(algorithm: str = "RS256", said: dict[str, Any] | None = None, **headers: Any) -> str:
    """A token as an issuer makes it."""
    key: Any = SECRET if algorithm == "HS256" else PRIVATE[algorithm]
    known = {} if algorithm == "HS256" else {"kid": algorithm.lower()}
    return jwt.encode(said or claims(), key, algorithm=algorithm, headers=known | headers)


def part(value: Any) -> str:
    """One part of a token: bytes as they are, anything else as JSON."""
    text = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(text).decode().rstrip("=")


def by_hand(header: Any, said: Any, secret: bytes = SECRET.encode()) -> str:
    """A token with whatever header and claims, under a signature that is right for HS256."""
    text = f"{part(header)}.{part(said)}"
    return f"{text}.{part(hmac.new(secret, text.encode(), hashlib.sha256).digest())}"


class Published:
    """A source of keys in this process, that counts who asks."""

    shown = "here"

    def __init__(self, text: bytes = ALL_KEYS) -> None:
        self.text = text
        self.asked = 0

    async def load(self) -> bytes:
        self.asked += 1
        return self.text


def authenticator(
    clock: ManualClock, *, secrets: tuple[str, ...] = (SECRET,), ring: Keyring | None = None
) -> JwtAuthenticator:
    return JwtAuthenticator(
        expected=EXPECTED, secrets=[secret_key(one) for one in secrets], ring=ring, clock=clock
    )
