"""API tokens over HTTP: made once, listed without secrets, revoked for all; nobody gives or sees more than they may."""

from typing import Any

import httpx2
import pytest
from fastapi import FastAPI

from hourhand.clock import ManualClock
from hourhand.core.access import EVERY_TENANT, Role
from hourhand.core.instant import DAY_US, MINUTE_US, SECOND_US
from hourhand.services.tokens import REVOKED_WITHIN_US, TokenAuthenticator
from hourhand.stores.sqlite.store import SqliteStore
from tests.web.conftest import ADDRESS, MakeApp
from tests.web.test_access import Doorman, bearer

TOKENS = "/v1/tokens"


@pytest.fixture
def tokens(store: SqliteStore, clock: ManualClock) -> TokenAuthenticator:
    return TokenAuthenticator(store=store, clock=clock)


@pytest.fixture
def app(make_app: MakeApp, tokens: TokenAuthenticator) -> FastAPI:
    return make_app(authenticators=[tokens, Doorman()])


async def make(
    client: httpx2.AsyncClient, headers: dict[str, str] | None = None, **fields: Any
) -> dict[str, Any]:
    answer = await client.post(TOKENS, json={"name": "ci", **fields}, headers=headers or bearer())
    assert answer.status_code == 201, answer.text
    assert answer.headers["cache-control"] == "no-store"
    return answer.json()


def having(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


async def status(client: httpx2.AsyncClient, token: str, path: str = "/v1/whoami") -> int:
    return (await client.get(path, headers=having(token))).status_code


async def test_a_token_is_shown_once_and_works(client: httpx2.AsyncClient) -> None:
    made = await make(client, role="editor", expires_in="90d")
    text = made.pop("token")
    assert text.startswith("hh_" + made["token_id"][2:] + "_")
    assert len(text.rpartition("_")[2]) * 4 >= 256
    [listed] = (await client.get(TOKENS, headers=bearer())).json()["data"]
    assert listed == made
    assert listed == {
        "token_id": made["token_id"],
        "name": "ci",
        "tenant": "acme",
        "role": "editor",
        "state": "live",
        "created_at": "2027-01-15T08:00:00Z",
        "created_by": "ann",
        "expires_at": "2027-04-15T08:00:00Z",
        "revoked_at": None,
        "last_used_at": None,
    }
    me = (await client.get("/v1/whoami", headers=having(text))).json()
    assert me == {
        "subject": f"ci:{made['token_id']}",
        "tenant": "acme",
        "acts_for": "acme",
        "role": "editor",
        "via": "token",
        "expires_at": "2027-04-15T08:00:00Z",
    }


async def test_whoever_is_asked_by_nobody_is_local(make_app: MakeApp) -> None:
    transport = httpx2.ASGITransport(app=make_app())
    async with httpx2.AsyncClient(transport=transport, base_url=ADDRESS) as client:
        me = (await client.get("/v1/whoami", headers={"Hourhand-Tenant": "acme"})).json()
    assert (me["via"], me["tenant"], me["acts_for"], me["role"]) == ("local", "*", "acme", "admin")


async def test_a_token_has_its_role_and_its_tenant(client: httpx2.AsyncClient) -> None:
    for role in Role:
        text = (await make(client, role=role))["token"]
        answer = await client.post("/v1/jobs", json={}, headers=having(text))
        assert answer.status_code == (422 if role.covers(Role.EDITOR) else 403), role
        answer = await client.get(TOKENS, headers=having(text))
        assert answer.status_code == (200 if role is Role.ADMIN else 403), role
        other = {**having(text), "Hourhand-Tenant": "globex"}
        assert (await client.get("/v1/jobs", headers=other)).status_code == 403


async def test_revoking_ends_it_everywhere_within_the_named_time(
    client: httpx2.AsyncClient, store: SqliteStore, clock: ManualClock, make_app: MakeApp
) -> None:
    made = await make(client)
    other = make_app(authenticators=[TokenAuthenticator(store=store, clock=clock)])  # another process
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=other), base_url=ADDRESS) as elsewhere:
        assert await status(client, made["token"]) == 200
        assert await status(elsewhere, made["token"]) == 200
        revoked = await client.delete(f"{TOKENS}/{made['token_id']}", headers=bearer())
        assert (revoked.status_code, revoked.json()["state"]) == (200, "revoked")
        clock.advance(REVOKED_WITHIN_US)
        assert await status(client, made["token"]) == 401
        assert await status(elsewhere, made["token"]) == 401
    again = await client.delete(f"{TOKENS}/{made['token_id']}", headers=bearer())
    assert again.json() == revoked.json()


def test_the_named_time_is_a_few_seconds() -> None:
    assert 0 < REVOKED_WITHIN_US <= 5 * SECOND_US


async def test_a_token_expires_to_the_moment(client: httpx2.AsyncClient, clock: ManualClock) -> None:
    text = (await make(client, expires_at="2027-01-15T08:00:02Z"))["token"]
    clock.advance(2 * SECOND_US - 1)
    assert await status(client, text) == 200
    clock.advance(1)
    assert await status(client, text) == 401
    [listed] = (await client.get(TOKENS, headers=bearer())).json()["data"]
    assert listed["state"] == "expired"


async def test_another_tenants_token_does_not_exist(client: httpx2.AsyncClient) -> None:
    made = await make(client, bearer("acme"))
    path = f"{TOKENS}/{made['token_id']}"
    for query in ("", "?dry_run=true"):
        answer = await client.delete(path + query, headers=bearer("globex"))
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
        named = {**bearer(EVERY_TENANT), "Hourhand-Tenant": "globex"}
        assert (await client.delete(path + query, headers=named)).status_code == 404
    assert (await client.get(TOKENS, headers=bearer("globex"))).json()["data"] == []
    assert (await client.get(f"{TOKENS}?tenant=acme", headers=bearer("globex"))).status_code == 403
    assert await status(client, made["token"]) == 200
    assert (await client.delete(path, headers=bearer(EVERY_TENANT))).status_code == 200
    for wrong in ("T-0000000000000", "J-0000000000000", "nonsense", made["token"]):
        answer = await client.delete(f"{TOKENS}/{wrong}", headers=bearer())
        assert answer.status_code == 404
        assert made["token"].rpartition("_")[2] not in answer.text


@pytest.mark.parametrize("tenant", ["globex", EVERY_TENANT])
async def test_only_who_runs_the_system_makes_tokens_for_others(
    client: httpx2.AsyncClient, tenant: str
) -> None:
    wish = {"name": "ci", "role": "viewer", "tenant": tenant}
    assert (await client.post(TOKENS, json=wish, headers=bearer("acme"))).status_code == 403
    made = await make(client, bearer(EVERY_TENANT), **wish)
    assert made["tenant"] == tenant
    found = (await client.get(f"{TOKENS}?tenant={tenant}", headers=bearer(EVERY_TENANT))).json()["data"]
    assert [one["token_id"] for one in found] == [made["token_id"]]
    me = (await client.get("/v1/whoami", headers=having(made["token"]))).json()
    assert me["tenant"] == tenant


async def test_who_runs_the_system_sees_all_and_pages_go_on(client: httpx2.AsyncClient) -> None:
    made = [await make(client, bearer(EVERY_TENANT), tenant=f"t{n}") for n in range(5)]
    seen: list[str] = []
    path: str | None = f"{TOKENS}?limit=2"
    while path:
        answer = await client.get(path, headers=bearer(EVERY_TENANT))
        seen += [one["tenant"] for one in answer.json()["data"]]
        cursor = answer.json()["next_cursor"]
        path = f"{TOKENS}?limit=2&cursor={cursor}" if cursor else None
    assert seen == ["t4", "t3", "t2", "t1", "t0"]
    named = {**bearer(EVERY_TENANT), "Hourhand-Tenant": "t2"}
    [own] = (await client.get(TOKENS, headers=named)).json()["data"]
    assert own["token_id"] == made[2]["token_id"]


@pytest.mark.parametrize(
    ("wish", "pointer"),
    [
        ({}, "/name"),
        ({"name": ""}, "/name"),
        ({"name": " "}, "/name"),
        ({"name": "x" * 101}, "/name"),
        ({"name": "a\nb"}, "/name"),
        ({"name": "ci", "role": "king"}, "/role"),
        ({"name": "ci", "tenant": "Acme Inc"}, "/tenant"),
        ({"name": "ci", "expires_at": "2020-01-01T00:00:00Z"}, "/expires_at"),
        ({"name": "ci", "expires_in": "0s"}, "/expires_at"),
        ({"name": "ci", "expires_in": "1d", "expires_at": "2030-01-01T00:00:00Z"}, "/expires_at"),
        ({"name": "ci", "scope": "all"}, "/scope"),
    ],
)
async def test_what_is_wrong_is_named(client: httpx2.AsyncClient, wish: dict[str, Any], pointer: str) -> None:
    answer = await client.post(TOKENS, json=wish, headers=bearer(EVERY_TENANT))
    assert answer.status_code == 422, answer.text
    assert pointer in {fault["pointer"] for fault in answer.json()["errors"]}


async def test_the_last_use_is_shown_to_a_minute(
    client: httpx2.AsyncClient, store: SqliteStore, clock: ManualClock, tokens: TokenAuthenticator
) -> None:
    text = (await make(client))["token"]

    async def last_use() -> str | None:
        await tokens.settled()
        return (await client.get(TOKENS, headers=bearer())).json()["data"][0]["last_used_at"]

    for _ in range(5):
        await status(client, text)
    assert await last_use() == "2027-01-15T08:00:00Z"
    clock.advance(MINUTE_US - SECOND_US)
    await status(client, text)
    assert await last_use() == "2027-01-15T08:00:00Z"
    clock.advance(SECOND_US)
    await status(client, text)
    assert await last_use() == "2027-01-15T08:01:00Z"
    clock.advance(DAY_US)
    assert await last_use() == "2027-01-15T08:01:00Z"
