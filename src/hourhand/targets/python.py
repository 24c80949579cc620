"""Executes attempts by calling a registered function: async ones on the loop, others on threads.

Nothing is looked up that was not registered. The hot path, an async function, is awaited in the caller's
own task: no timer, no task and no context of its own; the worker enforces the deadline by cancelling.
A function that swallows the cancellation goes on in the worker's task: the worker must leave that task
behind, as this module leaves behind a thread that does not return.
"""

import asyncio
import inspect
import threading
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

from hourhand.core.model import PythonTarget
from hourhand.core.run import ClaimedRun
from hourhand.functions.arguments import WrongArguments
from hourhand.functions.context import Run
from hourhand.functions.registry import RegisteredFunction
from hourhand.ports.log import RunLog
from hourhand.ports.target import OK, Result
from hourhand.targets.loop_watch import LoopHeld
from hourhand.targets.python_outcome import (
    cancelled_itself,
    held_the_loop,
    no_such_function,
    no_thread,
    raised,
    returned,
    wrong_arguments,
)
from hourhand.targets.threads import Threads, ThreadsExhausted

_LOG_S = 1.0  # for the store to take what was said

_current_task = asyncio.current_task

Tell = Callable[[ClaimedRun, float, str], None]  # how far an attempt is, from any thread


class PythonExecutor:
    """The Python target."""

    def __init__(
        self,
        functions: Mapping[str, RegisteredFunction],
        *,
        threads: int = 64,
        left_behind_max: int = 512,
        log: RunLog | None = None,
        tell: Tell | None = None,
    ) -> None:
        self._tell = tell
        self._functions = functions
        self._log = log
        self._threads = Threads("hourhand-function", size=threads, left_behind_max=left_behind_max)

    @property
    def names(self) -> tuple[str, ...]:
        """The functions that it can call."""
        return tuple(sorted(self._functions))

    async def execute(self, run: ClaimedRun) -> Result:
        """One call and what came of it; see `ports.target`."""
        target = run.spec.target
        assert isinstance(target, PythonTarget)
        registered = self._functions.get(target.function)
        if registered is None:
            return no_such_function(target.function)
        arguments = registered.arguments
        try:
            given = arguments.bind(run.spec.payload)
        except WrongArguments as error:
            return wrong_arguments(error)
        if not registered.is_async:
            return await self._execute_on_thread(registered, run, given)
        context = None
        try:
            if arguments.takes_context:
                context = Run(run, _current_task(), logs=self._log, tell=self._tell)
                value = await registered.function(context, **given)
            else:
                value = await registered.function(**given)
        except BaseException as error:
            result = _caught(error)
        else:
            result = OK if value is None else returned(value)
        if context is not None and context.kept_log is not None:
            await context.kept_log.close(_LOG_S)
        return result

    async def close(self) -> None:
        """Lets the threads go; one that is still in a function ends with it, or with the process."""
        self._threads.close()

    @property
    def left_behind(self) -> list[str]:
        """Names of the functions that go on although their runs were given up."""
        return self._threads.left_behind

    async def _execute_on_thread(
        self, registered: RegisteredFunction, run: ClaimedRun, given: dict[str, Any]
    ) -> Result:
        stop = threading.Event()
        takes_context = registered.arguments.takes_context
        context = Run(run, stop=stop, logs=self._log, tell=self._tell) if takes_context else None
        try:
            done = await self._threads.run(partial(_call, registered, context, given), registered.name)
            result = done if isinstance(done, Result) else await _awaited(done)
            if context is not None and context.kept_log is not None:
                await context.kept_log.close(_LOG_S)
            return result
        except ThreadsExhausted as error:
            return no_thread(error)
        finally:
            stop.set()


def _call(registered: RegisteredFunction, context: Run | None, given: dict[str, Any]) -> Any:
    """On a thread: a Result whatever happens, or the awaitable that a wrapped async function gives."""
    try:
        value = registered.function(**given) if context is None else registered.function(context, **given)
    except BaseException as error:
        return raised(error)
    return value if inspect.isawaitable(value) else returned(value)


async def _awaited(value: Awaitable[Any]) -> Result:
    try:
        return returned(await value)
    except BaseException as error:
        return _caught(error)


def _caught(error: BaseException) -> Result:
    """What an async function raised. Cancellation is the worker's word only if the worker said it."""
    if isinstance(error, asyncio.CancelledError):
        task = _current_task()
        if task is None or task.cancelling():
            raise error
        return cancelled_itself()
    if isinstance(error, LoopHeld):
        return held_the_loop(error.seconds)
    if isinstance(error, GeneratorExit):  # the coroutine is being closed, nobody takes a result
        raise error
    return raised(error)
