"""Recognises people by JWT: a signature of a key we know, then claims that are for us, now, and whole.

HS256 is checked with the secrets and nothing else, the other algorithms with the published keys and nothing else, so no
token can have a public key taken for a secret. What was proven is remembered for a moment, by the token's digest.
"""

from collections import OrderedDict
from collections.abc import Sequence
from hashlib import sha256

import msgspec

from hourhand.clock import Clock
from hourhand.core.access import Principal
from hourhand.core.claims import Expected, judge_claims
from hourhand.core.instant import SECOND_US
from hourhand.core.jose import SignedToken, TokenRefused, is_signed_token, read_members, read_token
from hourhand.errors import WrongToken
from hourhand.identity.jwks import Keyring
from hourhand.identity.keys import Key

REMEMBERED_US = 30 * SECOND_US
MOST_REMEMBERED = 10_000
_OF_SECRETS = "HS256"


class _Remembered(msgspec.Struct, frozen=True):
    principal: Principal
    until_at: int
    version: int  # of the keys


class JwtAuthenticator:
    """Knows people by their JWTs."""

    def __init__(
        self, *, expected: Expected, secrets: Sequence[Key] = (), ring: Keyring | None = None, clock: Clock
    ) -> None:
        self._expected = expected
        self._secrets = secrets
        self._ring = ring
        self._clock = clock
        self._remembered: OrderedDict[bytes, _Remembered] = OrderedDict()

    async def authenticate(self, token: str) -> Principal | None:
        """As the port says."""
        if not is_signed_token(token):
            return None
        if not token.isascii():
            raise WrongToken("the token is not a JWT")
        digest = sha256(token.encode("ascii")).digest()
        known = self._recalled(digest)
        if known is not None:
            return known
        try:
            principal = await self._proven(token)
        except TokenRefused as error:
            raise WrongToken(str(error)) from None
        self._remember(digest, principal)
        return principal

    async def _proven(self, token: str) -> Principal:
        """The signature first: of a token that anybody could have written, nothing is told but that."""
        read = read_token(token)
        keys = await self._keys_for(read)
        if not any(key.has_signed(read) for key in keys):
            raise TokenRefused("the token is not signed by a key that this server knows")
        claims = read_members(read.claims, "what the token says")
        return judge_claims(claims, self._expected, self._clock.now())

    async def _keys_for(self, token: SignedToken) -> Sequence[Key]:
        if token.algorithm == _OF_SECRETS:
            return self._secrets
        return () if self._ring is None else await self._ring.keys_for(token.algorithm, token.kid)

    @property
    def _version(self) -> int:
        return 0 if self._ring is None else self._ring.version

    def _recalled(self, digest: bytes) -> Principal | None:
        known = self._remembered.get(digest)
        if known is None:
            return None
        if known.until_at <= self._clock.now() or known.version != self._version:
            del self._remembered[digest]
            return None
        self._remembered.move_to_end(digest)
        return known.principal

    def _remember(self, digest: bytes, principal: Principal) -> None:
        assert principal.expires_at is not None
        until_at = min(principal.expires_at, self._clock.now() + REMEMBERED_US)
        self._remembered[digest] = _Remembered(principal, until_at, self._version)
        if len(self._remembered) > MOST_REMEMBERED:
            self._remembered.popitem(last=False)
