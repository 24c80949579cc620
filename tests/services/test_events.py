"""Events: what is published and how much of it, what a client gets, how it resumes, and when it is only told numbers."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hourhand.core.instant import MINUTE_US, SECOND_US
from hourhand.core.lifecycle import Event as Change
from hourhand.core.run import ClaimedRun, Progress, Settlement
from hourhand.errors import Overloaded, Unavailable
from hourhand.ports.events import (
    MAX_BATCH_BYTES,
    MAX_EVENTS,
    MAX_TEXT,
    Event,
    EventBatch,
    EventData,
    EventType,
    decode_batch,
    encode_batch,
)
from hourhand.services.event_log import (
    EVENTS_PER_SECOND,
    MAX_QUEUED,
    EventFilter,
    EventLog,
    Message,
    Reset,
    Stats,
    Subscription,
)
from hourhand.services.event_ring import KEPT_US, SKEW_US
from hourhand.services.jobs import Jobs, NewJob
from hourhand.services.local_events import LocalEvents
from hourhand.services.publisher import BATCHES_PER_SECOND, Publisher
from tests.services.virtual import LoopClock, run_virtual
from tests.services.world import START_AT, World, spec

TENANT = "default"
ALL = EventFilter(tenant=TENANT)


def pair(
    change: Change = Change.SUCCEED,
    *,
    number: int = 1,
    tenant: str = TENANT,
    name: str = "report",
    **detail: Any,
) -> tuple[ClaimedRun, Settlement]:
    """A run that began 5 ms late and took 20 ms."""
    run = ClaimedRun(number, 0, START_AT, START_AT, 2, 1, 0, START_AT + MINUTE_US, 7, tenant, spec(name=name))
    settlement = Settlement(
        job_id=number,
        scheduled_at=START_AT,
        slot=0,
        fence=2,
        event=change,
        version=7,
        tries=1,
        started_at=START_AT + 5_000,
        finished_at=START_AT + 25_000,
        detail=msgspec.json.encode(detail).decode() if detail else None,
    )
    return run, settlement


def event(
    number: int, at: int = START_AT, *, kind: EventType = EventType.RUN_SUCCEEDED, **fields: Any
) -> Event:
    values = {"tenant": TENANT, "job_id": 1, "scheduled_at": START_AT, **fields}
    return Event(
        id=f"{START_AT + number:016d}-a", type=kind, at=at, data=EventData(state="SUCCEEDED"), **values
    )


def events(count: int, first: int = 0, at: int = START_AT) -> list[Event]:
    return [event(number, at) for number in range(first, first + count)]


def virtual(main: Callable[[LoopClock], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    """A test on a loop whose time passes by itself."""

    def test() -> None:
        run_virtual(main)

    test.__name__, test.__doc__ = main.__name__, main.__doc__
    return test


class Heard:
    """A publisher, and what it made a subscriber hear."""

    def __init__(self, clock: Any) -> None:
        self.clock = clock
        self.batches: list[EventBatch] = []
        self.at: list[int] = []
        bus = LocalEvents()
        bus.subscribe(self._hear)
        self.publisher = Publisher(bus=bus, clock=clock, publisher="p1")

    def _hear(self, batch: EventBatch) -> None:
        self.batches.append(batch)
        self.at.append(self.clock.now())

    @property
    def events(self) -> list[Event]:
        return [one for batch in self.batches for one in batch.events]

    @property
    def total(self) -> int:
        counted = sum(n for batch in self.batches for kinds in batch.counts.values() for n in kinds.values())
        return len(self.events) + counted


async def got(client: Subscription, patience_s: float = 0.01) -> Sequence[Message]:
    messages = await client.take(patience_s)
    assert messages is not None, "the stream has ended"
    return messages


# --- publishing


@virtual
async def test_a_run_is_told_in_full_and_without_its_payload(clock: LoopClock) -> None:
    heard = Heard(clock)
    heard.publisher.settled([pair(Change.EXHAUST, error="broke\nsecret trace", response={"body": "secret"})])
    [told] = heard.events
    assert told.type is EventType.RUN_FAILED
    assert (told.tenant, told.at) == (TENANT, START_AT + 25_000)
    assert told.run_id == "J-0000000000001@20261116T090000Z"
    assert msgspec.to_builtins(told.data) == {
        "state": "FAILED",
        "name": "report",
        "lag_ms": 5,
        "took_ms": 20,
        "attempt": 2,
        "error": "broke",
        "version": 7,
    }
    assert "secret" not in encode_batch(heard.batches[0])


@virtual
async def test_every_outcome_has_its_type_and_what_has_not_ended_has_none(clock: LoopClock) -> None:
    heard = Heard(clock)
    heard.publisher.settled([pair(change) for change in Change])
    assert [one.type for one in heard.events] == [
        "run.succeeded",
        "run.retrying",
        "run.failed",
        "run.skipped",
        "run.cancelled",
    ]
    assert heard.total == 5


@virtual
async def test_the_first_goes_at_once_and_the_rest_five_times_a_second(clock: LoopClock) -> None:
    heard = Heard(clock)
    for number in range(1_000):
        heard.publisher.settled([pair(number=number)])
        await asyncio.sleep(0.002)
    await asyncio.sleep(1)
    assert heard.at[0] == START_AT
    gaps = [later - earlier for earlier, later in zip(heard.at, heard.at[1:], strict=False)]
    assert min(gaps) >= SECOND_US // BATCHES_PER_SECOND - 1_000
    assert len(heard.batches) <= 2 * BATCHES_PER_SECOND + 2
    assert heard.total == 1_000
    ids = [one.id for one in heard.events]
    assert ids == sorted(set(ids))


@virtual
async def test_of_a_herd_a_few_are_told_and_failures_among_them_first(clock: LoopClock) -> None:
    heard = Heard(clock)
    herd = [pair(number=number) for number in range(5_000)]
    herd[4_000:4_003] = [pair(Change.EXHAUST, number=number, error="x") for number in range(3)]
    herd.append(pair(Change.RELEASE))
    heard.publisher.settled(herd)
    assert len(heard.batches) == 1
    [batch] = heard.batches
    assert sum(one.type is EventType.RUN_FAILED for one in batch.events) == 3
    assert 20 <= len(batch.events) <= MAX_EVENTS
    told = len(batch.events) - 3
    assert batch.counts == {TENANT: {EventType.RUN_SUCCEEDED: 4_997 - told}}


@virtual
async def test_counts_are_kept_apart_by_tenant(clock: LoopClock) -> None:
    heard = Heard(clock)
    heard.publisher.settled([pair(number=n, tenant=f"t{n % 2}") for n in range(200)])
    told = [sum(one.tenant == tenant for one in heard.events) for tenant in ("t0", "t1")]
    assert heard.batches[0].counts == {
        tenant: {EventType.RUN_SUCCEEDED: 100 - n} for tenant, n in zip(("t0", "t1"), told, strict=True)
    }


@given(
    st.lists(
        st.tuples(
            st.sampled_from(list(Change)), st.text(max_size=20), st.text(max_size=400), st.text(max_size=900)
        ),
        min_size=1,
        max_size=120,
    )
)
def test_a_batch_always_fits_and_nothing_goes_uncounted(
    made: list[tuple[Change, str, str, str]],
) -> None:
    async def main(clock: LoopClock) -> None:
        heard = Heard(clock)
        pairs = [pair(change, tenant=tenant, name=name, error=error) for change, tenant, name, error in made]
        for start in range(0, len(pairs), 50):
            heard.publisher.settled(pairs[start : start + 50])
        heard.publisher.flush()
        for batch in heard.batches:
            assert len(encode_batch(batch).encode()) <= MAX_BATCH_BYTES
            assert len(batch.events) <= MAX_EVENTS
            assert decode_batch(encode_batch(batch)) == batch
            assert all(len(one.data.error or "") <= MAX_TEXT for one in batch.events)
        untold = (Change.CLAIM, Change.RELEASE, Change.REPORT_LATER, Change.REQUEUE, Change.DISCARD)
        assert heard.total == sum(change not in untold for change, *_ in made)

    run_virtual(main)


@virtual
async def test_progress_is_told_and_counted_where_there_is_too_much_of_it(clock: LoopClock) -> None:
    heard = Heard(clock)
    run, _ = pair()
    progress = Progress(fraction=0.4, message="loading\nmore", noted_at=START_AT + 1)
    heard.publisher.noted(run, progress)
    [told] = heard.events
    assert (told.type, told.at) == ("run.progress", START_AT + 1)
    assert msgspec.to_builtins(told.data) == {
        "state": "RUNNING",
        "name": "report",
        "attempt": 2,
        "progress": 0.4,
        "message": "loading",
    }
    for _ in range(100):
        heard.publisher.noted(run, progress)
    heard.publisher.flush()
    assert heard.total == 101
    assert len(heard.events) < 50


@virtual
async def test_counts_of_very_many_tenants_go_over_several_batches(clock: LoopClock) -> None:
    heard = Heard(clock)
    heard.publisher.settled([pair(number=n, tenant=f"tenant-{n}") for n in range(500)])
    assert heard.total < 500
    await asyncio.sleep(10)
    assert heard.total == 500
    assert all(len(encode_batch(batch)) <= MAX_BATCH_BYTES for batch in heard.batches)


@virtual
async def test_what_cannot_be_told_does_not_stop_the_work(clock: LoopClock) -> None:
    heard = Heard(clock)
    broken = msgspec.structs.replace(pair(Change.RETRY)[1], detail="not JSON")
    heard.publisher.settled([(pair()[0], broken)])
    heard.publisher.settled([pair()])
    await asyncio.sleep(1)
    assert [one.type for one in heard.events] == ["run.succeeded"]


@pytest.mark.parametrize("text", ["", "[]]", "{}", '[[["x"]]]', "null"])
def test_what_is_no_batch_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a batch"):
        decode_batch(text)


def test_a_subscriber_that_fails_does_not_harm_the_others_and_can_leave() -> None:
    bus = LocalEvents()
    heard: list[EventBatch] = []

    def fail(batch: EventBatch) -> None:
        raise RuntimeError("broken")

    bus.subscribe(fail)
    leave = bus.subscribe(heard.append)
    bus.publish(EventBatch(gap=True))
    leave()
    leave()
    bus.publish(EventBatch(gap=True))
    assert heard == [EventBatch(gap=True)]


# --- jobs


async def test_job_changes_are_told_once_they_are_stored(world: World) -> None:
    told: list[tuple[str, str, int]] = []

    def changed(kind: EventType, jobs: Sequence[Any]) -> None:
        told.extend((kind.value, job.spec.name, job.version) for job in jobs)

    jobs = Jobs(
        store=world.store, ids=world.ids, clock=world.clock, limits=world.jobs._limits, changed=changed
    )
    new = NewJob(spec=spec(name="a"))
    job = await jobs.create(TENANT, new)
    await jobs.create(TENANT, new, dry_run=True)
    await jobs.update(TENANT, job.id, lambda job, now_at: NewJob(spec=spec(name="b")))
    await jobs.pause(TENANT, job.id, dry_run=True)
    await jobs.pause(TENANT, job.id)
    await jobs.resume(TENANT, job.id)
    world.store.fail("delete_job")
    with pytest.raises(Unavailable):
        await jobs.delete(TENANT, job.id)
    assert [one[:2] for one in told] == [
        ("job.created", "a"),
        ("job.changed", "b"),
        ("job.paused", "b"),
        ("job.resumed", "b"),
    ]
    await jobs.delete(TENANT, job.id)
    assert told[-1][0] == "job.deleted"


@virtual
async def test_jobs_of_a_bulk_import_are_counted_beyond_the_first(clock: LoopClock) -> None:
    heard = Heard(clock)
    world = World(clock=clock)
    jobs = await world.create_all([spec(name=f"job {n}") for n in range(300)])
    heard.publisher.jobs_changed(EventType.JOB_CREATED, jobs)
    assert heard.total == 300
    assert 10 <= len(heard.events) <= MAX_EVENTS
    assert heard.events[0].data == EventData(state="active", name="job 0", version=1)
    assert heard.events[0].run_id is None


# --- following


@virtual
async def test_a_client_gets_what_its_filter_lets_through(clock: LoopClock) -> None:
    log = EventLog(clock=clock)
    mine = [
        event(1),
        event(2, kind=EventType.RUN_FAILED, job_id=2),
        event(3, kind=EventType.JOB_PAUSED, scheduled_at=None),
    ]
    other = event(4, tenant="other")
    clients = [
        log.follow(ALL),
        log.follow(EventFilter(tenant=TENANT, types=frozenset({EventType.RUN_FAILED}))),
        log.follow(EventFilter(tenant=TENANT, job_id=1)),
        log.follow(EventFilter(tenant="other")),
    ]
    log.add(EventBatch((*mine, other)))
    expected = [mine, [mine[1]], [mine[0], mine[2]], [other]]
    assert [list(await got(client)) for client in clients] == expected
    assert await got(clients[0]) == ()


@virtual
async def test_a_client_resumes_after_the_last_it_saw(clock: LoopClock) -> None:
    log = EventLog(clock=clock)
    first = log.follow(ALL)
    assert first.begins_after == log.place(TENANT)
    log.add(EventBatch(tuple(events(5))))
    assert list(await got(log.follow(ALL, event(2).id))) == events(2, first=3)
    assert await got(log.follow(ALL, event(4).id)) == ()
    assert list(await got(log.follow(ALL, first.begins_after))) == events(5)
    newest = event(4).id
    assert list(await got(log.follow(ALL, "1-unknown"))) == [Reset(last_id=newest)]
    assert await got(log.follow(ALL, newest)) == ()


@virtual
async def test_resuming_is_possible_for_five_minutes(clock: LoopClock) -> None:
    log = EventLog(clock=clock)
    log.add(EventBatch((event(1),)))
    await asyncio.sleep(KEPT_US / SECOND_US - 1)
    log.add(EventBatch((event(2, clock.now()),)))
    assert await got(log.follow(ALL, event(1).id)) == [event(2, clock.now())]
    await asyncio.sleep(2)
    assert log.place(TENANT) == event(2).id
    # The event itself has left, but nothing after it has.
    assert [one.id for one in await got(log.follow(ALL, event(1).id)) if isinstance(one, Event)] == [
        event(2).id
    ]
    await asyncio.sleep(KEPT_US / SECOND_US)
    assert await got(log.follow(ALL, event(1).id)) == [Reset(last_id=event(2).id)]
    assert await got(log.follow(ALL, event(2).id)) == ()


@virtual
async def test_the_ring_is_bounded(clock: LoopClock) -> None:
    log = EventLog(clock=clock, max_kept=100)
    for start in range(0, 1_000, 10):
        log.add(EventBatch(tuple(events(10, first=start))))
    assert len(await got(log.follow(ALL, event(900).id))) == 99
    assert [type(one) for one in await got(log.follow(ALL, event(898).id))] == [Reset]


@virtual
async def test_a_gap_resets_clients_and_forgets_what_came_before(clock: LoopClock) -> None:
    log = EventLog(clock=clock)
    client = log.follow(ALL)
    log.add(EventBatch(tuple(events(3))))
    await asyncio.sleep(0.001)
    log.add(EventBatch(gap=True))
    [reset] = await got(client)
    assert isinstance(reset, Reset)
    log.add(EventBatch((event(9),)))
    assert await got(client) == [event(9)]
    assert await got(log.follow(ALL, reset.last_id)) == [event(9)]
    assert [type(one) for one in await got(log.follow(ALL, event(1).id))] == [Reset]


@virtual
async def test_too_many_a_second_become_one_summary_a_second_until_it_is_quiet(clock: LoopClock) -> None:
    log = EventLog(clock=clock)
    client = log.follow(ALL)
    number = 0

    async def second(count: int) -> list[Message]:
        """A second of ten batches; what the client has at its end."""
        nonlocal number
        messages: list[Message] = []
        for _ in range(10):
            log.add(EventBatch(tuple(events(count // 10, first=number))))
            number += count // 10
            await asyncio.sleep(0.1)
            messages += await got(client, 0.0001)
        return messages

    calm = await second(EVENTS_PER_SECOND)
    assert len(calm) == EVENTS_PER_SECOND
    busy = await second(1_000)
    assert len([one for one in busy if isinstance(one, Event)]) <= 2 * EVENTS_PER_SECOND
    for _ in range(3):
        [stats] = await second(1_000)
        assert isinstance(stats, Stats)
        assert 900 <= stats.counts[EventType.RUN_SUCCEEDED] <= 1_000
        assert stats.dropped <= stats.counts[EventType.RUN_SUCCEEDED]
    await asyncio.sleep(2.1)
    await got(client)
    again = await second(10)
    assert [type(one) for one in again] == [Event] * 10


@virtual
async def test_every_event_is_sent_or_counted_as_dropped(clock: LoopClock) -> None:
    log = EventLog(clock=clock)
    client = log.follow(ALL)
    for start in range(0, 20_000, 40):
        log.add(EventBatch(tuple(events(40, first=start)), {TENANT: {EventType.RUN_FAILED: 5}}))
        await asyncio.sleep(0.013)
    await asyncio.sleep(3)
    messages = await got(client)
    sent = [one for one in messages if isinstance(one, Event)]
    dropped = sum(one.dropped for one in messages if isinstance(one, Stats))
    assert len(sent) + dropped == 20_000 + 500 * 5
    assert len(messages) <= MAX_QUEUED + 1
    assert messages[-1].last_id == event(19_999).id if isinstance(messages[-1], Stats) else False
    assert await got(log.follow(ALL, event(19_999).id)) == ()


@virtual
async def test_what_was_only_counted_is_told_by_tenant_and_type(clock: LoopClock) -> None:
    log = EventLog(clock=clock)
    failures = log.follow(EventFilter(tenant=TENANT, types=frozenset({EventType.RUN_FAILED})))
    other = log.follow(EventFilter(tenant="other"))
    log.add(EventBatch((), {TENANT: {EventType.RUN_FAILED: 3, EventType.RUN_SUCCEEDED: 50}}))
    await asyncio.sleep(1.1)
    [stats] = await got(failures)
    assert isinstance(stats, Stats)
    assert (stats.counts, stats.dropped) == ({EventType.RUN_FAILED: 3}, 3)
    log.add(EventBatch((event(1),)))
    assert await got(log.follow(ALL, stats.last_id)) == [event(1)]
    assert await got(other) == ()


@virtual
async def test_clients_are_bounded_and_leave_their_place(clock: LoopClock) -> None:
    log = EventLog(clock=clock, max_clients=2)
    first, second = log.follow(ALL), log.follow(EventFilter(tenant=TENANT, job_id=5))
    with pytest.raises(Overloaded):
        log.follow(ALL)
    first.close()
    first.close()
    assert log.clients == 1
    log.follow(ALL)
    second.close()
    log.add(EventBatch((event(1),)))
    assert log.clients == 1


@virtual
async def test_one_user_and_one_tenant_leave_room_for_others(clock: LoopClock) -> None:
    log = EventLog(clock=clock, max_clients=6, max_of_tenant=3, max_of_user=2)
    anns = [log.follow(ALL, user="ann") for _ in range(2)]
    with pytest.raises(Overloaded, match="2 clients of yours follow events already"):
        log.follow(ALL, user="ann")
    log.follow(ALL, user="bob")
    with pytest.raises(Overloaded, match="3 clients of the tenant follow events already"):
        log.follow(ALL, user="cy")
    other = EventFilter(tenant="other")
    log.follow(other, user="dan")
    log.follow(ALL)  # on loopback nobody in particular asks
    anns[0].close()
    anns[0].close()
    log.follow(ALL, user="ann")
    log.follow(other, user="dan")
    with pytest.raises(Overloaded, match=r"^6 clients follow events already"):
        log.follow(other, user="eve")


# --- places


@virtual
async def test_a_place_tells_nothing_of_other_tenants(clock: LoopClock) -> None:
    """Two logs, at one of which others are busy, tell a tenant the same."""
    quiet, busy = EventLog(clock=clock), EventLog(clock=clock)

    async def told(log: EventLog, *others: Event) -> list[object]:
        log.add(EventBatch(others, {"other": {EventType.RUN_FAILED: 9}}))
        fresh = log.follow(ALL)
        lost = log.follow(ALL, "0000000000000001-unknown")
        probe = log.follow(ALL, event(1).id)  # an id of theirs, where it is one
        log.add(EventBatch((), {TENANT: {EventType.RUN_FAILED: 3}}))
        fresh._end_second()
        return [fresh.begins_after, *await got(fresh), *await got(lost), *await got(probe)]

    theirs = [event(number, tenant="other") for number in range(3)]
    both = asyncio.gather(told(quiet), told(busy, *theirs))
    first, second = await both
    assert first == second
    assert len(first) == 4


@virtual
async def test_a_tenant_that_had_nothing_resumes_from_the_moment_it_looked(clock: LoopClock) -> None:
    here = EventLog(clock=clock)
    await asyncio.sleep(0.001)
    there = EventLog(clock=clock)
    early = here.follow(ALL).begins_after
    await asyncio.sleep(2 * SKEW_US / SECOND_US)
    begun = here.follow(ALL).begins_after
    for log in (here, there):
        log.add(EventBatch((event(1, clock.now()), event(2, clock.now(), tenant="other"))))
        assert await got(log.follow(ALL, begun)) == [event(1, clock.now())]
    started_later = EventLog(clock=clock)
    for late in (early, begun):
        assert [type(one) for one in await got(started_later.follow(ALL, late))] == [Reset]
    assert [type(one) for one in await got(there.follow(ALL, early))] == [Reset], "it may have begun later"
    assert await got(here.follow(ALL, early)) == [event(1, clock.now())]
    await asyncio.sleep(KEPT_US / SECOND_US + 1)
    for log in (here, there):
        assert [type(one) for one in await got(log.follow(ALL, begun))] == [Reset], "its event is forgotten"
        assert await got(log.follow(ALL, event(1).id)) == ()


@virtual
async def test_a_moment_before_a_gap_is_no_place(clock: LoopClock) -> None:
    log = EventLog(clock=clock)
    before = log.follow(ALL).begins_after
    log.add(EventBatch(gap=True))
    assert [type(one) for one in await got(log.follow(ALL, before))] == [Reset]
    after = log.follow(ALL).begins_after
    log.add(EventBatch((event(1),)))
    assert await got(log.follow(ALL, after)) == [event(1)]


@virtual
async def test_closing_ends_every_stream_at_once(clock: LoopClock) -> None:
    log = EventLog(clock=clock)
    client = log.follow(ALL)
    waiting = asyncio.create_task(client.take(60))
    await asyncio.sleep(0.001)
    log.close()
    assert await waiting is None
    assert clock.now() < START_AT + SECOND_US
    with pytest.raises(Unavailable):
        log.follow(ALL)
    log.add(EventBatch((event(1),)))
