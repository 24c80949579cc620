"""Operations on quotas and buckets. What tenants have is counted by the database as jobs come and go.

Locks: a tenant's row of `tenant_use` is held from the statement that changes its jobs, a bucket from when it is
taken from; both come last in a transaction, in this order.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from hourhand.core.bucket import Limit, take_some
from hourhand.core.deeds import Act
from hourhand.core.instant import DAY_US
from hourhand.core.quota import (
    OverQuota,
    Quota,
    QuotaOverride,
    Room,
    Use,
    asked_by,
    asked_by_edit,
    fitting,
    no_runs_left,
    over_by_edit,
    rate_of,
    refusal,
)
from hourhand.errors import HourhandError, Overloaded, TooLarge
from hourhand.ports.limits import Portion
from hourhand.ports.quotas import TenantPage, TenantStanding
from hourhand.ports.store import JobDraft
from hourhand.stores.relational.deeds import note_deed
from hourhand.stores.relational.membership import Settings
from hourhand.stores.relational.rows import decode_spec
from hourhand.stores.relational.tx import ChangedMeanwhile, Tx

if TYPE_CHECKING:
    from hourhand.stores.relational.store import Engine

_MOST_RATED = 200  # jobs of a version without rates, in one transaction


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """A tenant's quota in this database, what was set for it, and its use."""

    quota: Quota  # this database's part
    override: QuotaOverride
    use: Use


async def standings(tx: Tx, settings: Settings, tenants: Iterable[str]) -> dict[str, Standing]:
    """What tenants may have and what they have."""
    rows = await tx.all("use_of", (tx.array(sorted(set(tenants))),))
    return {row[0]: _standing(settings, row) for row in rows}


async def standing(tx: Tx, settings: Settings, tenant: str) -> TenantStanding:
    """The same of one, as the port says it."""
    return _told(settings, tenant, (await standings(tx, settings, [tenant]))[tenant])


async def tenants(tx: Tx, settings: Settings, after: str, limit: int) -> TenantPage:
    """A page of tenants by name."""
    rows = await tx.all("tenants_page", (after, limit))
    found = tuple(_told(settings, row[0], _standing(settings, row)) for row in rows)
    return TenantPage(tenants=found, next_after=found[-1].tenant if len(found) == limit else None)


async def set_quota(tx: Tx, settings: Settings, tenant: str, override: QuotaOverride) -> TenantStanding:
    """Set what a tenant may have; it is listed from then on."""
    limits = msgspec.structs.asdict(override)
    if await tx.run("put_quota", {"tenant": tenant, **limits, "set_at": tx.now_at}):
        note = ", ".join(f"{name}: {value}" for name, value in limits.items() if value is not None)
        await note_deed(tx, tenant, Act.QUOTA_SET, object_id=tenant, note=note or None)
    await tx.run("add_tenant", (tenant,))
    return await standing(tx, settings, tenant)


async def kept_us(tx: Tx, settings: Settings, tenant: str) -> int:
    """How long a tenant's history is there to be read."""
    row = await tx.one("history_days_of", (tenant,))
    override = QuotaOverride(history_days=None if row is None else row[0])
    return settings.quota.overridden(override).kept_us(settings.keep_us)


async def unfitting(
    tx: Tx, settings: Settings, drafts: Sequence[JobDraft], found: Mapping[str, Standing]
) -> list[OverQuota | None]:
    """Which drafts their tenants may not have; by what is there now, which `confirm` holds to at the end."""
    answers: list[OverQuota | None] = [None] * len(drafts)
    for tenant, one in found.items():
        if one.quota == Quota():
            continue
        places = [place for place, draft in enumerate(drafts) if draft.tenant == tenant]
        asked = [(drafts[place].spec, asked_by(one.quota, drafts[place].spec)) for place in places]
        room = await _room(tx, tenant, one)
        for place, answer in zip(places, fitting(room, asked), strict=True):
            answers[place] = answer
    return answers


async def confirm(
    tx: Tx, settings: Settings, drafts: Sequence[JobDraft], found: Mapping[str, Standing]
) -> None:
    """Once jobs are written and their tenants held: if somebody else was faster, the operation starts over."""
    limited = {tenant: one for tenant, one in found.items() if one.quota != Quota()}
    if not drafts or not limited:
        return
    for tenant, one in (await standings(tx, settings, limited)).items():
        more = Use()
        for draft in drafts:
            more = more.plus(asked_by(one.quota, draft.spec)) if draft.tenant == tenant else more
        if refusal(one.quota, one.use.minus(more), more) is not None:
            raise ChangedMeanwhile
        limit = one.quota.runs
        if limit is None or not more.runs:
            continue
        if not (await take_tokens(tx, _runs_key(tenant), limit, more.runs, more.runs)).taken:
            raise ChangedMeanwhile


async def check_edit(tx: Tx, settings: Settings, tenant: str, before: str, after: str) -> None:
    """Refuse a change, already written, by which a tenant has more than it may. Specs come as they are kept."""
    if before == after:
        return
    one = (await standings(tx, settings, [tenant]))[tenant]
    old, new = decode_spec(before), decode_spec(after)
    more = asked_by_edit(one.quota, old, new)
    over = over_by_edit(Room(quota=one.quota, use=one.use.minus(more)), old, new, more)
    if over is not None:
        raise refused(over)
    await take_runs(tx, settings, tenant, more.runs)


async def take_runs(tx: Tx, settings: Settings, tenant: str, amount: int) -> None:
    """Count runs that somebody asked for, as the last thing of an operation; Overloaded where they are too many."""
    if amount < 1:
        return
    limit = (await standings(tx, settings, [tenant]))[tenant].quota.runs
    if limit is None:
        return
    key = _runs_key(tenant)
    if amount > limit.burst:
        raise refused(no_runs_left(limit, amount, await _left(tx, key, limit), 60_000_000))
    got = await take_tokens(tx, key, limit, amount, amount)
    if not got.taken:
        raise refused(no_runs_left(limit, amount, got.left, got.retry_after_us))


async def room(tx: Tx, settings: Settings, tenant: str) -> Room:
    """What a tenant may have in this database and what it has there."""
    return await _room(tx, tenant, (await standings(tx, settings, [tenant]))[tenant])


async def runs_room(tx: Tx, settings: Settings, tenant: str, most: int) -> int:
    """How many runs a tenant may be given now, at most so many."""
    limit = (await standings(tx, settings, [tenant]))[tenant].quota.runs
    return most if limit is None else min(most, await _left(tx, _runs_key(tenant), limit))


async def take_tokens(tx: Tx, key: str, limit: Limit, least: int, most: int) -> Portion:
    """Take tokens from a bucket that is held until the end."""
    row = await tx.one("lock_bucket", (key,))
    if row is None:
        await tx.run("add_bucket", (key,))
        row = await tx.one("lock_bucket", (key,))
        if row is None:
            raise ChangedMeanwhile
    await tx.look_at_clock()
    full_at, taken, verdict = take_some(row[0], tx.now_at, limit, least, most)
    if taken:
        await tx.run("fill_bucket", (full_at, key))
    return Portion(taken, verdict.left, verdict.retry_after_us)


async def rate_jobs(tx: Tx, limit: int) -> bool:
    """Compute the rate of jobs that were written by a version without it; True while there are more."""
    rows = await tx.all("unrated_jobs", (min(limit, _MOST_RATED),))
    by_tenant = sorted(rows, key=lambda row: row[4])  # the order in which everybody holds what is counted
    for job_id, spec, clock_id, paused, _ in by_tenant:
        has_times = paused or clock_id is not None
        await tx.run("rate_job", (rate_of(decode_spec(spec)) if has_times else 0, job_id))
    return len(rows) >= min(limit, _MOST_RATED)


def refused(over: OverQuota) -> HourhandError:
    """The error for what does not fit."""
    return TooLarge(over.why) if over.too_large else Overloaded(over.why, retry_after_s=over.retry_after_s)


class KeepsQuotas:
    """The verbs of `ports.quotas` over an engine."""

    _engine: "Engine"
    _settings: Settings

    async def standing(self, tenant: str) -> TenantStanding:
        return await self._engine.read(lambda tx: standing(tx, self._settings, tenant))

    async def room(self, tenant: str, shard: int) -> Room:
        return await self._engine.read(lambda tx: room(tx, self._settings, tenant))

    async def tenants(self, after: str, limit: int) -> TenantPage:
        return await self._engine.read(lambda tx: tenants(tx, self._settings, after, limit))

    async def set_quota(self, tenant: str, override: QuotaOverride) -> TenantStanding:
        return await self._engine.write(lambda tx: set_quota(tx, self._settings, tenant, override))

    async def history_kept_us(self, tenant: str) -> int:
        return await self._engine.read(lambda tx: kept_us(tx, self._settings, tenant))

    async def take_tokens(self, key: str, limit: Limit, least: int, most: int) -> Portion:
        return await self._engine.write(lambda tx: take_tokens(tx, key, limit, least, most))


async def _left(tx: Tx, key: str, limit: Limit) -> int:
    """How many tokens a bucket has, if nobody takes any."""
    row = await tx.one("read_bucket", (key,))
    missing_us = 0 if row is None else max(0, row[0] - tx.now_at)
    return max(0, limit.burst - -(-missing_us // limit.token_us))


async def _room(tx: Tx, tenant: str, one: Standing) -> Room:
    limit = one.quota.runs
    runs_left = 0 if limit is None else await _left(tx, _runs_key(tenant), limit)
    return Room(quota=one.quota, use=one.use, runs_left=runs_left)


def _standing(settings: Settings, row: Sequence[Any]) -> Standing:
    override = QuotaOverride(
        jobs=row[4],
        runs_per_minute=row[5],
        payload_bytes=row[6],
        document_bytes=row[7],
        history_days=row[8],
    )
    return Standing(
        quota=settings.quota.overridden(override).part(settings.databases),
        override=override,
        use=Use(jobs=row[1], document_bytes=row[2], rate=row[3]),
    )


def _told(settings: Settings, tenant: str, one: Standing) -> TenantStanding:
    days = -(-settings.keep_us // DAY_US)
    defaults = msgspec.structs.replace(settings.quota, history_days=days)
    quota = defaults.overridden(one.override)
    return TenantStanding(tenant=tenant, defaults=defaults, quota=quota, override=one.override, use=one.use)


def _runs_key(tenant: str) -> str:
    return f"runs/{tenant}"
