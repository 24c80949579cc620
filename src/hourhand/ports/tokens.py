"""The store's verbs about API tokens. Part of `ports.store`.

A token is found by its id alone, of whatever tenant: who has the secret is nobody before it was found. Whether
it proves anything is `core.api_token`'s.
"""

from collections.abc import Sequence
from typing import Protocol

import msgspec

from hourhand.core.api_token import ApiToken


class TokenQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which tokens to list; newest first, after a cursor."""

    tenant: str | None  # None: of all, for those who run the system
    before_id: int | None = None
    limit: int = 50


class TokenPage(msgspec.Struct, frozen=True, kw_only=True):
    """Some tokens, and where to go on."""

    tokens: tuple[ApiToken, ...]
    next_before_id: int | None
    missing: tuple[int, ...] = ()  # shards that did not answer


class TokenVerbs(Protocol):
    """API tokens."""

    async def add_token(self, token: ApiToken) -> bool:
        """Store a new token; False when its id is another's. Conflict when the tenant has too many."""
        ...

    async def find_token(self, token_id: int) -> ApiToken | None:
        """One token with the hash of its secret, revoked and expired ones too."""
        ...

    async def list_tokens(self, query: TokenQuery) -> TokenPage:
        """A page of tokens, newest first, revoked and expired ones too, as long as history is kept."""
        ...

    async def revoke_token(self, tenant: str | None, token_id: int) -> ApiToken | None:
        """From now on it proves nothing; doing so twice changes nothing. None when the tenant has none such.

        Without a tenant: of whatever one.
        """
        ...

    async def note_token_use(self, ids: Sequence[int]) -> None:
        """These were used just now, for people to see; nothing depends on it."""
        ...
