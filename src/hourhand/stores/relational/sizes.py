"""How much there is: of everything, for metrics, and of what belongs to one tenant. Counts are bounded, and never write."""

from hourhand.core.identity import LANES_PER_POOL, lanes_of_tenant
from hourhand.ports.store import Backlog
from hourhand.stores.relational.tx import Tx

MOST_COUNTED = 100_000  # of a tenant's jobs and dead letters
MOST_LOOKED_AT = 10_000  # rows of a hot table, other tenants' too, that one tenant's are looked for among
_COUNT_BOUND = 1_000_000


async def backlog(tx: Tx) -> Backlog:
    """Sizes for metrics."""
    planned, running, blocked, dead, waiting = await tx.one("count_hot", {"bound": _COUNT_BOUND})
    first_due = [
        row[1]
        for (pool,) in await tx.all("all_pools")
        for row in await tx.all(
            "waiting_lanes", {"first": pool * LANES_PER_POOL, "last": (pool + 1) * LANES_PER_POOL}
        )
    ]
    return Backlog(
        jobs=(await tx.one("count_jobs"))[0],
        planned=planned,
        running=running,
        blocked=blocked,
        dead=dead,
        waiting=waiting,
        oldest_due_at=min(first_due, default=None),
    )


async def backlog_of(tx: Tx, tenant: str) -> Backlog:
    """The same of one tenant. Hot tables do not know tenants: as many rows as a moment allows are asked for theirs."""
    jobs, dead = await tx.one("count_own", {"tenant": tenant, "bound": MOST_COUNTED})
    whose = {"tenant": tenant, "bound": MOST_LOOKED_AT}
    lanes = lanes_of_tenant(tenant, [row[0] for row in await tx.all("all_pools")])
    looked, planned, oldest_due_at = await tx.one("own_planned", {**whose, "lanes": tx.array(lanes)})
    counts, most_looked = [], looked
    for name in ("own_running", "own_blocked", "own_waiting"):
        looked, own = await tx.one(name, whose)
        counts.append(own)
        most_looked = max(most_looked, looked)
    running, blocked, waiting = counts
    return Backlog(
        jobs=jobs,
        planned=planned,
        running=running,
        blocked=blocked,
        dead=dead,
        waiting=waiting,
        oldest_due_at=oldest_due_at,
        complete=most_looked < MOST_LOOKED_AT and max(jobs, dead) < MOST_COUNTED,
    )
