"""How nodes without a leader share what there is: evenly within one, each from the same list of the living."""


def quota(place: int, nodes: int, parts: int) -> int:
    """How many parts the node at a place among the living should hold; the first ones take the remainder."""
    if not 0 <= place < nodes:
        raise ValueError(f"place {place} is not among {nodes} nodes")
    return parts // nodes + (place < parts % nodes)
