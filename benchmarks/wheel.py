"""What a timer costs in core/wheel, with heapq doing the same work in the same run.

Each figure is the median of three rounds, in nanoseconds per timer: `add` and `cancel` one, `expire` as a loop
does it that sleeps until the next is due, `jump` all at once; then bytes that a timer holds, and at most.

    python -m benchmarks.wheel [--timers 1000000] [--quick]
"""

import gc
import heapq
import random
import tracemalloc
from collections.abc import Callable, Iterable
from statistics import median
from time import perf_counter_ns
from typing import Protocol

from benchmarks._report import Report, Size, options_of
from hourhand.core.wheel import Wheel

NOW_AT = 1_760_000_000_000_000
SECOND_US = 1_000_000


class Timers(Protocol):
    def add(self, due_at: int, item: object) -> int: ...
    def cancel(self, handle: int) -> bool: ...
    def advance(self, now_at: int) -> list[object]: ...
    def next_due(self) -> int | None: ...
    def __len__(self) -> int: ...


class Heap:
    """The usual heapq timer queue: tuples by (due_at, serial), cancelled by forgetting the serial."""

    def __init__(self, now_at: int) -> None:
        self._order: list[tuple[int, int]] = []
        self._items: dict[int, object] = {}
        self._serial = 0

    def __len__(self) -> int:
        return len(self._items)

    def add(self, due_at: int, item: object) -> int:
        self._serial = serial = self._serial + 1
        self._items[serial] = item
        heapq.heappush(self._order, (due_at, serial))
        return serial

    def cancel(self, handle: int) -> bool:
        return self._items.pop(handle, self) is not self

    def advance(self, now_at: int) -> list[object]:
        due = []
        while self._order and self._order[0][0] <= now_at:
            serial = heapq.heappop(self._order)[1]
            if serial in self._items:
                due.append(self._items.pop(serial))
        return due

    def next_due(self) -> int | None:
        while self._order and self._order[0][1] not in self._items:
            heapq.heappop(self._order)
        return self._order[0][0] if self._order else None


def main() -> None:
    options = options_of(__doc__ or "", Size("timers", 1_000_000, 20_000, "in each load"))
    report = Report("wheel", options)
    count = options.timers
    rng = random.Random(7)
    loads = {
        f"{count:,} over 2 s": [NOW_AT + rng.randrange(2 * SECOND_US) for _ in range(count)],
        f"{count:,} over 1 h": [NOW_AT + rng.randrange(3_600 * SECOND_US) for _ in range(count)],
        f"{count:,} over 1 y": [NOW_AT + rng.randrange(31_536_000 * SECOND_US) for _ in range(count)],
        "10,000 in one ms": [NOW_AT + SECOND_US] * 10_000,
        "10,000 late": [NOW_AT - rng.randrange(SECOND_US) for _ in range(10_000)],
    }
    report.note(
        f"{'load':<22}{'kind':<7}{'add':>7}{'cancel':>8}{'expire':>8}{'jump':>7}{'B/timer':>9}{'peak B':>8}"
    )
    for name, due_ats in loads.items():
        for kind in (Wheel[object], Heap):
            figures = measure(kind, due_ats, options.rounds)
            report.note(f"{name:<22}{'heapq' if kind is Heap else 'wheel':<7}{figures}")
    report.save()


def measure(kind: Callable[[int], Timers], due_ats: list[int], rounds: int) -> str:
    handed_out = (expire_ticking, expire_at_once)
    adds: list[int] = []
    cancels: list[int] = []
    ticking: list[int] = []
    jumping: list[int] = []
    for _ in range(rounds):
        for expire, taken in zip(handed_out, (ticking, jumping), strict=True):
            timers = kind(NOW_AT)
            add_ns, _ = timed(lambda timers=timers: [timers.add(due_at, None) for due_at in due_ats])
            expire_ns, out = timed(lambda timers=timers, expire=expire: expire(timers, max(due_ats)))
            assert out == len(due_ats)
            adds.append(add_ns)
            taken.append(expire_ns)
        timers = kind(NOW_AT)
        handles = [timers.add(due_at, None) for due_at in due_ats]
        random.Random(3).shuffle(handles)
        cancels.append(timed(lambda timers=timers, handles=handles: sum(map(timers.cancel, handles)))[0])
    held, peak = memory(kind, due_ats)
    figures = [median(taken) / len(due_ats) for taken in (adds, cancels, ticking, jumping)]
    return f"{figures[0]:7.0f}{figures[1]:8.0f}{figures[2]:8.0f}{figures[3]:7.0f}{held:9.0f}{peak:8.0f}"


def expire_ticking(timers: Timers, last_at: int) -> int:
    """As a loop does it: sleep until next_due, or a millisecond more, and advance. At most 20,000 wake-ups."""
    out, now_at, step = 0, NOW_AT, max(1_000, (last_at - NOW_AT) // 20_000)
    while (next_at := timers.next_due()) is not None:
        now_at = max(now_at + step, next_at)
        out += len(timers.advance(now_at))
    return out


def expire_at_once(timers: Timers, last_at: int) -> int:
    return len(timers.advance(last_at))


def timed(work: Callable[[], object]) -> tuple[int, object]:
    gc.collect()
    started_ns = perf_counter_ns()
    result = work()
    return perf_counter_ns() - started_ns, result


def memory(kind: Callable[[int], Timers], due_ats: Iterable[int]) -> tuple[float, float]:
    """Bytes per timer, the caller's items left out: held after adding, and at most while they expire in a loop."""
    due_ats = list(due_ats)
    gc.collect()
    tracemalloc.start()
    timers = kind(NOW_AT)
    for due_at in due_ats:
        timers.add(due_at, None)
    held = tracemalloc.get_traced_memory()[0]
    expire_ticking(timers, max(due_ats))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return held / len(due_ats), peak / len(due_ats)


if __name__ == "__main__":
    main()
