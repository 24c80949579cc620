"""Claims of runs by their keys, as far as every SQL store does it alike: where they may be, and what of them is left."""

from collections.abc import Sequence

from hourhand.core.identity import RunKey
from hourhand.core.model import MAX_CONCURRENCY
from hourhand.ports.store import ClaimRequest, LeftRun
from hourhand.stores.relational.rows import to_json
from hourhand.stores.relational.tx import Tx


def named_runs(request: ClaimRequest) -> list[RunKey]:
    """The runs that a claim names, each once, and no more than it has room for."""
    return list(dict.fromkeys(request.named))[: request.room]


def places_of(keys: Sequence[RunKey]) -> list[tuple[int, int, int, int]]:
    """Where a run with a slot can be, as bounds of its slot: below the limit, or its own time where there is none."""
    return [
        (key.job_id, key.scheduled_at, low, high)
        for key in keys
        for low, high in ((0, MAX_CONCURRENCY - 1), (key.scheduled_at, key.scheduled_at))
    ]


async def still_waiting(tx: Tx, request: ClaimRequest, keys: Sequence[RunKey]) -> tuple[LeftRun, ...]:
    """Those of some runs that wait in the worker's pools, for whatever reason."""
    if not keys:
        return ()
    asked = {"places": to_json(places_of(keys)), "pools": to_json(request.pools)}
    rows = await tx.all("still_waiting", asked)
    return tuple(LeftRun(*row) for row in dict.fromkeys(tuple(row) for row in rows))
