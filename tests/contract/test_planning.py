"""Planning: each member gets each time once, whoever plans, however often, and however late."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hourhand.core.identity import jitter_us, segment_of
from hourhand.core.instant import DAY_US, HOUR_US, MINUTE_US, SECOND_US
from hourhand.core.model import Job, Misfire, MisfirePolicy, Trigger
from hourhand.core.plan import plan_clock
from hourhand.core.schedule import parse_key
from tests.contract.builders import cron, draft, every, once, spec
from tests.contract.checker import assert_covered, assert_sound
from tests.contract.harness import START_AT
from tests.contract.scene import HORIZON_US, Scene, plan_due

ALL_SEGMENTS = list(range(64))


def minutes(*offsets: float) -> list[int]:
    return [START_AT + round(offset * MINUTE_US) for offset in offsets]


async def test_a_clock_is_due_once_it_reaches_into_the_horizon(scene: Scene) -> None:
    job = await scene.create(spec(every(60)))
    first = START_AT + MINUTE_US
    segment = segment_of(job.id)
    assert await scene.store.next_clock_at([segment]) == first
    assert await scene.store.next_clock_at([one for one in ALL_SEGMENTS if one != segment]) is None
    assert await scene.store.due_clocks(ALL_SEGMENTS, first, 10) == []
    [clock] = await scene.store.due_clocks([segment], first + 1, 10)
    assert (parse_key(clock.rule_key), clock.next_at, clock.misfires) == (job.spec.rule, first, ())
    assert await scene.store.due_clocks([segment + 1], first + 1, 10) == []


async def test_the_most_overdue_clocks_come_first(scene: Scene) -> None:
    for seconds in (50, 20, 40, 30):
        await scene.create(spec(every(seconds * 10)))
    found = await scene.store.due_clocks(ALL_SEGMENTS, START_AT + HOUR_US, 3)
    assert [clock.next_at for clock in found] == sorted(clock.next_at for clock in found)
    everything = await scene.store.due_clocks(ALL_SEGMENTS, START_AT + HOUR_US, 10)
    assert everything[:3] == found
    assert await scene.store.next_clock_at(ALL_SEGMENTS) == found[0].next_at


async def test_a_herd_is_one_clock(scene: Scene) -> None:
    rule = cron("0 9 * * *")
    jobs = await scene.store.create_jobs([draft(spec(rule), id=n) for n in range(1, 501)])
    clocks = await scene.store.due_clocks(ALL_SEGMENTS, START_AT + 2 * DAY_US, 1_000)
    assert len(clocks) == len({segment_of(job.id) for job in jobs if isinstance(job, Job)}) <= 64
    scene.go_to(START_AT + DAY_US - 30 * SECOND_US)
    assert await scene.plan() == 500
    assert {row.scheduled_at for row in (await scene.tables()).planned} == {START_AT + DAY_US}


async def test_planning_twice_makes_nothing_twice(scene: Scene) -> None:
    job = await scene.create(spec(every(10)))
    assert await scene.plan() == 6
    assert await scene.plan() == 0
    scene.pass_time(11)
    assert await scene.plan() == 1
    assert await scene.planned(job) == [START_AT + n * 10 * SECOND_US for n in range(1, 8)]


async def test_of_two_planners_with_the_same_clock_the_second_changes_nothing(scene: Scene) -> None:
    job = await scene.create(spec(every(10)))
    [clock] = await scene.store.due_clocks(ALL_SEGMENTS, START_AT + HORIZON_US, 10)
    rule = parse_key(clock.rule_key)
    near = plan_clock(clock.id, rule, clock.next_at, scene.now, scene.now + HORIZON_US, clock.misfires)
    far = plan_clock(clock.id, rule, clock.next_at, scene.now, scene.now + 2 * HORIZON_US, clock.misfires)
    assert await scene.store.plan([near]) == 6
    before = await scene.tables()
    assert await scene.store.plan([far]) == 0
    assert await scene.store.plan([near]) == 0
    assert await scene.tables() == before
    assert await scene.store.next_clock_at(ALL_SEGMENTS) == START_AT + 70 * SECOND_US
    assert len(await scene.planned(job)) == 6


async def test_a_stale_plan_does_not_hold_up_its_neighbours(scene: Scene) -> None:
    one, other = await scene.create(spec(every(10))), await scene.create(spec(every(20)))
    clocks = await scene.store.due_clocks(ALL_SEGMENTS, START_AT + HORIZON_US, 10)
    plans = [
        plan_clock(clock.id, parse_key(clock.rule_key), clock.next_at, scene.now, scene.now + HORIZON_US, ())
        for clock in clocks
    ]
    stale = [plan for plan in plans if plan.expected_next_at == START_AT + 10 * SECOND_US]
    await scene.store.plan(stale)
    assert await scene.store.plan(plans) == 3
    assert (len(await scene.planned(one)), len(await scene.planned(other))) == (6, 3)


@pytest.mark.parametrize("late_s", [0, 600])
async def test_a_member_that_joins_between_reading_and_planning_gets_its_times(
    scene: Scene, late_s: int
) -> None:
    first = await scene.create(spec(every(10), misfire=Misfire(policy=MisfirePolicy.SKIP)))
    scene.pass_time(late_s)
    [clock] = await scene.store.due_clocks(ALL_SEGMENTS, scene.now + HORIZON_US, 10)
    rule = parse_key(clock.rule_key)
    plan = plan_clock(clock.id, rule, clock.next_at, scene.now, scene.now + HORIZON_US, clock.misfires)
    same = await scene.twin(first)
    other = await scene.twin(
        same, misfire=Misfire(policy=MisfirePolicy.CATCH_UP, grace_us=SECOND_US, limit=2)
    )
    await scene.store.plan([plan])
    await scene.plan()
    coming = [scene.now + n * 10 * SECOND_US for n in range(1, 7)]
    for job in (first, same, other):
        assert [at for at in await scene.planned(job) if at > scene.now] == coming
        assert_covered(
            await scene.tables(),
            job.id,
            await scene.store.versions("default", job.id),
            scene.now + HORIZON_US,
        )
    assert [at for at in await scene.planned(same) if at <= scene.now] == []


async def test_a_clock_that_falls_behind_between_reading_and_planning_loses_nothing(scene: Scene) -> None:
    """Nobody knew yet that the members' misfire policies would matter."""
    job = await scene.create(spec(every(1), misfire=Misfire(grace_us=0)))
    clocks = await scene.store.due_clocks(ALL_SEGMENTS, scene.now + HORIZON_US, 10)
    assert [clock.misfires for clock in clocks] == [()]
    scene.pass_time(2.5)
    await scene.store.plan(
        [
            plan_clock(
                clock.id, parse_key(clock.rule_key), clock.next_at, scene.now, scene.now, clock.misfires
            )
            for clock in clocks
        ]
    )
    await scene.plan(0)
    await scene.assert_covered(job)
    assert START_AT + 2 * SECOND_US in await scene.planned(job)


async def test_a_policy_that_changes_between_reading_and_planning_is_honoured(scene: Scene) -> None:
    job = await scene.create(spec(every(60), misfire=Misfire(grace_us=SECOND_US)))
    scene.pass_time(600.5)
    [clock] = await scene.store.due_clocks(ALL_SEGMENTS, scene.now, 10)
    plan = plan_clock(
        clock.id, parse_key(clock.rule_key), clock.next_at, scene.now, scene.now, clock.misfires
    )
    await scene.change(job, misfire=Misfire(policy=MisfirePolicy.CATCH_UP, grace_us=SECOND_US, limit=4))
    assert await scene.store.plan([plan]) == 0
    assert await scene.plan(0) == 4
    assert await scene.planned(job) == minutes(7, 8, 9, 10)


async def test_a_clock_without_members_sleeps_until_one_joins(scene: Scene) -> None:
    job = await scene.create(spec(every(10)))
    await scene.plan()
    await scene.delete(job)
    scene.pass_time(60)
    await scene.plan()
    assert await scene.store.next_clock_at(ALL_SEGMENTS) is None
    scene.pass_time(3_600)
    other = await scene.twin(job)
    assert await scene.store.next_clock_at(ALL_SEGMENTS) == scene.now + 10 * SECOND_US
    await scene.plan()
    assert await scene.planned(other) == [scene.now + n * 10 * SECOND_US for n in range(1, 7)]
    assert (await scene.tables()).gaps == []


async def test_a_sleeping_clock_wakes_for_a_resumed_member(scene: Scene) -> None:
    job = await scene.create(spec(every(10)))
    await scene.plan()
    await scene.pause(job)
    scene.pass_time(600)
    await scene.plan()
    assert await scene.store.next_clock_at(ALL_SEGMENTS) is None
    await scene.resume(job)
    await scene.plan()
    assert [at for at in await scene.planned(job) if at > scene.now] == [
        scene.now + n * 10 * SECOND_US for n in range(1, 7)
    ]


async def test_one_time_jobs_have_no_clock(scene: Scene) -> None:
    await scene.create(spec(once(START_AT + 5 * SECOND_US)))
    assert await scene.store.next_clock_at(ALL_SEGMENTS) is None
    assert await scene.plan() == 0


# --- misfire at planning

POLICIES = {
    # policy: (nominal minutes that run after 10.5 minutes down, with 2.2 minutes of grace; catch-up of 4)
    MisfirePolicy.RUN_ONCE: [10],
    MisfirePolicy.SKIP: [9, 10],
    MisfirePolicy.CATCH_UP: [7, 8, 9, 10],
}


@pytest.mark.parametrize("policy", POLICIES)
async def test_what_was_missed_beyond_the_grace_is_for_the_policy(
    scene: Scene, policy: MisfirePolicy
) -> None:
    grace_us = round(2.2 * MINUTE_US)
    job = await scene.create(spec(every(60), misfire=Misfire(policy=policy, grace_us=grace_us, limit=4)))
    scene.pass_time(10.5 * 60)
    await scene.plan(5 * MINUTE_US)
    late = [row for row in (await scene.tables()).planned if row.scheduled_at <= scene.now]
    assert sorted(row.scheduled_at for row in late) == minutes(*POLICIES[policy])
    assert {row.trigger for row in late} == {
        Trigger.CATCH_UP if policy is MisfirePolicy.CATCH_UP else Trigger.SCHEDULED
    }
    assert [at for at in await scene.planned(job) if at > scene.now] == minutes(11, 12, 13, 14, 15)
    [gap] = (await scene.tables()).gaps
    assert (gap.from_at, gap.to_at, gap.missed, gap.ran) == (*minutes(1, 10), 10, len(POLICIES[policy]))
    assert (gap.policy, gap.grace_us, gap.limit) == (policy.value, grace_us, 4)
    assert (gap.rule_key, gap.segment) == ("every 60000000 0", segment_of(job.id))


@pytest.mark.parametrize("policy", list(MisfirePolicy))
async def test_within_the_grace_nothing_was_missed(scene: Scene, policy: MisfirePolicy) -> None:
    job = await scene.create(spec(every(60), misfire=Misfire(policy=policy, grace_us=10 * MINUTE_US)))
    scene.pass_time(10.5 * 60)
    await scene.plan(0)
    assert await scene.planned(job) == minutes(*range(1, 11))
    assert {row.trigger for row in (await scene.tables()).planned} == {Trigger.SCHEDULED}
    assert (await scene.tables()).gaps == []


@pytest.mark.parametrize("policy", list(MisfirePolicy))
async def test_members_of_one_clock_miss_each_by_their_own_policy(
    scene: Scene, policy: MisfirePolicy
) -> None:
    grace_us = round(2.2 * MINUTE_US)
    first = await scene.create(spec(every(60), misfire=Misfire(grace_us=HOUR_US)))
    second = await scene.twin(first, misfire=Misfire(policy=policy, grace_us=grace_us, limit=4))
    scene.pass_time(10.5 * 60)
    await scene.plan(0)
    assert await scene.planned(first) == minutes(*range(1, 11))
    assert await scene.planned(second) == minutes(*POLICIES[policy])


@pytest.mark.parametrize("policy", list(MisfirePolicy))
async def test_members_that_joined_meanwhile_missed_only_what_came_after(
    scene: Scene, policy: MisfirePolicy
) -> None:
    """A join does not need a planner, so members come also while nobody plans."""
    misfire = Misfire(policy=policy, grace_us=round(2.2 * MINUTE_US), limit=4)
    old = await scene.create(spec(every(60), misfire=misfire))
    scene.pass_time(5.5 * 60)
    middle = await scene.twin(old)
    scene.pass_time(3.5 * 60)
    young = await scene.twin(middle)
    scene.pass_time(1.5 * 60)  # at 10.5: past the grace is what was due before 8.3
    await scene.plan(0)
    assert await scene.planned(old) == minutes(*POLICIES[policy])
    assert await scene.planned(middle) == minutes(*POLICIES[policy])
    assert await scene.planned(young) == minutes(10)  # 9.0 was its creation, nothing is past its grace
    triggers = {row.trigger for row in (await scene.tables()).planned if row.job_id == young.id}
    assert triggers == {Trigger.SCHEDULED}


@pytest.mark.parametrize("policy", list(MisfirePolicy))
@pytest.mark.parametrize("bound", ["ends_at", "max_runs"])
async def test_a_job_that_ended_during_the_outage_still_gets_its_last(
    scene: Scene, policy: MisfirePolicy, bound: str
) -> None:
    misfire = Misfire(policy=policy, grace_us=round(7.2 * MINUTE_US), limit=2)
    bounds = {"ends_at": START_AT + round(5.5 * MINUTE_US)} if bound == "ends_at" else {"max_runs": 5}
    job = await scene.create(spec(every(60), misfire=misfire, **bounds))
    longer = await scene.twin(job, ends_at=None, max_runs=None)
    scene.pass_time(10.5 * 60)
    await scene.plan(0)
    expected = {
        MisfirePolicy.RUN_ONCE: ([5], [10]),
        MisfirePolicy.SKIP: ([4, 5], [4, 5, 6, 7, 8, 9, 10]),
        MisfirePolicy.CATCH_UP: ([4, 5], [9, 10]),
    }
    assert await scene.planned(job) == minutes(*expected[policy][0])
    assert await scene.planned(longer) == minutes(*expected[policy][1])
    for one in (job, longer):
        await scene.assert_covered(one)


async def test_three_years_down_cost_no_more_than_a_day(scene: Scene) -> None:
    jobs = [
        await scene.create(spec(every(1), misfire=Misfire(policy=policy, limit=5)))
        for policy in MisfirePolicy
    ]
    scene.pass_time(3 * 365 * 86_400)
    await scene.plan(SECOND_US)
    for job in jobs:
        assert len(await scene.planned(job)) <= 62
    assert {gap.missed for gap in (await scene.tables()).gaps} == {3 * 365 * 86_400}


async def test_a_day_of_grace_over_a_day_of_seconds_is_bounded_and_recorded(scene: Scene) -> None:
    job = await scene.create(spec(every(1), misfire=Misfire(policy=MisfirePolicy.SKIP, grace_us=DAY_US)))
    await scene.twin(job, misfire=Misfire(grace_us=0))
    scene.pass_time(43_200)
    await scene.plan(0)
    planned = await scene.planned(job)
    assert len(planned) == 5_000
    assert planned[-1] == scene.now
    await scene.assert_covered(job)


# --- jitter


@given(
    st.lists(
        st.tuples(
            st.integers(1, 2**63 - 1),
            st.sampled_from([1, 2, 3, 7, 20, 31, 60]),
            st.integers(0, 30 * SECOND_US),
        ),
        min_size=1,
        max_size=30,
        unique_by=lambda drawn: drawn[0],
    ),
    st.integers(0, 10**9),
)
@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_jitter_is_the_same_in_the_store_and_in_python(
    scene: Scene, drawn: list[tuple[int, int, int]], passed_us: int
) -> None:
    scene.harness.advance(passed_us)
    answers = await scene.store.create_jobs(
        [draft(spec(every(seconds), jitter_us=jitter), id=job_id) for job_id, seconds, jitter in drawn]
    )
    made = {answer.id for answer in answers if isinstance(answer, Job)}  # others were drawn before
    spans = {job_id: (seconds * SECOND_US, jitter) for job_id, seconds, jitter in drawn if job_id in made}
    await scene.plan()
    rows = [row for row in (await scene.tables()).planned if row.job_id in spans]
    assert len(rows) >= len(spans)
    for row in rows:
        interval_us, jitter = spans[row.job_id]
        expected = jitter_us(row.job_id, row.scheduled_at, min(jitter, interval_us))
        assert row.due_at - row.scheduled_at == expected
        assert 0 <= expected < max(1, min(jitter, interval_us))
    for job_id in spans:
        await scene.store.delete_job("default", job_id, False)


async def test_jitter_is_the_same_whether_planned_by_the_clock_or_at_joining(scene: Scene) -> None:
    first = await scene.create(spec(every(20), jitter_us=19 * SECOND_US))
    await scene.plan()
    second = await scene.twin(first)
    third = await scene.twin(second)
    rows = (await scene.tables()).planned
    assert len(rows) == 9
    for row in rows:
        assert row.job_id in (first.id, second.id, third.id)
        assert row.due_at - row.scheduled_at == jitter_us(row.job_id, row.scheduled_at, 19 * SECOND_US)
    assert len({row.due_at for row in rows}) > 6


# --- all of it at random


@given(st.data())
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_whatever_joins_leaves_and_stands_still_no_time_is_lost(
    scene: Scene, data: st.DataObject
) -> None:
    """Members of few clocks, edited at random, with planners that come at random times."""
    jobs: list[Job] = []
    timings = [every(7), every(20), cron("*/2 * * * *")]
    misfires = [
        Misfire(policy=policy, grace_us=grace * SECOND_US, limit=3)
        for policy in MisfirePolicy
        for grace in (0, 30, 300)
    ]
    for _ in range(data.draw(st.integers(3, 14), label="steps")):
        match data.draw(
            st.sampled_from(
                ["create", "create", "pause", "resume", "rule", "bound", "delete", "plan", "plan", "tend"]
            )
        ):
            case "create":
                fields = data.draw(
                    st.fixed_dictionaries(
                        {"misfire": st.sampled_from(misfires)},
                        optional={
                            "max_runs": st.integers(1, 30),
                            "ends_at": st.integers(0, 900).map(lambda s: scene.now + s * SECOND_US),
                            "starts_at": st.integers(-60, 900).map(lambda s: scene.now + s * SECOND_US),
                        },
                    )
                )
                made = spec(data.draw(st.sampled_from(timings)), **fields)
                jobs.append(await scene.create(made, paused=data.draw(st.booleans())))
            case "plan":
                await plan_due(scene.store, scene.now, scene.now + HORIZON_US)
            case "tend":
                await scene.tend()
            case step if jobs:
                job = data.draw(st.sampled_from(jobs))
                if await scene.store.get_job("default", job.id) is None:
                    continue
                match step:
                    case "pause":
                        until = data.draw(st.none() | st.integers(1, 400))
                        await scene.pause(job, None if until is None else scene.now + until * SECOND_US)
                    case "resume":
                        await scene.resume(job)
                    case "rule":
                        await scene.change(job, timing=data.draw(st.sampled_from(timings)))
                    case "bound":
                        await scene.change(job, max_runs=data.draw(st.none() | st.integers(1, 40)))
                    case "delete":
                        await scene.delete(job)
        scene.pass_time(data.draw(st.sampled_from([0, 0.7, 5, 40, 500]), label="seconds"))
    await plan_due(scene.store, scene.now, scene.now + HORIZON_US)
    tables = await scene.tables()
    assert_sound(tables)
    for job in jobs:
        versions = await scene.store.versions("default", job.id)
        assert_covered(tables, job.id, versions, scene.now)
        _assert_max_runs(versions, tables, job)
        await scene.store.delete_job("default", job.id, False)


def _assert_max_runs(versions: list, tables: object, job: Job) -> None:  # type: ignore[type-arg]
    """No more nominal times than the last version allows, unless earlier ones allowed more."""
    bounds = [version.spec.max_runs for version in versions]
    if None in bounds:
        return
    rows = {row.scheduled_at for table in tables[:5] for row in table if row.job_id == job.id}  # type: ignore[index]
    assert len(rows) <= max(bounds)
