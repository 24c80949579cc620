"""The claim: take runs for a worker, and decide about those that cannot be taken.

Candidates are gathered lane by lane into a temporary table; the ordinary ones move from `planned` to
`running` in a few set-based statements. Only the exceptions come to Python, where pure policy judges
them: late ones (misfire), due ones whose job is full (overlap), and jobs with several slots.
"""

import asyncio
from collections.abc import Sequence
from itertools import groupby
from typing import Any, NamedTuple

import msgspec

from hourhand.core.identity import BACKGROUND, CLASSES, LANES_PER_POOL, RunKey, class_of_lane
from hourhand.core.lanes import BRIEF_LEAD_US, NEWEST_SHARE, divide, floors
from hourhand.core.overlap import free_slots, in_order
from hourhand.core.plan import Lateness
from hourhand.core.run import ClaimedRun
from hourhand.ports.store import Claim, ClaimRequest, Cursor, LeftRun
from hourhand.stores.relational.judging import FullRun, end_deleted, judge_full_jobs, judge_late_runs
from hourhand.stores.relational.naming import named_runs, places_of, still_waiting
from hourhand.stores.relational.nodes import require_lease
from hourhand.stores.relational.rows import UnstartedRow, to_json
from hourhand.stores.relational.slots import taken_slots
from hourhand.stores.relational.tx import Tx
from hourhand.stores.relational.upcoming import LanePage

_LEAST_PER_LANE = 8
_LEAST_AHEAD = 32  # so that a worker with little room does not walk past stuck runs one by one
_FRONT = Cursor(0, 0, 0)
_DECODED_AT_ONCE = 64  # then whoever waits for the loop has a turn: a large claim takes milliseconds
_split = msgspec.json.Decoder(list[msgspec.Raw]).decode
_decode = msgspec.json.Decoder(ClaimedRun).decode


class ClaimedText(msgspec.Struct, frozen=True, kw_only=True):
    """A claim whose runs are still one text; decoded on the caller's thread."""

    text: str | None
    now_at: int
    next_at: int | None
    progressed: bool
    cursors: dict[int, Cursor]
    left: tuple[LeftRun, ...] = ()

    async def decoded(self) -> Claim:
        """The claim in the port's nouns."""
        texts = [] if self.text is None else _split(self.text)
        runs: list[ClaimedRun] = []
        for start in range(0, len(texts), _DECODED_AT_ONCE):
            if start > 0:
                await asyncio.sleep(0)
            runs += map(_decode, texts[start : start + _DECODED_AT_ONCE])
        return Claim(
            runs=runs,
            now_at=self.now_at,
            next_at=self.next_at,
            progressed=self.progressed,
            cursors=self.cursors,
            left=self.left,
        )


async def claim(tx: Tx, request: ClaimRequest) -> ClaimedText:
    """Take up to `room` runs for a node with a live lease."""
    await require_lease(tx, request.node_id)
    if request.named:
        return await _claim_named(tx, request)
    pools = [row[0] for pool in request.pools if (row := await tx.one("pool_id", (pool,))) is not None]
    fronts = await _fronts(tx, pools)
    if all(front.due_at > tx.now_at + request.lead_us for front in fronts):
        return await _nothing(tx, fronts, request.lead_us)
    await tx.run("clear_candidates")
    full_lanes = await _gather(tx, request, fronts)
    decided = await _judge_late(tx) + await _drop_deleted(tx)
    await _give_several_slots(tx)
    if await _divide(tx, request):
        full_lanes = []  # the room is used up, so there is no need to look further
    await _take(tx, request.node_id)
    cursors = await _cursors(tx, full_lanes)
    decided += await _judge_full(tx)
    text = (await tx.one("claimed_runs"))[0]
    if text is None and not decided and not cursors:
        return await _nothing(tx, fronts, request.lead_us)
    return ClaimedText(text=text, now_at=tx.now_at, next_at=None, progressed=True, cursors=cursors)


async def _nothing(tx: Tx, fronts: "Sequence[_Front]", lead_us: int) -> ClaimedText:
    """Nothing was taken and nothing decided, so that the lanes are as they were."""
    next_at = await _next_at(tx, fronts, lead_us)
    return ClaimedText(text=None, now_at=tx.now_at, next_at=next_at, progressed=False, cursors={})


async def _claim_named(tx: Tx, request: ClaimRequest) -> ClaimedText:
    """Take these runs wherever they wait, and tell which of them still do."""
    keys = named_runs(request)
    bounds = {"now": tx.now_at, "until": tx.now_at + request.lead_us, "pools": to_json(request.pools)}
    await tx.run("clear_candidates")
    await tx.run("look_named", {"keys": to_json(keys), **bounds})
    await tx.run("look_named_ready", {"places": to_json(places_of(keys)), **bounds})
    decided = await _judge_late(tx) + await _drop_deleted(tx)
    await _give_several_slots(tx)
    await _take(tx, request.node_id)
    decided += await _judge_full(tx)
    text = (await tx.one("claimed_runs"))[0]
    taken = {RunKey(*row) for row in await tx.all("taken_candidates")}
    return ClaimedText(
        text=text,
        now_at=tx.now_at,
        next_at=None,
        progressed=text is not None or decided > 0,
        cursors=request.cursors,
        left=await still_waiting(tx, request, [key for key in keys if key not in taken]),
    )


async def _take(tx: Tx, node_id: int) -> None:
    """The candidates with a slot become running."""
    await tx.run("take_planned", {"node_id": node_id, "now": tx.now_at})
    await tx.run("mark_losers")
    await tx.run("drop_taken")
    await tx.run("take_ready", {"node_id": node_id, "now": tx.now_at})


async def look_ahead(
    tx: Tx, statement: str, pages: Sequence[LanePage], until_at: int, most: int, routed: bool
) -> list[Any]:
    """What waits in some lanes, one after the other."""
    rows: list[Any] = []
    for page in pages:
        place = {"due_at": page.due_at, "scheduled_at": page.scheduled_at, "job_id": page.job_id}
        asked = {"lane": page.lane, **place, "until": until_at, "most": most, "routed": int(routed)}
        rows += await tx.all(statement, asked)
    return rows


class _Front(NamedTuple):
    """A lane in which runs wait, and the first due time there."""

    lane: int
    due_at: int
    is_ready: bool  # of ready and retrying runs, not of planned ones


class _Lanes(NamedTuple):
    """The lanes of one class in which runs wait."""

    ready: list[int]
    waiting: list[int]


async def _gather(tx: Tx, request: ClaimRequest, fronts: Sequence[_Front]) -> list[int]:
    """Fill the candidates with what is due soon, and if that leaves room, with all within the lead."""
    brief = msgspec.structs.replace(request, lead_us=min(BRIEF_LEAD_US, request.lead_us))
    if brief != request and any(front.due_at <= tx.now_at + brief.lead_us for front in fronts):
        found, full = await _gather_within(tx, brief, fronts)
        if found >= request.room:
            return full
        await tx.run("clear_candidates")
    _, full = await _gather_within(tx, request, fronts)
    return full


async def _gather_within(tx: Tx, request: ClaimRequest, fronts: Sequence[_Front]) -> tuple[int, list[int]]:
    """Fill the candidates class by class, as many as may be needed; answers how many can be taken or
    decided, and the lanes with more ahead."""
    until = tx.now_at + request.lead_us
    by_class = [_Lanes([], []) for _ in range(CLASSES)]
    for front in fronts:
        if front.due_at <= until:
            lanes = by_class[class_of_lane(front.lane)]
            (lanes.ready if front.is_ready else lanes.waiting).append(front.lane)
    owed = floors(request.room, request.taken_before)
    found = 0
    full: list[int] = []
    for run_class, lanes in enumerate(by_class):
        wanted = max(owed.get(run_class, 0), request.room - found)
        if wanted > 0 and (lanes.ready or lanes.waiting):
            full += await _look_at_class(tx, request, run_class, lanes, wanted)
            found += (await tx.one("count_class", (run_class, tx.now_at)))[0]
    return found, full


async def _look_at_class(
    tx: Tx, request: ClaimRequest, run_class: int, lanes: _Lanes, wanted: int
) -> list[int]:
    """Look at some of each lane, and at more where that was not enough; answers the lanes with more ahead."""
    count = len(lanes.ready) + len(lanes.waiting)
    limit = wanted if count == 1 else min(wanted, max(_LEAST_PER_LANE, -(-2 * wanted // count)))
    full, exhausted = await _look(tx, request, lanes, limit)
    if limit < wanted and not exhausted and (await tx.one("count_class", (run_class, tx.now_at)))[0] < wanted:
        await tx.run("drop_class", (run_class,))
        full, _ = await _look(tx, request, lanes, wanted)
    return full


async def _look(tx: Tx, request: ClaimRequest, lanes: _Lanes, limit: int) -> tuple[list[int], bool]:
    """Candidates of each lane up to a limit; answers the lanes with more ahead, and whether that was all."""
    until = tx.now_at + request.lead_us
    exhausted = True
    full = []
    before: dict[int, int] = {}  # of each lane, what comes before those that wait
    for lane in lanes.ready:
        looked = {"lane": lane, "now": tx.now_at, "until": until, "limit": limit}
        before[lane] = await tx.run("look_ready", looked)
        exhausted &= before[lane] < limit
    for lane in lanes.waiting:
        rank = before.get(lane, 0)
        due = {"lane": lane, "now": tx.now_at, "until": min(tx.now_at, until), "rank": rank, "limit": limit}
        found = await tx.run("look_due", due)
        if found >= limit:
            exhausted = False
            await _look_behind(tx, request, lane, limit // NEWEST_SHARE)
            continue
        page = max(limit - found, _LEAST_AHEAD)
        ahead = {"rank": rank + found, "step": 1, "until": until, "limit": page}
        if await _look_ahead(tx, request, lane, ahead) >= page:
            exhausted = False
            full.append(lane)
    return full, exhausted


async def _look_behind(tx: Tx, request: ClaimRequest, lane: int, limit: int) -> None:
    """Where more is due in a lane than is looked at: some of what was due last and of what is due next, between the
    others."""
    if limit == 0 or class_of_lane(lane) == BACKGROUND:
        return
    newest = {"lane": lane, "now": tx.now_at, "step": NEWEST_SHARE, "limit": limit}
    await tx.run("look_newest", newest)
    until = tx.now_at + min(request.lead_us, BRIEF_LEAD_US)
    await _look_ahead(tx, request, lane, {"rank": 0, "step": NEWEST_SHARE, "until": until, "limit": limit})


async def _look_ahead(tx: Tx, request: ClaimRequest, lane: int, page: dict[str, int]) -> int:
    """Candidates of a lane that are not due yet, from where an earlier walk ended."""
    cursor = request.cursors.get(lane, _FRONT)
    place = {"due_at": cursor.due_at, "scheduled_at": cursor.scheduled_at, "job_id": cursor.job_id}
    return await tx.run("look_ahead", {"lane": lane, "now": tx.now_at, **place, **page})


async def _divide(tx: Tx, request: ClaimRequest) -> bool:
    """Keep no more than there is room for, shared among the classes; True if something was left out.

    What cannot be taken yet needs no room: counted, it would hold up lower classes that are due.
    """
    waiting = dict(await tx.all("count_classes", (tx.now_at,)))
    if sum(waiting.values()) <= request.room:
        return False
    shares = divide(request.room, waiting, request.taken_before)
    for run_class, count in waiting.items():
        if count > shares.get(run_class, 0):
            lanes = await tx.all("lanes_of_class", (run_class,))
            turn = lanes[request.taken_before % len(lanes)][0]  # with less room than lanes, each has its turn
            kept = {"class": run_class, "now": tx.now_at, "turn": turn, "keep": shares.get(run_class, 0)}
            await tx.run("trim_class", kept)
    return True


async def _judge_late(tx: Tx) -> int:
    """The misfire policy for runs that nobody claimed within their grace; answers how many it removed."""
    late = [(row[0], UnstartedRow(*row[1:])) for row in await tx.all("late_candidates")]
    verdicts = await judge_late_runs(tx, late)
    judged = [key for key, verdict in verdicts.items() if verdict is not Lateness.RUN]
    for job_id, scheduled_at in judged:
        if verdicts[job_id, scheduled_at] is Lateness.BACKGROUND:
            await tx.run("drop_behind", (job_id,))
        await tx.run("drop_candidate", (job_id, scheduled_at))
    return len(judged)


async def _drop_deleted(tx: Tx) -> int:
    """Runs of jobs that are gone end as cancelled."""
    rows = await tx.all("deleted_candidates")
    for job_id, scheduled_at in rows:
        await end_deleted(tx, job_id, scheduled_at)
        await tx.run("drop_candidate", (job_id, scheduled_at))
    return len(rows)


async def _give_several_slots(tx: Tx) -> None:
    """Jobs with several slots: the oldest candidates get the lowest free ones, none ahead of one that stays planned."""
    candidates = await tx.all("several_candidates")
    if not candidates:
        return
    _, used = await taken_slots(tx, sorted({row[1] for row in candidates}))
    for job_id, group in groupby(candidates, key=lambda row: row[1]):
        rows = list(group)
        allowed = in_order((row[2], row[4]) for row in rows)
        slots = iter(free_slots(rows[0][3], used.get(job_id, ()), sorted(allowed)))
        for row in rows:
            if row[2] not in allowed:
                await tx.run("set_not_yet", (row[0],))
            elif (slot := next(slots, None)) is not None:
                await tx.run("set_slot", (slot, row[0]))
            else:
                await tx.run("set_full", (row[0],))


async def _judge_full(tx: Tx) -> int:
    """The overlap policy for due runs that found their job full; answers how many left the plan."""
    rows = await tx.all("full_candidates", (tx.now_at,))
    full = [FullRun(row[0], UnstartedRow(*row[1:7]), row[7], row[8]) for row in rows]
    return await judge_full_jobs(tx, full) if full else 0


async def _cursors(tx: Tx, full_lanes: Sequence[int]) -> dict[int, Cursor]:
    """Where to walk on in lanes whose page ahead was full of runs that cannot be taken yet."""
    cursors = {}
    for lane in full_lanes:
        if await tx.one("stuck_ahead", (lane, tx.now_at)) is not None:
            cursors[lane] = Cursor(*await tx.one("last_ahead", (lane, tx.now_at)))
    return cursors


async def _next_at(tx: Tx, fronts: Sequence[_Front], lead_us: int) -> int | None:
    """When it pays to ask again: `lead` before the next due time, or at it for what must wait till then."""
    until = tx.now_at + lead_us
    moments = []
    for front in fronts:
        following: int | None = front.due_at
        if front.due_at <= until:
            moments.append(max(front.due_at, tx.now_at))
            later = "later_ready" if front.is_ready else "later_waiting"
            following = (await tx.one(later, (front.lane, until)))[0]
        if following is not None:
            moments.append(following - lead_us)
    return min(moments, default=None)


async def _fronts(tx: Tx, pools: Sequence[int]) -> list[_Front]:
    """The lanes of pools in which runs wait."""
    found = []
    for pool in pools:
        bounds = {"first": pool * LANES_PER_POOL, "last": (pool + 1) * LANES_PER_POOL}
        found += [_Front(lane, due_at, True) for lane, due_at in await tx.all("ready_lanes", bounds)]
        found += [_Front(lane, due_at, False) for lane, due_at in await tx.all("waiting_lanes", bounds)]
    return found
