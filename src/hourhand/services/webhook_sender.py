"""Sends what webhooks are to hear: makes deliveries of what was noted, calls endpoints, and keeps what came of it.

A batch of one webhook is in one hand at a time, for the lease; whoever dies with it, or could not write down what came
of it, leaves it to the next, who calls again under the same ids. So two that do this at once are only wasteful. A slow
endpoint holds up nobody but itself: a step starts calls and does not wait for them.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable

from hourhand.clock import Clock
from hourhand.core.instant import MINUTE_US, SECOND_US
from hourhand.core.webhooks import Delivery, Tried, format_webhook_id
from hourhand.errors import Unavailable
from hourhand.ports.store import Store
from hourhand.ports.webhooks import CallBatch, Caller
from hourhand.services.webhook_drops import DropLog
from hourhand.telemetry import Telemetry, logger

EVENTS = 500  # noted events that one step makes deliveries of
ENDPOINTS = 64  # that are called at once
CALLS = 4  # to one endpoint at once
BATCH = 16  # deliveries of one webhook that are taken together
LEASE_US = 30 * SECOND_US  # for which a batch is in one hand
BEGIN_US = (
    10 * SECOND_US
)  # of a batch, after which no further call of it begins; with one call less than the lease
TRIM_PAGE = 50  # webhooks that are looked through for what is too much or too old
TRIM_US = MINUTE_US  # between such looks at those to which nothing happened
CLOSE_S = 3.0  # for calls under way when the process stops
_SOON_US = SECOND_US // 20

_log = logger("hourhand.webhooks")


def _nobody() -> None:
    """Nobody waits for a batch to end."""


class WebhookSender:
    """One bounded step at a time; calls go on between steps."""

    def __init__(self, *, store: Store, caller: Caller, clock: Clock, telemetry: Telemetry) -> None:
        self._store = store
        self._caller = caller
        self._clock = clock
        self._telemetry = telemetry
        self._under_way: dict[_Sending, asyncio.Task[None]] = {}
        self._ended: list[_Sending] = []
        self._touched: set[int] = set()  # webhooks that got deliveries since they were looked through
        self._trimmed_to = 0  # by id
        self._trim_at = 0
        self._drops = DropLog()
        self.on_ended: Callable[[], None] = _nobody

    async def step(self, now_at: int) -> int | None:
        """Write down what has ended, make deliveries, and begin calls; answers when to come again."""
        await self.record()
        work = await self._store.webhook_work()
        more = work.noted and await self._spread()
        await self._trim(now_at)
        self._drops.tell(now_at)
        room = ENDPOINTS - len(self._under_way)
        is_due = work.noted or (work.due_at is not None and work.due_at <= now_at)
        if room and is_due:
            taken = await self._store.take_calls(room, BATCH, LEASE_US)
            for batch in taken:
                self._begin(batch)
            work = await self._store.webhook_work()
            more = more or work.noted
        if more:
            return now_at
        if work.due_at is None or len(self._under_way) >= ENDPOINTS:
            return None  # whoever ends wakes it, and so does what happens
        return max(work.due_at, now_at + _SOON_US)

    async def record(self) -> None:
        """Write down what ended batches came to; what cannot be written stays for the next time."""
        while self._ended:
            sending = self._ended[0]
            batch = sending.batch
            after = await self._store.record_calls(batch.webhook.id, batch.fence, sending.tried)
            self._ended.pop(0)
            failed = sum(one.answer.error is not None for one in sending.tried)
            self._telemetry.webhooks_called(taken=len(sending.tried) - failed, failed=failed)
            if after is not None and batch.webhook.enabled and after.disabled_reason is not None:
                self._telemetry.webhook_disabled()
                _log.warning(
                    "a webhook is disabled", webhook=format_webhook_id(after.id), why=after.disabled_reason
                )

    async def idle(self) -> None:
        """Wait until all calls under way have ended."""
        while self._under_way:
            await asyncio.wait(list(self._under_way.values()))

    async def close(self) -> None:
        """Let calls under way end for a moment, and write down what came of them; the rest is the next one's."""
        if self._under_way:
            await asyncio.wait(list(self._under_way.values()), timeout=CLOSE_S)
        for task in list(self._under_way.values()):
            task.cancel()
        await self.idle()
        with contextlib.suppress(Unavailable):
            await self.record()
        await self._caller.close()

    async def _spread(self) -> bool:
        """Whether there may be more."""
        spread = await self._store.spread_events(EVENTS)
        self._touched |= set(spread.webhooks)
        return spread.events == EVENTS

    async def _trim(self, now_at: int) -> None:
        touched = sorted(self._touched)[:TRIM_PAGE]
        if touched:
            await self._trim_these(touched)
            self._touched -= set(touched)
        if self._trim_at - TRIM_US <= now_at < self._trim_at:  # further off: the clock was set back
            return
        ids = await self._store.webhook_ids(self._trimmed_to, TRIM_PAGE)
        self._trimmed_to = ids[-1] if len(ids) == TRIM_PAGE else 0
        self._trim_at = now_at + TRIM_US
        if ids:
            await self._trim_these(ids)

    async def _trim_these(self, ids: list[int]) -> None:
        for webhook_id in ids:  # each by itself, so that it is known whose were dropped
            trimmed = await self._store.trim_webhooks([webhook_id])
            if trimmed.dropped:
                self._telemetry.webhooks_dropped(trimmed.dropped)
                self._drops.add(webhook_id, trimmed.dropped)

    def _begin(self, batch: CallBatch) -> None:
        sending = _Sending(batch, self._caller, self._clock)
        task = asyncio.create_task(sending.send(), name=f"webhook {format_webhook_id(batch.webhook.id)}")
        self._under_way[sending] = task
        task.add_done_callback(lambda _: self._end(sending))

    def _end(self, sending: "_Sending") -> None:
        del self._under_way[sending]
        self._ended.append(sending)
        self.on_ended()


class _Sending:
    """The calls of one batch; what was not called when it ends was not tried."""

    def __init__(self, batch: CallBatch, caller: Caller, clock: Clock) -> None:
        self.batch = batch
        self.tried: list[Tried] = []
        self._caller = caller
        self._clock = clock
        self._waiting: deque[Delivery] = deque(batch.deliveries)
        self._failed = False

    async def send(self) -> None:
        """Call for each delivery, a few at once, until one fails: the endpoint is asked again later."""
        ends_at = self._clock.now() + BEGIN_US
        lines = [self._call_on(ends_at) for _ in range(min(CALLS, len(self._waiting)))]
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.gather(*lines)

    async def _call_on(self, ends_at: int) -> None:
        while self._waiting and not self._failed and self._clock.now() < ends_at:
            delivery = self._waiting.popleft()
            answer = await self._caller.call(self.batch.webhook, delivery)
            self.tried.append(Tried(delivery=delivery, answer=answer))
            if answer.error is not None:
                self._failed = True
