"""Runs duties: calls each step, sleeps until it wants to be called again, wakes it on hints, backs off.

A duty is `step(now) -> when to call me again`; it holds no loop of its own. A step that fails because
the store is away is repeated with a growing pause; any other error is logged and treated alike, since
one duty's fault must not stop the others.
"""

import asyncio
from collections.abc import Awaitable, Callable

from hourhand.clock import Clock
from hourhand.core.instant import SECOND_US
from hourhand.errors import Unavailable
from hourhand.telemetry import Telemetry, logger

MAX_SLEEP_US = SECOND_US  # so that a clock which was set anew is noticed within a second
_FIRST_PAUSE_S = 0.1
_MAX_PAUSE_S = 5.0

Step = Callable[[int], Awaitable[int | None]]
Poll = Callable[[], int | None]

_log = logger("hourhand.loop")


def every_second() -> int:
    """The poll of a duty whose hints may be lost."""
    return SECOND_US


def never() -> None:
    """The poll of a duty that is called when it said."""


def full_pause() -> float:
    """No jitter, for tests and simulations."""
    return 1.0


class Duty:
    """One step function with its wake-up.

    `poll_us` says how long it may go without a call, since hints may be lost; where that is None it is
    called when it said, when it is woken, and when the clock was set back. `draw` gives the jitter of
    pauses, from 0 to 1: those who lost the same store shall not all come back at once.
    """

    def __init__(
        self,
        name: str,
        step: Step,
        clock: Clock,
        telemetry: Telemetry,
        *,
        poll_us: Poll = every_second,
        draw: Callable[[], float] = full_pause,
    ) -> None:
        self.name = name
        self._step = step
        self._clock = clock
        self._telemetry = telemetry
        self._poll_us = poll_us
        self._draw = draw
        self._wake = asyncio.Event()
        self._failures = 0
        self._stopping = asyncio.Event()
        self.trouble: str | None = None  # what the last step failed with

    def wake(self) -> None:
        """Call the step soon, whatever it said before."""
        self._wake.set()

    def stop(self) -> None:
        """End after the step that is under way."""
        self._stopping.set()
        self._wake.set()

    async def run(self) -> None:
        """Call the step until told to stop."""
        while not self._stopping.is_set():
            self._wake.clear()
            try:
                next_at = await self._step(self._clock.now())
                self._failures, self.trouble = 0, None
            except Unavailable as error:
                await self._pause(error.message)
                continue
            except Exception as error:
                _log.exception("step failed", duty=self.name)
                await self._pause(f"{type(error).__name__}: {error}")
                continue
            await self._sleep_until(next_at)

    async def _sleep_until(self, next_at: int | None) -> None:
        began_at = now_at = self._clock.now()
        while not self._wake.is_set():
            poll_us = self._poll_us()
            ends = [at for at in (next_at, None if poll_us is None else began_at + poll_us) if at is not None]
            sleep_us = min([at - now_at for at in ends] + [MAX_SLEEP_US])
            if sleep_us <= 0:
                await asyncio.sleep(0)
                return
            await _wait(self._wake, sleep_us / SECOND_US)
            now_at = self._clock.now()
            if now_at < began_at:  # the clock was set back
                return

    async def _pause(self, why: str) -> None:
        self._telemetry.store_failed()
        self._failures += 1
        self.trouble = why
        longest_s = min(_FIRST_PAUSE_S * 2 ** min(self._failures - 1, 10), _MAX_PAUSE_S)
        pause_s = longest_s * (1 + self._draw()) / 2
        _log.warning(
            "trying again", duty=self.name, why=why, pause_s=round(pause_s, 3), failures=self._failures
        )
        await _wait(self._stopping, pause_s)  # a hint does not cut it short: the store needs the pause


async def _wait(event: asyncio.Event, longest_s: float) -> None:
    try:
        async with asyncio.timeout(longest_s):
            await event.wait()
    except TimeoutError:
        pass
