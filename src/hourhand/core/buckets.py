"""Where a job lives when jobs are spread over several databases.

A job's placement text falls into one of 1,024 buckets by a hash; a `BucketMap`, kept as data in every database,
says which shard has a bucket. Creation writes the shard into the job id, and from then on the id decides.
A job with a key is always placed by that key, so that one shard alone can promise that a key is one job's.
"""

from collections.abc import Mapping
from hashlib import blake2b
from itertools import groupby

import msgspec

from hourhand.core.fault import Fault
from hourhand.core.identity import MAX_SHARDS
from hourhand.core.model import JobSpec

BUCKETS = 1_024

_META = ("cluster", "shard", "shards", "buckets", "shards_complete")


class BucketMap(msgspec.Struct, frozen=True):
    """Which shard has each bucket.

    New maps give every shard one contiguous range: written down it stays short, and when a shard is added
    one can see which ranges move. Nothing depends on that form, only on what is written.
    """

    shards: tuple[int, ...]  # of each bucket

    def __post_init__(self) -> None:
        if len(self.shards) != BUCKETS:
            raise ValueError(f"a map has {BUCKETS} buckets, got {len(self.shards)}")
        if set(self.shards) != set(range(self.count)):
            raise ValueError(f"every shard from 0 to {self.count - 1} needs a bucket")
        if self.count > MAX_SHARDS:
            raise ValueError(f"at most {MAX_SHARDS} shards, got {self.count}")

    @property
    def count(self) -> int:
        """How many shards there are."""
        return max(self.shards) + 1

    def shard_of(self, bucket: int) -> int:
        """The shard that has a bucket."""
        return self.shards[bucket]

    def encode(self) -> str:
        """As text: how many buckets in a row each shard has, such as `512x0 512x1`."""
        return " ".join(f"{len(list(run))}x{shard}" for shard, run in groupby(self.shards))


def even_map(count: int) -> BucketMap:
    """The map of a new cluster: contiguous ranges, as even as can be."""
    if not 1 <= count <= MAX_SHARDS:
        raise ValueError(f"from 1 to {MAX_SHARDS} shards, got {count}")
    return BucketMap(tuple(bucket * count // BUCKETS for bucket in range(BUCKETS)))


def decode_map(text: str) -> BucketMap:
    """The map behind its text; ValueError where it is none."""
    shards: list[int] = []
    for part in text.split():
        length, _, shard = part.partition("x")
        if not (length.isdecimal() and shard.isdecimal()) or int(length) > BUCKETS:
            raise ValueError(f"not a range of buckets: {part[:40]!r}")
        shards += [int(shard)] * int(length)
    return BucketMap(tuple(shards))


class ShardIdentity(msgspec.Struct, frozen=True, kw_only=True):
    """What a database of a cluster knows about itself."""

    cluster: str
    index: int
    buckets: BucketMap
    complete: bool = False  # every database of the cluster was seen with its identity

    @property
    def count(self) -> int:
        """How many shards the cluster has."""
        return self.buckets.count

    def as_meta(self) -> dict[str, str]:
        """As rows of `meta`."""
        values = (self.cluster, str(self.index), str(self.count), self.buckets.encode())
        return dict(zip(_META, (*values, "yes" if self.complete else "no"), strict=True))


def identity_in(meta: Mapping[str, str]) -> ShardIdentity | None:
    """The identity that is written in `meta`, None in a fresh database; ValueError where it is damaged."""
    cluster, shard, shards, buckets, complete = (meta.get(name) for name in _META)
    if cluster is None:
        return None
    if shard is None or shards is None or buckets is None:
        raise ValueError("the identity of this shard is incomplete")
    known = ShardIdentity(
        cluster=cluster, index=int(shard), buckets=decode_map(buckets), complete=complete == "yes"
    )
    if str(known.count) != shards:
        raise ValueError(f"the buckets name {known.count} shards, but there are {shards}")
    return known


def bucket_of(text: str) -> int:
    """The bucket of a placement text: a hash that is the same in every process and version."""
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big") % BUCKETS


def placement(tenant: str, spec: JobSpec) -> str | None:
    """The text whose bucket a job falls into; None where any place is as good as another."""
    together = spec.shard_key if spec.key is None else key_part(spec.key)
    return None if together is None else f"{tenant}\0{together}"


def key_placement(tenant: str, key: str) -> str:
    """The text that places every job with this key."""
    return f"{tenant}\0{key_part(key)}"


def key_part(key: str) -> str:
    """What of a key decides its place: what stands in the first braces, `{billing}/daily`, else all of it."""
    _, _, rest = key.partition("{")
    inside, brace, _ = rest.partition("}")
    return inside if brace and inside else key


def placement_fault(spec: JobSpec) -> Fault | None:
    """What is wrong with a job that wants to be in two places: where its key and where its shard_key says."""
    if spec.key is None or spec.shard_key is None or key_part(spec.key) == spec.shard_key:
        return None
    return Fault(
        pointer="/shard_key",
        expected=f"{key_part(spec.key)!r}, or none: where jobs are spread over several databases, "
        "a job's key decides its place",
        got=repr(spec.shard_key),
        hint=f"to keep jobs with keys together, write what they share in braces: {_suggested(spec)!r}",
    )


def split_graph_fault() -> Fault:
    """What is wrong with a job that is to follow jobs of other databases."""
    return Fault(
        pointer="/after",
        expected="jobs that lie in the same database as this one",
        got="jobs in several databases",
        hint="give all jobs of a graph the same shard_key, or keys with the same word in braces",
    )


def _suggested(spec: JobSpec) -> str:
    key, together = spec.key or "", spec.shard_key or ""
    braced = f"{{{together}}}"
    return key.replace(together, braced, 1) if together in key else f"{braced}/{key}"
