"""Builds leases: in the store alone, or with the lease server that `leases.url` names.

One client per process serves the boards of all databases. Each board bears the name that the database itself
has in its cluster, so that clusters may share a server and no setting can mix them up.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from hourhand.config import Settings
from hourhand.core.instant import SECOND_US
from hourhand.core.url import masked_store_url
from hourhand.errors import CannotStart
from hourhand.leases.board import Board

if TYPE_CHECKING:  # loaded for those who use it
    from redis.asyncio import Redis

    from hourhand.leases.etcd_gateway import EtcdGateway as Etcd

_LONGEST_PATIENCE_S = 1.0


def patience_s(lease_us: int) -> float:
    """How long a lease server may take to answer: a renewal must not wait for the next one."""
    return min(_LONGEST_PATIENCE_S, lease_us / SECOND_US / 3)


class LeaseServer:
    """The process's client of the lease server that `leases.url` names."""

    def __init__(self, settings: Settings) -> None:
        self._url = settings.leases.url
        self._lease_us = settings.scheduler.lease_us
        self._redis: Redis | None = None
        self._etcd: Etcd | None = None
        self._boards: list[Board] = []
        if self._url.startswith("redis"):
            self._redis = redis_adapter(self._url).connect(self._url, patience_s(self._lease_us))
        else:
            from hourhand.leases.etcd_gateway import EtcdGateway

            self._etcd = EtcdGateway(self._url, patience_s(self._lease_us))

    def board(self, name: str) -> Board:
        """The board of a database's schedulers, by the name that the database has in its cluster."""
        made: Board
        if self._redis is not None:
            made = redis_adapter(self._url).RedisBoard(
                self._redis,
                url=self._url,
                name=name,
                lease_us=self._lease_us,
                patience_s=patience_s(self._lease_us),
            )
        else:
            from hourhand.leases.etcd import EtcdBoard

            assert self._etcd is not None
            made = EtcdBoard(self._etcd, name=name, lease_us=self._lease_us)
        self._boards.append(made)
        return made

    async def ask(self) -> str:
        """Who answers there, for `doctor`; Away where nobody does."""
        if self._redis is not None:
            answer: str = await redis_adapter(self._url).round_trip(self._redis, patience_s(self._lease_us))
            return answer
        from hourhand.leases.etcd import round_trip

        assert self._etcd is not None
        return await round_trip(self._etcd)

    async def close(self) -> None:
        """Let go of boards and client."""
        for board in self._boards:
            await board.close()
        if self._redis is not None:
            await self._redis.aclose()
        if self._etcd is not None:
            await self._etcd.close()


def redis_adapter(url: str) -> Any:
    """The adapter of Redis; its package is an extra."""
    try:
        return import_module("hourhand.leases.redis")
    except ImportError as error:
        raise CannotStart(
            f"leases.url is {masked_store_url(url)}, but the package for Redis is missing ({error}); "
            "install it with: pip install 'hourhand[redis]'"
        ) from error
