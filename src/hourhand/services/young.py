"""Attempts that began a moment ago, in the order of their beginning: most end before they need a deadline timer.

Owns the line and nothing else. Nobody leaves it at its end, which would cost every run: who has ended is let go when he is first,
two for each who comes, so that the line stays as long as what is going on and is never walked in one go.
"""

from collections import deque

from hourhand.core.instant import SECOND_US
from hourhand.services.attempt import Attempt

OLD_AFTER_US = SECOND_US // 4
MOST_AT_ONCE = 128  # then timers and everybody else have their turn on the loop
_LET_GO_FOR_EACH = 2


class Young:
    """The line of those who may end before anybody has to watch them."""

    __slots__ = ("_line",)

    def __init__(self) -> None:
        self._line: deque[Attempt] = deque()

    def __len__(self) -> int:
        return len(self._line)

    def add(self, attempt: Attempt, now_at: int) -> None:
        """One that begins now; it comes out when it is old, unless it has ended by then."""
        attempt.old_at = now_at + OLD_AFTER_US
        line = self._line
        for _ in range(_LET_GO_FOR_EACH):
            if line and line[0].task is None:
                line.popleft()
        line.append(attempt)

    def next_at(self) -> int | None:
        """When the first is old, None where there is nobody: no later than the last, also where a clock was set back."""
        line = self._line
        return min(line[0].old_at, line[-1].old_at) if line else None

    def grown(self, now_at: int) -> list[Attempt]:
        """Who is old by now and still going; of a long line a part, and `next_at` is past for the rest."""
        grown = []
        line = self._line
        for _ in range(min(len(line), MOST_AT_ONCE)):
            first = line[0]
            if first.task is not None:
                if first.old_at > now_at and line[-1].old_at > now_at:
                    break
                grown.append(first)
            line.popleft()
        return grown
