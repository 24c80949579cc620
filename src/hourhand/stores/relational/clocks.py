"""Operations on clocks: which are due, how their members miss, and what was missed."""

from collections.abc import Sequence

from hourhand.core.model import FOREVER, MisfirePolicy
from hourhand.core.plan import Gap, MisfireGroup
from hourhand.ports.store import Clock
from hourhand.stores.relational.tx import Tx


async def due_clocks(tx: Tx, segments: Sequence[int], before_at: int, limit: int) -> list[Clock]:
    """Clocks to be planned; for those that are behind, how their members miss."""
    found = []
    for clock_id, rule_key, next_at, segment in await tx.all(
        "due_clocks", (before_at, tx.array(segments), limit)
    ):
        misfires = await misfires_of(tx, clock_id, next_at, tx.now_at) if next_at <= tx.now_at else ()
        found.append(
            Clock(id=clock_id, rule_key=rule_key, next_at=next_at, segment=segment, misfires=misfires)
        )
    return found


async def next_clock_at(tx: Tx, segments: Sequence[int]) -> int | None:
    """When the next clock is to be planned."""
    row = await tx.one("next_clock", (tx.array(segments),))
    return None if row is None else row[0]


async def record_gaps(tx: Tx, clock_id: int, gaps: Sequence[Gap]) -> None:
    """Keep what members of a clock missed."""
    await tx.insert(
        "add_gap",
        [
            (
                clock_id,
                gap.from_at,
                gap.to_at,
                gap.policy.value,
                gap.grace_us,
                gap.limit,
                gap.missed,
                gap.ran,
                tx.now_at,
            )
            for gap in gaps
        ],
    )


async def misfires_of(tx: Tx, clock_id: int, next_at: int, before_at: int) -> tuple[MisfireGroup, ...]:
    """The groups of a clock's members that miss alike."""
    rows = await tx.all("misfires_of", {"clock_id": clock_id, "next_at": next_at, "before": before_at})
    return tuple(
        MisfireGroup(MisfirePolicy(policy), grace_us, limit, FOREVER if until is None else until)
        for policy, grace_us, limit, until in rows
    )
