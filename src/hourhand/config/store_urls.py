"""Whether a store can be made from a URL, judged by its spelling alone, in the same words for everybody.

`hourhand check` finds with it what a start would refuse. Whether anything answers there is for the store to
find out. Nothing here repeats a password.
"""

import re

from hourhand.config.kinds import is_postgres
from hourhand.core.url import masked_store_url

# User and password, then hosts with their ports: what drivers do not complain of in words for people.
_HOST = r"(?:\[[0-9A-Fa-f:.]+\]|[^\s:@/?#\[\],]*)(?::\d{1,5})?"
_HOSTS = re.compile(rf"[a-z]+://(?:[^\s@/?#]*@)?{_HOST}(?:,{_HOST})*(?:[/?]\S*)?", re.ASCII)
_EXPECTED = "expected sqlite:///FILE or postgres://user:password@host:5432/database"


def store_url_fault(url: str) -> str | None:
    """Why there is no store for a URL; None where there is one."""
    if is_postgres(url):
        return None if _HOSTS.fullmatch(url) else _not_hosts(url)
    scheme, separator, rest = url.partition("://")
    if scheme == "sqlite" and rest[:1] == "/" and rest[1:]:
        return None
    if scheme.partition(":")[0] == "sqlite":
        return "a sqlite URL names no file; expected sqlite:///FILE"
    return f"no store for {masked_store_url(url) if separator else 'a value that is not a URL'}; {_EXPECTED}"


def _not_hosts(url: str) -> str:
    return (
        f"{masked_store_url(url)}: expected a URL such as postgres://user:password@host:5432/database; "
        "in user and password write special characters as %40 for @, %2F for /, %3A for :"
    )
