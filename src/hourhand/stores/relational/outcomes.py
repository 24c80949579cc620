"""What every SQL store does around its own finish: which settlements of a batch count, dead letters, idle cancels."""

import hashlib
import re
from collections.abc import Sequence
from typing import Any

from hourhand.core.lifecycle import Event, Reason, State
from hourhand.core.run import Settlement
from hourhand.stores.relational.endings import end_unstarted
from hourhand.stores.relational.rows import UnstartedRow, from_json
from hourhand.stores.relational.slots import hand_on
from hourhand.stores.relational.tx import Tx

_DIGITS = re.compile(r"[0-9a-f]{8,}|\d{4,}")
_MAX_ERROR = 2_000

LETTING_GO = frozenset({Event.RETRY, Event.RELEASE, Event.REPORT_LATER})  # runs that go on in nobody's hand


def fingerprint(error: str) -> str:
    """Alike errors have the same: long numbers and hexadecimal words do not count."""
    return hashlib.sha256(_DIGITS.sub("#", error.splitlines()[0] if error else "").encode()).hexdigest()[:12]


def error_of(detail: str | None) -> str:
    """What a dead letter says went wrong; NUL, which PostgreSQL's texts cannot hold, is shown as unknown."""
    error = str((from_json(detail) or {}).get("error", "failed"))[:_MAX_ERROR]
    return error.replace("\0", "\N{REPLACEMENT CHARACTER}")


def one_of_each(settlements: Sequence[Settlement]) -> tuple[list[int], set[int]]:
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


async def write_dead(tx: Tx, exhausted: Sequence[Sequence[Any]]) -> None:
    """Keep dead letters: rows of what `add_dead` takes, with the detail in the place of the error."""
    rows = []
    for *head, detail in exhausted:
        error = error_of(detail)
        rows.append((*head, error, fingerprint(error)))
    await tx.insert("add_dead", rows)


async def cancel_idle(tx: Tx) -> None:
    """A cancelled run whose attempt ended otherwise is not tried again, and its report not waited for."""
    for job_id, scheduled_at in await tx.all("idle_cancelled"):
        rows = [UnstartedRow(*row) for row in await tx.all("take_idle_row", (job_id, scheduled_at))]
        await end_unstarted(tx, job_id, rows, State.CANCELLED, {"reason": Reason.ASKED.value})
        await hand_on(tx, [job_id])
