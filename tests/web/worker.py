"""A worker by hand: takes what is due and ends it as a test wants, through the store's own verbs."""

from typing import Any

import msgspec

from hourhand.clock import ManualClock
from hourhand.core.identity import SEGMENTS
from hourhand.core.instant import DAY_US, MINUTE_US, SECOND_US
from hourhand.core.lifecycle import Event
from hourhand.core.plan import plan_clock
from hourhand.core.run import ClaimedRun, Settlement
from hourhand.core.schedule import parse_key
from hourhand.ports.store import ClaimRequest, Store

NODE = 77
NAME = "worker-1"


async def plan(store: Store, clock: ManualClock) -> int:
    """Write the runs of the next minute."""
    now_at = clock.now()
    clocks = await store.due_clocks(range(SEGMENTS), now_at + MINUTE_US, 1_000)
    return await store.plan(
        [
            plan_clock(one.id, parse_key(one.rule_key), one.next_at, now_at, now_at + MINUTE_US, one.misfires)
            for one in clocks
        ]
    )


async def take(store: Store) -> list[ClaimedRun]:
    """Claim everything that is due."""
    await store.renew_node(NODE, "worker", NAME, 365 * DAY_US)
    request = ClaimRequest(node_id=NODE, pools=("default",), room=1_000, lead_us=0)
    return (await store.claim(request)).runs


async def end(
    store: Store, clock: ManualClock, run: ClaimedRun, event: Event, detail: dict[str, Any], tries: int = 0
) -> None:
    """Commit an outcome; the attempt began 5 ms late and took 20 ms."""
    settlement = Settlement(
        job_id=run.job_id,
        scheduled_at=run.scheduled_at,
        slot=run.slot,
        fence=run.fence,
        event=event,
        version=run.version,
        tries=tries,
        due_at=clock.now() + SECOND_US,
        started_at=run.due_at + 5_000,
        finished_at=run.due_at + 25_000,
        detail=msgspec.json.encode(detail).decode(),
    )
    assert await store.settle(NAME, [settlement]) == []


async def succeed(store: Store, clock: ManualClock) -> list[str]:
    """Take what is due and let it succeed; answers the run ids."""
    runs = await take(store)
    for run in runs:
        await end(store, clock, run, Event.SUCCEED, {"response": {"status": 200}})
    return [run.run_id for run in runs]


async def fail(store: Store, clock: ManualClock, error: str = "HTTP 500 Internal Server Error") -> list[str]:
    """Take what is due and let it use up its tries; answers the run ids."""
    runs = await take(store)
    for run in runs:
        await end(store, clock, run, Event.EXHAUST, {"error": error, "response": {"status": 500}}, tries=4)
    return [run.run_id for run in runs]
