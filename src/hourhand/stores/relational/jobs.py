"""Operations that make: new jobs with their clocks joined, and runs beside the schedule."""

from collections.abc import Mapping, Sequence
from typing import Any

from hourhand.core.deeds import Act
from hourhand.core.identity import RunKey
from hourhand.core.instant import SECOND_US
from hourhand.core.model import MAX_QUEUED, AfterTiming, Job, JobState, OnceTiming, Trigger
from hourhand.core.plan import first_since, last_time
from hourhand.core.run import TRIGGER_CODES
from hourhand.core.tending import attend_at
from hourhand.errors import Overloaded, check_version
from hourhand.ports.acting import Actor
from hourhand.ports.store import Hint, JobDraft, Refusal, Refused
from hourhand.stores.relational import quotas
from hourhand.stores.relational.answers import note_made
from hourhand.stores.relational.deeds import note_creations, note_deed
from hourhand.stores.relational.edges import add_edges, edge_rows, unfit_drafts
from hourhand.stores.relational.membership import Enrolment, Place, Settings
from hourhand.stores.relational.rows import JobRecord, decode_spec, job_values, lane_for
from hourhand.stores.relational.tidings import CREATED, note_jobs
from hourhand.stores.relational.tx import Tx
from hourhand.stores.relational.waves import any_run_at, jobs_below, open_wave

MAX_TOGETHER = 200  # jobs of separate requests that share a transaction


async def create_jobs(
    tx: Tx,
    settings: Settings,
    drafts: Sequence[JobDraft],
    known: Mapping[Place, int] | None = None,
    *,
    actors: Sequence[Actor | None] | None = None,
) -> list[Job | Refused]:
    """Store drafts, refusing those whose id or key is taken.

    `known` are clocks that were found before, `actors` who asked for each where not all are the transaction's.
    """
    refusals = await _refusals(tx, drafts)
    if any(isinstance(draft.spec.timing, AfterTiming) for draft in drafts):
        refusals = await _unfit(tx, drafts, refusals)
    standings = await quotas.standings(tx, settings, [draft.tenant for draft in drafts])
    refusals = await _over_quota(tx, settings, drafts, refusals, standings)
    enrolment = Enrolment(tx, settings, known)
    answers = [refusal or await _new_job(tx, draft) for draft, refusal in zip(drafts, refusals, strict=True)]
    jobs = [answer for answer in answers if isinstance(answer, Job)]
    await enrolment.foresee(jobs)
    rows = [await _job_row(tx, settings, enrolment, job) for job in jobs]
    # `lead` from now, as every change: by then this is committed, and a parent that ends sees it
    since = tx.now_at + settings.lead_us
    await add_edges(tx, [row for job in jobs for row in edge_rows(job.id, job.spec.timing, since)])
    await enrolment.write()
    await join_sets(tx, jobs)
    stored = zip(drafts, answers, strict=True)
    await note_made(tx, {answer.id: draft for draft, answer in stored if isinstance(answer, Job)})
    await note_jobs(tx, CREATED, jobs)
    asked_by = [tx.actor] * len(drafts) if actors is None else actors
    pairs = zip(answers, asked_by, strict=True)
    await note_creations(tx, [(answer, one) for answer, one in pairs if isinstance(answer, Job)])
    await tx.insert("add_job", rows)  # last, for it holds what is counted of each tenant
    made = [draft for draft, answer in zip(drafts, answers, strict=True) if isinstance(answer, Job)]
    await quotas.confirm(tx, settings, made, standings)
    tx.hints.add(Hint.JOBS)
    return answers


async def add_run(
    tx: Tx,
    settings: Settings,
    tenant: str,
    job_id: int,
    request_key: str | None,
    downstream: bool = False,
    version: int | None = None,
) -> RunKey | None:
    """A manual run at a nominal time of its own, never on a whole second or where its rule fires."""
    record = await hold(tx, tenant, job_id)
    if record is None:
        return None
    known = await run_of_request(tx, job_id, request_key)
    if known is not None:
        return known
    check_version(record.version, version)
    made, followers = await add_beside(tx, settings, record, Trigger.MANUAL, request_key, downstream)
    count = 1 + followers if downstream else None
    await note_deed(tx, tenant, Act.JOB_RUN, job_id=job_id, scheduled_at=made.scheduled_at, count=count)
    return made


async def run_of_request(tx: Tx, job_id: int, request_key: str | None) -> RunKey | None:
    """The run that a request with this key made before."""
    known = None if request_key is None else await tx.one("request_key", (job_id, request_key))
    return None if known is None else RunKey(job_id, known[0])


async def add_beside(
    tx: Tx,
    settings: Settings,
    record: JobRecord,
    trigger: Trigger,
    request_key: str | None,
    downstream: bool = False,
) -> tuple[RunKey, int]:
    """A run of a held job beside its schedule, due now; with runs of all that follow it if asked for: how many."""
    if (await tx.one("waiting_beside", {"job_id": record.id}))[0] >= MAX_QUEUED:
        raise Overloaded(f"{MAX_QUEUED} runs of this job beside its schedule already wait")
    wave = await jobs_below(tx, record.tenant, record.id) if downstream else {}
    at = await _free_instant(tx, record, list(wave))
    row = (at, record.id, record.lane, tx.now_at, TRIGGER_CODES[trigger], 0, 0)
    await tx.insert("add_planned", [row])
    if request_key is not None:
        await tx.insert("add_request_key", [(record.id, request_key, at, tx.now_at)])
    followers = await open_wave(tx, wave, record.id, at, trigger)
    await quotas.take_runs(tx, settings, record.tenant, 1 + len(wave))
    tx.hints.add(Hint.RUNS)
    return RunKey(record.id, at), followers


def enrol(enrolment: Enrolment, job: Job, lane: int) -> int | None:
    """Join the clock or write the one run, unless the job is paused; answers the clock."""
    if job.state is not JobState.ACTIVE:
        return None
    if isinstance(job.spec.timing, OnceTiming):
        enrolment.plan_once(job, job.spec.timing.at, lane)
        return None
    rule = job.spec.rule
    return None if rule is None else enrolment.join(job, rule, lane)


async def join_sets(tx: Tx, jobs: Sequence[Job]) -> None:
    """Note jobs under the sets that their specs name; most name none."""
    rows = [(job.tenant, job.spec.set_name, job.id) for job in jobs if job.spec.set_name is not None]
    if rows:
        await tx.insert("add_to_set", rows)


async def leave_set(tx: Tx, job: Job) -> None:
    """Forget a job under the set that its spec names."""
    if job.spec.set_name is not None:
        await tx.run("drop_from_set", (job.tenant, job.spec.set_name, job.id))


async def hold(tx: Tx, tenant: str, job_id: int) -> JobRecord | None:
    """A tenant's job by id, locked until the end, with the time as it is once it is locked."""
    row = await tx.one("lock_job", (job_id,))
    await tx.look_at_clock()
    return None if row is None or row[1] != tenant else JobRecord(*row)


async def load(tx: Tx, tenant: str, job_id: int) -> JobRecord | None:
    """A tenant's job by id; another tenant's does not exist."""
    row = await tx.one("get_job", (job_id,))
    if row is None or row[1] != tenant:
        return None
    return JobRecord(*row)


async def _over_quota(
    tx: Tx,
    settings: Settings,
    drafts: Sequence[JobDraft],
    refusals: Sequence[Refused | None],
    standings: Mapping[str, quotas.Standing],
) -> list[Refused | None]:
    """Look at the quotas of those that nothing else stands against."""
    fit = [draft for draft, refusal in zip(drafts, refusals, strict=True) if refusal is None]
    found = iter(await quotas.unfitting(tx, settings, fit, standings))
    return [next(found) if refusal is None else refusal for refusal in refusals]


async def _unfit(
    tx: Tx, drafts: Sequence[JobDraft], refusals: Sequence[Refused | None]
) -> list[Refused | None]:
    """Look at the graph of those that nothing else stands against."""
    fit = [draft for draft, refusal in zip(drafts, refusals, strict=True) if refusal is None]
    found = iter(await unfit_drafts(tx, fit))
    return [next(found) if refusal is None else refusal for refusal in refusals]


async def _refusals(tx: Tx, drafts: Sequence[JobDraft]) -> list[Refused | None]:
    taken_ids = {row[0] for row in await tx.all("taken_ids", (tx.array([draft.id for draft in drafts]),))}
    keys: dict[str, list[str]] = {}
    for draft in drafts:
        if draft.spec.key is not None:
            keys.setdefault(draft.tenant, []).append(draft.spec.key)
    taken_keys = {
        (tenant, row[0])
        for tenant, wanted in keys.items()
        for row in await tx.all("taken_keys", (tenant, tx.array(wanted)))
    }
    answers: list[Refused | None] = []
    for draft in drafts:
        name = (draft.tenant, draft.spec.key)
        if draft.spec.key is not None and name in taken_keys:
            answers.append(Refusal.KEY_TAKEN)
        elif draft.id in taken_ids:
            answers.append(Refusal.ID_TAKEN)
        else:
            answers.append(None)
            taken_ids.add(draft.id)
            if draft.spec.key is not None:
                taken_keys.add((draft.tenant, draft.spec.key))
    return answers


async def _new_job(tx: Tx, draft: JobDraft) -> Job:
    since = first_since(draft.spec, tx.now_at)
    return Job(
        id=draft.id,
        tenant=draft.tenant,
        spec=draft.spec,
        version_from=tx.now_at,
        state=JobState.PAUSED if draft.paused else JobState.ACTIVE,
        note=draft.note,
        paused_until=draft.paused_until,
        since=since,
        until=last_time(draft.spec, draft.spec.rule, since, used=0, paused=draft.paused),
        created_at=tx.now_at,
        updated_at=tx.now_at,
    )


async def _job_row(tx: Tx, settings: Settings, enrolment: Enrolment, job: Job) -> tuple[Any, ...]:
    lane = await lane_for(tx, job.spec, job.tenant, enrolment.pools)
    clock_id = enrol(enrolment, job, lane)
    attend = attend_at(job, settings.keep_us)
    values = job_values(job, clock_id=clock_id, attend_at=attend, lane=lane)
    return tuple(values.values())


async def _free_instant(tx: Tx, record: JobRecord, followers: Sequence[int]) -> int:
    """A nominal time that no schedule has, and no run of this job or of those that are to follow it."""
    rule = decode_spec(record.spec).rule
    at = tx.now_at
    while (
        at % SECOND_US == 0
        or (rule is not None and rule.newest_in(at - 1, at) is not None)
        or at == record.once_at
        or await tx.one("run_exists", {"job_id": record.id, "scheduled_at": at})
        or await any_run_at(tx, followers, at)
    ):
        at += 1
    return at
