"""The shape of a URL that an HTTP target may have, and how URLs are shown to people.

Pure and about spelling only. Whether the address behind it may be called is decided at connect time
by the targets' guard, from the address that is really connected to.
"""

import re
from urllib.parse import urlsplit

from hourhand.core.fault import Fault

MAX_URL = 2_048

_FORBIDDEN = re.compile(r"[\x00-\x20\x7f\\\ud800-\udfff]")
_PASSWORD = re.compile(r"^([^:/?#]*://[^:/?#]*):[^/?#]*@")
_STORE_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_STORE_PASSWORD = re.compile(r"^([^:/?#]*://[^:]*):.*@", re.DOTALL)
_STORE_NO_PORT = re.compile(
    r"^([^:/?#]*://[^:@/?#\[]*):(?!\d{1,5}(?:[,/?#]|$))[^@]*$"
)  # a password without its host
_PASSWORD_PARAMETER = re.compile(r"([?&](?:ssl)?password=)[^&#]*", re.IGNORECASE)
_EXPECTED = "a URL such as https://example.com/path"


def url_faults(url: str, pointer: str = "/target/url") -> list[Fault]:
    """Everything that is wrong with the spelling of a target's URL; an empty list is good."""
    if len(url) > MAX_URL:
        return [
            Fault(pointer=pointer, expected=f"at most {MAX_URL:,} characters", got=f"{len(url):,} characters")
        ]
    if _FORBIDDEN.search(url):
        return [Fault(pointer=pointer, expected="no spaces, control characters or backslashes", got="some")]
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        return [Fault(pointer=pointer, expected=_EXPECTED, got=str(error))]
    if parts.scheme not in ("http", "https"):
        return [Fault(pointer=pointer, expected="http:// or https://", got=parts.scheme or "no scheme")]
    if not parts.hostname:
        return [Fault(pointer=pointer, expected=_EXPECTED, got="no host")]
    if port == 0:
        return [Fault(pointer=pointer, expected="a port from 1 to 65535", got="0")]
    return []


def masked_url(url: str) -> str:
    """The URL with its password hidden; safe in errors, logs and pages."""
    return _PASSWORD.sub(r"\1:***@", url, count=1)


def masked_store_url(url: str) -> str:
    """The URL of a database with its passwords hidden, also where they are not escaped as they should be."""
    if url.startswith("sqlite:"):  # a path, where any character may stand
        return url
    if not _STORE_SCHEME.match(url):  # then nobody knows where a password would stand
        return "a value that is not a URL"
    masked = _STORE_NO_PORT.sub(r"\1:***", _STORE_PASSWORD.sub(r"\1:***@", url, count=1), count=1)
    return _PASSWORD_PARAMETER.sub(r"\1***", masked)
