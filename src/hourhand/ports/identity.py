"""Authenticators: who a bearer token belongs to.

Contract: `authenticate` answers the principal that a token proves, None for a token of another kind, and raises
WrongToken for one of its own kind that proves nothing (forged, expired, revoked, for somebody else). What it raises
or logs holds no part of the token. Unavailable where whoever would know does not answer.
"""

from typing import Protocol

from hourhand.core.access import Principal


class Authenticator(Protocol):
    """Recognises one kind of token."""

    async def authenticate(self, token: str) -> Principal | None:
        """Who this is; None when the token is of another kind."""
        ...
