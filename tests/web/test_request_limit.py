"""How many requests a user may make: told in every answer, refused with when to come again, never for health."""

import re
from collections.abc import AsyncIterator, Callable

import httpx2
import pytest
from fastapi import FastAPI
from prometheus_client import CollectorRegistry

from hourhand.clock import ManualClock
from hourhand.core.access import EVERY_TENANT, Role
from hourhand.core.bucket import Limit, Verdict
from hourhand.core.instant import SECOND_US
from hourhand.errors import Unavailable
from hourhand.limits.local import LocalLimits
from hourhand.limits.redis import RedisLimits
from hourhand.web.context import WebSettings
from tests.servers.redis import RedisServer
from tests.web.conftest import ADDRESS, MakeApp
from tests.web.test_access import ROUTES, Doorman, bearer, places

LIMIT = Limit(burst=3, per_s=0.1)
SETTINGS = WebSettings(requests=LIMIT)


def client_of(app: FastAPI) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), base_url=ADDRESS)


@pytest.fixture
async def client(make_app: MakeApp, clock: ManualClock) -> AsyncIterator[httpx2.AsyncClient]:
    app = make_app(SETTINGS, authenticators=[Doorman()], limits=LocalLimits(clock))
    async with client_of(app) as opened:
        yield opened


async def test_every_answer_says_what_is_left_and_then_when_to_come_again(
    client: httpx2.AsyncClient, clock: ManualClock
) -> None:
    for left, refill_s in ((2, 10), (1, 20), (0, 30)):
        answer = await client.get("/v1/jobs", headers=bearer())
        assert answer.status_code == 200
        assert answer.headers["ratelimit-policy"] == '"user";q=3;w=30'
        assert answer.headers["ratelimit"] == f'"user";r={left};t={refill_s}'
        assert "retry-after" not in answer.headers
    refused = await client.get("/v1/jobs", headers=bearer())
    assert refused.status_code == 429
    assert refused.headers["content-type"] == "application/problem+json"
    assert refused.headers["retry-after"] == "10"
    assert refused.headers["ratelimit"] == '"user";r=0;t=30'
    body = refused.json()
    assert (body["code"], body["retryable"]) == ("overloaded", True)
    assert body["detail"] == "a user may make 3 requests in 30 s; try again in 10 s"
    clock.advance(10 * SECOND_US)
    assert (await client.get("/v1/jobs", headers=bearer())).status_code == 200


async def test_users_and_tenants_are_counted_apart(client: httpx2.AsyncClient) -> None:
    for _ in range(4):
        last = await client.get("/v1/jobs", headers=bearer("acme", subject="ann"))
    assert last.status_code == 429
    for headers in (bearer("acme", subject="bob"), bearer("globex", subject="ann"), bearer(EVERY_TENANT)):
        assert (await client.get("/v1/jobs", headers=headers)).headers["ratelimit"] == '"user";r=2;t=10'


@pytest.mark.parametrize(
    ("method", "path", "role", "status"),
    [
        ("GET", "/v1/jobs/J-0000000000000", Role.VIEWER, 404),
        ("POST", "/v1/jobs", Role.VIEWER, 403),
        ("POST", "/v1/jobs", Role.EDITOR, 422),
        ("GET", "/v1/jobs?zzz=1", Role.VIEWER, 422),
        ("GET", "/metrics", Role.ADMIN, 403),
    ],
)
async def test_errors_say_it_too(
    client: httpx2.AsyncClient, method: str, path: str, role: Role, status: int
) -> None:
    answer = await client.request(method, path, headers=bearer(role=role), json={})
    assert answer.status_code == status
    assert answer.headers["ratelimit"] == '"user";r=2;t=10'


async def test_every_route_with_a_caller_is_counted_and_no_other(client: httpx2.AsyncClient) -> None:
    for number, route in enumerate(ROUTES):
        if route.name == "stream_events":
            continue
        for method in route.methods or ():
            headers = bearer(EVERY_TENANT, subject=f"user {number}")
            answer = await client.request(method, places(route)[0] + "?zzz=1", headers=headers)
            is_open = route.access.role is None
            assert ("ratelimit" in answer.headers) is not is_open, f"{method} {route.path}"


async def test_whoever_has_no_token_is_not_counted(client: httpx2.AsyncClient) -> None:
    for _ in range(5):
        answer = await client.get("/v1/jobs")
        assert answer.status_code == 401
        assert "ratelimit" not in answer.headers


async def test_on_loopback_without_login_nobody_is_counted(make_app: MakeApp, clock: ManualClock) -> None:
    async with client_of(make_app(SETTINGS, limits=LocalLimits(clock))) as client:
        for _ in range(5):
            answer = await client.get("/v1/jobs")
            assert answer.status_code == 200
            assert "ratelimit" not in answer.headers


async def test_while_the_counter_is_away_requests_pass_and_it_is_asked_seldom(
    make_app: MakeApp, clock: ManualClock
) -> None:
    asked = []

    class Away:
        async def take(self, key: str, limit: Limit, amount: int = 1) -> Verdict:
            asked.append(key)
            raise Unavailable("gone")

    registry = CollectorRegistry()
    app = make_app(SETTINGS, authenticators=[Doorman()], limits=Away(), registry=registry)
    async with client_of(app) as client:
        for _ in range(5):
            answer = await client.get("/v1/jobs", headers=bearer())
            assert answer.status_code == 200
            assert "ratelimit" not in answer.headers
        assert asked == ["requests/acme/ann"]
        clock.advance(SECOND_US)
        await client.get("/v1/jobs", headers=bearer())
    assert len(asked) == 2
    assert registry.get_sample_value("hourhand_requests_uncounted_total") == 6


async def test_counted_in_redis_and_passing_when_it_is_killed(
    make_app: MakeApp, own_redis: Callable[..., RedisServer], clock: ManualClock
) -> None:
    from redis.asyncio import Redis

    server = own_redis()
    redis = Redis.from_url(server.url)
    limits = RedisLimits(redis, name="test", patience_s=5)
    app = make_app(SETTINGS, authenticators=[Doorman()], limits=limits)
    async with client_of(app) as client:
        statuses = [(await client.get("/v1/jobs", headers=bearer())).status_code for _ in range(4)]
        assert statuses == [200, 200, 200, 429]
        server.kill()
        assert (await client.get("/v1/jobs", headers=bearer())).status_code == 200
    await redis.aclose()


def test_the_fields_are_structured_as_the_draft_says() -> None:
    from hourhand.web.request_limit import headers_of

    told = headers_of(Limit(burst=1_000, per_s=100), Verdict(True, 1_000))
    for value in told.values():
        assert re.fullmatch(r'"[a-z]+"(;[a-z]+=\d+)+', value)
    assert told["ratelimit-policy"] == '"user";q=1000;w=10'
