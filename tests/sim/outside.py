"""The world that runs have their effects on, and its ledger: the only witness that the checker believes about effects.

It honours the idempotency key, as targets are asked to; the ledger also knows how often the effect would have happened
without it. How it behaves towards a run is computed from the run itself, so that the same story is the same story whoever else is in it.
"""

import asyncio
from collections.abc import Callable, Coroutine
from functools import lru_cache
from typing import Any, NamedTuple, Protocol
from zlib import crc32

from hourhand.core.identity import RunKey
from hourhand.core.model import HttpTarget
from hourhand.core.report import Report, ReportOutcome, report_token
from hourhand.core.retry import Failure, Outcome
from hourhand.core.run import ClaimedRun
from hourhand.errors import Conflict, HourhandError, NotFound, Unavailable
from hourhand.ports.target import OK, Result
from tests.sim.machine import Machine, acting_machine, for_ever
from tests.sim.network import Armed
from tests.sim.script import REPORT_FAULTS, TARGET_FAULTS, Fault

_FAILED = Result(outcome=Outcome.FAILED, detail={"error": "it broke"})
_UNSENT = Result(outcome=Outcome.FAILED, detail={"error": "no route"}, failure=Failure(before_sending=True))
_SKIPPED = Result(outcome=Outcome.SKIPPED, detail={"reason": "holiday"})
_ACCEPTED = Result(outcome=Outcome.ACCEPTED, detail={"response": {"status": 202}})
_NEVER_S = 10_000.0


class Behaviour(NamedTuple):
    """How the world treats the runs of a job."""

    fails: float = 0.0
    unsent: float = 0.0
    skips: float = 0.0
    ms: float = 0.0
    accepts: float = 0.0
    kills: float = 0.0  # the machine, after so many milliseconds


class Call(NamedTuple):
    """An attempt, as the world saw it begin."""

    key: RunKey
    run_id: str
    fence: int
    due_at: int
    at: int  # the latest that anybody may have taken for the time
    place: int  # among all transitions: what was committed before
    trigger: int
    began_at: int  # on the store's clock


class Effect(NamedTuple):
    """Something that was done."""

    key: RunKey
    fence: int
    once_only: bool


class Around(Protocol):
    """What the outside needs of the world."""

    def strike(self, fault: Fault, machine: str) -> None:
        """A fault has struck."""
        ...

    def crash(self, machine: Machine, for_s: float) -> None:
        """Kill a machine."""
        ...

    def outside(self, work: Coroutine[Any, Any, Any]) -> None:
        """Do something on no machine."""
        ...

    def latest(self) -> int:
        """The latest that anybody may take for the time."""
        ...

    def store_now(self) -> int:
        """The store's time."""
        ...

    def begins(self, run: ClaimedRun) -> None:
        """An attempt begins."""
        ...

    async def report_key(self, job_id: int) -> bytes:
        """What tokens are made with."""
        ...

    async def send_report(self, key: RunKey, token: str, report: Report) -> None:
        """Bring a report to whoever takes reports."""
        ...


class Outside:
    """A target for every kind of job."""

    def __init__(self, world: Around, seed: int, place: Callable[[], int]) -> None:
        self._world = world
        self._seed = seed
        self._place = place
        self.calls: list[Call] = []
        self.effects: list[Effect] = []
        self.applied: dict[RunKey, int] = {}  # under which fence
        self.armed: list[Armed] = []
        self.calm = False

    async def execute(self, run: ClaimedRun) -> Result:
        """Carry out one attempt, in the mood that the run meets."""
        key = run.key
        self._world.begins(run)
        self.calls.append(
            Call(
                key,
                run.run_id,
                run.fence,
                run.due_at,
                self._world.latest(),
                self._place(),
                run.trigger_code,
                self._world.store_now(),
            )
        )
        target = run.spec.target
        text = target.url if isinstance(target, HttpTarget) else target.function  # type: ignore[union-attr]
        behaviour = behaviour_in(text)
        armed = self._struck(bool(behaviour.accepts)) if self.armed else None
        if armed is not None and armed.fault is Fault.CRASH_BEFORE_EFFECT:
            await self._crash(armed.seconds)
        if armed is not None and armed.fault is Fault.RAISING_TARGET:
            raise RuntimeError("the target's code is wrong")
        if behaviour.kills:
            await asyncio.sleep(behaviour.kills / 1000)
            await self._crash(0.1)
        mood = self._mood(run)
        if mood < behaviour.unsent:
            return _UNSENT
        if mood < behaviour.fails:
            return _FAILED
        if behaviour.ms:
            await asyncio.sleep(behaviour.ms / 1000)
        if armed is not None and armed.fault is Fault.HANGING_TARGET:
            await asyncio.sleep(_NEVER_S)
        if mood < behaviour.skips:
            return _SKIPPED
        if behaviour.accepts:
            return await self._accept(run, armed)
        return await self._apply(run, armed)

    async def close(self) -> None:
        """There is nothing to close."""

    async def _apply(self, run: ClaimedRun, armed: Armed | None) -> Result:
        self._happen(run)
        if armed is not None:
            match armed.fault:
                case Fault.CRASH_AFTER_EFFECT:
                    await self._crash(armed.seconds)
                case Fault.FAILURE_AFTER_EFFECT:
                    return _FAILED
                case Fault.STUBBORN_TARGET:
                    await _ignore_everybody(armed.seconds)
        return OK

    async def _accept(self, run: ClaimedRun, armed: Armed | None) -> Result:
        """202: it is done later, and then told."""
        after_s = 0.2 + self._mood(run, salt=1) * 2
        report = self._report(run, after_s, armed)
        if armed is not None and armed.fault is Fault.CRASH_AFTER_EFFECT:
            self._world.outside(report)
            await self._crash(armed.seconds)
        if armed is not None and armed.fault is Fault.EARLY_REPORT:
            self._world.outside(self._report(run, 0, armed))
            report.close()
            await asyncio.sleep(0.5)
            return _ACCEPTED
        self._world.outside(report)
        return _ACCEPTED

    async def _report(self, run: ClaimedRun, after_s: float, armed: Armed | None) -> None:
        fault = None if armed is None else armed.fault
        await asyncio.sleep(run.spec.timeout_us / 1e6 + 3 if fault is Fault.LATE_REPORT else after_s)
        fails = self._mood(run, salt=2) < 0.15
        if not fails:
            self._happen(run)
        if fault is Fault.LOST_REPORT:
            return
        if not fails and self._mood(run, salt=3) < 0.3:
            progress = Report(
                attempt=run.fence, outcome=ReportOutcome.PROGRESS, fraction=0.5, extend_us=2_000_000
            )
            await self._send(run, progress)
        outcome = ReportOutcome.FAILED if fails else ReportOutcome.SUCCEEDED
        for _ in range(2 if fault is Fault.REPEATED_REPORT else 1):
            await self._send(run, Report(attempt=run.fence, outcome=outcome))

    async def _send(self, run: ClaimedRun, report: Report) -> None:
        """As a careful target does: again while nobody takes it."""
        token = report_token(await self._world.report_key(run.job_id), run.run_id, run.fence)
        for _ in range(5):
            try:
                await self._world.send_report(run.key, token, report)
            except (Unavailable, TimeoutError):
                await asyncio.sleep(0.7)
            except (Conflict, NotFound):
                return
            except HourhandError as error:
                raise AssertionError(f"a report was refused: {error.message}") from error
            else:
                return

    def _happen(self, run: ClaimedRun) -> None:
        once_only = run.spec.delivery.value == "at_most_once"
        self.effects.append(Effect(run.key, run.fence, once_only))
        self.applied.setdefault(run.key, run.fence)

    def _mood(self, run: ClaimedRun, salt: int = 0) -> float:
        text = f"{self._seed} {run.job_id} {run.scheduled_at} {run.fence} {salt}"
        return crc32(text.encode()) / 2**32

    def _struck(self, accepts: bool) -> Armed | None:
        for place, armed in enumerate(self.armed):
            if accepts and armed.fault in (Fault.FAILURE_AFTER_EFFECT, Fault.STUBBORN_TARGET):
                continue
            if accepts or armed.fault in TARGET_FAULTS:
                machine = acting_machine()
                self._world.strike(armed.fault, "" if machine is None else machine.name)
                return self.armed.pop(place)
            assert armed.fault in REPORT_FAULTS
        return None

    async def _crash(self, for_s: float) -> None:
        machine = acting_machine()
        assert machine is not None
        self._world.crash(machine, for_s)
        await for_ever()


@lru_cache(maxsize=1_000)
def behaviour_in(text: str) -> Behaviour:
    """What a target's name or address says of how it behaves."""
    words = [word.split("=") for word in text.rpartition("?")[2].split("&") if "=" in word]
    return Behaviour(**{name: float(value) for name, value in words})


async def _ignore_everybody(seconds: float) -> None:
    """Swallows every cancellation until its time is over."""
    loop = asyncio.get_running_loop()
    over_at = loop.time() + seconds
    while loop.time() < over_at:
        try:
            await asyncio.sleep(over_at - loop.time())
        except asyncio.CancelledError:
            continue
