"""Machines that can die or stand still at any moment, on one loop whose time is virtual.

Whatever a machine runs carries its name in the context, so that the loop knows whose callback it is about to call. A dead
machine's callbacks are never called again: nothing is unwound, no `finally` runs, as with SIGKILL. A
frozen one's wait until it goes on, as with SIGSTOP: time passes, and it has not seen it pass.
"""

import asyncio
import gc
import selectors
import sys
from collections.abc import Callable, Coroutine
from contextvars import Context, ContextVar, copy_context
from typing import Any

from tests.services.virtual import VirtualLoop

_ACTING: ContextVar["Machine | None"] = ContextVar("machine", default=None)


_MOST_TURNS = 50_000  # of the loop, at one moment


class LivelockError(Exception):
    """Somebody does the same again and again, and no time passes."""


class _Errand:
    """A callback of a machine, called when its machine can."""

    __slots__ = ("args", "callback", "handle", "machine")

    def __init__(self, machine: "Machine", callback: Callable[..., Any], args: tuple[Any, ...]) -> None:
        self.machine = machine
        self.callback = callback
        self.args = args
        self.handle: asyncio.Handle | None = None

    def __call__(self) -> None:
        machine = self.machine
        if machine.dead:
            return
        if machine.frozen:
            machine.parked.append(self)
            return
        assert self.handle is not None
        if not self.handle._cancelled:
            self.callback(*self.args)


class _NoFiles(selectors.DefaultSelector):
    """There is nothing to wait for but time."""

    passed_s = 0.0
    _turns = 0  # since time went on

    def select(self, timeout: float | None = None) -> list[Any]:
        if timeout is None:
            raise AssertionError("everything waits for something that will never happen")
        if timeout > 0:
            self.passed_s += timeout
            self._turns = 0
        self._turns += 1
        if self._turns > _MOST_TURNS:
            raise LivelockError(f"time stands still at {self.passed_s} s: somebody is busy for ever")
        return []


class SimLoop(VirtualLoop):
    """A virtual loop that asks before each callback whether its machine is there."""

    def __init__(self) -> None:
        super().__init__(_NoFiles())
        self.over = False
        self._graveyard: list[Any] = []

    def call_soon(  # type: ignore[override]
        self, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        if context is None:
            context = copy_context()
        if self.over:
            return asyncio.Handle(callback, args, self, context)
        machine = context.get(_ACTING)
        if machine is None:
            return super().call_soon(callback, *args, context=context)
        errand = _Errand(machine, callback, args)
        errand.handle = super().call_soon(errand, context=context)
        return errand.handle

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        if context is None:
            context = copy_context()
        if self.over:
            return asyncio.TimerHandle(when, callback, args, self, context)
        machine = context.get(_ACTING)
        if machine is None:
            return super().call_at(when, callback, *args, context=context)
        errand = _Errand(machine, callback, args)
        errand.handle = handle = super().call_at(when, errand, context=context)
        return handle

    def microseconds(self) -> int:
        """How much time has passed, as every clock here counts it."""
        return int(self.time() * 1_000_000 + 1e-3)

    def spend(self, seconds: float) -> None:
        """Let something take time that nobody can use: a store's work, for one."""
        self._virtual.passed_s += seconds

    def bury(self) -> None:
        """Keep what is left unfinished, so that nobody unwinds it."""
        self._graveyard.extend(asyncio.all_tasks(self))

    def end(self) -> None:
        """Let go of everything without letting it run on."""
        self.over = True
        _hush([*self._graveyard, *asyncio.all_tasks(self)])
        complain = sys.unraisablehook
        sys.unraisablehook = lambda _: None  # of a `finally` that would await something
        self._graveyard.clear()
        self.close()  # which drops what had not begun
        gc.collect()
        gc.collect()  # what the first one has closed may have held others
        sys.unraisablehook = complain


def _hush(tasks: list[Any]) -> None:
    """Nobody shall complain that they were never finished. Apart, so that nothing here holds the last of them."""
    for task in tasks:
        task._log_destroy_pending = False


class Machine:
    """A process that may be killed or stopped."""

    def __init__(self, loop: SimLoop, name: str) -> None:
        self.loop = loop
        self.name = name
        self.dead = False
        self.frozen = False
        self.parked: list[_Errand] = []
        self._context = copy_context()
        self._context.run(_ACTING.set, self)

    def start(self, work: Coroutine[Any, Any, Any]) -> "asyncio.Task[Any]":
        """Run something on this machine."""
        return self.loop.create_task(work, context=self._context.copy())

    def call(self, callback: Callable[..., Any], *args: Any) -> None:
        """Have something called on this machine soon."""
        self.loop.call_soon(callback, *args, context=self._context.copy())

    def kill(self) -> None:
        """End at once, without a word."""
        self.dead = True
        self.parked.clear()
        self.loop.bury()

    def freeze(self) -> None:
        """Stand still."""
        self.frozen = True

    def thaw(self) -> None:
        """Go on where it stood, as if no time had passed."""
        self.frozen = False
        parked, self.parked = self.parked, []
        for errand in parked:
            assert errand.handle is not None
            if not errand.handle._cancelled:  # type: ignore[attr-defined]
                asyncio.SelectorEventLoop.call_soon(self.loop, errand, context=errand.handle._context)  # type: ignore[attr-defined]


def acting_machine() -> Machine | None:
    """Whose callback is being called."""
    return _ACTING.get()


async def for_ever() -> None:
    """Where the code of a machine that has just died stays."""
    await asyncio.get_running_loop().create_future()
