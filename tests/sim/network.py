"""What lies between a machine and the store: calls that fail, hang, happen late or twice, and hints that get lost.

A fault is armed for a machine and a verb, and strikes the next such call. A verb is carried out whole or not at all; what
the network does is to let the caller know, or not.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, NamedTuple, Protocol

from hourhand.errors import Unavailable
from hourhand.ports.store import Hint
from hourhand.stores.postgres.server_clock import ServerClock
from tests.sim.machine import Machine, for_ever
from tests.sim.script import Fault

_SLOWEST_S = 4.9  # each way: no verb takes longer than ten seconds, it is given up before
_AT_ONCE_US = 2_000  # between two claims of somebody who does not wait
_MOST_IN_VAIN = 100  # claims in a row, without a pause, that led to nothing


class Armed(NamedTuple):
    """A fault that waits for its call."""

    fault: Fault
    verb: str  # or the transition that the call will make
    seconds: float


class Surroundings(Protocol):
    """What a link needs of the world."""

    real: Any
    store_away: bool
    slow_s: float
    in_flight: int  # calls that will still happen
    aimed: list[Armed]  # at whoever makes some transition next
    harm: Any  # what becomes of the calls of one run, in a scene of its own

    def strike(self, fault: Fault, machine: str) -> None:
        """A fault has struck."""
        ...

    def store_now(self) -> int:
        """The store's time."""
        ...

    def crash(self, machine: Machine, for_s: float) -> None:
        """Kill a machine; another is started in its place after a while."""
        ...

    def freeze(self, machine: Machine, for_s: float) -> None:
        """Stop a machine for a while."""
        ...

    def foreseen(self, verb: str, args: Any, kwargs: Any) -> set[str]:
        """The transitions that a call is likely to make."""
        ...

    def complain(self, violation: str) -> None:
        """Something was done that nobody may do."""
        ...

    def outside(self, work: Coroutine[Any, Any, Any]) -> None:
        """Do something on no machine."""
        ...

    async def carry_out(self, verb: str, fault: Fault | None, args: Any, kwargs: Any) -> Any:
        """Have the store do it."""
        ...


class Link:
    """The store as one machine sees it."""

    def __init__(
        self, world: Surroundings, machine: Machine, clock: ServerClock, latency: Callable[[], float]
    ) -> None:
        self._world = world
        self._machine = machine
        self._clock = clock
        self._latency = latency
        self.armed: list[Armed] = []
        self.hint_faults: list[Armed] = []
        self.cut = False  # nothing gets to the store
        self.deaf = False  # nothing comes back from it
        self._in_vain = 0
        self._claimed_at = 0
        self._wakes: list[Callable[[Hint], None]] = []

    # --- hints

    def subscribe(self, wake: Callable[[Hint], None]) -> None:
        self._wakes.append(wake)

    def hint(self, hint: Hint) -> None:
        """A commit was about something; this machine may hear of it."""
        if self._machine.dead or not self._wakes or self.cut or self.deaf:
            return
        if not self.hint_faults:
            self._deliver(hint)
            return
        armed = self.hint_faults.pop(0)
        self._world.strike(armed.fault, self._machine.name)
        match armed.fault:
            case Fault.REPEATED_HINT:
                self._deliver(hint)
                self._world.outside(self._deliver_late(hint, armed.seconds))
            case Fault.LATE_HINT:
                self._world.outside(self._deliver_late(hint, armed.seconds))
            case _:
                pass  # it is lost

    def _deliver(self, hint: Hint) -> None:
        self._in_vain = 0  # it has a reason to look
        for wake in self._wakes:
            self._machine.call(wake, hint)

    async def _deliver_late(self, hint: Hint, seconds: float) -> None:
        await asyncio.sleep(seconds)
        self._deliver(hint)

    # --- calls

    def place(self, tenant: str, spec: Any) -> int | None:
        found: int | None = self._world.real.place(tenant, spec)
        return found

    def __getattr__(self, verb: str) -> Any:
        async def call(*args: Any, **kwargs: Any) -> Any:
            return await self._call(verb, args, kwargs)

        setattr(self, verb, call)
        return call

    async def _call(self, verb: str, args: Any, kwargs: Any) -> Any:
        world = self._world
        asked_us = self._clock.monotonic_us()
        if self.cut or world.store_away:
            await asyncio.sleep(0.01)
            raise Unavailable(f"{verb}: the store is away")
        armed = self._take_armed(verb) if self.armed else None
        if armed is None and world.aimed:
            armed = self._take_aimed(world.foreseen(verb, args, kwargs))
        if armed is not None:
            await self._before(verb, armed, args, kwargs)
        delay_s = self._latency() + world.slow_s
        if delay_s:
            await asyncio.sleep(delay_s)
            if self.cut or world.store_away:
                raise Unavailable(f"{verb}: the store went away")
        if world.harm is not None and world.harm.refuses(verb, args):
            raise Unavailable(f"{verb}: refused")
        try:
            answer = await world.carry_out(verb, armed and armed.fault, args, kwargs)
        finally:
            seen_at = world.store_now()
        if world.harm is not None and world.harm.loses(verb, answer):
            raise Unavailable(f"{verb}: the answer was lost")
        if armed is not None:
            await self._after(verb, armed, args, kwargs)
        if delay_s:
            await asyncio.sleep(delay_s)
        if self.deaf:
            raise Unavailable(f"{verb}: no answer came back")
        self._clock.seen(seen_at, asked_us)
        if verb == "claim":
            self._look_at_claim(answer, seen_at)
        return answer

    def _look_at_claim(self, claim: Any, now_at: int) -> None:
        """I13: whoever got nothing waits before asking again, for a hint at least."""
        in_vain = not claim.progressed and now_at - self._claimed_at < _AT_ONCE_US
        self._in_vain = self._in_vain + 1 if in_vain else 0
        self._claimed_at = now_at
        if self._in_vain == _MOST_IN_VAIN:
            self._world.complain(f"I13 {self._machine.name} claims again and again, and gets nothing")

    def _take_armed(self, verb: str) -> Armed | None:
        for place, armed in enumerate(self.armed):
            if armed.verb in (verb, "*"):
                return self.armed.pop(place)
        return None

    def _take_aimed(self, transitions: set[str]) -> Armed | None:
        for place, aimed in enumerate(self._world.aimed if transitions else ()):
            if aimed.verb in transitions:
                return self._world.aimed.pop(place)
        return None

    async def _before(self, verb: str, armed: Armed, args: Any, kwargs: Any) -> None:
        world, machine = self._world, self._machine
        world.strike(armed.fault, machine.name)
        match armed.fault:
            case Fault.REFUSED_CALL:
                raise Unavailable(f"{verb}: refused")
            case Fault.CRASH_BEFORE_CALL:
                world.crash(machine, armed.seconds)
                await for_ever()
            case Fault.LATE_CALL:
                world.outside(self._carry_out_late(verb, armed, args, kwargs))
                raise Unavailable(f"{verb}: no answer in time")
            case Fault.SLOW_CALL:
                await asyncio.sleep(min(armed.seconds, _SLOWEST_S))
            case _:
                pass

    async def _after(self, verb: str, armed: Armed, args: Any, kwargs: Any) -> None:
        world, machine = self._world, self._machine
        match armed.fault:
            case Fault.LOST_ANSWER:
                raise Unavailable(f"{verb}: the answer was lost")
            case Fault.CRASH_AFTER_CALL:
                world.crash(machine, armed.seconds)
                await for_ever()
            case Fault.REPEATED_CALL:
                world.outside(self._carry_out_late(verb, armed, args, kwargs))
            case Fault.SLOW_CALL:
                await asyncio.sleep(min(armed.seconds, _SLOWEST_S))
            case Fault.PAUSE_IN_CALL:
                world.freeze(machine, armed.seconds)
                await asyncio.sleep(0)
            case _:
                pass

    async def _carry_out_late(self, verb: str, armed: Armed, args: Any, kwargs: Any) -> None:
        self._world.in_flight += 1
        await asyncio.sleep(armed.seconds)
        try:
            await self._world.carry_out(verb, armed.fault, args, kwargs)
        except Exception:  # whatever it says, nobody hears it
            return
        finally:
            self._world.in_flight -= 1
