"""How many requests a user may make: counted once the caller is known, and told in the headers of every answer.

The fields are those of the IETF's draft, RateLimit-Policy and RateLimit. Whoever counts may be away; then requests
pass, since a limit that nobody can count is a nuisance and an API that refuses everything an outage.
"""

from prometheus_client import CollectorRegistry, Counter
from starlette.types import Scope

from hourhand.clock import Clock
from hourhand.core.access import Principal, Via
from hourhand.core.bucket import Limit, Verdict
from hourhand.core.instant import SECOND_US
from hourhand.errors import Overloaded, Unavailable
from hourhand.ports.limits import Limits

RATE_HEADERS = "hourhand.rate_headers"  # where they stand in a request's ASGI scope
AWAY_US = SECOND_US  # how long nobody asks a counter that did not answer
POLICY = "user"


class RequestLimit:
    """Counts requests by user; those of nobody in particular, on loopback, are not counted."""

    def __init__(
        self, *, limit: Limit | None, limits: Limits | None, clock: Clock, registry: CollectorRegistry
    ) -> None:
        self._limit = limit
        self._limits = limits
        self._clock = clock
        self._away_until = 0
        self._uncounted = Counter(
            "hourhand_requests_uncounted",
            "Requests that passed because whoever counts them was away.",
            registry=registry,
        )

    async def admit(self, principal: Principal | None, scope: Scope) -> None:
        """Count a request; Overloaded where its user has made too many."""
        limit, limits = self._limit, self._limits
        if limit is None or limits is None or principal is None or principal.via is Via.LOCAL:
            return
        if self._clock.now() < self._away_until:
            self._uncounted.inc()
            return
        try:
            verdict = await limits.take(f"requests/{principal.tenant}/{principal.subject}", limit)
        except Unavailable:
            self._away_until = self._clock.now() + AWAY_US
            self._uncounted.inc()
            return
        scope[RATE_HEADERS] = headers_of(limit, verdict)
        if not verdict.allowed:
            wait_s = _seconds(verdict.retry_after_us)
            raise Overloaded(
                f"a user may make {limit.burst:,} requests in {limit.window_s} s; try again in {wait_s} s",
                retry_after_s=wait_s,
            )


def headers_of(limit: Limit, verdict: Verdict) -> dict[str, str]:
    """The limit, and what is left of it."""
    return {
        "ratelimit-policy": f'"{POLICY}";q={limit.burst};w={limit.window_s}',
        "ratelimit": f'"{POLICY}";r={verdict.left};t={limit.refill_s(verdict.left)}',
    }


def _seconds(length_us: int) -> int:
    return max(1, -(-length_us // SECOND_US))
