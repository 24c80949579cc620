"""Whether the databases of the settings are one cluster: what is written into fresh ones, what is refused."""

import itertools
import random

import msgspec
import pytest

from hourhand.core.buckets import BucketMap, ShardIdentity, even_map
from hourhand.errors import CannotStart
from hourhand.stores.sharded import UNREACHABLE, check_shards
from hourhand.stores.sharded.identities import Found


def cluster(count: int, name: str = "c", complete: bool = True) -> list[Found]:
    return [
        ShardIdentity(cluster=name, index=index, buckets=even_map(count), complete=complete)
        for index in range(count)
    ]


def begin(databases: list[Found], name: str, stop_after: int = 100) -> None:
    """What a process does at its start, as far as it gets."""
    for _ in range(10):
        writes = check_shards(databases, name)
        if not writes:
            return
        for index, identity in writes.items():
            if stop_after == 0:
                return
            stop_after -= 1
            present = databases[index]
            if present is None or present == msgspec.structs.replace(identity, complete=False):
                databases[index] = identity
    raise AssertionError("it does not come to an end")


@pytest.mark.parametrize("count", [1, 2, 5])
def test_fresh_databases_become_a_cluster(count: int) -> None:
    databases: list[Found] = [None] * count
    begin(databases, "new")
    assert databases == cluster(count, "new")
    assert check_shards(databases, "other") == {}


@pytest.mark.parametrize("steps", range(7))
def test_a_beginning_that_was_interrupted_goes_on(steps: int) -> None:
    databases: list[Found] = [None] * 3
    begin(databases, "first", stop_after=steps)
    begin(databases, "second")
    assert databases == cluster(3, "first" if steps else "second")


@pytest.mark.parametrize("seed", range(50))
def test_processes_that_begin_at_once_agree(seed: int) -> None:
    """Each writes by what it read a while ago, in any order; only what the rule for writing allows is applied."""
    dice = random.Random(seed)
    databases: list[Found] = [None] * 3
    pending: list[tuple[int, ShardIdentity]] = []
    for number in itertools.count():
        writes = check_shards(databases, f"process-{number % 4}")
        pending += writes.items()
        if not pending:
            break
        index, identity = pending.pop(dice.randrange(len(pending)))
        if databases[index] in (None, msgspec.structs.replace(identity, complete=False)):
            databases[index] = identity
    first = databases[0]
    assert isinstance(first, ShardIdentity)
    assert databases == cluster(3, first.cluster)


def refused(databases: list[Found]) -> str:
    with pytest.raises(CannotStart) as error:
        check_shards(databases, "new")
    return error.value.message


def test_another_order_is_refused() -> None:
    one, two, three = cluster(3)
    assert "store.shards[0] is the database of shard 1" in refused([two, one, three])


def test_a_database_named_twice_is_refused() -> None:
    one, _, three = cluster(3)
    assert "store.shards[1] is the database of shard 0" in refused([one, one, three])


def test_a_database_of_another_cluster_is_refused() -> None:
    message = refused([cluster(2)[0], cluster(2, "d")[1]])
    assert "store.shards[0] and store.shards[1] belong to different clusters (c and d)" in message


def test_a_database_left_out_or_added_is_refused() -> None:
    assert "a cluster of 3 databases, but the settings name 2: none may be left out" in refused(
        cluster(3)[:2]
    )
    assert "a cluster of 2 databases, but the settings name 3: none may be added" in refused(
        [*cluster(2), None]
    )


@pytest.mark.parametrize("empty", range(3))
def test_an_empty_database_in_the_place_of_one_in_use_is_refused(empty: int) -> None:
    databases = cluster(3)
    databases[empty] = None
    assert f"store.shards[{empty}] is empty" in refused(databases)


def test_the_first_database_is_never_given_an_identity_after_others() -> None:
    assert "store.shards[0] is empty" in refused([None, *cluster(2, complete=False)[1:]])


def test_maps_that_differ_are_refused() -> None:
    one, two = cluster(2)
    assert isinstance(two, ShardIdentity)
    other = msgspec.structs.replace(two, buckets=BucketMap((1, *even_map(2).shards[1:])))
    assert "map buckets to shards differently" in refused([one, other])


def test_a_cluster_in_use_starts_without_a_database_that_is_away_but_a_new_one_does_not() -> None:
    databases = cluster(3)
    databases[0] = UNREACHABLE
    assert check_shards(databases, "new") == {}
    assert "first start needs every database" in refused([None, UNREACHABLE])
    assert "is the database of shard 2" in refused([UNREACHABLE, *cluster(3)[:0:-1]])


@pytest.mark.parametrize("count", [0, 65])
def test_a_number_of_databases_that_cannot_be_is_refused(count: int) -> None:
    assert f"1 to 64 databases, got {count}" in refused([None] * count)
