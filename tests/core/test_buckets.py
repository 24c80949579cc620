"""Where jobs go: buckets, the map of them, what of a job decides, and what a database knows about itself."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hourhand.core.buckets import (
    BUCKETS,
    BucketMap,
    ShardIdentity,
    bucket_of,
    decode_map,
    even_map,
    identity_in,
    key_part,
    key_placement,
    placement,
    placement_fault,
)
from hourhand.core.identity import MAX_SHARDS, compose_job_id, shard_of
from hourhand.core.model import JobSpec, OnceTiming, PythonTarget

TEXTS = st.text(min_size=1, max_size=20)


def job(**fields: str | None) -> JobSpec:
    return JobSpec(timing=OnceTiming(at=0), target=PythonTarget(function="a:b"), **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "bucket"), [("", 692), ("default\0billing", 487), ("default\0billing/daily", 635), ("ü", 823)]
)
def test_buckets_stay_what_they_are(text: str, bucket: int) -> None:
    assert bucket_of(text) == bucket


def test_texts_that_are_alike_spread_over_all_buckets() -> None:
    filled = Counter(bucket_of(f"default\0import/{number:08}") for number in range(BUCKETS * 50))
    assert len(filled) == BUCKETS
    assert max(filled.values()) < 100  # 50 on average; seven standard deviations


@given(st.integers(1, MAX_SHARDS))
def test_a_new_map_is_even_and_comes_back_from_its_text(count: int) -> None:
    made = even_map(count)
    sizes = Counter(made.shard_of(bucket) for bucket in range(BUCKETS))
    assert made.count == len(sizes) == count
    assert max(sizes.values()) - min(sizes.values()) <= 1
    assert decode_map(made.encode()) == made
    assert len(made.encode().split()) == count


@given(st.binary(min_size=BUCKETS - 4, max_size=BUCKETS - 4))
def test_any_map_comes_back_from_its_text(rest: bytes) -> None:
    made = BucketMap((0, 1, 2, 3, *(byte % 4 for byte in rest)))
    assert decode_map(made.encode()) == made


@pytest.mark.parametrize(
    "text", ["", "1024", "1023x0", "1025x0", "512x0 512x2", "1024x1", "-1x0 1025x0", "9999999999x0", "ax0"]
)
def test_what_is_no_map_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        decode_map(text)


@pytest.mark.parametrize("count", [0, MAX_SHARDS + 1])
def test_there_are_as_many_shards_as_an_id_can_name(count: int) -> None:
    with pytest.raises(ValueError, match="from 1 to 64"):
        even_map(count)


@given(
    st.integers(0, 2**41 - 1),
    st.integers(0, MAX_SHARDS - 1),
    st.integers(0, 2**10 - 1),
    st.integers(0, 2**6 - 1),
)
def test_an_id_tells_its_shard_and_sorts_by_time(at: int, shard: int, node: int, counter: int) -> None:
    made = compose_job_id(at, shard, node, counter)
    assert 0 <= made < 2**63
    assert shard_of(made) == shard
    assert compose_job_id(at + 1, 0, 0, 0) > made


@pytest.mark.parametrize("shard", [-1, MAX_SHARDS])
def test_a_shard_that_no_id_can_name_is_refused(shard: int) -> None:
    with pytest.raises(ValueError, match="from 0 to 63"):
        compose_job_id(1, shard, 0, 0)


@pytest.mark.parametrize(
    ("key", "part"),
    [
        ("billing/daily", "billing/daily"),
        ("{billing}/daily", "billing"),
        ("a/{billing}/{b}", "billing"),
        ("{}x", "{}x"),
        ("{open", "{open"),
        ("close}", "close}"),
        ("}{a}", "a"),
    ],
)
def test_braces_say_what_of_a_key_decides(key: str, part: str) -> None:
    assert key_part(key) == part


def test_a_key_decides_then_a_shard_key_then_nothing() -> None:
    assert placement("t", job()) is None
    assert placement("t", job(shard_key="s")) == "t\0s"
    assert placement("t", job(key="k")) == key_placement("t", "k") == "t\0k"
    assert placement("t", job(key="{s}/k")) == placement("t", job(shard_key="s"))
    assert placement("u", job(key="k")) != placement("t", job(key="k"))


@given(TEXTS, TEXTS | st.none())
def test_whoever_has_a_key_is_where_the_key_says(key: str, shard_key: str | None) -> None:
    spec = job(key=key, shard_key=shard_key)
    assert placement("t", spec) == key_placement("t", key)
    assert placement_fault(spec) is None or shard_key not in (None, key_part(key))


@pytest.mark.parametrize(
    ("key", "shard_key", "suggested"),
    [("billing/daily", "billing", "{billing}/daily"), ("daily", "billing", "{billing}/daily")],
)
def test_a_job_that_wants_to_be_in_two_places_is_told_how_to_ask(
    key: str, shard_key: str, suggested: str
) -> None:
    fault = placement_fault(job(key=key, shard_key=shard_key))
    assert fault is not None
    assert fault.pointer == "/shard_key"
    assert fault.hint is not None
    assert repr(suggested) in fault.hint
    assert placement_fault(job(key=suggested, shard_key=shard_key)) is None


def test_an_identity_comes_back_from_meta() -> None:
    one = ShardIdentity(cluster="c", index=1, buckets=even_map(3), complete=True)
    assert identity_in(one.as_meta()) == one
    assert identity_in({**one.as_meta(), "schema": "7"}) == one
    assert identity_in({"schema": "7"}) is None
    with pytest.raises(ValueError, match="incomplete"):
        identity_in({"cluster": "c"})
    with pytest.raises(ValueError, match="name 3 shards, but there are 4"):
        identity_in({**one.as_meta(), "shards": "4"})
