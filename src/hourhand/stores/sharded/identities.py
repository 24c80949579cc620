"""Whether the databases that the settings name are the shards of one cluster, each in its place.

Pure: reads what was found in each database, and answers what is to be written next. Identities are first given
to all databases and only then marked complete: so a beginning that was interrupted can go on, but an empty
database in the place of one that was in use is refused.
"""

from collections.abc import Sequence
from enum import Enum

import msgspec

from hourhand.core.buckets import ShardIdentity, even_map
from hourhand.core.identity import MAX_SHARDS
from hourhand.errors import CannotStart


class Silence(Enum):
    """A database that could not be asked."""

    UNREACHABLE = "unreachable"


UNREACHABLE = Silence.UNREACHABLE

Found = ShardIdentity | Silence | None  # None: a fresh database


def check_shards(found: Sequence[Found], new_cluster: str) -> dict[int, ShardIdentity]:
    """What to write where, or CannotStart; write it, read again and repeat until nothing is left to write.

    An identity may only be written where there is none yet, or over the same one that was not complete: then
    any number of processes may do this at once. `new_cluster` is the id that a new cluster gets.
    """
    if not 1 <= len(found) <= MAX_SHARDS:
        raise CannotStart(f"store.shards: expected 1 to {MAX_SHARDS} databases, got {len(found)}")
    known = {index: one for index, one in enumerate(found) if isinstance(one, ShardIdentity)}
    for index, identity in known.items():
        _check(index, identity, next(iter(known.items())), len(found))
    fresh = [index for index, one in enumerate(found) if one is None]
    silent = [index for index, one in enumerate(found) if one is UNREACHABLE]
    in_use = any(identity.complete for identity in known.values())
    if fresh and (in_use or (known and 0 in fresh)):  # the first database is the first to get an identity
        raise CannotStart(
            f"{_named(fresh)} is empty, but other databases belong to a cluster already: "
            "restore it from a backup, or correct its URL"
        )
    if in_use and silent:
        return {}
    if silent:
        raise CannotStart(f"{_named(silent)} cannot be reached; the first start needs every database")
    if 0 in fresh:  # it alone: whoever writes it names the cluster
        return {0: ShardIdentity(cluster=new_cluster, index=0, buckets=even_map(len(found)))}
    if fresh:
        return {index: msgspec.structs.replace(known[0], index=index, complete=False) for index in fresh}
    return {
        index: msgspec.structs.replace(identity, complete=True)
        for index, identity in known.items()
        if not identity.complete
    }


def _check(index: int, identity: ShardIdentity, first: tuple[int, ShardIdentity], count: int) -> None:
    first_index, other = first
    if identity.cluster != other.cluster:
        raise CannotStart(
            f"{_named([first_index])} and {_named([index])} belong to different clusters "
            f"({other.cluster} and {identity.cluster})"
        )
    if identity.count != count:
        change = "added" if count > identity.count else "left out"
        raise CannotStart(
            f"{_named([index])} belongs to a cluster of {identity.count} databases, but the settings name {count}: "
            f"none may be {change}"
        )
    if identity.index != index:
        raise CannotStart(
            f"{_named([index])} is the database of shard {identity.index}: "
            "name the databases in the order of the first start, each once"
        )
    if identity.buckets != other.buckets:
        raise CannotStart(f"{_named([first_index])} and {_named([index])} map buckets to shards differently")


def _named(indexes: Sequence[int]) -> str:
    return " and ".join(f"store.shards[{index}]" for index in indexes)
