"""The second pass: reads the tables themselves, without writing, and looks for what must never be in them.

Each run in one place; one end per run; attempts that only grow; history that is never rewritten; an end
for every effect the sink saw; a place for every time that is owed. Used beside the black box, not instead
of it. A source is the path of a SQLite file, or whatever answers queries of PostgreSQL databases.
"""

import json
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from hourhand.core.identity import format_job_id, format_run_id
from hourhand.core.lifecycle import State

STATES = tuple(State)
ENDS = frozenset({State.SUCCEEDED, State.FAILED, State.SKIPPED, State.CANCELLED})
_LIVE = ("planned", "running", "blocked")
_RUN = "job_id, scheduled_at, attempt"

Source = Path | Callable[[str], list[tuple[Any, ...]]]


def read(path: Source, query: str, *parameters: object) -> list[tuple[Any, ...]]:
    """Rows of a query, from a connection that cannot write and does not stay."""
    if not isinstance(path, Path):
        return path(query)
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=10)
    try:
        return connection.execute(query, parameters).fetchall()
    finally:
        connection.close()


History = dict[tuple[int, int, int], tuple[Any, ...]]


def history(path: Source) -> History:
    """Every row of history by its run and attempt."""
    columns = f"{_RUN}, state, started_at, finished_at, due_at, tries, trigger, version, worker, detail"
    return {row[:3]: row for row in read(path, f"SELECT {columns} FROM history")}


def rewritten(before: History, after: History) -> list[str]:
    """Rows of history that changed or went although they must not."""
    return [
        f"history row {key} was {row}, is {after.get(key)}"
        for key, row in before.items()
        if after.get(key) != row
    ]


def endings(path: Source) -> dict[tuple[str, int], str]:
    """How each run ended, deleted jobs included, in the checker's words."""
    found = {}
    for job_id, scheduled_at, state, detail in read(
        path, "SELECT job_id, scheduled_at, state, detail FROM history ORDER BY attempt"
    ):
        if STATES[state] in ENDS:
            reason = json.loads(detail or "{}").get("reason") or ""
            found[format_job_id(job_id), scheduled_at] = f"{STATES[state]} {reason}".strip()
    return found


def accounted(path: Source, owed: Iterable[tuple[str, int]]) -> tuple[Counter[str], list[str]]:
    """Where the store has each owed time, as counts by state, and those that it does not know of at all."""
    places = {
        (format_job_id(job_id), scheduled_at): "waiting"
        for table in _LIVE
        for job_id, scheduled_at in read(path, f"SELECT job_id, scheduled_at FROM {table}")
    }
    places |= {key: end.partition(" ")[0].lower() for key, end in endings(path).items()}
    counts: Counter[str] = Counter()
    nowhere = []
    for key in owed:
        if key in places:
            counts[places[key]] += 1
        else:
            nowhere.append(f"{key[0]} at {key[1]} is owed and nowhere")
    return counts, nowhere


def problems(path: Source, called: Iterable[str]) -> list[str]:
    """What is wrong in the file after everything has come to rest; `called` are the sink's run ids."""
    broken = []
    if isinstance(path, Path):
        broken = [row[0] for row in read(path, "PRAGMA integrity_check") if row[0] != "ok"]
    return [*broken, *_places(path), *_attempts(path), *_unrecorded(path, called), *_fences(path)]


def _places(path: Source) -> list[str]:
    """Runs that are in two places at once: live twice, or live and over."""
    places: dict[tuple[int, int], list[str]] = defaultdict(list)
    for table in (*_LIVE, "dead"):
        for job_id, scheduled_at in read(path, f"SELECT job_id, scheduled_at FROM {table}"):
            places[job_id, scheduled_at].append(table)
    last: dict[tuple[int, int], State] = {}
    for job_id, scheduled_at, state in read(
        path, "SELECT job_id, scheduled_at, state FROM history ORDER BY job_id, scheduled_at, attempt"
    ):
        last[job_id, scheduled_at] = STATES[state]
    for key, state in last.items():
        if state in ENDS and not (state is State.FAILED and places[key] == ["dead"]):
            places[key].append(f"history as {state}")
    return [f"{format_run_id(*key)} is in {found}" for key, found in places.items() if len(found) > 1]


def _attempts(path: Source) -> list[str]:
    """Runs with two ends, an end that is not the last row, or an attempt written twice."""
    rows: dict[tuple[int, int], list[tuple[int, State]]] = defaultdict(list)
    for job_id, scheduled_at, attempt, state in read(
        path, f"SELECT {_RUN}, state FROM history ORDER BY {'id' if isinstance(path, Path) else _RUN}"
    ):
        rows[job_id, scheduled_at].append((attempt, STATES[state]))
    found = []
    for key, attempts in rows.items():
        numbers = [attempt for attempt, _ in attempts]
        if numbers != sorted(set(numbers)):
            found.append(f"{format_run_id(*key)}: attempts {numbers} do not grow")
        ended = [index for index, (_, state) in enumerate(attempts) if state in ENDS]
        if ended and ended != [len(attempts) - 1]:
            found.append(f"{format_run_id(*key)}: ends at {ended} of {attempts}")
    return found


def _unrecorded(path: Source, called: Iterable[str]) -> list[str]:
    """Runs that the sink was called for and of whose end, or coming end, the store knows nothing."""
    known = {
        format_run_id(job_id, scheduled_at)
        for table in (*_LIVE, "dead", "history")
        for job_id, scheduled_at in read(path, f"SELECT DISTINCT job_id, scheduled_at FROM {table}")
    }
    return [f"{key} was called and is nowhere" for key in sorted(set(called) - known)]


def _fences(path: Source) -> list[str]:
    """Live runs whose fence is behind an attempt that history has."""
    query = """SELECT r.job_id, r.scheduled_at, r.fence, max(h.attempt) FROM running AS r
        JOIN history AS h ON h.job_id = r.job_id AND h.scheduled_at = r.scheduled_at
        GROUP BY 1, 2, 3 HAVING max(h.attempt) > r.fence"""
    return [
        f"{format_run_id(row[0], row[1])}: fence {row[2]} after attempt {row[3]}" for row in read(path, query)
    ]
