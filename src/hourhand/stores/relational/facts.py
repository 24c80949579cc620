"""Everything that is kept about one nominal time of a job, read on one snapshot. Never writes.

Of deleted jobs too: their versions and history stay. Each part is bounded: the run itself, its dead letter, what the job runs now,
a few runs around that time, the outage that it fell into, the parents of a job that follows others.
"""

from collections.abc import Sequence

import msgspec

from hourhand.core.dag import Missing
from hourhand.core.identity import RunKey, segment_of
from hourhand.core.lifecycle import FINAL, State
from hourhand.core.model import AfterTiming, Version
from hourhand.core.run import RunView
from hourhand.core.skipping import Skip
from hourhand.core.why import DeadFact, KeptGap, ParentFact, RunFacts, in_force, promised_by
from hourhand.stores.relational.jobs import load
from hourhand.stores.relational.membership import Settings
from hourhand.stores.relational.quotas import kept_us
from hourhand.stores.relational.reading import job_as_seen, live_runs, with_history
from hourhand.stores.relational.rows import JobRecord, decode_spec, gap_of, versions_of
from hourhand.stores.relational.tx import Tx
from hourhand.stores.relational.waits import Prospects

_AROUND = 20  # ended runs of the job around the time
_MOST_LIVE = 200  # live ones beside it
_MOST_GAPS = 100  # outages that began before it, looked through for one that lasted
_MOST_LOOKS = 200  # jobs up a graph


async def run_facts(tx: Tx, settings: Settings, tenant: str, key: RunKey) -> RunFacts | None:
    """What is known about a nominal time; None when there is and was no such job."""
    record = await load(tx, tenant, key.job_id)
    if record is None and await tx.one("version_tenant", (key.job_id,)) != (tenant,):
        return None
    versions = await versions_of(tx, key.job_id, record)
    live = {view.scheduled_at: view for view in await live_runs(tx, tenant, key.job_id, [key.scheduled_at])}
    mine = {at: view for at, view in live.items() if at == key.scheduled_at}
    found = await with_history(tx, tenant, key.job_id, [key.scheduled_at], mine)
    run = found[0] if found else None
    return RunFacts(
        job_id=key.job_id,
        at=key.scheduled_at,
        now_at=tx.now_at,
        keep_us=await kept_us(tx, settings, tenant),
        job=None if record is None else await job_as_seen(tx, record),
        versions=tuple(versions),
        run=run,
        live=bool(mine),
        dead=await _dead(tx, key),
        others=await _others(tx, tenant, key, run, live),
        gap=await _gap(tx, settings, key, versions),
        skip=await _skip(tx, key),
        unplanned_from=await _unplanned_from(tx, record),
        parents=await _parents(tx, key, run, versions),
    )


async def _others(
    tx: Tx, tenant: str, key: RunKey, run: RunView | None, live: dict[int, RunView]
) -> tuple[RunView, ...]:
    """Runs of the job that may have been in the way: those under way, and those that ended around that time."""
    until_at = key.scheduled_at
    if run is not None and run.attempts:
        row = run.attempts[0]
        cancelled = run.state is State.CANCELLED  # perhaps in favour of a later one
        until_at = max(
            until_at, run.attempts[-1].finished_at if cancelled else row.started_at or row.finished_at
        )
    past = [row[0] for row in await tx.all("history_times", (key.job_id, until_at + 1, tx.now_at, _AROUND))]
    beside = sorted(at for at in live if at != key.scheduled_at)[:_MOST_LIVE]
    times = sorted({*past, *beside} - {key.scheduled_at})
    return tuple(await with_history(tx, tenant, key.job_id, times, {at: live[at] for at in beside}))


async def _gap(tx: Tx, settings: Settings, key: RunKey, versions: Sequence[Version]) -> KeptGap | None:
    """The outage of the clock that the time belongs to, under a policy of the job.

    Of any version: a later one may have been in force when somebody planned again, and where the time went back
    in between, an earlier one.
    """
    version = promised_by(versions, key.scheduled_at)
    rule = None if version is None else version.spec.rule
    if version is None or rule is None:
        return None
    policies = {
        (one.spec.misfire.policy, one.spec.misfire.grace_us, one.spec.misfire.limit) for one in versions
    }
    place = (rule.key, segment_of(key.job_id, settings.segments))
    for row in await tx.all("gaps_at", (*place, key.scheduled_at, _MOST_GAPS)):
        kept = KeptGap(gap=gap_of(row), decided_at=row[7])
        policy = (kept.gap.policy, kept.gap.grace_us, kept.gap.limit)
        if kept.gap.to_at >= key.scheduled_at and policy in policies:
            return kept
    return None


async def _dead(tx: Tx, key: RunKey) -> DeadFact | None:
    row = await tx.one("dead_at", key)
    return None if row is None else DeadFact(failed_at=row[0], tries=row[1], error=row[2])


async def _skip(tx: Tx, key: RunKey) -> Skip | None:
    for at, note, made_at in await tx.all("skips_of", (key.job_id, key.scheduled_at - 1)):
        if at == key.scheduled_at:
            return Skip(job_id=key.job_id, scheduled_at=at, note=note, made_at=made_at)
    return None


async def _unplanned_from(tx: Tx, record: JobRecord | None) -> int | None:
    if record is None or record.clock_id is None:
        return None
    next_at: int | None = (await tx.one("clock_next", (record.clock_id,)))[0]
    return next_at


async def _parents(
    tx: Tx, key: RunKey, run: RunView | None, versions: Sequence[Version]
) -> tuple[ParentFact, ...]:
    """Whom a job follows at a time, and what is to be expected of them; of no interest once it has run."""
    version = in_force(versions, key.scheduled_at)
    over = run is not None and run.state in FINAL
    if version is None or not isinstance(version.spec.timing, AfterTiming):
        return ()
    if over and (run is None or run.state is not State.SKIPPED):
        return ()
    prospects = Prospects(tx, _MOST_LOOKS)
    facts = []
    edges = await tx.all("edges_at", (key.job_id, key.scheduled_at))
    records = {
        row[0]: JobRecord(*row) for row in await tx.all("get_jobs", (tx.array([one for one, _ in edges]),))
    }
    for parent, since_at in edges:
        name = decode_spec(records[parent].spec).name if parent in records else ""
        if over:  # what they came to is in the reason of the skip; here they get their names
            facts.append(ParentFact(job_id=parent, name=name, since_at=since_at))
            continue
        outcome = await prospects.outcome(parent, key.scheduled_at)
        fact = ParentFact(job_id=parent, name=name, since_at=since_at, outcome=outcome)
        if outcome is None or not isinstance(outcome, Missing):
            fact = await _with_end(tx, fact, key.scheduled_at)
        facts.append(fact)
    return tuple(facts)


async def _with_end(tx: Tx, fact: ParentFact, at: int) -> ParentFact:
    """How and when a parent ended, and whether those that follow it have heard of it."""
    telling = await tx.one("is_descending", (fact.job_id, at)) is not None
    ended = await with_history(tx, "", fact.job_id, [at], {}) if telling or fact.outcome is not None else []
    if not ended:
        return fact
    last = ended[0].attempts[-1]
    return msgspec.structs.replace(fact, telling=telling, ended_at=last.finished_at, trigger=ended[0].trigger)
