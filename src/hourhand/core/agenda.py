"""What is to be offered, and when: a wheel of one level whose slots hold packed records instead of objects.

Owns when a run is offered and what was offered already; no clock, no I/O. A timer costs 32 bytes for what is told
and about 70 for remembering that it is known, so that a million of them take some 100 MB. Two runs that are taken
for one (by a hash of 60 bits) only make the second come by the store's own way.
"""

from array import array
from collections.abc import Iterable
from heapq import heappop, heappush
from struct import Struct

from hourhand.core.instant import SECOND_US
from hourhand.core.model import Durability
from hourhand.core.offer import Offer, UpcomingRun

SLOT_US = 5_000
_RECORD = Struct("<qqqiHBB")  # job, nominal time, due time, fence, number of the pool, class, durability
_MASK = (1 << 60) - 1  # hashes that fit two digits of an integer are half the size
_DURABILITIES = tuple(Durability)
_CODES = {durability: code for code, durability in enumerate(_DURABILITIES)}


class Agenda:
    """Offers by the instant they are to be made, each known until its due time is well past."""

    def __init__(self, lead_us: int) -> None:
        self._lead_us = lead_us
        self._slots: dict[int, bytearray] = {}
        self._order: list[int] = []  # a heap of the slots
        self._pools: dict[str, int] = {}
        self._pool_names: list[str] = []
        self._known: set[int] = set()
        self._known_by_second: dict[int, array[int]] = {}
        self._count = 0

    def __len__(self) -> int:
        """How many wait to be offered."""
        return self._count

    @property
    def remembered(self) -> int:
        """How many are known, offered or not."""
        return len(self._known)

    def add(self, run: UpcomingRun, now_at: int) -> bool:
        """Offer a run `lead` before it is due, or else now; False when that is known already.

        The same run under a later fence, at another time, or once it was handed a slot, is news.
        """
        mark = hash((run.job_id, run.scheduled_at, run.due_at, run.fence, run.has_slot)) & _MASK
        if mark in self._known:
            return False
        self._known.add(mark)
        second = run.due_at // SECOND_US
        marks = self._known_by_second.get(second)
        if marks is None:
            marks = self._known_by_second[second] = array("q")
        marks.append(mark)
        self._put(run, max(run.due_at - self._lead_us, now_at))
        return True

    def again(self, offers: Iterable[Offer], at: int) -> None:
        """Offer at an instant what could not be offered before."""
        for offer in offers:
            self._put(offer, at)

    def take(self, now_at: int, most: int) -> list[Offer]:
        """What is to be offered by now, the earliest first; at most so many."""
        found: list[Offer] = []
        while self._order and self._order[0] * SLOT_US <= now_at and len(found) < most:
            records = self._slots[self._order[0]]
            size = min(len(records), (most - len(found)) * _RECORD.size)
            found += map(self._offer, _RECORD.iter_unpack(records[:size]))
            if size < len(records):
                del records[:size]
            else:
                del self._slots[heappop(self._order)]
        self._count -= len(found)
        return found

    def next_at(self) -> int | None:
        """When the next is to be offered."""
        return self._order[0] * SLOT_US if self._order else None

    def forget(self, before_at: int) -> None:
        """What was due before an instant need not be known any longer."""
        last = before_at // SECOND_US
        for second in [second for second in self._known_by_second if second < last]:
            self._known.difference_update(self._known_by_second.pop(second))

    def _put(self, run: UpcomingRun | Offer, at: int) -> None:
        slot = -(-at // SLOT_US)  # late rather than early: before its lead a run cannot be taken
        records = self._slots.get(slot)
        if records is None:
            records = self._slots[slot] = bytearray()
            heappush(self._order, slot)
        pool = self._pools.get(run.pool)
        if pool is None:
            pool = self._pools[run.pool] = len(self._pool_names)
            self._pool_names.append(run.pool)
        records += _RECORD.pack(
            run.job_id, run.scheduled_at, run.due_at, run.fence, pool, run.run_class, _CODES[run.durability]
        )
        self._count += 1

    def _offer(self, record: tuple[int, int, int, int, int, int, int]) -> Offer:
        job_id, scheduled_at, due_at, fence, pool, run_class, durability = record
        return Offer(
            job_id=job_id,
            scheduled_at=scheduled_at,
            due_at=due_at,
            fence=fence,
            run_class=run_class,
            pool=self._pool_names[pool],
            durability=_DURABILITIES[durability],
        )
