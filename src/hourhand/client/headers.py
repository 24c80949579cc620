"""Which texts of a caller can travel in a header: visible ASCII and blanks.

They are looked at before the HTTP library sees them, since its errors show what it was given. Ours never do: most are
secret, or stand where somebody meant to put a secret.
"""

import re
from collections.abc import Mapping

from hourhand.core.access import TENANT_WORDS, is_tenant
from hourhand.errors import Invalid

_BLANKS = " \t\r\n"  # around a text they are left behind by files and shells, and mean nothing
_SENDABLE = re.compile(r"[\x20-\x7e]+")


def headers_of(token: str | None, tenant: str | None) -> dict[str, str]:
    """What every request carries; Invalid where the token or the tenant cannot be one."""
    headers = {"Accept": "application/json"}
    if token:
        headers["Authorization"] = f"Bearer {sendable('the token (HOURHAND_TOKEN)', token)}"
    if tenant:
        if not is_tenant(tenant):
            raise Invalid(f"the tenant (HOURHAND_TENANT) is not one; expected {TENANT_WORDS}")
        headers["Hourhand-Tenant"] = tenant
    return headers


def given(*texts: str | None) -> str | None:
    """The first text that is one, without the blanks around it."""
    return next((text.strip(_BLANKS) for text in texts if text and text.strip(_BLANKS)), None)


def checked(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers of one request as they are sent."""
    return {name: sendable(name, value) for name, value in headers.items()}


def sendable(what: str, text: str) -> str:
    """The text without blanks around it; Invalid where no header can hold it, or nothing is left."""
    stripped = text.strip(_BLANKS)
    if _SENDABLE.fullmatch(stripped) is None:
        got = "other characters in it" if stripped else "nothing but blanks"
        raise Invalid(f"{what} must be visible ASCII characters, got {got}")
    return stripped
