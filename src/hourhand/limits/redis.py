"""Limits counted in Redis, for all processes that ask it: one script, atomic, on the server's time."""

import asyncio
from importlib import resources

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from hourhand.clock import monotonic_us
from hourhand.core.bucket import Limit, Verdict
from hourhand.errors import Unavailable

PATIENCE_S = 0.5  # a request waits behind it


def connect(url: str) -> Redis:
    """A client for limits: it tries once more where a connection was closed in its back, and never for long."""
    return Redis.from_url(
        url,
        socket_timeout=PATIENCE_S,
        socket_connect_timeout=PATIENCE_S,
        retry=Retry(NoBackoff(), 1),
        health_check_interval=0,
    )


async def round_trip(client: Redis) -> str:
    """Count once under a name that no cluster has, and say who answered; Unavailable where nobody does."""
    began_us = monotonic_us()
    await RedisLimits(client, name="doctor").take("doctor", Limit(burst=1_000, per_s=1_000))
    try:
        about = await client.info("server")
    except (RedisError, OSError) as error:
        raise Unavailable(f"the server that counts requests does not answer: {error}") from error
    took_ms = (monotonic_us() - began_us) / 1000
    return f"Redis {about.get('redis_version', 'of unknown version')}, counted in {took_ms:.0f} ms"


class RedisLimits:
    """Buckets as keys that go away when they are full. `name` tells them from those of others."""

    def __init__(self, client: Redis, *, name: str, patience_s: float = PATIENCE_S) -> None:
        text = (resources.files("hourhand.limits") / "take.lua").read_text()
        self._script = client.register_script(text)
        self._name = name
        self._patience_s = patience_s

    async def take(self, key: str, limit: Limit, amount: int = 1) -> Verdict:
        """By one round trip."""
        if not 1 <= amount <= limit.burst:
            raise ValueError(f"from 1 to {limit.burst} tokens can be taken at once, got {amount}")
        try:
            async with asyncio.timeout(self._patience_s):
                allowed, left, retry_after_us = await self._script(
                    keys=[f"{{hh:{self._name}}}:limit:{key}"], args=[limit.token_us, limit.burst, amount]
                )
        except (RedisError, OSError, TimeoutError) as error:
            raise Unavailable(f"the server that counts requests does not answer: {error}") from error
        return Verdict(bool(allowed), int(left), int(retry_after_us))
