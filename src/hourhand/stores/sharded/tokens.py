"""API tokens over several databases: a token's id, which is part of its text, says by its hash where it is.

So one lookup in one database suffices; a database that does not answer takes only its own tokens with it.
"""

from collections.abc import Sequence

from hourhand.core.api_token import ApiToken, format_token_id
from hourhand.core.buckets import BucketMap, bucket_of
from hourhand.ports.tokens import TokenPage, TokenQuery
from hourhand.stores.sharded.asking import Shards, answers_of
from hourhand.stores.sharded.merging import merge_ordered


class ShardedTokens:
    """The verbs; see `ports.tokens` for the contract of each."""

    _shards: Shards
    _buckets: BucketMap

    async def add_token(self, token: ApiToken) -> bool:
        return await self._shards.ask(self._home(token.id), lambda shard: shard.add_token(token))

    async def find_token(self, token_id: int) -> ApiToken | None:
        return await self._shards.ask(self._home(token_id), lambda shard: shard.find_token(token_id))

    async def list_tokens(self, query: TokenQuery) -> TokenPage:
        found = await self._shards.ask_all(lambda shard: shard.list_tokens(query))
        pages = [(page.tokens, page.next_before_id) for page in found.values()]
        tokens, onward = merge_ordered(pages, lambda token: token.id, query.limit)
        return TokenPage(tokens=tokens, next_before_id=onward, missing=self._shards.missing(found))

    async def revoke_token(self, tenant: str | None, token_id: int) -> ApiToken | None:
        return await self._shards.ask(
            self._home(token_id), lambda shard: shard.revoke_token(tenant, token_id)
        )

    async def note_token_use(self, ids: Sequence[int]) -> None:
        """A database that does not answer does not learn of it."""
        parts: dict[int, list[int]] = {}
        for token_id in ids:
            parts.setdefault(self._home(token_id), []).append(token_id)

        async def note(index: int) -> None:
            await self._shards.ask(index, lambda shard: shard.note_token_use(parts[index]))

        await answers_of({index: note(index) for index in parts})

    def _home(self, token_id: int) -> int:
        return self._buckets.shard_of(bucket_of(format_token_id(token_id)))
