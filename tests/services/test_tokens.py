"""The authenticator of API tokens: what it asks of the store, whatever is shown to it, and what it never tells."""

import asyncio
from collections.abc import AsyncIterator

import pytest
import structlog

from hourhand.clock import ManualClock
from hourhand.core.access import LOCAL, Principal, Role, Via
from hourhand.core.api_token import read_token, write_token
from hourhand.core.instant import MINUTE_US, SECOND_US
from hourhand.errors import NotAllowed, Overloaded, Unavailable, WrongToken
from hourhand.ids import IdSource, new_secret
from hourhand.services import tokens as service
from hourhand.services.tokens import (
    MAX_GUESSES,
    MAX_UNKNOWN,
    REVOKED_WITHIN_US,
    NewToken,
    TokenAuthenticator,
    Tokens,
    TokenWish,
)
from hourhand.stores.sqlite import SqliteStore
from tests.services.world import FaultyStore


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def store(clock: ManualClock) -> AsyncIterator[FaultyStore]:
    opened = FaultyStore(SqliteStore.in_memory(clock=clock))
    yield opened
    opened.away = False
    await opened.close()


@pytest.fixture
def asked(store: FaultyStore, clock: ManualClock) -> TokenAuthenticator:
    return TokenAuthenticator(store=store, clock=clock)


async def make(
    store: FaultyStore, clock: ManualClock, name: str = "ci", giver: Principal = LOCAL
) -> NewToken:
    tokens = Tokens(store=store, ids=IdSource(clock), clock=clock)
    return await tokens.create(giver, TokenWish(name=name, tenant="acme", role=Role.EDITOR))


def text_of(made: NewToken) -> str:
    assert made.text is not None
    return made.text


def invented(n: int) -> str:
    return write_token(1_000_000 + n, new_secret(32))


async def refused(asked: TokenAuthenticator, token: str) -> None:
    with pytest.raises(WrongToken) as told:
        await asked.authenticate(token)
    found = read_token(token)
    assert found is not None
    assert found.secret not in told.value.message


async def test_what_is_of_another_kind_is_left_to_others(
    asked: TokenAuthenticator, store: FaultyStore
) -> None:
    made = invented(1)
    for text in (
        "",
        "x",
        "a.b.c",
        "hh_",
        made[:-1],
        made + "0",
        made.upper(),
        made.replace("hh_", "h_"),
        " " + made,
    ):
        assert await asked.authenticate(text) is None
    assert await asked.authenticate("hh_" + "z" * 13 + "_" + "0" * 64) is None  # no id is so large
    assert store.calls["find_token"] == 0


async def test_a_busy_token_costs_one_lookup_in_the_named_time(
    asked: TokenAuthenticator, store: FaultyStore, clock: ManualClock
) -> None:
    made = await make(store, clock)
    for _ in range(100):
        assert (await asked.authenticate(text_of(made))) == made.token.principal
    assert store.calls["find_token"] == 1
    clock.advance(REVOKED_WITHIN_US)
    await asyncio.gather(*(asked.authenticate(text_of(made)) for _ in range(100)))
    assert store.calls["find_token"] == 2
    await asked.settled()
    assert store.calls["note_token_use"] == 1
    clock.advance(MINUTE_US)
    await asked.authenticate(text_of(made))
    await asked.settled()
    assert store.calls["note_token_use"] == 2


async def test_several_processes_write_down_a_use_once_a_minute(
    store: FaultyStore, clock: ManualClock
) -> None:
    made = await make(store, clock)
    for _ in range(4):
        one = TokenAuthenticator(store=store, clock=clock)
        await one.authenticate(text_of(made))
        await one.settled()
        clock.advance(SECOND_US)
    assert store.calls["note_token_use"] == 1


async def test_a_wrong_secret_of_a_known_id_asks_nobody(
    asked: TokenAuthenticator, store: FaultyStore, clock: ManualClock
) -> None:
    made = await make(store, clock)
    for _ in range(500):
        await refused(asked, write_token(made.token.id, new_secret(32)))
    assert store.calls["find_token"] == 1
    assert store.calls["note_token_use"] == 0
    assert await asked.authenticate(text_of(made)) is not None


async def test_guessing_does_not_load_the_store_nor_shut_others_out(
    asked: TokenAuthenticator, store: FaultyStore, clock: ManualClock
) -> None:
    made = await make(store, clock)
    await asked.authenticate(text_of(made))
    clock.advance(SECOND_US)
    told: dict[str, int] = {}
    for n in range(1_000):
        try:
            await asked.authenticate(invented(n))
        except (WrongToken, Overloaded) as error:
            told[error.code] = told.get(error.code, 0) + 1
    assert told == {"wrong_token": MAX_GUESSES, "overloaded": 1_000 - MAX_GUESSES}
    assert store.calls["find_token"] == 1 + MAX_GUESSES
    clock.advance(REVOKED_WITHIN_US - SECOND_US)  # it must be read again, in the middle of the flood
    for n in range(MAX_GUESSES):
        await refused(asked, invented(5_000 + n))
    with pytest.raises(Overloaded):
        await asked.authenticate(invented(9_000))
    assert await asked.authenticate(text_of(made)) is not None


async def test_what_is_nobodys_is_remembered_for_a_moment_and_within_bounds(
    asked: TokenAuthenticator, store: FaultyStore, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(50):
        await refused(asked, invented(1))
    assert store.calls["find_token"] == 1
    monkeypatch.setattr(service, "MAX_UNKNOWN", 10)
    monkeypatch.setattr(service, "MAX_KNOWN", 10)
    for n in range(50):
        await refused(asked, invented(n))
        made = await make(store, clock)
        assert await asked.authenticate(text_of(made)) is not None
        clock.advance(SECOND_US // 10)
    assert len(asked._unknown) == len(asked._known) == 10
    assert MAX_UNKNOWN <= 10_000


async def test_a_new_token_works_at_once_where_it_was_never_asked_for(
    asked: TokenAuthenticator, store: FaultyStore, clock: ManualClock
) -> None:
    for n in range(10):
        await refused(asked, invented(n))
    assert await asked.authenticate(text_of(await make(store, clock))) is not None


async def test_a_store_that_is_away_is_said_so_and_nobody_gets_in(
    asked: TokenAuthenticator, store: FaultyStore, clock: ManualClock
) -> None:
    made = await make(store, clock)
    await asked.authenticate(text_of(made))
    clock.advance(REVOKED_WITHIN_US)
    store.away = True
    with pytest.raises(Unavailable):
        await asked.authenticate(text_of(made))
    store.away = False
    assert await asked.authenticate(text_of(made)) is not None


async def test_what_was_read_is_believed_from_when_it_was_asked_for(
    asked: TokenAuthenticator, store: FaultyStore, clock: ManualClock
) -> None:
    made = await make(store, clock)
    gate = store.hold_answer("find_token")
    waiting = asyncio.create_task(asked.authenticate(text_of(made)))
    for _ in range(10):
        await asyncio.sleep(0)
    assert store.calls["find_token"] == 1
    await store.revoke_token("acme", made.token.id)
    clock.advance(REVOKED_WITHIN_US)
    gate.set()
    await waiting
    await refused(asked, text_of(made))


async def test_a_use_that_cannot_be_written_down_harms_nobody(
    asked: TokenAuthenticator, store: FaultyStore, clock: ManualClock
) -> None:
    made = await make(store, clock)
    store.fail("note_token_use")
    assert await asked.authenticate(text_of(made)) is not None
    await asked.settled()
    assert store.calls["note_token_use"] == 1


async def test_an_id_that_is_taken_is_drawn_again(store: FaultyStore, clock: ManualClock) -> None:
    first = await Tokens(store=store, ids=IdSource(clock, seed=1), clock=clock).create(
        LOCAL, TokenWish(name="a", tenant="acme")
    )
    second = await Tokens(store=store, ids=IdSource(clock, seed=1), clock=clock).create(
        LOCAL, TokenWish(name="b", tenant="acme")
    )
    assert first.token.id != second.token.id


async def test_nobody_gives_a_role_above_their_own(store: FaultyStore, clock: ManualClock) -> None:
    tokens = Tokens(store=store, ids=IdSource(clock), clock=clock)
    for own in Role:
        giver = Principal(subject="ann", tenant="acme", role=own, via=Via.JWT)
        for given in Role:
            wish = TokenWish(name="ci", tenant="acme", role=given)
            if own.covers(given):
                assert (await tokens.create(giver, wish)).token.role is given
            else:
                with pytest.raises(NotAllowed):
                    await tokens.create(giver, wish)


async def test_no_secret_is_kept_logged_or_told(
    asked: TokenAuthenticator, store: FaultyStore, clock: ManualClock
) -> None:
    with structlog.testing.capture_logs() as lines:
        made = await make(store, clock)
        store.fail("note_token_use")
        await asked.authenticate(text_of(made))
        await asked.settled()
        await refused(asked, invented(1))
    secret = text_of(made).rpartition("_")[2]
    stored = await store.find_token(made.token.id)
    assert lines
    for told in (repr(lines), repr(stored), repr(made.token), repr(asked._known)):
        assert secret not in told
