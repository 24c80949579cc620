"""One timer of the event loop for a whole wheel: late rather than early."""

import asyncio
import random

from hourhand.core.instant import SECOND_US
from hourhand.core.wheel import Wheel
from hourhand.services.ticker import Ticker
from tests.services.virtual import LoopClock, run_virtual, until
from tests.services.world import MS, START_AT


def test_it_ticks_when_the_next_timer_runs_out_and_never_early() -> None:
    async def main(clock: LoopClock) -> None:
        wheel: Wheel[int] = Wheel(clock.now())
        out: list[tuple[int, int]] = []

        def tick(now_at: int) -> int | None:
            out.extend((due_at, now_at) for due_at in wheel.advance(now_at))
            return wheel.next_due()

        ticker = Ticker(tick, clock)
        draw = random.Random(5)
        due = [START_AT + draw.randrange(10 * SECOND_US) for _ in range(300)]
        for due_at in due:
            wheel.add(due_at, due_at)
            ticker.wake()
        await until(clock, START_AT + 11 * SECOND_US)
        assert [due_at for due_at, _ in out] == sorted(due)
        lateness = [now_at - due_at for due_at, now_at in out]
        assert min(lateness) >= 0
        assert max(lateness) <= MS

    run_virtual(main)


def test_it_keeps_one_timer_however_often_it_is_woken() -> None:
    async def main(clock: LoopClock) -> None:
        ticks: list[int] = []

        def tick(now_at: int) -> int | None:
            ticks.append(now_at)
            return now_at + 10 * MS

        ticker = Ticker(tick, clock)
        for _ in range(100):
            ticker.wake()
        await asyncio.sleep(0.055)
        assert [at - START_AT for at in ticks] == [n * 10 * MS for n in range(6)]
        ticker.stop()
        await asyncio.sleep(1)
        assert len(ticks) == 6

    run_virtual(main)


def test_with_nothing_pending_it_rests_until_woken() -> None:
    async def main(clock: LoopClock) -> None:
        ticks: list[int] = []
        ticker = Ticker(lambda now_at: ticks.append(now_at), clock)
        ticker.wake()
        await asyncio.sleep(60)
        assert len(ticks) == 1
        ticker.wake()
        await asyncio.sleep(60)
        assert len(ticks) == 2

    run_virtual(main)


def test_a_clock_set_forward_is_noticed_within_a_second() -> None:
    async def main(clock: LoopClock) -> None:
        ticks: list[int] = []

        def tick(now_at: int) -> int | None:
            ticks.append(now_at - START_AT)
            return START_AT + 3_600 * SECOND_US

        ticker = Ticker(tick, clock)
        ticker.wake()
        await asyncio.sleep(0.5)
        clock.offset_us = 3_600 * SECOND_US
        await asyncio.sleep(0.5)
        ticker.stop()
        assert ticks[-1] >= 3_600 * SECOND_US

    run_virtual(main)


def test_a_tick_that_wakes_it_is_followed_by_another() -> None:
    async def main(clock: LoopClock) -> None:
        ticks = 0

        def tick(now_at: int) -> int | None:
            nonlocal ticks
            ticks += 1
            if ticks < 3:
                ticker.wake()
            return None

        ticker = Ticker(tick, clock)
        ticker.wake()
        await asyncio.sleep(1)
        assert ticks == 3

    run_virtual(main)


def test_a_tick_that_raises_does_not_stop_the_timers() -> None:
    async def main(clock: LoopClock) -> None:
        ticks: list[int] = []

        def tick(now_at: int) -> int | None:
            ticks.append(now_at - START_AT)
            if len(ticks) == 1:
                raise ValueError("a fault of ours")
            return None

        ticker = Ticker(tick, clock)
        ticker.wake()
        await asyncio.sleep(10)
        assert ticks == [0, SECOND_US]

    run_virtual(main)
