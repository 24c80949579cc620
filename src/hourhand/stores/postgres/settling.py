"""The finish: commit outcomes, keep dead letters, hand slots on.

A batch is a few statements: one per kind of outcome, each checking slot and fence as it writes. Slots are
handed on after the ended runs have left, in a statement of its own: a claim that found the job full either
waited for that, or has put its run where this statement sees it.
"""

from collections.abc import Sequence
from typing import Any

from hourhand.core.lifecycle import Event
from hourhand.core.run import Settlement
from hourhand.ports.store import Hint
from hourhand.stores.relational.outcomes import LETTING_GO, cancel_idle, one_of_each, write_dead
from hourhand.stores.relational.rows import EVENT_CODES
from hourhand.stores.relational.slots import hand_on
from hourhand.stores.relational.tx import ChangedMeanwhile, Tx

_FINAL = frozenset({Event.SUCCEED, Event.EXHAUST, Event.SKIP, Event.CANCEL})


async def settle(tx: Tx, worker: str, settlements: Sequence[Settlement]) -> list[Settlement]:
    """Apply a batch; answers what was refused."""
    chosen, refused = one_of_each(settlements)
    chosen.sort(key=lambda place: (settlements[place].job_id, settlements[place].slot))
    by_event: dict[Event, list[int]] = {}
    for place in chosen:
        by_event.setdefault(settlements[place].event, []).append(place)
    applied: set[int] = set()
    if Event.EXHAUST in by_event:
        await _keep_letters(tx, [settlements[place] for place in by_event[Event.EXHAUST]])
    final = [place for place in chosen if settlements[place].event in _FINAL]
    if final:
        applied |= await _apply(tx, "finish", {**_finals(settlements, final), "worker": worker})
    if Event.RETRY in by_event:
        places = by_event[Event.RETRY]
        applied |= await _apply(tx, "retry", {**_retries(settlements, places), "worker": worker})
    if Event.RELEASE in by_event:
        places = by_event[Event.RELEASE]
        due_ats = [settlements[place].due_at for place in places]
        applied |= await _apply(tx, "release", {**_runs(settlements, places), "due_ats": due_ats})
    if Event.REPORT_LATER in by_event:
        applied |= await _apply(tx, "report", _runs(settlements, by_event[Event.REPORT_LATER]))
    if Event.RETRY in by_event or Event.RELEASE in by_event:
        tx.hints.add(Hint.RUNS)
    if not LETTING_GO.isdisjoint(by_event):
        await tx.look_at_clock()
        await cancel_idle(tx)
    if final:
        jobs = [settlements[place].job_id for place in final]
        if waiting := [row[0] for row in await tx.all("waiting_jobs", (jobs,))]:
            await hand_on(tx, waiting)
    refused |= {place for place in chosen if place not in applied}
    return [settlements[place] for place in sorted(refused)]


async def _apply(tx: Tx, name: str, parameters: dict[str, Any]) -> set[int]:
    places, count, *told = await tx.one(name, parameters)
    applied = set(places or ())
    followed, heard = told or (0, 0)
    if followed:
        tx.hints.add(Hint.GRAPHS)
    if heard:
        tx.hints.add(Hint.WEBHOOKS)
    if len(applied) != count:
        raise ChangedMeanwhile  # somebody asked for a cancel just then, say: find the rows again
    return applied


async def _keep_letters(tx: Tx, exhausted: Sequence[Settlement]) -> None:
    """Dead letters of the runs that will really end: what is no longer in its slot leaves none."""
    by_run = {(s.job_id, s.scheduled_at): s for s in exhausted}
    given = (
        [s.job_id for s in exhausted],
        [s.slot for s in exhausted],
        [s.scheduled_at for s in exhausted],
        [s.fence for s in exhausted],
    )
    rows = []
    for job_id, scheduled_at, tenant, trigger, lane in await tx.all("exhausted", given):
        s = by_run[job_id, scheduled_at]
        rows.append((job_id, scheduled_at, tenant, s.finished_at, trigger, s.fence, s.tries, lane, s.detail))
    await write_dead(tx, rows)


def _runs(settlements: Sequence[Settlement], places: Sequence[int]) -> dict[str, list[Any]]:
    chosen = [settlements[place] for place in places]
    return {
        "places": list(places),
        "job_ids": [s.job_id for s in chosen],
        "slots": [s.slot for s in chosen],
        "scheduled_ats": [s.scheduled_at for s in chosen],
        "fences": [s.fence for s in chosen],
    }


def _finals(settlements: Sequence[Settlement], places: Sequence[int]) -> dict[str, list[Any]]:
    chosen = [settlements[place] for place in places]
    return {
        **_runs(settlements, places),
        "events": [EVENT_CODES[s.event] for s in chosen],
        "versions": [s.version for s in chosen],
        "tries": [s.tries for s in chosen],
        "started_ats": [s.started_at for s in chosen],
        "finished_ats": [s.finished_at for s in chosen],
        "details": [s.detail for s in chosen],
    }


def _retries(settlements: Sequence[Settlement], places: Sequence[int]) -> dict[str, list[Any]]:
    parameters = _finals(settlements, places)
    del parameters["events"]
    return {**parameters, "due_ats": [settlements[place].due_at for place in places]}
