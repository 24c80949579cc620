"""A hierarchical timing wheel: holds items until they are due and hands them out in due order.

Owns the slots and nothing else: no clock, no I/O, no thread. The caller says what time it is. Slots are a
millisecond wide on the lowest level and 256 times wider on each level above; what comes out is exact to the
microsecond all the same. Adding and cancelling are O(1), and a jump in time costs by items, not by slots.
"""

from bisect import bisect_left
from heapq import heappop, heappush
from typing import Generic, TypeVar

T = TypeVar("T")

SLOT_US = 1_000
LEVELS = 7  # 256**7 ms reaches past every instant that fits a signed 64-bit count of microseconds

# A handle is due_at in the high bits and a serial number below. It is unique for ever, sorts by (due_at, order
# of adding), and says by itself where its entry lies, so an entry needs no record of its own: 1M timers are 1M
# integers in a few dicts, and cancelling leaves no tombstone in a slot.
_SERIAL_BITS = 64

# How far to shift a tick to get its slot, by the bit length of (tick ^ cursor): the highest byte in which a tick
# differs from the cursor names its level.
_SHIFT_BY_BITS = tuple((max(bits, 1) - 1) // 8 * 8 for bits in range(LEVELS * 8 + 1))

_CANCELLED_AT_LEAST = 1_024


class Wheel(Generic[T]):
    """Items by due time, in three sorts of places.

    The cursor is a tick (a millisecond). Entries of later ticks lie in the slots: on the level of the highest
    byte in which their tick differs from the cursor, at that byte's value. So a level's slots are all after the
    cursor, every lower level is sooner than every higher one, and the nearest slot is the lowest bit of the
    lowest occupied level. Entries of the cursor's tick and before are near: a heap that knows the microsecond.
    The cursor may be ahead of the time, never behind; that only makes more entries near.
    """

    __slots__ = (
        "_added",
        "_cancelled",
        "_cursor",
        "_gone",
        "_near",
        "_near_is_sorted",
        "_near_order",
        "_occupied",
        "_slots",
    )

    def __init__(self, now_at: int) -> None:
        self._cursor = max(now_at // SLOT_US, 0)
        self._slots: list[dict[int, T] | None] = [None] * (LEVELS * 256)
        self._occupied = [0] * LEVELS
        self._near: dict[int, T] = {}
        self._near_order: list[int] = []
        self._near_is_sorted = True
        self._added = 0
        self._gone = 0
        self._cancelled = 0

    def __len__(self) -> int:
        return self._added - self._gone

    def add(self, due_at: int, item: T) -> int:
        """Hold the item until due_at; what is due already comes out at the next advance. Returns its handle."""
        tick = due_at // SLOT_US
        serial = self._added + 1
        handle = due_at << _SERIAL_BITS | serial
        if tick > self._cursor:
            try:
                shift = _SHIFT_BY_BITS[(tick ^ self._cursor).bit_length()]
            except IndexError:
                raise ValueError(f"due_at must fit a 64-bit count of microseconds, got {due_at}") from None
            index = shift << 5 | tick >> shift & 255
            slot = self._slots[index]
            if slot is None:
                self._slots[index] = {handle: item}
                self._occupied[shift >> 3] |= 1 << (index & 255)
            else:
                slot[handle] = item
        else:
            self._near[handle] = item
            heappush(self._near_order, handle)
            self._near_is_sorted = False
        self._added = serial
        return handle

    def cancel(self, handle: int) -> bool:
        """Take an item back. False if it has come out, was cancelled before, or never was."""
        tick = (handle >> _SERIAL_BITS) // SLOT_US
        try:
            if tick > self._cursor:
                shift = _SHIFT_BY_BITS[(tick ^ self._cursor).bit_length()]
                index = shift << 5 | tick >> shift & 255
                slot = self._slots[index]
                if slot is None:
                    return False
                del slot[handle]
                if not slot:
                    self._slots[index] = None
                    self._occupied[shift >> 3] ^= 1 << (index & 255)
            else:
                del self._near[handle]
        except LookupError:
            return False
        self._gone = gone = self._gone + 1
        self._cancelled = cancelled = self._cancelled + 1
        if cancelled > self._added - gone + _CANCELLED_AT_LEAST:
            self._compact()
        return True

    def advance(self, now_at: int) -> list[T]:
        """Hand out everything with due_at <= now_at, by due time and then in the order of adding.

        A time before that of an earlier call is no error: later adds may be due by it, the rest has come out.
        """
        due: list[T] = []
        tick = now_at // SLOT_US
        if tick > self._cursor:
            self._take_near(now_at, due)
            self._turn(tick, due)
        self._take_near(now_at, due)
        self._gone += len(due)
        return due

    def next_due(self) -> int | None:
        """When to advance next: never after the nearest item's due time, None if there is no item.

        Exact once the time has reached the item's own block of 256 ms, before that the start of its slot, which
        is still after the last advance: to advance then moves the item down a level, so a sleeping loop gets there
        in a wake-up per level at most.
        """
        order = self._near_order
        while order and order[0] not in self._near:
            heappop(order)
            self._near_is_sorted = False
        if order:
            return order[0] >> _SERIAL_BITS
        for level, occupied in enumerate(self._occupied):
            if occupied:
                shift = level * 8
                byte = (occupied & -occupied).bit_length() - 1
                tick = (self._cursor >> shift + 8 << 8 | byte) << shift
                if level:
                    return tick * SLOT_US
                self._turn(tick, [])  # sorts the slot ahead of its time: once, instead of a scan at each call
                return self._near_order[0] >> _SERIAL_BITS
        return None

    def _compact(self) -> None:
        """Give back the room of cancelled entries: dicts do not shrink, and the near order keeps their handles.

        Runs after as many cancels as there are entries, so that its cost per cancel is constant.
        """
        self._cancelled = 0
        for level, occupied in enumerate(self._occupied):
            for byte in _set_bits(occupied):
                self._slots[level << 8 | byte] = dict(self._slots[level << 8 | byte] or {})
        self._near = dict(self._near)
        self._near_order = sorted(self._near)
        self._near_is_sorted = True

    def _take_near(self, now_at: int, due: list[T]) -> None:
        order, near = self._near_order, self._near
        end = (now_at + 1) << _SERIAL_BITS
        if not order or order[0] >= end:
            return
        all_live = len(order) == len(near)
        if self._near_is_sorted:
            count = bisect_left(order, end)
            taken = order[:count]
            del order[:count]
        else:
            taken = []
            while order and order[0] < end:
                taken.append(heappop(order))
        due.extend(map(near.pop, taken if all_live else filter(near.__contains__, taken)))
        if not order:
            self._near = {}
            self._near_is_sorted = True

    def _turn(self, tick: int, due: list[T]) -> None:
        """Move the cursor forward to tick, with nothing left near: all slots passed are due as they are.

        Only the slot that the cursor enters is looked into: what is later than tick goes to lower levels.
        """
        level = ((tick ^ self._cursor).bit_length() - 1) // 8
        self._cursor = tick
        for passed in range(min(level, LEVELS)):
            self._empty(passed, self._occupied[passed], due)
        if level >= LEVELS:
            return
        byte = tick >> level * 8 & 255
        self._empty(level, self._occupied[level] & (1 << byte) - 1, due)
        entered = self._slots[level << 8 | byte]
        if entered is not None:
            self._slots[level << 8 | byte] = None
            self._occupied[level] ^= 1 << byte
            self._spread(entered)

    def _empty(self, level: int, which: int, due: list[T]) -> None:
        self._occupied[level] ^= which
        for byte in _set_bits(which):
            slot = self._slots[level << 8 | byte] or {}
            self._slots[level << 8 | byte] = None
            due.extend(map(slot.__getitem__, sorted(slot)) if len(slot) > 1 else slot.values())

    def _spread(self, entries: dict[int, T]) -> None:
        """Place the entries of the slot just entered. All levels below it and the near heap are empty."""
        order = sorted(entries)
        start = bisect_left(order, (self._cursor + 1) * SLOT_US << _SERIAL_BITS)
        self._near_order = order[:start]
        self._near_is_sorted = True
        if start == len(order):
            self._near = entries
            return
        self._near = {handle: entries[handle] for handle in self._near_order}
        slot: dict[int, T] = {}
        slot_end = 0
        for handle in order[start:]:
            if handle >= slot_end:
                tick = (handle >> _SERIAL_BITS) // SLOT_US
                shift = _SHIFT_BY_BITS[(tick ^ self._cursor).bit_length()]
                slot_end = ((tick >> shift) + 1 << shift) * SLOT_US << _SERIAL_BITS
                index = shift << 5 | tick >> shift & 255
                self._slots[index] = slot = {}
                self._occupied[shift >> 3] |= 1 << (index & 255)
            slot[handle] = entries[handle]


def _set_bits(bits: int) -> list[int]:
    found = []
    while bits:
        lowest = bits & -bits
        found.append(lowest.bit_length() - 1)
        bits ^= lowest
    return found
