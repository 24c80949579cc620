"""The finish: commit outcomes, keep dead letters, hand slots on.

The batch goes into a temporary table; whatever is no longer in its slot under its fence is refused, the
rest is applied by set-based statements. Dead letters and hand-overs are exceptions and go one by one.
"""

import hashlib
import re
from collections.abc import Sequence
from typing import Any

from hourhand.core.lifecycle import Event, Reason, State
from hourhand.core.run import Settlement
from hourhand.ports.store import Hint
from hourhand.stores.sqlite.engine import Tx
from hourhand.stores.sqlite.rows import EVENT_CODES, UnstartedRow, from_json
from hourhand.stores.sqlite.slots import end_unstarted, hand_on

_DIGITS = re.compile(r"[0-9a-f]{8,}|\d{4,}")
_MAX_ERROR = 2_000


def settle(tx: Tx, worker: str, settlements: Sequence[Settlement]) -> list[Settlement]:
    """Apply a batch; answers what was refused."""
    chosen, refused = _one_of_each(settlements)
    tx.run("clear_done")
    tx.insert("add_done", [_row(place, settlements[place]) for place in chosen])
    refused |= {row[0] for row in tx.all("drop_refused")}
    tx.run("write_history", (worker,))
    events = {settlement.event for settlement in settlements}
    if Event.EXHAUST in events:
        _write_dead(tx)
    if Event.RETRY in events:
        tx.run("write_retries")
        tx.hints.add(Hint.RUNS)
    if Event.RELEASE in events:
        tx.run("write_releases")
        tx.hints.add(Hint.RUNS)
    if Event.REPORT_LATER in events:
        tx.run("write_reports")
    tx.run("free_slots")
    if Event.RETRY in events or Event.RELEASE in events:
        _cancel_idle(tx)
    if tx.one("any_blocked") is not None:
        for (job_id,) in tx.all("freed_jobs"):
            hand_on(tx, job_id)
    return [settlements[place] for place in sorted(refused)]


def fingerprint(error: str) -> str:
    """Alike errors have the same: long numbers and hexadecimal words do not count."""
    return hashlib.sha256(_DIGITS.sub("#", error.splitlines()[0] if error else "").encode()).hexdigest()[:12]


def _one_of_each(settlements: Sequence[Settlement]) -> tuple[list[int], set[int]]:
    """The places of a batch that count, and of those that come after the outcome of the same attempt.

    An acceptance counts only if no outcome follows it, for that may have come before it was committed.
    """
    accepted: dict[tuple[int, int, int, int], int] = {}
    decided: dict[tuple[int, int, int, int], int] = {}
    second: set[int] = set()
    for place, s in enumerate(settlements):
        attempt = (s.job_id, s.slot, s.scheduled_at, s.fence)
        if attempt in decided:
            second.add(place)
        elif s.event is Event.REPORT_LATER:
            accepted.setdefault(attempt, place)
        else:
            decided[attempt] = place
    return list({**accepted, **decided}.values()), second


def _row(place: int, s: Settlement) -> tuple[Any, ...]:
    run = (s.job_id, s.slot, s.scheduled_at, s.fence, EVENT_CODES[s.event], s.version, s.tries)
    return (place, *run, s.due_at, s.started_at, s.finished_at, s.detail)


def _write_dead(tx: Tx) -> None:
    rows = []
    for *head, detail in tx.all("exhausted"):
        error = str((from_json(detail) or {}).get("error", "failed"))[:_MAX_ERROR]
        rows.append((*head, error, fingerprint(error)))
    tx.insert("add_dead", rows)


def _cancel_idle(tx: Tx) -> None:
    """A cancelled run whose attempt ended otherwise is not tried again."""
    for job_id, scheduled_at in tx.all("idle_cancelled"):
        rows = [UnstartedRow(*row) for row in tx.all("take_idle_row", (job_id, scheduled_at))]
        end_unstarted(tx, job_id, rows, State.CANCELLED, {"reason": Reason.ASKED.value})
        hand_on(tx, job_id)
