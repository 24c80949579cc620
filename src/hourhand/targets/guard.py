"""The SSRF guard: a connector that connects only to addresses it has checked.

A name is resolved once; every address it has must be public or allowed, and the connection is made to
one of exactly these, with Host and SNI kept. What is pooled or cached was checked before, so a name that
answers otherwise later changes nothing. Addresses written in the URL go the same way. The policy itself
is in `targets.addresses`; redirects and proxies are for the caller to leave off.
"""

import socket
from collections.abc import Sequence
from typing import Any

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult

from hourhand.targets.addresses import Allowed, why_refused
from hourhand.targets.threads import Threads

_NUMERIC = socket.AI_NUMERICHOST | socket.AI_NUMERICSERV


class Refused(Exception):
    """The guard does not let this call go out. Nothing was connected to."""


class GuardedConnector(aiohttp.TCPConnector):
    """Connects where `why_refused` has nothing to say; raises Refused elsewhere, without a packet sent."""

    def __init__(self, allowed: Sequence[Allowed], **options: Any) -> None:
        super().__init__(**options)
        self._allowed = tuple(allowed)

    async def _resolve_host(self, host: str, port: int, traces: Any = None) -> list[ResolveResult]:
        # The one place that names and literal addresses both pass between URL and socket. aiohttp offers
        # no public hook for literals; `require_hook` makes a release without this one fail at start.
        found = await super()._resolve_host(host, port, traces)
        refusal = why_refused(host, port, [result["host"] for result in found], self._allowed)
        if refusal is not None:
            raise Refused(f"{refusal}; the operator can allow it in targets.allow_hosts")
        return found


class SystemResolver(AbstractResolver):
    """Asks the system's resolver on threads of its own, so that a slow lookup holds up nothing else."""

    def __init__(self, threads: Threads) -> None:
        self._threads = threads

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """Every address of a name; OSError where it has none."""

        def look_up() -> list[Any]:
            try:
                return socket.getaddrinfo(host, port, family=family, type=socket.SOCK_STREAM)
            except UnicodeError:
                raise socket.gaierror(socket.EAI_NONAME, "it is no host name") from None

        answers = await self._threads.run(look_up, label=f"lookup of {host}")
        return [
            ResolveResult(
                hostname=host,
                host=_address_text(sockaddr),
                port=port,
                family=found_family,
                proto=proto,
                flags=_NUMERIC,
            )
            for found_family, _, proto, _, sockaddr in answers
        ]

    async def close(self) -> None:
        """Ends the idle threads."""
        self._threads.close()


def require_hook() -> None:
    """Fails closed: without the method that the guard overrides, nothing would be checked."""
    if not callable(getattr(aiohttp.TCPConnector, "_resolve_host", None)):
        raise RuntimeError(f"aiohttp {aiohttp.__version__} has no _resolve_host; the SSRF guard needs it")


def _address_text(sockaddr: tuple[Any, ...]) -> str:
    scope = f"%{sockaddr[3]}" if len(sockaddr) > 3 and sockaddr[3] else ""
    return f"{sockaddr[0]}{scope}" if "%" not in sockaddr[0] else sockaddr[0]
