"""Builds what counts requests: the process, its store, or the Redis that `limits.url` names."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from hourhand.clock import Clock
from hourhand.config import Settings
from hourhand.core.quota import Quota
from hourhand.core.url import masked_store_url
from hourhand.errors import CannotStart
from hourhand.limits.local import LocalLimits
from hourhand.limits.shared import SharedLimits
from hourhand.ports.limits import Limits
from hourhand.ports.store import Store

if TYPE_CHECKING:  # loaded for those who use it
    from redis.asyncio import Redis


class RequestCounter:
    """Who counts the requests of this process's API."""

    def __init__(self, settings: Settings) -> None:
        self._url = settings.limits.url
        self._client: Redis | None = None
        if self._url:
            self._client = redis_adapter(self._url).connect(self._url)

    def over(self, store: Store, clock: Clock, *, name: str, alone: bool) -> Limits:
        """The port; `name` tells this cluster's counts from others', `alone`: no other process has the store."""
        if self._client is not None:
            counted: Limits = redis_adapter(self._url).RedisLimits(self._client, name=name)
            return counted
        return LocalLimits(clock) if alone else SharedLimits(store, clock)

    async def ask(self) -> str:
        """Count once in Redis, for `doctor`; Unavailable where it does not answer."""
        answer: str = await redis_adapter(self._url).round_trip(self._client)
        return answer

    async def close(self) -> None:
        """Let go of the client."""
        if self._client is not None:
            await self._client.aclose()


def default_quota(settings: Settings) -> Quota:
    """What a tenant may have for which nobody set anything else."""
    limits = settings.limits
    return Quota(jobs=limits.jobs_per_tenant, runs_per_minute=limits.runs_per_minute)


def redis_adapter(url: str) -> Any:
    """The adapter of Redis; its package is an extra."""
    try:
        return import_module("hourhand.limits.redis")
    except ImportError as error:
        raise CannotStart(
            f"limits.url is {masked_store_url(url)}, but the package for Redis is missing ({error}); "
            "install it with: pip install 'hourhand[redis]'"
        ) from error
