"""One seed's story from beginning to end: trouble for a while, then everything heals, then the books are checked.

`run_seed` is what others build on: it answers a `Report` and never raises for what the simulated system does wrong.
"""

import asyncio
import gc
import hashlib
import io
import logging
import warnings
from collections import Counter
from collections.abc import Coroutine, Sequence
from contextvars import Context
from typing import Any

import msgspec
import structlog

from hourhand import ids
from hourhand.core.identity import RunKey
from hourhand.core.instant import SECOND_US
from hourhand.core.lifecycle import Phase
from hourhand.core.report import Report as RunReport
from hourhand.core.run import ClaimedRun
from hourhand.errors import Unavailable
from hourhand.ports.store import Hint
from hourhand.stores.sqlite import SqliteStore
from tests.sim import checker
from tests.sim.cluster import KEEP_US, LEAD_US, SEGMENTS, Cluster, Life, Place
from tests.sim.flood import flood
from tests.sim.machine import Machine, SimLoop, acting_machine
from tests.sim.neighbours import neighbours
from tests.sim.network import Armed
from tests.sim.outside import Outside
from tests.sim.people import Api, People
from tests.sim.script import (
    CALL_FAULTS,
    HINT_FAULTS,
    REPORT_FAULTS,
    SAME_CALL,
    TARGET_FAULTS,
    Fault,
    Item,
    Script,
    write_script,
)
from tests.sim.watch import Step, Transition, Watch, WatchedEngine

MEETING_S = 15.0
_LEAST_QUIET_S = 35
_MOST_QUIET_S = 900
_REPORT_PATIENCE_S = 5.0
_UNNOTICED_US = 40 * SECOND_US  # by a node that hears nothing from the store: longer than its lease
_MOST_DRIFT_US = 15_000  # that a clock may have gone wrong between two answers
_CALL_S = 200e-6  # that every call takes at least
_REFUSED_BY_ID = frozenset({"add_backfill"})  # when it comes a second time: whoever asks gives the id
_NOWHERE = Context()  # of no machine
_IN_HAND = ("running", Phase.EXECUTING)


class Report(msgspec.Struct, kw_only=True):
    """What came of a seed."""

    seed: int
    violations: list[str]
    transitions: Counter[Transition]
    faults: Counter[Fault]
    pairs: Counter[tuple[Transition, Fault]]
    asked: Counter[str]
    answers: Counter[str]
    calls: int
    effects: int
    simulated_s: float
    digest: str
    trace: str
    by_message: int = 0  # runs that were claimed because of messages, where there is a broker

    @property
    def total(self) -> int:
        """How many transitions there were."""
        return self.transitions.total()


def run_seed(seed: int, *, size: float = 1.0, brokered: bool = False) -> Report:
    """Simulate a seed and check it."""
    return run_script(write_script(seed, size=size, brokered=brokered))


def run_script(script: Script) -> Report:
    """Simulate a story, whole or with items left out."""
    ids._drawing.seed(script.seed)  # the jitter of pauses
    config = structlog.get_config()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    loop = SimLoop()
    asyncio.set_event_loop(loop)
    gc.disable()  # nothing of a dead machine is unwound before the end; and looking for it takes time
    gc.freeze()  # what was there before is not looked through at the end
    with warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore", "coroutine .* was never awaited"
        )  # what a dead machine had not begun
        try:
            return _live(World(loop, script), loop)
        finally:
            loop.end()
            gc.unfreeze()
            gc.enable()
            asyncio.set_event_loop(None)
            structlog.configure(**config)


def _live(world: "World", loop: SimLoop) -> Report:
    try:
        loop.run_until_complete(world.live())
    except Exception as error:
        world.violations.append(f"SIM {type(error).__name__}: {error}")
    world.watch.told = lambda verb, steps: None
    world.connection.close()  # which lets go of the watch, and so of all there was
    return world.report()


class StoreClock:
    """The store's wall clock, which people set anew."""

    def __init__(self, loop: SimLoop, begins_at: int) -> None:
        self._loop = loop
        self._begins_at = begins_at
        self.offset_us = 0
        self._before: list[tuple[int, int]] = []  # until when somebody may not have noticed, and what it was
        self._leapt_until_us = 0  # the same of the last time that it was set forward

    def now(self) -> int:
        """The present instant."""
        return self._begins_at + self._loop.microseconds() + self.offset_us

    def set_anew(self, by_us: int) -> None:
        """Somebody sets it."""
        if by_us < 0:
            self._before.append((self._loop.microseconds() + _UNNOTICED_US, self.offset_us))
        else:
            self._leapt_until_us = self._loop.microseconds() + _UNNOTICED_US
        self.offset_us += by_us

    @property
    def has_leapt(self) -> bool:
        """Whether leases and deadlines may have ended before their time, unnoticed by whoever counts on them."""
        return self._loop.microseconds() < self._leapt_until_us

    def latest(self) -> int:
        """What it shows, or would show to whoever has not noticed yet that it was set back."""
        passed_us = self._loop.microseconds()
        offsets = [offset_us for until_us, offset_us in self._before if until_us >= passed_us]
        return self._begins_at + passed_us + max([self.offset_us, *offsets])


class World:
    """Everything there is."""

    def __init__(self, loop: SimLoop, script: Script) -> None:
        self._loop = loop
        self._script = script
        self.clock = StoreClock(loop, script.mix.begins_at)
        self.real = SqliteStore.in_memory(
            clock=self.clock, segments=SEGMENTS, lead_us=LEAD_US, keep_us=KEEP_US
        )
        self.connection = self.real._engine._connection  # type: ignore[attr-defined]
        self.watch = Watch(self.connection)
        self.watch.told = self._told
        self.real._engine = WatchedEngine(self.real._engine, self.watch)
        self.real.subscribe(self._hinted)
        self.target = Outside(self, script.seed, lambda: self._steps)
        self.people = People()
        self.cluster = Cluster(self, loop, script.mix, script.seed)
        self.store_away = False
        self.slow_s = 0.0
        self.in_flight = 0
        self.aimed: list[Armed] = []
        self.harm: Any = None
        self.healing = False
        self._ending = False  # nobody is started any more
        self.healed_at = 0
        self.violations: list[str] = []
        self.faults: Counter[Fault] = Counter()
        self.pairs: Counter[tuple[Transition, Fault]] = Counter()
        self.succeeded: dict[tuple[int, int], int] = {}  # which transition that was
        self.requeued: Counter[tuple[int, int]] = Counter()
        self.discarded: Counter[tuple[int, int]] = Counter()
        self._struck_s: dict[Fault, float] = {}
        self._call_fault: Fault | None = None
        self._steps = 0
        self._trace = io.StringIO()
        self._errands: set[asyncio.Task[Any]] = set()

    def report(self) -> Report:
        """What came of it."""
        trace = self._trace.getvalue()
        return Report(
            seed=self._script.seed,
            violations=[*self.watch.violations, *self.violations],
            transitions=self.watch.transitions,
            faults=self.faults,
            pairs=self.pairs,
            asked=self.people.asked,
            answers=self.people.answers,
            calls=len(self.target.calls),
            effects=len(self.target.effects),
            simulated_s=self._loop.time(),
            digest=hashlib.sha256(trace.encode()).hexdigest(),
            trace=trace,
            by_message=0 if self.cluster.broker is None else self.cluster.telemetry._queued.by_message,
        )

    async def live(self) -> None:
        """Trouble, healing, quiet, the final read."""
        for place in self.cluster.places:
            self.cluster.begin(place)
        for item in self._script.items:
            await asyncio.sleep(max(0.0, item.at_us / SECOND_US - self._loop.time()))
            self._note(f"item {item.number} {item.what}")
            if item.kind == "act":
                self._act(item)
            else:
                self._trouble(Fault(item.what), item.args)
        await asyncio.sleep(max(0.0, self._script.mix.span_us / SECOND_US - self._loop.time()))
        await self._heal()
        await checker.wait_for_quiet(self, _LEAST_QUIET_S, _MOST_QUIET_S)
        if self._script.mix.flood is not None:
            self.violations += await flood(self, self._script.mix.flood)
        if self._script.mix.scene is not None:
            self.violations += await neighbours(self, self._script.mix.scene)
        self.violations += await checker.check(self)
        self._ending = True
        for life in self.cluster.lives:
            await asyncio.wait_for(life.machine.start(self.cluster.stop(life, 5 * SECOND_US)), 120)
        self.violations += checker.check_stopped(self)

    # --- time and truth

    def store_now(self) -> int:
        return self.clock.now()

    def latest(self) -> int:
        """The latest that anybody may take for the time."""
        life = next((one for one in self.cluster.lives if one.machine is acting_machine()), None)
        drifts = life is not None and life.drifts
        return self.clock.latest() + (_MOST_DRIFT_US if drifts else 0)

    def begins(self, run: ClaimedRun) -> None:
        """I11: nobody begins what has gone on elsewhere, whatever stood still for however long."""
        seen = self.watch.runs.get(tuple(run.key))
        holds = seen is not None and (seen.place, seen.phase, seen.fence) == (*_IN_HAND, run.fence)
        if not holds and not self.clock.has_leapt:
            self.complain(f"I11 {run.run_id} began under the fence {run.fence}, and had gone on elsewhere")

    async def carry_out(self, verb: str, fault: Fault | None, args: Any, kwargs: Any) -> Any:
        """Have the store do it; nothing else happens meanwhile."""
        self.watch.verb, self._call_fault = verb, fault
        self._loop.spend(_CALL_S)
        try:
            return await getattr(self.real, verb)(*args, **kwargs)
        except (
            Unavailable
        ) as error:  # which it never is by itself: a key or a check of a table refused something
            if verb not in _REFUSED_BY_ID:
                self.complain(f"I8 {verb} was refused by the tables: {error.message}")
            raise
        finally:
            self._call_fault = None

    def foreseen(self, verb: str, args: Any, kwargs: Any) -> set[str]:
        """The transitions that a call is likely to make; whether it does is another matter."""
        match verb:
            case "settle":
                return {f"RUNNING {settlement.event}" for settlement in args[1]}
            case "claim":
                idle = "SELECT 1 FROM running WHERE phase = 3 AND due_at <= ? LIMIT 1"
                again = self.connection.execute(idle, (self.clock.now() + LEAD_US,)).fetchone()
                return {"PENDING claim", "PENDING skip", *(["RETRYING claim"] if again else [])}
            case "cancel_run":
                seen = self.watch.runs.get(tuple(args[1]))
                return set() if seen is None else {f"{seen.state} cancel"}
            case "requeue":
                return {"FAILED requeue", *(["SKIPPED requeue"] if kwargs.get("downstream") else [])}
            case "discard":
                return {"FAILED discard"}
        return set()

    def _told(self, verb: str, steps: list[Step]) -> None:
        now_s = self._loop.time()
        met = [fault for fault, at_s in self._struck_s.items() if now_s - at_s <= MEETING_S]
        if self._call_fault in SAME_CALL and self._call_fault is not None:
            met.append(self._call_fault)
        now_us = int(now_s * 1_000_000)
        for (job_id, at), state, event, to, fence in steps:
            self._steps += 1
            for fault in met:
                self.pairs[(state, event), fault] += 1
            if to == "SUCCEEDED":
                self.succeeded[job_id, at] = self._steps
            elif event == "requeue":
                self.requeued[job_id, at] += 1
            elif event == "discard":
                self.discarded[job_id, at] += 1
            self._trace.write(f"{now_us} {verb} {job_id}@{at} {state} {event} {fence}\n")

    def _note(self, text: str) -> None:
        self._trace.write(f"{int(self._loop.time() * 1_000_000)} {text}\n")

    def _hinted(self, hint: Hint) -> None:
        for life in self.cluster.lives:
            life.link.hint(hint)

    # --- trouble

    def strike(self, fault: Fault, machine: str) -> None:
        """A fault has struck."""
        self.faults[fault] += 1
        if fault not in SAME_CALL:
            self._struck_s[fault] = self._loop.time()
        self._note(f"! {fault} {machine}")

    def complain(self, violation: str) -> None:
        """Something was done that nobody may do."""
        self.violations.append(violation)

    def crash(self, machine: Machine, for_s: float) -> None:
        """Kill a machine; another process is started in its place after a while."""
        machine.kill()
        place = next(
            one for one in self.cluster.places if one.life is not None and one.life.machine is machine
        )
        self.outside(self._begin_later(place, for_s))

    def freeze(self, machine: Machine, for_s: float) -> None:
        """Stop a machine for a while."""
        machine.freeze()
        self.outside(self._thaw_later(machine, for_s))

    def outside(self, work: Coroutine[Any, Any, Any]) -> None:
        """Do something on no machine."""
        task = asyncio.Task(work, loop=self._loop, context=_NOWHERE.copy())
        self._errands.add(task)
        task.add_done_callback(self._errand_over, context=_NOWHERE.copy())

    def _errand_over(self, task: "asyncio.Task[Any]") -> None:
        self._errands.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self.violations.append(f"SIM {type(error).__name__}: {error}")

    async def _begin_later(self, place: Place, after_s: float) -> None:
        await asyncio.sleep(0.1 if self.healing else after_s)
        if not self._ending and (place.life is None or place.life.machine.dead):
            self.cluster.begin(place)

    async def _thaw_later(self, machine: Machine, after_s: float) -> None:
        await asyncio.sleep(after_s)
        if not machine.dead:
            self._note(f"thaw {machine.name}")
            machine.thaw()

    def _pick(self, fraction: float, of: str | None = None) -> Life | None:
        lives = [life for life in self.cluster.lives if life.alive and (of is None or life.place.does(of))]
        return lives[int(fraction * len(lives))] if lives else None

    def _trouble(self, fault: Fault, args: dict[str, Any]) -> None:
        seconds: float = args["s"]
        life = self._pick(args["machine"], args.get("of"))
        if fault in TARGET_FAULTS or fault in REPORT_FAULTS:
            self.target.armed.append(Armed(fault, "", seconds))
        elif "transition" in args:
            self.aimed.append(Armed(fault, args["transition"], seconds))
        elif life is None:
            return
        elif fault in CALL_FAULTS:
            life.place.armed.append(Armed(fault, args["verb"], seconds))
        elif fault in HINT_FAULTS:
            life.place.hint_faults.append(Armed(fault, "", seconds))
        else:
            self.strike(fault, life.machine.name)
            self._strike_machine(fault, life, seconds)

    def _strike_machine(self, fault: Fault, life: Life, seconds: float) -> None:
        match fault:
            case Fault.CRASH:
                self.crash(life.machine, seconds)
            case Fault.CRASH_OF_ALL:
                for one in self.cluster.lives:
                    self.crash(one.machine, seconds)
            case Fault.PAUSE:
                self.freeze(life.machine, seconds)
            case Fault.PARTITION | Fault.DEAF_PARTITION:
                self.outside(self._cut_off(life, "cut" if fault is Fault.PARTITION else "deaf", seconds))
            case Fault.STOP:
                self.outside(self._stop_and_begin(life, seconds))
            case Fault.SKEWED_CLOCK:
                life.place.skew_us = int(seconds * SECOND_US)
                self.crash(life.machine, 0.2)
            case Fault.DRIFTING_CLOCK:
                life.place.drift = 0.0004 if seconds > 3 else -0.0004
                self.crash(life.machine, 0.2)
            case Fault.STORE_AWAY:
                self.outside(self._store_away(min(seconds, 20)))
            case Fault.SLOW_STORE:
                self.outside(self._slow_store(seconds))
            case Fault.CLOCK_FORWARD:
                self.clock.set_anew(int(seconds * SECOND_US))
            case Fault.CLOCK_BACK:
                self.clock.set_anew(-int(seconds * SECOND_US))
            case _:
                raise AssertionError(f"nobody knows how to do {fault}")

    async def _cut_off(self, life: Life, how: str, for_s: float) -> None:
        setattr(life.link, how, True)
        await asyncio.sleep(for_s)
        setattr(life.link, how, False)

    async def _store_away(self, for_s: float) -> None:
        self.store_away = True
        await asyncio.sleep(for_s)
        self.store_away = False

    async def _slow_store(self, for_s: float) -> None:
        self.slow_s = 1.2 if for_s > 6 else 0.4
        await asyncio.sleep(min(for_s, 15))
        self.slow_s = 0.0

    async def _stop_and_begin(self, life: Life, for_s: float) -> None:
        stopping = life.machine.start(self.cluster.stop(life, int(for_s / 4 * SECOND_US)))
        await asyncio.wait([stopping], timeout=60)
        if not life.machine.dead:
            life.machine.kill()  # SIGKILL after the patience of whoever stops it
        await self._begin_later(life.place, 0.2)

    async def _heal(self) -> None:
        """From here on nothing goes wrong."""
        self._note("heal")
        self.healing = True
        self.healed_at = self.clock.now()
        self.store_away, self.slow_s = False, 0.0
        self.target.armed.clear()
        self.aimed.clear()
        for place in self.cluster.places:
            place.skew_us, place.drift = 0, 0.0
            place.armed.clear()
            place.hint_faults.clear()
            life = place.life
            if life is None or life.machine.dead:
                self.cluster.begin(place)
                continue
            life.link.cut = life.link.deaf = False
            if life.machine.frozen:
                life.machine.thaw()
        await checker.calm_down(self)

    # --- people

    def _act(self, item: Item) -> None:
        lives = [life for life in self.cluster.lives if life.api is not None and not life.machine.frozen]
        if lives:
            life = lives[item.args["api"] % len(lives)]
            assert life.api is not None
            life.machine.start(self.people.act(life.api, item))

    async def report_key(self, job_id: int) -> bytes:
        key = await self.real.report_key(job_id)
        assert key is not None
        return key

    async def send_report(self, key: RunKey, token: str, report: RunReport) -> None:
        """To some API process; one that dies answers nothing."""
        lives = [life for life in self.cluster.lives if life.api is not None]
        if not lives:
            raise Unavailable("nobody listens")
        life = lives[key.scheduled_at % len(lives)]
        assert life.api is not None
        answer = self._loop.create_future()
        life.machine.start(_answer(life.api, key, token, report, answer))
        await asyncio.wait_for(answer, _REPORT_PATIENCE_S)


async def _answer(
    api: Api, key: RunKey, token: str, report: RunReport, answer: "asyncio.Future[None]"
) -> None:
    try:
        await api.reports.take(key, token, report)
    except Exception as error:
        if not answer.done():
            answer.set_exception(error)
    else:
        if not answer.done():
            answer.set_result(None)


def without(script: Script, numbers: Sequence[int]) -> Script:
    """The same story with some items left out."""
    gone = frozenset(numbers)
    return script._replace(items=tuple(item for item in script.items if item.number not in gone))
