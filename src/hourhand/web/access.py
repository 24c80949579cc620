"""Who may use a route: each says which role it needs, and is asked before anything of a request is looked at.

A route that says nothing needs a viewer to read and an editor for everything else, so a new one is never open
by mistake. Who somebody is, is `web.identity`'s.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec
from starlette.requests import Request

from hourhand.core.access import TENANT_WORDS, Principal, Role, tenant_for
from hourhand.core.fault import Fault
from hourhand.errors import Invalid, NotAllowed, WrongToken

ROLE = "x-hourhand-role"  # which one an operation needs, in the description of the API
CALLER = "hourhand.caller"  # where the caller stands in a request's ASGI scope
TENANT_HEADER = "Hourhand-Tenant"
_NEEDED = "__hourhand_access__"
_READING = {"GET", "HEAD"}

Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])


class Access(msgspec.Struct, frozen=True, kw_only=True):
    """What a route asks of its callers. No role: it is open to everybody."""

    role: Role | None
    of_system: bool = False  # it tells or changes what belongs to no tenant


class Caller(msgspec.Struct, frozen=True, kw_only=True):
    """Who asks, and whose jobs it is about."""

    principal: Principal
    tenant: str


OPEN = Access(role=None)


def needs(role: Role, *, of_system: bool = False) -> Callable[[Endpoint], Endpoint]:
    """Mark an endpoint with the role that it needs; `of_system`: and it is not for tenants."""
    return _mark(Access(role=role, of_system=of_system))


def open_to_all(endpoint: Endpoint) -> Endpoint:
    """Mark an endpoint as one that asks for no login: health, or what has a token of its own."""
    return _mark(OPEN)(endpoint)


def access_of(endpoint: Callable[..., Any], methods: set[str]) -> Access:
    """What an endpoint asks of its callers."""
    marked: Access | None = getattr(endpoint, _NEEDED, None)
    if marked is not None:
        return marked
    return Access(role=Role.VIEWER if methods <= _READING else Role.EDITOR)


def admitted(principal: Principal | None, access: Access, request: Request) -> Caller:
    """The caller of a route that asks for a role; WrongToken or NotAllowed for who may not use it."""
    if principal is None:
        raise WrongToken("this needs a token: Authorization: Bearer …")
    named = request.headers.getlist(TENANT_HEADER)
    if len(named) > 1:  # whoever stands between us may go by another of them than we
        fault = Fault(pointer="", expected=f"{TENANT_HEADER} once", got=f"{len(named)} of them")
        raise Invalid(f"{TENANT_HEADER}: expected one tenant, got {len(named)}", [fault])
    tenant = tenant_for(principal, named[0] if named else None)
    if tenant is None:
        raise NotAllowed(
            f"{TENANT_HEADER}: expected {TENANT_WORDS}"
            if principal.runs_the_system
            else f"{TENANT_HEADER} names another tenant than the token's"
        )
    assert access.role is not None
    if not principal.role.covers(access.role):
        raise NotAllowed(f"this needs the role {access.role}; the token has {principal.role}")
    if access.of_system and not principal.runs_the_system:
        raise NotAllowed("this belongs to those who run the system; the token is for one tenant")
    return Caller(principal=principal, tenant=tenant)


def _mark(access: Access) -> Callable[[Endpoint], Endpoint]:
    def mark(endpoint: Endpoint) -> Endpoint:
        setattr(endpoint, _NEEDED, access)
        return endpoint

    return mark
