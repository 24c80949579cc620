"""Words for schedulers that renew time and again until they share as they should."""

from collections.abc import Callable

from hourhand.core.identity import SEGMENTS
from hourhand.core.sharing import quota
from hourhand.ports.store import LeaseLost
from tests.leases.harness import LeasesHarness, Node

ROUNDS = 40  # more than anything here needs


async def rounds(
    harness: LeasesHarness, nodes: list[Node], enough: Callable[[], bool], most: int = ROUNDS
) -> int:
    """Let all renew, time and again, until it is enough; says how many rounds it took."""
    for number in range(1, most + 1):
        for node in nodes:
            await node.renew()
        if enough():
            return number
        await harness.pass_time(harness.lease_us // 6)
    raise AssertionError(f"not within {most} rounds: {[len(node.held) for node in nodes]}")


def even(*nodes: Node) -> bool:
    """Whether all segments are held, each once, in even shares."""
    held = [segment for node in nodes for segment in node.held]
    shares = sorted((quota(place, len(nodes), SEGMENTS) for place in range(len(nodes))), reverse=True)
    return len(set(held)) == len(held) and sorted(map(len, (n.held for n in nodes)), reverse=True) == shares


async def joined(harness: LeasesHarness, count: int) -> list[Node]:
    """Nodes that share evenly."""
    nodes = []
    for _ in range(count):
        nodes.append(await harness.node().join())
    await rounds(harness, nodes, lambda: even(*nodes))
    return nodes


async def rejoined(node: Node) -> Node:
    """The node, under a new id where it needs one."""
    try:
        return await node.renew()
    except LeaseLost:
        return await node.join()
