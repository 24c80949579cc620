"""Operations, step by step: everything that matched, nothing later, at their pace, through failures and rivals."""

from collections.abc import Mapping
from typing import Any

import pytest

from hourhand.core.access import Principal, Role, Via
from hourhand.core.identity import format_operation_id
from hourhand.core.instant import SECOND_US
from hourhand.core.model import AfterTiming, Job, JobState, Retry, Trigger
from hourhand.core.operation import MAX_EXPECTED, Action, JobFilter, LetterFilter, Operation, OperationSpec
from hourhand.core.run import ClaimedRun
from hourhand.errors import Conflict, Invalid, Unavailable
from hourhand.ids import IdSource
from hourhand.ports.acting import actor
from hourhand.ports.target import Result
from hourhand.services.operations import Operations
from hourhand.services.operator import Operator
from tests.services.world import FAILED, World, every

ANN = Principal(subject="ann", tenant="default", role=Role.ADMIN, via=Via.TOKEN)


class Bench:
    """A world with somebody who carries out operations."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.asked = Operations(store=world.store, ids=IdSource(world.clock, seed=3), clock=world.clock)
        self.operator = self.another()

    def another(self) -> Operator:
        return Operator(store=self.world.store, jobs=self.world.jobs, runs=self.world.runs)

    async def ask(self, action: Action, **more: Any) -> Operation:
        self.world.pass_time(0.001)  # ids go by time: what is made later has a greater one
        options = {name: more.pop(name) for name in ("expected_count", "dry_run") if name in more}
        return await self.asked.create("default", OperationSpec(action=action, **more), ANN, **options)

    async def over(self, operation: Operation) -> Operation:
        for _ in range(10_000):
            wake_at = await self.operator.step(self.world.now)
            if wake_at is None:
                return await self.asked.get("default", operation.id)
            self.world.go_to(max(self.world.now, wake_at))
        raise AssertionError("the operation does not come to an end")

    async def state(self, job: Job) -> JobState | None:
        found = await self.world.store.get_job("default", job.id)
        return None if found is None else found.state


@pytest.fixture
def bench() -> Bench:
    return Bench(World())


async def jobs(bench: Bench, count: int, **fields: Any) -> list[Job]:
    return [await bench.world.create(**fields) for _ in range(count)]


async def test_all_that_match_are_paused_and_nothing_else(bench: Bench) -> None:
    tagged = await jobs(bench, 250, tags=("x",))
    [other] = await jobs(bench, 1)
    done = await bench.over(await bench.ask(Action.PAUSE, jobs=JobFilter(tag="x"), note="INC-42"))
    assert (done.state, done.matched, done.done, done.failed) == ("done", 250, 250, 0)
    assert {await bench.state(job) for job in tagged} == {JobState.PAUSED}
    assert await bench.state(other) is JobState.ACTIVE
    paused = await bench.world.store.get_job("default", tagged[0].id)
    assert paused is not None
    assert paused.note == "INC-42"
    assert await bench.operator.step(bench.world.now) is None


async def test_what_is_made_after_it_was_asked_for_is_not_touched(bench: Bench) -> None:
    await jobs(bench, 3)
    asked = await bench.ask(Action.PAUSE)
    bench.world.pass_time(0.001)
    [late] = await jobs(bench, 1)
    done = await bench.over(asked)
    assert (done.done, await bench.state(late)) == (3, JobState.ACTIVE)


async def test_what_needs_nothing_is_left_alone(bench: Bench) -> None:
    one, two = await jobs(bench, 2)
    await bench.world.jobs.pause("default", one.id)
    done = await bench.over(await bench.ask(Action.PAUSE))
    assert (done.done, done.left_alone) == (1, 1)
    assert len(await bench.world.jobs.versions("default", one.id)) == 2
    done = await bench.over(await bench.ask(Action.RESUME, jobs=JobFilter(state=JobState.PAUSED)))
    assert done.done == 2
    assert await bench.state(two) is JobState.ACTIVE


async def test_what_cannot_be_done_is_told_and_the_rest_goes_on(bench: Bench) -> None:
    parent, other = await jobs(bench, 2, tags=("x",))
    await bench.world.create(AfterTiming(parents=(parent.id,)))
    done = await bench.over(await bench.ask(Action.DELETE, jobs=JobFilter(tag="x")))
    assert (done.state, done.done, done.failed) == ("done", 1, 1)
    assert "follow" in done.failures[0].why
    assert await bench.state(other) is None
    assert await bench.state(parent) is JobState.ACTIVE


async def test_each_runs_once_however_often_a_page_is_repeated(bench: Bench) -> None:
    """Two that carry it out at once, and one that fails before the mark has moved."""
    found = await jobs(bench, 5)
    asked = await bench.ask(Action.RUN)
    rival = bench.another()
    bench.world.store.fail("move_operation", times=2)
    for one in (bench.operator, rival):
        with pytest.raises(Unavailable):
            await one.step(bench.world.now)
    bench.world.store.lose_answer("move_operation")
    with pytest.raises(Unavailable):
        await rival.step(bench.world.now)
    done = await bench.over(asked)
    assert done.done == 5
    for job in found:
        runs = await bench.world.runs.history(job)
        assert len([run for run in runs if run.trigger is Trigger.MANUAL]) == 1


async def test_a_pace_is_kept(bench: Bench) -> None:
    await jobs(bench, 60)
    began_at = bench.world.now
    done = await bench.over(await bench.ask(Action.PAUSE, pace_us=SECOND_US // 2))
    assert done.done == 60
    assert 28 * SECOND_US <= bench.world.now - began_at <= 33 * SECOND_US


async def test_cancelled_it_ends_where_it_is(bench: Bench) -> None:
    await jobs(bench, 10)
    asked = await bench.ask(Action.PAUSE, pace_us=SECOND_US)
    await bench.operator.step(bench.world.now)
    ended = await bench.asked.cancel("default", asked.id)
    assert (ended.state, ended.done) == ("cancelled", 1)
    assert await bench.operator.step(bench.world.now + 60 * SECOND_US) is None


async def test_dead_letters_go_back_by_what_they_have_in_common(bench: Bench) -> None:
    job = await bench.world.create(every(3600), concurrency=None, retry=Retry(max=0))

    async def fail(run: ClaimedRun) -> Result:
        return FAILED

    bench.world.target.act = fail
    hand = await bench.world.worker()
    count = 5
    for _ in range(count):
        await bench.world.jobs.run_now("default", job.id)
        bench.world.pass_time(0.1)
        await hand.work()
    [group] = await bench.world.runs.dead_groups("default", "error")
    assert group.count == count
    seen = await bench.ask(Action.REQUEUE, letters=LetterFilter(job_id=job.id), dry_run=True)
    assert (seen.id, seen.matched, seen.is_all) == (0, count, True)
    done = await bench.over(await bench.ask(Action.REQUEUE, letters=LetterFilter(job_id=job.id)))
    assert (done.done, await bench.world.runs.dead_groups("default", "error")) == (count, [])


async def test_nobody_changes_more_than_was_expected(bench: Bench) -> None:
    await jobs(bench, 3)
    with pytest.raises(Conflict, match="more match than the 2"):
        await bench.ask(Action.DELETE, expected_count=2)
    assert (await bench.asked.page("default", None, 10)).operations == ()
    fewer = await bench.ask(Action.PAUSE, expected_count=5)
    assert (fewer.matched, fewer.is_all) == (3, True)
    with pytest.raises(Invalid):
        await bench.ask(Action.PAUSE, expected_count=MAX_EXPECTED + 1)


async def test_a_dry_run_counts_and_leaves_nothing(bench: Bench) -> None:
    await jobs(bench, 3)
    seen = await bench.ask(Action.DELETE, dry_run=True)
    assert (seen.matched, seen.id) == (3, 0)
    assert (await bench.asked.page("default", None, 10)).operations == ()


async def test_it_is_done_in_the_name_of_who_asked(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Mapping[str, Any]] = []
    pause = bench.world.jobs.pause

    async def watched(*given: Any, **more: Any) -> Any:
        who = actor()
        assert who is not None
        seen.append({"subject": who.subject, "request": who.request_id})
        return await pause(*given, **more)

    monkeypatch.setattr(bench.world.jobs, "pause", watched)
    await jobs(bench, 1)
    asked = await bench.ask(Action.PAUSE)
    await bench.over(asked)
    assert seen == [{"subject": "ann", "request": format_operation_id(asked.id)}]
    assert actor() is None
