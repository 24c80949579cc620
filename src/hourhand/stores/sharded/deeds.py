"""Who did what over several databases: each has its own order, so a page goes on at a place in each.

A deed lies in the database of what was changed.
"""

from collections.abc import Mapping

import msgspec

from hourhand.core.deeds import Deed
from hourhand.ports.deeds import DeedPage, DeedQuery
from hourhand.stores.sharded.asking import Shards, some_answers_of
from hourhand.stores.sharded.merging import Places, read_places, write_places


class ShardedDeeds:
    """The verbs of `ports.deeds` over all shards."""

    _shards: Shards

    async def deeds(self, tenant: str, query: DeedQuery) -> DeedPage:
        if query.job_id is not None:
            page = await self._shards.ask_home(query.job_id, lambda shard: shard.deeds(tenant, query))
            return page or DeedPage(deeds=(), next_before=None)
        places = read_places(query.before, len(self._shards))

        async def read(index: int) -> DeedPage:
            part = msgspec.structs.replace(query, before=places[index])
            return await self._shards.ask(index, lambda shard: shard.deeds(tenant, part))

        pages = await some_answers_of({index: read(index) for index in places})
        found, onward = merge_deeds(pages, places, query.limit)
        goes_on = any(index in pages for index in onward)  # else only the silent have more
        return DeedPage(
            deeds=tuple(found),
            next_before=write_places(onward, len(self._shards)) if goes_on else None,
            missing=tuple(index for index in places if index not in pages),
        )

    async def makers(self, tenant: str, job_id: int) -> dict[int, str]:
        return await self._shards.ask_home(job_id, lambda shard: shard.makers(tenant, job_id)) or {}


def merge_deeds(pages: Mapping[int, DeedPage], places: Places, limit: int) -> tuple[list[Deed], Places]:
    """The newest of pages in each shard's own order, and where each shard that has more goes on.

    `places` is where these pages began; shards without a page keep theirs.
    """
    taken: list[Deed] = []
    used = dict.fromkeys(pages, 0)
    while len(taken) < limit and (newest := _newest(pages, used)) is not None:
        taken.append(pages[newest].deeds[used[newest]])
        used[newest] += 1
    onward = dict(places)
    for index, page in pages.items():
        if used[index] < len(page.deeds):
            following = page.deeds[used[index]]
            onward[index] = (following.at, following.id + 1)  # itself, but nothing that is done meanwhile
        elif page.next_before is None:
            del onward[index]
        else:
            onward[index] = page.next_before
    return taken, onward


def _newest(pages: Mapping[int, DeedPage], used: Mapping[int, int]) -> int | None:
    """The shard whose next deed is the newest of all; None when that cannot be known, or there is none."""
    heads: dict[int, int] = {}
    for index, page in pages.items():
        if used[index] < len(page.deeds):
            heads[index] = page.deeds[used[index]].at
        elif page.next_before is not None:
            return None  # it has more, which may be newer than what the others have
    return max(heads, key=lambda index: heads[index], default=None)
