"""How far a partition may be committed: up to the first message that is still in somebody's hands.

Messages are acknowledged in any order, but Kafka remembers one number for each partition. What is held for too
long stops nobody: the store offers such a run by itself, so that far behind the newest it counts as done.
"""

MOST_BEHIND = 50_000


class Offsets:
    """The messages of one partition that were read and not yet acknowledged."""

    __slots__ = ("_committed", "_held", "_next", "lost")

    def __init__(self) -> None:
        self._held: dict[int, None] = {}  # in the order of reading, which is the partition's
        self._next: int | None = None  # one past the newest that was read
        self._committed: int | None = None
        self.lost = False  # somebody else reads the partition now

    def read(self, offset: int, *, done: bool = False) -> None:
        """A message came; `done` when it is of no concern here."""
        self._next = offset + 1
        if not done:
            self._held[offset] = None

    def ack(self, offset: int) -> None:
        """One of them needs not be told again."""
        self._held.pop(offset, None)

    def position(self) -> int | None:
        """What to commit now: the next message to read after a restart; None where nothing has changed."""
        if self._next is None:
            return None
        while self._held and next(iter(self._held)) < self._next - MOST_BEHIND:
            del self._held[next(iter(self._held))]
        position = next(iter(self._held), self._next)
        if position == self._committed:
            return None
        self._committed = position
        return position
