"""Several databases as one store, for tests: shards in memory that can be away, and the use cases over them."""

from collections.abc import Callable
from typing import Any

from hourhand.clock import ManualClock
from hourhand.core.buckets import even_map
from hourhand.core.identity import RunKey
from hourhand.core.instant import SECOND_US
from hourhand.core.model import DEFAULT_TENANT as TENANT
from hourhand.core.model import Job
from hourhand.core.specification import SpecLimits
from hourhand.ids import IdSource
from hourhand.ports.store import Store
from hourhand.services.jobs import Jobs, NewJob
from hourhand.services.runs import Runs
from hourhand.stores.sharded import ShardedStore
from hourhand.stores.sqlite import SqliteStore
from tests.services.world import FaultyStore, once, spec
from tests.web import worker

SHARDS = 3


class Cluster:
    """Shards in memory that can be away, the store over them, and the use cases of an API instance."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.shards = [FaultyStore(SqliteStore.in_memory(clock=self.clock)) for _ in range(SHARDS)]
        self.store = ShardedStore(self.shards, even_map(SHARDS))
        self.jobs, self.runs = services(self.store, self.clock)

    async def create(self, shard: int | None = None, **fields: Any) -> Job:
        """A job, on a shard that a test wants."""
        if shard is not None:
            fields["shard_key"] = next(f"s{n}" for n in range(1_000) if self.home(shard_key=f"s{n}") == shard)
        timing = fields.pop("timing", None)
        return await self.jobs.create(TENANT, NewJob(spec=spec(timing, **fields)))

    def home(self, **fields: Any) -> int:
        return self.store.place(TENANT, spec(**fields))

    def key_on(self, shard: int, form: str = "k{}") -> str:
        return next(key for n in range(1_000) if self.home(key=(key := form.format(n))) == shard)

    async def finish(self, shard: int, end: Callable[..., Any] = worker.succeed) -> list[str]:
        """Let everything that is due on a shard end."""
        return await end(self.shards[shard], self.clock)

    async def dead_run(self, shard: int, error: str = "HTTP 500") -> RunKey:
        job = await self.create(shard, timing=once(self.clock.now()))
        self.clock.advance(SECOND_US)
        await worker.fail(self.shards[shard], self.clock, error)
        [view] = await self.store.job_runs(TENANT, job.id, [], None, 5)
        return RunKey(view.job_id, view.scheduled_at)


def services(store: Store, clock: ManualClock, seed: int = 1) -> tuple[Jobs, Runs]:
    jobs = Jobs(store=store, ids=IdSource(clock, seed=seed), clock=clock, limits=SpecLimits())
    return jobs, Runs(store=store, clock=clock, horizon_us=60 * SECOND_US)
