"""What will happen in a simulation, drawn from its seed beforehand: who lives, what people do, what goes wrong.

Everything is an item of one list, so that a failing story can be told again with some of it left out. Each seed draws
its own mix: some faults and features often, others not at all, since what is always there hides what is rare.
"""

import random
from enum import StrEnum
from typing import Any, NamedTuple

from hourhand.core.instant import DAY_US, HOUR_US, SECOND_US
from hourhand.core.lifecycle import TRANSITIONS, State
from hourhand.core.model import (
    CronTiming,
    Delivery,
    EveryTiming,
    HttpTarget,
    JobSpec,
    Misfire,
    MisfirePolicy,
    OnceTiming,
    Overlap,
    Priority,
    PythonTarget,
    Retry,
    Timing,
)

POOLS = ("default", "other")
TENANTS = ("a", "b", "c")
SCENES = ("poison", "uncommitted", "unanswered")


class Fault(StrEnum):
    """Everything that can go wrong, by name."""

    # one call of the store
    REFUSED_CALL = "refused call"
    LOST_ANSWER = "lost answer"
    LATE_CALL = "late call"  # the caller has given up, and it happens all the same
    REPEATED_CALL = "repeated call"
    SLOW_CALL = "slow call"
    CRASH_BEFORE_CALL = "crash before call"
    CRASH_AFTER_CALL = "crash after call"
    PAUSE_IN_CALL = "pause in call"
    # a machine
    CRASH = "crash"
    CRASH_OF_ALL = "crash of all"
    PAUSE = "pause"
    PARTITION = "partition"
    DEAF_PARTITION = "one-way partition"
    STOP = "stop"
    SKEWED_CLOCK = "skewed clock"
    DRIFTING_CLOCK = "drifting clock"
    # the store
    STORE_AWAY = "store away"
    SLOW_STORE = "slow store"
    CLOCK_FORWARD = "clock forward"
    CLOCK_BACK = "clock back"
    # messages
    LOST_HINT = "lost hint"
    REPEATED_HINT = "repeated hint"
    LATE_HINT = "late hint"
    # the outside world
    CRASH_BEFORE_EFFECT = "crash before effect"
    CRASH_AFTER_EFFECT = "crash after effect"
    FAILURE_AFTER_EFFECT = "failure after effect"
    HANGING_TARGET = "hanging target"
    STUBBORN_TARGET = "stubborn target"
    RAISING_TARGET = "raising target"
    LOST_REPORT = "lost report"
    REPEATED_REPORT = "repeated report"
    EARLY_REPORT = "early report"
    LATE_REPORT = "late report"


CALL_FAULTS = tuple(Fault)[:8]
# These meet the transitions of the call that they strike; the others, all that happen within some seconds.
SAME_CALL = frozenset(
    {
        Fault.LOST_ANSWER,
        Fault.LATE_CALL,
        Fault.REPEATED_CALL,
        Fault.SLOW_CALL,
        Fault.CRASH_AFTER_CALL,
        Fault.PAUSE_IN_CALL,
    }
)
HINT_FAULTS = (Fault.LOST_HINT, Fault.REPEATED_HINT, Fault.LATE_HINT)
TARGET_FAULTS = tuple(Fault)[-10:-4]
REPORT_FAULTS = tuple(Fault)[-4:]

_WORKER_VERBS = (
    "claim",
    "claim",
    "settle",
    "settle",
    "settle",
    "renew_node",
    "held_runs",
    "cancel_asked",
    "*",
)
_SCHEDULER_VERBS = (
    *("plan", "plan", "due_clocks", "hold_segments", "stray_runs", "settle", "judge_late", "hand_on_slots"),
    *("descend", "descend", "judge_waits", "tend_jobs", "end_skips", "feed_backfill", "*"),
)
_API_VERBS = (
    *("create_jobs", "change_job", "delete_job", "add_run", "cancel_run", "cancel_run", "rerun", "settle"),
    *(
        "requeue",
        "requeue",
        "requeue",
        "discard",
        "discard",
        "skip_time",
        "add_backfill",
        "change_backfill",
        "*",
    ),
)
_CALLS_OF = {"worker": _WORKER_VERBS, "scheduler": _SCHEDULER_VERBS, "api": _API_VERBS}


class Item(NamedTuple):
    """One thing that happens."""

    number: int
    at_us: int  # after the beginning
    kind: str  # "act" or "fault"
    what: str
    args: dict[str, Any]


class Mix(NamedTuple):
    """What a seed has more of than others, and what not at all."""

    machines: tuple[str, ...]  # "scheduler", "worker", "both"
    apis: int
    room: int  # runs in hand of a worker
    horizon_us: int
    hints_arrive: bool
    latency: float  # how many calls take some milliseconds
    begins_at: int
    span_us: int
    faults: tuple[Fault, ...]
    tenants: tuple[str, ...]
    pools: tuple[str, ...]
    priorities: tuple[Priority, ...]
    flood: str | None  # what kind of, at the end
    scene: str | None  # which run does harm to its neighbours, after that
    brokered: bool = False  # runs are offered through a broker that does everything wrong


class Script(NamedTuple):
    """All of it."""

    seed: int
    mix: Mix
    items: tuple[Item, ...]


# 2026-11-16T09:00Z; before a gap and a fold in Berlin; before half an hour's on Lord Howe; a leap day; New Year.
_BEGINNINGS = (
    *(1_794_819_600_000_000,) * 3,
    *(1_774_745_940_000_000, 1_792_889_940_000_000, 1_775_314_740_000_000),
    *(1_835_395_140_000_000, 1_798_761_540_000_000),
)
_CRONS = (
    "*/2 * * * * *",
    "*/5 * * * * *",
    "3-50/7 * * * * *",
    "* * * * *",
    "30 * * * * *",
    "0,20,41 */2 * * * *",
)
_ZONES = ("UTC", "UTC", "Europe/Berlin", "Australia/Lord_Howe", "Asia/Kathmandu")


def write_script(seed: int, *, size: float = 1.0, brokered: bool = False) -> Script:
    """The story of a seed; `size` makes it longer or shorter, `brokered` tells it with a broker in between."""
    script = _Author(seed, size).write()
    return script._replace(mix=script.mix._replace(brokered=brokered))


class _Author:
    def __init__(self, seed: int, size: float) -> None:
        self.seed = seed
        self.draw = random.Random(f"script {seed}")
        self.mix = self._mix(size)
        self.items: list[tuple[int, str, str, dict[str, Any]]] = []
        self.created: list[dict[str, Any]] = []
        self.busy = self.draw.choice((1, 1, 2))  # seconds between runs of most jobs
        # Some stories are about what is rare elsewhere: graphs that fail, and people who mend them on a bad line.
        self.mends = random.Random(f"mends {seed}").random() < _MENDING

    def write(self) -> Script:
        draw, span_us = self.draw, self.mix.span_us
        for _ in range(draw.randrange(80, 160)):
            self._create(draw.randrange(2 * SECOND_US))
        for _ in range(int(span_us / SECOND_US * draw.choice((0.7, 1.5, 2.5)))):
            self._act(draw.randrange(3 * SECOND_US, span_us))
        for _ in range(int(span_us / SECOND_US * draw.choice((4, 6, 8)))):
            self._fault(draw.randrange(SECOND_US, span_us))
        ordered = sorted(self.items, key=lambda item: item[0])
        return Script(self.seed, self.mix, tuple(Item(number, *item) for number, item in enumerate(ordered)))

    def _mix(self, size: float) -> Mix:
        draw = self.draw
        faults = tuple(fault for fault in Fault if draw.random() < 0.65) or (Fault.CRASH,)
        room = draw.choice((4, 30, 30, 200, 200))
        return Mix(
            machines=draw.choice(
                (
                    ("both", "both"),
                    ("both", "both", "both"),
                    ("scheduler", "worker", "worker"),
                    ("scheduler", "scheduler", "worker", "worker"),
                    ("scheduler", "both", "worker"),
                )
            ),
            apis=2,
            room=room,
            horizon_us=draw.choice((10, 20, 60)) * SECOND_US,
            hints_arrive=draw.random() < 0.7,
            latency=draw.choice((0.0, 0.1, 0.4)),
            begins_at=draw.choice(_BEGINNINGS),
            span_us=int(size * draw.choice((50, 70, 90)) * SECOND_US),
            faults=faults,
            tenants=draw.choice((TENANTS[:1], TENANTS[:2], TENANTS)),
            pools=draw.choice((POOLS[:1], POOLS)),
            priorities=draw.choice((tuple(Priority), tuple(Priority)[:2], tuple(Priority)[1:2])),
            flood=draw.choice((None, "free", "slots")) if room == 4 else None,
            scene=random.Random(f"scene {self.seed}").choice((None, None, None, *SCENES)),
        )

    # --- people

    def _create(self, at_us: int) -> None:
        draw = self.draw
        near = [one for one in self.created[-8:] if one["at_us"] < at_us and one["tenant"] is not None]
        family = draw.choice(near) if near and draw.random() < (0.6 if self.mends else 0.25) else None
        parents: list[int] = []
        if family is not None:
            kin = [one["name"] for one in near if one["family"] == family["family"]]
            parents = sorted(draw.sample(kin, min(len(kin), draw.choice((1, 1, 2)))))
        name = len(self.created)
        args = {
            "name": name,
            "tenant": family["tenant"] if family else draw.choice(self.mix.tenants),
            "spec": self._spec(self._timing(at_us)),
            "parents": parents,
            "family": family["family"] if family else name,
            "at_us": at_us,
            "paused": draw.random() < 0.05,
            "api": draw.randrange(8),
        }
        self.created.append(args)
        self.items.append((at_us, "act", "create", args))

    def _spec(self, timing: Timing) -> JobSpec:
        draw = self.draw
        mood = draw.choice(("", "", "", "fails=0.2", "fails=0.6", "unsent=0.3", "skips=0.2"))
        mood = draw.choice(("fails=0.4", "fails=0.7", "")) if self.mends else mood
        takes_ms = draw.choice((0, 0, 0, 0, 20, 300, 1500))
        behaviour = f"{mood}&ms={takes_ms}"
        target: Any = PythonTarget(function=behaviour)
        if draw.random() < 0.12:
            target = HttpTarget(url=f"https://outside.example/?accepts=1&{behaviour}")
        return JobSpec(
            timing=timing,
            target=target,
            pool=draw.choice(self.mix.pools),
            priority=draw.choice(self.mix.priorities),
            concurrency=draw.choice((1, 1, 2, 3, None)),
            overlap=draw.choice(list(Overlap)),
            misfire=Misfire(
                policy=draw.choice(list(MisfirePolicy)),
                grace_us=draw.choice((0, 5, 60)) * SECOND_US,
                limit=draw.choice((1, 5, 100)),
            ),
            jitter_us=draw.choice((0, 0, 0, 1_500_000)),
            retry=Retry(
                max=draw.choice((0, 1, 2, 3)),
                first_us=draw.choice((0, 1, 3) if self.mends else (0, 1, 1)) * SECOND_US,
                factor=1.2,
            ),
            timeout_us=draw.choice((2, 4, 15)) * SECOND_US,
            delivery=draw.choice((Delivery.AT_LEAST_ONCE,) * 4 + (Delivery.AT_MOST_ONCE,)),
            max_runs=draw.choice((None,) * 8 + (1, 7, 20)),
            starts_at=draw.choice((None,) * 9 + (self.mix.begins_at + draw.randrange(30) * SECOND_US,)),
            ends_at=draw.choice((None,) * 9 + (self.mix.begins_at + draw.randrange(15, 90) * SECOND_US,)),
        )

    def _timing(self, at_us: int) -> Timing:
        draw, begins_at = self.draw, self.mix.begins_at
        drawn = draw.random()
        if drawn < 0.7:
            interval_s = draw.choice((self.busy,) * 5 + (3, 5, 13, 60))
            phase_us = draw.choice((0, 0, draw.randrange(SECOND_US)))
            return EveryTiming(interval_us=interval_s * SECOND_US, phase_at=begins_at + phase_us)
        if drawn < 0.9:
            return CronTiming(expression=draw.choice(_CRONS), tz=draw.choice(_ZONES))
        return OnceTiming(at=begins_at + at_us + draw.randrange(-10, 60) * SECOND_US)

    def _act(self, at_us: int) -> None:
        draw = self.draw
        known = [one for one in self.created if one["at_us"] < at_us - SECOND_US]
        job = draw.choice(known)
        args: dict[str, Any] = {"job": job["name"], "api": draw.randrange(8), "pick": draw.random()}
        what = draw.choices(
            (
                "create",
                "update",
                "pause",
                "resume",
                "delete",
                "run_now",
                "run_down",
                "skip",
                "unskip",
                "backfill",
            ),
            (6, 8, 5, 6, 2, 8, 4, 9, 2, 3),
        )[0]
        if draw.random() < 0.45:
            what = draw.choices(
                ("requeue", "requeue_down", "discard", "rerun", "cancel", "turn_backfill", "rewire", "look"),
                (6, 8, 6, 6, 20, 3, 2, 2),
            )[0]
        if self.mends and draw.random() < 0.6:
            what = draw.choices(
                ("requeue_down", "discard", "cancel", "requeue", "run_down", "resume"), (10, 4, 16, 2, 3, 2)
            )[0]
        match what:
            case "create":
                self._create(at_us)
                return
            case "update":
                args |= {"spec": self._spec(self._timing(at_us)), "part": draw.choice(_PARTS)}
            case "pause":
                args["until_us"] = draw.choice((None, 5, 20))
            case "delete":
                args["cancel_running"] = draw.random() < 0.5
            case "skip":
                args |= {"key": draw.choice((None, "holiday")), "further": draw.choice((0, 0, 12, 40))}
            case "run_now" | "run_down" | "rerun":
                args["key"] = draw.choice((None, f"key-{draw.randrange(50)}"))
            case "cancel":
                args["state"] = draw.choice((State.RETRYING, State.RETRYING, State.PENDING, None))
            case "backfill":
                args |= {"back_s": draw.randrange(10, 90), "newest": draw.random() < 0.4}
                args["pace_us"] = draw.choice((None, 200_000))
            case "turn_backfill":
                args["action"] = draw.choice(("pause", "resume", "resume", "cancel"))
            case "rewire":
                kin = [one["name"] for one in known if one["family"] == job["family"]]
                args["parents"] = sorted(draw.sample(kin, min(2, len(kin))))
        self.items.append((at_us, "act", what, args))

    # --- trouble

    def _fault(self, at_us: int) -> None:
        draw = self.draw
        fault = draw.choices(self.mix.faults, [_WEIGHTS.get(one, 3) for one in self.mix.faults])[0]
        args: dict[str, Any] = {"machine": draw.random()}
        if fault in SAME_CALL and draw.random() < 0.6:
            state, event = draw.choice(list(TRANSITIONS))
            args |= {"transition": f"{state} {event}", "s": draw.choice(_AIMED_S)}
        elif self.mends and draw.random() < 0.4:
            fault = draw.choice(CALL_FAULTS)
            args |= {"of": "api", "verb": draw.choice(_MENDING_VERBS), "s": draw.choice((0.05, 0.5, 2.4))}
        elif fault in CALL_FAULTS:
            kind = draw.choice(("worker", "worker", "scheduler", "api", "api"))
            args |= {"of": kind, "verb": draw.choice(_CALLS_OF[kind]), "s": draw.choice(_SHORT_AND_LONG_S)}
            if fault in (Fault.PAUSE_IN_CALL, Fault.CRASH_AFTER_CALL, Fault.CRASH_BEFORE_CALL):
                args["s"] = draw.choice((1, 5, 40))
        elif fault in HINT_FAULTS:
            args["s"] = draw.choice((0.05, 1, 4))
        elif fault in TARGET_FAULTS or fault in REPORT_FAULTS:
            args["s"] = draw.choice((0.5, 6, 20))
        elif fault is Fault.CLOCK_FORWARD:
            args["s"] = draw.choice((2, 40, 40, 200, HOUR_US // SECOND_US))
        elif fault is Fault.CLOCK_BACK:
            args["s"] = draw.choice((0.3, 3, 20))
        elif fault is Fault.SKEWED_CLOCK:
            args["s"] = draw.choice((-HOUR_US, HOUR_US, -DAY_US, 5 * SECOND_US, -5 * SECOND_US)) // SECOND_US
        else:
            args["s"] = draw.choice((0.2, 2, 6, 12, 40))
            if fault is Fault.STOP:
                args["of"] = "worker"
        self.items.append((at_us, "fault", fault.value, args))


_MENDING = 0.25
_MENDING_VERBS = ("requeue", "requeue", "requeue", "discard", "cancel_run", "cancel_run", "*")
_PARTS = ("timing", "timing", "policies", "place", "concurrency", "target")
_AIMED_S = (0.02, 0.05, 0.5, 2.4, 12)  # the shortest before whoever gave up tries again
_SHORT_AND_LONG_S = (0.05, 0.5, 2.4, 4.5, 12, 45)  # 0.8 and 1.5 of both leases among them
_WEIGHTS = {
    Fault.CRASH_OF_ALL: 0.7,
    Fault.CRASH: 1.5,
    Fault.CLOCK_FORWARD: 0.4,
    Fault.CLOCK_BACK: 0.8,
    Fault.STORE_AWAY: 0.6,
    Fault.SLOW_STORE: 0.6,
    Fault.PAUSE: 1.5,
    Fault.CRASH_BEFORE_CALL: 1.5,
    Fault.LOST_ANSWER: 8,
    Fault.LATE_CALL: 8,
    Fault.REPEATED_CALL: 8,
    Fault.SLOW_CALL: 8,
    Fault.CRASH_AFTER_CALL: 4,
    Fault.PAUSE_IN_CALL: 4,
    Fault.PARTITION: 1,
    Fault.DEAF_PARTITION: 1,
    Fault.STOP: 5,
    Fault.SKEWED_CLOCK: 1,
    Fault.DRIFTING_CLOCK: 1,
    Fault.LOST_HINT: 8,
    Fault.REPEATED_HINT: 6,
    Fault.LATE_HINT: 6,
    Fault.CRASH_BEFORE_EFFECT: 1,
    Fault.CRASH_AFTER_EFFECT: 1.5,
}
