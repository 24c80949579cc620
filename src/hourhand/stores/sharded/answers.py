"""Kept answers over several databases: a key lives in one of them, what was changed under it is noted where it was."""

from hourhand.core.buckets import BucketMap, bucket_of
from hourhand.core.repeating import Answer
from hourhand.errors import Unavailable
from hourhand.ports.answers import Asked, Begun, Past
from hourhand.ports.store import Store
from hourhand.stores.sharded.asking import Shards, named


class AnswerVerbs:
    """See `ports.answers` for the contract of each."""

    _shards: Shards
    _buckets: BucketMap

    async def begin_answer(self, asked: Asked) -> Begun:
        home = self._answer_home(asked.tenant, asked.key)
        return await self._shards.ask(home, lambda shard: shard.begin_answer(asked))

    async def fence_off(self, tenant: str, key: str, *, fence: int, since: int) -> Past:
        async def ask(shard: Store) -> Past:
            return await shard.fence_off(tenant, key, fence=fence, since=since)

        found = await self._shards.ask_all(ask)
        missing = self._shards.missing(found)
        if missing:  # what was changed there is not known, and could still be changed
            raise Unavailable(
                f"whether this was carried out cannot be said while {named(missing)} cannot be reached"
            )
        made = {place: job_id for past in found.values() for place, job_id in past.made.items()}
        return Past(applied=any(past.applied for past in found.values()), made=made)

    async def finish_answer(self, tenant: str, key: str, fence: int, answer: Answer) -> bool:
        home = self._answer_home(tenant, key)
        return await self._shards.ask(home, lambda shard: shard.finish_answer(tenant, key, fence, answer))

    async def abandon_answer(self, tenant: str, key: str, fence: int) -> None:
        home = self._answer_home(tenant, key)
        await self._shards.ask(home, lambda shard: shard.abandon_answer(tenant, key, fence))

    def _answer_home(self, tenant: str, key: str) -> int:
        return self._buckets.shard_of(bucket_of(f"answer {tenant} {key}"))
