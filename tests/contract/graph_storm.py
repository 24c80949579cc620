"""Random graphs under random outcomes, edits, pauses, cancels and deletes, and what must hold of them afterwards.

The storm keeps its own account of who followed whom for which times, from the answers it got; the check knows
nothing of the store's edges, waits and signals but that none of the latter two may be left over.
"""

import random
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from hourhand.core.dag import MAX_DEPTH
from hourhand.core.identity import RunKey, parse_job_id
from hourhand.core.instant import MINUTE_US, SECOND_US
from hourhand.core.lifecycle import FINAL, Event, State
from hourhand.core.model import AfterTiming, Job, Overlap, Trigger
from hourhand.core.run import ClaimedRun, RunView
from hourhand.errors import Conflict, Invalid, Overloaded
from hourhand.ports.store import Unfit
from tests.contract.builders import draft, every, outcome, spec
from tests.contract.harness import LEAD_US
from tests.contract.scene import Scene

WAIT_US = 30 * MINUTE_US
MAX_JOBS = 12
_NATURAL = {Trigger.SCHEDULED, Trigger.CATCH_UP, Trigger.UPSTREAM}


@dataclass
class Known:
    """What the storm knows of one job."""

    job: Job
    parents: list[tuple[int, frozenset[int]]]  # from when on, whom it follows
    deleted_at: int | None = None
    paused_ever: bool = False
    started: dict[int, list[int]] = field(default_factory=dict)  # nominal time: when it was claimed

    def parents_at(self, at: int) -> frozenset[int]:
        found: frozenset[int] = frozenset()
        for since, parents in self.parents:
            if since < at:
                found = parents
        return found

    @property
    def now_follows(self) -> frozenset[int]:
        return self.parents[-1][1]


class GraphStorm:
    """One seed's worth of trouble."""

    def __init__(self, scene: Scene, seed: int) -> None:
        self.scene = scene
        self.random = random.Random(seed)
        self.known: dict[int, Known] = {}
        self.in_hand: list[ClaimedRun] = []
        self.counts: Counter[str] = Counter()
        self.node = 0

    async def run(self, steps: int) -> None:
        self.node = await self.scene.worker()
        await self.make_root()
        actions = {
            self.make_root: 1,
            self.make_child: 6,
            self.rewire: 3,
            self.pause_or_resume: 2,
            self.delete: 1,
            self.pass_time: 5,
            self.claim: 16,
            self.finish: 24,
            self.descend: 10,
            self.judge: 3,
            self.send_down: 2,
            self.requeue: 3,
            self.cancel: 2,
        }
        for _ in range(steps):
            [action] = self.random.choices(list(actions), list(actions.values()))
            await action()
        await self.come_to_rest()

    # --- what happens
    async def make_root(self) -> None:
        await self._make(frozenset())

    async def make_child(self) -> None:
        if len(self._living()) < MAX_JOBS:
            await self._make(self._some_living())

    async def rewire(self) -> None:
        job = self._any()
        if job is None or not job.now_follows:
            return
        parents = self._some_living()
        closes = job.job.id in parents or any(job.job.id in self._above(one) for one in parents)
        try:
            changed = await self.scene.change(job.job, timing=_after(parents))
        except Invalid:
            assert closes, "a change was refused that closes no circle"
            self.counts["circle refused"] += 1
            return
        assert not closes, "a circle was not refused"
        if parents != job.now_follows:
            job.parents.append((changed.effective_from, parents))
        self.counts["rewired"] += 1

    async def pause_or_resume(self) -> None:
        job = self._any()
        if job is not None:
            job.paused_ever = True
            await self.scene.change(job.job, paused=self.random.random() < 0.5)
            self.counts["paused or resumed"] += 1

    async def delete(self) -> None:
        job = self._any()
        if job is None:
            return
        followed = any(job.job.id in one.now_follows for one in self._living())
        try:
            changed = await self.scene.delete(job.job, cancel_running=self.random.random() < 0.5)
        except Conflict:
            assert followed
            self.counts["delete refused"] += 1
            return
        assert not followed, "a job was deleted that others follow"
        job.deleted_at = changed.effective_from
        self.counts["deleted"] += 1

    async def pass_time(self) -> None:
        self.scene.pass_time(self.random.choice([1, 5, 20, 60]))
        await self.scene.plan()

    async def claim(self) -> None:
        room = self.random.randint(1, 5)
        claim = await self.scene.claim(self.node, room, lead_us=0)
        for run in claim.runs:
            self.known[run.job_id].started.setdefault(run.scheduled_at, []).append(self.scene.now)
        self.in_hand += claim.runs

    async def finish(self) -> None:
        if not self.in_hand:
            return
        run = self.in_hand.pop(self.random.randrange(len(self.in_hand)))
        event = self.random.choices(
            [Event.SUCCEED, Event.EXHAUST, Event.SKIP, Event.CANCEL, Event.RETRY, Event.RELEASE],
            [12, 3, 1, 1, 1, 1],
        )[0]
        await self._end(run, event)

    async def descend(self) -> None:
        await self.scene.store.descend(self.random.choice([1, 3, 100]))

    async def judge(self) -> None:
        await self.scene.store.judge_waits(self.random.choice([1, 100]))

    async def send_down(self) -> None:
        job = self._any()
        if job is not None:
            try:
                await self.scene.store.add_run(job.job.tenant, job.job.id, None, downstream=True)
            except Overloaded:
                return
            self.counts["sent down"] += 1

    async def requeue(self) -> None:
        letters = (await self.scene.tables()).dead
        if letters:
            letter = self.random.choice(letters)
            key = RunKey(letter.job_id, letter.scheduled_at)
            tenant = self.known[letter.job_id].job.tenant
            downstream = self.random.random() < 0.7
            await self.scene.store.requeue(tenant, [key], downstream=downstream)
            self.counts["requeued"] += 1

    async def cancel(self) -> None:
        job = self._any()
        if job is None:
            return
        live = [view for view in await self.scene.runs(job.job) if view.state not in FINAL]
        if live:
            key = RunKey(job.job.id, self.random.choice(live).scheduled_at)
            await self.scene.store.cancel_run(job.job.tenant, key)
            self.counts["cancelled"] += 1

    async def come_to_rest(self) -> None:
        """Everybody is left in peace: pauses stay, what runs succeeds, and time goes by."""
        for job in self._living():
            if not job.now_follows:
                await self.scene.pause(job.job)
                job.paused_ever = True
        for _ in range(200):
            while self.in_hand:
                await self._end(self.in_hand.pop(), Event.SUCCEED)
            await self.scene.store.descend(100)
            await self.scene.store.judge_waits(100)
            await self.scene.store.hand_on_slots(100)
            before = len(self.in_hand)
            await self.claim()
            if len(self.in_hand) == before:
                self.scene.pass_time(60)

    # --- what must hold
    async def check(self) -> None:
        tables = await self.scene.tables()
        assert not tables.planned
        assert not tables.running
        assert not tables.blocked
        assert (await self.scene.store.backlog()).waiting == 0, "runs wait for ever"
        assert await self.scene.store.descend(100) == 0
        lines = Counter((line.job_id, line.scheduled_at, line.attempt) for line in tables.history)
        assert max(lines.values(), default=0) <= 1
        views = {
            (view.job_id, view.scheduled_at): view
            for known in self._living()
            for view in await self.scene.runs(known.job)
        }
        for (job_id, at), view in views.items():
            assert view.state in FINAL, (view, "has not ended")
            self._check_start(self.known[job_id], at, view, views)
        for known in self._living():
            self._check_coverage(known, views)

    def _check_start(self, job: Known, at: int, view: RunView, views: dict[tuple[int, int], RunView]) -> None:
        """I12: a dependent starts only after all its parents have succeeded."""
        if view.trigger is not Trigger.UPSTREAM or at not in job.started:
            return
        for parent in job.parents_at(at):
            above = views.get((parent, at))
            if above is None:
                assert self.known[parent].deleted_at is not None, "it ran without its parent"
                continue
            ended = [row.finished_at for row in above.attempts if row.state is State.SUCCEEDED]
            assert ended, f"it ran although a parent is {above.state}"
            assert min(ended) <= min(job.started[at])

    def _check_coverage(self, job: Known, views: dict[tuple[int, int], RunView]) -> None:
        """A time for which all parents have a run of the schedule has one of the child too, with the right end."""
        for (parent, at), above in list(views.items()):
            if parent not in job.parents_at(at) or above.trigger not in _NATURAL:
                continue
            view = views.get((job.job.id, at))
            assert view is not None, f"a time was lost: {at} of {job.job.spec.name}"
            states = {views[one, at].state for one in job.parents_at(at) if (one, at) in views}
            self.counts[f"child {view.state}"] += 1
            reason = (view.attempts[-1].detail or {}).get("reason")
            if view.state is State.SKIPPED and reason == "upstream":
                named = parse_job_id((view.attempts[-1].detail or {})["parent"])
                assert named in job.parents_at(at), "a stranger is named"
            elif at in job.started and view.trigger is Trigger.UPSTREAM:
                assert states == {State.SUCCEEDED}

    # --- how
    async def _make(self, parents: frozenset[int]) -> None:
        timing = _after(parents) if parents else every(60)
        name = f"job-{len(self.known)}"
        overlap = self.random.choice([Overlap.QUEUE, Overlap.QUEUE_ONE, Overlap.SKIP])
        [made] = await self.scene.store.create_jobs([draft(spec(timing, name=name, overlap=overlap))])
        assert isinstance(made, Job) or (isinstance(made, Unfit) and not parents <= set(self.known)), made
        if isinstance(made, Job):
            since = self.scene.now + (LEAD_US if parents else 0)
            self.known[made.id] = Known(made, [(since, parents)])

    async def _end(self, run: ClaimedRun, event: Event) -> None:
        now_at = self.scene.now
        fields: dict[str, Any] = {}
        if event is Event.EXHAUST:
            fields = {"tries": run.tries + 1, "detail": {"error": "it broke"}}
        elif event is Event.RETRY:
            fields = {"tries": run.tries + 1, "due_at": now_at + SECOND_US}
        elif event is Event.SKIP:
            fields = {"detail": {"reason": "so"}}
        await self.scene.settle(outcome(run, event, now_at=now_at, **fields))

    def _living(self) -> list[Known]:
        return [one for one in self.known.values() if one.deleted_at is None]

    def _any(self) -> Known | None:
        living = self._living()
        return self.random.choice(living) if living else None

    def _some_living(self) -> frozenset[int]:
        living = [one.job.id for one in self._living()]
        if not living:
            return frozenset()
        return frozenset(self.random.sample(living, min(len(living), self.random.randint(1, 3))))

    def _above(self, job_id: int) -> set[int]:
        found: set[int] = set()
        frontier = set(self.known[job_id].now_follows)
        for _ in range(MAX_DEPTH):
            found |= frontier
            frontier = {up for one in frontier for up in self.known[one].now_follows} - found
        return found


def _after(parents: frozenset[int]) -> AfterTiming:
    return AfterTiming(parents=tuple(sorted(parents)), wait_us=WAIT_US)
