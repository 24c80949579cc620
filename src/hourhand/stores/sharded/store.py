"""Several databases as one store: verbs about one job go to its shard, lists ask all and are merged.

A shard that does not answer takes only its own jobs with it: lists name it as missing, batches answer for each
item. What every verb means is `ports.store`'s; how pages become one is `merging`'s; where a job goes is
`core.buckets`'.
"""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from itertools import count
from typing import TypeVar

import msgspec

from hourhand.core.audit import ClockFacts
from hourhand.core.backfill import Backfill, BackfillAction
from hourhand.core.bucket import Limit
from hourhand.core.buckets import (
    BUCKETS,
    BucketMap,
    bucket_of,
    key_placement,
    placement,
    placement_fault,
    split_graph_fault,
)
from hourhand.core.dag import GraphJob, parents_of
from hourhand.core.identity import RunKey, shard_of
from hourhand.core.log import LogChunk, LogPlace
from hourhand.core.model import Job, JobSpec, Version
from hourhand.core.plan import MissedTimes
from hourhand.core.quota import QuotaOverride, Room
from hourhand.core.run import AttemptFacts, ProgressNote, RunView, Settlement
from hourhand.core.skipping import Skip
from hourhand.core.why import RunFacts
from hourhand.errors import CannotStart, Invalid, Unavailable
from hourhand.ports import store as port
from hourhand.ports.acting import acting_for, actor
from hourhand.ports.audit import Asked, AuditedRuns, AuditPage, AuditQuery
from hourhand.ports.backfills import BackfillPage, BackfillQuery, DecideBackfill
from hourhand.ports.limits import Portion
from hourhand.ports.quotas import TenantPage, TenantStanding
from hourhand.ports.reading import (
    DeadGroup,
    DeadPage,
    DeadQuery,
    JobCount,
    JobLook,
    JobMarks,
    JobPage,
    JobQuery,
    RunGlance,
    RunPage,
    RunQuery,
    WantRuns,
)
from hourhand.stores.sharded.answers import AnswerVerbs
from hourhand.stores.sharded.asking import Shards, answers_of, by_shard, named, some_answers_of
from hourhand.stores.sharded.deeds import ShardedDeeds
from hourhand.stores.sharded.merging import (
    letter_key,
    merge_groups,
    merge_ordered,
    merge_runs,
    merge_standings,
    merge_tenants,
    read_places,
    write_places,
)
from hourhand.stores.sharded.operations import ShardedOperations
from hourhand.stores.sharded.per_shard import PerShardVerbs
from hourhand.stores.sharded.tokens import ShardedTokens
from hourhand.stores.sharded.webhooks import ShardedWebhooks

T = TypeVar("T")

_GROUPS = 1_000  # groups asked of each shard, so that what is large only in sum is seen
_STRIDE = 389  # shares no factor with the number of buckets, so that strides meet every one


class ShardedStore(
    AnswerVerbs, ShardedOperations, ShardedTokens, ShardedWebhooks, ShardedDeeds, PerShardVerbs
):
    """The store of an API instance over all shards; in the order of their indexes."""

    def __init__(self, shards: Sequence[port.Store], buckets: BucketMap) -> None:
        if len(shards) != buckets.count:
            raise CannotStart(f"the map of buckets names {buckets.count} shards, but {len(shards)} are given")
        self._shards = Shards(shards)
        self._buckets = buckets
        self._strides = count()

    @property
    def silent(self) -> tuple[int, ...]:
        """The shards that did not answer when they were last asked."""
        return tuple(sorted(self._shards.silent))

    # --- itself
    async def now(self) -> int:
        for index in range(len(self._shards) - 1):
            try:
                return await self._shards.ask(index, lambda shard: shard.now())
            except Unavailable:
                continue
        return await self._shards.ask(len(self._shards) - 1, lambda shard: shard.now())

    def subscribe(self, wake: Callable[[port.Hint], None]) -> None:
        for shard in self._shards:
            shard.subscribe(wake)

    async def close(self) -> None:
        answers = await asyncio.gather(*(shard.close() for shard in self._shards), return_exceptions=True)
        for answer in answers:
            if isinstance(answer, BaseException):
                raise answer

    async def ping(self) -> None:
        await self._shards.ask_all(lambda shard: shard.ping())

    async def backlog(self, tenant: str | None = None) -> port.Backlog:
        found = list((await self._shards.ask_all(lambda shard: shard.backlog(tenant))).values())
        dues = [one.oldest_due_at for one in found if one.oldest_due_at is not None]
        return port.Backlog(
            jobs=sum(one.jobs for one in found),
            planned=sum(one.planned for one in found),
            running=sum(one.running for one in found),
            blocked=sum(one.blocked for one in found),
            dead=sum(one.dead for one in found),
            waiting=sum(one.waiting for one in found),
            oldest_due_at=min(dues, default=None),
            complete=all(one.complete for one in found),
        )

    async def nodes(self) -> list[port.NodeInfo]:
        found = await self._shards.ask_all(lambda shard: shard.nodes())
        return list({node.id: node for nodes in found.values() for node in nodes}.values())

    async def segments(self) -> list[port.SegmentInfo]:
        found = await self._shards.ask_all(lambda shard: shard.segments())
        return [
            msgspec.structs.replace(one, shard=shard)
            for shard, segments in sorted(found.items())
            for one in segments
        ]

    # --- jobs
    def place(self, tenant: str, spec: JobSpec) -> int:
        fault = placement_fault(spec)
        if fault is not None:
            raise Invalid(f"{fault.pointer}: expected {fault.expected}", [fault])
        text = placement(tenant, spec)
        home = None if text is None else self._buckets.shard_of(bucket_of(text))
        parents = {shard_of(parent) for parent in parents_of(spec.timing)}
        if parents - {home}:
            return self._beside(parents, home)
        return self._any_shard() if home is None else home

    async def create_jobs(self, drafts: Sequence[port.JobDraft]) -> list[Job | port.Refused]:
        for draft in drafts:
            self._check_place(draft.tenant, draft.id, draft.spec)
        parts = by_shard(drafts, lambda draft: draft.id)

        async def create(index: int, part: Sequence[port.JobDraft]) -> list[Job | port.Refused]:
            try:
                return await self._shards.ask(index, lambda shard: shard.create_jobs(part))
            except Unavailable:
                return [port.Refusal.UNAVAILABLE] * len(part)

        done = await answers_of({index: create(index, part) for index, part in parts.items()})
        answers = {index: iter(part) for index, part in done.items()}
        return [next(answers[shard_of(draft.id)]) for draft in drafts]

    async def change_job(
        self, tenant: str, job_id: int, decide: port.Decide, *, roots_too: bool = False
    ) -> port.Changed | None:
        def decide_in_place(job: Job, now_at: int) -> port.JobEdit:
            edit = decide(job, now_at)
            self._check_place(tenant, job_id, edit.spec)
            return edit

        return await self._shards.ask_home(
            job_id, lambda shard: shard.change_job(tenant, job_id, decide_in_place, roots_too=roots_too)
        )

    async def delete_job(
        self, tenant: str, job_id: int, cancel_running: bool, *, version: int | None = None
    ) -> port.Changed | None:
        return await self._shards.ask_home(
            job_id, lambda shard: shard.delete_job(tenant, job_id, cancel_running, version=version)
        )

    async def get_job(self, tenant: str, job_id: int) -> Job | None:
        return await self._shards.ask_home(job_id, lambda shard: shard.get_job(tenant, job_id))

    async def find_jobs(self, tenant: str, text: str, limit: int) -> list[Job]:
        home = self._buckets.shard_of(bucket_of(key_placement(tenant, text)))
        found = await self._shards.ask(home, lambda shard: shard.find_jobs(tenant, text, limit))
        if limit == 0 or (found and found[0].spec.key == text):
            return found
        others = [index for index in range(len(self._shards)) if index != home]
        answers = await answers_of(
            {
                index: self._shards.ask(index, lambda shard: shard.find_jobs(tenant, text, limit))
                for index in others
            }
        )
        found += [job for jobs in answers.values() for job in jobs]
        if len(found) < 2 and len(answers) < len(others):
            raise Unavailable(
                f"whether one job alone is named {text[:200]!r} cannot be said while "
                f"{named(set(others) - set(answers))} cannot be reached; use an id or a key"
            )
        return sorted(found, key=lambda job: job.id, reverse=True)[:limit]

    async def list_jobs(self, tenant: str, query: JobQuery) -> JobPage:
        found = await self._shards.ask_all(lambda shard: shard.list_jobs(tenant, query))
        pages = [(page.jobs, page.next_before_id) for page in found.values()]
        jobs, onward = merge_ordered(pages, lambda job: job.id, query.limit)
        return JobPage(jobs=jobs, next_before_id=onward, missing=self._shards.missing(found))

    async def count_jobs(self, tenant: str, query: JobQuery) -> JobCount:
        found = await self._shards.ask_all(lambda shard: shard.count_jobs(tenant, query))
        return JobCount(
            count=sum(one.count for one in found.values()),
            or_more=any(one.or_more for one in found.values()) or bool(self._shards.missing(found)),
        )

    async def versions(self, tenant: str, job_id: int) -> list[Version]:
        return await self._shards.ask_home(job_id, lambda shard: shard.versions(tenant, job_id)) or []

    async def missed(self, tenant: str, job_id: int) -> list[MissedTimes]:
        return await self._shards.ask_home(job_id, lambda shard: shard.missed(tenant, job_id)) or []

    # --- runs
    async def add_run(
        self,
        tenant: str,
        job_id: int,
        request_key: str | None,
        *,
        downstream: bool = False,
        version: int | None = None,
    ) -> RunKey | None:
        return await self._shards.ask_home(
            job_id,
            lambda shard: shard.add_run(tenant, job_id, request_key, downstream=downstream, version=version),
        )

    async def cancel_run(self, tenant: str, key: RunKey) -> RunView | None:
        return await self._shards.ask_home(key.job_id, lambda shard: shard.cancel_run(tenant, key))

    async def job_runs(
        self, tenant: str, job_id: int, nominals: Sequence[int], before_at: int | None, limit: int
    ) -> list[RunView]:
        runs = await self._shards.ask_home(
            job_id, lambda shard: shard.job_runs(tenant, job_id, nominals, before_at, limit)
        )
        return runs or []

    async def look_at_job(self, tenant: str, job_id: int, want: WantRuns) -> JobLook | None:
        return await self._shards.ask_home(job_id, lambda shard: shard.look_at_job(tenant, job_id, want))

    async def get_run(self, tenant: str, key: RunKey) -> RunView | None:
        return await self._shards.ask_home(key.job_id, lambda shard: shard.get_run(tenant, key))

    async def run_facts(self, tenant: str, key: RunKey) -> RunFacts | None:
        return await self._shards.ask_home(key.job_id, lambda shard: shard.run_facts(tenant, key))

    async def list_runs(self, tenant: str, query: RunQuery) -> RunPage:
        if query.job_id is not None:
            page = await self._shards.ask_home(query.job_id, lambda shard: shard.list_runs(tenant, query))
            return page or RunPage(runs=(), next_before=None)
        places = read_places(query.before, len(self._shards))

        async def read(index: int) -> RunPage:
            part = msgspec.structs.replace(query, before=places[index])
            return await self._shards.ask(index, lambda shard: shard.list_runs(tenant, part))

        pages = await some_answers_of({index: read(index) for index in places})
        runs, onward = merge_runs(pages, places, query.limit)
        has_pages = all(page.places or not page.runs for page in pages.values())
        goes_on = has_pages and any(index in pages for index in onward)  # else only the silent have more
        return RunPage(
            runs=tuple(runs),
            next_before=write_places(onward, len(self._shards)) if goes_on else None,
            missing=tuple(index for index in places if index not in pages),
        )

    async def job_marks(self, tenant: str, job_ids: Sequence[int], limit: int) -> list[JobMarks]:
        """A shard that does not answer leaves its jobs out."""
        parts = by_shard(job_ids, lambda job_id: job_id)

        async def read(index: int) -> list[JobMarks]:
            return await self._shards.ask(index, lambda shard: shard.job_marks(tenant, parts[index], limit))

        found = await answers_of({index: read(index) for index in parts if index < len(self._shards)})
        by_job = {one.job_id: one for part in found.values() for one in part}
        return [by_job[job_id] for job_id in job_ids if job_id in by_job]

    async def settle(self, worker: str, settlements: Sequence[Settlement]) -> list[Settlement]:
        """Of one run as a rule, whose report came to the API; each shard commits its own."""
        return await self._shards.each_refusal(settlements, lambda part, shard: shard.settle(worker, part))

    # --- reports
    async def report_key(self, job_id: int) -> bytes | None:
        return await self._shards.ask_home(job_id, lambda shard: shard.report_key(job_id))

    async def find_attempt(self, key: RunKey, attempt: int) -> AttemptFacts:
        found = await self._shards.ask_home(key.job_id, lambda shard: shard.find_attempt(key, attempt))
        return found or AttemptFacts(now_at=0)

    async def note_progress(self, notes: Sequence[ProgressNote]) -> list[ProgressNote]:
        return await self._shards.each_refusal(notes, lambda part, shard: shard.note_progress(part))

    # --- logs
    async def read_log(
        self, key: RunKey, after: LogPlace, last_attempt: int | None, limit: int
    ) -> list[LogChunk]:
        found = await self._shards.ask_home(
            key.job_id, lambda shard: shard.read_log(key, after, last_attempt, limit)
        )
        return found or []

    async def graph(self, tenant: str, job_id: int) -> list[GraphJob]:
        return await self._shards.ask_home(job_id, lambda shard: shard.graph(tenant, job_id)) or []

    # --- reruns
    async def rerun(self, tenant: str, key: RunKey, request_key: str | None) -> RunKey | None:
        return await self._shards.ask_home(key.job_id, lambda shard: shard.rerun(tenant, key, request_key))

    # --- backfills: one's id is made for its job's shard
    async def add_backfill(self, tenant: str, job_id: int, decide: DecideBackfill) -> Backfill | None:
        return await self._shards.ask_home(job_id, lambda shard: shard.add_backfill(tenant, job_id, decide))

    async def get_backfill(self, tenant: str, backfill_id: int) -> Backfill | None:
        return await self._shards.ask_home(backfill_id, lambda shard: shard.get_backfill(tenant, backfill_id))

    async def list_backfills(self, tenant: str, query: BackfillQuery) -> BackfillPage:
        if query.job_id is not None:
            page = await self._shards.ask_home(
                query.job_id, lambda shard: shard.list_backfills(tenant, query)
            )
            return page or BackfillPage(backfills=(), next_before_id=None)
        found = await self._shards.ask_all(lambda shard: shard.list_backfills(tenant, query))
        pages = [(page.backfills, page.next_before_id) for page in found.values()]
        backfills, onward = merge_ordered(pages, lambda backfill: backfill.id, query.limit)
        return BackfillPage(backfills=backfills, next_before_id=onward, missing=self._shards.missing(found))

    async def change_backfill(self, tenant: str, backfill_id: int, action: BackfillAction) -> Backfill | None:
        return await self._shards.ask_home(
            backfill_id, lambda shard: shard.change_backfill(tenant, backfill_id, action)
        )

    # --- skipped times
    async def skip_time(
        self, tenant: str, job_id: int, at: int | None, note: str | None, *, version: int | None = None
    ) -> Skip | None:
        return await self._shards.ask_home(
            job_id, lambda shard: shard.skip_time(tenant, job_id, at, note, version=version)
        )

    async def unskip_time(
        self, tenant: str, job_id: int, at: int | None, *, version: int | None = None
    ) -> Skip | None:
        return await self._shards.ask_home(
            job_id, lambda shard: shard.unskip_time(tenant, job_id, at, version=version)
        )

    async def skips(self, tenant: str, job_id: int) -> list[Skip]:
        return await self._shards.ask_home(job_id, lambda shard: shard.skips(tenant, job_id)) or []

    # --- graphs at a glance
    async def peek_jobs(self, tenant: str, ids: Sequence[int]) -> list[GraphJob]:
        found = await self._shards.each_id(ids, lambda part, shard: shard.peek_jobs(tenant, part))
        by_id = {job.id: job for job in found}
        return [by_id[one] for one in ids if one in by_id]

    async def glance(self, tenant: str, ids: Sequence[int], at: int | None) -> list[RunGlance]:
        return await self._shards.each_id(ids, lambda part, shard: shard.glance(tenant, part, at))

    # --- audits: one shard after another
    async def audited_jobs(self, query: AuditQuery) -> AuditPage:
        if query.job_id is not None:
            page = await self._shards.ask_home(query.job_id, lambda shard: shard.audited_jobs(query))
            return page or AuditPage(jobs=(), next_after=None)
        index, *inner = query.after or (0,)
        if not 0 <= index < len(self._shards):
            raise Invalid("cursor: expected the next_cursor of this audit")
        part = msgspec.structs.replace(query, after=tuple(inner) or None)
        following = (index + 1,) if index + 1 < len(self._shards) else None
        try:
            page = await self._shards.ask(index, lambda shard: shard.audited_jobs(part))
        except Unavailable:
            return AuditPage(jobs=(), next_after=following, missing=(index,))
        onward = following if page.next_after is None else (index, *page.next_after)
        return msgspec.structs.replace(page, next_after=onward)

    async def audited_runs(self, asked: Sequence[Asked], from_at: int, to_at: int) -> AuditedRuns:
        found = AuditedRuns(plain=[], runs={})
        for index, part in by_shard(asked, lambda one: one.job_id).items():
            theirs = await self._shards.ask(index, partial(_audited_runs, part, from_at, to_at))
            found.plain.extend(theirs.plain)
            found.runs.update(theirs.runs)
        return found

    async def audited_clocks(
        self, asked: Sequence[tuple[int, str]], from_at: int, to_at: int
    ) -> dict[tuple[int, str], ClockFacts]:
        found: dict[tuple[int, str], ClockFacts] = {}
        for index, part in by_shard(asked, lambda one: one[0]).items():
            found |= await self._shards.ask(index, partial(_audited_clocks, part, from_at, to_at))
        return found

    # --- dead letters
    async def dead_letters(self, tenant: str, query: DeadQuery) -> DeadPage:
        if query.job_id is not None:
            page = await self._shards.ask_home(query.job_id, lambda shard: shard.dead_letters(tenant, query))
            return page or DeadPage(letters=(), next_before=None)
        found = await self._shards.ask_all(lambda shard: shard.dead_letters(tenant, query))
        pages = [(page.letters, page.next_before) for page in found.values()]
        letters, onward = merge_ordered(pages, letter_key, query.limit)
        return DeadPage(letters=letters, next_before=onward, missing=self._shards.missing(found))

    async def dead_groups(self, tenant: str, by: str, limit: int) -> list[DeadGroup]:
        size = max(limit, _GROUPS)
        found = await self._shards.ask_all(lambda shard: shard.dead_groups(tenant, by, size))
        missing = self._shards.missing(found)
        if missing:  # a count that leaves some out would be taken for all there are
            raise Unavailable(f"dead letters cannot be counted while {named(missing)} cannot be reached")
        return merge_groups((group for groups in found.values() for group in groups), by, limit)

    async def requeue(self, tenant: str, keys: Sequence[RunKey], *, downstream: bool = False) -> list[RunKey]:
        return await self._shards.each_key(
            keys, lambda shard, part: shard.requeue(tenant, part, downstream=downstream)
        )

    async def discard(self, tenant: str, keys: Sequence[RunKey]) -> list[RunKey]:
        return await self._shards.each_key(keys, lambda shard, part: shard.discard(tenant, part))

    # --- quotas
    async def standing(self, tenant: str) -> TenantStanding:
        found = await self._shards.ask_all(lambda shard: shard.standing(tenant))
        missing = self._shards.missing(found)
        if missing:  # a count that leaves some out would be taken for all there is
            raise Unavailable(f"what a tenant has cannot be counted while {named(missing)} cannot be reached")
        return merge_standings(list(found.values()))

    async def room(self, tenant: str, shard: int) -> Room:
        return await self._shards.ask(shard, lambda one: one.room(tenant, shard))

    async def tenants(self, after: str, limit: int) -> TenantPage:
        found = await self._shards.ask_all(lambda shard: shard.tenants(after, limit))
        merged = merge_tenants(list(found.values()), limit)
        return msgspec.structs.replace(merged, missing=self._shards.missing(found))

    async def set_quota(self, tenant: str, override: QuotaOverride) -> TenantStanding:
        for index in range(len(self._shards)):  # repeated as a whole when one of them is away
            with acting_for(None if index else actor()):  # the first keeps who asked
                await self._shards.ask(index, lambda shard: shard.set_quota(tenant, override))
        return await self.standing(tenant)

    async def history_kept_us(self, tenant: str) -> int:
        found = await self._shards.ask_all(lambda shard: shard.history_kept_us(tenant))
        return min(found.values())  # the same everywhere, but while it is being set

    async def take_tokens(self, key: str, limit: Limit, least: int, most: int) -> Portion:
        home = self._buckets.shard_of(bucket_of(key))
        return await self._shards.ask(home, lambda shard: shard.take_tokens(key, limit, least, most))

    # --- placing
    def _any_shard(self) -> int:
        """Where a job goes that may be anywhere: in turn, by the buckets that a shard has, past the silent."""
        shard = 0
        for _ in range(BUCKETS):
            shard = self._buckets.shard_of(next(self._strides) * _STRIDE % BUCKETS)
            if shard not in self._shards.silent:
                break
        return shard

    def _beside(self, parents: set[int], home: int | None) -> int:
        """The one shard where a job can follow its parents."""
        if len(parents) > 1 or home is not None:
            raise Invalid("the jobs of a graph must lie in one database", [split_graph_fault()])
        return next(iter(parents))

    def _check_place(self, tenant: str, job_id: int, spec: JobSpec) -> None:
        """A key is one job's only because all that could have it are on one shard: nothing may break that."""
        if spec.key is None:
            if shard_of(job_id) >= len(self._shards):
                raise ValueError(f"a job id of shard {shard_of(job_id)}, but there are {len(self._shards)}")
        elif self._buckets.shard_of(bucket_of(key_placement(tenant, spec.key))) != shard_of(job_id):
            raise Invalid(f"the key {spec.key!r} belongs to another shard than the job")


async def _audited_runs(part: Sequence[Asked], from_at: int, to_at: int, shard: port.Store) -> AuditedRuns:
    return await shard.audited_runs(part, from_at, to_at)


async def _audited_clocks(
    part: Sequence[tuple[int, str]], from_at: int, to_at: int, shard: port.Store
) -> dict[tuple[int, str], ClockFacts]:
    return await shard.audited_clocks(part, from_at, to_at)
