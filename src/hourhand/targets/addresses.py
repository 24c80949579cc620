"""Which addresses a target may have: public ones, and what the operator allows besides.

Pure. IPv6 is refused unless it is global unicast; IPv4 is public unless a table says otherwise.
`ipaddress.is_global` has gaps (translation prefixes above all), so it only ever refuses more.
"""

import ipaddress
import re
from collections.abc import Iterable, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

import msgspec

Address = IPv4Address | IPv6Address

_NOT_PUBLIC: tuple[tuple[str, str], ...] = (
    ("0.0.0.0/8", "unspecified"),
    ("10.0.0.0/8", "private"),
    ("100.64.0.0/10", "carrier-grade NAT"),
    ("127.0.0.0/8", "loopback"),
    ("168.63.129.16/32", "cloud platform"),
    ("169.254.0.0/16", "link-local"),
    ("172.16.0.0/12", "private"),
    ("192.0.0.0/24", "protocol assignment"),
    ("192.0.2.0/24", "documentation"),
    ("192.88.99.0/24", "6to4 relay"),
    ("192.168.0.0/16", "private"),
    ("198.18.0.0/15", "benchmarking"),
    ("198.51.100.0/24", "documentation"),
    ("203.0.113.0/24", "documentation"),
    ("224.0.0.0/4", "multicast"),
    ("240.0.0.0/4", "reserved"),
    # Within IPv6 global unicast:
    ("2001::/32", "Teredo"),
    ("2001:db8::/32", "documentation"),
    ("2001::/23", "protocol assignment"),
    ("2002::/16", "6to4"),
    ("3fff::/20", "documentation"),
    # Outside of it, refused anyway; here for their names:
    ("::/128", "unspecified"),
    ("::1/128", "loopback"),
    ("::ffff:0:0/96", "IPv4-mapped"),
    ("64:ff9b::/96", "NAT64"),
    ("64:ff9b:1::/48", "NAT64"),
    ("fc00::/7", "private"),
    ("fe80::/10", "link-local"),
    ("fec0::/10", "site-local"),
    ("ff00::/8", "multicast"),
)
_TABLE = tuple((ipaddress.ip_network(network), kind) for network, kind in _NOT_PUBLIC)
_GLOBAL_UNICAST = IPv6Network("2000::/3")
_HOST = re.compile(r"(\*\.)?[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*")
_ENTRY_ALLOWED = "a host name, *.domain, an address or a network, each with an optional :port"


class Allowed(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of the operator's allow-list: a name, a domain's names or a network, on one port or all."""

    host: str = ""  # lower case; ".internal" stands for every name below it
    network: IPv4Network | IPv6Network | None = None
    port: int | None = None

    def covers(self, host: str, address: Address, port: int) -> bool:
        """Whether it lets a call to `host`, at this address and port, pass."""
        if self.port is not None and self.port != port:
            return False
        if self.network is not None:
            return address.version == self.network.version and address in self.network
        return host.endswith(self.host) if self.host.startswith(".") else host == self.host


def why_not_public(address: Address) -> str | None:
    """What kind of address it is where it is not a public one, else None."""
    for network, kind in _TABLE:
        if address.version == network.version and address in network:
            return kind
    if isinstance(address, IPv6Address) and (address not in _GLOBAL_UNICAST or address.scope_id):
        return "not global unicast"
    return None if address.is_global else "not public"


def parse_allowed(entries: Iterable[str]) -> tuple[Allowed, ...]:
    """The operator's allow-list; ValueError names the entry that is none."""
    return tuple(_parse_entry(entry) for entry in entries)


def why_refused(host: str, port: int, addresses: Sequence[str], allowed: Sequence[Allowed]) -> str | None:
    """Why a call may not be made: one address that is neither public nor allowed is enough."""
    name = host.lower().rstrip(".")
    for text in addresses:
        try:
            address = ipaddress.ip_address(text)
        except ValueError:
            return f"{host!r} is no address in the usual spelling"
        kind = why_not_public(address)
        if kind is not None and not any(entry.covers(name, address, port) for entry in allowed):
            of_what = "is" if name == text.lower() else "resolves to"
            return f"{host!r} {of_what} an address that is not public ({kind})"
    return None if addresses else f"{host!r} has no address"


def _parse_entry(entry: str) -> Allowed:
    text = entry.strip().lower()
    host, port = _split_port(text)
    if port is not None and not 1 <= port <= 65_535:
        raise ValueError(f"targets.allow_hosts: {entry!r} has the port {port}, expected 1 to 65535")
    try:
        return Allowed(network=ipaddress.ip_network(host, strict=False), port=port)
    except ValueError:
        pass
    host = host.rstrip(".")
    looks_numeric = host.replace(".", "").replace("/", "").isdigit()
    if looks_numeric or not _HOST.fullmatch(host):
        raise ValueError(f"targets.allow_hosts: {entry!r} is not {_ENTRY_ALLOWED}")
    return Allowed(host=host.removeprefix("*"), port=port)


def _split_port(text: str) -> tuple[str, int | None]:
    """`host:80`, `[::1]:80` and `[fd00::/8]:80` apart; a bare IPv6 address has no port."""
    bracketed = re.fullmatch(r"\[([^\]]*)\](?::(\d{1,6}))?", text)
    if bracketed:
        return bracketed[1], int(bracketed[2]) if bracketed[2] else None
    plain = re.fullmatch(r"([^:]*):(\d{1,6})", text)
    return (plain[1], int(plain[2])) if plain else (text, None)
