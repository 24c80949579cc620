"""Looks at single calls of a simulated store: what nobody may do, and what no later look at the tables would tell.

A plan under a fence that its segment no longer has changes nothing, and a segment changes hands under the next one (I5);
the same request makes one run, and what is to be sent at most once is taken when it is due (I2); what is late and to be
skipped then is not taken (I14); nothing begins whose tries are used up (I8); nothing is taken from a worker that
lives (I11); nobody has more in hand than room, and no backfill more open than it may (I13).
"""

import sqlite3
from collections.abc import Sequence
from typing import Any

from hourhand.core.instant import HOUR_US
from hourhand.core.model import Delivery, MisfirePolicy, Trigger
from hourhand.core.run import TRIGGERS, ClaimedRun
from hourhand.stores.relational.rows import decode_spec
from tests.sim.machine import acting_machine

_KEY_LIFE_US = 12 * HOUR_US  # a request's key is known for longer

Rows = dict[Any, Any]


class Referee:
    """One for all calls of a world; nothing else happens while a call is carried out."""

    def __init__(self, world: Any) -> None:
        self._world = world
        self._connection: sqlite3.Connection = world.connection
        self._requests: dict[tuple[int, str], tuple[int, Any]] = {}  # when, and which run it was

    def before(self, verb: str, args: Sequence[Any]) -> Rows:
        """What the call is to be held against."""
        match verb:
            case "plan":
                return self._stale_clocks(args[0])
            case "hold_segments":
                return self._rows("SELECT segment, node_id, fence FROM segments WHERE node_id IS NOT NULL")
            case "claim":
                return self._rows("SELECT job_id, scheduled_at, 0 FROM running WHERE phase IN (0, 3)")
            case _:
                return {}

    def after(self, verb: str, args: Sequence[Any], before: Rows, answer: Any) -> None:
        """Hold what a call did against what it may do."""
        match verb:
            case "plan":
                self._look_at_clocks(before)
            case "hold_segments":
                self._look_at_segments(before)
            case "claim":
                self._look_at_claim(answer.runs, before)
            case "stray_runs":
                self._look_at_strays(answer)
            case "feed_backfill" if answer is not None:
                self._look_at_backfill(answer.backfill)
            case "add_run" if answer is not None and args[2] is not None:
                self._look_at_request((args[1], args[2]), answer)

    def begins(self, run: ClaimedRun) -> None:
        """An attempt begins."""
        if run.tries > run.spec.retry.max and run.tries > self._most_tries(run.job_id):
            self._wrong(f"I8 {run.run_id} begins after {run.tries} failures, and its tries are used up")
        for life in self._world.cluster.lives:
            room = self._world._script.mix.room
            if life.machine is acting_machine() and life.node.in_hand > room:
                self._wrong(f"I13 a worker holds {life.node.in_hand} runs and has room for {room}")

    def _stale_clocks(self, plans: Sequence[Any]) -> Rows:
        """Where the clocks are that are planned under an old fence: they must stay there."""
        stale = {}
        for plan in plans:
            row = self._connection.execute(
                "SELECT c.next_at, s.fence FROM clocks c JOIN segments s ON s.segment = c.segment WHERE c.id = ?",
                (plan.clock_id,),
            ).fetchone()
            if row is not None and row[1] != plan.fence:
                stale[plan.clock_id] = row[0]
        return stale

    def _look_at_clocks(self, before: Rows) -> None:
        for clock_id, next_at in before.items():
            row = self._connection.execute("SELECT next_at FROM clocks WHERE id = ?", (clock_id,)).fetchone()
            if row != (next_at,):
                self._wrong(f"I5 clock {clock_id} was planned under an old fence of its segment")

    def _look_at_segments(self, before: Rows) -> None:
        holders = {segment: (node_id, fence) for (segment, node_id), fence in before.items()}
        for segment, node_id, fence in self._connection.execute(
            "SELECT segment, node_id, fence FROM segments"
        ):
            holder, old_fence = holders.get(segment, (None, -1))
            if node_id is not None and node_id != holder and fence <= max(old_fence, 0):
                self._wrong(f"I5 segment {segment} changed hands under the fence {fence}")

    def _look_at_claim(self, runs: Sequence[ClaimedRun], had_slots: Rows) -> None:
        now_at = self._world.clock.now()
        for run in runs:
            misfire = run.spec.misfire
            is_late = run.due_at + misfire.grace_us < now_at and tuple(run.key) not in had_slots
            if run.spec.delivery is Delivery.AT_MOST_ONCE and run.due_at > now_at:
                self._wrong(f"I2 {run.run_id} was taken before it is due, and is to be sent at most once")
            is_scheduled = TRIGGERS[run.trigger_code] is Trigger.SCHEDULED
            if is_late and is_scheduled and misfire.policy is MisfirePolicy.SKIP:
                self._wrong(
                    f"I14 {run.run_id} was taken {now_at - run.due_at} µs late, and was to be skipped"
                )

    def _look_at_strays(self, strays: Sequence[Any]) -> None:
        live = "SELECT 1 FROM running r JOIN nodes n ON n.id = r.node_id WHERE r.job_id = ? AND r.slot = ? AND n.lease_until > ?"
        for stray in strays:
            place = (stray.job_id, stray.slot, self._world.clock.now())
            if stray.worker_lost and self._connection.execute(live, place).fetchone():
                self._wrong(f"I11 a run of {stray.job_id} is taken from a worker whose lease runs")

    def _look_at_backfill(self, backfill: Any) -> None:
        if backfill.tally.open > backfill.spec.max_open:
            self._wrong(
                f"I13 a backfill has {backfill.tally.open} runs open, of at most {backfill.spec.max_open}"
            )

    def _look_at_request(self, request: tuple[int, str], made: Any) -> None:
        now_at = self._world.clock.now()
        at, known = self._requests.setdefault(request, (now_at, made))
        if known != made and abs(now_at - at) < _KEY_LIFE_US:
            self._wrong(f"I2 the request {request[1]} made two runs of {request[0]}")

    def _most_tries(self, job_id: int) -> int:
        """The most that any version of a job has allowed."""
        specs = self._connection.execute(
            "SELECT spec FROM jobs WHERE id = ?1 UNION ALL SELECT spec FROM versions WHERE job_id = ?1",
            (job_id,),
        )
        return max((decode_spec(spec).retry.max for (spec,) in specs), default=0)

    def _rows(self, query: str) -> Rows:
        return {row[:2]: row[2] for row in self._connection.execute(query)}

    def _wrong(self, text: str) -> None:
        self._world.violations.append(text)
