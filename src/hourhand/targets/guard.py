"""The SSRF guard: a connector that connects only to addresses it has checked.

A name is resolved once; every address it has must be public or allowed, and the connection is made to
one of exactly these, with Host and SNI kept. What `targets.lookups` remembers is checked again each time, and what
is pooled was checked before, so a name that answers otherwise later changes nothing. Addresses written in the URL go the same way. The policy itself
is in `targets.addresses`; redirects and proxies are for the caller to leave off.
"""

from collections.abc import Sequence
from typing import Any

import aiohttp
from aiohttp.abc import ResolveResult

from hourhand.targets.addresses import Allowed, why_refused


class Refused(Exception):
    """The guard does not let this call go out. Nothing was connected to."""


class GuardedConnector(aiohttp.TCPConnector):
    """Connects where `why_refused` has nothing to say; raises Refused elsewhere, without a packet sent."""

    def __init__(self, allowed: Sequence[Allowed], **options: Any) -> None:
        super().__init__(use_dns_cache=False, **options)  # whoever looks up remembers
        self._allowed = tuple(allowed)

    async def _resolve_host(self, host: str, port: int, traces: Any = None) -> list[ResolveResult]:
        # The one place that names and literal addresses both pass between URL and socket. aiohttp offers
        # no public hook for literals; `require_hook` makes a release without this one fail at start.
        found = await super()._resolve_host(host, port, traces)
        refusal = why_refused(host, port, [result["host"] for result in found], self._allowed)
        if refusal is not None:
            raise Refused(f"{refusal}; the operator can allow it in targets.allow_hosts")
        return found


def require_hook() -> None:
    """Fails closed: without the method that the guard overrides, nothing would be checked."""
    if not callable(getattr(aiohttp.TCPConnector, "_resolve_host", None)):
        raise RuntimeError(f"aiohttp {aiohttp.__version__} has no _resolve_host; the SSRF guard needs it")
