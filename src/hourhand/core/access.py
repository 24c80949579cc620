"""Who may do what: roles, whoever asks, and names of tenants. How somebody is recognised is not decided here."""

import re
from enum import StrEnum

import msgspec

from hourhand.core.model import DEFAULT_TENANT

EVERY_TENANT = "*"  # of those who run the system: they name the tenant with each request
MAX_SUBJECT = 200
MAX_TOKEN = 8_192  # characters of a bearer token of any kind
_TENANT = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")
TENANT_WORDS = "a tenant of 1 to 63 small letters, digits, dots, dashes and underscores, such as acme"


class Role(StrEnum):
    """What somebody may do; each may do all that those before it may."""

    VIEWER = "viewer"  # read
    OPERATOR = "operator"  # pause, resume, run, skip, cancel, requeue
    EDITOR = "editor"  # create, change, delete
    ADMIN = "admin"  # tokens, quotas, who did what

    def covers(self, needed: "Role") -> bool:
        """Whether whoever has this role may do what needs that one."""
        return _RANKS[self] >= _RANKS[needed]


class Via(StrEnum):
    """How somebody was recognised."""

    LOCAL = "local"  # not at all: the process listens on loopback only
    TOKEN = "token"  # noqa: S105 - a word, no secret
    JWT = "jwt"


class Principal(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody who asks, as far as it is known."""

    subject: str
    tenant: str
    role: Role
    via: Via
    expires_at: int | None = None  # until when this holds, where that is known

    @property
    def runs_the_system(self) -> bool:
        """Whether this is nobody's tenant but the operator of all."""
        return self.tenant == EVERY_TENANT


LOCAL = Principal(subject="local", tenant=EVERY_TENANT, role=Role.ADMIN, via=Via.LOCAL)
_RANKS = {role: rank for rank, role in enumerate(Role)}


def is_tenant(name: str) -> bool:
    """Whether this can be the name of a tenant."""
    return _TENANT.fullmatch(name) is not None


def tenant_for(principal: Principal, asked: str | None) -> str | None:
    """Whose jobs a request is about; None where the principal may not act for whom it names."""
    if not principal.runs_the_system:
        return principal.tenant if asked in (None, principal.tenant) else None
    if asked is None:
        return DEFAULT_TENANT
    return asked if is_tenant(asked) else None
