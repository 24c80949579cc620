"""The auditor by itself: which window, what it tells, and that silence means trouble."""

import pytest
import structlog

from hourhand.core.audit import LAG_BUDGET_US, Window
from hourhand.core.instant import DAY_US, MINUTE_US, SECOND_US
from hourhand.core.model import Job
from hourhand.errors import Invalid, NotFound, Unavailable
from hourhand.services import audit as module
from hourhand.services.audit import Audit
from hourhand.services.auditor import FIRST_US, MAX_WINDOW_US, PERIOD_US, WINDOW_US, Auditor
from tests.services.world import START_AT, World, every
from tests.telemetry.test_telemetry import samples

GRACE_US = 60 * SECOND_US
KEEP_US = 30 * DAY_US


class Pings:
    """Counts them."""

    def __init__(self) -> None:
        self.count = 0

    async def __call__(self) -> None:
        self.count += 1


def auditor(world: World, pings: Pings) -> Auditor:
    return Auditor(
        audit=Audit(store=world.store, clock=world.clock, keep_us=KEEP_US),
        clock=world.clock,
        telemetry=world.telemetry,
        grace_us=GRACE_US,
        name="0",
        ping=pings,
    )


async def lose(world: World, at: int) -> None:
    async def operation(tx: object) -> None:
        tx._connection.execute("DELETE FROM history WHERE scheduled_at = ?", (at,))  # type: ignore[attr-defined]

    await world.real._engine.write(operation)


async def busy(world: World, minutes: int) -> Job:
    """A job every minute, whose runs all succeed."""
    job = await world.create(every(60))
    hand = await world.worker()
    planner = world.new_planner()
    for _ in range(minutes):
        world.pass_time(60)
        await planner.step(world.now)
        await hand.work()
    return job


async def test_it_waits_a_moment_then_audits_and_pings(world: World) -> None:
    pings = Pings()
    watch = auditor(world, pings)
    assert await watch.step(world.now) == START_AT + FIRST_US
    await busy(world, 20)
    at = world.now
    assert await watch.step(at) == at + PERIOD_US
    assert pings.count == 1
    found = samples(world.telemetry)
    assert found["hourhand_audit_expected", ("0",)] == WINDOW_US // MINUTE_US
    assert found["hourhand_audit_lost", ("0",)] == 0
    assert found["hourhand_audit_timestamp_seconds", ("0",)] == at / SECOND_US
    assert found["hourhand_audit_findings", ("0", "phantom")] == 0
    world.pass_time(10)
    assert await watch.step(world.now) == at + PERIOD_US  # called again, but not yet
    assert pings.count == 1


async def test_what_is_lost_is_told_and_not_pinged(world: World) -> None:
    pings = Pings()
    watch = auditor(world, pings)
    await watch.step(world.now)
    job = await busy(world, 20)
    await lose(world, START_AT + 10 * MINUTE_US)
    with structlog.testing.capture_logs() as lines:
        await watch.step(world.now)
    assert pings.count == 0
    [line] = [line for line in lines if line["log_level"] == "error"]
    assert line["lost"] == 1
    assert line["first"][0].endswith("@20261116T091000Z")
    assert samples(world.telemetry)["hourhand_audit_findings", ("0", "lost")] == 1
    assert job.id


async def test_a_store_that_cannot_be_read_is_not_pinged(world: World) -> None:
    pings = Pings()
    watch = auditor(world, pings)
    await watch.step(world.now)
    world.pass_time(61)
    world.store.fail("audited_jobs")
    with pytest.raises(Unavailable):
        await watch.step(world.now)
    assert pings.count == 0
    assert await watch.step(world.now + PERIOD_US) is not None
    assert pings.count == 1


async def test_a_pause_is_made_up_for_up_to_a_day(world: World) -> None:
    asked: list[Window] = []

    class Noting(Audit):
        async def window(self, window, **options):  # type: ignore[no-untyped-def, override]
            asked.append(window)
            return await super().window(window, **options)

    watch = Auditor(
        audit=Noting(store=world.store, clock=world.clock, keep_us=KEEP_US),
        clock=world.clock,
        telemetry=world.telemetry,
        grace_us=GRACE_US,
    )
    await watch.step(world.now)
    for pause_s in (61, 300, 3_600, 3 * 86_400):
        world.pass_time(pause_s)
        await watch.step(world.now)
    ends = [window.to_at for window in asked]
    assert ends[0] == START_AT + 61 * SECOND_US - GRACE_US - LAG_BUDGET_US
    assert [one.to_at - one.from_at for one in asked] == [
        WINDOW_US,
        WINDOW_US,
        3_600 * SECOND_US,
        MAX_WINDOW_US,
    ]
    assert asked[2].from_at == ends[1]


async def test_a_clock_that_is_set_back_keeps_nobody_waiting(world: World) -> None:
    pings = Pings()
    watch = auditor(world, pings)
    await watch.step(world.now)
    world.go_to(START_AT - DAY_US)
    await watch.step(world.now)
    assert pings.count == 1


# --- what people ask for


@pytest.mark.parametrize(
    ("from_at", "to_at", "pointer", "hint"),
    [
        (START_AT, START_AT - 1, "?from", None),
        (START_AT - 5, START_AT - 5, "?from", None),
        (START_AT + 1, None, "?from", "what is to come"),
        (START_AT + DAY_US, START_AT + 2 * DAY_US, "?from", "what is to come"),
        (START_AT - 31 * DAY_US, None, "?from", "that is how long history is kept"),
    ],
)
async def test_windows_that_cannot_be_audited(
    world: World, from_at: int, to_at: int | None, pointer: str, hint: str | None
) -> None:
    with pytest.raises(Invalid) as error:
        await Audit(store=world.store, clock=world.clock, keep_us=KEEP_US).opened("default", from_at, to_at)
    [fault] = error.value.faults
    assert fault.pointer == pointer
    assert hint is None or (fault.hint or "").startswith(hint)


async def test_a_window_that_is_too_long_says_where_its_first_part_could_end() -> None:
    world = World(keep_us=100 * DAY_US)
    audit = Audit(store=world.store, clock=world.clock, keep_us=100 * DAY_US)
    with pytest.raises(Invalid) as error:
        await audit.opened("default", START_AT - 50 * DAY_US, None)
    assert "2026-10-28T09:00:00Z" in (error.value.faults[0].hint or "")


async def test_an_audit_that_goes_on_does_so_though_its_first_times_leave_with_history(world: World) -> None:
    audit = Audit(store=world.store, clock=world.clock, keep_us=KEEP_US)
    window = await audit.opened("default", START_AT - KEEP_US, None)
    world.pass_time(10)
    assert audit.reopened("default", window.from_at, window.to_at) == window
    with pytest.raises(Invalid):
        audit.reopened("default", START_AT - 50 * DAY_US, START_AT)
    with pytest.raises(Invalid):
        audit.reopened("default", START_AT, START_AT)


async def test_what_has_not_come_yet_is_left_out_and_a_stranger_is_not_found(world: World) -> None:
    audit = Audit(store=world.store, clock=world.clock, keep_us=KEEP_US)
    window = await audit.opened("default", None, START_AT + DAY_US)
    assert (window.from_at, window.to_at) == (START_AT - module.DEFAULT_WINDOW_US, START_AT)
    with pytest.raises(NotFound):
        await audit.opened("default", None, None, job_id=12345)


async def test_a_part_ends_when_its_time_is_over_and_goes_on_from_there(world: World) -> None:
    for _ in range(5):
        await world.create(every(60))
    world.pass_time(30)
    audit = Audit(store=world.store, clock=world.clock, keep_us=KEEP_US, page_jobs=2)
    window = Window(from_at=START_AT - DAY_US, to_at=world.now)
    checked, after, parts = 0, None, 0
    while True:
        report = await audit.window(window, after=after, within_us=-1)
        checked, after, parts = checked + report.jobs_checked, report.next_after, parts + 1
        if after is None:
            break
        assert not report.complete
    assert (checked, parts) == (5, 3)
