"""Reads the sink's log: which calls arrived, of which run, when, and whether they were the first of it."""

import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

SECOND_US = 1_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_COMPACT = re.compile(r"(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)(?:\.(\d{6}))?Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call that the sink received."""

    key: str
    job: str
    nominal_at: int
    attempt: int
    at: int
    applied: bool
    path: str


class SinkLog:
    """The sink's file, read on from where the last look ended."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._position = 0
        self._calls: list[Call] = []

    def calls(self) -> list[Call]:
        """Every call so far, in the order of arrival."""
        with self._path.open("rb") as file:
            file.seek(self._position)
            fresh, newline, _ = file.read().rpartition(b"\n")
        self._position += len(fresh) + len(newline)
        self._calls += [_call(json.loads(line)) for line in fresh.splitlines()]
        return self._calls

    def of(self, job: str) -> list[Call]:
        """The calls of one job."""
        return [call for call in self.calls() if call.job == job]


def _call(row: dict[str, object]) -> Call:
    return Call(
        key=str(row["key"]),
        job=str(row["job"]),
        nominal_at=instant(str(row["scheduled_at"])),
        attempt=int(str(row["attempt"])),
        at=int(str(row["at"])),
        applied=bool(row["applied"]),
        path=str(row["path"]),
    )


def instant(text: str) -> int:
    """RFC 3339 in UTC as microseconds since the epoch."""
    return (datetime.fromisoformat(text) - _EPOCH) // timedelta(microseconds=1)


def spelled(at: int) -> str:
    """The inverse of `instant`."""
    return (_EPOCH + timedelta(microseconds=at)).isoformat().replace("+00:00", "Z")


def nominal_of(key: str) -> int:
    """The time that a run id ends with, read by this module's own rule."""
    match = _COMPACT.fullmatch(key.partition("@")[2])
    if match is None:
        raise ValueError(f"not a run id: {key!r}")
    year, month, day, hour, minute, second = (int(match[index]) for index in range(1, 7))
    wall = datetime(year, month, day, hour, minute, second, int(match[7] or 0), tzinfo=UTC)
    return (wall - _EPOCH) // timedelta(microseconds=1)
