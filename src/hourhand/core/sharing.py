"""How nodes without a leader share what there is: evenly within one, each from the same list of the living."""

from collections.abc import Collection, Mapping
from typing import NamedTuple


class Shift(NamedTuple):
    """What a node should give back, or take and from whom: 0 is nobody. It never does both."""

    gives: tuple[int, ...] = ()
    takes: Mapping[int, int] = {}


def quota(place: int, nodes: int, parts: int) -> int:
    """How many parts the node at a place among the living should hold; the first ones take the remainder."""
    if not 0 <= place < nodes:
        raise ValueError(f"place {place} is not among {nodes} nodes")
    return parts // nodes + (place < parts % nodes)


def shift(
    node: int, living: Collection[int], holders: Mapping[int, int], parts: int, *, inherits: bool
) -> Shift:
    """How a living node comes to its share, where `holders` says who has which part, the dead included.

    Free is what nobody has; and, if it `inherits`, what somebody has who is not among the living. Nodes begin
    at different places of what is free, so that those who look at the same moment seldom want the same.
    """
    order = sorted(living)
    place = order.index(node)
    held = sorted(part for part, holder in holders.items() if holder == node)
    missing = quota(place, len(order), parts) - len(held)
    if missing < 0:
        return Shift(gives=tuple(held[missing:]))
    gone = {0} if not inherits else {0, *holders.values()}.difference(order)
    free = [part for part in range(parts) if holders.get(part, 0) in gone]
    start = place * len(free) // len(order)
    return Shift(takes={part: holders.get(part, 0) for part in (free[start:] + free[:start])[:missing]})
