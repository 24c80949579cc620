"""Published keys (JWKS): fetched from a URL or read from a file, kept for a while, and fetched anew when a token names
one that is not among them.

The URL is the operator's own and may be internal, so the guard of targets does not apply: its server is known by its
certificate (plain http is for loopback), redirects and proxies from the environment are not followed. While it is away
the keys it gave go on for a day: who could have tokens of newer ones, has them from the same server. What it publishes
instead of them counts at once, also where that is nothing.
"""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import aiohttp

from hourhand import __version__
from hourhand.clock import Clock
from hourhand.core.instant import DAY_US, MINUTE_US, SECOND_US
from hourhand.core.url import masked_url
from hourhand.errors import Unavailable
from hourhand.identity.keys import Key, KeySet, NoKeys, Unusable, read_key_set
from hourhand.telemetry import logger

TIMEOUT_S = 5.0  # of one fetch, from lookup to last byte
MAX_BYTES = 256 * 1024
LIFETIME_US = 10 * MINUTE_US  # then they are fetched anew, beside the requests
REFETCH_US = 10 * SECOND_US  # between two fetches, however many unknown keys are named
KEPT_US = DAY_US  # while they cannot be fetched

_HEADERS = {
    "User-Agent": f"hourhand/{__version__}",
    "Accept": "application/jwk-set+json, application/json",
    "Accept-Encoding": "identity",
}

_log = logger("hourhand.identity")


class Unreachable(Exception):
    """The document could not be had; says why."""


class Source(Protocol):
    """Where the document is."""

    shown: str

    async def load(self) -> bytes:
        """The document; Unreachable where it cannot be had."""
        ...


class HttpSource:
    """The document at a URL."""

    def __init__(self, url: str, timeout_s: float = TIMEOUT_S) -> None:
        self._url = url
        self._timeout_s = timeout_s
        self.shown = masked_url(url)

    async def load(self) -> bytes:
        """By one GET on a connection of its own."""
        timeout = aiohttp.ClientTimeout(total=self._timeout_s)
        try:
            async with (
                aiohttp.ClientSession(trust_env=False, timeout=timeout, auto_decompress=False) as session,
                session.get(self._url, allow_redirects=False, headers=_HEADERS) as answer,
            ):
                if answer.status != 200:
                    raise Unreachable(f"it answers with status {answer.status}")
                return await _bounded(answer.content)
        except TimeoutError:
            raise Unreachable(f"no whole answer within {self._timeout_s:g} s") from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise Unreachable(str(error) or type(error).__name__) from None


class FileSource:
    """The document in a file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.shown = str(path)

    async def load(self) -> bytes:
        """On a thread, since a disk may be slow."""
        return await asyncio.to_thread(self.read)

    def read(self) -> bytes:
        """At once, for a process that is about to start."""
        try:
            if not self._path.is_file():
                raise Unreachable("there is no such file")
            with self._path.open("rb") as stream:
                text = stream.read(MAX_BYTES + 1)
        except OSError as error:
            raise Unreachable(error.strerror or str(error)) from None
        if len(text) > MAX_BYTES:
            raise Unreachable(f"it is larger than {MAX_BYTES:,} bytes")
        return text


def source_of(jwks: str) -> HttpSource | FileSource:
    """The source that the setting `auth.jwks` means."""
    if jwks.startswith(("https://", "http://")):
        return HttpSource(jwks)
    return FileSource(Path(jwks.removeprefix("file://")))


async def fetch_key_set(source: Source) -> KeySet:
    """The keys that are published now; Unreachable or Unusable."""
    return read_key_set(await source.load())


class Keyring:
    """The keys of one source, as they were last seen."""

    def __init__(self, source: Source, clock: Clock) -> None:
        self._source = source
        self._clock = clock
        self._keys: tuple[Key, ...] = ()
        self._seen_at: int | None = None  # when the keys were last had
        self._asked_at: int | None = None
        self._flight: asyncio.Task[None] | None = None
        self.version = 0  # grows when the keys are others than before

    async def keys_for(self, algorithm: str, kid: str | None) -> Sequence[Key]:
        """The keys of an algorithm under this name, all of the algorithm where there is none; Unavailable without any."""
        if not self._is_younger(self._seen_at, KEPT_US):
            await self._refetched()
            if not self._is_younger(self._seen_at, KEPT_US):
                raise Unavailable("the keys that tokens are checked with cannot be had right now")
        elif not self._is_younger(self._seen_at, LIFETIME_US):
            self.refetch()
        found = self._named(algorithm, kid)
        if not found and await self._refetched():
            found = self._named(algorithm, kid)
        return found

    def refetch(self) -> asyncio.Task[None] | None:
        """Begin to fetch, unless that was tried a moment ago; what is under way, if anything."""
        if self._flight is not None:
            return self._flight
        if self._is_younger(self._asked_at, REFETCH_US):
            return None
        self._asked_at = self._clock.now()
        self._flight = asyncio.create_task(self._fetch())
        self._flight.add_done_callback(self._landed)
        return self._flight

    async def _refetched(self) -> bool:
        """Wait for a fetch, ours or another's; False where none may be made now."""
        flight = self.refetch()
        if flight is None:
            return False
        await asyncio.shield(flight)  # others wait for it too, whoever goes away
        return True

    async def _fetch(self) -> None:
        try:
            found = await fetch_key_set(self._source)
        except NoKeys as error:
            found = KeySet()
            _log.warning("no key of JWTs is published any more", source=self._source.shown, why=str(error))
        except (Unreachable, Unusable) as error:
            _log.warning(
                "the keys of JWTs cannot be had",
                source=self._source.shown,
                why=str(error),
                kept=len(self._keys),
            )
            return
        self._seen_at = self._clock.now()
        if _told(found.keys) == _told(self._keys):
            return
        self._keys = found.keys
        self.version += 1
        _log.info(
            "keys of JWTs",
            source=self._source.shown,
            usable=len(found.keys),
            left_out=list(found.left_out[:5]),
        )

    def _landed(self, flight: asyncio.Task[None]) -> None:
        self._flight = None

    def _named(self, algorithm: str, kid: str | None) -> list[Key]:
        return [one for one in self._keys if one.algorithm == algorithm and kid in (None, one.kid)]

    def _is_younger(self, at: int | None, age_us: int) -> bool:
        """Whether that was less long ago; what lies ahead, after the clock was set back, was long ago."""
        return at is not None and 0 <= self._clock.now() - at < age_us


async def _bounded(stream: aiohttp.StreamReader) -> bytes:
    """All of a body, if it is no more than that."""
    text = b""
    async for piece in stream.iter_any():
        text += piece
        if len(text) > MAX_BYTES:
            raise Unreachable(f"it is larger than {MAX_BYTES:,} bytes")
    return text


def _told(keys: Sequence[Key]) -> list[tuple[str, str | None, object]]:
    """What tells keys apart."""
    return [(one.algorithm, one.kid, one.material) for one in keys]
