"""How far the attempts of this process are, as their functions last told, until a worker has it kept.

Any thread may tell, as often as it likes: only the latest of each attempt stays, and only so many attempts.
"""

import threading
from collections.abc import Callable, Container

import msgspec

from hourhand.core.report import shortened_message
from hourhand.core.run import ClaimedRun, Progress, ProgressNote
from hourhand.ports.store import Store

MAX_ATTEMPTS = 10_000
_MOST_AT_ONCE = 1_000

Noted = Callable[[ClaimedRun, Progress], None]
Key = tuple[int, int, int]  # job, nominal time, fence


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """What a function told of its attempt."""

    run: ClaimedRun
    fraction: float
    message: str


class ProgressBoard:
    """The latest of each attempt."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._told: dict[Key, Told] = {}

    def tell(self, run: ClaimedRun, fraction: float, message: str) -> None:
        """An attempt is this far. What was told longest ago makes room, where there are too many."""
        key = (run.job_id, run.scheduled_at, run.fence)
        with self._lock:
            if key not in self._told and len(self._told) >= MAX_ATTEMPTS:
                del self._told[next(iter(self._told))]
            self._told[key] = Told(run=run, fraction=fraction, message=message)

    def take(self, ours: Container[Key], limit: int) -> list[Told]:
        """What was told of attempts that are among ours, and not taken yet."""
        if not self._told:
            return []
        with self._lock:
            keys = [key for key in self._told if key in ours][:limit]
            return [self._told.pop(key) for key in keys]

    def put_back(self, told: list[Told]) -> None:
        """It could not be kept; what was told meanwhile counts more."""
        with self._lock:
            for one in told:
                self._told.setdefault((one.run.job_id, one.run.scheduled_at, one.run.fence), one)


def unseen(run: ClaimedRun, progress: Progress) -> None:
    """Nobody watches."""


class ProgressKeeper:
    """Has a worker's share of the board kept by its store. `ours` says which attempts the worker has in hand."""

    def __init__(
        self, *, store: Store, board: ProgressBoard, ours: Callable[[], Container[Key]], noted: Noted = unseen
    ) -> None:
        self._store = store
        self._board = board
        self._ours = ours
        self._noted = noted

    async def step(self, now_at: int) -> int | None:
        """Keep what was told since the last step; called about once a second, and never sooner."""
        told = self._board.take(self._ours(), _MOST_AT_ONCE)
        if not told:
            return None
        notes = [_note(one) for one in told]
        try:
            refused = {id(note) for note in await self._store.note_progress(notes)}
        except Exception:
            self._board.put_back(told)
            raise
        for one, note in zip(told, notes, strict=True):
            if id(note) not in refused:
                self._noted(one.run, Progress(fraction=note.fraction, message=note.message, noted_at=now_at))
        return None


def _note(told: Told) -> ProgressNote:
    run = told.run
    return ProgressNote(
        job_id=run.job_id,
        scheduled_at=run.scheduled_at,
        slot=run.slot,
        fence=run.fence,
        fraction=told.fraction,
        message=shortened_message(told.message),
    )
