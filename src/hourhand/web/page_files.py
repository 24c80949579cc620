"""The page's files as they go over the wire: read once from the package, with their types, sums and packed forms.

Assets live under an address that holds a sum over all of them, so browsers may keep them for ever and a new
version has new addresses; modules name one another by relative paths. Which address gets what is `routes.page`'s.
"""

import gzip
import hashlib
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable

import msgspec

ASSETS = "/page"
_TYPES = {
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".html": "text/html; charset=utf-8",
}  # whatever else lies there is not served
_INDEX = "index.html"
_LOGIN = "login.html"
_FIRST_SCRIPT = "theme.js"  # the one classic script; all others are modules


class Asset(msgspec.Struct, frozen=True, kw_only=True):
    """One file, plain and packed."""

    body: bytes
    packed: bytes
    media_type: str
    tag: str


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """The document that every view begins with, and what it loads."""

    index: Asset
    login: str  # the form for those who are not known yet; has places for a message and an address
    assets: Mapping[str, Asset]
    tag: str  # over all of them


@cache
def page() -> Page:
    """The page, read and packed at the first call."""
    found = dict(_walk(files("hourhand.web") / "page", ""))
    index, login = found.pop(_INDEX), found.pop(_LOGIN)
    tag = _sum(b"".join(name.encode() + body for name, body in sorted(found.items())))
    assets = {name: _asset(name, body) for name, body in found.items()}
    return Page(
        index=_asset(_INDEX, _filled(index, tag, found)),
        login=_filled(login, tag, found).decode(),
        assets=assets,
        tag=tag,
    )


def _filled(index: bytes, tag: str, found: Mapping[str, bytes]) -> bytes:
    """The document with addresses that name this version, and all modules announced at once."""
    base = f"{ASSETS}/{tag}"
    modules = sorted(name for name in found if name.endswith(".js") and name != _FIRST_SCRIPT)
    links = "\n".join(f'<link rel="modulepreload" href="{base}/{name}">' for name in modules)
    return index.replace(b"{base}", base.encode()).replace(b"<!-- modules -->", links.encode())


def _asset(name: str, body: bytes) -> Asset:
    return Asset(
        body=body,
        packed=gzip.compress(body, 9, mtime=0),
        media_type=_TYPES["." + name.rpartition(".")[2]],
        tag=f'"{_sum(body)}"',
    )


def _walk(place: Traversable, prefix: str) -> Iterator[tuple[str, bytes]]:
    for entry in place.iterdir():
        if entry.is_dir():
            yield from _walk(entry, f"{prefix}{entry.name}/")
        elif "." + entry.name.rpartition(".")[2] in _TYPES:
            yield f"{prefix}{entry.name}", entry.read_bytes()


def _sum(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()[:16]
