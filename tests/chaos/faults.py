"""What can go wrong in a cluster, each as a beginning and an end, drawn from a seed.

A fault takes its victims for itself: what is killed is not stopped as well, a server that restarts is not
paused. Faults of different victims overlap. `Weather` draws, begins and ends them, and remembers when.
"""

import random
import signal
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tests.chaos.api import now
from tests.chaos.calls import SECOND_US
from tests.chaos.cluster import Cluster, Part
from tests.servers.postgres import PostgresServer

HOUR_US = 3600 * SECOND_US
WORKER_LEASE_US = 30 * SECOND_US
DRAIN_S = 60.0
_DEAF_US = 10 * SECOND_US  # a process that has just begun does not heed signals yet

Victim = Part | PostgresServer


@dataclass(slots=True, kw_only=True)
class Fault:
    """Something wrong for a while."""

    kind: str
    victims: Sequence[Victim]
    hold_s: float
    begin: Callable[[], object]
    end: Callable[[], object] = lambda: None
    stands_still: bool = False  # a worker may wake up with runs that went on elsewhere
    begun_at: int = 0
    over_at: int = 0

    def __str__(self) -> str:
        names = [one.name if isinstance(one, Part) else "server" for one in self.victims]
        return f"{self.kind} of {', '.join(names)} for {self.hold_s:.1f} s"


@dataclass(slots=True)
class Weather:
    """The faults of one storm."""

    cluster: Cluster
    rng: random.Random
    at_once: int = 3
    now_wrong: list[Fault] = field(default_factory=list)
    over: list[Fault] = field(default_factory=list)

    def draw(self, kind: str | None = None) -> Fault | None:
        """Begin one more fault, of a kind or any; None when its victims are busy."""
        if len(self.now_wrong) >= self.at_once:
            return None
        name = kind or self.rng.choices(list(_KINDS), [weight for _, weight in _KINDS.values()])[0]
        fault = _KINDS[name][0](self.cluster, self.rng)
        fault.kind = name
        if len(fault.victims) == len(self.cluster.parts):
            self.clear(all_of_it=True)
        busy = {id(victim) for one in self.now_wrong for victim in one.victims}
        if any(id(victim) in busy for victim in fault.victims):
            return None
        for victim in fault.victims:
            assert not isinstance(victim, Part) or victim.ended() is None, f"{victim.name} ended by itself"
        fault.begun_at = now()
        fault.begin()
        self.now_wrong.append(fault)
        return fault

    def clear(self, *, all_of_it: bool = False) -> None:
        """End what has lasted long enough, or everything."""
        for fault in list(self.now_wrong):
            if all_of_it or now() > fault.begun_at + fault.hold_s * SECOND_US:
                fault.end()
                fault.over_at = now()
                self.now_wrong.remove(fault)
                self.over.append(fault)

    @property
    def counts(self) -> Counter[str]:
        """How many there were of each kind."""
        return Counter(fault.kind for fault in self.over)

    @property
    def disturbed(self) -> list[tuple[int, int]]:
        """From when to when something was wrong."""
        return [(fault.begun_at, fault.over_at) for fault in self.over]

    @property
    def paused(self) -> list[tuple[int, int]]:
        """When a worker stood still, and until what it held is surely over."""
        return [(fault.begun_at, fault.over_at + 10 * SECOND_US) for fault in self.over if fault.stands_still]

    @property
    def last_loss_at(self) -> int:
        """When a worker was last lost with all that it held."""
        lost = [
            fault.over_at
            for fault in self.over
            if any(isinstance(one, Part) and one.kind == "worker" for one in fault.victims)
            and ("kill" in fault.kind or fault.stands_still)
        ]
        return max(lost, default=0)


def kinds() -> list[str]:
    """Every kind there is."""
    return list(_KINDS)


# --- processes


def _kill(kind: str) -> "Maker":
    def make(cluster: Cluster, rng: random.Random) -> Fault:
        part = rng.choice(cluster.of(kind))
        return Fault(kind="", victims=[part], hold_s=rng.uniform(0.2, 6), begin=part.kill, end=part.spawn)

    return make


def _kill_all(cluster: Cluster, rng: random.Random) -> Fault:
    def kill() -> None:
        for part in cluster.parts:
            assert part.process is not None
            part.process.kill()
        for part in cluster.parts:
            part.kill()

    def spawn() -> None:
        for part in cluster.parts:
            part.spawn()

    return Fault(kind="", victims=cluster.parts, hold_s=rng.uniform(0.2, 4), begin=kill, end=spawn)


def _stop(kind: str, shortest_s: float, longest_s: float) -> "Maker":
    def make(cluster: Cluster, rng: random.Random) -> Fault:
        part = rng.choice(cluster.of(kind))
        return Fault(
            kind="",
            victims=[part],
            hold_s=rng.uniform(shortest_s, longest_s),
            begin=lambda: part.send(signal.SIGSTOP),
            end=lambda: part.send(signal.SIGCONT),
            stands_still=kind == "worker",
        )

    return make


def _drain(cluster: Cluster, rng: random.Random) -> Fault:
    part = rng.choice(cluster.parts)
    asked_at = now()

    def end() -> None:
        code = part.wait(DRAIN_S)
        unheeded = code == -signal.SIGTERM and asked_at - part.spawned_at < _DEAF_US
        assert code == 0 or unheeded, f"{part.name} ended with {code} when told to: {part.output()[-2000:]}"
        part.spawn()

    return Fault(
        kind="", victims=[part], hold_s=rng.uniform(0.2, 6), begin=lambda: part.send(signal.SIGTERM), end=end
    )


# --- the server


def _server(begin: Callable[[PostgresServer], object], end: Callable[[PostgresServer], object]) -> "Maker":
    def make(cluster: Cluster, rng: random.Random) -> Fault:
        server = rng.choice(cluster.servers)
        return Fault(
            kind="",
            victims=[server],
            hold_s=rng.uniform(0.1, 5),
            begin=lambda: begin(server),
            end=lambda: end(server),
        )

    return make


# --- the network between a process and the databases


def _cut(cluster: Cluster, rng: random.Random) -> Fault:
    part = rng.choice(cluster.parts)
    return Fault(kind="", victims=[part], hold_s=0, begin=lambda: [proxy.cut() for proxy in part.proxies])


def _cut_all(cluster: Cluster, rng: random.Random) -> Fault:
    def cut() -> None:
        for part in cluster.parts:
            for proxy in part.proxies:
                proxy.cut()

    return Fault(kind="", victims=[], hold_s=0, begin=cut)


def _partition(cluster: Cluster, rng: random.Random) -> Fault:
    """Nobody answers any more, and everybody is told so."""
    part = rng.choice(cluster.parts)

    def begin() -> None:
        for proxy in part.proxies:
            proxy.refuse()
            proxy.cut()

    return _healed(part, begin, rng.uniform(1, 10))


def _stall(cluster: Cluster, rng: random.Random) -> Fault:
    """Half open, or open and silent: nobody is told."""
    part = rng.choice(cluster.parts)
    way = rng.choice(("to_server", "to_client", "both"))
    return _healed(
        part, lambda: [proxy.stall(way) for proxy in part.proxies], rng.uniform(1, 12), stands_still=True
    )


def _delay(cluster: Cluster, rng: random.Random) -> Fault:
    part = rng.choice(cluster.parts)
    delay_ms = rng.choice((30, 100, 400))
    return _healed(part, lambda: [proxy.delay(delay_ms) for proxy in part.proxies], rng.uniform(2, 10))


def _unknown_commit(cluster: Cluster, rng: random.Random) -> Fault:
    """The next commit happens, and its answer is lost."""
    part = rng.choice(cluster.parts)

    def begin() -> None:
        for proxy in part.proxies:
            proxy.cut_after(b"COMMIT", reply=b"COMMIT")

    return _healed(part, begin, rng.uniform(0.5, 3))


def _healed(part: Part, begin: Callable[[], object], hold_s: float, *, stands_still: bool = False) -> Fault:
    return Fault(
        kind="",
        victims=[part],
        hold_s=hold_s,
        begin=begin,
        end=lambda: [proxy.heal() for proxy in part.proxies],
        stands_still=stands_still and part.kind == "worker",
    )


# --- clocks


def _clock(by_us: int) -> "Maker":
    def make(cluster: Cluster, rng: random.Random) -> Fault:
        part = rng.choice(cluster.parts)
        return Fault(
            kind="",
            victims=[part],
            hold_s=rng.uniform(2, 12),
            begin=lambda: part.dial.turn(by_us),
            end=lambda: part.dial.turn(-by_us),
        )

    return make


Maker = Callable[[Cluster, random.Random], Fault]

_KINDS: dict[str, tuple[Maker, float]] = {
    "kill worker": (_kill("worker"), 8),
    "kill scheduler": (_kill("scheduler"), 8),
    "kill api": (_kill("api"), 4),
    "kill all": (_kill_all, 3),
    "stop scheduler": (_stop("scheduler", 3.5, 9), 6),
    "stop worker": (_stop("worker", 1, 8), 3),
    "stop worker beyond its lease": (_stop("worker", 31, 36), 2),
    "stop api": (_stop("api", 1, 6), 2),
    "drain": (_drain, 8),
    "restart server": (_server(lambda one: one.halt("fast"), lambda one: one.start()), 4),
    "crash server": (_server(lambda one: one.halt("immediate"), lambda one: one.start()), 4),
    "kill server": (_server(lambda one: one.kill(), lambda one: one.start()), 4),
    "freeze server": (_server(lambda one: one.pause(), lambda one: one.resume()), 3),
    "cut": (_cut, 8),
    "cut all": (_cut_all, 4),
    "partition": (_partition, 6),
    "stall": (_stall, 6),
    "delay": (_delay, 4),
    "unknown commit": (_unknown_commit, 8),
    "clock an hour ahead": (_clock(HOUR_US), 3),
    "clock an hour behind": (_clock(-HOUR_US), 3),
}


def pause(seconds: float) -> None:
    """Let things go wrong for a moment."""
    threading.Event().wait(seconds)
