"""The writer of logs: few batches, bounded memory, nothing lost that had room, and nobody waits for a slow store."""

import asyncio
import threading

import pytest

from hourhand.clock import ManualClock
from hourhand.core.identity import RunKey, shard_of
from hourhand.core.log import CHUNK_BYTES, LogChunk, LogPlace, Stream
from hourhand.core.model import JobSpec, OnceTiming, PythonTarget
from hourhand.core.run import ClaimedRun
from hourhand.errors import Unavailable
from hourhand.services import log_writer
from hourhand.services.log_writer import PERIOD_US, LogRouter, LogWriter
from hourhand.stores.sqlite import SqliteStore
from tests.services.world import START_AT, FaultyStore

SPEC = JobSpec(timing=OnceTiming(at=START_AT), target=PythonTarget(function="tests:noop"))


def run_of(job_id: int, attempt: int = 1) -> ClaimedRun:
    return ClaimedRun(job_id, 0, START_AT, START_AT, attempt, 0, 0, START_AT, 1, "default", SPEC)


class Desk:
    """A writer over a real store, and what stands there."""

    def __init__(self) -> None:
        self.clock = ManualClock(START_AT)
        self.store = FaultyStore(SqliteStore.in_memory(clock=self.clock))
        self.writer = LogWriter(store=self.store, clock=self.clock)
        self.woken = 0
        self.writer.wakes(self.wake)

    def wake(self) -> None:
        self.woken += 1

    async def step(self) -> int | None:
        return await self.writer.step(self.clock.now())

    async def chunks(self, job_id: int = 1) -> list[LogChunk]:
        return await self.store.read_log(RunKey(job_id, START_AT), LogPlace(), None, 10_000)

    async def text(self, job_id: int = 1) -> str:
        return "".join(chunk.text for chunk in await self.chunks(job_id))


@pytest.fixture
async def desk() -> Desk:
    return Desk()


async def test_what_is_said_stands_in_the_store_after_a_step(desk: Desk) -> None:
    desk.writer.open(run_of(1)).write(Stream.OUTPUT, "hello\n")
    desk.writer.open(run_of(2, attempt=3)).write(Stream.LOG, "there\n")
    assert await desk.step() is None
    assert await desk.text(1) == "hello\n"
    [chunk] = await desk.chunks(2)
    assert (chunk.attempt, chunk.seq, chunk.at, chunk.stream) == (3, 1, START_AT, Stream.LOG)
    assert desk.store.calls["append_log"] == 1


async def test_batches_keep_their_distance(desk: Desk) -> None:
    log = desk.writer.open(run_of(1))
    log.write(Stream.OUTPUT, "one ")
    assert await desk.step() is None
    log.write(Stream.OUTPUT, "two ")
    log.write(Stream.OUTPUT, "three ")
    assert await desk.step() == START_AT + PERIOD_US
    assert await desk.text() == "one "
    desk.clock.advance(PERIOD_US)
    assert await desk.step() is None
    assert [chunk.text for chunk in await desk.chunks()] == ["one ", "two three "]


async def test_a_whole_batch_waits_for_nothing(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_writer, "BATCH_BYTES", 1_000)
    log = desk.writer.open(run_of(1))
    log.write(Stream.OUTPUT, "first")
    await desk.step()
    await asyncio.sleep(0)
    woken = desk.woken
    for _ in range(30):
        log.write(Stream.OUTPUT, "x" * 100)
    await asyncio.sleep(0)
    assert desk.woken == woken + 2  # for the first of it, and for so much
    while await desk.step() == desk.clock.now():
        pass
    assert (await desk.text()).count("x") > 2_000  # without a moment passing


async def test_streams_stay_apart_and_in_order(desk: Desk) -> None:
    log = desk.writer.open(run_of(1))
    for stream, text in ((Stream.OUTPUT, "a"), (Stream.OUTPUT, "b"), (Stream.LOG, "c"), (Stream.OUTPUT, "d")):
        log.write(stream, text)
    await desk.step()
    assert [(chunk.stream, chunk.text) for chunk in await desk.chunks()] == [
        (Stream.OUTPUT, "ab"),
        (Stream.LOG, "c"),
        (Stream.OUTPUT, "d"),
    ]


async def test_long_texts_are_cut_in_pieces(desk: Desk) -> None:
    text = "ü" * (CHUNK_BYTES * 2)
    desk.writer.open(run_of(1)).write(Stream.OUTPUT, text)
    await desk.writer.flush()
    assert await desk.text() == text
    assert max(len(chunk.text.encode()) for chunk in await desk.chunks()) <= CHUNK_BYTES


async def test_closing_waits_for_the_store_and_hurries_it(desk: Desk) -> None:
    log = desk.writer.open(run_of(1))
    log.write(Stream.OUTPUT, "first ")
    await desk.step()
    log.write(Stream.OUTPUT, "last")
    closing = asyncio.create_task(log.close(30))
    await asyncio.sleep(0)
    assert not closing.done()
    await desk.step()  # although the last was only just
    await closing
    assert await desk.text() == "first last"


async def test_closing_gives_up_on_a_store_that_is_away(desk: Desk) -> None:
    log = desk.writer.open(run_of(1))
    log.write(Stream.OUTPUT, "said")
    await asyncio.wait_for(log.close(0.01), 5)
    await desk.step()
    assert await desk.text() == "said"  # all the same, a little later


async def test_closing_what_said_nothing_waits_for_nobody(desk: Desk) -> None:
    await asyncio.wait_for(desk.writer.open(run_of(1)).close(30), 5)
    assert desk.store.calls["append_log"] == 0


async def test_a_batch_that_failed_is_sent_again_as_it_was(desk: Desk) -> None:
    log = desk.writer.open(run_of(1))
    log.write(Stream.OUTPUT, "one ")
    desk.store.lose_answer("append_log")  # committed, but the answer is lost
    with pytest.raises(Unavailable):
        await desk.step()
    log.write(Stream.OUTPUT, "two ")
    await desk.writer.flush()
    assert [chunk.text for chunk in await desk.chunks()] == ["one ", "two "]


async def test_memory_is_bounded_while_the_store_is_away(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_writer, "PENDING_BYTES", 1_000)
    log, other = desk.writer.open(run_of(1)), desk.writer.open(run_of(2))
    for _ in range(100):
        log.write(Stream.OUTPUT, "x" * 50)
    other.write(Stream.OUTPUT, "y" * 50)
    assert desk.writer._pending_bytes <= 1_000
    await desk.writer.flush()
    log.write(Stream.OUTPUT, "on again\n")
    await desk.writer.flush()
    text = await desk.text()
    assert text == "x" * 400 + "[4,600 bytes left out: the store was slow]\non again\n"
    assert desk.writer._pending_bytes == 0


async def test_what_is_too_much_keeps_its_beginning_and_its_end(desk: Desk) -> None:
    log = desk.writer.open(run_of(1))
    for number in range(30_000):
        log.write(Stream.OUTPUT, f"line {number:6} {'x' * 100}\n")
        if number % 1_000 == 0:
            await desk.writer.flush()
    closing = asyncio.create_task(log.close(30))
    await asyncio.sleep(0)
    await desk.writer.flush()
    await closing
    text = await desk.text()
    assert text.startswith("line      0")
    assert text.endswith(f"line  29999 {'x' * 100}\n")
    assert "[from here on only the end is kept]\n" in text
    assert "bytes left out]\n" in text
    assert 500_000 < len(text) < 1_100_000


async def test_threads_may_write(desk: Desk) -> None:
    logs = [desk.writer.open(run_of(number)) for number in range(1, 5)]
    threads = [
        threading.Thread(target=lambda log=log: [log.write(Stream.LOG, f"{n}\n") for n in range(500)])
        for log in logs
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    await desk.writer.flush()
    for number in range(1, 5):
        assert await desk.text(number) == "".join(f"{n}\n" for n in range(500))
    await asyncio.sleep(0)
    assert desk.woken == 4  # once each, however much they said


async def test_a_router_knows_where_a_job_is(desk: Desk) -> None:
    other = Desk()
    router = LogRouter()
    router.add(desk.writer, 0)
    router.add(other.writer, 1)
    job_id = next(n << shift for shift in range(64) for n in (1,) if shard_of(n << shift) == 1)
    router.open(run_of(job_id)).write(Stream.LOG, "there")
    router.open(run_of(1)).write(Stream.LOG, "here")
    await desk.step()
    await other.step()
    assert await desk.text(1) == "here"
    assert await other.text(job_id) == "there"
