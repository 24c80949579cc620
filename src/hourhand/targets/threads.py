"""Threads for calls that block: sync functions and name lookups.

All book-keeping happens on the event loop, so there are no locks; a thread only ever holds one call.
When the caller is cancelled its thread is left behind and replaced. Threads are daemons: one that never
returns blocks neither other calls nor the end of the process. How many may be left behind is bounded.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any


class ThreadsExhausted(Exception):
    """So many threads were left behind that no new call may start."""


class Threads:
    """Runs blocking calls, at most `size` at a time, and forgets the ones whose callers gave up."""

    def __init__(self, name: str, *, size: int, left_behind_max: int) -> None:
        self._name = name
        self._size = size
        self._left_behind_max = left_behind_max
        self._started = 0
        self._busy = 0
        self._idle: list[_Thread] = []
        self._waiting: deque[_Call] = deque()
        self._left_behind: dict[_Thread, str] = {}
        self._closed = False

    @property
    def left_behind(self) -> list[str]:
        """Labels of the calls that go on although nobody waits for them any more."""
        return list(self._left_behind.values())

    async def run(self, call: Callable[[], Any], label: str = "") -> Any:
        """The call's value or exception; ThreadsExhausted where none may start, and it did not."""
        if len(self._left_behind) >= self._left_behind_max:
            raise ThreadsExhausted(_complaint(self.left_behind))
        work = _Call(call, label, asyncio.get_running_loop())
        self._waiting.append(work)
        self._hand_out()
        try:
            return await work.future
        except asyncio.CancelledError:
            self._give_up(work)
            raise

    def close(self) -> None:
        """Ends the idle threads; busy ones end after their call, if ever."""
        self._closed = True
        for thread in self._idle:
            thread.inbox.put(None)
        self._idle.clear()

    def _hand_out(self) -> None:
        while self._waiting and self._busy < self._size:
            work = self._waiting.popleft()
            if work.future.done():
                continue
            try:
                thread = self._idle.pop() if self._idle else self._new_thread()
            except RuntimeError as error:  # the system gives no more threads
                work.future.set_exception(ThreadsExhausted(f"no thread could be started: {error}"))
                continue
            self._busy += 1
            work.thread = thread
            thread.inbox.put(work)

    def _new_thread(self) -> "_Thread":
        self._started += 1
        return _Thread(f"{self._name}-{self._started}", self._done)

    def _give_up(self, work: "_Call") -> None:
        if work.thread is not None and not work.finished:
            self._left_behind[work.thread] = work.label
            self._busy -= 1
            self._hand_out()

    def _done(self, thread: "_Thread", work: "_Call", value: Any, error: BaseException | None) -> None:
        work.finished = True
        if self._left_behind.pop(thread, None) is not None:  # a new thread has its place
            thread.inbox.put(None)
            return
        self._busy -= 1
        if self._closed:
            thread.inbox.put(None)
        else:
            self._idle.append(thread)
        if not work.future.done():
            if error is None:
                work.future.set_result(value)
            elif isinstance(error, StopIteration):  # a future refuses it
                work.future.set_exception(RuntimeError("the call raised StopIteration"))
            else:
                work.future.set_exception(error)
        self._hand_out()


class _Call:
    __slots__ = ("call", "finished", "future", "label", "loop", "thread")

    def __init__(self, call: Callable[[], Any], label: str, loop: asyncio.AbstractEventLoop) -> None:
        self.call = call
        self.label = label
        self.loop = loop
        self.future: asyncio.Future[Any] = loop.create_future()
        self.thread: _Thread | None = None
        self.finished = False


_Done = Callable[["_Thread", _Call, Any, BaseException | None], None]


class _Thread:
    def __init__(self, name: str, done: _Done) -> None:
        self.inbox: SimpleQueue[_Call | None] = SimpleQueue()
        self._done = done
        threading.Thread(target=self._serve, name=name, daemon=True).start()

    def _serve(self) -> None:
        while (work := self.inbox.get()) is not None:
            value, error = None, None
            try:
                value = work.call()
            except BaseException as caught:
                error = caught
            try:
                work.loop.call_soon_threadsafe(self._done, self, work, value, error)
            except RuntimeError:  # the loop is closed: the process is on its way out
                return
            del work, value, error  # an idle thread keeps nothing alive


def _complaint(labels: list[str]) -> str:
    names = sorted(set(labels))
    shown = ", ".join(names[:3]) + (" and others" if len(names) > 3 else "")
    return f"{len(labels)} threads of this worker are held by calls that did not end in time ({shown})"
