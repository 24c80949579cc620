"""Who asks: the token of a request, shown to each authenticator in turn.

It stands in the header Authorization, or, for browsers, in the cookie that logging in to the page sets: they send
no header of their own when they go to an address. A cookie is sent whoever makes the browser ask, so with one
every change must come from a page of this very address.

Without authenticators nobody is asked: then the process listens on loopback only, and whoever reaches it runs it.
"""

from collections.abc import Sequence
from urllib.parse import urlsplit

from starlette.requests import Request

from hourhand.core.access import LOCAL, MAX_TOKEN, Principal
from hourhand.errors import HourhandError, NotAllowed, WrongToken
from hourhand.ports.identity import Authenticator

COOKIE = "hourhand_token"
SECURE_COOKIE = f"__Host-{COOKIE}"  # which browsers take over https only, and for no other host
_SCHEME = "bearer"
_SAFE = ("GET", "HEAD", "OPTIONS")


class Identity:
    """Recognises callers. `url` is the address that people use, where the settings name one."""

    def __init__(self, authenticators: Sequence[Authenticator] | None = None, *, url: str = "") -> None:
        self._authenticators = authenticators
        self._own = urlsplit(url).netloc
        self._https_host = urlsplit(url).hostname if url.startswith("https:") else None

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
            token = request.cookies.get(self.cookie(request)) or None
            if token is not None and request.method not in _SAFE:
                self.check_origin(request)
        return None if token is None else await self.recognise(token)

    async def still_knows(self, request: Request) -> bool:
        """Whether who sent a request that lasts may go on: not once the token was revoked or has expired."""
        try:
            return await self.of(request) is not None
        except WrongToken:
            return False
        except HourhandError:
            return True  # who would know does not answer; it is asked again with the next that is told

    async def recognise(self, token: str) -> Principal:
        """Whom a token proves, or WrongToken."""
        for authenticator in self._authenticators or ():
            principal = await authenticator.authenticate(token)
            if principal is not None:
                return principal
        raise WrongToken("the token is not one that this server knows")

    def check_origin(self, request: Request) -> None:
        """NotAllowed for what a browser sends on behalf of another page than ours, or does not say of which."""
        place = urlsplit(request.headers.get("origin", "")).netloc
        if not place or place not in (request.headers.get("host"), self._own):
            raise NotAllowed(
                "a change by a browser that is logged in must come from the page of this address (Origin)"
            )

    def is_https(self, request: Request) -> bool:
        """Whether the browser speaks https, to us or to whoever stands before us."""
        return request.url.scheme == "https" or (
            self._https_host is not None and request.url.hostname == self._https_host
        )

    def cookie(self, request: Request) -> str:
        """The name of the cookie that a browser sends with a request like this."""
        return SECURE_COOKIE if self.is_https(request) else COOKIE


def token_in(request: Request) -> str | None:
    """The bearer token of a request; WrongToken for anything else in its place."""
    given = request.headers.getlist("authorization")
    if not given:
        return None
    scheme, _, token = given[0].partition(" ")
    if len(given) > 1 or scheme.lower() != _SCHEME or not 0 < len(token.strip()) <= MAX_TOKEN:
        raise WrongToken("expected one header Authorization: Bearer … with a token")
    return token.strip()
