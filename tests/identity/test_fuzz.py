"""Tokens that were tampered with at random: none is ever taken, and none is ever more than a refusal."""

import asyncio
import json
from typing import Any

import httpx2
import pytest
from fastapi import FastAPI
from hypothesis import example, given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from hourhand.clock import ManualClock
from hourhand.core.access import EVERY_TENANT, Role, is_tenant
from hourhand.core.specification import SpecLimits
from hourhand.errors import WrongToken
from hourhand.identity.jwks import Keyring
from hourhand.ids import IdSource
from hourhand.services.jobs import Jobs
from hourhand.services.runs import Runs
from hourhand.stores.sqlite.store import SqliteStore
from hourhand.web.app import create_app
from tests.identity.issuer import (
    AUDIENCE,
    ISSUER,
    NOW_S,
    Published,
    authenticator,
    by_hand,
    claims,
    part,
    signed,
)

CLOCK = ManualClock()
GOOD = {algorithm: signed(algorithm) for algorithm in ("HS256", "RS256", "ES256", "EdDSA")}
ADDRESS = "http://127.0.0.1:7070"
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
HEADER_NAMES = st.sampled_from(["alg", "typ", "kid", "jku", "x5u", "x5c", "jwk", "crit", "b64", "zip", "cty"])
CLAIM_NAMES = st.sampled_from(["exp", "nbf", "iat", "iss", "aud", "tenant", "sub", "role", "jti"])


@st.composite
def tampered(draw: st.DrawFn) -> str:
    """A good token with a few characters changed, cut, doubled or swapped."""
    token = draw(st.sampled_from(sorted(GOOD.values())))
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(token)))
        piece = draw(st.text(st.characters(codec="latin-1"), max_size=3))
        token = token[:at] + piece + token[at + draw(st.integers(0, 4)) :]
    return token


@st.composite
def recombined(draw: st.DrawFn) -> str:
    """Parts of several good tokens, and parts made anew."""
    parts = [draw(st.sampled_from(sorted(GOOD.values()))).split(".") for _ in range(3)]
    fresh = st.dictionaries(HEADER_NAMES | CLAIM_NAMES, JSON, max_size=4).map(part)
    chosen = [parts[0][0], parts[1][1], parts[2][2]]
    place = draw(st.integers(0, 2))
    chosen[place] = draw(fresh | st.binary(max_size=80).map(part))
    return ".".join(chosen)


def taken(token: str) -> bool:
    """Whether it proves anything; whatever is raised but a refusal, is a bug."""

    async def ask() -> bool:
        people = authenticator(CLOCK, ring=Keyring(Published(), CLOCK))
        try:
            return await people.authenticate(token) is not None
        except WrongToken:
            return False

    return asyncio.run(ask())


def test_untouched_they_are_taken() -> None:
    assert all(map(taken, GOOD.values()))


@given(tampered())
def test_a_token_that_was_tampered_with_is_never_taken(token: str) -> None:
    assert token in GOOD.values() or not taken(token)


@given(recombined())
def test_parts_of_several_tokens_are_none(token: str) -> None:
    assert token in GOOD.values() or not taken(token)


@given(st.dictionaries(HEADER_NAMES, JSON, max_size=3))
@example({"alg": "HS256", "kid": "rs256"})
def test_whatever_a_header_says_it_is_no_more_than_refused(changed: dict[str, Any]) -> None:
    """Signed with the secret, so that all that is behind the signature is reached."""
    taken(by_hand({"alg": "HS256"} | changed, claims()))


@given(st.dictionaries(CLAIM_NAMES, JSON, min_size=1, max_size=3))
def test_whatever_claims_say_it_is_no_more_than_refused(changed: dict[str, Any]) -> None:
    said = claims() | changed
    if taken(by_hand({"alg": "HS256"}, said)):
        assert said["iss"] == ISSUER
        assert said["role"] in set(Role)
        assert said["tenant"] == EVERY_TENANT or is_tenant(said["tenant"])
        assert said["aud"] in (AUDIENCE, [AUDIENCE])
        assert not isinstance(said["exp"], bool)
        assert said["exp"] > NOW_S - 30
        assert said["sub"].isprintable()


@given(st.binary(max_size=200))
def test_whatever_bytes_are_signed_it_is_no_more_than_refused(said: bytes) -> None:
    assert not taken(by_hand({"alg": "HS256"}, said))


# --- through the whole application


@pytest.fixture(scope="module")
def app() -> FastAPI:
    store = SqliteStore.in_memory(clock=CLOCK)
    return create_app(
        jobs=Jobs(store=store, ids=IdSource(CLOCK), clock=CLOCK, limits=SpecLimits()),
        runs=Runs(store=store, clock=CLOCK, horizon_us=60_000_000),
        store=store,
        clock=CLOCK,
        registry=CollectorRegistry(),
        authenticators=[authenticator(CLOCK)],
    )


def asked(app: FastAPI, token: bytes) -> httpx2.Response:
    async def ask() -> httpx2.Response:
        transport = httpx2.ASGITransport(app=app, raise_app_exceptions=True)
        async with httpx2.AsyncClient(transport=transport, base_url=ADDRESS, trust_env=False) as client:
            # A route that needs no store, since each example has a loop of its own.
            return await client.get("/openapi.json", headers={"Authorization": b"Bearer " + token})

    return asyncio.run(ask())


def test_a_good_token_gets_in(app: FastAPI) -> None:
    assert asked(app, GOOD["HS256"].encode()).status_code == 200


@given(tampered() | recombined() | st.text(st.characters(codec="latin-1"), max_size=60))
def test_over_http_it_is_401_and_tells_nothing_of_the_token(app: FastAPI, token: str) -> None:
    if token.strip() in GOOD.values():
        return
    answer = asked(app, token.encode("latin-1"))
    assert answer.status_code == 401, answer.text
    problem = json.loads(answer.content)
    assert problem["code"] == "wrong_token"
    assert not any(len(piece) > 12 and piece in answer.text for piece in token.split("."))
