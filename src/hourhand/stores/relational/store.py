"""The port's verbs over an engine: each is one operation, in one transaction.

Claim, plan and finish are hot and each store's own; everything else is the same on every SQL store.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext

from hourhand.core.audit import ClockFacts
from hourhand.core.backfill import Backfill, BackfillAction
from hourhand.core.dag import GraphJob
from hourhand.core.identity import RunKey
from hourhand.core.log import LogChunk, LogPlace
from hourhand.core.model import Job, JobSpec, Version
from hourhand.core.plan import MissedTimes
from hourhand.core.run import AttemptFacts, ProgressNote, RunView
from hourhand.core.serving import Serves
from hourhand.core.skipping import Skip
from hourhand.core.why import RunFacts
from hourhand.ports import store as port
from hourhand.ports.answers import harmless
from hourhand.ports.audit import Asked, AuditedRuns, AuditPage, AuditQuery
from hourhand.ports.backfills import BackfillPage, BackfillQuery, DecideBackfill, Feeding
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
from hourhand.stores.relational import (
    audits,
    backfills,
    clocks,
    descents,
    edges,
    edits,
    facts,
    glances,
    jobs,
    letters,
    logs,
    marks,
    nodes,
    quotas,
    reading,
    repair,
    reports,
    shortening,
    sizes,
    skips,
    upcoming,
    waits,
)
from hourhand.stores.relational.answer_verbs import AnswerVerbs
from hourhand.stores.relational.deeds import DeedReading
from hourhand.stores.relational.membership import Settings
from hourhand.stores.relational.operations import KeepsOperations
from hourhand.stores.relational.quotas import KeepsQuotas
from hourhand.stores.relational.tokens import RelationalTokens
from hourhand.stores.relational.tx import Engine as Engine
from hourhand.stores.relational.tx import Tx
from hourhand.stores.relational.webhooks import WebhookStore


class Hints:
    """Passes on what commits are about to whoever waits for it."""

    def __init__(self) -> None:
        self.wakes: list[Callable[[port.Hint], None]] = []

    def publish(self, hints: Iterable[str]) -> None:
        """Tell everybody who subscribed."""
        for hint in sorted(hints):
            for wake in self.wakes:
                wake(port.Hint(hint))


class RelationalStore(AnswerVerbs, KeepsOperations, KeepsQuotas, RelationalTokens, WebhookStore, DeedReading):
    """Every verb that is not hot; see `ports.store` for the contract of each."""

    _engine: Engine

    def __init__(self, engine: Engine, settings: Settings, hints: Hints, finished: reading.Finished) -> None:
        self._engine = engine
        self._settings = settings
        self._hints = hints
        self._finished = finished
        self._report_key: bytes | None = None  # each store's own to find
        self._progress_after = reports.START  # how far old progress was looked through

    # --- itself
    def subscribe(self, wake: Callable[[port.Hint], None]) -> None:
        self._hints.wakes.append(wake)

    async def close(self) -> None:
        await self._engine.close()

    async def ping(self) -> None:
        await self._engine.write(_nothing)

    async def backlog(self, tenant: str | None = None) -> port.Backlog:
        if tenant is not None:
            return await self._engine.read(lambda tx: sizes.backlog_of(tx, tenant))
        return await self._engine.read(sizes.backlog)

    # --- jobs
    def place(self, tenant: str, spec: JobSpec) -> int | None:
        return None

    async def create_jobs(self, drafts: Sequence[port.JobDraft]) -> list[Job | port.Refused]:
        with harmless():  # under a promise each is noted under its place, where a repeat finds it
            return await self._engine.write(lambda tx: jobs.create_jobs(tx, self._settings, drafts))

    async def change_job(
        self, tenant: str, job_id: int, decide: port.Decide, *, roots_too: bool = False
    ) -> port.Changed | None:
        change = edits.change_roots if roots_too else edits.change_job
        return await self._engine.write(
            lambda tx: change(tx, self._settings, tenant, job_id, decide),
        )

    async def delete_job(
        self, tenant: str, job_id: int, cancel_running: bool, *, version: int | None = None
    ) -> port.Changed | None:
        return await self._engine.write(
            lambda tx: edits.delete_job(tx, self._settings, tenant, job_id, cancel_running, version),
        )

    async def get_job(self, tenant: str, job_id: int) -> Job | None:
        return await self._engine.read(lambda tx: reading.get_job(tx, tenant, job_id))

    async def find_jobs(self, tenant: str, text: str, limit: int) -> list[Job]:
        return await self._engine.read(lambda tx: reading.find_jobs(tx, tenant, text, limit))

    async def list_jobs(self, tenant: str, query: JobQuery) -> JobPage:
        return await self._engine.read(lambda tx: reading.list_jobs(tx, tenant, query))

    async def count_jobs(self, tenant: str, query: JobQuery) -> JobCount:
        return await self._engine.read(lambda tx: reading.count_jobs(tx, tenant, query))

    async def versions(self, tenant: str, job_id: int) -> list[Version]:
        return await self._engine.read(lambda tx: reading.versions(tx, tenant, job_id))

    async def missed(self, tenant: str, job_id: int) -> list[MissedTimes]:
        segments = self._settings.segments
        return await self._engine.read(lambda tx: reading.missed(tx, segments, tenant, job_id))

    async def tend_jobs(self, limit: int) -> int | None:
        ids, next_at = await self._engine.read(lambda tx: edits.jobs_to_tend(tx, limit))
        for job_id in ids:
            await self._engine.write(lambda tx, job_id=job_id: edits.tend_job(tx, self._settings, job_id))  # type: ignore[misc]
        if ids:
            _, next_at = await self._engine.read(lambda tx: edits.jobs_to_tend(tx, 1))
        return next_at

    # --- planning
    async def due_clocks(self, segments: Sequence[int], before_at: int, limit: int) -> list[port.Clock]:
        return await self._engine.read(lambda tx: clocks.due_clocks(tx, segments, before_at, limit))

    async def next_clock_at(self, segments: Sequence[int]) -> int | None:
        return await self._engine.read(lambda tx: clocks.next_clock_at(tx, segments))

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
        with harmless() if request_key is not None else nullcontext():  # a repeat finds its run
            return await self._engine.write(
                lambda tx: jobs.add_run(tx, self._settings, tenant, job_id, request_key, downstream, version)
            )

    async def read_jobs(self, ids: Sequence[int]) -> list[Job]:
        return await self._engine.read(lambda tx: upcoming.read_jobs(tx, ids))

    async def held_runs(self, node_id: int) -> list[port.HeldRun]:
        return await self._engine.write(lambda tx: nodes.held_runs(tx, "held_by", node_id))

    async def cancel_asked(self, node_id: int) -> list[port.HeldRun]:
        return await self._engine.read(lambda tx: nodes.held_runs(tx, "cancel_of", node_id))

    async def cancel_run(self, tenant: str, key: RunKey) -> RunView | None:
        return await self._engine.write(lambda tx: letters.cancel_run(tx, tenant, key))

    # --- reports
    async def report_key(self, job_id: int) -> bytes | None:
        return self._report_key

    async def find_attempt(self, key: RunKey, attempt: int) -> AttemptFacts:
        return await self._engine.read(lambda tx: reports.find_attempt(tx, key, attempt))

    async def note_progress(self, notes: Sequence[ProgressNote]) -> list[ProgressNote]:
        return await self._engine.write(lambda tx: reports.note_progress(tx, notes))

    # --- reruns
    async def rerun(self, tenant: str, key: RunKey, request_key: str | None) -> RunKey | None:
        with harmless() if request_key is not None else nullcontext():  # a repeat finds its run
            return await self._engine.write(
                lambda tx: letters.rerun(tx, self._settings, tenant, key, request_key)
            )

    # --- backfills
    async def add_backfill(self, tenant: str, job_id: int, decide: DecideBackfill) -> Backfill | None:
        return await self._engine.write(lambda tx: backfills.add_backfill(tx, tenant, job_id, decide))

    async def get_backfill(self, tenant: str, backfill_id: int) -> Backfill | None:
        return await self._engine.read(lambda tx: backfills.get_backfill(tx, tenant, backfill_id))

    async def list_backfills(self, tenant: str, query: BackfillQuery) -> BackfillPage:
        return await self._engine.read(lambda tx: backfills.list_backfills(tx, tenant, query))

    async def change_backfill(self, tenant: str, backfill_id: int, action: BackfillAction) -> Backfill | None:
        return await self._engine.write(
            lambda tx: backfills.change_backfill(tx, tenant, backfill_id, action),
        )

    async def unfinished_backfills(self, after_id: int, limit: int) -> list[int]:
        return await self._engine.read(lambda tx: backfills.unfinished_backfills(tx, after_id, limit))

    async def feed_backfill(self, backfill_id: int) -> Feeding | None:
        return await self._engine.write(
            lambda tx: backfills.feed_backfill(tx, self._settings, backfill_id),
        )

    # --- skipped times
    async def skip_time(
        self, tenant: str, job_id: int, at: int | None, note: str | None, *, version: int | None = None
    ) -> Skip | None:
        return await self._engine.write(
            lambda tx: skips.skip_time(tx, self._settings, tenant, job_id, at, note, version),
        )

    async def unskip_time(
        self, tenant: str, job_id: int, at: int | None, *, version: int | None = None
    ) -> Skip | None:
        return await self._engine.write(
            lambda tx: skips.unskip_time(tx, self._settings, tenant, job_id, at, version),
        )

    async def skips(self, tenant: str, job_id: int) -> list[Skip]:
        return await self._engine.read(lambda tx: skips.skips(tx, tenant, job_id))

    async def end_skips(self, limit: int) -> int:
        return await self._engine.write(lambda tx: skips.end_skips(tx, limit))

    # --- repair
    async def stray_runs(self, slack_us: int, limit: int) -> list[port.StrayRun]:
        return await self._engine.write(lambda tx: repair.stray_runs(tx, slack_us, limit))

    async def judge_late(self, cursors: dict[int, port.Cursor], limit: int) -> port.LatePage:
        return await self._engine.write(lambda tx: repair.judge_late(tx, cursors, limit))

    async def hand_on_slots(self, limit: int) -> int:
        return await self._engine.write(lambda tx: repair.hand_on_slots(tx, limit))

    async def descend(self, limit: int) -> int:
        return await self._engine.write(lambda tx: descents.descend(tx, limit))

    async def judge_waits(self, limit: int) -> int:
        return await self._engine.write(lambda tx: waits.judge_waits(tx, limit))

    async def purge(self, history_before_at: int, dead_before_at: int, limit: int) -> bool:
        more = await self._engine.write(lambda tx: repair.purge(tx, history_before_at, dead_before_at, limit))
        after = self._progress_after
        self._progress_after, full = await self._engine.write(
            lambda tx: reports.drop_progress(tx, after, limit)
        )
        more |= await self._engine.write(lambda tx: quotas.rate_jobs(tx, limit))
        more |= await self._engine.write(lambda tx: shortening.shorten(tx, limit))
        return more or full

    async def tidy(self) -> None:
        """Nothing to do, unless a store says otherwise."""

    # --- nodes
    async def renew_node(self, node_id: int, kind: str, name: str, lease_us: int) -> None:
        await self._engine.write(lambda tx: nodes.renew_node(tx, node_id, kind, name, lease_us))

    async def end_node(self, node_id: int) -> None:
        await self._engine.write(lambda tx: nodes.end_node(tx, node_id))

    async def hold_segments(self, node_id: int, kind: str, name: str, lease_us: int) -> Mapping[int, int]:
        segments = self._settings.segments
        return await self._engine.write(
            lambda tx: nodes.hold_segments(tx, segments, node_id, kind, name, lease_us)
        )

    async def hold_allotted(
        self, node_id: int, kind: str, name: str, lease_us: int, allotted: Mapping[int, int]
    ) -> Mapping[int, int]:
        return await self._engine.write(
            lambda tx: nodes.hold_allotted(tx, node_id, kind, name, lease_us, allotted)
        )

    async def tell_served(self, node_id: int, serves: Serves) -> None:
        await self._engine.write(lambda tx: nodes.tell_served(tx, node_id, serves))

    async def nodes(self) -> list[port.NodeInfo]:
        return await self._engine.read(nodes.nodes)

    async def segments(self) -> list[port.SegmentInfo]:
        return await self._engine.read(nodes.segments)

    # --- reading
    async def job_runs(
        self, tenant: str, job_id: int, nominals: Sequence[int], before_at: int | None, limit: int
    ) -> list[RunView]:
        return await self._engine.read(
            lambda tx: reading.job_runs(tx, tenant, job_id, nominals, before_at, limit),
        )

    async def look_at_job(self, tenant: str, job_id: int, want: WantRuns) -> JobLook | None:
        return await self._engine.glance(lambda tx: reading.look_at_job(tx, tenant, job_id, want))

    async def get_run(self, tenant: str, key: RunKey) -> RunView | None:
        return await self._engine.read(lambda tx: reading.get_run(tx, tenant, key))

    async def run_facts(self, tenant: str, key: RunKey) -> RunFacts | None:
        return await self._engine.read(lambda tx: facts.run_facts(tx, self._settings, tenant, key))

    async def list_runs(self, tenant: str, query: RunQuery) -> RunPage:
        return await self._engine.read(lambda tx: reading.list_runs(tx, tenant, query, self._finished))

    async def job_marks(self, tenant: str, job_ids: Sequence[int], limit: int) -> list[JobMarks]:
        return await self._engine.read(lambda tx: marks.job_marks(tx, tenant, job_ids, limit))

    # --- logs
    async def append_log(self, chunks: Sequence[LogChunk]) -> None:
        await self._engine.write(lambda tx: logs.append_log(tx, chunks))

    async def read_log(
        self, key: RunKey, after: LogPlace, last_attempt: int | None, limit: int
    ) -> list[LogChunk]:
        return await self._engine.read(lambda tx: logs.read_log(tx, key, after, last_attempt, limit))

    async def graph(self, tenant: str, job_id: int) -> list[GraphJob]:
        return await self._engine.read(lambda tx: edges.graph(tx, tenant, job_id))

    async def peek_jobs(self, tenant: str, ids: Sequence[int]) -> list[GraphJob]:
        return await self._engine.read(lambda tx: edges.peek_jobs(tx, tenant, ids))

    async def glance(self, tenant: str, ids: Sequence[int], at: int | None) -> list[RunGlance]:
        return await self._engine.read(lambda tx: glances.glance(tx, tenant, ids, at))

    # --- audits
    async def audited_jobs(self, query: AuditQuery) -> AuditPage:
        return await self._engine.read(lambda tx: audits.audited_jobs(tx, query))

    async def audited_runs(self, asked: Sequence[Asked], from_at: int, to_at: int) -> AuditedRuns:
        return await self._engine.read(lambda tx: audits.audited_runs(tx, asked, from_at, to_at))

    async def audited_clocks(
        self, asked: Sequence[tuple[int, str]], from_at: int, to_at: int
    ) -> dict[tuple[int, str], ClockFacts]:
        segments = self._settings.segments
        return await self._engine.read(
            lambda tx: audits.audited_clocks(tx, segments, asked, from_at, to_at),
        )

    # --- dead letters
    async def dead_letters(self, tenant: str, query: DeadQuery) -> DeadPage:
        return await self._engine.read(lambda tx: letters.dead_letters(tx, tenant, query))

    async def dead_groups(self, tenant: str, by: str, limit: int) -> list[DeadGroup]:
        return await self._engine.read(lambda tx: letters.dead_groups(tx, tenant, by, limit))

    async def requeue(self, tenant: str, keys: Sequence[RunKey], *, downstream: bool = False) -> list[RunKey]:
        return await self._engine.write(
            lambda tx: letters.requeue(tx, self._settings, tenant, keys, downstream)
        )

    async def discard(self, tenant: str, keys: Sequence[RunKey]) -> list[RunKey]:
        return await self._engine.write(lambda tx: letters.discard(tx, tenant, keys))


async def _nothing(tx: Tx) -> None:
    """What a ping does."""
