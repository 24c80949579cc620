"""Operations on API tokens, and the verbs over them. What a token proves is `core.api_token`'s."""

from collections.abc import Sequence
from typing import Any

from hourhand.core.access import Role
from hourhand.core.api_token import MAX_TOKENS, ApiToken, format_token_id
from hourhand.core.deeds import Act
from hourhand.errors import Conflict
from hourhand.ports.tokens import TokenPage, TokenQuery
from hourhand.stores.relational.deeds import note_deed
from hourhand.stores.relational.tx import Engine, Tx

_NEWEST_ID = (1 << 63) - 1


class RelationalTokens:
    """The verbs; see `ports.tokens` for the contract of each."""

    _engine: Engine

    async def add_token(self, token: ApiToken) -> bool:
        return await self._engine.write(lambda tx: add_token(tx, token))

    async def find_token(self, token_id: int) -> ApiToken | None:
        return await self._engine.read(lambda tx: find_token(tx, token_id))

    async def list_tokens(self, query: TokenQuery) -> TokenPage:
        return await self._engine.read(lambda tx: list_tokens(tx, query))

    async def revoke_token(self, tenant: str | None, token_id: int) -> ApiToken | None:
        return await self._engine.write(lambda tx: revoke_token(tx, tenant, token_id))

    async def note_token_use(self, ids: Sequence[int]) -> None:
        await self._engine.write(lambda tx: note_token_use(tx, ids))


async def add_token(tx: Tx, token: ApiToken) -> bool:
    """Store a token; once more is the same as once."""
    there = await find_token(tx, token.id)
    if there is not None:
        return there.digest == token.digest
    if (await tx.one("count_live_tokens", (token.tenant, tx.now_at, MAX_TOKENS)))[0] >= MAX_TOKENS:
        raise Conflict(f"there are {MAX_TOKENS:,} tokens already; revoke some that are not used")
    values = {
        "id": token.id,
        "tenant": token.tenant,
        "name": token.name,
        "role": token.role.value,
        "digest": token.digest,
        "created_at": token.created_at,
        "created_by": token.created_by,
        "expires_at": token.expires_at,
    }
    if await tx.run("add_token", values) == 0:
        return False
    await _note(tx, Act.TOKEN_CREATE, token)
    return True


async def find_token(tx: Tx, token_id: int) -> ApiToken | None:
    """One token of whatever tenant."""
    row = await tx.one("get_token", (token_id,))
    return None if row is None else _token(row)


async def list_tokens(tx: Tx, query: TokenQuery) -> TokenPage:
    """A page of tokens, newest first."""
    before = _NEWEST_ID if query.before_id is None else query.before_id
    if query.tenant is None:
        rows = await tx.all("tokens_page_all", (before, query.limit))
    else:
        rows = await tx.all("tokens_page", (query.tenant, before, query.limit))
    found = tuple(_token(row) for row in rows)
    return TokenPage(tokens=found, next_before_id=found[-1].id if len(found) == query.limit else None)


async def revoke_token(tx: Tx, tenant: str | None, token_id: int) -> ApiToken | None:
    """Let a token prove nothing; when it was first revoked stays."""
    found = await find_token(tx, token_id)
    if found is None or tenant not in (None, found.tenant):
        return None
    if await tx.run("revoke_token", (token_id, tx.now_at)):
        await _note(tx, Act.TOKEN_REVOKE, found)
    return await find_token(tx, token_id)


async def note_token_use(tx: Tx, ids: Sequence[int]) -> None:
    """These were used now."""
    await tx.run("note_token_use", (tx.array(ids), tx.now_at))


async def _note(tx: Tx, act: Act, token: ApiToken) -> None:
    await note_deed(tx, token.tenant, act, object_id=format_token_id(token.id), note=token.name)


def _token(row: Sequence[Any]) -> ApiToken:
    """A token from its row, in the order of `token_columns`."""
    return ApiToken(
        id=row[0],
        tenant=row[1],
        name=row[2],
        role=Role(row[3]),
        digest=bytes(row[4]),
        created_at=row[5],
        created_by=row[6],
        expires_at=row[7],
        revoked_at=row[8],
        last_used_at=row[9],
    )
