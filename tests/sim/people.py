"""People and programs that use the services as the web does, through API processes that may die under their requests.

What was answered is remembered: an acknowledged change must be there for ever, and a refused one must never have been (I4, I9).
"""

from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import msgspec

from hourhand.core.backfill import BackfillAction, BackfillSpec, Order
from hourhand.core.identity import RunKey
from hourhand.core.instant import SECOND_US
from hourhand.core.lifecycle import FINAL, State
from hourhand.core.model import AfterTiming, Job, JobSpec, JobState
from hourhand.errors import HourhandError, Unavailable
from hourhand.ports.backfills import BackfillQuery
from hourhand.ports.reading import DeadQuery
from hourhand.ports.store import Changed
from hourhand.services.backfills import Backfills
from hourhand.services.jobs import Jobs, NewJob
from hourhand.services.reports import Reports
from hourhand.services.runs import Runs
from tests.sim.script import Item

_WAIT_US = 20 * SECOND_US
_SOME_JOBS = 6


class Api(NamedTuple):
    """The services of one API process."""

    store: Any
    jobs: Jobs
    runs: Runs
    backfills: Backfills
    reports: Reports


class Ack(NamedTuple):
    """A change that was answered."""

    job_id: int
    tenant: str
    version: int
    effective_from: int
    what: str


class People:
    """What they did and what they were told."""

    def __init__(self) -> None:
        self.jobs: dict[int, Job] = {}  # by the number of their creation
        self.acks: list[Ack] = []
        self.asked: Counter[str] = Counter()
        self.answers: Counter[str] = Counter()
        self.refused_names: set[str] = set()
        self.wanted: dict[int, JobSpec] = {}  # what was asked for, answered or not
        self.requests: dict[int, list[tuple[str, dict[str, Any]]]] = {}
        self.given_runs: list[tuple[str, RunKey]] = []  # and what was answered
        self.given_letters: list[tuple[str, RunKey]] = []
        self.cancelled: list[RunKey] = []
        self.skipped: list[tuple[int, int]] = []
        self.unskipped: set[int] = set()  # of these jobs somebody wanted a mark back
        self.backfills: list[int] = []

    async def act(self, api: Api, item: Item) -> None:
        """Do one thing."""
        args = item.args
        self.asked[item.what] += 1
        try:
            if item.what == "create":
                await self._create(api, args)
            elif args["job"] in self.jobs:
                await getattr(self, f"_{item.what}")(api, self.jobs[args["job"]], args)
        except Unavailable:
            self.answers["unknown"] += 1
        except HourhandError as error:
            self.answers[error.code] += 1
            if item.what == "create":
                self.refused_names.add(f"job-{args['name']}")
        else:
            self.answers["done"] += 1

    async def _create(self, api: Api, args: dict[str, Any]) -> None:
        spec = msgspec.structs.replace(args["spec"], name=f"job-{args['name']}")
        parents = [self.jobs[one].id for one in args["parents"] if one in self.jobs]
        if parents:
            timing = AfterTiming(parents=tuple(sorted(parents)), wait_us=_WAIT_US)
            spec = msgspec.structs.replace(spec, timing=timing, max_runs=None, starts_at=None, ends_at=None)
        self.wanted[args["name"]] = spec
        job = await api.jobs.create(args["tenant"], NewJob(spec=spec, paused=args["paused"]))
        self.jobs[args["name"]] = job
        self.acks.append(Ack(job.id, job.tenant, job.version, job.created_at, "create"))

    async def _update(self, api: Api, job: Job, args: dict[str, Any]) -> None:
        self._ask(args, "update", spec=args["spec"], part=args["part"])
        change = partial(_changed, spec=args["spec"], part=args["part"])
        self._told(await api.jobs.update(job.tenant, job.id, change), "update")

    async def _rewire(self, api: Api, job: Job, args: dict[str, Any]) -> None:
        parents = tuple(sorted(self.jobs[one].id for one in args["parents"] if one in self.jobs))
        if parents:
            self._ask(args, "rewire", parents=parents)
            self._told(
                await api.jobs.update(job.tenant, job.id, partial(_rewired, parents=parents)), "update"
            )

    async def _pause(self, api: Api, job: Job, args: dict[str, Any]) -> None:
        until_s = args["until_us"]
        until_at = None if until_s is None else await api.store.now() + until_s * SECOND_US
        self._told(await api.jobs.pause(job.tenant, job.id, until_at=until_at), "pause")

    async def _resume(self, api: Api, job: Job, args: dict[str, Any]) -> None:
        self._told(await api.jobs.resume(job.tenant, job.id), "resume")

    async def _delete(self, api: Api, job: Job, args: dict[str, Any]) -> None:
        self._ask(args, "delete")
        changed = await api.jobs.delete(job.tenant, job.id, cancel_running=args["cancel_running"])
        self._told(changed, "delete")

    async def _run_now(self, api: Api, job: Job, args: dict[str, Any]) -> None:
        key = await api.jobs.run_now(job.tenant, job.id, request_key=args["key"])
        self.given_runs.append(("run now", key))

    async def _run_down(self, api: Api, job: Job, args: dict[str, Any]) -> None:
        key = await api.store.add_run(job.tenant, job.id, args["key"], downstream=True)
        if key is not None:
            self.given_runs.append(("run now", key))

    async def _skip(self, api: Api, job: Job, args: dict[str, Any]) -> None:
        at = None
        if args["further"]:  # than is planned
            times = api.jobs.next_times(await api.jobs.get(job.tenant, job.id), args["further"])
            at = times[-1] if times else None
        skip = await api.jobs.skip(job.tenant, job.id, at, args["key"])
        self.skipped.append((job.id, skip.scheduled_at))

    async def _unskip(self, api: Api, job: Job, args: dict[str, Any]) -> None:
        self.unskipped.add(job.id)
        await api.jobs.unskip(job.tenant, job.id)

    async def _backfill(self, api: Api, job: Job, args: dict[str, Any]) -> None:
        now_at = await api.store.now()
        spec = BackfillSpec(
            from_at=now_at - args["back_s"] * SECOND_US,
            to_at=now_at,
            order=Order.NEWEST if args["newest"] else Order.OLDEST,
            pace_us=args["pace_us"],
            max_open=10,
        )
        self.backfills.append((await api.backfills.create(job, spec)).id)

    async def _turn_backfill(self, api: Api, job: Job, args: dict[str, Any]) -> None:
        page = await api.backfills.page(job.tenant, BackfillQuery(limit=20))
        if page.backfills:
            chosen = page.backfills[int(args["pick"] * len(page.backfills))]
            await api.backfills.change(job.tenant, chosen.id, BackfillAction(args["action"]))

    async def _requeue(self, api: Api, job: Job, args: dict[str, Any]) -> None:
        keys = await self._letters(api, job, args)
        if keys:
            self._gave("requeue", await api.runs.requeue(job.tenant, keys))

    async def _requeue_down(self, api: Api, job: Job, args: dict[str, Any]) -> None:
        keys = await self._letters(api, job, args)
        if keys:
            given = await api.store.requeue(job.tenant, keys, downstream=True)
            self._gave("requeue", [key for key in given if key in keys])

    async def _discard(self, api: Api, job: Job, args: dict[str, Any]) -> None:
        keys = await self._letters(api, job, args)
        if keys:
            self._gave("discard", await api.runs.discard(job.tenant, keys[:3]))

    async def _rerun(self, api: Api, job: Job, args: dict[str, Any]) -> None:
        ended = [run for run in await api.runs.history(job, limit=30) if run.state in FINAL]
        if ended:
            run = ended[int(args["pick"] * len(ended))]
            key = await api.runs.rerun(job.tenant, run.key, request_key=args["key"])
            if key is not None:
                self.given_runs.append(("rerun", key))

    async def _cancel(self, api: Api, job: Job, args: dict[str, Any]) -> None:
        if args["state"] is State.RETRYING:
            job = await self._one_that_retries(api, job)
        live = [run for run in await api.runs.history(job, limit=80) if run.state not in FINAL]
        begun = [run for run in live if run.fence] or live
        chosen = [run for run in live if run.state is args["state"]] or begun
        if chosen:
            run = chosen[int(args["pick"] * len(chosen))]
            answer = await api.runs.cancel(job.tenant, RunKey(run.job_id, run.scheduled_at))
            if answer.state is State.CANCELLED:
                self.cancelled.append(RunKey(run.job_id, run.scheduled_at))

    async def _one_that_retries(self, api: Api, job: Job) -> Job:
        """A job of the same tenant with a run between two attempts, as far as a few show; else the given one."""
        kin = [one for one in self.jobs.values() if one.tenant == job.tenant and one.spec.retry.max]
        first = kin.index(job) if job in kin else 0
        for one in (kin[first:] + kin[:first])[:_SOME_JOBS]:
            if any(run.state is State.RETRYING for run in await api.runs.history(one, limit=10)):
                return one
        return job

    async def _look(self, api: Api, job: Job, args: dict[str, Any]) -> None:
        found = await api.jobs.get(job.tenant, job.id)
        await api.runs.status(found.tenant, found.id, api.jobs.next_at)

    async def _letters(self, api: Api, job: Job, args: dict[str, Any]) -> list[RunKey]:
        page = await api.runs.dead_letters(job.tenant, DeadQuery(limit=40))
        keys = [RunKey(one.job_id, one.scheduled_at) for one in page.letters]
        first = int(args["pick"] * len(keys))
        return keys[first : first + 12]

    def _ask(self, args: dict[str, Any], what: str, **wanted: Any) -> None:
        self.requests.setdefault(args["job"], []).append((what, wanted))

    def _gave(self, what: str, keys: Sequence[RunKey]) -> None:
        self.given_letters += [(what, key) for key in keys]

    def _told(self, changed: Changed, what: str) -> None:
        job = changed.job
        self.acks.append(Ack(job.id, job.tenant, job.version, changed.effective_from, what))


def changed_spec(present: JobSpec, wanted: JobSpec, part: str) -> JobSpec:
    """What a request to change some of a job makes of it."""
    fields = {
        "timing": ("timing",),
        "policies": ("overlap", "misfire", "retry", "timeout_us"),
        "place": ("pool", "priority", "jitter_us"),
        "concurrency": ("concurrency",),
        "target": ("target", "delivery"),
    }[part]
    if part == "timing" and isinstance(present.timing, AfterTiming):
        fields = ("retry",)
    return msgspec.structs.replace(present, **{field: getattr(wanted, field) for field in fields})


def rewired_spec(present: JobSpec, parents: tuple[int, ...]) -> JobSpec:
    """What a request to follow others makes of a job that follows some."""
    if not isinstance(present.timing, AfterTiming):
        return present
    return msgspec.structs.replace(present, timing=AfterTiming(parents=parents, wait_us=_WAIT_US))


def _changed(job: Job, now_at: int, *, spec: Any, part: str) -> NewJob:
    changed = changed_spec(job.spec, spec, part)
    return NewJob(spec=changed, paused=job.state is JobState.PAUSED, note=job.note)


def _rewired(job: Job, now_at: int, *, parents: tuple[int, ...]) -> NewJob:
    changed = rewired_spec(job.spec, parents)
    return NewJob(spec=changed, paused=job.state is JobState.PAUSED, note=job.note)
