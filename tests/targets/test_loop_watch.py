"""An async function that does not yield ends by interruption, and the loop goes on."""

import asyncio
import time

import pytest

from hourhand.targets.loop_watch import LoopHeld, LoopWatch

HOLD_S = 0.4


async def guarded(spin: bool) -> str:
    """Calls a function as the Python target does."""
    try:
        await (spins() if spin else sleeps())
    except LoopHeld:
        return "interrupted"
    return "went on"


async def spins() -> None:
    until = time.monotonic() + 20
    while time.monotonic() < until:
        pass


async def sleeps() -> None:
    getattr(time, "sleep")(20)  # noqa: B009 - what a careless function does, not what a test waits for


@pytest.mark.parametrize("spin", [True, False])
async def test_interrupts_what_holds_the_loop(spin: bool) -> None:
    watch = LoopWatch(guarded.__code__, hold_max_s=HOLD_S)
    try:
        began = time.monotonic()
        assert await guarded(spin) == "interrupted"
        assert time.monotonic() - began < 10
        await asyncio.sleep(0)  # the loop itself is unharmed
    finally:
        watch.stop()


async def test_leaves_alone_what_is_no_job_function() -> None:
    watch = LoopWatch(guarded.__code__, hold_max_s=HOLD_S)
    try:
        until = time.monotonic() + HOLD_S * 4
        while time.monotonic() < until:
            pass
    finally:
        watch.stop()


async def test_leaves_alone_what_yields() -> None:
    watch = LoopWatch(guarded.__code__, hold_max_s=HOLD_S)

    async def yields() -> None:
        until = time.monotonic() + HOLD_S * 3
        while time.monotonic() < until:  # noqa: ASYNC110 - a busy function that yields, as good ones do
            await asyncio.sleep(0)

    try:
        await yields()
    finally:
        watch.stop()
