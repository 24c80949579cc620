"""Keys that signatures are checked with, each bound to one algorithm by what it is, never by what a token says.

Of a published key (JWK) only its public numbers are taken. What cannot be used for signatures of ours is said in words,
for `doctor` and the log, and left out.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from jwt.algorithms import Algorithm, ECAlgorithm, HMACAlgorithm, OKPAlgorithm, RSAAlgorithm
from jwt.exceptions import InvalidKeyError

from hourhand.core.jose import SignedToken, TokenRefused, is_kid, read_members

MAX_KEYS = 32
LEAST_RSA_BITS, MOST_RSA_BITS = 2_048, 8_192
_MOST_EXPONENT = 2**32  # a larger one makes each check slow
_PRIVATE = {"d", "p", "q", "dp", "dq", "qi", "oth", "k"}


class Unusable(ValueError):
    """A key, or a set of them, that signatures cannot be checked with; says why."""


class NoKeys(Unusable):
    """A set of keys of which not one can be used: whoever publishes it has withdrawn the others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """One key, with the one algorithm that it is for."""

    algorithm: str
    kid: str | None = None
    rules: Algorithm = field(repr=False)
    material: Any = field(repr=False)

    def has_signed(self, token: SignedToken) -> bool:
        """Whether the token's signature is this key's, under this key's algorithm."""
        return token.algorithm == self.algorithm and self.rules.verify(
            token.signed, self.material, token.signature
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class KeySet:
    """The keys of a published document, and why others of it were left out."""

    keys: tuple[Key, ...] = ()
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Kind:
    """A kind of key that is taken: what it is for, and what it is made of."""

    algorithm: str
    rules: Any
    numbers: tuple[str, ...]
    names: tuple[str, ...]  # what the document may call the algorithm


_HMAC = HMACAlgorithm(HMACAlgorithm.SHA256)
_RSA = _Kind("RS256", RSAAlgorithm(RSAAlgorithm.SHA256), ("n", "e"), ("RS256",))
_EC = _Kind("ES256", ECAlgorithm(ECAlgorithm.SHA256, SECP256R1), ("x", "y"), ("ES256",))
_OKP = _Kind("EdDSA", OKPAlgorithm(), ("x",), ("EdDSA", "Ed25519"))
_KINDS = {("RSA", None): _RSA, ("EC", "P-256"): _EC, ("OKP", "Ed25519"): _OKP}


def secret_key(secret: str) -> Key:
    """The key that a secret is, for HS256; Unusable where it is a key of another kind."""
    try:
        material = _HMAC.prepare_key(secret.encode("utf-8"))
    except InvalidKeyError:
        raise Unusable("the secret is a key for another algorithm") from None
    return Key(algorithm="HS256", rules=_HMAC, material=material)


def read_key_set(text: bytes) -> KeySet:
    """The usable keys of a JWKS document; Unusable where it is none, NoKeys where it has not one of them."""
    try:
        entries = read_members(text, "it").get("keys")
    except TokenRefused as error:
        raise Unusable(str(error)) from None
    if not isinstance(entries, list):
        raise Unusable('it is not a JWKS document: expected {"keys": [...]}')
    keys, left_out = [], []
    for number, entry in enumerate(entries[:MAX_KEYS], start=1):
        try:
            keys.append(read_key(entry))
        except Unusable as error:
            left_out.append(f"key {number} {error}")
    if len(entries) > MAX_KEYS:
        left_out.append(f"{len(entries) - MAX_KEYS} keys after the first {MAX_KEYS}")
    if not keys:
        raise NoKeys("; ".join(["it has no key for RS256, ES256 or EdDSA", *left_out[:3]]))
    return KeySet(keys=tuple(keys), left_out=tuple(left_out))


def read_key(jwk: object) -> Key:
    """The key that a JWK is; Unusable where it is none that may check signatures."""
    if not isinstance(jwk, Mapping):
        raise Unusable("is no JSON object")
    kind = _kind_of(jwk)
    kid = jwk.get("kid")
    if kid is not None and not is_kid(kid):
        raise Unusable("has an odd kid")
    if any(not isinstance(jwk.get(name), str) for name in kind.numbers):
        raise Unusable(f"lacks one of {', '.join(kind.numbers)}")
    public = {name: jwk[name] for name in ("kty", "crv", *kind.numbers) if name in jwk}
    try:
        material = kind.rules.prepare_key(kind.rules.from_jwk(public))
    except (InvalidKeyError, ValueError, TypeError):
        raise Unusable("has numbers that make no key") from None
    if isinstance(material, RSAPublicKey):
        _check_size(material)
    return Key(algorithm=kind.algorithm, kid=kid, rules=kind.rules, material=material)


def _kind_of(jwk: Mapping[str, Any]) -> _Kind:
    kind_name, curve = jwk.get("kty"), jwk.get("crv")
    if kind_name == "oct" or not _PRIVATE.isdisjoint(jwk):
        raise Unusable("has a private part, which everybody could read; publish its public part only")
    if not isinstance(kind_name, str) or not isinstance(curve, str | None):
        raise Unusable("does not say its kty and crv")
    kind = _KINDS.get((kind_name, None if kind_name == "RSA" else curve))
    if kind is None:
        raise Unusable("is neither RSA, nor EC on P-256, nor Ed25519")
    if jwk.get("alg", kind.algorithm) not in kind.names:
        raise Unusable(f"is for another algorithm than {kind.algorithm}")
    operations = jwk.get("key_ops", ["verify"])
    if jwk.get("use", "sig") != "sig" or not isinstance(operations, list) or "verify" not in operations:
        raise Unusable("is not for signatures")
    return kind


def _check_size(key: RSAPublicKey) -> None:
    if not LEAST_RSA_BITS <= key.key_size <= MOST_RSA_BITS:
        raise Unusable(f"has {key.key_size} bits, expected {LEAST_RSA_BITS:,} to {MOST_RSA_BITS:,}")
    if key.public_numbers().e > _MOST_EXPONENT:
        raise Unusable("has a very large exponent")
