"""The use cases of API tokens, and the authenticator that recognises them.

Who may ask for them is the routes' matter, but nobody gives away more than they have: that is checked here. The
authenticator keeps what it read for a moment, so that a busy token costs the store one lookup in that time, and a
revoked one is refused everywhere once it has passed. What a token is, is `core.api_token`'s.
"""

import asyncio
from collections import OrderedDict
from contextvars import Context
from typing import NamedTuple, TypeVar

import msgspec

from hourhand.clock import Clock
from hourhand.core.access import EVERY_TENANT, TENANT_WORDS, Principal, Role, is_tenant
from hourhand.core.api_token import (
    MAX_TOKEN_NAME,
    SECRET_BYTES,
    ApiToken,
    digest_of,
    format_token_id,
    read_token,
    write_token,
)
from hourhand.core.fault import Fault
from hourhand.core.instant import MINUTE_US, SECOND_US
from hourhand.errors import Conflict, HourhandError, Invalid, NotAllowed, NotFound, Overloaded, WrongToken
from hourhand.ids import IdSource, new_secret
from hourhand.ports.store import Store
from hourhand.ports.tokens import TokenPage, TokenQuery
from hourhand.telemetry import logger

REVOKED_WITHIN_US = 3 * SECOND_US  # how long what was read of a token is believed, in every process
USE_EVERY_US = MINUTE_US  # how often the use of a token is written down, at most
MAX_KNOWN = 10_000  # tokens that a process remembers
MAX_UNKNOWN = 10_000  # ids that it remembers to be nobody's
MAX_GUESSES = 100  # lookups in a second of ids that it has not seen, over all callers
_DRAWS = 5
_REFUSED = "the token is not known, was revoked, or has expired"

T = TypeVar("T")

_log = logger("hourhand.tokens")


class TokenWish(msgspec.Struct, frozen=True, kw_only=True):
    """A token that somebody wants."""

    name: str
    role: Role = Role.VIEWER
    tenant: str
    expires_at: int | None = None


class NewToken(NamedTuple):
    """A token that was made, and its text: the only time that anybody sees it. No text in a dry run."""

    token: ApiToken
    text: str | None


class Tokens:
    """Use cases over the store; stateless, any number of instances."""

    def __init__(self, *, store: Store, ids: IdSource, clock: Clock) -> None:
        self._store = store
        self._ids = ids
        self._clock = clock

    async def create(self, giver: Principal, wish: TokenWish, *, dry_run: bool = False) -> NewToken:
        """Make a token that gives no more than its giver has."""
        _check(wish, self._clock.now())
        if wish.tenant != giver.tenant and not giver.runs_the_system:
            raise NotAllowed("only those who run the system make tokens for another tenant than their own")
        if not giver.role.covers(wish.role):
            raise NotAllowed(f"nobody gives a role above their own: {wish.role} is above {giver.role}")
        if dry_run:
            return NewToken(self._drawn(giver, wish, token_id=0, secret=""), None)
        for _ in range(_DRAWS):
            secret = new_secret(SECRET_BYTES)
            token = self._drawn(giver, wish, token_id=self._ids.job_id(), secret=secret)
            if await self._store.add_token(token):
                return NewToken(token, write_token(token.id, secret))
        raise Conflict("no free id was found for the token; try again")

    async def page(self, query: TokenQuery) -> TokenPage:
        """A page of tokens, newest first."""
        return await self._store.list_tokens(query)

    async def revoke(self, tenant: str | None, token_id: int, *, dry_run: bool = False) -> ApiToken:
        """Let a token prove nothing from now on, or NotFound; without a tenant: of whatever one."""
        if dry_run:
            found = await self._store.find_token(token_id)
            if found is not None and tenant not in (None, found.tenant):
                found = None
        else:
            found = await self._store.revoke_token(tenant, token_id)
        if found is None:
            raise NotFound(f"there is no token {format_token_id(token_id)}")
        return found

    def _drawn(self, giver: Principal, wish: TokenWish, *, token_id: int, secret: str) -> ApiToken:
        return ApiToken(
            id=token_id,
            tenant=wish.tenant,
            name=wish.name,
            role=wish.role,
            digest=digest_of(secret),
            created_at=self._clock.now(),
            created_by=giver.subject,
            expires_at=wish.expires_at,
        )


class _Known:
    """A token as it was read, and when its use was last written down."""

    __slots__ = ("noted_at", "read_at", "token")

    def __init__(self, token: ApiToken, read_at: int) -> None:
        self.token = token
        self.read_at = read_at
        self.noted_at = token.last_used_at


class TokenAuthenticator:
    """Recognises API tokens (`ports.identity.Authenticator`).

    Guesses cost little: ids that are nobody's are remembered, a wrong secret of a known id is compared in memory,
    and lookups of ids never seen share a budget, beyond which those are told to come again. Tokens that were
    known before are looked up outside of it, so a flood of guesses does not shut their owners out.
    """

    def __init__(self, *, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._known: OrderedDict[int, _Known] = OrderedDict()
        self._unknown: OrderedDict[int, int] = OrderedDict()  # id, and when it was looked for
        self._lookups: dict[int, asyncio.Task[ApiToken | None]] = {}
        self._guesses_since, self._guesses = 0, 0
        self._used: set[int] = set()
        self._noting: asyncio.Task[None] | None = None

    async def authenticate(self, token: str) -> Principal | None:
        """Who this is; None when the token is of another kind."""
        found = read_token(token)
        if found is None:
            return None
        known = await self._find(found.id)
        if known is None or not known.token.is_proven_by(found.secret):
            raise WrongToken(_REFUSED)
        now_at = self._clock.now()
        if not known.token.is_live(now_at):
            raise WrongToken(_REFUSED)
        if known.noted_at is None or now_at - known.noted_at >= USE_EVERY_US:
            known.noted_at = now_at
            self._note(known.token.id)
        return known.token.principal

    async def settled(self) -> None:
        """Wait until what is being written about uses is written."""
        if self._noting is not None:
            await self._noting

    async def _find(self, token_id: int) -> _Known | None:
        now_at = self._clock.now()
        known = self._known.get(token_id)
        if known is not None and _is_fresh(known.read_at, now_at):
            return known
        if known is None and _is_fresh(self._unknown.get(token_id), now_at):
            return None
        if known is None and token_id not in self._lookups:
            self._count_guess(now_at)
        return self._remember(token_id, await self._look(token_id), now_at)

    async def _look(self, token_id: int) -> ApiToken | None:
        """What the store says; those who ask at the same moment share one lookup."""
        task = self._lookups.get(token_id)
        if task is None:
            task = asyncio.create_task(self._store.find_token(token_id), context=Context())
            self._lookups[token_id] = task
            task.add_done_callback(lambda done: self._forget_lookup(token_id, done))
        return await asyncio.shield(task)

    def _forget_lookup(self, token_id: int, done: "asyncio.Task[ApiToken | None]") -> None:
        del self._lookups[token_id]
        if not done.cancelled():
            done.exception()  # whoever waited was told; nobody may be left who does

    def _remember(self, token_id: int, token: ApiToken | None, asked_at: int) -> _Known | None:
        """Believe it from when it was asked for, since it may have changed while the answer was on its way."""
        if token is None:
            self._known.pop(token_id, None)
            _put(self._unknown, token_id, asked_at, MAX_UNKNOWN)
            return None
        self._unknown.pop(token_id, None)
        known, before = _Known(token, asked_at), self._known.get(token_id)
        if before is not None and before.noted_at is not None:
            known.noted_at = max(before.noted_at, known.noted_at or 0)
        _put(self._known, token_id, known, MAX_KNOWN)
        return known

    def _count_guess(self, now_at: int) -> None:
        if not 0 <= now_at - self._guesses_since < SECOND_US:
            self._guesses_since, self._guesses = now_at, 0
        if self._guesses >= MAX_GUESSES:
            raise Overloaded("too many tokens that were not seen before; try again in a second")
        self._guesses += 1

    def _note(self, token_id: int) -> None:
        """Have it written down that a token was used; no request waits for that, and some go together."""
        self._used.add(token_id)
        if self._noting is None or self._noting.done():
            self._noting = asyncio.create_task(self._write_uses(), context=Context())

    async def _write_uses(self) -> None:
        while self._used:
            ids, self._used = sorted(self._used), set()
            try:
                await self._store.note_token_use(ids)
            except HourhandError as error:
                _log.warning("the last use of tokens was not written down", tokens=len(ids), error=error.code)


def _check(wish: TokenWish, now_at: int) -> None:
    faults = []
    if not 0 < len(wish.name.strip()) <= MAX_TOKEN_NAME or not wish.name.isprintable():
        expected = f"a name of 1 to {MAX_TOKEN_NAME} printable characters"
        faults.append(Fault(pointer="/name", expected=expected, got=repr(wish.name[:60])))
    if wish.tenant != EVERY_TENANT and not is_tenant(wish.tenant):
        expected = f'{TENANT_WORDS}, or "{EVERY_TENANT}" for those who run the system'
        faults.append(Fault(pointer="/tenant", expected=expected, got=repr(wish.tenant[:60])))
    if wish.expires_at is not None and wish.expires_at <= now_at:
        faults.append(Fault(pointer="/expires_at", expected="a time to come", got="one that has passed"))
    if faults:
        first = faults[0]
        raise Invalid(f"{first.pointer[1:]}: expected {first.expected}, got {first.got}", faults)


def _is_fresh(read_at: int | None, now_at: int) -> bool:
    return read_at is not None and 0 <= now_at - read_at < REVOKED_WITHIN_US


def _put(cache: OrderedDict[int, T], key: int, value: T, most: int) -> None:
    """Keep the newest."""
    cache[key] = value
    cache.move_to_end(key)
    while len(cache) > most:
        cache.popitem(last=False)
