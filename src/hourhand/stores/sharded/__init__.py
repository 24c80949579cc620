"""Several stores as one, for those who ask by job and list over all: the API's instances."""

from hourhand.stores.sharded.identities import UNREACHABLE, check_shards
from hourhand.stores.sharded.per_shard import PerShardVerb
from hourhand.stores.sharded.store import ShardedStore

__all__ = ["UNREACHABLE", "PerShardVerb", "ShardedStore", "check_shards"]
