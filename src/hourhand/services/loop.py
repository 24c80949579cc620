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

_log = logger("hourhand.loop")


class Duty:
    """One step function with its wake-up.

    A duty that polls is called once a second at least, since hints may be lost; one that does not is
    called when it said, or when the clock was set back.
    """

    def __init__(
        self, name: str, step: Step, clock: Clock, telemetry: Telemetry, *, polls: bool = True
    ) -> None:
        self.name = name
        self._step = step
        self._clock = clock
        self._telemetry = telemetry
        self._polls = polls
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
            sleep_us = MAX_SLEEP_US if next_at is None else min(next_at - now_at, MAX_SLEEP_US)
            if sleep_us <= 0:
                await asyncio.sleep(0)
                return
            await _wait(self._wake, sleep_us / SECOND_US)
            now_at = self._clock.now()
            if self._polls or now_at < began_at:
                return

    async def _pause(self, why: str) -> None:
        self._telemetry.store_failed()
        self._failures += 1
        self.trouble = why
        pause_s = min(_FIRST_PAUSE_S * 2 ** min(self._failures - 1, 10), _MAX_PAUSE_S)
        _log.warning("trying again", duty=self.name, why=why, pause_s=pause_s, failures=self._failures)
        await _wait(self._stopping, pause_s)  # a hint does not cut it short: the store needs the pause


async def _wait(event: asyncio.Event, longest_s: float) -> None:
    try:
        async with asyncio.timeout(longest_s):
            await event.wait()
    except TimeoutError:
        pass
