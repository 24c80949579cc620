"""The store's verbs about who did what. Part of `ports.store`.

A change that is made on somebody's behalf (`ports.acting`) leaves one deed for each thing that it changed, in the same
transaction: both are there or neither. What changes nothing, is refused, or nobody asked for leaves none.
"""

from typing import Protocol

import msgspec

from hourhand.core.deeds import Deed


class DeedQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which deeds to list; newest first, after a place."""

    job_id: int | None = None
    subject: str | None = None
    action: str | None = None  # one, or a family such as `job.*`
    from_at: int | None = None
    to_at: int | None = None  # exclusive
    before: tuple[int, ...] | None = None  # a place of an earlier page; what it means is the store's
    limit: int = 50


class DeedPage(msgspec.Struct, frozen=True, kw_only=True):
    """Some deeds, and where to go on."""

    deeds: tuple[Deed, ...]
    next_before: tuple[int, ...] | None
    missing: tuple[int, ...] = ()  # shards that did not answer


class DeedVerbs(Protocol):
    """Reading them; whatever changes something writes its own."""

    async def deeds(self, tenant: str, query: DeedQuery) -> DeedPage:
        """A page of deeds, newest first; may hold fewer than asked for although there are more.

        Kept as long as history. What is done while somebody reads page after page changes nothing behind the place
        where they are.
        """
        ...

    async def makers(self, tenant: str, job_id: int) -> dict[int, str]:
        """Who made which version of a job, deleted ones too, as far as it is known: by version."""
        ...
