"""Turns rows into the core's nouns and back; knows column orders and codes, nothing else."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from hourhand.core.identity import lane_of, tenant_lane
from hourhand.core.lifecycle import Event, State
from hourhand.core.model import Job, JobSpec, JobState, MisfirePolicy, OnceTiming, Version
from hourhand.core.plan import Gap
from hourhand.core.quota import rate_of
from hourhand.core.run import TRIGGER_CODES, TRIGGERS, AttemptRow
from hourhand.stores.relational.tx import Tx

STATES = tuple(State)
STATE_CODES = {state: code for code, state in enumerate(STATES)}
EVENTS = tuple(Event)
EVENT_CODES = {event: code for code, event in enumerate(EVENTS)}

_encoder = msgspec.json.Encoder()
_spec_decoder = msgspec.json.Decoder(JobSpec)


class JobRecord(NamedTuple):
    """A row of the view job_records."""

    id: int
    tenant: str
    version: int
    version_from: int
    paused: int
    note: str | None
    paused_until: int | None
    clock_id: int | None
    since: int
    until: int
    once_at: int | None
    attend_at: int | None
    created_at: int
    updated_at: int
    lane: int
    spec: str


class UnstartedRow(NamedTuple):
    """What planned, blocked and idle running rows have in common."""

    scheduled_at: int
    lane: int
    due_at: int
    trigger: int
    fence: int
    tries: int


def encode_spec(spec: JobSpec) -> str:
    """A spec as it is kept."""
    return _encoder.encode(spec).decode()


def decode_spec(text: str) -> JobSpec:
    """A kept spec."""
    return _spec_decoder.decode(text)


def to_json(value: Any) -> str:
    """A parameter for json_each, or a detail."""
    return _encoder.encode(value).decode()


def from_json(text: str | None) -> Any:
    """A kept detail."""
    return None if text is None else msgspec.json.decode(text)


def job_of(record: JobRecord, state: JobState | None = None) -> Job:
    """A job from its row."""
    if state is None:
        state = JobState.PAUSED if record.paused else JobState.ACTIVE
    return Job(
        id=record.id,
        tenant=record.tenant,
        spec=decode_spec(record.spec),
        version=record.version,
        version_from=record.version_from,
        state=state,
        note=record.note,
        paused_until=record.paused_until,
        since=record.since,
        until=record.until,
        created_at=record.created_at,
        updated_at=record.updated_at,
    )


def gap_of(row: Sequence[Any]) -> Gap:
    """What members of a clock missed, from the first columns of its row."""
    from_at, to_at, policy, grace_us, limit, missed, ran = row[:7]
    return Gap(
        from_at=from_at,
        to_at=to_at,
        policy=MisfirePolicy(policy),
        grace_us=grace_us,
        limit=limit,
        missed=missed,
        ran=ran,
    )


def job_values(job: Job, *, clock_id: int | None, attend_at: int | None, lane: int) -> dict[str, Any]:
    """The columns of a job's row, by name."""
    spec = job.spec
    return {
        "id": job.id,
        "tenant": job.tenant,
        "key": spec.key,
        "name": spec.name,
        "version": job.version,
        "version_from": job.version_from,
        "paused": int(job.state is JobState.PAUSED),
        "note": job.note,
        "paused_until": job.paused_until,
        "clock_id": clock_id,
        "since": job.since,
        "until": job.until,
        "once_at": spec.timing.at if isinstance(spec.timing, OnceTiming) else None,
        "attend_at": attend_at,
        "created_at": job.created_at,
        "updated_at": job.updated_at,
        "lane": lane,
        "concurrency": spec.concurrency,
        "at_most_once": int(spec.delivery == "at_most_once"),
        "grace_us": spec.misfire.grace_us,
        "timeout_us": spec.timeout_us,
        "spec": encode_spec(spec),
        "rate": rate_of(spec),
    }


async def versions_of(tx: Tx, job_id: int, present: JobRecord | None) -> list[Version]:
    """All versions of a job, oldest first; one ends where the next begins."""
    rows = [tuple(row) for row in await tx.all("over_versions", (job_id,))]
    if present is not None:
        rows.append(
            (
                present.version,
                present.version_from,
                present.until,
                present.paused,
                0,
                present.note,
                present.spec,
            )
        )
    found = []
    for index, (version, from_at, until, paused, deleted, note, spec) in enumerate(rows):
        found.append(
            Version(
                job_id=job_id,
                version=version,
                spec=decode_spec(spec),
                paused=bool(paused),
                note=note,
                from_at=from_at,
                until=until,
                to_at=rows[index + 1][1] if index + 1 < len(rows) else None,
                deleted=bool(deleted),
            )
        )
    return found


async def lane_for(tx: Tx, spec: JobSpec, tenant: str, pools: dict[str, int]) -> int:
    """The lane a job's scheduled runs wait in; `pools` remembers numbers within one operation."""
    pool_id = pools.get(spec.pool)
    if pool_id is None:
        row = await tx.one("pool_id", (spec.pool,)) or await tx.one("add_pool", (spec.pool,))
        pool_id = pools[spec.pool] = int(row[0])
    return lane_of(pool_id, spec.priority, tenant_lane(tenant))


def ending(
    job_id: int,
    row: UnstartedRow,
    state: State,
    now_at: int,
    detail: dict[str, Any],
    version: int | None = None,
) -> tuple[Any, ...]:
    """A history row of a run that ends without an attempt of its own, for `add_ending`."""
    return (
        job_id,
        row.scheduled_at,
        row.fence + 1,  # above every attempt it had
        STATE_CODES[state],
        row.trigger,
        row.tries,
        row.due_at,
        None,
        now_at,
        version,
        None,
        to_json(detail),
    )


def attempt_row(row: Sequence[Any]) -> AttemptRow:
    """An attempt from a row of `history_of`."""
    _, attempt, state, _, _, due_at, started_at, finished_at, version, worker, detail = row
    return AttemptRow(
        attempt=attempt,
        state=STATES[state],
        due_at=due_at,
        started_at=started_at,
        finished_at=finished_at,
        worker=worker,
        version=version or 0,
        detail=from_json(detail),
    )


__all__ = [
    "EVENTS",
    "EVENT_CODES",
    "STATES",
    "STATE_CODES",
    "TRIGGERS",
    "TRIGGER_CODES",
    "JobRecord",
    "UnstartedRow",
    "attempt_row",
    "decode_spec",
    "encode_spec",
    "ending",
    "from_json",
    "job_of",
    "job_values",
    "lane_for",
    "to_json",
    "versions_of",
]
