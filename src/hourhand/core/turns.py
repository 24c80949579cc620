"""Who is next where many wait: what was added under one name waits in its order, and the names take turns.

Owns the queues and nothing else. So of two tenants the one with a thousand runs to start delays the other by one.
"""

from collections import deque
from typing import Generic, TypeVar

T = TypeVar("T")


class Turns(Generic[T]):
    """Items by name; each name is known only as long as something waits under it."""

    __slots__ = ("_waiting",)

    def __init__(self) -> None:
        self._waiting: dict[str, deque[T]] = {}  # in the order of their turns

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def add(self, name: str, item: T) -> None:
        """To the end of what waits under a name; a new name has its turn after those that wait."""
        waiting = self._waiting.get(name)
        if waiting is None:
            self._waiting[name] = deque((item,))
        else:
            waiting.append(item)

    def take(self, most: int) -> list[T]:
        """The next items, one of each name in turn."""
        taken: list[T] = []
        while self._waiting and len(taken) < most:
            name, waiting = next(iter(self._waiting.items()))
            del self._waiting[name]
            if not self._waiting:  # nobody else waits
                while waiting and len(taken) < most:
                    taken.append(waiting.popleft())
            else:
                taken.append(waiting.popleft())
            if waiting:
                self._waiting[name] = waiting
        return taken
