"""What tests get as the fixture `hourhand`: the real services, the user's own functions, and a clock to turn.

Drives an event loop of its own, so tests may be plain or async. Instants are aware datetimes in UTC.
"""

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from types import ModuleType
from typing import Any, TypeVar

from hourhand.core.identity import format_job_id
from hourhand.core.instant import HOUR_US, format_duration, format_instant, parse_duration, parse_instant
from hourhand.core.lifecycle import Event, State
from hourhand.core.model import DEFAULT_TENANT, HttpTarget, Job, PythonTarget, ShellTarget
from hourhand.core.run import ClaimedRun, RunView, Settlement
from hourhand.errors import HourhandError, Invalid, NotFound
from hourhand.functions import REGISTRY, load_modules
from hourhand.ports.reading import DeadQuery
from hourhand.simulation.loading import load
from hourhand.simulation.stand_ins import Answers, StandIns
from hourhand.simulation.virtual import LoopClock, VirtualLoop
from hourhand.simulation.world import World

START = "2026-01-01T00:00:00Z"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_PAGE = 1_000
_IDLE_LIMIT_US = 24 * HOUR_US

T = TypeVar("T")
Instant = str | datetime
Duration = str | float | timedelta
JobRef = str | Callable[..., Any]


class JobRefused(ValueError):
    """A job that the server would not take either, with everything that is wrong with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """A run as tests look at it."""

    scheduled_at: datetime
    state: str
    attempts: int
    started_at: datetime | None
    finished_at: datetime | None
    error: str | None
    reason: str | None
    result: Any


class Bench:
    """Jobs, a clock, and what became of them."""

    def __init__(self) -> None:
        self._loop = VirtualLoop()
        self._clock = LoopClock(self._loop, parse_instant(START))
        self._targets = StandIns(REGISTRY, self._clock.now, self._name_of)
        self._jobs: dict[int, Job] = {}
        self._retrying: set[tuple[int, int]] = set()
        self._driving = False
        self._world = World(
            self._loop,
            self._clock,
            targets=dict.fromkeys((HttpTarget, PythonTarget, ShellTarget), self._targets),
            concurrency=1_000,
            settled=self._settled,
        )

    # --- jobs

    def load(self, *what: str | ModuleType | Callable[..., Any]) -> list[str]:
        """Create the jobs that modules declare, by name or as such, or single decorated functions; their keys."""
        documents: list[dict[str, Any]] = []
        for one in what:
            documents += self._declared(one)
        return self._create(documents)

    def create(self, document: Mapping[str, Any] | None = None, **fields: Any) -> str:
        """Create a job from a document as the API takes it; answers its key, else its id."""
        whole = {**(document or {}), **fields}
        target = whole.get("target")
        if isinstance(target, dict) and "function" in target and target["function"] not in REGISTRY:
            raise JobRefused(
                f"no function {target['function']!r} is declared: import its module, and decorate it with @hh.function"
            )
        return self._create([whole])[0]

    def run_now(self, job: JobRef) -> None:
        """Ask for a run now; it happens with the next `advance` or `run_until_idle`."""
        found = self._job(job)
        self._drive(self._world.jobs.run_now(DEFAULT_TENANT, found.id))

    def pause(self, job: JobRef) -> None:
        """No times of it come due until it is resumed."""
        self._drive(self._world.jobs.pause(DEFAULT_TENANT, self._job(job).id))

    def resume(self, job: JobRef) -> None:
        """Its times come due again."""
        self._drive(self._world.jobs.resume(DEFAULT_TENANT, self._job(job).id))

    # --- the outside world

    def http(self, url: str) -> Answers:
        """How a URL answers; * stands for anything: `hourhand.http("https://x/*").answers(503, 200)`."""
        return self._targets.urls.setdefault(url, Answers(url))

    def command(self, name: str) -> Answers:
        """How a command ends, by its first word: `hourhand.command("backup").exits(0)`."""
        return self._targets.commands.setdefault(name, Answers(name))

    def fail(self, job: JobRef, times: int = 1) -> None:
        """Let the coming attempts of a job fail without being carried out."""
        if times < 1:
            raise ValueError(f"times: expected 1 or more, got {times}")
        self._targets.failures[self._job(job).id] = times

    # --- time

    @property
    def now(self) -> datetime:
        """The present instant of this world."""
        return _as_datetime(self._clock.now())

    def set_time(self, when: Instant) -> None:
        """Go to a later instant as if nothing had been up meanwhile: misfire policies decide about what was missed."""
        at = _instant(when)
        if not self._jobs:
            self._clock.set(at)
        elif at < self._clock.now():
            raise ValueError(
                f"it is {format_instant(self._clock.now())} already; time goes back only before there are jobs"
            )
        else:
            self._drive(self._absent_until(at))

    def advance(self, duration: Duration) -> None:
        """Let time pass, with everything that happens in it, what is due at its very end included."""
        seconds = duration.total_seconds() if isinstance(duration, timedelta) else duration
        self._drive(self._world.run_until(self._clock.now() + parse_duration(seconds)))

    def run_until_idle(self, limit: Duration = "1d") -> None:
        """Let time pass until everything that is due has ended, retries included."""
        seconds = limit.total_seconds() if isinstance(limit, timedelta) else limit
        limit_us = parse_duration(seconds)
        ended = self._drive(self._world.run_until_done(self._clock.now() + limit_us, self._is_idle))
        if not ended:
            raise AssertionError(f"something still goes on after {format_duration(limit_us)}")

    # --- what came of it

    def fires(self, job: JobRef) -> list[datetime]:
        """The nominal times of a job whose runs have begun, in that order."""
        return [_as_datetime(at) for at in self._targets.begun.get(self._job(job).id, ())]

    def runs(self, job: JobRef) -> list[RunRecord]:
        """The runs of a job that have begun or ended, skipped ones included, oldest first."""
        found = self._drive(self._history(self._job(job)))
        return [_record(run) for run in reversed(found) if run.state is not State.PENDING]

    def dead_letters(self) -> list[str]:
        """The ids of runs that used up their tries."""
        page = self._drive(self._world.runs.dead_letters(DEFAULT_TENANT, DeadQuery(limit=_PAGE)))
        return [letter.run_id for letter in reversed(page.letters)]

    def close(self) -> None:
        """Let go of everything."""
        if self._loop.is_closed():
            return
        self._targets.fault = None
        self._drive(self._end())
        self._loop.close()

    # --- behind it

    def _declared(self, one: str | ModuleType | Callable[..., Any]) -> list[dict[str, Any]]:
        if callable(one):
            return [_document_of(one)]
        module = one if isinstance(one, str) else one.__name__
        registry = load_modules([module]) if isinstance(one, str) else REGISTRY
        documents = [
            document
            for name, registered in sorted(registry.items())
            if f"{name.partition(':')[0]}.".startswith(f"{module}.") and (document := registered.document())
        ]
        if not documents:
            raise JobRefused(
                f"{module} declares no job: decorate a function with a schedule, @hh.job(cron=…)"
            )
        return documents

    def _create(self, documents: Sequence[Mapping[str, Any]]) -> list[str]:
        answers = self._drive(self._begin_with(documents))
        wrong = [_words(document, answer) for document, answer in zip(documents, answers, strict=True)
                 if isinstance(answer, HourhandError)]  # fmt: skip
        if wrong:
            raise JobRefused("\n".join(wrong))
        jobs = [answer for answer in answers if isinstance(answer, Job)]
        self._jobs |= {job.id: job for job in jobs}
        return [job.spec.key or format_job_id(job.id) for job in jobs]

    async def _begin_with(self, documents: Sequence[Mapping[str, Any]]) -> list[Job | HourhandError]:
        if not self._world.is_up:
            await self._world.start()
        return await load(self._world, documents, self._clock.now(), there=tuple(self._jobs.values()))

    async def _absent_until(self, at: int) -> None:
        await self._world.stop()
        self._clock.set(at)
        await self._world.start()
        await self._world.run_until(at)

    async def _end(self) -> None:
        if self._world.is_up:
            await self._world.stop()
        await self._world.close()

    async def _history(self, job: Job) -> list[RunView]:
        found: list[RunView] = []
        before_at = None
        while page := await self._world.runs.history(job, before_at=before_at, limit=_PAGE):
            found += page
            if len(page) < _PAGE:
                break
            before_at = page[-1].scheduled_at
        return found

    async def _is_idle(self) -> bool:
        backlog = await self._world.store.backlog()
        due = backlog.oldest_due_at is not None and backlog.oldest_due_at <= self._clock.now()
        return not (self._targets.active or self._retrying or backlog.blocked or backlog.waiting or due)

    def _settled(self, batch: Sequence[tuple[ClaimedRun, Settlement]]) -> None:
        for run, settlement in batch:
            key = (run.job_id, run.scheduled_at)
            (self._retrying.add if settlement.event is Event.RETRY else self._retrying.discard)(key)

    def _job(self, reference: JobRef) -> Job:
        name = getattr(reference, "function_name", reference)
        if not isinstance(name, str):
            raise NotFound(f"{reference!r} is no job: decorate it with @hh.job(…), and load it")
        found = [
            job for job in self._jobs.values() if name in (job.spec.key, job.spec.name, format_job_id(job.id))
        ]
        if len(found) != 1:
            known = ", ".join(sorted(self._name_of(job_id) for job_id in self._jobs)) or "none yet"
            raise NotFound(
                f"{'several jobs are' if found else 'no job is'} called {name!r}; there are: {known}"
            )
        return found[0]

    def _name_of(self, job_id: int) -> str:
        spec = self._jobs[job_id].spec
        return spec.key or spec.name or format_job_id(job_id)

    def _drive(self, work: Coroutine[Any, Any, T]) -> T:
        """Run something to its end on the virtual loop, also from within a test that has a loop of its own."""
        if self._driving:
            work.close()
            raise RuntimeError("a job cannot turn the clock that it runs by")
        outer = asyncio._get_running_loop()
        asyncio._set_running_loop(None)
        self._driving = True
        try:
            answer = self._loop.run_until_complete(work)
        finally:
            self._driving = False
            asyncio._set_running_loop(outer)
        if self._targets.fault is not None:
            fault, self._targets.fault = self._targets.fault, None
            raise fault
        return answer


def _document_of(function: Callable[..., Any]) -> dict[str, Any]:
    declared = getattr(function, "document", None)
    document = declared() if callable(declared) else None
    if not isinstance(document, dict):
        raise JobRefused(f"{function!r} declares no job: decorate it with a schedule, @hh.job(cron=…)")
    return document


def _words(document: Mapping[str, Any], error: HourhandError) -> str:
    name = document.get("key") or document.get("name") or "the job"
    faults = error.faults if isinstance(error, Invalid) else ()
    told = [
        f"{fault.pointer.removeprefix('/') or 'the document'}: expected {fault.expected}"
        + (f", got {fault.got}" if fault.got else "")
        for fault in faults
    ]
    return f"{name}: {'; '.join(told) or error.message}"


def _record(run: RunView) -> RunRecord:
    last = run.attempts[-1] if run.attempts else None
    detail = (last.detail if last else None) or {}
    response = detail.get("response")
    started = [one.started_at for one in run.attempts if one.started_at is not None]
    return RunRecord(
        scheduled_at=_as_datetime(run.scheduled_at),
        state=run.state.value,
        attempts=len(started),
        started_at=_as_datetime(started[0]) if started else None,
        finished_at=_as_datetime(last.finished_at) if last else None,
        error=detail.get("error"),
        reason=detail.get("reason"),
        result=response.get("value", response) if isinstance(response, dict) else response,
    )


def _instant(when: Instant) -> int:
    if isinstance(when, str):
        return parse_instant(when)
    if when.tzinfo is None:
        raise ValueError(f"{when.isoformat()} has no zone, such as datetime(2026, 11, 16, tzinfo=UTC)")
    return (when - _EPOCH) // timedelta(microseconds=1)


def _as_datetime(at: int) -> datetime:
    return _EPOCH + timedelta(microseconds=at)
