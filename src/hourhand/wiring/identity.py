"""Builds what recognises callers, by `auth.mode`. The adapter of JWTs is an extra, imported when needed."""

import asyncio
from importlib import import_module
from typing import TYPE_CHECKING, Any

from hourhand.clock import Clock
from hourhand.config import Settings
from hourhand.core.claims import Expected
from hourhand.errors import CannotStart
from hourhand.ports.identity import Authenticator
from hourhand.ports.store import Store
from hourhand.services.tokens import TokenAuthenticator

if TYPE_CHECKING:  # loaded for those who use it
    from hourhand.identity.jwt import JwtAuthenticator


def build_authenticators(settings: Settings, store: Store, clock: Clock) -> list[Authenticator] | None:
    """Who recognises callers, in the order in which they are asked; None where nobody is asked."""
    if not settings.auth.asks:
        return None
    # API tokens count in both modes, and first: they need no server of others.
    found: list[Authenticator] = [TokenAuthenticator(store=store, clock=clock)]
    if settings.auth.mode == "jwt":
        found.append(_jwt(settings, clock))
    return found


def check_identity(settings: Settings) -> None:
    """CannotStart where callers could not be recognised: a missing package, a file of keys that has none."""
    if settings.auth.mode != "jwt":
        return
    keys, jwks = jwt_adapter("keys"), jwt_adapter("jwks")
    _secrets(settings)
    source = jwks.source_of(settings.auth.jwks) if settings.auth.jwks else None
    if not isinstance(source, jwks.FileSource):
        return  # a server may be away now and come back; the keys are asked for again
    try:
        keys.read_key_set(source.read())
    except (jwks.Unreachable, keys.Unusable) as error:
        raise CannotStart(f"auth.jwks: {source.shown}: {error}") from None


def jwt_adapter(name: str) -> Any:
    """A module of the adapter of JWTs; its packages are an extra."""
    try:
        return import_module(f"hourhand.identity.{name}")
    except ImportError as error:
        raise CannotStart(
            f"auth.mode is jwt, but a package for JWTs is missing ({error}); "
            "install it with: pip install 'hourhand[jwt]'"
        ) from error


def _jwt(settings: Settings, clock: Clock) -> "JwtAuthenticator":
    auth = settings.auth
    ring = None
    if auth.jwks:
        jwks = jwt_adapter("jwks")
        ring = jwks.Keyring(jwks.source_of(auth.jwks), clock)
        asyncio.get_running_loop().call_soon(ring.refetch)  # so that the first who asks need not wait
    made: JwtAuthenticator = jwt_adapter("jwt").JwtAuthenticator(
        expected=Expected(issuer=auth.issuer, audience=auth.audience),
        secrets=_secrets(settings),
        ring=ring,
        clock=clock,
    )
    return made


def _secrets(settings: Settings) -> list[Any]:
    keys = jwt_adapter("keys")
    try:
        return [keys.secret_key(secret) for secret in settings.auth.secret]
    except keys.Unusable as error:
        raise CannotStart(f"auth.secret: {error}") from None
