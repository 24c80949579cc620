"""The board in etcd: members are keys on etcd leases, segments are keys that change by compare-and-set.

A watch tells when somebody came, went, gave or took: the board is read again then, and now and then in any case,
since a watch may break unheard. One request per batch of changes, each change with conditions of its own.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from typing import Any

from hourhand.clock import monotonic_us
from hourhand.core.instant import SECOND_US
from hourhand.leases.board import Away, Forgotten, View
from hourhand.leases.etcd_gateway import EtcdGateway, NotFound, below, decoded, encoded
from hourhand.ports.store import LeaseLost

_OPERATIONS = 100  # etcd takes 128 in one transaction
_READ_US = 5 * SECOND_US  # a board that nobody changed is read again after this time
_WATCH_PAUSE_S = 0.5

_Json = dict[str, Any]


class EtcdBoard:
    """The board of one database's schedulers, in one etcd. `name` tells it from those of others."""

    def __init__(self, gateway: EtcdGateway, *, name: str, lease_us: int) -> None:
        self._gateway = gateway
        self._prefix = f"/hourhand/{name}/leases/"
        self._ttl_s = max(1, -(-lease_us // SECOND_US))
        self._lease_id = "0"
        self._revision = 0
        self._view = View(members=frozenset(), holders={})
        self._read_at: int | None = None  # None: what was read is not the newest
        self._wakes: list[Callable[[], None]] = []
        self._watching: asyncio.Task[None] | None = None
        self.where = gateway.where

    async def enter(self, node_id: int, claims: Collection[int]) -> View:
        """On a new lease; what stood under its name on an earlier one moves to it."""
        granted = await self._gateway.ask("lease/grant", TTL=self._ttl_s)
        self._lease_id = granted["ID"]
        self._revision = int(granted["header"]["revision"])
        member = _put(self._member(node_id), "", lease=self._lease_id)
        await self._commit([member, *(_put(self._holder(one), str(node_id)) for one in claims)])
        if self._watching is None:
            self._watching = asyncio.create_task(self._watch(), name="etcd watch")
        return await self._read(node_id)

    async def renew(self, node_id: int) -> View:
        """Keep the lease alive; read the board if it may have changed."""
        answer = (await self._gateway.ask("lease/keepalive", ID=self._lease_id)).get("result", {})
        revision = int(answer.get("header", {}).get("revision", 0))
        if "TTL" not in answer:
            # An etcd only counts forward: one that is behind is not the one that we knew.
            raise Forgotten if revision < self._revision else LeaseLost
        self._revision = revision
        if self._read_at is not None and monotonic_us() - self._read_at < _READ_US:
            return self._view
        return await self._read(node_id)

    async def change(self, node_id: int, gives: Collection[int], takes: Mapping[int, int]) -> View:
        """Each segment under its own condition, and all only for a member."""
        steps = [self._give(node_id, one) for one in gives]
        steps += [self._take(node_id, one, heir_of) for one, heir_of in takes.items()]
        if not await self._commit(steps, [_exists(self._member(node_id))]):
            raise LeaseLost
        return await self._read(node_id)

    async def leave(self, node_id: int) -> None:
        """Erase its name, then end its lease."""
        view = await self._look()
        await self._commit([self._give(node_id, one) for one in view.of(node_id)])
        with suppress(NotFound):
            await self._gateway.ask("lease/revoke", ID=self._lease_id)

    def subscribe(self, wake: Callable[[], None]) -> None:
        """By etcd's watch."""
        self._wakes.append(wake)

    async def close(self) -> None:
        """Watch no longer; the gateway is closed by whoever made it."""
        if self._watching is not None:
            self._watching.cancel()
            with suppress(asyncio.CancelledError):
                await self._watching
            self._watching = None

    async def _read(self, node_id: int) -> View:
        view = await self._look()
        if node_id not in view.members:
            raise LeaseLost
        return view

    async def _look(self) -> View:
        self._read_at = monotonic_us()  # before it is asked: what the watch tells meanwhile is newer
        answer = await self._gateway.ask("kv/range", **below(self._prefix))
        members, holders = set(), {}
        for pair in answer.get("kvs", ()):
            kind, _, name = decoded(pair["key"]).removeprefix(self._prefix).partition("/")
            if kind == "members":
                members.add(int(name))
            else:
                holders[int(name)] = int(decoded(pair["value"]))
        self._view = View(members=frozenset(members), holders=holders)
        return self._view

    async def _commit(self, steps: Collection[_Json], conditions: Collection[_Json] = ()) -> bool:
        left = list(steps)
        while left:
            batch, left = left[:_OPERATIONS], left[_OPERATIONS:]
            answer = await self._gateway.ask("kv/txn", compare=list(conditions), success=batch)
            if not answer.get("succeeded"):
                return False
        return True

    async def _watch(self) -> None:
        while True:
            with suppress(Away):
                async for message in self._gateway.follow("watch", create_request=below(self._prefix)):
                    self._read_at = None  # the first message says that it has begun: it may have missed some
                    if message.get("events"):
                        for wake in self._wakes:
                            wake()
            await asyncio.sleep(_WATCH_PAUSE_S)

    def _member(self, node_id: int) -> str:
        return f"{self._prefix}members/{node_id}"

    def _holder(self, segment: int) -> str:
        return f"{self._prefix}holders/{segment}"

    def _give(self, node_id: int, segment: int) -> _Json:
        key = self._holder(segment)
        return _only_if([_holds(key, node_id)], {"requestDeleteRange": {"key": encoded(key)}})

    def _take(self, node_id: int, segment: int, heir_of: int) -> _Json:
        key = self._holder(segment)
        conditions = [_holds(key, heir_of), _absent(self._member(heir_of))] if heir_of else [_absent(key)]
        return _only_if(conditions, _put(key, str(node_id)))


async def round_trip(gateway: EtcdGateway) -> str:
    """Ask the server who it is, for `doctor`; Away where it does not answer."""
    return f"etcd {(await gateway.ask('maintenance/status')).get('version', 'of unknown version')}"


def _put(key: str, value: str, lease: str = "0") -> _Json:
    return {"requestPut": {"key": encoded(key), "value": encoded(value), "lease": lease}}


def _only_if(conditions: list[_Json], step: _Json) -> _Json:
    return {"requestTxn": {"compare": conditions, "success": [step]}}


def _holds(key: str, node_id: int) -> _Json:
    return {"target": "VALUE", "result": "EQUAL", "key": encoded(key), "value": encoded(str(node_id))}


def _exists(key: str) -> _Json:
    return {"target": "VERSION", "result": "GREATER", "key": encoded(key), "version": "0"}


def _absent(key: str) -> _Json:
    return {"target": "VERSION", "result": "EQUAL", "key": encoded(key), "version": "0"}
