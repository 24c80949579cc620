"""Who asks: the bearer token of a request, shown to each authenticator in turn.

Without authenticators nobody is asked: then the process listens on loopback only, and whoever reaches it runs it.
"""

from collections.abc import Sequence

from starlette.requests import Request

from hourhand.core.access import LOCAL, MAX_TOKEN, Principal
from hourhand.errors import WrongToken
from hourhand.ports.identity import Authenticator

_SCHEME = "bearer"


class Identity:
    """Recognises callers."""

    def __init__(self, authenticators: Sequence[Authenticator] | None = None) -> None:
        self._authenticators = authenticators

    @property
    def asks(self) -> bool:
        """Whether anybody is asked who they are."""
        return self._authenticators is not None

    async def of(self, request: Request) -> Principal | None:
        """Who sent a request; None when it says nothing about that, WrongToken when it says something untrue."""
        if self._authenticators is None:
            return LOCAL
        token = token_in(request)
        if token is None:
            return None
        for authenticator in self._authenticators:
            principal = await authenticator.authenticate(token)
            if principal is not None:
                return principal
        raise WrongToken("the token is not one that this server knows")


def token_in(request: Request) -> str | None:
    """The bearer token of a request; WrongToken for anything else in its place."""
    given = request.headers.getlist("authorization")
    if not given:
        return None
    scheme, _, token = given[0].partition(" ")
    if len(given) > 1 or scheme.lower() != _SCHEME or not 0 < len(token.strip()) <= MAX_TOKEN:
        raise WrongToken("expected one header Authorization: Bearer … with a token")
    return token.strip()
