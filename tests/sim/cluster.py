"""The cluster under test: processes wired as the product wires them, each on a machine of its own, with lives and deaths."""

import asyncio
import random
from collections.abc import Callable
from typing import Any

from hourhand.config.settings import SchedulerSettings, Settings, WorkerSettings
from hourhand.core.instant import SECOND_US
from hourhand.core.model import HttpTarget, PythonTarget
from hourhand.core.specification import SpecLimits
from hourhand.errors import Unavailable
from hourhand.ids import IdSource
from hourhand.services.backfills import Backfills
from hourhand.services.jobs import Jobs
from hourhand.services.log_writer import LogRouter
from hourhand.services.node import Node
from hourhand.services.progress import ProgressBoard
from hourhand.services.reports import Reports
from hourhand.services.room import Room
from hourhand.services.runs import Runs
from hourhand.stores.postgres.server_clock import ServerClock
from hourhand.telemetry import Telemetry
from hourhand.wiring.nodes import Nodes
from tests.sim.broker import BrokeredNodes, SimBroker
from tests.sim.machine import Machine, SimLoop
from tests.sim.network import Armed, Link
from tests.sim.people import Api
from tests.sim.script import POOLS, Mix

SEGMENTS = 4
LEAD_US = 2 * SECOND_US
KEEP_US = 30 * 86_400 * SECOND_US


class Life:
    """One process, from start to death."""

    def __init__(self, place: "Place", machine: Machine, link: Link) -> None:
        self.place = place
        self.machine = machine
        self.link = link
        self.node: Node | None = None
        self.api: Api | None = None
        self.started = False
        self.drifts = place.drift != 0
        self.leaving = False

    @property
    def alive(self) -> bool:
        """Whether it can be asked for something."""
        return not (self.machine.dead or self.leaving)


class Place:
    """Where one process after another lives."""

    def __init__(self, number: int, kind: str) -> None:
        self.number = number
        self.kind = kind
        self.lives = 0
        self.life: Life | None = None
        self.skew_us = 0  # of its machine's wall clock
        self.drift = 0.0  # of its monotonic one
        self.armed: list[Armed] = []  # for whoever lives there when such a call is made
        self.hint_faults: list[Armed] = []

    def does(self, kind: str) -> bool:
        """Whether it is what a fault looks for."""
        return self.kind == kind or (self.kind == "both" and kind in ("scheduler", "worker"))


class Cluster:
    """All places, and how a process is put together."""

    def __init__(self, world: Any, loop: SimLoop, mix: Mix, seed: int) -> None:
        self._world = world
        self._loop = loop
        self._mix = mix
        self._seed = seed
        self.telemetry = Telemetry()
        kinds = [*mix.machines, *("api",) * mix.apis]
        self.places = [Place(number, kind) for number, kind in enumerate(kinds)]
        apis = [place for place in self.places if place.kind == "api"]
        for place in apis:
            place.armed = apis[0].armed  # whichever of them the next such request comes to
        self.broker = SimBroker(loop, seed) if mix.brokered else None
        self._settings = Settings(
            scheduler=SchedulerSettings(segments=SEGMENTS, horizon_us=mix.horizon_us, lead_us=LEAD_US),
            worker=WorkerSettings(concurrency=mix.room, pools=POOLS),
        )

    @property
    def lives(self) -> list[Life]:
        """Whoever has not died."""
        return [one.life for one in self.places if one.life is not None and not one.life.machine.dead]

    def begin(self, place: Place) -> Life:
        """A new process, which will be there as soon as the store answers."""
        place.lives += 1
        name = f"{place.kind}-{place.number}.{place.lives}"
        machine = Machine(self._loop, name)
        clock = self._clock(place)
        link = Link(self._world, machine, clock, self._latency(name))
        link.armed, link.hint_faults = place.armed, place.hint_faults
        life = place.life = Life(place, machine, link)
        ids = IdSource(clock, seed=hash_of(self._seed, name))
        if place.kind == "api":
            life.api = self._api(link, clock, ids)
            life.started = True
        else:
            machine.start(self._live(life, clock, ids))
        return life

    async def stop(self, life: Life, patience_us: int) -> None:
        """SIGTERM, and the drain that follows."""
        life.leaving = True
        if life.node is not None and life.started:
            await life.node.stop(patience_us)
        life.machine.kill()

    async def _live(self, life: Life, clock: ServerClock, ids: IdSource) -> None:
        outside = self._world.target
        parts: dict[str, Any] = {
            "settings": self._settings,
            "ids": ids,
            "telemetry": self.telemetry,
            "targets": {PythonTarget: outside, HttpTarget: outside},
            "room": Room(self._mix.room),
            "logs": LogRouter(),
            "board": ProgressBoard(),
        }
        nodes = Nodes(**parts) if self.broker is None else BrokeredNodes(**parts, broker=self.broker)
        kind = life.place.kind
        life.node = node = nodes.shared(
            life.link,
            clock,
            plans=kind in ("scheduler", "both"),
            works=kind in ("worker", "both"),
            settled=lambda batch: None,
            noted=lambda run, progress: None,
            hints_arrive=lambda: self._mix.hints_arrive,
        )
        while True:
            try:
                await node.start()
            except Unavailable:
                await asyncio.sleep(0.5)
            else:
                life.started = True
                return

    def _api(self, link: Any, clock: ServerClock, ids: IdSource) -> Api:
        return Api(
            store=link,
            jobs=Jobs(store=link, ids=ids, clock=clock, limits=SpecLimits()),
            runs=Runs(store=link, clock=clock, horizon_us=self._mix.horizon_us),
            backfills=Backfills(store=link, ids=ids, clock=clock, keep_us=KEEP_US),
            reports=Reports(store=link),
        )

    def _clock(self, place: Place) -> ServerClock:
        loop, rate = self._loop, 1 + place.drift
        begun_us = place.number * 7_777_777_777  # each machine counts from a boot of its own

        def monotonic_us() -> int:
            return begun_us + int(loop.microseconds() * rate)

        return ServerClock(monotonic_us, lambda: self._world.store_now() + place.skew_us)

    def _latency(self, name: str) -> Callable[[], float]:
        draw = random.Random(f"latency {self._seed} {name}").random
        often = self._mix.latency

        def latency() -> float:
            return 0.001 + draw() * 0.03 if draw() < often else 0.0

        return latency


def hash_of(*parts: Any) -> int:
    """The same number for the same words, in every process."""
    return random.Random(" ".join(map(str, parts))).getrandbits(40)
