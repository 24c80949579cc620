"""Takes runs ahead of time, starts them on time, and commits what became of them.

In hand is everything between claim and committed outcome; a worker never holds more than it can run.
Two wheels keep time: one for starts, one for deadlines. `step` claims; `tick` starts what is due, a few at a time
and tenants in turn, and ends what is past its deadline; `settle_step` commits outcomes in batches; `heartbeat`
renews the lease.
The outbox only grows at its end and shrinks at its start, under a lock: what is in it is committed or refused.
"""

import asyncio
from collections.abc import Callable, Sequence

from hourhand.clock import Clock
from hourhand.core.instant import SECOND_US
from hourhand.core.lifecycle import Event, Reason
from hourhand.core.model import HttpTarget
from hourhand.core.retry import Outcome
from hourhand.core.run import ClaimedRun, Settlement
from hourhand.core.serving import Serves
from hourhand.core.turns import Turns
from hourhand.core.wheel import Wheel
from hourhand.errors import Unavailable
from hourhand.ports.leases import Leases
from hourhand.ports.queue import Queue
from hourhand.ports.store import Claim, ClaimRequest, Cursor, HeldRun, LeaseLost, Store
from hourhand.services.attempt import Attempt, Targets, execute, interrupted
from hourhand.services.progress import Noted, ProgressBoard, ProgressKeeper, unseen
from hourhand.services.room import Room
from hourhand.services.young import OLD_AFTER_US, Young
from hourhand.telemetry import Telemetry, logger

HEARTBEAT_US = 10 * SECOND_US
ABANDON_US = 7 * SECOND_US  # how long a cancelled attempt may take to end before it is left behind
_STALE_US = 5 * SECOND_US  # past its deadline nothing begins: a little later the sweeper has taken it
_MOST_PER_CLAIM = 2_000
_MOST_PER_SETTLE = 2_000
_MOST_PER_START = 32  # then timers and everybody else have their turn on the loop
_MOST_PER_HOLD = 64  # the same
_SMALL_CLAIM = 1_000  # or a quarter of what it can run
_SMALL_CLAIM_WAIT_US = 10_000  # a little patience makes few large claims of many small ones
_CUT_SHORT_S = 1.0  # how long attempts may take to end when a drain cancels them
_COMMIT_PATIENCE_S = 5.0  # how long a drain tries to commit when the store is away
_COMMIT_PAUSE_S = 0.1

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
        room: Room,
        lead_us: int,
        settled: Settled = lambda batch: None,
        board: ProgressBoard | None = None,
        noted: Noted = unseen,
        serves: Serves | None = None,
    ) -> None:
        self._store = store
        self._queue = queue
        self._leases = leases
        self._targets = targets
        self._clock = clock
        self._telemetry = telemetry
        self._name = name
        self._pools = pools
        self._lead_us = lead_us
        self._settled = settled
        self._serves = serves
        self._told_as = 0  # the id under which it has told what it serves
        self._node_id = 0
        self._sure_until = 0  # until then its lease runs for certain, whatever it has not heard of meanwhile
        self._in_hand: dict[tuple[int, int, int], Attempt] = {}
        self.progress = ProgressKeeper(
            store=store, board=board or ProgressBoard(), ours=lambda: self._in_hand, noted=noted
        )
        self._share = room.join(held=lambda: len(self._in_hand), wake=lambda: self.on_room())
        self._starts: Wheel[Attempt] = Wheel(clock.now())
        self._due: Turns[Attempt] = Turns()  # by tenant
        self._deadlines: Wheel[Attempt] = Wheel(clock.now())
        self._young = Young()  # begun and not yet given a deadline timer
        self._outbox: list[tuple[Attempt, Settlement]] = []
        self._most_per_settle = _MOST_PER_SETTLE
        self._taken = 0
        self._cursors: dict[int, Cursor] = {}
        self._waited = False
        self._draining = False
        self._hurried = asyncio.Event()
        self._claiming = asyncio.Lock()  # a claim under way is not yet in hand, and must not look lost
        self._settling = asyncio.Lock()
        self._left_behind: set[asyncio.Task[None]] = set()
        self.on_room: Callable[[], None] = lambda: None  # wakes `step`
        queue.on_arrival = lambda: self.on_room()
        self.on_outcome: Callable[[], None] = lambda: None  # wakes `settle_step`
        self.on_timer: Callable[[], None] = lambda: None  # wakes `tick`

    @property
    def in_hand(self) -> int:
        """How many runs it holds."""
        return len(self._in_hand)

    async def join(self) -> None:
        """Begin under a new node id."""
        asked_at = self._clock.now()
        self._node_id = await self._leases.join()
        self._assured(asked_at)
        await self._queue.start()
        await self._tell_served()

    async def step(self, now_at: int) -> int | None:
        """Claim what there is room for; answers when it pays to ask again."""
        if self._draining:
            return None
        small = 0 < self._share.free < min(_SMALL_CLAIM, self._share.total // 4)
        if small and not self._waited and not self._share.doubtful:
            self._waited = True
            return now_at + _SMALL_CLAIM_WAIT_US
        self._waited = False
        room = self._share.reserve(_MOST_PER_CLAIM)
        if room == 0:
            return None
        request = ClaimRequest(
            node_id=self._node_id,
            pools=self._pools,
            room=room,
            lead_us=self._lead_us,
            taken_before=self._taken,
            cursors=self._cursors,
        )
        try:
            async with self._claiming:
                claim = await self._queue.take(request)
                await self._hold(claim.runs)
        except LeaseLost:
            self._share.failed()
            await self._start_anew(request.node_id)
            return now_at
        except BaseException:
            self._share.failed()
            raise
        self._share.claimed(more=claim.progressed)
        self._cursors = claim.cursors
        self._taken += len(claim.runs)
        self._telemetry.claimed(len(claim.runs))
        return now_at if claim.progressed else self._ask_again_at(claim)

    def _ask_again_at(self, claim: Claim) -> int | None:
        """When the store said. What it says is to come is not due because its clock was set back and ours is ahead."""
        now_at = self._clock.now()
        if claim.next_at is None or claim.next_at > now_at:
            return claim.next_at
        return now_at + max(0, claim.next_at - claim.now_at)

    def tick(self, now_at: int) -> int | None:
        """Start what is due, end what is past its deadline; answers when the next timer runs out.

        A process that stood still for longer than its lease starts nothing: it goes on elsewhere.
        """
        sure = now_at < self._sure_until
        if sure:
            for attempt in self._starts.advance(now_at):
                attempt.timer = None
                self._due.add(attempt.run.tenant, attempt)
            self._start_some()
        for attempt in self._young.grown(now_at):
            if attempt.ended_by is None:
                self._watch(attempt, now_at)
        for attempt in self._deadlines.advance(now_at):
            attempt.timer = None
            self._past_deadline(attempt, now_at)
        next_start_at = None  # whoever renews the lease wakes it
        if sure:
            next_start_at = now_at if self._due else self._starts.next_due()
        moments = [next_start_at, self._deadlines.next_due(), self._young.next_at()]
        return min((moment for moment in moments if moment is not None), default=None)

    async def settle_step(self, now_at: int) -> int | None:
        """Commit a batch of outcomes; what fails to commit stays in hand and is tried again."""
        async with self._settling:
            batch = self._outbox[: self._most_per_settle]
            if not batch:
                return None
            try:
                refused = await self._store.settle(self._name, [settlement for _, settlement in batch])
            except Exception:
                self._halve(batch)
                raise
            del self._outbox[: len(batch)]
            self._most_per_settle = min(self._most_per_settle * 2, _MOST_PER_SETTLE)
        for attempt, _ in batch:
            self._in_hand.pop(_key(attempt.run), None)
        if refused:
            self._tell_refused(refused, batch)
            known = {id(settlement) for settlement in refused}
            batch = [pair for pair in batch if id(pair[1]) not in known]
        self._share.freed()
        self._telemetry.runs_settled([settlement for _, settlement in batch])
        try:
            self._settled([(attempt.run, settlement) for attempt, settlement in batch])
        except Exception:  # who only watches must not slow down the work
            _log.exception("settled runs could not be shown")
        return now_at if self._outbox else None

    async def heartbeat(self, now_at: int) -> int | None:
        """Renew the lease, and give back what the store thinks it holds and it does not."""
        node_id = self._node_id
        asked_at = self._clock.now()
        try:
            await self._leases.renew()
        except LeaseLost:
            await self._start_anew(node_id)
            return now_at
        self._assured(asked_at)
        await self._tell_served()
        await self._release_strangers(now_at)
        await self.cancel_step(now_at)
        return now_at + HEARTBEAT_US

    async def cancel_step(self, now_at: int) -> int | None:
        """End the attempts that somebody wants cancelled."""
        if not self._in_hand:
            return None
        for held in await self._store.cancel_asked(self._node_id):
            attempt = self._in_hand.get(_held_key(held))
            if attempt is not None:
                self._end(attempt, Outcome.CANCELLED, now_at)
        return None

    async def drain(self, patience_us: int) -> None:
        """Stop claiming, give back what has not begun, and let the rest end; after that, cut it short."""
        self._draining = True
        await self._queue.close()
        now_at = self._clock.now()
        for attempt in list(self._in_hand.values()):
            if attempt.task is None and not attempt.done:
                self._give_back(attempt, now_at)
        tasks = [attempt.task for attempt in self._in_hand.values() if attempt.task is not None]
        if tasks:
            await self._patiently(tasks, patience_us)
            for task in tasks:
                task.cancel()
            _, late = await asyncio.wait(tasks, timeout=_CUT_SHORT_S)
            for task in late:
                task.cancel()  # those that end something first now end it at once
            if late:
                await asyncio.wait(late, timeout=_CUT_SHORT_S)
        await self._commit_rest()
        await self._release_strangers(now_at)

    def cut_short(self) -> None:
        """Somebody does not want to wait for a drain any longer."""
        self._hurried.set()

    async def leave(self) -> None:
        """Give up the lease; whatever it still holds is for the sweeper."""
        await self._leases.leave()

    async def _tell_served(self) -> None:
        """Once under each id; where that fails, with the next heartbeat, since no run depends on it."""
        node_id = self._node_id
        if self._serves is None or self._told_as == node_id:
            return
        try:
            await self._store.tell_served(node_id, self._serves)
        except Unavailable:
            return
        self._told_as = node_id

    def _assured(self, asked_at: int) -> None:
        """The lease was prolonged at some moment after it was asked for, and no clock says it was later than now."""
        self._sure_until = min(asked_at, self._clock.now()) + self._leases.lease_us
        self.on_timer()

    async def _hold(self, runs: Sequence[ClaimedRun]) -> None:
        """Take runs in hand, some at a time: what is due meanwhile does not wait for the rest."""
        for start in range(0, len(runs), _MOST_PER_HOLD):
            if start > 0:
                await asyncio.sleep(0)
            now_at = self._clock.now()
            for run in runs[start : start + _MOST_PER_HOLD]:
                attempt = Attempt(run, now_at)
                self._in_hand[_key(run)] = attempt
                if self._draining:
                    self._give_back(attempt, now_at)
                elif run.due_at <= now_at < self._sure_until:
                    self._due.add(run.tenant, attempt)
                else:
                    attempt.timer = self._starts.add(run.due_at, attempt)
            self._start_some()
            self.on_timer()

    def _start_some(self) -> None:
        """Start what is due, tenants in turn; no more than a few, since nothing else happens meanwhile."""
        for attempt in self._due.take(_MOST_PER_START):
            if not attempt.done:  # neither given back nor cancelled since it was due
                self._start(attempt)

    def _start(self, attempt: Attempt) -> None:
        now_at = self._clock.now()
        if now_at >= attempt.run.deadline_at + _STALE_US:  # this process stood still: it may go on elsewhere
            self._give_back(attempt, now_at)
            return
        attempt.task = asyncio.create_task(self._run(attempt))
        if attempt.run.deadline_at < now_at + OLD_AFTER_US:
            self._watch(attempt, now_at)
        else:
            self._young.add(attempt, now_at)

    async def _run(self, attempt: Attempt) -> None:
        settlement = await execute(attempt, self._targets, self._clock)
        started_at = attempt.started_at
        if started_at is not None:
            self._telemetry.run_started(started_at - attempt.run.due_at)
        if attempt.timer is not None:
            self._forget_timer(attempt, self._deadlines)
        attempt.task = None
        if not attempt.done:
            self._finish(attempt, settlement)

    def _finish(self, attempt: Attempt, settlement: Settlement) -> None:
        """The outcome is decided; the run stays in hand until it is committed."""
        attempt.done = True
        self._outbox.append((attempt, settlement))
        self.on_outcome()

    def _give_back(self, attempt: Attempt, now_at: int) -> None:
        self._forget_timer(attempt, self._starts)
        self._finish(attempt, attempt.unstarted(Event.RELEASE, now_at))

    def _watch(self, attempt: Attempt, now_at: int) -> None:
        """Let a timer end it when its time is up."""
        attempt.timer = self._deadlines.add(max(attempt.run.deadline_at, now_at), attempt)

    def _past_deadline(self, attempt: Attempt, now_at: int) -> None:
        if attempt.ended_by is None:
            self._end(attempt, Outcome.TIMED_OUT, now_at)
            return
        _log.error("attempt does not end when cancelled; left behind", run_id=attempt.run.run_id)
        self._leave_behind(attempt)
        self._finish(attempt, attempt.settled(interrupted(attempt), now_at))

    def _leave_behind(self, attempt: Attempt) -> None:
        if attempt.task is not None:
            self._left_behind.add(attempt.task)
            attempt.task.add_done_callback(self._left_behind.discard)
        attempt.task = None

    def _end(self, attempt: Attempt, why: Outcome, now_at: int) -> None:
        if attempt.ended_by is not None or attempt.done:
            return
        if attempt.task is None:
            self._forget_timer(attempt, self._starts)
            self._finish(attempt, attempt.unstarted(Event.CANCEL, now_at, Reason.ASKED))
            return
        attempt.ended_by = why
        attempt.task.cancel()
        self._forget_timer(attempt, self._deadlines)
        attempt.timer = self._deadlines.add(now_at + ABANDON_US, attempt)
        self.on_timer()

    async def _start_anew(self, lost_id: int) -> None:
        """The lease ran out: whatever it holds goes on elsewhere, so stop and begin under a new id.

        Outcomes that wait to be committed stay: the fence decides whether their runs went on already.
        """
        async with self._claiming:
            if self._node_id != lost_id:  # claim and heartbeat both notice; one new start is enough
                return
            _log.warning("lease lost; starting again under a new id", in_hand=len(self._in_hand))
            for attempt in self._in_hand.values():
                if attempt.done:
                    continue
                attempt.done = True
                attempt.timer = None  # the wheels are new
                if attempt.task is not None:
                    attempt.task.cancel()
                    self._leave_behind(attempt)
            self._in_hand = {_key(attempt.run): attempt for attempt, _ in self._outbox}
            self._young = Young()
            self._starts = Wheel(self._clock.now())
            self._due = Turns()
            self._deadlines = Wheel(self._clock.now())
            self._cursors = {}
            self._share.freed()
            await self.join()

    async def _patiently(self, tasks: Sequence[asyncio.Task[None]], patience_us: int) -> None:
        """Wait for attempts to end, until patience or whoever asked for the drain has none left."""
        ended = asyncio.ensure_future(asyncio.wait(tasks))
        hurried = asyncio.ensure_future(self._hurried.wait())
        await asyncio.wait(
            (ended, hurried), timeout=patience_us / SECOND_US, return_when=asyncio.FIRST_COMPLETED
        )
        ended.cancel()
        hurried.cancel()

    async def _release_strangers(self, now_at: int) -> None:
        """Give back what the store thinks it holds and it does not: a claim whose answer was lost."""
        async with self._claiming:
            held = await self._store.held_runs(self._node_id)
            strangers = [run for run in held if _held_key(run) not in self._in_hand]
            if strangers:
                await self._store.settle(self._name, [_released(run, now_at) for run in strangers])

    async def _commit_rest(self) -> None:
        """Commit every outcome, through a short absence of the store."""
        try:
            async with asyncio.timeout(_COMMIT_PATIENCE_S):
                while self._outbox:
                    try:
                        await self.settle_step(self._clock.now())
                    except Unavailable:
                        await asyncio.sleep(_COMMIT_PAUSE_S)
        except TimeoutError:
            _log.error(
                "outcomes could not be committed; their runs will be tried again", count=len(self._outbox)
            )

    def _halve(self, batch: Sequence[tuple[Attempt, Settlement]]) -> None:
        """Try less at once, so that one outcome that cannot be committed ends up alone, behind the others."""
        self._most_per_settle = max(1, len(batch) // 2)
        if len(batch) == 1:
            self._outbox.append(self._outbox.pop(0))

    def _tell_refused(
        self, refused: Sequence[Settlement], batch: Sequence[tuple[Attempt, Settlement]]
    ) -> None:
        """A target may report before its answer is committed; anything else went on elsewhere without us."""
        by_settlement = {id(settlement): attempt.run for attempt, settlement in batch}
        reportable = sum(isinstance(by_settlement[id(one)].spec.target, HttpTarget) for one in refused)
        if reportable:
            _log.info("outcomes refused: already reported, or the runs went on elsewhere", count=reportable)
        if reportable < len(refused):
            _log.warning("outcomes refused: the runs went on elsewhere", count=len(refused) - reportable)

    def _forget_timer(self, attempt: Attempt, wheel: Wheel[Attempt]) -> None:
        if attempt.timer is not None:
            wheel.cancel(attempt.timer)
            attempt.timer = None


def _key(run: ClaimedRun) -> tuple[int, int, int]:
    """What is in hand; the next run of a job may have the same slot and fence, but not the same time."""
    return (run.job_id, run.scheduled_at, run.fence)


def _held_key(held: HeldRun) -> tuple[int, int, int]:
    return (held.job_id, held.scheduled_at, held.fence)


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
