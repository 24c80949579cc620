"""What tenants may have and what they have: the store's verbs about them.

Contract: use is counted in the transaction that changes it, so it is exact at every commit, also where several
processes create at once. A verb that would exceed a quota changes nothing and raises Overloaded, or answers
OverQuota for the item. Where there are several databases each enforces its even part.
"""

from typing import Protocol

import msgspec

from hourhand.core.bucket import Limit
from hourhand.core.quota import Quota, QuotaOverride, Room, Use
from hourhand.ports.limits import Portion


class TenantStanding(msgspec.Struct, frozen=True, kw_only=True):
    """What a tenant may have, of that what was set for it alone, and what it has."""

    tenant: str
    defaults: Quota  # of a tenant for which nothing is set
    quota: Quota
    override: QuotaOverride
    use: Use


class TenantPage(msgspec.Struct, frozen=True, kw_only=True):
    """Tenants in the order of their names."""

    tenants: tuple[TenantStanding, ...]
    next_after: str | None
    missing: tuple[int, ...] = ()  # shards that did not answer


class QuotaVerbs(Protocol):
    """Quotas, and buckets of tokens that processes share."""

    async def standing(self, tenant: str) -> TenantStanding:
        """What a tenant may have and what it has; one that nobody knows has nothing."""
        ...

    async def room(self, tenant: str, shard: int) -> Room:
        """What a tenant may have now in the database of a shard, and what it has there: for those who write nothing."""
        ...

    async def tenants(self, after: str, limit: int) -> TenantPage:
        """Tenants that have or had a job, or a quota of their own, behind a name."""
        ...

    async def set_quota(self, tenant: str, override: QuotaOverride) -> TenantStanding:
        """Set what a tenant may have, from now on; what it has already stays."""
        ...

    async def history_kept_us(self, tenant: str) -> int:
        """How long ended runs of a tenant are there to be read: as for all, or shorter by its quota."""
        ...

    async def take_tokens(self, key: str, limit: Limit, least: int, most: int) -> Portion:
        """Take as many tokens from a bucket as there are, from `least` to `most`, or none."""
        ...
