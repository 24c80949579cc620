"""A worker as a process of its own: claims and finishes what there is, until nothing is left for a while.

python -m tests.stores.postgres_racer URL NUMBER
"""

import asyncio
import sys

from hourhand.core.instant import SECOND_US
from hourhand.ports.store import ClaimRequest
from hourhand.stores.postgres import PostgresStore
from tests.contract.builders import outcome

_IDLE_CLAIMS = 20  # in a row, after which there is nothing left for this one
_PAUSE_S = 0.02


async def race(url: str, number: int) -> None:
    """Claim in small bites, finish, and hand on, beside others who do the same."""
    store = await PostgresStore.open(url, pool_size=4)
    await store.renew_node(number, "worker", f"racer {number}", 600 * SECOND_US)
    await asyncio.gather(*(_work(store, number, room) for room in (1, 3, 20)))
    await store.close()


async def _work(store: PostgresStore, number: int, room: int) -> None:
    request = ClaimRequest(node_id=number, pools=("default",), room=room, lead_us=0)
    idle = 0
    while idle < _IDLE_CLAIMS:
        claim = await store.claim(request)
        if not claim.runs:
            idle += 0 if claim.progressed else 1
            await asyncio.sleep(_PAUSE_S)
            continue
        idle = 0
        refused = await store.settle(
            f"racer {number}", [outcome(run, now_at=claim.now_at) for run in claim.runs]
        )
        assert refused == [], refused


if __name__ == "__main__":
    asyncio.run(race(sys.argv[1], int(sys.argv[2])))
