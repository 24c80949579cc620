"""The jobs on the screenshots, for `--import tools.shown_jobs`; run as a program it is `hourhand up` that remembers an hour.

A process keeps the last hour in memory, and these pictures are made within a minute: what the file's history holds of the
last hour is told to it at its start, as if it had run all the while.
"""

import os
import sqlite3
from pathlib import Path

from hourhand.clock import Clock, ManualClock
from hourhand.core.instant import HOUR_US
from hourhand.functions import Hourhand, Run
from hourhand.ports.events import Event, EventBatch, EventData, EventType
from hourhand.services.recent import Recent

HISTORY = "SHOWN_HISTORY"  # names the file with the hour that is remembered

hh = Hourhand()


@hh.job()
async def works(items: int = 240) -> dict[str, int]:
    """Ends at once, and says what it did."""
    return {"items": items}


@hh.job()
async def fails(text: str) -> None:
    """The other side is not there."""
    raise ConnectionError(text)


@hh.job()
def reports(ctx: Run, region: str = "eu") -> dict[str, object]:
    """Writes a few lines and an answer."""
    for line in ("reading 1,204 orders", "3 orders without an address, skipped", "writing report.pdf"):
        ctx.log.info(line)
    return {"region": region, "orders": 1204, "skipped": 3, "file": "report.pdf"}


class Remembering(Recent):
    """The last hour, with what the file says of it."""

    def __init__(self, *, clock: Clock) -> None:
        past = ManualClock(clock.now() - HOUR_US)
        super().__init__(clock=past)
        for at, job_id, scheduled_at, state, lag_ms in _rows(Path(os.environ[HISTORY]), past.now_at):
            past.now_at = at
            data = EventData(state=state.upper(), lag_ms=lag_ms)
            event = Event(
                f"{at}-{job_id}", EventType(f"run.{state}"), "default", at, job_id, scheduled_at, data
            )
            self.add(EventBatch(events=(event,)))
        self._clock = clock


def _rows(path: Path, since_at: int) -> list[tuple[int, int, int, str, int]]:
    from hourhand.stores.relational.rows import STATES

    with sqlite3.connect(path) as connection:
        found = connection.execute(
            "SELECT finished_at, job_id, scheduled_at, state, started_at, due_at FROM history"
            " WHERE finished_at > ? AND started_at IS NOT NULL ORDER BY finished_at",
            (since_at,),
        ).fetchall()
    return [
        (at, job_id, scheduled_at, STATES[state].value.lower(), (started_at - due_at) // 1000)
        for at, job_id, scheduled_at, state, started_at, due_at in found
        if STATES[state].value.lower() in ("succeeded", "failed", "retrying")
    ]


if __name__ == "__main__":
    import hourhand.wiring.up as wiring
    from hourhand.__main__ import main

    wiring.Recent = Remembering  # type: ignore[attr-defined, misc]
    main()
