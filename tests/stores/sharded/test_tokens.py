"""API tokens of a cluster: each in one database that its id names, listed as one, and the others' when one is away."""

import pytest

from hourhand.core.api_token import ApiToken, format_token_id
from hourhand.core.buckets import bucket_of, even_map
from hourhand.errors import Unavailable
from hourhand.ids import IdSource
from hourhand.ports.tokens import TokenQuery
from tests.contract.test_tokens import token
from tests.stores.sharded.cluster import SHARDS, Cluster


def home(token_id: int) -> int:
    return even_map(SHARDS).shard_of(bucket_of(format_token_id(token_id)))


async def fill(cluster: Cluster, count: int = 60) -> list[int]:
    ids = IdSource(cluster.clock, seed=3)
    made = [ids.job_id() for _ in range(count)]
    for token_id in made:
        assert await cluster.store.add_token(token(token_id))
    return made


async def test_each_lies_in_the_one_database_that_its_id_names(cluster: Cluster) -> None:
    made = await fill(cluster)
    assert {home(token_id) for token_id in made} == set(range(SHARDS))
    for token_id in made:
        where = [n for n, shard in enumerate(cluster.shards) if await shard.find_token(token_id)]
        assert where == [home(token_id)]


async def test_lists_are_one_list(cluster: Cluster) -> None:
    made = await fill(cluster)
    seen: list[ApiToken] = []
    before = None
    while True:
        page = await cluster.store.list_tokens(TokenQuery(tenant="acme", before_id=before, limit=7))
        seen += page.tokens
        before = page.next_before_id
        if before is None:
            break
    assert [one.id for one in seen] == sorted(made, reverse=True)


async def test_one_lookup_suffices_whoever_else_is_away(cluster: Cluster) -> None:
    made = await fill(cluster)
    cluster.shards[1].away = True
    for token_id in made:
        if home(token_id) == 1:
            with pytest.raises(Unavailable):
                await cluster.store.find_token(token_id)
        else:
            assert await cluster.store.find_token(token_id) is not None
    page = await cluster.store.list_tokens(TokenQuery(tenant="acme", limit=100))
    assert page.missing == (1,)
    assert {home(one.id) for one in page.tokens} == {0, 2}
    await cluster.store.note_token_use(made)  # of those who answer
    for token_id in made:
        if home(token_id) != 1:
            found = await cluster.store.find_token(token_id)
            assert found is not None
            assert found.last_used_at == cluster.clock.now()


async def test_revoking_reaches_the_one_that_has_it(cluster: Cluster) -> None:
    made = await fill(cluster, 20)
    for token_id in made:
        assert await cluster.store.revoke_token("globex", token_id) is None
        done = await cluster.store.revoke_token("acme", token_id)
        assert done is not None
        assert done.revoked_at is not None
