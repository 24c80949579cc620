"""Threads: bounded, replaced when left behind, and never in anybody's way."""

import asyncio
import threading

import pytest

from hourhand.targets.threads import Threads, ThreadsExhausted
from tests.targets.runs import WAIT_S


class Stuck:
    """A call that does not return until the test lets it."""

    def __init__(self) -> None:
        self.started = threading.Event()
        self.release = threading.Event()
        self.ended = threading.Event()
        self.thread: threading.Thread | None = None

    def __call__(self) -> str:
        self.thread = threading.current_thread()
        self.started.set()
        self.release.wait(WAIT_S * 2)
        self.ended.set()
        return "late"


async def until(event: threading.Event) -> None:
    assert await asyncio.get_running_loop().run_in_executor(None, event.wait, WAIT_S)


async def gone(call: Stuck) -> None:
    """Its thread was left behind, so it ends once the loop has heard of the call's end."""
    assert call.thread is not None
    call.release.set()
    await asyncio.get_running_loop().run_in_executor(None, call.thread.join, WAIT_S)
    assert not call.thread.is_alive()


async def test_values_and_exceptions_come_back() -> None:
    threads = Threads("t", size=2, left_behind_max=1)
    assert await threads.run(lambda: 42) == 42
    with pytest.raises(KeyError, match="x"):
        await threads.run(lambda: {}["x"])
    with pytest.raises(RuntimeError, match="StopIteration"):
        await threads.run(lambda: next(iter(())))
    assert await threads.run(threading.current_thread) is await threads.run(threading.current_thread)
    threads.close()


async def test_at_most_so_many_at_a_time_and_the_rest_in_order() -> None:
    threads = Threads("t", size=2, left_behind_max=2)
    stuck = [Stuck(), Stuck()]
    order: list[int] = []
    running = [asyncio.create_task(threads.run(call)) for call in stuck]
    waiting = [asyncio.create_task(threads.run(lambda n=n: order.append(n))) for n in range(3)]
    for call in stuck:
        await until(call.started)
    assert order == []
    waiting[1].cancel()
    stuck[0].release.set()
    await asyncio.wait_for(asyncio.gather(*waiting, return_exceptions=True), WAIT_S)
    assert order == [0, 2]
    stuck[1].release.set()
    assert await asyncio.gather(*running) == ["late", "late"]
    threads.close()


async def test_a_thread_that_does_not_return_is_replaced() -> None:
    threads = Threads("t", size=1, left_behind_max=2)
    call = Stuck()
    task = asyncio.create_task(threads.run(call, "app:stuck"))
    await until(call.started)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert threads.left_behind == ["app:stuck"]
    assert await asyncio.wait_for(threads.run(lambda: "next"), WAIT_S) == "next"
    await gone(call)
    assert threads.left_behind == []
    assert await asyncio.wait_for(threads.run(lambda: "again"), WAIT_S) == "again"
    threads.close()


async def test_who_waits_behind_a_stuck_call_starts_when_that_is_given_up() -> None:
    threads = Threads("t", size=1, left_behind_max=2)
    call = Stuck()
    stuck = asyncio.create_task(threads.run(call))
    await until(call.started)
    behind = asyncio.create_task(threads.run(lambda: "at last"))
    stuck.cancel()
    assert await asyncio.wait_for(behind, WAIT_S) == "at last"
    call.release.set()
    threads.close()


async def test_so_many_may_be_left_behind_and_then_no_call_starts() -> None:
    threads = Threads("t", size=4, left_behind_max=2)
    calls = [Stuck(), Stuck()]
    tasks = [asyncio.create_task(threads.run(call, f"app:{n}")) for n, call in enumerate(calls)]
    for call, task in zip(calls, tasks, strict=True):
        await until(call.started)
        task.cancel()
    await asyncio.wait(tasks)
    with pytest.raises(ThreadsExhausted, match=r"2 threads .*app:0, app:1"):
        await threads.run(lambda: None)
    await gone(calls[0])
    assert threads.left_behind == ["app:1"]
    assert await asyncio.wait_for(threads.run(lambda: "free again"), WAIT_S) == "free again"
    calls[1].release.set()
    threads.close()


async def test_threads_are_daemons() -> None:
    threads = Threads("t", size=1, left_behind_max=1)
    assert (await threads.run(threading.current_thread)).daemon
    threads.close()


async def test_closing_ends_idle_threads() -> None:
    threads = Threads("t", size=1, left_behind_max=1)
    thread = await threads.run(threading.current_thread)
    threads.close()
    await asyncio.get_running_loop().run_in_executor(None, thread.join, WAIT_S)
    assert not thread.is_alive()


def test_a_call_that_outlives_its_loop_is_forgotten() -> None:
    threads = Threads("t", size=1, left_behind_max=1)
    call = Stuck()

    async def give_up() -> None:
        task = asyncio.create_task(threads.run(call))
        await until(call.started)
        task.cancel()
        await asyncio.wait([task])

    asyncio.run(give_up())
    call.release.set()
    assert call.ended.wait(WAIT_S)
