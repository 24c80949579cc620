"""The claim: take runs for a worker, and decide about those that cannot be taken.

Candidates are gathered lane by lane into a temporary table; the ordinary ones move from `planned` to
`running` in a few set-based statements. Only the exceptions come to Python, where pure policy judges
them: late ones (misfire), due ones whose job is full (overlap), and jobs with several slots.
"""

from collections.abc import Sequence
from itertools import groupby
from typing import Any, NamedTuple

import msgspec

from hourhand.core.identity import CLASSES, LANES_PER_POOL, class_of_lane
from hourhand.core.lanes import divide, floors
from hourhand.core.lifecycle import Reason, State
from hourhand.core.model import Trigger
from hourhand.core.overlap import free_slots, when_full
from hourhand.core.plan import Lateness, judge_late, judge_late_by_versions
from hourhand.core.run import TRIGGER_CODES, ClaimedRun
from hourhand.ports.store import Claim, ClaimRequest, Cursor, Hint, LeaseLost
from hourhand.stores.sqlite.engine import Tx
from hourhand.stores.sqlite.rows import JobRecord, UnstartedRow, decode_spec, versions_of
from hourhand.stores.sqlite.slots import end_unstarted, hand_on

_SCHEDULED = TRIGGER_CODES[Trigger.SCHEDULED]
_LEAST_PER_LANE = 8
_LEAST_AHEAD = 32  # so that a worker with little room does not walk past stuck runs one by one
_FRONT = Cursor(0, 0, 0)
_decoder = msgspec.json.Decoder(list[ClaimedRun])


class ClaimedText(msgspec.Struct, frozen=True, kw_only=True):
    """A claim whose runs are still one text; decoded on the caller's thread."""

    text: str | None
    now_at: int
    next_at: int | None
    progressed: bool
    cursors: dict[int, Cursor]

    def decoded(self) -> Claim:
        """The claim in the port's nouns."""
        runs = [] if self.text is None else _decoder.decode(self.text)
        return Claim(
            runs=runs,
            now_at=self.now_at,
            next_at=self.next_at,
            progressed=self.progressed,
            cursors=self.cursors,
        )


def claim(tx: Tx, request: ClaimRequest) -> ClaimedText:
    """Take up to `room` runs for a node with a live lease."""
    require_lease(tx, request.node_id)
    pools = [row[0] for pool in request.pools if (row := tx.one("pool_id", (pool,))) is not None]
    tx.run("clear_candidates")
    full_lanes = _gather(tx, request, pools)
    decided = _judge_late(tx) + _drop_deleted(tx)
    _give_several_slots(tx)
    if _divide(tx, request):
        full_lanes = []  # the room is used up, so there is no need to look further
    tx.run("take_planned", {"node_id": request.node_id, "now": tx.now_at})
    tx.run("mark_losers")
    tx.run("drop_taken")
    tx.run("take_ready", {"node_id": request.node_id, "now": tx.now_at})
    cursors = _cursors(tx, full_lanes)
    decided += _judge_full(tx)
    text = tx.one("claimed_runs")[0]
    return ClaimedText(
        text=text,
        now_at=tx.now_at,
        next_at=_next_at(tx, pools, request.lead_us),
        progressed=text is not None or decided > 0 or bool(cursors),
        cursors=cursors,
    )


def require_lease(tx: Tx, node_id: int) -> None:
    """Refuse a node whose lease has run out."""
    row = tx.one("lease_of", (node_id,))
    if row is None or row[0] <= tx.now_at:
        raise LeaseLost


class _Lanes(NamedTuple):
    """The lanes of one class in which runs wait."""

    ready: list[int]
    waiting: list[int]


def _gather(tx: Tx, request: ClaimRequest, pools: Sequence[int]) -> list[int]:
    """Fill the candidates class by class, as many as may be needed; answers the lanes with more ahead."""
    until = tx.now_at + request.lead_us
    by_class = [_Lanes([], []) for _ in range(CLASSES)]
    for pool in pools:
        for name, kind in (("ready_lanes", 0), ("waiting_lanes", 1)):
            for lane, due_at in _lanes(tx, name, pool):
                if due_at <= until:
                    by_class[class_of_lane(lane)][kind].append(lane)
    owed = floors(request.room, request.taken_before)
    found = 0
    full: list[int] = []
    for run_class, lanes in enumerate(by_class):
        wanted = max(owed.get(run_class, 0), request.room - found)
        if wanted > 0 and (lanes.ready or lanes.waiting):
            full += _look_at_class(tx, request, run_class, lanes, wanted)
            found += tx.one("count_class", (run_class, tx.now_at))[0]
    return full


def _look_at_class(tx: Tx, request: ClaimRequest, run_class: int, lanes: _Lanes, wanted: int) -> list[int]:
    """Look at some of each lane, and at more where that was not enough; answers the lanes with more ahead."""
    count = len(lanes.ready) + len(lanes.waiting)
    limit = wanted if count == 1 else min(wanted, max(_LEAST_PER_LANE, -(-2 * wanted // count)))
    full, exhausted = _look(tx, request, lanes, limit)
    if limit < wanted and not exhausted and tx.one("count_class", (run_class, tx.now_at))[0] < wanted:
        tx.run("drop_class", (run_class,))
        full, _ = _look(tx, request, lanes, wanted)
    return full


def _look(tx: Tx, request: ClaimRequest, lanes: _Lanes, limit: int) -> tuple[list[int], bool]:
    """Candidates of each lane up to a limit; answers the lanes with more ahead, and whether that was all."""
    until = tx.now_at + request.lead_us
    exhausted = True
    full = []
    for lane in lanes.ready:
        looked = {"lane": lane, "now": tx.now_at, "until": until, "limit": limit}
        exhausted &= tx.run("look_ready", looked).rowcount < limit
    for lane in lanes.waiting:
        found = tx.run("look_due", {"lane": lane, "now": tx.now_at, "limit": limit}).rowcount
        if found >= limit:
            exhausted = False
            continue
        cursor = request.cursors.get(lane, _FRONT)
        page = max(limit - found, _LEAST_AHEAD)
        place = {"due_at": cursor.due_at, "scheduled_at": cursor.scheduled_at, "job_id": cursor.job_id}
        looked = {"lane": lane, "now": tx.now_at, "until": until, "rank": found, "limit": page, **place}
        if tx.run("look_ahead", looked).rowcount >= page:
            exhausted = False
            full.append(lane)
    return full, exhausted


def _divide(tx: Tx, request: ClaimRequest) -> bool:
    """Keep no more than there is room for, shared among the classes; True if something was left out.

    What cannot be taken yet needs no room: counted, it would hold up lower classes that are due.
    """
    waiting = dict(tx.all("count_classes", (tx.now_at,)))
    if sum(waiting.values()) <= request.room:
        return False
    shares = divide(request.room, waiting, request.taken_before)
    for run_class, count in waiting.items():
        if count > shares.get(run_class, 0):
            tx.run("trim_class", (run_class, tx.now_at, shares.get(run_class, 0)))
    return True


def _judge_late(tx: Tx) -> int:
    """The misfire policy for runs that nobody claimed within their grace; answers how many it removed."""
    return sum(judge_one(tx, row[0], UnstartedRow(*row[1:])) for row in tx.all("late_candidates"))


def judge_one(tx: Tx, job_id: int, row: UnstartedRow) -> int:
    """Apply the misfire policy to one late planned run; 1 when it is no longer a candidate."""
    record = JobRecord(*tx.one("get_job", (job_id,)))
    spec = decode_spec(record.spec)
    if row.scheduled_at > record.since:
        verdict = judge_late(spec.rule, spec, row.scheduled_at, record.until, tx.now_at)
    else:  # an earlier version's, so the present rule does not say what came after it
        versions = versions_of(tx, job_id, record)
        verdict = judge_late_by_versions(versions, spec, row.scheduled_at, tx.now_at)
    if verdict is Lateness.RUN:
        return 0
    if verdict is Lateness.BACKGROUND:
        tx.run("to_background", (row.scheduled_at, job_id))
        tx.run("drop_behind", (job_id,))
        tx.hints.add(Hint.RUNS)
    else:
        tx.all("take_planned_row", (row.scheduled_at, job_id))
        detail = {"reason": Reason.MISFIRE.value, "policy": spec.misfire.policy.value}
        end_unstarted(tx, job_id, [row], State.SKIPPED, detail, record.version)
    tx.run("drop_candidate", (job_id, row.scheduled_at))
    return 1


def _drop_deleted(tx: Tx) -> int:
    """Runs of jobs that are gone end as cancelled."""
    rows = tx.all("deleted_candidates")
    for job_id, scheduled_at in rows:
        taken = tx.all("take_planned_row", (scheduled_at, job_id)) or tx.all(
            "take_idle_row", (job_id, scheduled_at)
        )
        unstarted = [UnstartedRow(*row) for row in taken]
        end_unstarted(tx, job_id, unstarted, State.CANCELLED, {"reason": Reason.DELETED.value})
        tx.run("drop_candidate", (job_id, scheduled_at))
    return len(rows)


def _give_several_slots(tx: Tx) -> None:
    """Jobs with several slots: the oldest candidates get the lowest free ones."""
    for job_id, group in groupby(tx.all("several_candidates"), key=lambda row: row[1]):
        rows = list(group)
        used = [row[0] for row in tx.all("slots_of", (job_id,))]
        slots = free_slots(rows[0][3], used, [row[2] for row in rows])
        for index, row in enumerate(rows):
            if index < len(slots):
                tx.run("set_slot", (slots[index], row[0]))
            else:
                tx.run("set_full", (row[0],))


def _judge_full(tx: Tx) -> int:
    """The overlap policy for due runs that found their job full; answers how many left the plan."""
    decided = 0
    for job_id, *unstarted, version, spec_text in tx.all("full_candidates", (tx.now_at,)):
        row = UnstartedRow(*unstarted)
        tx.all("take_planned_row", (row.scheduled_at, job_id))
        decided += 1
        if row.trigger != _SCHEDULED:
            _block(tx, job_id, 1, row)
            continue
        overlap = decode_spec(spec_text).overlap
        waiting = [found[0] for found in tx.all("waiting_scheduled", (job_id,))]
        verdict = when_full(overlap, waiting, row.scheduled_at)
        skipped = [
            UnstartedRow(*found)
            for at in verdict.skip_waiting
            for found in tx.all("take_blocked", (job_id, at))
        ]
        if verdict.wait:
            _block(tx, job_id, 0, row)
        else:
            skipped.append(row)
        detail = {"reason": Reason.OVERLAP.value, "policy": overlap.value}
        end_unstarted(tx, job_id, skipped, State.SKIPPED, detail, version)
        if verdict.cancel_running:
            _cancel_running(tx, job_id, detail)
    return decided


def _cancel_running(tx: Tx, job_id: int, detail: dict[str, Any]) -> None:
    """Ask for what a worker executes; what nobody does, such as a run between two attempts, ends at once."""
    tx.run("ask_cancel", (job_id,))
    tx.hints.add(Hint.CANCEL)
    idle = [UnstartedRow(*row) for row in tx.all("drop_idle_of", (job_id,))]
    end_unstarted(tx, job_id, idle, State.CANCELLED, detail)
    hand_on(tx, job_id)


def _block(tx: Tx, job_id: int, rank: int, row: UnstartedRow) -> None:
    tx.insert(
        "add_blocked",
        [(job_id, rank, row.scheduled_at, row.lane, row.due_at, row.trigger, row.fence, row.tries)],
    )


def _cursors(tx: Tx, full_lanes: Sequence[int]) -> dict[int, Cursor]:
    """Where to walk on in lanes whose page ahead was full of runs that cannot be taken yet."""
    cursors = {}
    for lane in full_lanes:
        if tx.one("stuck_ahead", (lane, tx.now_at)) is not None:
            cursors[lane] = Cursor(*tx.one("last_ahead", (lane, tx.now_at)))
    return cursors


def _next_at(tx: Tx, pools: Sequence[int], lead_us: int) -> int | None:
    """When it pays to ask again: `lead` before the next due time, or at it for what must wait till then."""
    until = tx.now_at + lead_us
    moments = []
    for pool in pools:
        for name, later in (("ready_lanes", "later_ready"), ("waiting_lanes", "later_waiting")):
            for lane, first in _lanes(tx, name, pool):
                following = first
                if first <= until:
                    moments.append(max(first, tx.now_at))
                    following = tx.one(later, (lane, until))[0]
                if following is not None:
                    moments.append(following - lead_us)
    return min(moments, default=None)


def _lanes(tx: Tx, name: str, pool: int) -> list[tuple[int, int]]:
    return tx.all(name, {"first": pool * LANES_PER_POOL, "last": (pool + 1) * LANES_PER_POOL})
