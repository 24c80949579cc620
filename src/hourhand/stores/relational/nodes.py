"""Operations of nodes: their leases, what they hold, and how schedulers share the segments."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from hourhand.core.serving import Serves
from hourhand.core.sharing import quota
from hourhand.ports.store import HeldRun, LeaseLost, NodeInfo, SegmentInfo
from hourhand.stores.relational.rows import to_json
from hourhand.stores.relational.tx import Tx


async def require_lease(tx: Tx, node_id: int) -> None:
    """Refuse a node whose lease has run out."""
    row = await tx.one("lease_of", (node_id,))
    if row is None or row[0] <= tx.now_at:
        raise LeaseLost


async def renew_node(tx: Tx, node_id: int, kind: str, name: str, lease_us: int) -> None:
    """Register a node or prolong its lease."""
    lease_until = tx.now_at + lease_us
    if await tx.run("renew_node", {"id": node_id, "now": tx.now_at, "lease_until": lease_until}):
        return
    if await tx.one("node_exists", (node_id,)) is not None:
        raise LeaseLost
    await tx.insert("add_node", [(node_id, kind, name, tx.now_at, lease_until)])


async def end_node(tx: Tx, node_id: int) -> None:
    """Declare a node gone; the sweeper takes its runs."""
    await tx.run("end_node", {"id": node_id, "now": tx.now_at})


async def tell_served(tx: Tx, node_id: int, serves: Serves) -> None:
    """Keep what a worker can run."""
    await tx.run("tell_served", {"id": node_id, "serves": to_json(serves)})


async def segments(tx: Tx) -> list[SegmentInfo]:
    """Every segment, and who holds it."""
    return [SegmentInfo(segment=row[0], node_id=row[1], fence=row[2]) for row in await tx.all("all_segments")]


async def nodes(tx: Tx) -> list[NodeInfo]:
    """Every node known."""
    return [node_of(row) for row in await tx.all("nodes")]


def node_of(row: Sequence[Any]) -> NodeInfo:
    """A node from its row."""
    return NodeInfo(
        id=row[0],
        kind=row[1],
        name=row[2],
        started_at=row[3],
        lease_until=row[4],
        serves=None if row[5] is None else msgspec.json.decode(row[5], type=Serves),
    )


async def held_runs(tx: Tx, name: str, node_id: int) -> list[HeldRun]:
    """What a node holds, by one of the statements for it."""
    return [HeldRun(row[0], row[1], row[2], row[3], bool(row[4])) for row in await tx.all(name, (node_id,))]


async def hold_segments(
    tx: Tx, segments: int, node_id: int, kind: str, name: str, lease_us: int
) -> Mapping[int, int]:
    """Renew a node and its even share of the segments; answers what it holds, each with its fence.

    A segment belongs to the node named in its row as long as that node's lease runs. Everybody computes
    its own share from the same list of live nodes, gives back what is more and takes what is free.
    """
    await renew_node(tx, node_id, kind, name, lease_us)
    peers = [row[0] for row in await tx.all("live_of_kind", (kind, tx.now_at))]
    share = quota(peers.index(node_id), len(peers), segments)
    held = dict(await tx.all("segments_of", (node_id,)))
    if len(held) > share:
        surplus = sorted(held)[share:]
        await tx.run("give_segments", {"node_id": node_id, "from": surplus[0]})
        held = {segment: fence for segment, fence in held.items() if segment < surplus[0]}
    elif len(held) < share:
        wanted = {"node_id": node_id, "now": tx.now_at, "limit": share - len(held)}
        held |= dict(await tx.all("take_segments", wanted))
    return held


async def hold_allotted(
    tx: Tx, node_id: int, kind: str, name: str, lease_us: int, allotted: Mapping[int, int]
) -> Mapping[int, int]:
    """Renew a node and have it hold what it was allotted, as far as that can be had; answers what it holds."""
    await renew_node(tx, node_id, kind, name, lease_us)
    held = dict(await tx.all("segments_of", (node_id,)))
    surplus = sorted(held.keys() - allotted.keys())
    if surplus:
        await tx.run("give_allotted", {"node_id": node_id, "segments": tx.array(surplus)})
        held = {segment: fence for segment, fence in held.items() if segment in allotted}
    missing = sorted((segment, heir_of) for segment, heir_of in allotted.items() if segment not in held)
    if missing:
        wanted = {"node_id": node_id, "now": tx.now_at, "allotted": to_json(missing)}
        held |= dict(await tx.all("take_allotted", wanted))
    return held
