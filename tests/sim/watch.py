"""Sees every row that every commit writes, and says which transitions of runs that was.

Triggers on the tables tell it, so nothing that the code under test says of itself is believed. What no commit may ever do is
held against the table of `core.lifecycle` at once: transitions that do not exist, fences that fall, history that changes,
more slots than a job's limit, more that waits for them than is allowed to, runs that vanish (I5, I8, I11, I13).
"""

import sqlite3
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

from hourhand.core.lifecycle import TRANSITIONS, Event, Phase, State
from hourhand.core.model import MAX_QUEUED, Trigger
from hourhand.core.run import TRIGGER_CODES
from hourhand.stores.relational.rows import STATES
from hourhand.stores.relational.tx import Operation, T

_COLUMNS = {  # job, time, fence, phase or state, slot or attempt, trigger, tries
    "planned": "{0}.job_id, {0}.scheduled_at, {0}.fence, 0, 0, {0}.trigger, {0}.tries",
    "blocked": "{0}.job_id, {0}.scheduled_at, {0}.fence, 0, 0, {0}.trigger, {0}.tries",
    "waiting": "{0}.job_id, {0}.scheduled_at, {0}.fence, 0, {0}.parents, {0}.trigger, 0",
    "running": "{0}.job_id, {0}.scheduled_at, {0}.fence, {0}.phase, {0}.slot, {0}.trigger, {0}.tries",
    "dead": "{0}.job_id, {0}.scheduled_at, {0}.fence, 0, 0, {0}.trigger, {0}.tries",
    "history": "{0}.job_id, {0}.scheduled_at, {0}.attempt, {0}.state, {0}.attempt, {0}.trigger, {0}.tries",
    "jobs": "{0}.id, {0}.version, {0}.concurrency, coalesce({0}.spec ->> '$.misfire.limit', 100), 0, 0, 0",
    "segments": "{0}.segment, 0, {0}.fence, 0, 0, 0, 0",
}
_EVENTS = {
    State.SUCCEEDED: Event.SUCCEED,
    State.RETRYING: Event.RETRY,
    State.FAILED: Event.EXHAUST,
    State.SKIPPED: Event.SKIP,
    State.CANCELLED: Event.CANCEL,
}
# Who may take a run back that nobody ever took: a change of its job, of its backfill, or of a mark to skip it.
_WITHDRAWING = frozenset({"change_job", "delete_job", "tend_jobs", "change_backfill", "unskip_time"})

_CAUGHT_UP = TRIGGER_CODES[Trigger.CATCH_UP]
_BY_SCHEDULE = frozenset({TRIGGER_CODES[Trigger.SCHEDULED], TRIGGER_CODES[Trigger.UPSTREAM]})

Transition = tuple[State, Event]
Key = tuple[int, int]


class Seen(NamedTuple):
    """One run as it is."""

    state: State
    place: str | None
    fence: int
    phase: int
    trigger: int
    tries: int


class Step(NamedTuple):
    """One transition that was committed."""

    key: Key
    state: State
    event: Event
    to: State
    fence: int


class Watch:
    """What was ever committed about runs."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.runs: dict[Key, Seen] = {}
        self.transitions: Counter[Transition] = Counter()
        self.told: Callable[[str, list[Step]], None] = lambda verb, steps: None
        self.verb = ""
        self.violations: list[str] = []
        self.planned = 0
        self.waits: dict[Key, list[str]] = {}  # whom a run waited for
        self._ended: dict[Key, int] = {}  # the last attempt in history
        self._limits: dict[int, int | None] = {}
        self._made_up_for: dict[
            int, int
        ] = {}  # the most missed times that any version of a job wanted to run
        self._queues: dict[int, dict[Key, int]] = {}  # what waits for a job's slots, and by which trigger
        self._slots: dict[int, set[Key]] = {}
        self._segments: dict[int, int] = {}
        self._fresh: list[Key] = []
        self._rows: list[tuple[Any, ...]] = []
        self._install(connection)

    def committed(self) -> None:
        """Make sense of what the operation that was just committed has written."""
        rows, self._rows = self._rows, []
        if not rows:
            return
        touched: dict[Key, list[tuple[Any, ...]]] = {}
        for row in rows:
            match row[0]:
                case "jobs":
                    self._see_job(row)
                case "segments":
                    self._see_segment(row)
                case _:
                    touched.setdefault((row[2], row[3]), []).append(row)
        steps: list[Step] = []
        for key, seen in touched.items():
            steps += self._see_run(key, seen)
        self._check_slots()
        self._check_queues({job_id for job_id, _ in touched})
        for step in steps:
            self.transitions[step.state, step.event] += 1
        if steps:
            self.told(self.verb, steps)

    def undone(self) -> None:
        """The operation failed: nothing of it stays."""
        self._rows.clear()

    # --- what rows say

    def _see_run(self, key: Key, rows: list[tuple[Any, ...]]) -> list[Step]:
        before = self.runs.get(key)
        now = before or Seen(State.PENDING, None, 0, 0, 0, 0)
        steps: list[Step] = []
        lines = []
        places = set() if now.place is None else {now.place}
        for table, op, _, _, fence, phase, detail, trigger, tries in rows:
            if table == "waiting" and op != "delete":
                self.waits.setdefault(key, []).append(detail)
            if table == "history":
                lines.append((op, fence, STATES[phase]))
            elif op == "delete":
                places.discard(table)
            else:
                if op == "insert" and table in places:
                    self._wrong("I6", key, f"is in {table} twice")
                places.add(table)
                if fence < now.fence:
                    self._wrong("I5", key, f"fence fell from {now.fence} to {fence} in {table}")
                now = now._replace(fence=fence, phase=phase, trigger=trigger, tries=tries)
        if len(places) > 1:
            self._wrong("I6", key, f"is in {' and '.join(sorted(places))} at once")
        now = now._replace(place=min(places, default=None))
        state = now.state
        if now.place is not None and (before is None or (before.place is None and state is State.PENDING)):
            self.planned += 1
        for op, attempt, ended in lines:
            if op != "insert":
                if not (op == "delete" and self.verb == "purge"):
                    self._wrong("I8", key, f"history was changed ({op}) by {self.verb}")
                continue
            if attempt <= self._ended.get(key, 0):
                self._wrong("I5", key, f"attempt {attempt} was written after {self._ended[key]}")
            if before is not None and attempt < before.fence:
                self._wrong("I5", key, f"attempt {attempt} ended under the fence {before.fence}")
            self._ended[key] = attempt
            state = self._step(steps, key, state, _EVENTS[ended], attempt)
        state = self._follow(steps, key, before, now, state)
        self.runs[key] = now._replace(state=state)
        held = self._slots.setdefault(key[0], set())
        if now.place == "running":
            held.add(key)
        else:
            held.discard(key)
        queue = self._queues.setdefault(key[0], {})
        if now.place == "blocked":
            queue[key] = now.trigger
        else:
            queue.pop(key, None)
        return steps

    def _follow(self, steps: list[Step], key: Key, before: Seen | None, now: Seen, state: State) -> State:
        """What a move between tables means that left no line in history."""
        place = None if before is None else before.place
        executed = before is not None and place == "running" and before.phase == Phase.EXECUTING
        if now.place == "running":
            return self._follow_running(steps, key, before, now, state, executed)
        if now.place in ("planned", "waiting", "blocked") and state is not State.PENDING:
            if self.verb == "requeue":
                return self._step(steps, key, state, Event.REQUEUE, now.fence)
            self._wrong("I2", key, f"had ended as {state} and was made again by {self.verb}")
        if now.place is None and place == "dead" and state is State.FAILED:
            if self.verb == "discard":
                return self._step(steps, key, state, Event.DISCARD, now.fence)
            return state
        if now.place is None and place is not None and not steps:
            assert before is not None
            if self.verb not in _WITHDRAWING or before.fence:
                self._wrong("I1", key, f"vanished from {place} by {self.verb}, fence {before.fence}")
            self.planned -= 1
        return state

    def _follow_running(
        self, steps: list[Step], key: Key, before: Seen | None, now: Seen, state: State, executed: bool
    ) -> State:
        fence = 0 if before is None else before.fence
        if now.phase == Phase.EXECUTING and now.fence > fence:
            if before is None or before.place != "running":
                self._fresh.append(key)
            return self._step(steps, key, state, Event.CLAIM, now.fence)
        if now.phase == Phase.EXECUTING and not executed:
            self._wrong("I5", key, "was taken without a new fence")
        if now.phase == Phase.REPORTED and executed:
            return self._step(steps, key, state, Event.REPORT_LATER, now.fence)
        if now.phase == Phase.READY and executed:
            return self._step(steps, key, state, Event.RELEASE, now.fence)
        return state

    def _step(self, steps: list[Step], key: Key, state: State, event: Event, fence: int) -> State:
        way = TRANSITIONS.get((state, event))
        if way is None:
            self._wrong("I8", key, f"was {state} and did {event} by {self.verb}")
            return state
        steps.append(Step(key, state, event, way[0], fence))
        return way[0]

    def _see_job(self, row: tuple[Any, ...]) -> None:
        _, op, job_id, _, limit, made_up_for, *_ = row
        self._limits[job_id] = None if op == "delete" else limit
        self._made_up_for[job_id] = max(made_up_for, self._made_up_for.get(job_id, 0))

    def _see_segment(self, row: tuple[Any, ...]) -> None:
        _, _, segment, _, fence, *_ = row
        if fence < self._segments.get(segment, 0):
            self.violations.append(f"I5 the fence of segment {segment} fell to {fence}")
        self._segments[segment] = fence

    def _check_slots(self) -> None:
        """I11: a run that takes a new slot takes one of those that its job has now."""
        for key in self._fresh:
            limit, held = self._limits.get(key[0]), len(self._slots[key[0]])
            if limit is not None and held > limit:
                self._wrong("I11", key, f"is one of {held} under a limit of {limit}")
        self._fresh.clear()

    def _check_queues(self, job_ids: set[int]) -> None:
        """I13: no more scheduled runs wait for slots than a queue is long, no more missed ones than are made up for."""
        for job_id in job_ids:
            waiting = list(self._queues[job_id].values())
            if not waiting:
                continue
            scheduled = sum(trigger in _BY_SCHEDULE for trigger in waiting)
            missed = waiting.count(_CAUGHT_UP)
            if scheduled > MAX_QUEUED or missed > self._made_up_for[job_id]:
                self.violations.append(
                    f"I13 {scheduled} scheduled and {missed} missed runs of {job_id} wait for its slots"
                )

    def _wrong(self, invariant: str, key: Key, text: str) -> None:
        self.violations.append(f"{invariant} run {key[0]}@{key[1]} {text}")

    # --- how it gets to know

    def _install(self, connection: sqlite3.Connection) -> None:
        connection.create_function("tell_sim", 9, lambda *row: self._rows.append(row))
        for table, columns in _COLUMNS.items():
            for op, side in (("insert", "new"), ("delete", "old"), ("update", "new")):
                connection.execute(
                    f"CREATE TEMP TRIGGER sim_{table}_{op} AFTER {op.upper()} ON main.{table}"
                    f" BEGIN SELECT tell_sim('{table}', '{op}', {columns.format(side)}); END"
                )


class WatchedEngine:
    """The store's engine, with somebody who looks after each commit."""

    def __init__(self, inner: Any, watch: Watch) -> None:
        self._inner = inner
        self._watch = watch

    async def write(self, operation: Operation[T]) -> T:
        """Execute, and look at what was written."""
        try:
            answer: T = await self._inner.write(operation)
        except BaseException:
            self._watch.undone()
            raise
        self._watch.committed()
        return answer

    async def read(self, operation: Operation[T]) -> T:
        """Reading changes nothing."""
        answer: T = await self._inner.read(operation)
        return answer

    async def glance(self, operation: Operation[T]) -> T:
        """Nor does a glance."""
        return await self.read(operation)

    async def close(self) -> None:
        """As the engine does."""
        await self._inner.close()
