"""Functions as targets: what they get, what their ends mean, and that none of them can hurt the worker."""

import asyncio
import functools
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from hourhand import GiveUp, Hourhand, RetryLater, Run, Skip
from hourhand.core.log import Stream
from hourhand.core.model import Delivery, PythonTarget
from hourhand.core.retry import Failure, Outcome
from hourhand.core.run import ClaimedRun
from hourhand.functions import Registry
from hourhand.ports.target import OK, Result
from hourhand.targets.python import PythonExecutor
from tests.targets.runs import WAIT_S, claimed, python_run

KEPT_BYTES = 4096


@pytest.fixture
def hh() -> Hourhand:
    return Hourhand(Registry())


@pytest.fixture
async def python(hh: Hourhand) -> AsyncIterator[PythonExecutor]:
    executor = PythonExecutor(hh.registry, threads=2, left_behind_max=2)
    yield executor
    await executor.close()


async def execute(python: PythonExecutor, function: Any, payload: Any = None) -> Result:
    async with asyncio.timeout(WAIT_S):
        return await python.execute(python_run(function, payload))


def error_of(result: Result) -> str:
    assert result.outcome is Outcome.FAILED
    assert result.detail is not None
    return str(result.detail["error"])


def both_kinds(hh: Hourhand, body: Callable[[], Any]) -> list[Any]:
    """The same body as an async function and as a plain one."""

    async def on_the_loop() -> Any:
        return body()

    def on_a_thread() -> Any:
        return body()

    return [hh.function(on_the_loop), hh.function(on_a_thread)]


async def test_nothing_returned_is_plain_success(hh: Hourhand, python: PythonExecutor) -> None:
    for function in both_kinds(hh, lambda: None):
        assert await execute(python, function) is OK


async def test_async_runs_on_the_loop_and_others_on_threads(hh: Hourhand, python: PythonExecutor) -> None:
    for function, here in zip(both_kinds(hh, threading.get_ident), (True, False), strict=True):
        result = await execute(python, function)
        assert result.detail is not None
        assert (result.detail["response"]["value"] == threading.get_ident()) is here


async def test_the_context_tells_about_the_run(hh: Hourhand, python: PythonExecutor) -> None:
    seen: list[Run] = []

    @hh.function
    async def by_name(ctx, region: str = "eu") -> str:  # type: ignore[no-untyped-def]
        seen.append(ctx)
        return region

    @hh.function
    def by_type(run: Run, region: str = "eu") -> str:
        seen.append(run)
        return region

    @hh.function
    async def without(region: str) -> str:
        return region

    for function in (by_name, by_type, without):
        result = await execute(python, function, {"region": "us"})
        assert result.detail == {"response": {"value": "us"}}
    assert len(seen) == 2
    for ctx in seen:
        assert ctx.run_id == ctx.idempotency_key == "J-000000000002d@20261116T080000Z"
        assert ctx.job_id == "J-000000000002d"
        assert ctx.scheduled_at == datetime(2026, 11, 16, 8, tzinfo=UTC)
        assert ctx.interval == (datetime(2026, 11, 16, 7, 59, tzinfo=UTC), ctx.scheduled_at)
        assert ctx.deadline == datetime(2026, 11, 16, 8, 5, tzinfo=UTC)
        assert ctx.attempt == 1


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        ({"rows": [1, 2.5, "ü", None]}, {"value": {"rows": [1, 2.5, "ü", None]}}),
        (0, {"value": 0}),
        ("", {"value": ""}),
        (datetime(2026, 11, 16, tzinfo=UTC), {"value": "2026-11-16T00:00:00Z"}),
        ("x" * (KEPT_BYTES - 2), {"value": "x" * (KEPT_BYTES - 2)}),
        ("x" * KEPT_BYTES, {"text": '"' + "x" * (KEPT_BYTES - 1), "truncated": True}),
        (1 + 2j, {"text": "(1+2j)"}),
        ("\ud800", {"text": "'\\ud800'"}),
    ],
)
async def test_what_is_kept_of_a_value(hh: Hourhand, python: PythonExecutor, value: Any, kept: Any) -> None:
    for function in both_kinds(hh, lambda: value):
        result = await execute(python, function)
        assert result.outcome is Outcome.SUCCEEDED
        assert result.detail == {"response": kept}


async def test_values_that_resist(hh: Hourhand, python: PythonExecutor) -> None:
    class Unprintable:
        def __repr__(self) -> str:
            raise SystemExit("no")

    endless: list[Any] = []
    endless.append(endless)
    for value in (Unprintable(), endless, {1, (2, 3)}, lambda: 0):
        for function in both_kinds(hh, lambda value=value: value):
            result = await execute(python, function)
            assert result.outcome is Outcome.SUCCEEDED
            assert len(msgspec.json.encode(result.detail)) < KEPT_BYTES + 200


async def test_a_value_kept_is_a_copy(hh: Hourhand, python: PythonExecutor) -> None:
    state = {"n": 1}
    result = await execute(python, both_kinds(hh, lambda: state)[0])
    state["n"] = 2
    assert result.detail == {"response": {"value": {"n": 1}}}


def raiser(error: BaseException) -> Callable[[], Any]:
    def body() -> Any:
        raise error

    return body


@pytest.mark.parametrize(
    ("error", "words", "failure"),
    [
        (ValueError("bad"), "ValueError: bad", Failure()),
        (KeyError(), "KeyError", Failure()),
        (GiveUp("bad data"), "gave up: bad data", Failure(retryable=False)),
        (GiveUp(), "gave up", Failure(retryable=False)),
        (
            RetryLater("30s"),
            "asked to be tried again in 30s",
            Failure(before_sending=True, retry_after_us=30_000_000),
        ),
        (
            RetryLater(0.5, "busy"),
            "asked to be tried again in 500ms: busy",
            Failure(before_sending=True, retry_after_us=500_000),
        ),
        (SystemExit(3), "SystemExit: 3", Failure()),
        (KeyboardInterrupt(), "KeyboardInterrupt", Failure()),
        (StopIteration("x"), "StopIteration: x", Failure()),
        (RecursionError("deep"), "RecursionError: deep", Failure()),
        (ExceptionGroup("many", [ValueError()]), "ExceptionGroup: many (1 sub-exception)", Failure()),
        (ValueError("\ud800"), "ValueError: \\ud800", Failure()),
        (ValueError("x" * 10_000), "ValueError: " + "x" * 500, Failure()),
    ],
)
async def test_what_a_function_raises(
    hh: Hourhand, python: PythonExecutor, error: BaseException, words: str, failure: Failure
) -> None:
    on_the_loop, on_a_thread = both_kinds(hh, raiser(error))
    result = await execute(python, on_a_thread)
    assert (error_of(result), result.failure) == (words, failure)
    if not isinstance(error, StopIteration):  # a coroutine turns it into RuntimeError by itself
        result = await execute(python, on_the_loop)
        assert (error_of(result), result.failure) == (words, failure)


async def test_skip_ends_with_its_reason(hh: Hourhand, python: PythonExecutor) -> None:
    for function in both_kinds(hh, raiser(Skip("holiday"))):
        result = await execute(python, function)
        assert (result.outcome, result.detail) == (Outcome.SKIPPED, {"reason": "holiday"})


async def test_a_failure_shows_where_in_the_users_code_and_only_so_much(
    hh: Hourhand, python: PythonExecutor
) -> None:
    def deep(depth: int) -> None:
        if not depth:
            raise ValueError("here")
        deep(depth - 1)

    for function in both_kinds(hh, lambda: deep(50)):
        detail = (await execute(python, function)).detail
        assert detail is not None
        shown = detail["traceback"]
        assert "deep(depth - 1)" in shown
        assert shown.endswith('raise ValueError("here")')
        assert "hourhand/targets" not in shown
        assert len(shown) <= 2048


async def test_an_exception_that_cannot_be_printed(hh: Hourhand, python: PythonExecutor) -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no")

    for function in both_kinds(hh, raiser(Mute())):
        assert error_of(await execute(python, function)) == "Mute: an exception that cannot be printed"


async def test_a_payload_that_does_not_fit_fails_for_good(hh: Hourhand, python: PythonExecutor) -> None:
    called = []

    @hh.function
    async def report(ctx: Run, region: str, count: int = 1) -> None:
        called.append(region)

    for payload, words in [
        (None, "missing 'region'"),
        ({"regoin": "eu"}, "missing 'region', unexpected 'regoin'"),
        ({"region": "eu", "ctx": 1}, "unexpected 'ctx'"),
        ([1], "the payload is an array"),
        ({"region": "eu", "count": "7"}, "argument 'count': expected int, got str"),
    ]:
        result = await execute(python, report, payload)
        assert words in error_of(result)
        assert result.failure == Failure(retryable=False, before_sending=True)
    assert called == []


async def test_a_name_nobody_registered(python: PythonExecutor) -> None:
    result = await execute(python, "os:system", {"command": "true"})
    assert (
        error_of(result) == "no function 'os:system' is registered on this worker; start it with --import os"
    )
    assert result.failure == Failure(before_sending=True, unserved=True)


async def test_a_wrapped_async_function_is_awaited(hh: Hourhand, python: PythonExecutor) -> None:
    async def inner(fail: bool = False) -> str:
        await asyncio.sleep(0)
        if fail:
            raise ValueError("inside")
        return "done"

    @hh.function
    @functools.wraps(inner)
    def wrapper(*args: Any, **kwargs: Any) -> Awaitable[str]:
        return inner(*args, **kwargs)

    assert (await execute(python, wrapper)).detail == {"response": {"value": "done"}}
    assert error_of(await execute(python, wrapper, {"fail": True})) == "ValueError: inside"


async def test_cancellation_reaches_an_async_function_and_the_worker(
    hh: Hourhand, python: PythonExecutor
) -> None:
    started, seen = asyncio.Event(), []

    @hh.function
    async def patient(ctx: Run) -> None:
        seen.append(ctx.cancelled)
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            seen.append(ctx.cancelled)

    task = asyncio.create_task(python.execute(python_run(patient)))
    async with asyncio.timeout(WAIT_S):
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert seen == [False, True]


async def test_a_cancellation_of_the_functions_own_is_a_failure(hh: Hourhand, python: PythonExecutor) -> None:
    @hh.function
    async def cancels_its_child() -> None:
        child = asyncio.ensure_future(asyncio.Event().wait())
        child.cancel()
        await child

    for function in [cancels_its_child, *both_kinds(hh, raiser(asyncio.CancelledError()))]:
        assert error_of(await execute(python, function)).startswith("CancelledError")


async def test_cancellation_is_visible_on_a_thread_and_nobody_waits_for_it(
    hh: Hourhand, python: PythonExecutor
) -> None:
    started, ended = threading.Event(), threading.Event()
    seen: list[bool] = []

    @hh.function
    def patient(ctx: Run) -> None:
        seen.append(ctx.wait(0))
        started.set()
        seen.append(ctx.wait(WAIT_S))
        seen.append(ctx.cancelled)
        ended.set()

    loop = asyncio.get_running_loop()
    task = asyncio.create_task(python.execute(python_run(patient)))
    assert await loop.run_in_executor(None, started.wait, WAIT_S)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await loop.run_in_executor(None, ended.wait, WAIT_S)
    assert seen == [False, True, True]


async def test_functions_that_never_return_are_left_behind_and_counted(
    hh: Hourhand, python: PythonExecutor
) -> None:
    release, started = threading.Event(), threading.Semaphore(0)

    @hh.function
    def stuck() -> None:
        started.release()
        release.wait(WAIT_S * 2)

    quick = both_kinds(hh, lambda: None)[1]
    loop = asyncio.get_running_loop()
    for _ in range(2):
        assert await execute(python, quick) is OK
        task = asyncio.create_task(python.execute(python_run(stuck)))
        assert await loop.run_in_executor(None, functools.partial(started.acquire, timeout=WAIT_S))
        task.cancel()
        await asyncio.wait([task])
    assert python.left_behind == [stuck.function_name] * 2
    result = await execute(python, quick)
    assert error_of(result).startswith("not started: 2 threads of this worker are held")
    assert result.failure == Failure(before_sending=True, unserved=True)
    release.set()


async def test_many_at_a_time(hh: Hourhand, python: PythonExecutor) -> None:
    functions = both_kinds(hh, lambda: 1)
    async with asyncio.timeout(WAIT_S):
        results = await asyncio.gather(*(python.execute(python_run(functions[n % 2])) for n in range(200)))
    assert {result.outcome for result in results} == {Outcome.SUCCEEDED}


async def test_the_hot_path_never_yields_to_the_loop(hh: Hourhand, python: PythonExecutor) -> None:
    """An async function that does not wait is done in one step: no task, timer or thread comes between."""
    function = both_kinds(hh, lambda: None)[0]
    attempt = python.execute(
        claimed(PythonTarget(function=function.function_name), delivery=Delivery.AT_MOST_ONCE)
    )
    with pytest.raises(StopIteration) as done:
        attempt.send(None)
    assert done.value.value is OK


async def test_progress_is_told_from_the_loop_and_from_threads(hh: Hourhand) -> None:
    told: list[tuple[str, float, str]] = []
    executor = PythonExecutor(
        hh.registry, threads=1, tell=lambda run, fraction, text: told.append((run.run_id, fraction, text))
    )

    @hh.function
    async def on_the_loop(ctx: Run) -> None:
        ctx.progress(0.4, "loading")

    @hh.function
    def on_a_thread(ctx: Run) -> None:
        ctx.progress(7)

    for function in (on_the_loop, on_a_thread):
        assert await execute(executor, function) is OK
    run_id = python_run(on_the_loop).run_id
    assert told == [(run_id, 0.4, "loading"), (run_id, 1.0, "")]
    await executor.close()


class Kept:
    """What a function said with ctx.log, and how often that was closed."""

    is_full = False

    def __init__(self) -> None:
        self.text = ""
        self.opened = self.closed = 0

    def open(self, run: ClaimedRun) -> "Kept":
        self.opened += 1
        return self

    def write(self, stream: Stream, text: str) -> None:
        assert stream is Stream.LOG
        self.text += text

    async def close(self, patience_s: float) -> None:
        self.closed += 1


async def test_what_is_logged_is_kept_before_the_outcome_is_told(hh: Hourhand) -> None:
    kept = Kept()
    executor = PythonExecutor(hh.registry, threads=1, log=kept)

    @hh.function
    async def on_the_loop(ctx: Run) -> None:
        ctx.log.info("one", rows=3)
        ctx.log.warning("two")

    @hh.function
    def on_a_thread(ctx: Run) -> None:
        ctx.log.error("three")
        raise ValueError("broken")

    assert (await execute(executor, on_the_loop)).outcome is Outcome.SUCCEEDED
    assert (kept.text, kept.opened, kept.closed) == ("INFO one rows=3\nWARNING two\n", 1, 1)
    assert (await execute(executor, on_a_thread)).outcome is Outcome.FAILED
    assert kept.text.endswith("ERROR three\n")
    assert (kept.opened, kept.closed) == (2, 2)
    await executor.close()


async def test_who_logs_nothing_has_no_log(hh: Hourhand) -> None:
    kept = Kept()
    executor = PythonExecutor(hh.registry, threads=1, log=kept)

    @hh.function
    async def silent(ctx: Run) -> None:
        ctx.progress(0.5)  # told elsewhere

    assert await execute(executor, silent) is OK
    assert (kept.opened, kept.closed) == (0, 0)
    await executor.close()
