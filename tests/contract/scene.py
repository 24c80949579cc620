"""A store with a worker or two beside it: the short words in which the contract's tests are written."""

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from hourhand.core.identity import SEGMENTS, RunKey, segment_of
from hourhand.core.instant import DAY_US, SECOND_US
from hourhand.core.lifecycle import Event, State
from hourhand.core.model import DEFAULT_POOL, DEFAULT_TENANT, Job, JobSpec, JobState
from hourhand.core.plan import expected_times, plan_clock
from hourhand.core.run import ClaimedRun, RunView, Settlement
from hourhand.core.schedule import parse_key
from hourhand.ports.store import Changed, Claim, ClaimRequest, Cursor, JobEdit, Store
from tests.contract.builders import draft, once, outcome, spec
from tests.contract.checker import assert_covered
from tests.contract.harness import LEAD_US, Harness, Tables, at

HORIZON_US = 60 * SECOND_US
LONG_LEASE_US = 10_000 * DAY_US


class Scene:
    """The port's verbs with everything defaulted that a test does not care about."""

    def __init__(self, harness: Harness) -> None:
        self.harness = harness
        self._nodes = 100

    @property
    def store(self) -> Store:
        return self.harness.store

    @property
    def now(self) -> int:
        return self.harness.now()

    def pass_time(self, seconds: float) -> int:
        return self.harness.advance(round(seconds * SECOND_US))

    def go_to(self, at: int) -> None:
        self.harness.set_now(at)

    async def tables(self) -> Tables:
        return await self.harness.tables()

    async def assert_covered(self, job: Job) -> None:
        """All that a job promised up to now is somewhere."""
        versions = await self.store.versions(job.tenant, job.id)
        assert_covered(await self.tables(), job.id, versions, self.now)

    # --- jobs
    async def create(self, spec: JobSpec | None = None, **fields: Any) -> Job:
        [job] = await self.store.create_jobs([draft(spec, **fields)])
        assert isinstance(job, Job), job
        return job

    async def many(self, count: int, due_s: float = 0, **fields: Any) -> list[Job]:
        """So many one-time jobs, all due at once."""
        tenant = str(fields.pop("tenant", DEFAULT_TENANT))
        drafts = [draft(spec(once(at(due_s)), **fields), tenant=tenant) for _ in range(count)]
        return [job for job in await self.store.create_jobs(drafts) if isinstance(job, Job)]

    async def twin(self, job: Job, **fields: Any) -> Job:
        """Another job on the same clock: the same rule in the same segment."""
        twin_id = next(n for n in range(job.id + 1, job.id + 100_000) if segment_of(n) == segment_of(job.id))
        return await self.create(msgspec.structs.replace(job.spec, **fields), id=twin_id, tenant=job.tenant)

    async def change(
        self, job: Job, *, paused: bool | None = None, paused_until: int | None = None, **fields: Any
    ) -> Changed:
        """Replace fields of the job's spec, or pause and resume it."""

        def decide(present: Job, now_at: int) -> JobEdit:
            stays = present.state is JobState.PAUSED if paused is None else paused
            spec = msgspec.structs.replace(present.spec, **fields)
            return JobEdit(spec=spec, paused=stays, paused_until=paused_until if stays else None)

        changed = await self.store.change_job(job.tenant, job.id, decide)
        assert changed is not None
        return changed

    async def pause(self, job: Job, until: int | None = None) -> Changed:
        return await self.change(job, paused=True, paused_until=until)

    async def resume(self, job: Job) -> Changed:
        return await self.change(job, paused=False)

    async def delete(self, job: Job, cancel_running: bool = False) -> Changed:
        changed = await self.store.delete_job(job.tenant, job.id, cancel_running)
        assert changed is not None
        return changed

    async def get(self, job: Job) -> Job:
        found = await self.store.get_job(job.tenant, job.id)
        assert found is not None
        return found

    async def run_now(self, job: Job, key: str | None = None) -> RunKey:
        made = await self.store.add_run(job.tenant, job.id, key)
        assert made is not None
        return made

    async def tend(self) -> int | None:
        return await self.store.tend_jobs(1_000)

    # --- planning
    async def plan(self, horizon_us: int = HORIZON_US) -> int:
        """Plan every clock that reaches into the horizon, as the planner does."""
        return await plan_due(self.store, self.now, self.now + horizon_us)

    # --- runs
    async def worker(self, lease_us: int = LONG_LEASE_US) -> int:
        self._nodes += 1
        await self.store.renew_node(self._nodes, "worker", f"worker-{self._nodes}", lease_us)
        return self._nodes

    async def claim(
        self,
        node_id: int,
        room: int = 100,
        *,
        pools: tuple[str, ...] = (DEFAULT_POOL,),
        lead_us: int = LEAD_US,
        taken_before: int = 0,
        cursors: dict[int, Cursor] | None = None,
    ) -> Claim:
        return await self.store.claim(
            ClaimRequest(
                node_id=node_id,
                pools=pools,
                room=room,
                lead_us=lead_us,
                taken_before=taken_before,
                cursors=cursors or {},
            )
        )

    async def take(self, node_id: int, room: int = 100, **options: Any) -> list[ClaimedRun]:
        """Claim as long as that leads to anything; a worker with this much room."""
        taken: list[ClaimedRun] = []
        cursors: dict[int, Cursor] = {}
        for _ in range(1_000):
            if len(taken) >= room:
                break
            claim = await self.claim(node_id, room - len(taken), cursors=cursors, **options)
            taken += claim.runs
            cursors = claim.cursors
            if not claim.progressed:
                return taken
        else:
            raise AssertionError("claims go on for ever without taking anything")
        return taken

    async def busy(self, spec: JobSpec) -> tuple[Job, int, ClaimedRun]:
        """A job that runs every second, at its first time, with that run in a worker's hand."""
        job = await self.create(spec)
        await self.plan()
        node_id = await self.worker()
        self.go_to(at(1))
        [run] = await self.take(node_id, lead_us=0)
        return job, node_id, run

    async def settle(self, *settlements: Settlement) -> list[Settlement]:
        return await self.store.settle("worker", settlements)

    async def finish(
        self, runs: Iterable[ClaimedRun] | ClaimedRun, event: Event = Event.SUCCEED, **fields: Any
    ) -> None:
        """Settle runs, all of them accepted."""
        batch = [runs] if isinstance(runs, ClaimedRun) else list(runs)
        refused = await self.settle(*(outcome(run, event, now_at=self.now, **fields) for run in batch))
        assert refused == []

    async def kill(self, run: ClaimedRun, error: str = "it broke") -> RunKey:
        """Use up a run's tries, so that it becomes a dead letter."""
        await self.finish(run, Event.EXHAUST, tries=run.tries + 1, detail={"error": error})
        return run.key

    # --- reading
    async def view(self, job: Job, scheduled_at: int) -> RunView:
        found = await self.store.get_run(job.tenant, RunKey(job.id, scheduled_at))
        assert found is not None, "there is no such run"
        return found

    async def state(self, job: Job, scheduled_at: int) -> State | None:
        found = await self.store.get_run(job.tenant, RunKey(job.id, scheduled_at))
        return None if found is None else found.state

    async def runs(self, job: Job, before_at: int | None = None, limit: int = 1_000) -> list[RunView]:
        """A job's runs as the service asks for them, newest first."""
        versions = await self.store.versions(job.tenant, job.id)
        nominals = expected_times(versions, self.now - DAY_US, self.now + DAY_US, 10_000)
        return await self.store.job_runs(job.tenant, job.id, nominals, before_at, limit)

    async def nominals(self, job: Job) -> list[int]:
        """The nominal times of everything a job has, oldest first, by the tables alone."""
        tables = await self.tables()
        found = {row.scheduled_at for table in tables[:5] for row in table if row.job_id == job.id}
        return sorted(found)

    async def planned(self, job: Job) -> list[int]:
        """The nominal times a job is planned for."""
        return sorted(row.scheduled_at for row in (await self.tables()).planned if row.job_id == job.id)


def reason(view: RunView) -> str | None:
    """Why a run ended without succeeding."""
    detail = view.attempts[-1].detail if view.attempts else None
    return None if detail is None else detail.get("reason")


async def plan_due(
    store: Store,
    now_at: int,
    horizon_at: int,
    before_plan: Callable[[], object] | None = None,
    segments: Iterable[int] = range(SEGMENTS),
) -> int:
    """What a planner does until no clock reaches into the horizon any more; says how many runs."""
    total = 0
    for _ in range(10_000):
        clocks = await store.due_clocks(list(segments), horizon_at, 100)
        if not clocks:
            return total
        plans = [
            plan_clock(clock.id, parse_key(clock.rule_key), clock.next_at, now_at, horizon_at, clock.misfires)
            for clock in clocks
        ]
        if before_plan is not None:
            before_plan()
        total += await store.plan(plans)
    raise AssertionError("planning does not come to an end")


__all__ = ["DEFAULT_TENANT", "HORIZON_US", "LONG_LEASE_US", "Scene", "plan_due", "reason"]
