"""The claim: take runs for a worker, and decide about those that cannot be taken.

One statement per class takes the ordinary runs: it locks candidates lane by lane, skipping what another
worker looks at, moves those with a free slot from `planned` to `running`, and answers them together with
the exceptions. Those come to Python: late ones (misfire), due ones whose job is full (overlap), jobs with
several slots, runs of deleted jobs.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from hourhand.core.identity import BACKGROUND, CLASSES, RunKey, class_of_lane
from hourhand.core.lanes import BRIEF_LEAD_US, NEWEST_SHARE, floors
from hourhand.core.overlap import free_slots, in_order
from hourhand.core.plan import Lateness
from hourhand.core.run import ClaimedRun
from hourhand.ports.store import Claim, ClaimRequest, Cursor
from hourhand.stores.relational.judging import FullRun, end_deleted, judge_full_jobs, judge_late_runs
from hourhand.stores.relational.naming import named_runs, places_of, still_waiting
from hourhand.stores.relational.nodes import require_lease
from hourhand.stores.relational.rows import UnstartedRow, decode_spec
from hourhand.stores.relational.slots import taken_slots
from hourhand.stores.relational.tx import ChangedMeanwhile, Tx
from hourhand.stores.relational.upcoming import LanePage

_MOST_JOBS_HELD = (
    256  # each takes a place in the server's table of locks; the others come with the next claim
)
_LEAST_AHEAD = 32  # so that a worker with little room does not walk past stuck runs one by one
_TAKEN, _FULL, _SEVERAL, _DELETED, _NOT_YET, _LATE, _LOST = 0, 1, 2, 3, 4, 6, 7
_STUCK = frozenset({_FULL, _SEVERAL, _NOT_YET, _LOST})


class _Found(NamedTuple):
    """A row of `take_planned`."""

    job_id: int
    slot: int
    scheduled_at: int
    due_at: int
    fence: int
    tries: int
    trigger: int
    deadline_at: int | None
    version: int | None
    tenant: str | None
    spec: str | None
    fate: int
    lane: int
    behind_at: int | None  # of a job with several slots: the earlier run that still waits

    @property
    def unstarted(self) -> UnstartedRow:
        """As the judges want it."""
        return UnstartedRow(self.scheduled_at, self.lane, self.due_at, self.trigger, self.fence, self.tries)


class _Lanes(NamedTuple):
    """The lanes of one class in which runs wait within the lead."""

    waiting: list[int]
    ready: list[int]


async def claim(tx: Tx, request: ClaimRequest) -> Claim:
    """Take up to `room` runs for a node with a live lease."""
    await require_lease(tx, request.node_id)
    claiming = _Claiming(tx, request)
    if request.named:
        return await claiming.claim_named(named_runs(request))
    lanes = await tx.all("lanes", (list(request.pools),))
    await claiming.take(lanes)
    progressed = bool(claiming.runs) or claiming.decided > 0 or bool(claiming.cursors)
    return Claim(
        runs=claiming.runs,
        now_at=tx.now_at,
        next_at=None if progressed else await _next_at(tx, lanes, request.lead_us),
        progressed=progressed,
        cursors=claiming.cursors,
    )


class _Claiming:
    """One claim under way: what it has taken and decided so far."""

    def __init__(self, tx: Tx, request: ClaimRequest) -> None:
        self._tx = tx
        self._request = request
        self._until = tx.now_at + request.lead_us
        self.runs: list[ClaimedRun] = []
        self.cursors: dict[int, Cursor] = {}
        self.decided = 0

    async def take(self, lanes: Sequence[tuple[int, int, int]]) -> None:
        """Take what is due soon, and if that leaves room and there are several classes, all within the lead."""
        within = sorted({class_of_lane(lane) for _, lane, due_at in lanes if due_at <= self._until})
        if len(within) > 1:
            ahead, self._until = self._until, min(self._until, self._tx.now_at + BRIEF_LEAD_US)
            await self._take_within(lanes)
            self._until = ahead
        if len(self.runs) < self._request.room:
            await self._take_within(lanes)

    async def claim_named(self, keys: Sequence[RunKey]) -> Claim:
        """Take these runs wherever they wait, and tell which of them still do."""
        shared = {"until": self._until, "pools": list(self._request.pools), "now": self._tx.now_at}
        shared |= {"wanted": self._request.room, "node_id": self._request.node_id}
        places = {
            "job_ids": [key.job_id for key in keys],
            "scheduled_ats": [key.scheduled_at for key in keys],
        }
        rows = await self._tx.all("take_named", {**places, **shared})
        await self._taken(rows)
        found = {(row[0], row[2]) for row in rows}
        if rest := [key for key in keys if key not in found]:
            columns = zip(*places_of(rest), strict=True)
            slots = dict(zip(("job_ids", "scheduled_ats", "lows", "highs"), map(list, columns), strict=True))
            await self._taken_ready(await self._tx.all("take_named_ready", {**slots, **shared}))
        taken = {run.key for run in self.runs}
        left = await still_waiting(self._tx, self._request, [key for key in keys if key not in taken])
        return Claim(
            runs=self.runs,
            now_at=self._tx.now_at,
            next_at=None,
            progressed=bool(self.runs) or self.decided > 0,
            cursors=self._request.cursors,
            left=left,
        )

    async def _take_within(self, lanes: Sequence[tuple[int, int, int]]) -> None:
        """Go through the classes: each gets what higher ones leave, but never less than it is owed.

        What lower classes are owed and do not use goes to the higher ones after all.
        """
        by_class = [_Lanes([], []) for _ in range(CLASSES)]
        for kind, lane, due_at in lanes:
            if due_at <= self._until:
                by_class[class_of_lane(lane)][kind].append(lane)
        present = [number for number, of_class in enumerate(by_class) if of_class.waiting or of_class.ready]
        owed = floors(self._request.room, self._request.taken_before)
        more = []
        for number in present:
            room = self._request.room - len(self.runs)
            kept_back = sum(owed.get(lower, 0) for lower in present if lower > number)
            wanted = max(room - kept_back, min(owed.get(number, 0), room))
            if wanted > 0 and await self._take_class(by_class[number], wanted) >= wanted and kept_back:
                more.append(number)
        for number in more:
            if (room := self._request.room - len(self.runs)) > 0:
                await self._take_class(by_class[number], room)

    async def _take_class(self, lanes: _Lanes, wanted: int) -> int:
        """Take runs of one class; answers how many."""
        before = len(self.runs)
        if lanes.ready:
            await self._take_ready(lanes.ready, wanted)
        left = wanted - (len(self.runs) - before)
        if lanes.waiting and left > 0:
            count = len(lanes.waiting)
            turn = self._request.taken_before % count  # with less room than lanes, each has its turn
            in_turn = lanes.waiting[turn:] + lanes.waiting[:turn]
            in_order = class_of_lane(lanes.waiting[0]) == BACKGROUND
            kept = 0 if in_order else left // NEWEST_SHARE
            limit = -(-(left - kept) // count)
            exhausted = await self._take_waiting(in_turn, left - kept, limit)
            if kept and not exhausted:
                await self._take_newest(lanes.waiting, min(kept, wanted - (len(self.runs) - before)))
            left = wanted - (len(self.runs) - before)
            if left > 0 and limit < wanted and not exhausted:
                await self._take_waiting(lanes.waiting, left, left)
        return len(self.runs) - before

    async def _take_ready(self, lanes: Sequence[int], wanted: int) -> None:
        rows = await self._tx.all(
            "take_ready",
            {
                "lanes": list(lanes),
                "until": self._until,
                "most": wanted,
                "wanted": wanted,
                "now": self._tx.now_at,
                "node_id": self._request.node_id,
            },
        )
        await self._taken_ready(rows)

    async def _taken_ready(self, rows: Sequence[Any]) -> None:
        for row in rows:
            if row[11] == _TAKEN:
                self.runs.append(_claimed(row))
            else:
                await end_deleted(self._tx, row[0], row[2])
                self.decided += 1

    async def _take_waiting(self, lanes: Sequence[int], wanted: int, limit: int) -> bool:
        """Take planned runs, some of each lane; answers whether there were no more to look at."""
        pages = [page for lane in lanes for page in self._pages(lane, limit)]
        columns = [list(column) for column in zip(*pages, strict=True)]
        names = ("lanes", "due_ats", "scheduled_ats", "job_ids", "uptos", "limits")
        rows = await self._tx.all(
            "take_planned",
            {
                **dict(zip(names, columns, strict=True)),
                "now": self._tx.now_at,
                "wanted": wanted,
                "node_id": self._request.node_id,
            },
        )
        exceptions = await self._taken(rows)
        seen = Counter(row[12] for row in rows)
        if exceptions:
            self._walk_on(exceptions, seen, limit)
        return all(seen.get(lane, 0) < limit for lane in lanes)

    async def _take_newest(self, lanes: Sequence[int], wanted: int) -> None:
        """Take runs that are due next or were due last, of lanes in which more is due than there is room for."""
        rows = await self._tx.all(
            "take_newest",
            {
                "lanes": list(lanes),
                "until": min(self._until, self._tx.now_at + BRIEF_LEAD_US),
                "most": -(-wanted // len(lanes)),
                "now": self._tx.now_at,
                "wanted": wanted,
                "node_id": self._request.node_id,
            },
        )
        await self._taken(rows)

    async def _taken(self, rows: Sequence[Any]) -> list[_Found]:
        """Hold what was taken, and decide about what could not be; answers the latter."""
        taken = [row for row in rows if row[11] == _TAKEN]
        exceptions = [_Found(*row[:14]) for row in rows if row[11] != _TAKEN]
        if taken and taken[0][15] < len(taken):
            raise ChangedMeanwhile  # edited just then, and planned still: it would be taken a second time
        if taken and taken[0][14] < len(taken):
            before = [_Found(*row[:14])._replace(fate=_LOST, fence=row[4] - 1) for row in taken]
            lost = await self._put_back(before)
            exceptions += [found for found in before if (found.job_id, found.scheduled_at) in lost]
            taken = [row for row in taken if (row[0], row[2]) not in lost]
        self.runs += [_claimed(row) for row in taken]
        if exceptions:
            await self._decide(exceptions)
        return exceptions

    async def _put_back(self, taken: Sequence[_Found]) -> set[tuple[int, int]]:
        """Another worker was faster to some of the slots, or a job had several runs: only one of them has it."""
        rows = await self._tx.all(
            "put_back",
            {
                "job_ids": [found.job_id for found in taken],
                "slots": [found.slot for found in taken],
                "scheduled_ats": [found.scheduled_at for found in taken],
                "due_ats": [found.due_at for found in taken],
                "lanes": [found.lane for found in taken],
                "fences": [found.fence for found in taken],
                "triggers": [found.trigger for found in taken],
                "tries": [found.tries for found in taken],
                "node_id": self._request.node_id,
            },
        )
        return {(row[0], row[1]) for row in rows}

    def _pages(self, lane: int, limit: int) -> list[tuple[int, int, int, int, int, int]]:
        """What to look at of a lane: all within the lead, or, walking ahead, what is due and what lies beyond."""
        cursor = self._request.cursors.get(lane)
        if cursor is None:
            return [(lane, 0, 0, 0, self._until, limit)]
        now_at = self._tx.now_at
        beyond = (cursor.due_at, cursor.scheduled_at, cursor.job_id)
        return [
            (lane, 0, 0, 0, now_at, limit),
            (lane, *max(beyond, (now_at + 1, 0, 0)), self._until, max(limit, _LEAST_AHEAD)),
        ]

    def _walk_on(self, exceptions: Iterable[_Found], seen: Counter[int], limit: int) -> None:
        """Where to walk on in lanes whose page was full, with runs ahead that cannot be taken yet."""
        last: dict[int, tuple[int, int, int]] = {}
        taken = {run.key for run in self.runs}
        for found in exceptions:
            waits = found.fate in _STUCK and (found.job_id, found.scheduled_at) not in taken
            if waits and found.due_at > self._tx.now_at and seen[found.lane] >= limit:
                place = (found.due_at, found.scheduled_at, found.job_id)
                last[found.lane] = max(place, last.get(found.lane, place))
        self.cursors |= {lane: Cursor(*place) for lane, place in last.items()}

    async def _decide(self, exceptions: Sequence[_Found]) -> None:
        now_at = self._tx.now_at
        by_fate: dict[int, list[_Found]] = {}
        for found in exceptions:
            by_fate.setdefault(found.fate, []).append(found)
        for found in by_fate.get(_DELETED, ()):
            await end_deleted(self._tx, found.job_id, found.scheduled_at)
            self.decided += 1
        in_time = await self._judge_late(by_fate.get(_LATE, ()))
        full = [found for fate in (_FULL, _LOST) for found in by_fate.get(fate, ()) if found.due_at <= now_at]
        several = [*by_fate.get(_SEVERAL, ()), *in_time]
        if several or full:
            await self._give_slots(several, full)

    async def _judge_late(self, late: Sequence[_Found]) -> list[_Found]:
        """The misfire policy for runs that nobody claimed within their grace; answers those that run."""
        verdicts = await judge_late_runs(self._tx, [(found.job_id, found.unstarted) for found in late])
        run = []
        for found in late:
            if verdicts.get((found.job_id, found.scheduled_at)) is Lateness.RUN:
                run.append(found)
            else:
                self.decided += 1
        return run

    async def _give_slots(self, several: Sequence[_Found], full: Sequence[_Found]) -> None:
        """Slots for what one statement could not decide, the job's slots held; what is due and finds none is judged."""
        wanted_ids = sorted({found.job_id for found in (*several, *full)})[:_MOST_JOBS_HELD]
        ids = [row[0] for row in await self._tx.all("try_jobs", (wanted_ids,))]
        held = {(row[0], row[1]) for row in await self._tx.all("hold_free_slots", (ids,))}
        limits, used = await taken_slots(self._tx, ids)
        given: list[tuple[_Found, int]] = []
        without: list[_Found] = []
        candidates = sorted((*several, *full), key=lambda found: (found.job_id, found.scheduled_at))
        room = self._request.room - len(self.runs)
        for job_id, group in groupby(candidates, key=lambda found: found.job_id):
            if job_id not in limits:
                continue  # deleted meanwhile, or another claim has it in hand
            together = list(group)
            allowed = in_order((found.scheduled_at, found.behind_at) for found in together)
            wanted = [found for found in together if found.scheduled_at in allowed]
            in_use = used.get(job_id, ())
            slots = free_slots(limits[job_id], in_use, [found.scheduled_at for found in wanted])
            # A slot that somebody else is about to change may be free before this is committed, and nobody
            # would see what is blocked here: the next claim decides.
            is_full = all((job_id, slot) in held for slot in in_use)
            for index, found in enumerate(wanted):
                if index < len(slots):
                    if len(given) < room:
                        given.append((found, slots[index]))
                elif is_full and found.due_at <= self._tx.now_at:
                    without.append(found)
        await self._take_given(given)
        if without:
            self.decided += await judge_full_jobs(
                self._tx,
                [
                    FullRun(found.job_id, found.unstarted, found.version or 0, found.spec or "")
                    for found in without
                ],
            )

    async def _take_given(self, given: Sequence[tuple[_Found, int]]) -> None:
        if not given:
            return
        rows = await self._tx.all(
            "take_given",
            {
                "job_ids": [found.job_id for found, _ in given],
                "scheduled_ats": [found.scheduled_at for found, _ in given],
                "slots": [slot for _, slot in given],
                "now": self._tx.now_at,
                "node_id": self._request.node_id,
            },
        )
        self.runs += [_claimed(row) for row in rows]


async def look_ahead(
    tx: Tx, statement: str, pages: Sequence[LanePage], until_at: int, most: int, routed: bool
) -> list[Any]:
    """What waits in some lanes, in one statement."""
    columns = zip(*pages, strict=True)
    places = dict(zip(("lanes", "due_ats", "scheduled_ats", "job_ids"), map(list, columns), strict=True))
    return await tx.all(statement, {**places, "until": until_at, "most": most, "routed": routed})


async def _next_at(tx: Tx, lanes: Sequence[tuple[int, int, int]], lead_us: int) -> int | None:
    """When it pays to ask again: `lead` before the next due time, or at it for what must wait till then."""
    until = tx.now_at + lead_us
    moments = [due_at - lead_us if due_at > until else max(due_at, tx.now_at) for _, _, due_at in lanes]
    near = [(kind, lane) for kind, lane, due_at in lanes if due_at <= until]
    if near:
        asked = {"kinds": [kind for kind, _ in near], "lanes": [lane for _, lane in near], "after": until}
        moments += [row[0] - lead_us for row in await tx.all("later_moments", asked)]
    return min(moments, default=None)


def _claimed(row: Sequence[Any]) -> ClaimedRun:
    job_id, slot, scheduled_at, due_at, fence, tries, trigger, deadline_at, version, tenant, spec = row[:11]
    return ClaimedRun(
        job_id,
        slot,
        scheduled_at,
        due_at,
        fence,
        tries,
        trigger,
        deadline_at,
        version,
        tenant,
        decode_spec(spec),
    )
