"""The board in Redis: one script per verb, each atomic, on the server's time.

Three keys per database of a cluster, all in one slot of a Redis Cluster. The server says only what has changed
since this node looked last. A script that ran and whose answer was lost may run again: it changes nothing more.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping
from functools import cache
from importlib import resources
from typing import Any, NoReturn

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from hourhand.core.url import masked_store_url
from hourhand.ids import process_name
from hourhand.leases.board import Away, Forgotten, View
from hourhand.ports.store import LeaseLost

KEPT_MS = 7 * 24 * 3_600_000  # an abandoned board goes away by itself

_VERBS = ("enter", "renew", "change", "leave")


def connect(url: str, patience_s: float) -> Redis:
    """A client for boards: it tries once more where a connection was closed in its back, and never for long."""
    return Redis.from_url(
        url,
        decode_responses=True,
        socket_timeout=patience_s,
        socket_connect_timeout=patience_s,
        retry=Retry(NoBackoff(), 1),
        health_check_interval=0,
    )


class RedisBoard:
    """The board of one database's schedulers, in one Redis. `name` tells it from those of others."""

    def __init__(self, client: Redis, *, url: str, name: str, lease_us: int, patience_s: float) -> None:
        self._client = client
        self._keys = [f"{{hh:{name}}}:leases:{part}" for part in ("members", "holders", "meta")]
        self._scripts = {verb: client.register_script(_text(verb)) for verb in _VERBS}
        self._lease_ms = max(1, lease_us // 1000)
        self._patience_s = patience_s
        self._incarnation = ""
        self._version = ""
        self._view = View(members=frozenset(), holders={})
        self.where = masked_store_url(url)

    async def enter(self, node_id: int, claims: Collection[int]) -> View:
        """By one script, claims included."""
        # Its own word, should the server have none: whoever knew it before it was emptied must see that.
        self._version, self._incarnation = "", process_name()
        self._incarnation, answer = await self._run("enter", node_id, *claims)
        return self._seen(answer)

    async def renew(self, node_id: int) -> View:
        """By one script."""
        return self._seen(await self._run("renew", node_id))

    async def change(self, node_id: int, gives: Collection[int], takes: Mapping[int, int]) -> View:
        """By one script: each segment by itself, all at the same moment."""
        pairs = [word for pair in takes.items() for word in pair]
        return self._seen(await self._run("change", node_id, len(gives), *gives, *pairs))

    async def leave(self, node_id: int) -> None:
        """By one script."""
        await self._run("leave", node_id)

    def subscribe(self, wake: Callable[[], None]) -> None:
        """Never: who renews every second learns it soon enough."""

    async def close(self) -> None:
        """The client is shared with others, and closed by whoever made it."""

    async def _run(self, verb: str, node_id: int, *arguments: int) -> Any:
        head = (node_id, self._lease_ms, KEPT_MS, self._incarnation, self._version)
        try:
            async with asyncio.timeout(self._patience_s):
                return await self._scripts[verb](keys=self._keys, args=[*head, *arguments])
        except (RedisError, OSError, TimeoutError) as error:
            _away(error)

    def _seen(self, answer: list[Any]) -> View:
        match answer:
            case ["view", version, members, holders]:
                pairs = zip(holders[::2], holders[1::2], strict=True)
                self._view = View(
                    members=frozenset(map(int, members)),
                    holders={int(segment): int(holder) for segment, holder in pairs},
                )
                self._version = version
            case ["forgotten"]:
                raise Forgotten
            case ["lost"]:
                raise LeaseLost
        return self._view


async def round_trip(client: Redis, patience_s: float) -> str:
    """Ask the server who it is, for `doctor`; Away where it does not answer."""
    try:
        async with asyncio.timeout(patience_s):
            about = await client.info("server")
    except (RedisError, OSError, TimeoutError) as error:
        _away(error)
    return f"Redis {about.get('redis_version', 'of unknown version')}"


def _away(error: Exception) -> NoReturn:
    said = " ".join(str(error).split())[:200]
    raise Away(f"{type(error).__name__}: {said}" if said else type(error).__name__) from error


@cache
def _text(verb: str) -> str:
    folder = resources.files("hourhand.leases") / "lua"
    return f"{(folder / 'board.lua').read_text()}\n{(folder / f'{verb}.lua').read_text()}"
