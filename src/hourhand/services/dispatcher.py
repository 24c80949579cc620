"""Offers runs to workers through a broker, each `lead` before it is due.

`step` reads the coming seconds of the node's segments into an agenda, and looks again at what is due about now for
what came meanwhile: runs asked for, retries, slots handed on. `offer_step` hands what it is time for to the broker,
also while the store is away. Nothing here is for safety: what is not offered, workers find in the store.
"""

from collections.abc import Callable

import msgspec

from hourhand.core.agenda import Agenda
from hourhand.core.instant import SECOND_US
from hourhand.core.offer import Offer
from hourhand.errors import Unavailable
from hourhand.ports.leases import Leases
from hourhand.ports.queue import Offers
from hourhand.ports.store import Store
from hourhand.ports.upcoming import UpcomingPage, UpcomingQuery
from hourhand.telemetry import Telemetry, logger

AHEAD_US = 5 * SECOND_US  # how much is read beyond the lead
PAST_US = 2 * SECOND_US  # what is later than this has been found by workers in the store
LATE_US = SECOND_US  # from here on workers look for it in the store, so that an offer comes too late
LOOK_US = SECOND_US // 2  # how often it looks again at what is due about now
MOST_TIMERS = 1_000_000
_LEAST_BETWEEN_LOOKS_US = 50_000  # however many hints come
_PAGE = 2_000
_BATCH = 1_000
_FIRST_PAUSE_US = 100_000
_MOST_PAUSE_US = SECOND_US

_log = logger("hourhand.dispatcher")


class Dispatcher:
    """One node's offers."""

    def __init__(
        self,
        *,
        store: Store,
        leases: Leases,
        offers: Offers,
        telemetry: Telemetry,
        lead_us: int,
        routed: bool = False,
    ) -> None:
        self._store = store
        self._leases = leases
        self._offers = offers
        self._telemetry = telemetry
        self._lead_us = lead_us
        self._routed = routed  # whether offers need the durability of their jobs
        self._agenda = Agenda(lead_us)
        self._segments: frozenset[int] = frozenset()
        self._read_to = 0  # everything that was due before it when it was read is on the agenda
        self._ahead: UpcomingQuery | None = None  # a walk through the coming seconds, under way
        self._again: UpcomingQuery | None = None  # a second look at what is due about now, under way
        self._look_at = 0
        self._looked_at = 0
        self._pause_us = 0  # how long it leaves a broker alone that refuses; 0 while all is well
        self._silent_until = 0
        self.on_loaded: Callable[[], None] = lambda: None  # wakes `offer_step`

    @property
    def timers(self) -> int:
        """How many offers wait for their time."""
        return len(self._agenda)

    def hinted(self) -> None:
        """Somebody committed runs: look again soon."""
        self._look_at = min(self._look_at, self._looked_at + _LEAST_BETWEEN_LOOKS_US)

    async def step(self, now_at: int) -> int | None:
        """Read a page or two into the agenda; answers when to read on."""
        segments = frozenset(await self._leases.segments())
        if not segments <= self._segments or self._read_to > now_at + self._lead_us + 2 * AHEAD_US:
            self._read_to, self._ahead = 0, None  # others' segments became its own, or the clock was set back
        self._segments = segments
        if not segments:
            return None
        self._agenda.forget(now_at - PAST_US)
        known = len(self._agenda)
        more = await self._read_ahead(now_at) | await self._read_again(now_at)
        if len(self._agenda) > known:
            self.on_loaded()
        if more:
            return now_at
        if self._ahead is not None:  # no room for more at present
            return self._look_at
        return min(self._look_at, max(now_at + 1, self._read_to - self._lead_us - AHEAD_US // 2))

    async def offer_step(self, now_at: int) -> int | None:
        """Offer a batch; answers when the next is to be offered. Leaves a broker alone for a while that refuses."""
        if now_at < self._silent_until <= now_at + _MOST_PAUSE_US:
            return self._silent_until
        first_at = self._agenda.next_at()
        batch = self._batch(now_at)
        if not batch:
            return self._agenda.next_at()
        try:
            if self._offers.wants_jobs:
                batch = await self._with_jobs(batch)
            await self._offers.offer(batch)
        except Unavailable as error:
            self._refused(batch, now_at, error)
            return self._silent_until
        if self._pause_us:
            _log.info("offers are taken again")
        self._pause_us = 0
        self._telemetry.offered(len(batch), 0 if first_at is None else now_at - first_at)
        next_at = self._agenda.next_at()
        return next_at if next_at is None else max(now_at, next_at)

    async def close(self) -> None:
        """Let go of the broker."""
        await self._offers.close()

    # --- reading

    async def _read_ahead(self, now_at: int) -> bool:
        """A page of the coming seconds; True while there is more to read."""
        until_at = now_at + self._lead_us + AHEAD_US
        if self._ahead is None:
            if self._read_to >= until_at - AHEAD_US // 2:
                return False
            self._ahead = self._query(max(self._read_to, now_at - PAST_US), until_at)
        if len(self._agenda) >= MOST_TIMERS:
            return (
                False  # goes on when there is room, and what it comes too late for is seen by a second look
            )
        page = await self._store.upcoming(self._ahead)
        self._add(page, now_at)
        if page.cursors:
            self._ahead = msgspec.structs.replace(self._ahead, cursors=page.cursors)
            return True
        self._read_to, self._ahead = self._ahead.until_at + 1, None
        return False

    async def _read_again(self, now_at: int) -> bool:
        """A page of what is due about now; True where it had news and there is more."""
        if now_at < self._look_at <= now_at + LOOK_US:
            return False
        self._looked_at = now_at
        if self._again is None:
            self._again = self._query(now_at - PAST_US, now_at + self._lead_us + LOOK_US)
        page = await self._store.upcoming(self._again)
        news = self._add(page, now_at)
        if page.cursors:
            self._again = msgspec.structs.replace(self._again, cursors=page.cursors)
        else:
            self._again = None
        more = news > 0 and self._again is not None
        self._look_at = now_at if more else now_at + LOOK_US
        return more

    def _query(self, from_at: int, until_at: int) -> UpcomingQuery:
        return UpcomingQuery(
            segments=self._segments, from_at=from_at, until_at=until_at, limit=_PAGE, routed=self._routed
        )

    def _add(self, page: UpcomingPage, now_at: int) -> int:
        """Put a page on the agenda; answers how many of it were news."""
        known = len(self._agenda)
        for run in page.runs:
            self._agenda.add(run, now_at)
        return len(self._agenda) - known

    # --- offering

    def _batch(self, now_at: int) -> list[Offer]:
        """What is to be offered now; what workers already look for in the store is left to them."""
        batch: list[Offer] = []
        while len(batch) < _BATCH and (taken := self._agenda.take(now_at, _BATCH - len(batch))):
            in_time = [offer for offer in taken if offer.due_at > now_at - LATE_US]
            self._telemetry.offers_dropped(len(taken) - len(in_time))
            batch += in_time
        return batch

    async def _with_jobs(self, batch: list[Offer]) -> list[Offer]:
        """The same with the jobs as they are now; runs of jobs that are gone are nobody's business."""
        jobs = {job.id: job for job in await self._store.read_jobs([offer.job_id for offer in batch])}
        return [
            msgspec.structs.replace(offer, job=jobs[offer.job_id]) for offer in batch if offer.job_id in jobs
        ]

    def _refused(self, batch: list[Offer], now_at: int, error: Unavailable) -> None:
        """Try again a little later: until it is due, an offer is worth something."""
        if not self._pause_us:
            _log.warning("offers are not taken; workers look in the store instead", why=error.message)
        self._pause_us = min(self._pause_us * 2 or _FIRST_PAUSE_US, _MOST_PAUSE_US)
        self._silent_until = now_at + self._pause_us
        self._agenda.again(batch, self._silent_until)
        self._telemetry.offers_refused()
