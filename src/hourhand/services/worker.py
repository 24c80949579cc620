"""Takes runs ahead of time, starts them on time, and commits what became of them.

In hand is everything between claim and committed outcome; a worker never holds more than it can run.
Two wheels keep time: one for starts, one for deadlines. `step` claims; `tick` starts what is due and
ends what is past its deadline; `settle_step` commits outcomes in batches; `heartbeat` renews the lease.
"""

import asyncio
from collections.abc import Callable, Sequence

from hourhand.clock import Clock
from hourhand.core.instant import SECOND_US
from hourhand.core.lifecycle import Event, Reason
from hourhand.core.retry import Outcome
from hourhand.core.run import ClaimedRun, Settlement
from hourhand.core.wheel import Wheel
from hourhand.ports.leases import Leases
from hourhand.ports.queue import Queue
from hourhand.ports.store import ClaimRequest, Cursor, HeldRun, LeaseLost, Store
from hourhand.services.attempt import Attempt, Targets, execute, interrupted
from hourhand.telemetry import Telemetry, logger

HEARTBEAT_US = 10 * SECOND_US
ABANDON_US = 5 * SECOND_US  # how long a cancelled attempt may take to end before it is left behind
_MOST_PER_CLAIM = 2_000
_MOST_PER_SETTLE = 2_000
_SMALL_CLAIM_WAIT_US = 4_000  # a little patience makes few large claims of many small ones
_ARM_AFTER_US = SECOND_US // 4  # attempts that end sooner never need a deadline timer

Settled = Callable[[Sequence[tuple[ClaimedRun, Settlement]]], None]

_log = logger("hourhand.worker")


class Worker:
    """One worker: its hand, its wheels and its duties."""

    def __init__(
        self,
        *,
        store: Store,
        queue: Queue,
        leases: Leases,
        targets: Targets,
        clock: Clock,
        telemetry: Telemetry,
        name: str,
        pools: tuple[str, ...],
        concurrency: int,
        lead_us: int,
        settled: Settled = lambda batch: None,
    ) -> None:
        self._store = store
        self._queue = queue
        self._leases = leases
        self._targets = targets
        self._clock = clock
        self._telemetry = telemetry
        self._name = name
        self._pools = pools
        self._concurrency = concurrency
        self._lead_us = lead_us
        self._settled = settled
        self._node_id = 0
        self._in_hand: dict[tuple[int, int, int], Attempt] = {}
        self._starts: Wheel[Attempt] = Wheel(clock.now())
        self._deadlines: Wheel[Attempt] = Wheel(clock.now())
        self._fresh: list[Attempt] = []  # begun and not yet given a deadline timer
        self._arm_at = 0
        self._outbox: list[tuple[Attempt, Settlement]] = []
        self._taken = 0
        self._cursors: dict[int, Cursor] = {}
        self._waited = False
        self._draining = False
        self._claiming = asyncio.Lock()  # a claim under way is not yet in hand, and must not look lost
        self._left_behind: set[asyncio.Task[None]] = set()
        self.on_room: Callable[[], None] = lambda: None  # wakes `step`
        self.on_outcome: Callable[[], None] = lambda: None  # wakes `settle_step`
        self.on_timer: Callable[[], None] = lambda: None  # wakes `tick`

    @property
    def in_hand(self) -> int:
        """How many runs it holds."""
        return len(self._in_hand)

    async def join(self) -> None:
        """Begin under a new node id."""
        self._node_id = await self._leases.join()

    async def step(self, now_at: int) -> int | None:
        """Claim what there is room for; answers when it pays to ask again."""
        room = self._concurrency - len(self._in_hand)
        if room <= 0 or self._draining:
            return None
        if room < self._concurrency // 8 and not self._waited:
            self._waited = True
            return now_at + _SMALL_CLAIM_WAIT_US
        self._waited = False
        request = ClaimRequest(
            node_id=self._node_id,
            pools=self._pools,
            room=min(room, _MOST_PER_CLAIM),
            lead_us=self._lead_us,
            taken_before=self._taken,
            cursors=self._cursors,
        )
        async with self._claiming:
            try:
                claim = await self._queue.take(request)
            except LeaseLost:
                await self._start_anew()
                return now_at
            self._hold(claim.runs)
        self._cursors = claim.cursors
        self._taken += len(claim.runs)
        self._telemetry.claimed(len(claim.runs))
        return now_at if claim.progressed else claim.next_at

    def tick(self, now_at: int) -> int | None:
        """Start what is due, end what is past its deadline; answers when the next timer runs out."""
        for attempt in self._starts.advance(now_at):
            attempt.timer = None
            self._start(attempt)
        for attempt in self._deadlines.advance(now_at):
            attempt.timer = None
            self._past_deadline(attempt, now_at)
        if self._fresh and now_at >= self._arm_at:
            self._arm_deadlines(now_at)
        moments = [self._starts.next_due(), self._deadlines.next_due(), self._arm_at if self._fresh else None]
        return min((moment for moment in moments if moment is not None), default=None)

    async def settle_step(self, now_at: int) -> int | None:
        """Commit a batch of outcomes; what fails to commit stays in hand and is tried again."""
        batch = self._outbox[:_MOST_PER_SETTLE]
        if not batch:
            return None
        refused = await self._store.settle(self._name, [settlement for _, settlement in batch])
        del self._outbox[: len(batch)]
        for attempt, _ in batch:
            self._in_hand.pop(_key(attempt.run), None)
        if refused:
            _log.warning("outcomes refused: the runs went on elsewhere", count=len(refused))
            known = {id(settlement) for settlement in refused}
            batch = [pair for pair in batch if id(pair[1]) not in known]
        self._telemetry.runs_settled([settlement for _, settlement in batch])
        self._settled([(attempt.run, settlement) for attempt, settlement in batch])
        self.on_room()
        return now_at if self._outbox else None

    async def heartbeat(self, now_at: int) -> int | None:
        """Renew the lease, and give back what the store thinks it holds and it does not."""
        try:
            await self._leases.renew()
        except LeaseLost:
            await self._start_anew()
            return now_at
        async with self._claiming:
            held = await self._store.held_runs(self._node_id)
            strangers = [run for run in held if _held_key(run) not in self._in_hand]
            if strangers:
                await self._store.settle(self._name, [_released(run, now_at) for run in strangers])
        await self.cancel_step(now_at)
        return now_at + HEARTBEAT_US

    async def cancel_step(self, now_at: int) -> int | None:
        """End the attempts that somebody wants cancelled."""
        for held in await self._store.cancel_asked(self._node_id):
            attempt = self._in_hand.get(_held_key(held))
            if attempt is not None:
                self._end(attempt, Outcome.CANCELLED, now_at)
        return None

    async def drain(self, patience_us: int) -> None:
        """Stop claiming, give back what has not begun, and let the rest end; after that, cut it short."""
        self._draining = True
        now_at = self._clock.now()
        waiting = [
            attempt
            for attempt in self._in_hand.values()
            if attempt.task is None and attempt.started_at is None
        ]
        for attempt in waiting:
            self._forget_timer(attempt, self._starts)
            self._outbox.append((attempt, attempt.unstarted(Event.RELEASE, now_at)))
        tasks = [attempt.task for attempt in self._in_hand.values() if attempt.task is not None]
        if tasks:
            await asyncio.wait(tasks, timeout=patience_us / SECOND_US)
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks, timeout=1)
        while self._outbox:
            await self.settle_step(self._clock.now())
        await self._leases.leave()

    def _hold(self, runs: Sequence[ClaimedRun]) -> None:
        now_at = self._clock.now()
        for run in runs:
            attempt = Attempt(run)
            self._in_hand[_key(run)] = attempt
            if run.due_at <= now_at:
                self._start(attempt)
            else:
                attempt.timer = self._starts.add(run.due_at, attempt)
        self.on_timer()

    def _start(self, attempt: Attempt) -> None:
        attempt.task = asyncio.create_task(self._run(attempt))
        if not self._fresh:
            self._arm_at = self._clock.now() + _ARM_AFTER_US
        self._fresh.append(attempt)

    async def _run(self, attempt: Attempt) -> None:
        settlement = await execute(attempt, self._targets, self._clock)
        started_at = attempt.started_at
        if started_at is not None:
            self._telemetry.run_started(started_at - attempt.run.due_at)
        if attempt.timer is not None:
            self._forget_timer(attempt, self._deadlines)
        attempt.task = None
        if _key(attempt.run) in self._in_hand and self._in_hand[_key(attempt.run)] is attempt:
            self._outbox.append((attempt, settlement))
            self.on_outcome()

    def _arm_deadlines(self, now_at: int) -> None:
        """Give a deadline timer to those attempts that are still going."""
        for attempt in self._fresh:
            if attempt.task is not None and attempt.ended_by is None:
                attempt.timer = self._deadlines.add(max(attempt.run.deadline_at, now_at), attempt)
        self._fresh = []

    def _past_deadline(self, attempt: Attempt, now_at: int) -> None:
        if attempt.ended_by is None:
            self._end(attempt, Outcome.TIMED_OUT, now_at)
            return
        _log.error("attempt does not end when cancelled; left behind", run_id=attempt.run.run_id)
        if attempt.task is not None:
            self._left_behind.add(attempt.task)
            attempt.task.add_done_callback(self._left_behind.discard)
        attempt.task = None
        self._outbox.append((attempt, attempt.settled(interrupted(attempt), now_at)))
        self._in_hand[_key(attempt.run)] = Attempt(attempt.run)  # what the old one says later is not heard
        self.on_outcome()

    def _end(self, attempt: Attempt, why: Outcome, now_at: int) -> None:
        if attempt.ended_by is not None or any(attempt is waiting for waiting, _ in self._outbox):
            return
        if attempt.task is None:
            if attempt.timer is not None:
                self._forget_timer(attempt, self._starts)
            self._outbox.append((attempt, attempt.unstarted(Event.CANCEL, now_at, Reason.ASKED)))
            self.on_outcome()
            return
        attempt.ended_by = why
        attempt.task.cancel()
        if attempt.timer is not None:
            self._forget_timer(attempt, self._deadlines)
        attempt.timer = self._deadlines.add(now_at + ABANDON_US, attempt)
        self.on_timer()

    async def _start_anew(self) -> None:
        """The lease ran out: whatever it holds goes on elsewhere, so stop and begin under a new id."""
        _log.warning("lease lost; starting again under a new id", in_hand=len(self._in_hand))
        for attempt in self._in_hand.values():
            if attempt.task is not None:
                attempt.task.cancel()
        self._in_hand.clear()
        self._outbox.clear()
        self._fresh.clear()
        self._starts = Wheel(self._clock.now())
        self._deadlines = Wheel(self._clock.now())
        self._cursors = {}
        self._node_id = await self._leases.join()

    def _forget_timer(self, attempt: Attempt, wheel: Wheel[Attempt]) -> None:
        if attempt.timer is not None:
            wheel.cancel(attempt.timer)
            attempt.timer = None


def _key(run: ClaimedRun) -> tuple[int, int, int]:
    return (run.job_id, run.slot, run.fence)


def _held_key(held: HeldRun) -> tuple[int, int, int]:
    return (held.job_id, held.slot, held.fence)


def _released(held: HeldRun, now_at: int) -> Settlement:
    """Give back a run whose claim was never answered."""
    return Settlement(
        job_id=held.job_id,
        scheduled_at=held.scheduled_at,
        slot=held.slot,
        fence=held.fence,
        event=Event.RELEASE,
        version=0,
        tries=0,
        finished_at=now_at,
    )
