"""Which headers a job may give to its HTTP target.

Pure. What carries the message, names the run or signs it is ours to set; the rest is the user's.
Values are often secret, so no fault ever shows one.
"""

import re
from collections.abc import Mapping

from hourhand.core.fault import Fault

MAX_HEADERS = 64
MAX_HEADER_BYTES = 8 * 1024

RESERVED = frozenset(
    {
        "host",
        "content-length",
        "transfer-encoding",
        "connection",
        "keep-alive",
        "proxy-connection",
        "proxy-authorization",
        "te",
        "trailer",
        "upgrade",
        "expect",
        "idempotency-key",
    }
)
RESERVED_PREFIXES = ("webhook-", "hourhand-")

_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}")
_FORBIDDEN_IN_VALUE = re.compile(r"[\x00-\x08\x0a-\x1f\x7f\ud800-\udfff]")


def header_faults(headers: Mapping[str, str], pointer: str = "/target/headers") -> list[Fault]:
    """Everything that is wrong with a job's own headers; an empty list is good."""
    faults = _size_faults(headers, pointer)
    seen: set[str] = set()
    for name, value in headers.items():
        at = f"{pointer}/{_escaped(name)}"
        lowered = name.lower()
        if not _NAME.fullmatch(name):
            expected = "a header name of letters, digits and !#$%&'*+-.^_`|~"
            faults.append(Fault(pointer=at, expected=expected, got=repr(name[:40])))
        elif lowered in RESERVED or lowered.startswith(RESERVED_PREFIXES):
            faults.append(Fault(pointer=at, expected="a header that hourhand does not set itself", got=name))
        elif lowered in seen:
            expected = "each header once, upper and lower case being the same"
            faults.append(Fault(pointer=at, expected=expected, got=name))
        seen.add(lowered)
        if _FORBIDDEN_IN_VALUE.search(value):
            expected = "a value without CR, LF, NUL and other control characters"
            faults.append(Fault(pointer=at, expected=expected))
    return faults


def _size_faults(headers: Mapping[str, str], pointer: str) -> list[Fault]:
    faults = []
    if len(headers) > MAX_HEADERS:
        expected = f"at most {MAX_HEADERS} headers"
        faults.append(Fault(pointer=pointer, expected=expected, got=str(len(headers))))
    size_bytes = sum(
        len(name.encode(errors="replace")) + len(value.encode(errors="replace"))
        for name, value in headers.items()
    )
    if size_bytes > MAX_HEADER_BYTES:
        expected = f"at most {MAX_HEADER_BYTES:,} bytes of headers"
        faults.append(Fault(pointer=pointer, expected=expected, got=f"{size_bytes:,} bytes"))
    return faults


def _escaped(name: str) -> str:
    """The name as a step of a JSON pointer, cut short and without what cannot be printed."""
    shown = name[:128].encode("ascii", "backslashreplace").decode()
    return shown.replace("~", "~0").replace("/", "~1")
