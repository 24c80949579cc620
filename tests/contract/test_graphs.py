"""Jobs that follow others: outcomes go down the graph, nothing waits for ever, and no run is made twice."""

import asyncio

import msgspec
import pytest

from hourhand.core.identity import RunKey, format_job_id
from hourhand.core.instant import DAY_US, HOUR_US, MINUTE_US, SECOND_US
from hourhand.core.lifecycle import Event, State
from hourhand.core.model import AfterTiming, Job, Overlap, Trigger
from hourhand.errors import Conflict, Invalid
from hourhand.ports.store import JobEdit, Unfit
from tests.contract.builders import draft, every, once, spec
from tests.contract.harness import START_AT
from tests.contract.scene import Scene, reason

T = START_AT + 60 * SECOND_US
NEXT = T + 60 * SECOND_US


def after(*parents: Job, wait_us: int = DAY_US) -> AfterTiming:
    return AfterTiming(parents=tuple(sorted(parent.id for parent in parents)), wait_us=wait_us)


async def follow(scene: Scene, *parents: Job, **fields: object) -> Job:
    timing = after(*parents, wait_us=fields.pop("wait_us", DAY_US))  # type: ignore[arg-type]
    return await scene.create(spec(timing, **fields))


async def fire(scene: Scene, at: int = T) -> None:
    """Plan, and come to a nominal time."""
    await scene.plan(90 * SECOND_US)
    scene.go_to(at)


async def descend(scene: Scene) -> None:
    for _ in range(100):
        if not await scene.store.descend(100):
            return
    raise AssertionError("descents go on for ever")


async def run_level(scene: Scene, node: int, **events: Event) -> list[int]:
    """Take what is due and end it, all as succeeded unless a job's name says otherwise; who that was."""
    runs = await scene.take(node, lead_us=0)
    for run in runs:
        event = events.get(run.spec.name, Event.SUCCEED)
        if event is Event.EXHAUST:
            await scene.kill(run)
        else:
            await scene.finish(run, event, detail={"reason": "so"} if event is Event.SKIP else None)
    await descend(scene)
    return sorted(run.job_id for run in runs)


async def test_a_child_runs_once_its_parent_has_succeeded_for_that_time(scene: Scene) -> None:
    parent = await scene.create()
    child = await follow(scene, parent)
    node = await scene.worker()
    await fire(scene)
    assert await run_level(scene, node) == [parent.id]
    assert (await scene.view(child, T)).trigger is Trigger.UPSTREAM
    assert await run_level(scene, node) == [child.id]
    assert await scene.state(child, T) is State.SUCCEEDED
    assert await run_level(scene, node) == []
    assert [view.scheduled_at for view in await scene.runs(child)] == [T]


async def test_it_does_not_run_before_its_parent_has_ended(scene: Scene) -> None:
    parent = await scene.create()
    child = await follow(scene, parent)
    node = await scene.worker()
    await fire(scene)
    [run] = await scene.take(node, lead_us=0)
    await descend(scene)
    assert await scene.state(child, T) is None
    await scene.finish(run, Event.RETRY, tries=1, due_at=scene.now)
    await descend(scene)
    assert await scene.state(child, T) is None


async def test_a_join_waits_for_all_and_says_for_whom(scene: Scene) -> None:
    first, second = await scene.create(), await scene.create()
    child = await follow(scene, first, second)
    node = await scene.worker()
    await fire(scene)
    runs = {run.job_id: run for run in await scene.take(node, lead_us=0)}
    await scene.finish(runs[first.id])
    await descend(scene)
    view = await scene.view(child, T)
    assert (view.state, view.waits_for, view.skip_asked) == (State.PENDING, (second.id,), False)
    assert view.wait_until == scene.now + DAY_US
    assert await scene.take(node) == []
    await scene.finish(runs[second.id])
    await descend(scene)
    assert await run_level(scene, node) == [child.id]
    assert await scene.state(child, T) is State.SUCCEEDED


@pytest.mark.parametrize(
    ("event", "outcome"),
    [(Event.EXHAUST, "FAILED"), (Event.SKIP, "SKIPPED"), (Event.CANCEL, "CANCELLED")],
)
async def test_what_is_not_success_goes_down_with_its_reason(
    scene: Scene, event: Event, outcome: str
) -> None:
    parent = await scene.create(spec(name="root"))
    child = await follow(scene, parent)
    grandchild = await follow(scene, child)
    await fire(scene)
    assert await run_level(scene, await scene.worker(), root=event) == [parent.id]
    view = await scene.view(child, T)
    assert view.state is State.SKIPPED
    assert view.attempts[-1].detail == {
        "reason": "upstream",
        "parent": format_job_id(parent.id),
        "outcome": outcome,
    }
    below = await scene.view(grandchild, T)
    assert below.attempts[-1].detail == {
        "reason": "upstream",
        "parent": format_job_id(child.id),
        "outcome": "SKIPPED",
    }


async def test_one_level_goes_down_in_one_transaction(scene: Scene) -> None:
    parent = await scene.create(spec(name="root"))
    child = await follow(scene, parent)
    grandchild = await follow(scene, child)
    await fire(scene)
    [run] = await scene.take(await scene.worker(), lead_us=0)
    await scene.kill(run)
    assert await scene.store.descend(100) == 1
    assert await scene.state(child, T) is State.SKIPPED
    assert await scene.state(grandchild, T) is None
    assert await scene.store.descend(100) == 1
    assert await scene.state(grandchild, T) is State.SKIPPED
    assert await scene.store.descend(100) == 0


async def test_a_graph_fires_through_level_by_level_at_one_nominal_time(scene: Scene) -> None:
    a, b = await scene.create(), await scene.create()
    c = await follow(scene, a)
    d = await follow(scene, a, b)
    e = await follow(scene, c, d)
    node = await scene.worker()
    await fire(scene)
    assert await run_level(scene, node) == sorted([a.id, b.id])
    assert await run_level(scene, node) == sorted([c.id, d.id])
    assert await run_level(scene, node) == [e.id]
    for job in (a, b, c, d, e):
        assert [view.scheduled_at for view in await scene.runs(job) if view.state is State.SUCCEEDED] == [T]


async def test_a_cancelled_run_of_a_parent_skips_what_follows(scene: Scene) -> None:
    parent = await scene.create()
    child = await follow(scene, parent)
    await scene.plan(90 * SECOND_US)
    await scene.store.cancel_run(parent.tenant, RunKey(parent.id, T))
    await descend(scene)
    assert reason(await scene.view(child, T)) == "upstream"


async def test_a_run_that_waits_can_be_cancelled_and_what_follows_it_is_skipped(scene: Scene) -> None:
    first, second = await scene.create(), await scene.create()
    child = await follow(scene, first, second)
    grandchild = await follow(scene, child)
    await fire(scene)
    runs = {run.job_id: run for run in await scene.take(await scene.worker(), lead_us=0)}
    await scene.finish(runs[first.id])
    await descend(scene)
    cancelled = await scene.store.cancel_run(child.tenant, RunKey(child.id, T))
    assert cancelled is not None
    assert cancelled.state is State.CANCELLED
    await scene.finish(runs[second.id])
    await descend(scene)
    assert await scene.state(child, T) is State.CANCELLED
    assert reason(await scene.view(grandchild, T)) == "upstream"


async def test_a_paused_child_is_skipped_for_that_reason(scene: Scene) -> None:
    parent = await scene.create()
    child = await follow(scene, parent)
    await scene.pause(child)
    node = await scene.worker()
    await fire(scene)
    await run_level(scene, node)
    assert reason(await scene.view(child, T)) == "paused"
    await scene.resume(child)
    await fire(scene, NEXT)
    await run_level(scene, node)
    assert await run_level(scene, node) == [child.id]


async def test_overlap_policy_counts_for_runs_that_follow_others(scene: Scene) -> None:
    parent = await scene.create()
    child = await follow(scene, parent, overlap=Overlap.SKIP)
    node = await scene.worker()
    await fire(scene)
    await run_level(scene, node)
    [long_run] = await scene.take(node, lead_us=0)
    assert long_run.job_id == child.id
    await fire(scene, NEXT)
    await run_level(scene, node)
    await scene.take(node, lead_us=0)
    assert reason(await scene.view(child, NEXT)) == "overlap"


async def test_times_from_before_it_was_made_are_not_its_own(scene: Scene) -> None:
    parent = await scene.create()
    await fire(scene)
    [run] = await scene.take(await scene.worker(), lead_us=0)
    child = await follow(scene, parent)
    await scene.finish(run)
    await descend(scene)
    assert await scene.state(child, T) is None


# --- what may follow what


async def test_a_circle_is_refused_by_name(scene: Scene) -> None:
    a = await scene.create(spec(name="a"))
    b = await scene.create(spec(after(a), name="b"))
    c = await scene.create(spec(after(b), name="c"))
    with pytest.raises(Invalid, match="'a' after 'c' after 'b' after 'a'"):
        await scene.change(a, timing=after(c))
    assert (await scene.get(a)).version == 1


async def test_roots_with_other_times_are_refused_by_name(scene: Scene) -> None:
    a = await scene.create(spec(name="a"))
    b = await scene.create(spec(every(90), name="b"))
    [answer] = await scene.store.create_jobs([draft(spec(after(a, b)))])
    assert isinstance(answer, Unfit)
    assert "'a' has every 1m" in answer.why
    assert "'b' has every 1m30s" in answer.why
    child = await follow(scene, a)
    with pytest.raises(Invalid, match="all roots of a graph need the same schedule"):
        await scene.change(child, timing=after(a, b))


async def test_whom_there_is_not_cannot_be_followed(scene: Scene) -> None:
    stranger = await scene.create(tenant="other")
    [answer] = await scene.store.create_jobs([draft(spec(after(stranger)))])
    assert isinstance(answer, Unfit)
    assert format_job_id(stranger.id) in answer.why


async def test_a_batch_may_bring_a_whole_graph(scene: Scene) -> None:
    root = draft(spec(name="root"))
    middle = draft(spec(AfterTiming(parents=(root.id,)), name="middle"))
    last = draft(spec(AfterTiming(parents=tuple(sorted((root.id, middle.id))))))
    lost = draft(spec(AfterTiming(parents=(123456,))))
    answers = await scene.store.create_jobs([root, middle, lost, last])
    assert [type(answer) for answer in answers] == [Job, Job, Unfit, Job]


async def test_a_job_that_others_follow_is_not_deleted(scene: Scene) -> None:
    parent = await scene.create()
    child = await scene.create(spec(after(parent), name="report"))
    with pytest.raises(Conflict, match="'report' would follow nobody"):
        await scene.delete(parent)
    await scene.delete(child)
    await scene.delete(parent)


async def test_one_of_two_roots_cannot_change_its_times_alone(scene: Scene) -> None:
    a, b = await scene.create(spec(name="a")), await scene.create(spec(name="b"))
    await follow(scene, a, b)
    with pytest.raises(Invalid, match="all roots of a graph need the same schedule"):
        await scene.change(a, timing=every(30))
    assert (await scene.get(a)).spec.timing == every(60)


async def test_all_roots_change_their_times_at_once(scene: Scene) -> None:
    a, b = await scene.create(spec(name="a")), await scene.create(spec(name="b", jitter_us=1_000_000))
    child = await follow(scene, a, b)

    def decide(present: Job, now_at: int) -> JobEdit:
        return JobEdit(spec=msgspec.structs.replace(present.spec, timing=every(30)), paused=False)

    changed = await scene.store.change_job(a.tenant, a.id, decide, roots_too=True)
    assert changed is not None
    assert changed.job.id == a.id
    others = await scene.get(b)
    assert (others.spec.timing, others.spec.name, others.version) == (every(30), "b", 2)
    assert others.since == changed.effective_from
    node = await scene.worker()
    await scene.plan(90 * SECOND_US)
    scene.go_to(START_AT + 30 * SECOND_US + 1_000_000)
    assert await run_level(scene, node) == sorted([a.id, b.id])
    assert await run_level(scene, node) == [child.id]


async def test_graph_shows_all_that_hang_together(scene: Scene) -> None:
    a, b = await scene.create(), await scene.create()
    await scene.create()
    c = await follow(scene, a)
    d = await follow(scene, a, b)
    for job in (a, b, c, d):
        assert [one.id for one in await scene.store.graph(job.tenant, job.id)] == sorted(
            [a.id, b.id, c.id, d.id]
        )
    assert await scene.store.graph("other", a.id) == []


# --- edits while runs wait


async def test_whom_a_waiting_run_waits_for_is_fixed(scene: Scene) -> None:
    first, second = await scene.create(), await scene.create()
    child = await follow(scene, first, second)
    node = await scene.worker()
    await fire(scene)
    runs = {run.job_id: run for run in await scene.take(node, lead_us=0)}
    await scene.finish(runs[first.id])
    await descend(scene)
    await scene.change(child, timing=after(first))
    assert (await scene.view(child, T)).waits_for == (second.id,)
    await scene.finish(runs[second.id])
    await descend(scene)
    assert await run_level(scene, node) == [child.id]


async def test_another_parent_counts_for_times_after_the_change(scene: Scene) -> None:
    first, second = await scene.create(), await scene.create()
    child = await follow(scene, first)
    node = await scene.worker()
    await fire(scene)
    await scene.change(child, timing=after(second))
    await run_level(scene, node)
    assert (await scene.view(child, T)).trigger is Trigger.UPSTREAM
    await run_level(scene, node)
    await fire(scene, NEXT)
    runs = {run.job_id: run for run in await scene.take(node, lead_us=0)}
    await scene.finish(runs[first.id])
    await descend(scene)
    assert await scene.state(child, NEXT) is None
    await scene.finish(runs[second.id])
    await descend(scene)
    assert await run_level(scene, node) == [child.id]


async def test_a_parent_that_is_added_later_does_not_make_a_second_run(scene: Scene) -> None:
    first, second = await scene.create(), await scene.create()
    child = await follow(scene, first)
    node = await scene.worker()
    await fire(scene)
    runs = {run.job_id: run for run in await scene.take(node, lead_us=0)}
    await scene.finish(runs[first.id])
    await descend(scene)
    await run_level(scene, node)
    await scene.change(child, timing=after(first, second))
    await scene.finish(runs[second.id])
    await descend(scene)
    assert await run_level(scene, node) == []
    assert len([view for view in await scene.runs(child) if view.scheduled_at == T]) == 1


async def test_a_deleted_child_ends_what_waits(scene: Scene) -> None:
    first, second = await scene.create(), await scene.create()
    child = await follow(scene, first, second)
    await fire(scene)
    runs = {run.job_id: run for run in await scene.take(await scene.worker(), lead_us=0)}
    await scene.finish(runs[first.id])
    await descend(scene)
    await scene.delete(child)
    ends = [line for line in (await scene.tables()).history if line.job_id == child.id]
    assert [(line.scheduled_at, line.state) for line in ends] == [(T, State.CANCELLED)]
    await scene.finish(runs[second.id])
    await descend(scene)
    assert [line for line in (await scene.tables()).history if line.job_id == child.id] == ends


async def test_a_child_that_becomes_a_root_leaves_the_graph(scene: Scene) -> None:
    parent = await scene.create()
    child = await follow(scene, parent)
    await scene.change(child, timing=every(30))
    node = await scene.worker()
    await fire(scene, NEXT)
    await run_level(scene, node)
    await scene.delete(parent)
    assert {view.trigger for view in await scene.runs(child)} == {Trigger.SCHEDULED}


# --- nothing waits for ever


async def test_a_parent_without_a_run_for_that_time_is_missing(scene: Scene) -> None:
    first, second = await scene.create(), await scene.create()
    child = await follow(scene, first, second)
    await scene.pause(second)
    node = await scene.worker()
    await fire(scene)
    await run_level(scene, node)
    assert await scene.state(child, T) is State.PENDING
    scene.pass_time(30)
    await scene.store.judge_waits(100)
    view = await scene.view(child, T)
    assert view.attempts[-1].detail == {
        "reason": "upstream",
        "parent": format_job_id(second.id),
        "outcome": "MISSING",
    }


async def test_a_parent_whose_clock_is_behind_is_not_missing(scene: Scene) -> None:
    first, second = await scene.create(), await scene.create()
    child = await follow(scene, first, second)
    await fire(scene, T)
    runs = {run.job_id: run for run in await scene.take(await scene.worker(), lead_us=0)}
    await scene.finish(runs[first.id])
    await descend(scene)
    for _ in range(3):
        scene.pass_time(20 * 60)
        await scene.store.judge_waits(100)
        assert await scene.state(child, T) is State.PENDING


async def test_a_parent_that_waits_itself_is_not_missing(scene: Scene) -> None:
    a, b, c = await scene.create(), await scene.create(), await scene.create()
    middle = await follow(scene, b, c)
    child = await follow(scene, a, middle)
    node = await scene.worker()
    await fire(scene)
    runs = {run.job_id: run for run in await scene.take(node, lead_us=0)}
    await scene.finish(runs[a.id])
    await scene.finish(runs[b.id])
    await descend(scene)
    scene.pass_time(60)
    await scene.store.judge_waits(100)
    assert await scene.state(child, T) is State.PENDING
    await scene.finish(runs[c.id])
    await descend(scene)
    await run_level(scene, node)
    await run_level(scene, node)
    assert await scene.state(child, T) is State.SUCCEEDED


async def test_a_missing_parent_further_up_is_missing_all_the_way_down(scene: Scene) -> None:
    a, b = await scene.create(), await scene.create()
    middle = await follow(scene, b)
    child = await follow(scene, a, middle)
    await scene.pause(b)
    node = await scene.worker()
    await fire(scene)
    await run_level(scene, node)
    scene.pass_time(30)
    await scene.store.judge_waits(100)
    assert (await scene.view(child, T)).attempts[-1].detail["outcome"] == "MISSING"  # type: ignore[index]


async def test_a_wait_ends_at_its_deadline(scene: Scene) -> None:
    first, second = await scene.create(), await scene.create()
    child = await follow(scene, first, second, wait_us=5 * MINUTE_US)
    grandchild = await follow(scene, child)
    await fire(scene)
    runs = {run.job_id: run for run in await scene.take(await scene.worker(), lead_us=0)}
    await scene.finish(runs[first.id])
    await descend(scene)
    scene.pass_time(299)
    await scene.store.judge_waits(100)
    assert await scene.state(child, T) is State.PENDING
    scene.pass_time(1)
    await scene.store.judge_waits(100)
    await descend(scene)
    view = await scene.view(child, T)
    assert view.attempts[-1].detail == {"reason": "expired", "waited_for": [format_job_id(second.id)]}
    assert reason(await scene.view(grandchild, T)) == "upstream"
    await scene.finish(runs[second.id])
    await descend(scene)
    assert await scene.state(child, T) is State.SKIPPED


async def test_a_parent_that_ended_before_the_edge_was_made_is_heard_of(scene: Scene) -> None:
    """Its outcome is in history, and nobody tells it again."""
    first, second = await scene.create(), await scene.create()
    child = await follow(scene, first)
    await scene.change(child, timing=after(first, second))
    scene.pass_time(10)
    node = await scene.worker()
    await fire(scene)
    runs = {run.job_id: run for run in await scene.take(node, lead_us=0)}
    await scene.finish(runs[second.id])
    await descend(scene)
    store = scene.store
    view = await scene.view(child, T)
    assert view.waits_for == (first.id,)
    await store.cancel_run(child.tenant, RunKey(child.id, T))
    await scene.finish(runs[first.id])
    await descend(scene)
    assert await scene.state(child, T) is State.CANCELLED


# --- what people send down a graph


async def test_a_manual_run_goes_down_only_when_asked(scene: Scene) -> None:
    parent = await scene.create()
    child = await follow(scene, parent)
    node = await scene.worker()
    key = await scene.run_now(parent)
    await run_level(scene, node)
    assert await scene.state(child, key.scheduled_at) is None
    sent = await scene.store.add_run(parent.tenant, parent.id, None, downstream=True)
    assert sent is not None
    assert (await scene.view(child, sent.scheduled_at)).waits_for == (parent.id,)
    await run_level(scene, node)
    assert await run_level(scene, node) == [child.id]
    assert (await scene.view(child, sent.scheduled_at)).trigger is Trigger.MANUAL


async def test_a_wave_waits_only_for_those_that_take_part(scene: Scene) -> None:
    a, b = await scene.create(), await scene.create()
    c = await follow(scene, a)
    join = await follow(scene, b, c)
    node = await scene.worker()
    sent = await scene.store.add_run(a.tenant, a.id, None, downstream=True)
    assert sent is not None
    assert await run_level(scene, node) == [a.id]
    assert await run_level(scene, node) == [c.id]
    assert await run_level(scene, node) == [join.id]
    assert await scene.state(b, sent.scheduled_at) is None


async def test_the_same_request_sends_one_wave(scene: Scene) -> None:
    parent = await scene.create()
    child = await follow(scene, parent)
    first = await scene.store.add_run(parent.tenant, parent.id, "key", downstream=True)
    again = await scene.store.add_run(parent.tenant, parent.id, "key", downstream=True)
    assert first == again
    assert len(await scene.runs(child)) == 1


async def test_a_failed_wave_is_skipped_below(scene: Scene) -> None:
    a = await scene.create(spec(name="a"))
    b = await follow(scene, a)
    c = await follow(scene, b)
    sent = await scene.store.add_run(a.tenant, a.id, None, downstream=True)
    assert sent is not None
    await run_level(scene, await scene.worker(), a=Event.EXHAUST)
    assert [await scene.state(job, sent.scheduled_at) for job in (b, c)] == [State.SKIPPED] * 2


async def test_a_letter_sent_back_alone_brings_no_children(scene: Scene) -> None:
    a = await scene.create(spec(name="a"))
    b = await follow(scene, a)
    node = await scene.worker()
    await fire(scene)
    await run_level(scene, node, a=Event.EXHAUST)
    await scene.store.requeue(a.tenant, [RunKey(a.id, T)])
    assert await run_level(scene, node) == [a.id]
    assert await scene.state(b, T) is State.SKIPPED


async def test_a_letter_sent_back_with_what_hangs_on_it(scene: Scene) -> None:
    a, other = await scene.create(spec(name="a")), await scene.create()
    b = await follow(scene, a)
    c = await follow(scene, b, other)
    node = await scene.worker()
    await fire(scene)
    await run_level(scene, node, a=Event.EXHAUST)
    assert [await scene.state(job, T) for job in (b, c)] == [State.SKIPPED] * 2
    await scene.store.requeue(a.tenant, [RunKey(a.id, T)], downstream=True)
    assert (await scene.view(c, T)).waits_for == (b.id,)
    assert await run_level(scene, node) == [a.id]
    assert await run_level(scene, node) == [b.id]
    assert await run_level(scene, node) == [c.id]
    view = await scene.view(c, T)
    assert (view.state, view.trigger) == (State.SUCCEEDED, Trigger.REQUEUED)
    assert [row.state for row in view.attempts] == [State.SKIPPED, State.SUCCEEDED]
    assert sorted({row.attempt for row in view.attempts}) == [row.attempt for row in view.attempts]


async def test_what_fails_again_is_skipped_again(scene: Scene) -> None:
    a = await scene.create(spec(name="a"))
    b = await follow(scene, a)
    node = await scene.worker()
    await fire(scene)
    for _ in range(3):
        await run_level(scene, node, a=Event.EXHAUST)
        assert await scene.state(b, T) is State.SKIPPED
        await scene.store.requeue(a.tenant, [RunKey(a.id, T)], downstream=True)
        assert await scene.state(b, T) is State.PENDING
    await run_level(scene, node)
    assert await run_level(scene, node) == [b.id]


async def test_a_letter_sent_back_while_the_join_still_waits(scene: Scene) -> None:
    a, slow = await scene.create(spec(name="a")), await scene.create()
    join = await follow(scene, a, slow)
    node = await scene.worker()
    await fire(scene)
    runs = {run.job_id: run for run in await scene.take(node, lead_us=0)}
    await scene.kill(runs[a.id])
    await descend(scene)
    await scene.store.requeue(a.tenant, [RunKey(a.id, T)], downstream=True)
    assert (await scene.view(join, T)).waits_for == tuple(sorted((a.id, slow.id)))
    await scene.finish(runs[slow.id])
    await descend(scene)
    assert await run_level(scene, node) == [a.id]
    assert await run_level(scene, node) == [join.id]


# --- side by side


async def test_two_parents_that_end_at_once_make_one_run(scene: Scene) -> None:
    parents = [await scene.create() for _ in range(6)]
    child = await follow(scene, *parents)
    node = await scene.worker()
    await fire(scene)
    runs = await scene.take(node, lead_us=0)

    async def end(index: int) -> None:
        await scene.finish(runs[index])
        await scene.store.descend(1)

    await asyncio.gather(*(end(index) for index in range(len(runs))))
    await descend(scene)
    assert await run_level(scene, node) == [child.id]
    assert await run_level(scene, node) == []


async def test_two_changes_at_once_close_no_circle(scene: Scene) -> None:
    a, b = await scene.create(spec(name="a")), await scene.create(spec(name="b"))
    answers = await asyncio.gather(
        scene.change(a, timing=after(b)), scene.change(b, timing=after(a)), return_exceptions=True
    )
    assert [isinstance(answer, Invalid) for answer in answers].count(True) == 1


async def test_a_parent_deleted_while_a_child_is_made(scene: Scene) -> None:
    for _ in range(10):
        parent = await scene.create()
        created, deleted = await asyncio.gather(
            scene.store.create_jobs([draft(spec(after(parent)))]),
            scene.store.delete_job(parent.tenant, parent.id, False),
            return_exceptions=True,
        )
        assert isinstance(created, list)
        assert isinstance(created[0], Unfit) != isinstance(deleted, Conflict)


async def test_a_one_time_root_brings_its_children(scene: Scene) -> None:
    root = await scene.create(spec(once(T)))
    child = await follow(scene, root)
    node = await scene.worker()
    scene.go_to(T)
    await run_level(scene, node)
    assert await run_level(scene, node) == [child.id]
    assert (await scene.view(child, T)).state is State.SUCCEEDED


async def test_a_misfired_time_skips_what_follows(scene: Scene) -> None:
    parent = await scene.create()
    child = await follow(scene, parent)
    await scene.plan(90 * SECOND_US)
    scene.go_to(T + HOUR_US)
    await scene.plan(90 * SECOND_US)
    await scene.store.judge_late({}, 100)
    await descend(scene)
    assert reason(await scene.view(parent, T)) == "misfire"
    assert reason(await scene.view(child, T)) == "upstream"


# --- at a glance


async def test_jobs_are_peeked_at_in_order_and_only_those_of_the_tenant(scene: Scene) -> None:
    a = await scene.create(spec(name="a", key="k"))
    b = await follow(scene, a, name="b")
    await scene.pause(b)
    peeked = await scene.store.peek_jobs(a.tenant, [b.id, 12345, a.id])
    assert [(job.id, job.name, job.key, job.paused) for job in peeked] == [
        (b.id, "b", None, True),
        (a.id, "a", "k", False),
    ]
    assert peeked[0].parents == (a.id,)
    assert await scene.store.peek_jobs("another", [a.id]) == []
    assert await scene.store.glance("another", [a.id], None) == []


async def test_a_glance_tells_the_newest_run_and_the_one_of_a_time(scene: Scene) -> None:
    first, second = await scene.create(), await scene.create()
    join = await follow(scene, first, second)
    idle = await scene.create(spec(once(T + DAY_US)))
    ids = [first.id, second.id, join.id, idle.id]
    node = await scene.worker()
    assert await scene.store.glance(first.tenant, ids, None) == []
    await fire(scene)
    runs = {run.job_id: run for run in await scene.take(node, lead_us=0)}
    await scene.finish(runs[first.id])
    await descend(scene)

    async def states(at: int | None) -> dict[int, State]:
        return {one.job_id: one.state for one in await scene.store.glance(first.tenant, ids, at)}

    now = {first.id: State.SUCCEEDED, second.id: State.RUNNING, join.id: State.PENDING}
    assert await states(None) == now
    assert await states(T) == now
    assert await states(T - 1) == {}
    assert await states(T + DAY_US) == {idle.id: State.PENDING}
    await scene.kill(runs[second.id])
    await descend(scene)
    over = {first.id: State.SUCCEEDED, second.id: State.FAILED, join.id: State.SKIPPED}
    assert await states(None) == await states(T) == over
    await scene.store.requeue(second.tenant, [RunKey(second.id, T)], downstream=True)
    again = {**over, second.id: State.PENDING, join.id: State.PENDING}
    assert await states(T) == again
    assert (await states(None))[join.id] is State.PENDING


async def test_a_retried_run_is_told_as_such(scene: Scene) -> None:
    job = await scene.create()
    node = await scene.worker()
    await fire(scene)
    [run] = await scene.take(node, lead_us=0)
    await scene.finish(run, Event.RETRY, tries=1, due_at=scene.now + HOUR_US)
    [glance] = await scene.store.glance(job.tenant, [job.id], None)
    assert (glance.state, glance.scheduled_at) == (State.RETRYING, T)
