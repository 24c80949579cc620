"""What one step of each kind costs alone: the planner's, a claim, a finish; one after the other in this process.

The real planner and the store's own verbs on a loaded database, with nothing beside them: so that two sizes of a
database can be compared without what the parts of a cluster do to each other.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass

from hourhand.core.instant import HOUR_US, SECOND_US
from hourhand.core.lifecycle import Event
from hourhand.core.model import DEFAULT_POOL
from hourhand.core.run import ClaimedRun, Settlement
from hourhand.ids import IdSource
from hourhand.leases.native import NativeLeases
from hourhand.ports.store import ClaimRequest
from hourhand.services.planner import Planner
from hourhand.stores.postgres import PostgresStore
from hourhand.telemetry import Telemetry

BATCH = 1_000
WORKER = "bench-worker-1"
_NEARLY_ALL = 0.98
_AHEAD_US = SECOND_US // 5


@dataclass(slots=True, kw_only=True)
class Steps:
    """How many runs each kind of step handled, and how long they took together."""

    planned: int = 0
    claimed: int = 0
    plan_s: float = 0.0
    claim_s: float = 0.0
    finish_s: float = 0.0

    @property
    def plan_us(self) -> float:
        """Planning, for a run."""
        return self.plan_s * 1e6 / self.planned

    @property
    def claim_us(self) -> float:
        """Claiming, for a run."""
        return self.claim_s * 1e6 / self.claimed

    @property
    def finish_us(self) -> float:
        """Finishing, for a run."""
        return self.finish_s * 1e6 / self.claimed


async def work(url: str, horizon_us: int) -> Steps:
    """Plan all runs up to a horizon, then claim and finish all of them, timing each step."""
    store = await PostgresStore.open(url)
    steps = Steps()
    try:
        ids = IdSource(store.clock)
        leases = NativeLeases(
            store=store, ids=ids, kind="scheduler", name="bench", plans=True, lease_us=HOUR_US
        )
        await leases.join()
        await _plan(store, leases, horizon_us, steps)
        node_id = ids.node_id()
        await store.renew_node(node_id, "worker", WORKER, HOUR_US)
        await _claim_and_finish(store, node_id, horizon_us + 10 * SECOND_US, steps)
        await store.end_node(node_id)
        await leases.leave()
    finally:
        await store.close()
    # Runs of one job that meet are judged by its overlap policy, which happens with few jobs and short intervals.
    if steps.claimed < _NEARLY_ALL * steps.planned or not steps.planned:
        raise SystemExit(f"{steps.planned:,} runs were planned, {steps.claimed:,} claimed")
    return steps


async def _plan(store: PostgresStore, leases: NativeLeases, horizon_us: int, steps: Steps) -> None:
    """Go ahead as a planner does that has caught up: by a little each time, so that clocks come one time each."""
    planner = Planner(
        store=store, leases=leases, clock=store.clock, horizon_us=_AHEAD_US, telemetry=_Counting(steps)
    )
    now_at = store.clock.now()
    for at in range(now_at, now_at + horizon_us, _AHEAD_US):
        again_at: int | None = at
        began_s = time.perf_counter()
        while again_at is not None and again_at <= at:
            again_at = await planner.step(at)
        steps.plan_s += time.perf_counter() - began_s


class _Counting(Telemetry):
    """Hears from the planner how many runs it wrote."""

    def __init__(self, steps: Steps) -> None:
        super().__init__()
        self._steps = steps

    def planned(self, count: int) -> None:
        self._steps.planned += count


async def _claim_and_finish(store: PostgresStore, node_id: int, lead_us: int, steps: Steps) -> None:
    progressed, taken = True, 0
    while progressed:
        request = ClaimRequest(
            node_id=node_id, pools=(DEFAULT_POOL,), room=BATCH, lead_us=lead_us, taken_before=taken
        )
        began_s = time.perf_counter()
        claim = await store.claim(request)
        claimed_s = time.perf_counter()
        if claim.runs:
            await _finish(store, claim.runs)
            steps.claim_s += claimed_s - began_s
            steps.finish_s += time.perf_counter() - claimed_s
        taken += len(claim.runs)
        progressed = claim.progressed
    steps.claimed = taken


def success(run: ClaimedRun, now_at: int) -> Settlement:
    """A run that did what it should, in no time."""
    return Settlement(
        job_id=run.job_id,
        scheduled_at=run.scheduled_at,
        slot=run.slot,
        fence=run.fence,
        event=Event.SUCCEED,
        version=run.version,
        tries=run.tries,
        started_at=now_at,
        finished_at=now_at,
    )


async def _finish(store: PostgresStore, runs: Sequence[ClaimedRun]) -> None:
    now_at = store.clock.now()
    refused = await store.settle(WORKER, [success(run, now_at) for run in runs])
    if refused:
        raise SystemExit(f"{len(refused)} outcomes were refused")
