"""Names that are computed, not invented: job ids, run ids, segments, lanes, jitter.

Every node gets the same answer from the same input, so planning twice makes nothing twice.
Where a number is also computed in SQL, its operands stay below 2^31 so that no dialect overflows.
"""

from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple
from zlib import crc32

from hourhand.core.instant import compact_instant, parse_compact_instant

SEGMENTS = 64
TENANT_LANES = 16
CLASSES = 4  # HIGH, MEDIUM, LOW, background
BACKGROUND = 3
_LANES_PER_CLASS = 32
LANES_PER_POOL = CLASSES * _LANES_PER_CLASS
SKIP_LANE = 0  # of no pool, since pools are numbered from 1: what waits here is never claimed

MAX_SHARDS = 64  # as many as the shard bits of a job id can name
ID_EPOCH_MS = 1_577_836_800_000  # 2020-01-01, where the milliseconds of job ids begin
ID_NODE_BITS = 10
ID_COUNTER_BITS = 6
_ID_SHARD_BITS = 6
_BELOW_SHARD_BITS = ID_NODE_BITS + ID_COUNTER_BITS

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"  # Crockford's: no i, l, o, u to misread
_PAIRS = tuple(high + low for high in _ALPHABET for low in _ALPHABET)
_VALUES = {letter: value for value, letter in enumerate(_ALPHABET)}
_ID_LETTERS = 13  # 65 bits, enough for 63
_PRIME = 2_147_483_647  # 2^31 - 1

_compact = lru_cache(maxsize=1024)(compact_instant)  # a herd shares its time


class RunKey(NamedTuple):
    """The identity of a run, and nothing else is."""

    job_id: int
    scheduled_at: int


def compose_job_id(milliseconds: int, shard: int, node: int, counter: int) -> int:
    """A job id from its parts: 41 bits of milliseconds since 2020, then shard, drawn number and counter.

    Time leads, so ids of all shards together sort by age; the parts below it only keep them apart.
    """
    if not 0 <= shard < MAX_SHARDS:
        raise ValueError(f"a shard is a number from 0 to {MAX_SHARDS - 1}, got {shard}")
    return (milliseconds << _ID_SHARD_BITS | shard) << _BELOW_SHARD_BITS | node << ID_COUNTER_BITS | counter


def shard_of(job_id: int) -> int:
    """The shard that a job was created on and stays on."""
    return job_id >> _BELOW_SHARD_BITS & MAX_SHARDS - 1


def format_job_id(job_id: int) -> str:
    """`J-` and 13 letters; sorts as the number does."""
    pairs = _PAIRS  # ten bits at a time, for every call to a target names its run
    return (
        f"J-{_ALPHABET[job_id >> 60]}{pairs[job_id >> 50 & 1023]}{pairs[job_id >> 40 & 1023]}"
        f"{pairs[job_id >> 30 & 1023]}{pairs[job_id >> 20 & 1023]}{pairs[job_id >> 10 & 1023]}{pairs[job_id & 1023]}"
    )


def parse_job_id(text: str) -> int:
    """The number behind a public job id; ValueError where it is not one."""
    letters = text[2:].lower()
    if not text.startswith(("J-", "j-")) or len(letters) != _ID_LETTERS:
        raise ValueError(f"not a job id: {text[:80]!r} (expected J- and {_ID_LETTERS} letters or digits)")
    value = 0
    for letter in letters:
        if letter not in _VALUES:
            raise ValueError(f"not a job id: {text[:80]!r} ({letter!r} does not occur in ids)")
        value = value << 5 | _VALUES[letter]
    if value >> 63:
        raise ValueError(f"not a job id: {text[:80]!r} (too large)")
    return value


def format_backfill_id(backfill_id: int) -> str:
    """`B-` and 13 letters, made like a job's."""
    return f"B-{format_job_id(backfill_id)[2:]}"


def parse_backfill_id(text: str) -> int:
    """The number behind a public backfill id; ValueError where it is not one."""
    return _parse_like_a_job("B-", text, "a backfill id")


def format_operation_id(operation_id: int) -> str:
    """`O-` and 13 letters, made like a job's."""
    return f"O-{format_job_id(operation_id)[2:]}"


def parse_operation_id(text: str) -> int:
    """The number behind a public operation id; ValueError where it is not one."""
    return _parse_like_a_job("O-", text, "an operation id")


def format_run_id(job_id: int, scheduled_at: int) -> str:
    """`J-…@20261116T080000Z`: typeable, and the idempotency key given to targets."""
    return f"{format_job_id(job_id)}@{_compact(scheduled_at)}"


def parse_run_id(text: str) -> RunKey:
    """The identity behind a public run id; ValueError where it is not one."""
    job, at, instant = text.partition("@")
    if not at:
        raise ValueError(f"not a run id: {text[:80]!r} (expected <job id>@20261116T080000Z)")
    return RunKey(parse_job_id(job), parse_compact_instant(instant))


def segment_of(job_id: int, segments: int = SEGMENTS) -> int:
    """Which segment a job belongs to. Ids are time-ordered, so they are mixed first."""
    mixed = (job_id ^ job_id >> 31) * 0x9E3779B97F4A7C15 & 0xFFFFFFFFFFFFFFFF
    return (mixed >> 40) % segments


def tenant_lane(tenant: str) -> int:
    """Which of the lanes of its class a tenant's runs wait in."""
    return crc32(tenant.encode()) % TENANT_LANES


def lane_of(pool_id: int, run_class: int, tenant_slot: int) -> int:
    """A lane as one number: pool, then class, then tenant slot."""
    return pool_id * LANES_PER_POOL + run_class * _LANES_PER_CLASS + tenant_slot


def lanes_of_tenant(tenant: str, pool_ids: Iterable[int]) -> list[int]:
    """All lanes that a tenant's runs may wait in; other tenants' may wait there too."""
    slot = tenant_lane(tenant)
    return [lane_of(pool_id, run_class, slot) for pool_id in pool_ids for run_class in range(CLASSES)]


def class_of_lane(lane: int) -> int:
    """The class a lane belongs to."""
    return lane % LANES_PER_POOL // _LANES_PER_CLASS


def background_lane(lane: int) -> int:
    """The lane beside a lane for work that may wait: the same pool and tenant slot, the background class."""
    return lane + (BACKGROUND - class_of_lane(lane)) * _LANES_PER_CLASS


def jitter_us(job_id: int, scheduled_at: int, span_us: int) -> int:
    """How long after its nominal time a run is due: a hash, the same in Python and SQL.

    `span_us` is the job's jitter or the distance to the next nominal time, whichever is less;
    the answer is a whole number of milliseconds below it.
    """
    span_ms = span_us // 1000
    if span_ms <= 1:
        return 0
    seed = (job_id % _PRIME) * 48271 + (scheduled_at // 1000) % _PRIME
    return (seed % _PRIME) * 69621 % _PRIME % span_ms * 1000


def _parse_like_a_job(prefix: str, text: str, noun: str) -> int:
    try:
        if text[:2].upper() == prefix:
            return parse_job_id(f"J-{text[2:]}")
    except ValueError:
        pass
    raise ValueError(f"not {noun}: {text[:80]!r} (expected {prefix} and {_ID_LETTERS} letters or digits)")
