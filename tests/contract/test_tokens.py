"""API tokens: found by id, listed by tenant, revoked once and for all; of the secret only a hash is there."""

import asyncio

import pytest

from hourhand.core.access import EVERY_TENANT, Role
from hourhand.core.api_token import MAX_TOKENS, ApiToken, digest_of
from hourhand.core.instant import DAY_US, SECOND_US
from hourhand.errors import Conflict
from hourhand.ports.tokens import TokenQuery
from tests.contract.scene import Scene


def token(token_id: int, tenant: str = "acme", **fields: object) -> ApiToken:
    values = {"name": f"ci {token_id}", "role": Role.EDITOR, "digest": digest_of(f"s{token_id}")}
    return ApiToken(id=token_id, tenant=tenant, created_at=5, **{**values, **fields})  # type: ignore[arg-type]


async def listed(scene: Scene, tenant: str | None, **fields: int) -> list[int]:
    return [one.id for one in (await scene.store.list_tokens(TokenQuery(tenant=tenant, **fields))).tokens]


async def test_what_was_added_is_found_as_it_was(scene: Scene) -> None:
    made = token(7, expires_at=scene.now + DAY_US, created_by="ann", name="ç'i\n")
    assert await scene.store.add_token(made)
    assert await scene.store.find_token(7) == made
    assert await scene.store.find_token(8) is None


async def test_an_id_is_one_tokens_and_adding_may_be_repeated(scene: Scene) -> None:
    assert await scene.store.add_token(token(7))
    assert await scene.store.add_token(token(7))
    assert not await scene.store.add_token(token(7, "globex", digest=digest_of("another")))
    found = await scene.store.find_token(7)
    assert found is not None
    assert found.tenant == "acme"


async def test_a_list_is_a_tenants_own_newest_first(scene: Scene) -> None:
    for token_id in range(1, 8):
        await scene.store.add_token(token(token_id, ("acme", "globex", EVERY_TENANT)[token_id % 3]))
    assert await listed(scene, "acme") == [6, 3]
    assert await listed(scene, "globex") == [7, 4, 1]
    assert await listed(scene, EVERY_TENANT) == [5, 2]
    assert await listed(scene, "initech") == []
    assert await listed(scene, None) == [7, 6, 5, 4, 3, 2, 1]
    page = await scene.store.list_tokens(TokenQuery(tenant=None, limit=3))
    assert page.next_before_id == 5
    assert await listed(scene, None, before_id=5, limit=3) == [4, 3, 2]


async def test_revoking_is_for_good_and_once(scene: Scene) -> None:
    await scene.store.add_token(token(7))
    first = await scene.store.revoke_token("acme", 7)
    revoked_at = scene.now
    scene.pass_time(10)
    again = await scene.store.revoke_token("acme", 7)
    assert first is not None
    assert again == first == await scene.store.find_token(7)
    assert first.revoked_at == revoked_at
    assert not first.is_live(scene.now)


async def test_nobody_revokes_anothers(scene: Scene) -> None:
    await scene.store.add_token(token(7))
    assert await scene.store.revoke_token("globex", 7) is None
    assert await scene.store.revoke_token(EVERY_TENANT, 7) is None
    assert await scene.store.revoke_token(None, 8) is None
    found = await scene.store.find_token(7)
    assert found is not None
    assert found.revoked_at is None
    assert await scene.store.revoke_token(None, 7) is not None


async def test_the_last_use_only_moves_on(scene: Scene) -> None:
    for token_id in (1, 2, 3):
        await scene.store.add_token(token(token_id))
    await scene.store.note_token_use([1, 2, 99])
    used_at = scene.now
    scene.go_to(used_at - 5 * SECOND_US)
    await asyncio.gather(*(scene.store.note_token_use([2, 1]) for _ in range(5)))
    found = (await scene.store.list_tokens(TokenQuery(tenant="acme"))).tokens
    assert [one.last_used_at for one in found] == [None, used_at, used_at]


async def test_what_was_revoked_or_expired_long_ago_is_forgotten(scene: Scene) -> None:
    await scene.store.add_token(token(1))
    await scene.store.add_token(token(2, expires_at=scene.now + SECOND_US))
    await scene.store.add_token(token(3))
    await scene.store.revoke_token("acme", 1)
    scene.pass_time(60)
    await scene.store.purge(scene.now - 120 * SECOND_US, 0, 100)
    assert await listed(scene, "acme") == [3, 2, 1]
    await scene.store.purge(scene.now - SECOND_US, 0, 100)
    assert await listed(scene, "acme") == [3]


async def test_a_tenant_has_so_many_and_no_more(scene: Scene) -> None:
    for first in range(0, MAX_TOKENS, 50):
        await asyncio.gather(*(scene.store.add_token(token(1 + first + n)) for n in range(50)))
    with pytest.raises(Conflict, match="1,000 tokens"):
        await scene.store.add_token(token(5_000))
    assert await scene.store.add_token(token(5_000, "globex"))
    await scene.store.revoke_token("acme", 7)
    assert await scene.store.add_token(token(5_001))
