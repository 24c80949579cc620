"""A restless user: creates, pauses, resumes, edits, deletes and runs jobs now, while the process dies under it.

Keeps the ledger of what was acknowledged. A request without an answer is repeated until it has one, as a
careful client would, and its time of effect is then only known to lie between first sending and answer.
Of several APIs any is asked, at each repetition anew.
"""

import random
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tests.chaos.api import Answer, Api, NotSent, Unanswered, now
from tests.chaos.calls import SECOND_US, instant, spelled
from tests.chaos.ledger import Every, JobLife, Once, Rule, Seconds, Version
from tests.chaos.process import SinkProcess

LEAD_US = 4 * SECOND_US  # longer than usual, so that more is in hand ahead of its time at a kill
PATIENT = {"max": 50, "first": "200ms", "factor": 1, "max_delay": "1s"}
MOST_JOBS = 60  # that recur at the same time
PHASE = "2026-01-01T00:00:00Z"  # a multiple of every interval used here

_PATIENCE_US = 120 * SECOND_US
_LOOK_S = 0.05
_OVERLAP = frozenset({"SKIPPED overlap"})
_DELETED = frozenset({"CANCELLED job deleted"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A sort of job: how it is called, how it treats trouble, and what may then become of its runs."""

    name: str
    behaviour: str
    fields: dict[str, object]
    tolerated: frozenset[str] = frozenset()
    at_most_once: bool = False


KINDS = (
    Kind(name="plain", behaviour="ok", fields={"concurrency": "unlimited", "retry": PATIENT}),
    Kind(
        name="high", behaviour="ok", fields={"concurrency": "unlimited", "retry": PATIENT, "priority": "HIGH"}
    ),
    Kind(name="queue", behaviour="slow/30", fields={"overlap": "queue", "retry": PATIENT}),
    Kind(name="wide", behaviour="slow/150", fields={"concurrency": 3, "overlap": "queue", "retry": PATIENT}),
    Kind(name="flaky", behaviour="once/fail", fields={"concurrency": "unlimited", "retry": PATIENT}),
    Kind(name="deaf", behaviour="once/drop", fields={"concurrency": "unlimited", "retry": PATIENT}),
    Kind(name="usual", behaviour="slow/100", fields={"retry": PATIENT}, tolerated=_OVERLAP),
    Kind(name="skip", behaviour="slow/700", fields={"overlap": "skip", "retry": PATIENT}, tolerated=_OVERLAP),
    Kind(
        name="once at most",
        behaviour="slow/20",
        fields={"concurrency": "unlimited", "delivery": "at_most_once"},
        tolerated=frozenset({"FAILED"}),
        at_most_once=True,
    ),
    Kind(
        name="jittered", behaviour="ok", fields={"concurrency": "unlimited", "retry": PATIENT, "jitter": "1s"}
    ),
)


@dataclass(slots=True, kw_only=True)
class _Open:
    """A request that has had no answer yet."""

    send: Callable[[Api], Answer]
    settle: Callable[[int | None, Answer], None]  # see first_at
    first_at: int | None = None  # when it was first sent in vain; None: never
    life: JobLife | None = None  # what it changes
    again_at: int = 0  # before then it is not sent again, as the server asked


class Load:
    """One user with one random generator.

    Where an answer that was given up may still take effect later than a repetition of it, `wary` leaves a
    job alone once that could be so.
    """

    def __init__(
        self,
        rng: random.Random,
        apis: Sequence[Api],
        sink: SinkProcess,
        *,
        kinds: Sequence[Kind] = KINDS,
        wary: bool = False,
    ) -> None:
        self._rng = rng
        self._apis = apis
        self._sink = sink
        self._kinds = kinds
        self._wary = wary
        self._uncertain: set[str] = set()
        self._serial = 0
        self._open: list[_Open] = []
        self.jobs: list[JobLife] = []
        self.requests = 0
        self.unanswered = 0
        self.refused = 0

    def __str__(self) -> str:
        return (
            f"{len(self.jobs)} jobs, {self.requests} requests, "
            f"{self.unanswered} unanswered, {self.refused} told to come again"
        )

    def act(self) -> None:
        """One request: what is still open first, else something new."""
        while (request := self._askable()) is None:
            self._invent()
        self._push(request)

    def settle_all(self) -> None:
        """Ask again for every answer that is missing; the process must be up."""
        end_at = now() + _PATIENCE_US
        while self._open:
            assert now() < end_at, "a request still has no answer long after everything was mended"
            request = self._askable()
            if request is None:
                threading.Event().wait(_LOOK_S)
            else:
                self._push(request)

    def _askable(self) -> _Open | None:
        """The first request without an answer, but for those that are to come again later."""
        return next((one for one in self._open if one.again_at <= now()), None)

    def create(self, kind: Kind, rule: Rule) -> None:
        """Ask for a job, under a key by which a lost answer can be found again."""
        self._serial += 1
        name = f"{kind.name} {self._serial}"
        document = {
            "name": name,
            "target": {"type": "http", "url": self._sink.url(kind.behaviour), "timeout": "60s"},
            **kind.fields,
            **_schedule(rule),
        }
        path = f"/jobs/by-key/load/{self._serial}"

        def settle(first_at: int | None, answer: Answer) -> None:
            assert answer.status in (200, 201), f"PUT {path}: {answer.status} {answer.body}"
            version = Version(rule=rule, from_lo=first_at or answer.sent_at, from_hi=answer.answered_at)
            self.jobs.append(
                JobLife(
                    job=answer.body["job_id"],
                    name=name,
                    versions=[version],
                    tolerated=kind.tolerated,
                    at_most_once=kind.at_most_once,
                )
            )

        self._open.append(_Open(send=lambda api: api.call("PUT", path, document), settle=settle))

    def _push(self, request: _Open) -> None:
        """Send a request once more; done when it is answered."""
        at = now()
        self.requests += 1
        try:
            answer = request.send(self._rng.choice(self._apis))
        except NotSent:
            return
        except Unanswered:
            self.unanswered += 1
            self._doubt(request, at)
            return
        if answer.status == 503:  # on its way down: it says itself that a retry can help
            assert answer.body["retryable"], answer.body
            self.refused += 1
            self._doubt(request, at)
            return
        if answer.status == 409 and answer.body["code"] == "in_flight":
            # Whoever had its key may have died, and keeps it until the lease ends: a client waits for that.
            assert answer.body["retryable"], answer.body
            self.refused += 1
            self._doubt(request, at)
            request.again_at = now() + int(answer.headers["retry-after"]) * SECOND_US
            return
        self._open.remove(request)
        request.settle(request.first_at, answer)

    def _doubt(self, request: _Open, at: int) -> None:
        """It may have happened, or may yet."""
        request.first_at = request.first_at or at
        if self._wary and request.life is not None:
            self._uncertain.add(request.life.job)

    def _invent(self) -> None:
        busy = {id(request.life) for request in self._open}  # nothing overtakes what is still to come
        alive = [
            life
            for life in self.jobs
            if not life.deleted and not isinstance(_rule(life), Once) and id(life) not in busy
        ]
        recurring = [life for life in alive if life.job not in self._uncertain]
        choice = self._rng.random()
        if (choice < 0.25 and len(alive) < MOST_JOBS) or len(recurring) < 5:
            self.create(self._rng.choice(self._kinds), self._draw_rule())
        elif choice < 0.40:
            self._change(self._rng.choice(recurring), "POST", "pause", None)
        elif choice < 0.60:
            self._resume(self._rng.choice(recurring))
        elif choice < 0.70:
            rule = self._rng.choice((Every(2 * SECOND_US), Every(3 * SECOND_US)))
            self._edit(self._rng.choice(recurring), rule)
        elif choice < 0.80 and len(alive) > 20:
            self._delete(self._rng.choice(alive))  # the end of all doubts
        else:
            self._run_now(self._rng.choice(recurring))

    def _draw_rule(self) -> Rule:
        match self._rng.randrange(6):
            case 0:
                return Every(SECOND_US)
            case 1:
                return Every(2 * SECOND_US)
            case 2:
                return Every(3 * SECOND_US)
            case 3:
                return Seconds(frozenset(range(60)))
            case 4:
                return Seconds(frozenset(range(0, 60, 4)))
            case _:
                return Once(now() + self._rng.randrange(-SECOND_US, 8 * SECOND_US))

    def _change(self, life: JobLife, method: str, action: str, rule: Rule | None) -> None:
        self._time_change(life, lambda api: api.call(method, f"/jobs/{life.job}/{action}"), rule)

    def _resume(self, life: JobLife) -> None:
        paused = [version.rule for version in life.versions if version.rule is not None]
        self._change(life, "POST", "resume", paused[-1])

    def _edit(self, life: JobLife, rule: Rule) -> None:
        """Another interval; a paused job stays paused, so leave those alone."""
        if _rule(life) is not None:
            patch = {**_schedule(rule)}
            self._time_change(life, lambda api: api.call("PATCH", f"/jobs/{life.job}", patch), rule)

    def _time_change(self, life: JobLife, send: Callable[[Api], Answer], rule: Rule | None) -> None:
        """A change that says from when it holds; what it finds already so changes nothing."""

        def settle(first_at: int | None, answer: Answer) -> None:
            assert answer.status == 200, f"{life.job}: {answer.status} {answer.body}"
            effective_at = instant(answer.body["effective_from"])
            from_lo = effective_at if first_at is None else min(first_at + LEAD_US, effective_at)
            if rule != _rule(life):
                life.versions.append(Version(rule=rule, from_lo=from_lo, from_hi=effective_at))

        self._open.append(_Open(send=send, settle=settle, life=life))

    def _delete(self, life: JobLife) -> None:
        def settle(first_at: int | None, answer: Answer) -> None:
            assert answer.status in (200, 404), f"{life.job}: {answer.status} {answer.body}"
            life.deleted = True
            life.tolerated |= _DELETED
            from_lo = first_at or answer.sent_at
            life.versions.append(Version(rule=None, from_lo=from_lo, from_hi=answer.answered_at + LEAD_US))

        path = f"/jobs/{life.job}"
        self._open.append(_Open(send=lambda api: api.call("DELETE", path), settle=settle, life=life))

    def _run_now(self, life: JobLife) -> None:
        self._serial += 1
        headers = {"Idempotency-Key": f"now-{self._serial}"}

        def settle(_: int | None, answer: Answer) -> None:
            assert answer.status == 202, f"{life.job}: {answer.status} {answer.body}"
            life.manual.add(answer.body["run_id"])

        path = f"/jobs/{life.job}/run"
        self._open.append(
            _Open(send=lambda api: api.call("POST", path, None, headers), settle=settle, life=life)
        )


def _rule(life: JobLife) -> Rule | None:
    return life.versions[-1].rule


def _schedule(rule: Rule) -> dict[str, object]:
    match rule:
        case Every(interval_us=interval_us):
            return {"every": interval_us // SECOND_US, "phase": PHASE}
        case Seconds(allowed=allowed):
            return {"cron": f"{','.join(map(str, sorted(allowed)))} * * * * *"}
        case Once(at=at):
            return {"at": spelled(at)}
