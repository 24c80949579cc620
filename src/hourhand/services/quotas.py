"""The use cases of quotas: what tenants may have and have, and setting it."""

import msgspec

from hourhand.core.access import TENANT_WORDS, is_tenant
from hourhand.core.fault import Fault
from hourhand.core.quota import MOST, MOST_DAYS, MOST_RUNS, QuotaOverride
from hourhand.errors import Invalid, NotFound
from hourhand.ports.quotas import TenantPage, TenantStanding
from hourhand.ports.store import Store

_HIGHEST = {"runs_per_minute": MOST_RUNS, "history_days": MOST_DAYS}


class Quotas:
    """Use cases over the store. The largest payload of all is a setting, beside what tenants have."""

    def __init__(self, *, store: Store, payload_bytes: int) -> None:
        self._store = store
        self._payload_bytes = payload_bytes

    async def standing(self, tenant: str) -> TenantStanding:
        """What a tenant may have, and what it has."""
        return self._within_settings(await self._store.standing(tenant))

    async def page(self, after: str, limit: int) -> TenantPage:
        """Tenants by name, with the same of each."""
        found = await self._store.tenants(after, limit)
        return msgspec.structs.replace(found, tenants=tuple(map(self._within_settings, found.tenants)))

    async def set(self, tenant: str, override: QuotaOverride, *, dry_run: bool = False) -> TenantStanding:
        """Set what a tenant may have; what it has already stays, also where that is more."""
        if not is_tenant(tenant):
            raise NotFound(f"there can be no such tenant; expected {TENANT_WORDS}")
        faults = [
            Fault(
                pointer=f"/{name}",
                expected=f"a whole number from 0 to {_HIGHEST.get(name, MOST):,}",
                got=f"{value:,}",
            )
            for name, value in msgspec.structs.asdict(override).items()
            if value is not None and not 0 <= value <= _HIGHEST.get(name, MOST)
        ]
        if faults:
            raise Invalid(f"{faults[0].pointer}: expected {faults[0].expected}", faults)
        if dry_run:
            found = await self._store.standing(tenant)
            defaults = msgspec.structs.replace(
                found, override=override, quota=found.defaults.overridden(override)
            )
            return self._within_settings(defaults)
        return self._within_settings(await self._store.set_quota(tenant, override))

    def _within_settings(self, found: TenantStanding) -> TenantStanding:
        """With the largest payload and the longest history that really hold: no tenant has more than the settings allow."""
        payload = min(found.quota.payload_bytes or self._payload_bytes, self._payload_bytes)
        most_days = found.defaults.history_days
        days = min(found.quota.history_days or most_days, most_days)
        quota = msgspec.structs.replace(found.quota, payload_bytes=payload, history_days=days)
        return msgspec.structs.replace(found, quota=quota)
