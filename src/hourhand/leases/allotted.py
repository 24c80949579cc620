"""Leases with a lease server: it says who lives and who should hold what; the store hands it over, with a fence.

While the server is away the store decides alone, as it does where there is no such server: nobody stops
planning, and the dead are still replaced. docs/decisions/0020 tells the whole protocol.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress

from hourhand.clock import Clock
from hourhand.core.instant import SECOND_US
from hourhand.core.sharing import shift
from hourhand.errors import Unavailable
from hourhand.ids import IdSource
from hourhand.leases.board import Away, Board, Forgotten, View
from hourhand.ports.store import LeaseLost, Store
from hourhand.telemetry import Telemetry, logger

STORE_LEASE_US = 15 * SECOND_US  # how long the store waits where the lease server can say nothing
RETURN_US = 2 * SECOND_US  # between looks for a server that is away
_STORE_RENEWALS = 3  # in the time of a lease in the store

_PART = "lease server"

_log = logger("hourhand.leases")


class AllottedLeases:
    """One scheduler's membership: on a board, and in the store."""

    def __init__(
        self,
        *,
        board: Board,
        store: Store,
        ids: IdSource,
        clock: Clock,
        telemetry: Telemetry,
        kind: str,
        name: str,
        segments: int,
        lease_us: int,
        database: str = "0",
    ) -> None:
        self._board = board
        self._store = store
        self._ids = ids
        self._clock = clock
        self._telemetry = telemetry
        self._kind = kind
        self._name = name
        self._parts = segments
        self._database = database
        self.lease_us = lease_us
        self._node_id = 0
        self._held: Mapping[int, int] = {}
        self._heir_of: dict[int, int] = {}  # whom the store has still to be told of
        self._entered_at: int | None = None  # None: the store decides alone
        self._store_due_at = 0
        self._away: str | None = None
        self._away_at = 0
        self._return_at = 0

    @property
    def parts(self) -> Mapping[str, str | None]:
        """What is wrong with the lease server, although the segments are held."""
        return {_PART: None if self._away is None else f"away, the store keeps the leases: {self._away}"}

    def subscribe(self, wake: Callable[[], None]) -> None:
        """When others come, go, give or take, where the server tells."""
        self._board.subscribe(wake)

    async def join(self) -> int:
        """Begin under a new id: with what the store gives at once, the rest as the others give it."""
        before, node_id = self._node_id, self._ids.node_id()
        if before:
            with suppress(Unavailable):  # then its lease runs out by itself
                await self._store.end_node(before)
        held = await self._store.hold_segments(node_id, self._kind, self._name, self.lease_us)
        self._node_id = node_id  # only now: a join that failed must not be taken for a renewal
        self._forget()
        self._learn(held, self.lease_us)
        await self._come_back()
        return node_id

    async def renew(self) -> None:
        """Stay on the board and hold what it allots; while the server is away, what the store allots."""
        try:
            if self._entered_at is None:
                await self._hold_alone()
                await self._come_back()
                return
            try:
                await self._hold(await self._view())
            except Away as error:
                self._lose_server(error)
                await self._hold_alone()
        except LeaseLost:
            self._forget()
            raise

    async def leave(self) -> None:
        """Give everything back, in the store first: what is free there can be taken."""
        node_id = self._node_id
        self._forget()
        await self._store.end_node(node_id)
        with suppress(Away):  # then its lease runs out by itself
            await self._board.leave(node_id)

    async def segments(self) -> Mapping[int, int]:
        """As the store said last."""
        return self._held

    # --- with the server

    async def _view(self) -> View:
        try:
            return await self._board.renew(self._node_id)
        except Forgotten:
            _log.warning("lease server has forgotten everything; telling it again", server=self._board.where)
            await self._hold_in_store(dict.fromkeys(self._held, 0))  # what is claimed must be true
            return await self._enter()

    async def _hold(self, view: View) -> None:
        """Come nearer to the even share, and have the store agree with the board."""
        me = self._node_id
        # Who has just entered may have come back sooner than others did: it does not call them dead yet.
        settled = self._entered_at is not None and self._clock.now() - self._entered_at >= self.lease_us
        change = shift(me, view.members, view.holders, self._parts, inherits=settled)
        if change.gives:
            # In the store first: whoever takes it from the board finds it free there.
            kept = view.of(me).difference(change.gives)
            await self._hold_in_store({segment: self._heir_of.get(segment, 0) for segment in kept})
            view = await self._board.change(me, change.gives, {})
        elif change.takes:
            view = await self._board.change(me, (), change.takes)
        had = view.of(me)
        self._heir_of |= {one: heir_of for one, heir_of in change.takes.items() if heir_of and one in had}
        if had != self._held.keys() or self._clock.now() >= self._store_due_at:
            await self._hold_in_store({segment: self._heir_of.get(segment, 0) for segment in had})

    async def _hold_in_store(self, allotted: Mapping[int, int]) -> None:
        lease_us = max(self.lease_us, STORE_LEASE_US)
        held = await self._store.hold_allotted(self._node_id, self._kind, self._name, lease_us, allotted)
        self._learn(held, lease_us)
        # What was refused now is asked for again, as somebody's heir.
        self._heir_of = {
            one: heir for one, heir in self._heir_of.items() if one in allotted and one not in held
        }

    async def _enter(self) -> View:
        view = await self._board.enter(self._node_id, self._held)
        self._entered_at = self._clock.now()
        return view

    # --- without it

    async def _hold_alone(self) -> None:
        held = await self._store.hold_segments(self._node_id, self._kind, self._name, self.lease_us)
        self._learn(held, self.lease_us)

    async def _come_back(self) -> None:
        """Enter the board if the server is there again; not looked for all the time."""
        now_at = self._clock.now()
        if now_at < self._return_at:
            return
        try:
            await self._enter()
        except Away as error:
            self._return_at = now_at + RETURN_US
            self._lose_server(error)
            return
        if self._away is not None:
            away_s = round((now_at - self._away_at) / SECOND_US, 1)
            _log.info("lease server is back", server=self._board.where, away_s=away_s)
        self._away = None
        self._telemetry.lease_server(self._database, answers=True)

    def _lose_server(self, error: Away) -> None:
        self._entered_at = None
        if self._away is None:
            self._away_at = self._clock.now()
            self._telemetry.lease_server(self._database, answers=False)
            _log.warning(
                "lease server is away; the store keeps the leases", server=self._board.where, why=str(error)
            )
        self._away = str(error)

    # --- what it knows

    def _learn(self, held: Mapping[int, int], lease_us: int) -> None:
        self._held = held
        self._store_due_at = self._clock.now() + lease_us // _STORE_RENEWALS

    def _forget(self) -> None:
        self._held, self._heir_of, self._entered_at = {}, {}, None
