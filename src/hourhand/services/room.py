"""Shares what a process can run at once among its workers, one per database.

A worker reserves room before it claims, so that what comes back can always be run. All room may be one
worker's as long as no other has work; where several have, each is left its even part. One whose database
is away reserves a single place at a time until it answers again, so that the others have the rest.
"""

from collections.abc import Callable


class Room:
    """Places for runs in hand; `total` over all who share it."""

    def __init__(self, total: int) -> None:
        self.total = total
        self._shares: list[Share] = []

    def join(self, held: Callable[[], int], wake: Callable[[], None]) -> "Share":
        """A worker's part: `held` counts what it has in hand, `wake` tells it that there may be room."""
        share = Share(self, held, wake)
        self._shares.append(share)
        return share

    def free_for(self, share: "Share") -> int:
        """How much a worker may reserve now, with what the others are entitled to left to them."""
        free = self.total - sum(one.taken for one in self._shares)
        others = [one for one in self._shares if one is not share and one.hungry]
        if not others:
            return max(0, free)
        part = max(1, self.total // (len(others) + 1))
        return max(0, free - sum(max(0, part - one.taken) for one in others))

    def wake_others(self, share: "Share") -> None:
        """There is room that a worker does not need: whoever waits for some may look again."""
        for one in self._shares:
            if one is not share and one.hungry:
                one.wake()

    @property
    def is_shared(self) -> bool:
        """Whether there is more than one worker."""
        return len(self._shares) > 1


class Share:
    """One worker's part of the room."""

    def __init__(self, room: Room, held: Callable[[], int], wake: Callable[[], None]) -> None:
        self._room = room
        self._held = held
        self.wake = wake
        self._reserved = 0
        self.doubtful = False  # the last claim failed
        self.hungry = False  # there may be more for it than it had room for

    @property
    def total(self) -> int:
        """What the whole process can run."""
        return self._room.total

    @property
    def taken(self) -> int:
        """What it has in hand and what it is about to take."""
        return self._held() + self._reserved

    @property
    def free(self) -> int:
        """How much it could reserve now."""
        free = self._room.free_for(self)
        return min(free, 1) if self.doubtful and self._room.is_shared else free

    def reserve(self, most: int) -> int:
        """Keep places for a claim; 0 when there are none, and then it is woken when there are."""
        self._reserved = min(self.free, most)
        self.hungry |= self._reserved == 0
        return self._reserved

    def claimed(self, *, more: bool) -> None:
        """The claim was answered and what it brought is in hand; `more`: there may be more to take."""
        self._end(hungry=more, doubtful=False)

    def failed(self) -> None:
        """The claim was not answered."""
        self._end(hungry=False, doubtful=True)

    def freed(self) -> None:
        """Something left its hand."""
        self.wake()
        self._room.wake_others(self)

    def _end(self, *, hungry: bool, doubtful: bool) -> None:
        self._reserved = 0
        self.hungry = hungry
        self.doubtful = doubtful
        if not hungry:
            self._room.wake_others(self)  # what was kept for it is theirs now
