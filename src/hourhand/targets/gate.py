"""How many calls may be under way, in all and to one origin.

Waiting here comes before the exchange, so a crowd at a slow origin uses up nobody's target timeout and
none of the connections that other origins need.
"""

import asyncio


class Gate:
    """Lets calls in, first come first served: `total` at a time, `per_origin` of them to one origin."""

    def __init__(self, *, total: int, per_origin: int) -> None:
        self._total = asyncio.Semaphore(total)
        self._per_origin = per_origin
        self._origins: dict[str, _Origin] = {}

    @property
    def origins(self) -> int:
        """How many origins have calls, under way or waiting; others cost nothing."""
        return len(self._origins)

    async def enter(self, origin: str) -> None:
        """Returns when the call may go; `leave` must follow."""
        place = self._origins.get(origin)
        if place is None:
            place = self._origins[origin] = _Origin(self._per_origin)
        place.calls += 1
        try:
            await place.free.acquire()
            try:
                await self._total.acquire()
            except BaseException:
                place.free.release()
                raise
        except BaseException:
            self._forget(origin, place)
            raise

    def leave(self, origin: str) -> None:
        """Gives the place to the next one."""
        place = self._origins[origin]
        self._total.release()
        place.free.release()
        self._forget(origin, place)

    def _forget(self, origin: str, place: "_Origin") -> None:
        place.calls -= 1
        if not place.calls:
            del self._origins[origin]


class _Origin:
    __slots__ = ("calls", "free")

    def __init__(self, limit: int) -> None:
        self.free = asyncio.Semaphore(limit)
        self.calls = 0  # in, or waiting
