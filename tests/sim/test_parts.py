"""The simulation itself: machines die without a word and stand still, stories shrink, and a broken safeguard is seen."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from hourhand.core.model import CronTiming, EveryTiming, JobSpec, PythonTarget, Version
from hourhand.stores.sqlite.statements import statements
from tests.sim.machine import LivelockError, Machine, SimLoop
from tests.sim.script import Item, write_script
from tests.sim.shrink import invariants_broken, minimise, shrink
from tests.sim.simulation import run_script
from tests.sim.timetable import expected_times

_AT = 1_794_819_600_000_000  # 2026-11-16T09:00:00Z
_S = 1_000_000


def on_a_loop(story: Callable[[SimLoop], Awaitable[None]]) -> None:
    loop = SimLoop()

    async def told() -> None:
        await story(loop)

    try:
        loop.run_until_complete(told())
    finally:
        loop.end()


def test_a_dead_machine_says_nothing_more_and_cleans_nothing_up() -> None:
    said: list[str] = []

    async def work() -> None:
        try:
            said.append("began")
            await asyncio.sleep(5)
            said.append("ended")
        finally:
            said.append("cleaned up")

    async def story(loop: SimLoop) -> None:
        machine = Machine(loop, "m")
        task = machine.start(work())
        await asyncio.sleep(1)
        machine.kill()
        machine.call(said.append, "was called")
        await asyncio.sleep(10)
        assert not task.done()
        assert said == ["began"]

    on_a_loop(story)


def test_a_frozen_machine_goes_on_where_it_stood_and_did_not_see_the_time_pass() -> None:
    woke_at: list[float] = []

    async def work(loop: SimLoop) -> None:
        await asyncio.sleep(2)
        woke_at.append(loop.time())

    async def story(loop: SimLoop) -> None:
        machine = Machine(loop, "m")
        task = machine.start(work(loop))
        await asyncio.sleep(1)
        machine.freeze()
        await asyncio.sleep(60)
        assert woke_at == []
        machine.thaw()
        await task
        assert woke_at == [61.0]

    on_a_loop(story)


def test_a_timer_that_is_cancelled_while_its_machine_stands_still_does_not_ring() -> None:
    rung: list[str] = []

    async def story(loop: SimLoop) -> None:
        machine = Machine(loop, "m")
        handles: list[asyncio.TimerHandle] = []
        machine.call(lambda: handles.append(loop.call_later(1, rung.append, "rung")))
        await asyncio.sleep(0.5)
        machine.freeze()
        await asyncio.sleep(5)
        handles[0].cancel()
        machine.thaw()
        await asyncio.sleep(5)
        assert rung == []

    on_a_loop(story)


def test_somebody_who_is_busy_for_ever_is_found_out() -> None:
    async def story(loop: SimLoop) -> None:
        for _ in range(10**9):
            await asyncio.sleep(0)

    with pytest.raises(LivelockError):
        on_a_loop(story)


def test_a_story_shrinks_to_the_items_that_matter() -> None:
    items = [Item(number, number, "act", "x", {}) for number in range(100)]

    def breaks(some: object) -> bool:
        return {3, 57} <= {item.number for item in some}  # type: ignore[attr-defined]

    assert [item.number for item in minimise(items, breaks, lambda: False)] == [3, 57]


def test_a_seed_that_breaks_a_promise_is_seen_and_made_shorter(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every run gets a slot of its own, whatever its job's limit is."""
    for name in ("look_due", "look_ahead"):
        text = statements()[name]
        changed = text.replace(
            "WHEN EXISTS (SELECT 1 FROM running AS r WHERE r.job_id = p.job_id) THEN 1\n", ""
        ).replace("CASE WHEN j.concurrency IS NULL THEN p.scheduled_at ELSE 0 END", "p.scheduled_at")
        assert changed != text
        monkeypatch.setitem(statements(), name, changed)
    script = write_script(4, size=0.2)
    report = run_script(script)
    assert "I11" in invariants_broken(report)
    shrunk = shrink(script, report, tries=6)
    assert shrunk.report.violations
    assert len(shrunk.script.items) < len(script.items) / 2


@pytest.mark.parametrize(
    ("timing", "until_s", "expected_s"),
    [
        (EveryTiming(interval_us=7 * _S, phase_at=_AT + 2 * _S), 20, [2, 9, 16]),
        (CronTiming(expression="*/20 * * * * *"), 65, [20, 40, 60]),
        (CronTiming(expression="30 * * * * *", tz="Asia/Kathmandu"), 100, [30, 90]),
        (CronTiming(expression="15 */2 * * * *", tz="Europe/Berlin"), 300, [15, 135, 255]),
        (CronTiming(expression="*/2 8 * * *", tz="UTC"), 300, []),
    ],
)
def test_the_timetable_is_walked_second_by_second(
    timing: object, until_s: int, expected_s: list[int]
) -> None:
    version = _version(timing=timing)
    assert expected_times([version], _AT, _AT + until_s * _S) == {_AT + second * _S for second in expected_s}


def test_bounds_of_a_job_count_over_its_versions() -> None:
    timing = EveryTiming(interval_us=_S, phase_at=_AT)
    versions = [
        _version(timing=timing, to_s=3, max_runs=5),
        _version(timing=timing, from_s=3, to_s=10, paused=True, max_runs=5),
        _version(timing=timing, from_s=10, max_runs=5),
    ]
    found = expected_times(versions, _AT, _AT + 60 * _S)
    assert found == {_AT + second * _S for second in (1, 2, 3, 11, 12)}


def _version(
    *,
    timing: object,
    from_s: int = 0,
    to_s: int | None = None,
    paused: bool = False,
    max_runs: int | None = None,
) -> Version:
    return Version(
        job_id=1,
        version=1,
        spec=JobSpec(timing=timing, target=PythonTarget(function="x"), max_runs=max_runs),  # type: ignore[arg-type]
        paused=paused,
        note=None,
        from_at=_AT + from_s * _S,
        until=0,
        to_at=None if to_s is None else _AT + to_s * _S,
    )
