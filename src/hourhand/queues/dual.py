"""Two brokers at once: what must last goes through one, what may be lost through the other, as each job says.

Each side has a task and a short list of its own, so that a broker which hangs or is away holds up only its own
offers: those are dropped, and workers find their runs in the store a second later.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import Sequence
from enum import StrEnum

from hourhand.core.model import Durability
from hourhand.core.offer import Offer
from hourhand.errors import Unavailable
from hourhand.ports.queue import Offers
from hourhand.telemetry import Telemetry, logger

_MOST_WAITING = 10_000
_BATCH = 1_000
_FIRST_PAUSE_S = 0.1
_MOST_PAUSE_S = 1.0

_log = logger("hourhand.queue")


class Route(StrEnum):
    """Which way offers go where there are two brokers."""

    DURABILITY = "durability"  # as each job says
    URL = "url"  # all through the first, while the other is serviced
    FAST_URL = "fast_url"  # all through the other


class DualOffers:
    """Hands each offer to the broker that its job chose."""

    def __init__(
        self, *, lasting: Offers, fast: Offers, route: Route = Route.DURABILITY, telemetry: Telemetry
    ) -> None:
        self._lasting = _Side("queue.url", lasting, telemetry)
        self._fast = _Side("queue.fast_url", fast, telemetry)
        self._route = route

    @property
    def wants_jobs(self) -> bool:
        """Where one of them does; the other leaves them out."""
        return self._lasting.offers.wants_jobs or self._fast.offers.wants_jobs

    async def offer(self, offers: Sequence[Offer]) -> None:
        """Give each side its own; never waits for a broker."""
        for offer in offers:
            self._side(offer).add(offer)

    async def close(self) -> None:
        """Let go of both."""
        await asyncio.gather(self._lasting.close(), self._fast.close())

    def _side(self, offer: Offer) -> "_Side":
        fast = self._route is Route.FAST_URL or (
            self._route is Route.DURABILITY and offer.durability is Durability.FIRE_AND_FORGET
        )
        return self._fast if fast else self._lasting


class _Side:
    """One broker, and what waits to be handed to it."""

    def __init__(self, name: str, offers: Offers, telemetry: Telemetry) -> None:
        self.offers = offers
        self._name = name
        self._telemetry = telemetry
        self._waiting: deque[Offer] = deque()
        self._news = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def add(self, offer: Offer) -> None:
        """Hand it over soon; where too many wait, the oldest is dropped."""
        if self._task is None:
            self._task = asyncio.create_task(self._hand_over())
        if len(self._waiting) >= _MOST_WAITING:
            self._waiting.popleft()
            self._telemetry.offers_dropped(1)
        self._waiting.append(offer)
        self._news.set()

    async def close(self) -> None:
        """Stop, whatever waits."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        await self.offers.close()

    async def _hand_over(self) -> None:
        pause_s = 0.0
        while True:
            await self._news.wait()
            self._news.clear()
            while self._waiting:
                batch = [self._waiting.popleft() for _ in range(min(len(self._waiting), _BATCH))]
                try:
                    await self.offers.offer(batch)
                except Exception as error:
                    pause_s = await self._pause(batch, error, pause_s)
                    continue
                if pause_s:
                    _log.info("offers are taken again", broker=self._name)
                    pause_s = 0.0

    async def _pause(self, batch: Sequence[Offer], error: Exception, before_s: float) -> float:
        """Leave it alone for a while; said once per outage. What is dropped comes from the store."""
        self._telemetry.offers_refused()
        self._telemetry.offers_dropped(len(batch))
        if not before_s and isinstance(error, Unavailable):
            _log.warning(
                "offers are not taken; workers look in the store instead",
                broker=self._name,
                why=error.message,
            )
        elif not before_s:
            _log.exception("offers are not taken; workers look in the store instead", broker=self._name)
        pause_s = min(before_s * 2 or _FIRST_PAUSE_S, _MOST_PAUSE_S)
        await asyncio.sleep(pause_s)
        return pause_s
