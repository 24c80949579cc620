"""A duty: called again when it said, woken by hints, patient when the store is away, never stopped by a fault."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from hourhand.core.instant import SECOND_US
from hourhand.errors import Unavailable
from hourhand.services.loop import MAX_SLEEP_US, Duty, never
from hourhand.telemetry import Telemetry
from tests.services.virtual import LoopClock, run_virtual, until
from tests.services.world import MS, START_AT

Answer = Callable[[int], Awaitable[int | None]]


class Watched:
    """A step that notes when it was called and answers from a list."""

    def __init__(self, clock: LoopClock, *answers: object) -> None:
        self.clock = clock
        self.answers = list(answers)
        self.called: list[int] = []

    async def __call__(self, now_at: int) -> int | None:
        assert now_at == self.clock.now()
        self.called.append(now_at - START_AT)
        answer = self.answers.pop(0) if self.answers else None
        if isinstance(answer, BaseException):
            raise answer
        return None if answer is None else now_at + answer  # type: ignore[operator]


async def run_for(duty: Duty, clock: LoopClock, seconds: float) -> asyncio.Task[None]:
    task = asyncio.create_task(duty.run())
    await until(clock, START_AT + round(seconds * SECOND_US))
    return task


def duty_of(step: Answer, clock: LoopClock) -> Duty:
    return Duty("test", step, clock, Telemetry())


async def stopped(duty: Duty, task: asyncio.Task[None]) -> None:
    duty.stop()
    async with asyncio.timeout(10):
        await task


def test_a_step_is_called_again_when_it_said() -> None:
    async def main(clock: LoopClock) -> None:
        step = Watched(clock, 100 * MS, 250 * MS, 500 * MS)
        duty = duty_of(step, clock)
        await stopped(duty, await run_for(duty, clock, 0.9))
        assert step.called == [0, 100 * MS, 350 * MS, 850 * MS]

    run_virtual(main)


def test_a_step_that_says_now_is_called_at_once_and_lets_others_run() -> None:
    async def main(clock: LoopClock) -> None:
        step = Watched(clock, *[0] * 50, -SECOND_US)
        duty = duty_of(step, clock)
        await stopped(duty, await run_for(duty, clock, 0.5))
        assert step.called == [0] * 52

    run_virtual(main)


def test_one_that_does_not_poll_is_called_when_it_said_and_not_before() -> None:
    async def main(clock: LoopClock) -> None:
        step = Watched(clock, 10 * SECOND_US, 2 * SECOND_US + 7, 10 * SECOND_US)
        duty = Duty("test", step, clock, Telemetry(), poll_us=never)
        task = await run_for(duty, clock, 21)
        assert step.called == [0, 10 * SECOND_US, 12 * SECOND_US + 7]
        duty.wake()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert len(step.called) == 4
        await stopped(duty, task)

    run_virtual(main)


def test_one_that_polls_rarely_sleeps_that_long_but_no_longer() -> None:
    async def main(clock: LoopClock) -> None:
        poll_us = 5 * SECOND_US
        step = Watched(clock, None, 2 * SECOND_US, 60 * SECOND_US)
        duty = Duty("test", step, clock, Telemetry(), poll_us=lambda: poll_us)
        task = await run_for(duty, clock, 8)
        assert step.called == [0, 5 * SECOND_US, 7 * SECOND_US]
        poll_us = SECOND_US  # hints do not arrive any more: noticed while it sleeps
        await until(clock, START_AT + 10_500 * MS)
        assert step.called[3:] == [8 * SECOND_US, 9 * SECOND_US, 10 * SECOND_US]
        await stopped(duty, task)

    run_virtual(main)


def test_pauses_are_drawn_between_half_and_whole() -> None:
    async def main(clock: LoopClock) -> None:
        draws = iter([0.0, 0.5, 1.0])
        step = Watched(clock, *[Unavailable("away")] * 3)
        duty = Duty("test", step, clock, Telemetry(), draw=lambda: next(draws))
        await stopped(duty, await run_for(duty, clock, 0.9))
        assert step.called == [0, 50 * MS, 200 * MS, 600 * MS]

    run_virtual(main)


@pytest.mark.parametrize("jump_us", [3_600 * SECOND_US, -3_600 * SECOND_US])
def test_one_that_does_not_poll_notices_a_clock_that_was_set_anew(jump_us: int) -> None:
    async def main(clock: LoopClock) -> None:
        step = Watched(clock, 10 * SECOND_US, 10 * SECOND_US)
        duty = Duty("test", step, clock, Telemetry(), poll_us=never)
        task = await run_for(duty, clock, 1.5)
        clock.offset_us = jump_us
        await asyncio.sleep(1)
        assert step.called == [0, jump_us + 2 * SECOND_US]
        await stopped(duty, task)

    run_virtual(main)


def test_nothing_sleeps_for_longer_than_a_second_so_that_a_clock_set_anew_is_noticed() -> None:
    async def main(clock: LoopClock) -> None:
        step = Watched(clock, 3_600 * SECOND_US, None, 3_600 * SECOND_US)
        duty = duty_of(step, clock)
        task = await run_for(duty, clock, 1.5)
        clock.offset_us = 3_600 * SECOND_US
        await asyncio.sleep(1)
        await stopped(duty, task)
        assert step.called == [0, MAX_SLEEP_US, 3_600 * SECOND_US + 2 * MAX_SLEEP_US]

    run_virtual(main)


def test_a_hint_wakes_it_and_one_that_comes_during_the_step_is_not_lost() -> None:
    async def main(clock: LoopClock) -> None:
        duty: Duty | None = None
        called: list[int] = []

        async def step(now_at: int) -> int | None:
            called.append(now_at - START_AT)
            assert duty is not None
            if len(called) == 2:
                duty.wake()  # while it looks: what it saw may be out of date
            return None

        duty = duty_of(step, clock)
        task = await run_for(duty, clock, 0.3)
        assert called == [0]
        duty.wake()
        await asyncio.sleep(0.1)
        assert called == [0, 300 * MS, 300 * MS]
        await stopped(duty, task)

    run_virtual(main)


def test_it_backs_off_while_the_store_is_away_and_recovers() -> None:
    async def main(clock: LoopClock) -> None:
        away = [Unavailable("away") for _ in range(9)]
        step = Watched(clock, *away, None, Unavailable("away"), None)
        duty = duty_of(step, clock)
        task = asyncio.create_task(duty.run())
        await until(clock, START_AT + 1 * SECOND_US)
        assert duty.trouble == "away"
        duty.wake()  # a hint does not cut the pause short
        await until(clock, START_AT + 23 * SECOND_US)
        pauses = [later - earlier for earlier, later in zip(step.called, step.called[1:], strict=False)]
        expected = [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5, 5, 5, 1, 0.1]  # the last: it begins small again
        assert [round(pause / SECOND_US, 3) for pause in pauses][: len(expected)] == expected
        assert duty.trouble is None
        await stopped(duty, task)

    run_virtual(main)


def test_any_other_error_is_survived_alike() -> None:
    async def main(clock: LoopClock) -> None:
        step = Watched(clock, ValueError("a fault of ours"), KeyError("x"), None)
        duty = duty_of(step, clock)
        task = await run_for(duty, clock, 0.15)
        assert duty.trouble == "KeyError: 'x'"
        await until(clock, START_AT + SECOND_US // 2)
        assert len(step.called) == 3
        assert not task.done()
        assert duty.trouble is None
        await stopped(duty, task)

    run_virtual(main)


def test_it_stops_after_the_step_under_way() -> None:
    async def main(clock: LoopClock) -> None:
        ended: list[int] = []

        async def slow(now_at: int) -> int | None:
            await asyncio.sleep(2)
            ended.append(clock.now() - START_AT)
            return clock.now()

        duty = duty_of(slow, clock)
        task = await run_for(duty, clock, 1)
        duty.stop()
        await task
        assert ended == [2 * SECOND_US]

    run_virtual(main)


def test_it_stops_at_once_while_it_sleeps_and_while_it_backs_off() -> None:
    async def main(clock: LoopClock) -> None:
        for answers in ([None], [Unavailable("away")] * 10):
            duty = duty_of(Watched(clock, *answers), clock)
            task = asyncio.create_task(duty.run())
            await asyncio.sleep(5)
            stopping_at = clock.now()
            duty.stop()
            await task
            assert clock.now() == stopping_at

    run_virtual(main)


def test_a_duty_told_to_stop_before_it_began_does_nothing() -> None:
    async def main(clock: LoopClock) -> None:
        step = Watched(clock)
        duty = duty_of(step, clock)
        duty.stop()
        await duty.run()
        assert step.called == []

    run_virtual(main)
