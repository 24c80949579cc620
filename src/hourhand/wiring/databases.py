"""The databases of a cluster: opened with patience, known to be its own, each perhaps later than the others.

A server that is away is tried again, since the processes of a cluster start in any order; a wrong schema, a
foreign database or a wrong order of the shards is refused at once. Once the cluster is in use a process
begins with the databases that answer, and takes in the others as they come.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any, cast

from hourhand.clock import Clock, SystemClock
from hourhand.config import Settings, is_postgres, store_url_fault
from hourhand.core.buckets import BucketMap, ShardIdentity
from hourhand.core.url import masked_store_url
from hourhand.errors import CannotStart, Unavailable
from hourhand.ids import IdSource
from hourhand.ports.store import Hint, Store
from hourhand.stores.postgres import PostgresStore
from hourhand.stores.sharded import UNREACHABLE, ShardedStore, check_shards
from hourhand.stores.sharded.identities import Silence
from hourhand.telemetry import logger
from hourhand.wiring.life import Ending, Pauses
from hourhand.wiring.limiting import default_quota

_CLOSE_S = 5.0

_log = logger("hourhand.databases")

Arrived = Callable[["Database"], Awaitable[None]]


def require_postgres(settings: Settings, part: str) -> None:
    """Refuse to be a part of a cluster on a file, or on what is no URL of a database."""
    for url in (*settings.store.databases, *settings.store.listen_url):
        if fault := store_url_fault(url):
            raise CannotStart(fault)
    if settings.store.shards or is_postgres(settings.store.url):
        return
    raise CannotStart(
        f"`hourhand {part}` is a part of a cluster on PostgreSQL, but store.url is "
        f"{masked_store_url(settings.store.url)}, which `hourhand up` serves in one process.\n"
        'For a cluster set [store] url = "postgres://user:password@host/database" in hourhand.toml, or '
        "HOURHAND_STORE_URL, and prepare the database once with `hourhand migrate up`"
    )


@dataclass(slots=True, kw_only=True)
class Database:
    """One of them, and its store once it was opened."""

    index: int
    url: str
    listen_url: str | None
    store: PostgresStore | None = None

    @property
    def name(self) -> str:
        """For people."""
        return masked_store_url(self.url)


class Databases:
    """All of them."""

    def __init__(self, settings: Settings, ending: Ending) -> None:
        listen = settings.store.listen_url
        self._settings = settings
        self._ending = ending
        self._all = [
            Database(index=index, url=url, listen_url=listen[index] if listen else None)
            for index, url in enumerate(settings.store.databases)
        ]
        self._late = {one.index: LateStore(one.name) for one in self._all}
        self._identity: ShardIdentity | None = None
        self._identified: set[int] = set()
        self.clock: Clock = _FirstClock(self._all)

    @property
    def opened(self) -> list[Database]:
        """Those that answered and are the right ones."""
        return [one for one in self._all if one.index in self._identified]

    @property
    def front(self) -> Store:
        """All of them as one store, for the API; those that are not open yet are away."""
        right = {one.index: one.store for one in self.opened}
        stores = [cast(Store, right.get(one.index) or self._late[one.index]) for one in self._all]
        if len(stores) == 1:
            return stores[0]
        return ShardedStore(stores, self._buckets)

    @property
    def cluster(self) -> str:
        """What the cluster calls itself, in all its databases."""
        assert self._identity is not None, "cluster is asked for after begin"
        return self._identity.cluster

    @property
    def _buckets(self) -> BucketMap:
        assert self._identity is not None, "front is asked for after begin"
        return self._identity.buckets

    async def begin(self) -> bool:
        """Open as many as are needed to begin; False when the process was told to end before."""
        pauses = Pauses()
        while not await self._try():
            pause_s = pauses.next_s()
            _log.warning("waiting for PostgreSQL", missing=self._missing(), pause_s=round(pause_s, 2))
            if await self._ending.asked_within(pause_s):
                return False
        return True

    async def open_once(self) -> bool:
        """Open them without patience; whether enough answer to begin."""
        return await self._try()

    async def follow(self, arrived: Arrived) -> None:
        """Open the others as they come, and hand each on once it is known to be the right one."""
        pauses = Pauses()
        while missing := [one for one in self._all if one.index not in self._identified]:
            if await self._ending.asked_within(pauses.next_s()):
                return
            await self._try()
            for one in missing:
                if one.store is not None and one.index in self._identified:
                    _log.info("database is back", database=one.name)
                    self._late[one.index].arrive(one.store)
                    pauses.reset()
                    await arrived(one)

    async def close(self) -> None:
        """Let go of all."""
        with contextlib.suppress(TimeoutError):  # the process ends anyway
            async with asyncio.timeout(_CLOSE_S):
                await asyncio.gather(
                    *(one.store.close() for one in self._all if one.store), return_exceptions=True
                )

    async def _try(self) -> bool:
        """Open what is not open; whether it is enough to go on."""
        await asyncio.gather(*(self._open(one) for one in self._all if one.store is None))
        return any(one.store for one in self._all) and await self._identify()

    async def _open(self, database: Database) -> None:
        settings = self._settings
        try:
            database.store = await PostgresStore.open(
                database.url,
                segments=settings.scheduler.segments,
                lead_us=settings.scheduler.lead_us,
                keep_us=settings.history.keep_us,
                listen_url=database.listen_url,
                quota=default_quota(settings),
                databases=len(self._all),
            )
        except Unavailable as error:
            _log.warning("database is away", database=database.name, why=error.message)
        except CannotStart as error:
            raise CannotStart(f"{database.name}: {error.message}") from error

    async def _identify(self) -> bool:
        """Agree on which database is which shard; False while too few answer to know."""
        new_cluster = f"{IdSource(SystemClock()).node_id():x}"
        while True:
            found = [await _identity_of(one) for one in self._all]
            known = {index: one for index, one in enumerate(found) if isinstance(one, ShardIdentity)}
            if UNREACHABLE in found and not any(one.complete for one in known.values()):
                return False
            to_write = check_shards(found, new_cluster)
            if not to_write:
                self._identity = next(iter(known.values()))
                self._identified |= set(known)
                return True
            for index, identity in to_write.items():
                store = self._all[index].store
                if store is None or not await _tell(store, identity):
                    return False

    def _missing(self) -> list[str]:
        return [one.name for one in self._all if one.store is None]


async def _identity_of(database: Database) -> ShardIdentity | Silence | None:
    if database.store is None:
        return UNREACHABLE
    try:
        return await database.store.identity()
    except Unavailable:
        return UNREACHABLE


async def _tell(store: PostgresStore, identity: ShardIdentity) -> bool:
    try:
        await store.write_identity(identity)
    except Unavailable:
        return False
    return True


class LateStore:
    """Stands for a database that did not answer yet: every verb says so, until it has arrived."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._store: Store | None = None
        self._wakes: list[Callable[[Hint], None]] = []

    def arrive(self, store: Store) -> None:
        """From now on it is this one."""
        self._store = store
        for wake in self._wakes:
            store.subscribe(wake)

    def subscribe(self, wake: Callable[[Hint], None]) -> None:
        """Also of what will arrive."""
        self._wakes.append(wake)
        if self._store is not None:
            self._store.subscribe(wake)

    async def close(self) -> None:
        """What arrived is closed by whoever opened it."""

    def __getattr__(self, verb: str) -> Any:
        if self._store is not None:
            return getattr(self._store, verb)
        return self._away

    async def _away(self, *arguments: object, **named: object) -> Any:
        raise Unavailable(f"{self._name} does not answer")


class _FirstClock:
    """The time of the first database that was opened; this machine's, before there is one."""

    def __init__(self, databases: Iterable[Database]) -> None:
        self._databases = databases
        self._machine = SystemClock()
        self._clock: Clock | None = None

    def now(self) -> int:
        """The present instant."""
        if self._clock is None:
            self._clock = next((one.store.clock for one in self._databases if one.store), None)
        return (self._clock or self._machine).now()
