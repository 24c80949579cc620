"""How the value of a setting is written: parse it, say what is allowed, and show it again.

A kind raises ValueError with what it expected; who wrote the value, and where, is added by `loading`.
TOML gives numbers and lists as such, the environment gives text: both are read here.
"""

import ipaddress
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import urlsplit

from hourhand.core.bucket import Limit
from hourhand.core.instant import DAY_US, SECOND_US, format_duration, parse_duration
from hourhand.core.secrecy import MIN_KEY_BYTES, why_weak
from hourhand.core.signature import MIN_SECRET_BYTES, parse_secret
from hourhand.core.url import masked_store_url, masked_url

_SIZE = re.compile(r"(\d{1,12})\s*(B|KiB|MiB|GiB)?", re.ASCII)
_SIZE_UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
_LISTEN = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([^\s:\[\]/]+)):(\d{1,5})", re.ASCII)
_STORE_URL = re.compile(r"[a-z][a-z0-9+]*:\S+", re.ASCII)
_POSTGRES_URL = re.compile(r"postgres(?:ql)?://\S+", re.ASCII)
_LEASES_URL = re.compile(
    r"(?:rediss?://(?:[^\s@/?#]*@)?[^\s@/?#]+(?:/\d*)?(?:\?\S*)?|etcds?://(?:[^\s@/?#]*@)?[^\s@/?#]+/?)",
    re.ASCII,
)
_REDIS_URL = re.compile(r"rediss?://(?:[^\s@/?#]*@)?[^\s@/?#]+(?:/\d*)?(?:\?\S*)?", re.ASCII)
_RATE = re.compile(r"(\d{1,7})\s*/\s*(\S{1,20})", re.ASCII)
_BEYOND_HOST = re.compile(r"^([a-z]+://)(?:[^/?#]*@)?([^/?#]*).*$", re.DOTALL)
_BETWEEN_URLS = re.compile(r"\s*,?\s*(?=postgres(?:ql)?://)|\s+", re.ASCII)  # a URL may name hosts by commas

MASK = "***"
FEWEST_DISTINCT_BYTES = 8
_MOST_TOKEN_SECRETS = 2
# From documentation and examples: whoever reads those can sign too.
KNOWN_SECRETS = frozenset(
    {
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD",
        "whsec_plJ3nmyCDGBKInavdOK15jsl",
    }
)


class Kind(Protocol):
    """One way of writing a value."""

    @property
    def allowed(self) -> str:
        """What is expected, for errors and help."""
        ...

    def parse(self, raw: object) -> object:
        """The value; ValueError where it is none."""
        ...

    def show(self, value: object) -> str:
        """The value for people; secrets masked."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """Free text of a certain look."""

    allowed: str
    matches: Callable[[str], bool]

    def parse(self, raw: object) -> str:
        """As it is."""
        if not isinstance(raw, str) or not self.matches(raw):
            raise ValueError(self.allowed)
        return raw

    def show(self, value: object) -> str:
        """With a password in a URL masked."""
        return masked_url(str(value))


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretUrl(Text):
    """A URL whose path is what proves who asks; empty where the text may be."""

    def show(self, value: object) -> str:
        """Its host alone."""
        return _BEYOND_HOST.sub(rf"\1\2/{MASK}", str(value), count=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Whole:
    """A whole number in a range."""

    low: int
    high: int

    @property
    def allowed(self) -> str:
        """The range."""
        return f"a whole number from {self.low:,} to {self.high:,}"

    def parse(self, raw: object) -> int:
        """From a number or its digits."""
        number = int(raw) if isinstance(raw, str) and re.fullmatch(r"\d{1,18}", raw, re.ASCII) else raw
        if isinstance(number, bool) or not isinstance(number, int) or not self.low <= number <= self.high:
            raise ValueError(self.allowed)
        return number

    def show(self, value: object) -> str:
        """Digits."""
        return str(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Duration:
    """A length of time, kept in microseconds."""

    low_us: int
    high_us: int

    @property
    def allowed(self) -> str:
        """The range."""
        return f"a duration from {format_duration(self.low_us)} to {format_duration(self.high_us)}"

    def parse(self, raw: object) -> int:
        """From text such as "1h30m" or a number of seconds."""
        try:
            length_us = parse_duration(raw) if isinstance(raw, str | int | float) else -1
        except ValueError:
            raise ValueError(self.allowed) from None
        if not self.low_us <= length_us <= self.high_us:
            raise ValueError(self.allowed)
        return length_us

    def show(self, value: object) -> str:
        """As it would be written."""
        return format_duration(value) if isinstance(value, int) else str(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """A number of bytes."""

    low: int
    high: int

    @property
    def allowed(self) -> str:
        """The range."""
        return f'a size from {_format_size(self.low)} to {_format_size(self.high)}, such as "64KiB"'

    def parse(self, raw: object) -> int:
        """From text with a unit, or a number of bytes."""
        match = _SIZE.fullmatch(str(raw).strip()) if isinstance(raw, str | int) else None
        size = int(match[1]) * _SIZE_UNITS[match[2] or "B"] if match else -1
        if not self.low <= size <= self.high:
            raise ValueError(self.allowed)
        return size

    def show(self, value: object) -> str:
        """In the largest unit that is exact."""
        return _format_size(value) if isinstance(value, int) else str(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class OneOf:
    """One of a few words."""

    words: tuple[str, ...]

    @property
    def allowed(self) -> str:
        """The words."""
        return "one of " + ", ".join(self.words)

    def parse(self, raw: object) -> str:
        """Whatever the case it is written in."""
        word = raw.strip().lower() if isinstance(raw, str) else ""
        if word not in self.words:
            raise ValueError(self.allowed)
        return word

    def show(self, value: object) -> str:
        """The word."""
        return str(value)


@dataclass(frozen=True, slots=True)
class Switch:
    """On or off."""

    allowed: str = "true or false"

    def parse(self, raw: object) -> bool:
        """From a boolean or its word; also 1 and 0, on and off, yes and no."""
        word = raw.strip().lower() if isinstance(raw, str) else raw
        if isinstance(word, bool):
            return word
        if word in ("true", "1", "on", "yes"):
            return True
        if word in ("false", "0", "off", "no", ""):
            return False
        raise ValueError(self.allowed)

    def show(self, value: object) -> str:
        """The word."""
        return "true" if value else "false"


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """A list; in the environment separated by commas or spaces."""

    allowed: str
    matches: Callable[[str], bool]
    fewest: int = 0

    def parse(self, raw: object) -> tuple[str, ...]:
        """Each once, in the order given."""
        words = _listed(raw)
        if words is None or len(words) < self.fewest or not all(map(self.matches, words)):
            raise ValueError(self.allowed)
        return tuple(dict.fromkeys(words))

    def show(self, value: object) -> str:
        """Separated by commas."""
        return ", ".join(value) if isinstance(value, tuple) else str(value)


@dataclass(frozen=True, slots=True)
class Listen:
    """Host and port, kept as text that is known to have both."""

    allowed: str = "host:port, such as 127.0.0.1:7070 or [::1]:7070"

    def parse(self, raw: object) -> str:
        """As it is, once it is known to be one."""
        match = _LISTEN.fullmatch(raw.strip()) if isinstance(raw, str) else None
        if match is None or int(match[3]) > 65_535 or (match[1] and not _is_address(match[1])):
            raise ValueError(self.allowed)
        return match[0]

    def show(self, value: object) -> str:
        """The text."""
        return str(value)


@dataclass(frozen=True, slots=True)
class OptionalListen:
    """Host and port, or empty."""

    allowed: str = "empty, or host:port, such as 127.0.0.1:7071"

    def parse(self, raw: object) -> str:
        """As it is, once it is known to be one."""
        if isinstance(raw, str) and not raw.strip():
            return ""
        try:
            return Listen().parse(raw)
        except ValueError:
            raise ValueError(self.allowed) from None

    def show(self, value: object) -> str:
        """The text."""
        return str(value)


@dataclass(frozen=True, slots=True)
class StoreUrl:
    """The URL of a store. What it may be beyond its look is for the store to judge."""

    allowed: str = "a URL such as sqlite:///./hourhand.db or postgres://user:password@host/database"

    def parse(self, raw: object) -> str:
        """As it is."""
        if not isinstance(raw, str) or not _STORE_URL.fullmatch(raw):
            raise ValueError(self.allowed)
        return raw

    def show(self, value: object) -> str:
        """With its password masked."""
        return masked_store_url(str(value))


@dataclass(frozen=True, slots=True)
class StoreUrls:
    """URLs of PostgreSQL databases, each once; in the environment separated by spaces or commas."""

    allowed: str = "URLs such as postgres://user:password@host/database, each once"

    def parse(self, raw: object) -> tuple[str, ...]:
        """In the order given."""
        urls = [one for one in _BETWEEN_URLS.split(raw) if one] if isinstance(raw, str) else raw
        if not isinstance(urls, list | tuple) or len(set(map(str, urls))) < len(urls):
            raise ValueError(self.allowed)
        if not all(isinstance(one, str) and _POSTGRES_URL.fullmatch(one) for one in urls):
            raise ValueError(self.allowed)
        return tuple(urls)

    def show(self, value: object) -> str:
        """With passwords masked."""
        return ", ".join(map(masked_store_url, value)) if isinstance(value, tuple) else MASK


@dataclass(frozen=True, slots=True)
class LeasesUrl:
    """The URL of a lease server, or empty."""

    allowed: str = (
        "empty, or a URL such as redis://:password@host:6379/0 or etcd://user:password@host:2379,host2:2379; "
        "rediss:// and etcds:// for TLS"
    )

    def parse(self, raw: object) -> str:
        """As it is."""
        if not isinstance(raw, str) or (raw and not _LEASES_URL.fullmatch(raw)):
            raise ValueError(self.allowed)
        return raw

    def show(self, value: object) -> str:
        """With its password masked."""
        return masked_store_url(str(value)) if value else ""


@dataclass(frozen=True, slots=True)
class TokenSecrets:
    """Secrets of JWTs, the newest first; two while one is being replaced. Never shown."""

    allowed: str = (
        f"at most two secrets of at least {MIN_KEY_BYTES} random bytes, without spaces and commas, "
        "such as `openssl rand -hex 32` prints"
    )

    def parse(self, raw: object) -> tuple[str, ...]:
        """Each checked: long enough, not from an example, not a word or a pattern."""
        secrets = _listed(raw)
        if secrets is None or len(set(secrets)) > _MOST_TOKEN_SECRETS:
            raise ValueError(self.allowed)
        for weakness in filter(None, map(why_weak, secrets)):
            raise ValueError(f"{self.allowed}; one is weak: {weakness}")
        return tuple(dict.fromkeys(secrets))

    def show(self, value: object) -> str:
        """Only how many there are."""
        return ", ".join([MASK] * len(value)) if isinstance(value, tuple) else MASK


@dataclass(frozen=True, slots=True)
class KeysPlace:
    """Where public keys are published: a URL whose server a certificate vouches for, or a file; or empty."""

    allowed: str = (
        "empty, an https:// URL such as https://id.example.com/.well-known/jwks.json (http:// on loopback only), "
        "or the path of a file"
    )

    def parse(self, raw: object) -> str:
        """As it is."""
        if not isinstance(raw, str) or (raw and not _is_keys_place(raw)):
            raise ValueError(self.allowed)
        return raw

    def show(self, value: object) -> str:
        """As it is; it has no password."""
        return masked_url(str(value))


@dataclass(frozen=True, slots=True)
class RedisUrl:
    """The URL of a Redis, or empty."""

    allowed: str = "empty, or a URL such as redis://:password@host:6379/0; rediss:// for TLS"

    def parse(self, raw: object) -> str:
        """As it is."""
        if not isinstance(raw, str) or (raw and not _REDIS_URL.fullmatch(raw)):
            raise ValueError(self.allowed)
        return raw

    def show(self, value: object) -> str:
        """With its password masked."""
        return masked_store_url(str(value)) if value else ""


@dataclass(frozen=True, slots=True)
class Rate:
    """So many in a time, all of them at once if need be; empty or 0: no limit."""

    allowed: str = 'empty, or so many in a time of up to a day, such as "1000/10s" or "100/s"'

    def parse(self, raw: object) -> Limit | None:
        """From text such as "1000/10s"."""
        if isinstance(raw, Limit) or raw is None:
            return raw
        text = str(raw).strip() if isinstance(raw, str | int) else "?"
        if text in ("", "0"):
            return None
        found = _RATE.fullmatch(text)
        try:
            window_us = parse_duration(found[2] if found[2][0].isdigit() else f"1{found[2]}") if found else 0
            if not found or not 1_000 <= window_us <= DAY_US:
                raise ValueError
            return Limit(burst=int(found[1]), per_s=int(found[1]) * SECOND_US / window_us)
        except ValueError:
            raise ValueError(self.allowed) from None

    def show(self, value: object) -> str:
        """As it would be written."""
        if not isinstance(value, Limit):
            return ""
        return f"{value.burst}/{format_duration(round(value.burst / value.per_s * SECOND_US))}"


@dataclass(frozen=True, slots=True)
class Secrets:
    """Signing secrets, the newest first; several while one is being replaced. Never shown."""

    allowed: str = f"whsec_ and the base64 of at least {MIN_SECRET_BYTES} random bytes"

    def parse(self, raw: object) -> tuple[str, ...]:
        """Each checked: long enough, not from an example, not one byte again and again."""
        secrets = _listed(raw)
        if secrets is None:
            raise ValueError(self.allowed)
        for secret in secrets:
            key = _key_of(secret, self.allowed)
            if secret in KNOWN_SECRETS or len(set(key)) < FEWEST_DISTINCT_BYTES:
                raise ValueError(f"{self.allowed}; this one is well known or easily guessed")
        return tuple(dict.fromkeys(secrets))

    def show(self, value: object) -> str:
        """Only how many there are."""
        return ", ".join([MASK] * len(value)) if isinstance(value, tuple) else MASK


def is_postgres(url: str) -> bool:
    """Whether a store URL names a PostgreSQL database."""
    return _POSTGRES_URL.fullmatch(url) is not None


def split_listen(listen: str) -> tuple[str, int]:
    """Host, without brackets, and port of a `Listen` value."""
    host, _, port = listen.rpartition(":")
    return host.strip("[]"), int(port)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach it."""
    return ipaddress.ip_address(host).is_loopback if _is_address(host) else host.lower() == "localhost"


def is_network(text: str) -> bool:
    """Whether this is an address or a network of them."""
    try:
        ipaddress.ip_network(text)
    except ValueError:
        return False
    return True


def _is_keys_place(text: str) -> bool:
    if "://" not in text or text.startswith("file://"):
        path = text.removeprefix("file://")
        return bool(path) and path.isprintable() and path == path.strip()
    try:
        parts = urlsplit(text)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        return False
    if not host or parts.username is not None or not text.isprintable() or " " in text:
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and is_loopback(host))


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _listed(raw: object) -> Sequence[str] | None:
    if isinstance(raw, str):
        return [word for word in re.split(r"[,\s]+", raw) if word]
    if isinstance(raw, list | tuple) and all(isinstance(word, str) for word in raw):
        return [str(word).strip() for word in raw]
    return None


def _key_of(secret: str, allowed: str) -> bytes:
    try:
        return parse_secret(secret)
    except ValueError:
        raise ValueError(allowed) from None  # the reason is the same, and nothing of the secret is shown


def _format_size(size: int) -> str:
    for unit, length in reversed(_SIZE_UNITS.items()):
        if size and size % length == 0:
            return f"{size // length}{unit}"
    return f"{size}B"
