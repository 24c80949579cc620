"""The store: the only truth about jobs and runs.

Contract, the same on every backend and held by `tests/contract`:

* **Atomicity.** A verb is atomic within one clock (plan, join, leave) or one job's runs (transitions,
  slots). Verbs that take many items apply each whole or not at all; an answer means it is durable.
* **Identity.** (job, scheduled_at) exists at most once over planned, running, blocked, dead and final
  history. Planning what is already there changes nothing.
* **Fences.** A settlement is applied only while the run is in the slot and under the fence it names;
  otherwise it is refused and nothing changes.
* **Time.** Decisions use the store's own time, `now()`, read inside the transaction.
* **Policy** is never here: where a decision must fall under the store's locks, the store calls a pure
  function of `core` with the facts it read, and applies the answer.
* **Deeds.** A change that somebody asked for leaves who it was beside it, in the same transaction; see `ports.deeds`.
* **Errors.** `errors.Unavailable` and its kin when the backend fails: the verb then happened fully or
  not at all, and every verb may be repeated.
"""

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Protocol

import msgspec

from hourhand.core.dag import GraphJob
from hourhand.core.deeds import Act
from hourhand.core.identity import RunKey
from hourhand.core.lanes import Cursor as Cursor
from hourhand.core.log import LogChunk, LogPlace
from hourhand.core.model import Job, JobSpec, Version
from hourhand.core.plan import ClockPlan, MisfireGroup, MissedTimes
from hourhand.core.quota import OverQuota
from hourhand.core.run import (
    AttemptFacts,
    ClaimedRun,
    ProgressNote,
    RunView,
    Settlement,
)
from hourhand.core.serving import Serves
from hourhand.core.why import RunFacts
from hourhand.ports.answers import AnswerVerbs, Numbered
from hourhand.ports.audit import AuditVerbs
from hourhand.ports.backfills import BackfillVerbs
from hourhand.ports.deeds import DeedVerbs
from hourhand.ports.operations import OperationVerbs
from hourhand.ports.quotas import QuotaVerbs
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
from hourhand.ports.tokens import TokenVerbs
from hourhand.ports.upcoming import UpcomingVerbs
from hourhand.ports.webhooks import WebhookVerbs


class Hint(StrEnum):
    """What a wake-up is about. Hints may be lost; everything also works without them."""

    CLOCKS = "clocks"  # a clock may be due sooner than was known
    RUNS = "runs"  # a run may be claimable sooner than was known
    CANCEL = "cancel"  # a worker may hold a run that somebody cancelled
    JOBS = "jobs"  # a job wants tending sooner than was known
    GRAPHS = "graphs"  # runs ended that others follow; whoever heard it first tells the children
    BACKFILLS = "backfills"  # a backfill was asked for, or goes on
    OPERATIONS = "operations"  # an operation was asked for
    WEBHOOKS = "webhooks"  # something happened that a webhook wants to hear of, or a webhook changed


class JobDraft(msgspec.Struct, frozen=True, kw_only=True):
    """A job to be created."""

    id: int
    tenant: str
    spec: JobSpec
    paused: bool = False
    note: str | None = None
    paused_until: int | None = None
    numbered: Numbered | None = None  # which job of which request, where that may be repeated


class Refusal(StrEnum):
    """Why a draft was not stored."""

    ID_TAKEN = "id_taken"
    KEY_TAKEN = "key_taken"
    UNAVAILABLE = "unavailable"  # the database it belongs to does not answer; others of the batch may stand


class Unfit(msgspec.Struct, frozen=True, kw_only=True):
    """A draft that was not stored because it may not follow whom it is to follow."""

    why: str


Refused = Refusal | Unfit | OverQuota


class JobEdit(msgspec.Struct, frozen=True, kw_only=True):
    """What a job is to become. Whether that moves fire times or lanes, the store sees by comparing."""

    spec: JobSpec
    paused: bool
    note: str | None = None
    paused_until: int | None = None
    act: Act = Act.JOB_UPDATE  # what whoever asks calls it


class Changed(msgspec.Struct, frozen=True, kw_only=True):
    """A change that is durable, and from when it holds."""

    job: Job
    effective_from: int


class Clock(msgspec.Struct, frozen=True, kw_only=True):
    """One rule in one segment, with the time up to which everything is planned."""

    id: int
    rule_key: str
    next_at: int
    segment: int = 0
    misfires: tuple[MisfireGroup, ...] = ()  # how its members miss, where it is behind


class ClaimRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker can take."""

    node_id: int
    pools: tuple[str, ...]
    room: int
    lead_us: int  # below zero: only what is late by so much
    taken_before: int = 0  # keeps the shares of the classes true over many small claims
    cursors: dict[int, Cursor] = {}
    named: tuple[RunKey, ...] = ()  # these runs and no others, at most as many as there is room for


class LeftRun(msgspec.Struct, frozen=True, array_like=True):
    """A run that was named in a claim, waits still, and could not be taken yet."""

    job_id: int
    scheduled_at: int
    due_at: int

    @property
    def key(self) -> RunKey:
        """Its identity."""
        return RunKey(self.job_id, self.scheduled_at)


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker got."""

    runs: list[ClaimedRun]
    now_at: int
    next_at: int | None  # when it pays to ask again without a hint; None when nothing waits
    progressed: bool  # something was taken or decided, so more may follow at once
    cursors: dict[int, Cursor] = {}
    left: tuple[LeftRun, ...] = ()  # of those that were named


class HeldRun(msgspec.Struct, frozen=True, array_like=True):
    """A run in a node's hand according to the store."""

    job_id: int
    slot: int
    scheduled_at: int
    fence: int
    cancel_asked: bool


class StrayRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run whose worker is gone or that is long past its deadline."""

    job_id: int
    slot: int
    scheduled_at: int
    due_at: int
    fence: int
    tries: int
    version: int
    worker: str
    worker_lost: bool
    cancel_asked: bool
    spec: JobSpec | None  # None when the job was deleted
    awaited_since: int | None = None  # when an accepted run's attempt began; None where a worker has it


class LatePage(msgspec.Struct, frozen=True, kw_only=True):
    """What a look at late runs did, and where the lanes with more go on."""

    judged: int
    cursors: dict[int, Cursor] = {}


class LeaseLost(Exception):
    """The node's lease has run out; it must stop its attempts and start again under a new id."""


class NodeInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A process of the cluster."""

    id: int
    kind: str
    name: str
    started_at: int
    lease_until: int
    serves: Serves | None = None  # None where it runs nothing, or has not told


class SegmentInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A part of all clocks, and who plans it. A store of several databases has each once per database."""

    segment: int
    node_id: int | None
    fence: int
    shard: int = 0


class Backlog(msgspec.Struct, frozen=True, kw_only=True):
    """Sizes of the hot tables; counted up to a bound."""

    jobs: int
    planned: int
    running: int
    blocked: int
    dead: int
    oldest_due_at: int | None
    waiting: int = 0  # for their parents
    complete: bool = True  # False: there was too much to look through, and these are at least so many


Decide = Callable[[Job, int], JobEdit]


class Store(
    AnswerVerbs,
    BackfillVerbs,
    AuditVerbs,
    UpcomingVerbs,
    OperationVerbs,
    QuotaVerbs,
    TokenVerbs,
    WebhookVerbs,
    DeedVerbs,
    Protocol,
):
    """Every verb of the only truth; those about backfills, skipped times and reruns are in `ports.backfills`,
    what an audit reads in `ports.audit`, what is offered to workers in `ports.upcoming`, API tokens in
    `ports.tokens`, kept answers in `ports.answers`, webhooks in `ports.webhooks`, who did what in `ports.deeds`."""

    # --- itself
    async def now(self) -> int:
        """The store's time."""
        ...

    def subscribe(self, wake: Callable[[Hint], None]) -> None:
        """Call `wake` on the event loop after commits that others may wait for."""
        ...

    async def close(self) -> None:
        """Finish what is under way and let go."""
        ...

    async def ping(self) -> None:
        """Answer if reading and writing are possible."""
        ...

    async def backlog(self, tenant: str | None = None) -> Backlog:
        """Sizes for metrics; with a tenant, how much of all that is its own."""
        ...

    # --- jobs
    def place(self, tenant: str, spec: JobSpec) -> int | None:
        """The shard to draw a new job's id for; None where there is only one place.

        Invalid for a job that could not be found again by its key. Asks nobody; safe on any thread.
        """
        ...

    async def create_jobs(self, drafts: Sequence[JobDraft]) -> list[Job | Refused]:
        """Store each with its clock joined and its near times planned, or say why not.

        A draft may follow jobs that come before it in the same batch.
        """
        ...

    async def change_job(
        self, tenant: str, job_id: int, decide: Decide, *, roots_too: bool = False
    ) -> Changed | None:
        """Apply `decide(job, now)` under the job's lock as a new version; None when there is no such job.

        Invalid when its graph would have a circle or roots with different times. With `roots_too` the other
        roots of its graph get the same times in the same moment.
        """
        ...

    async def delete_job(
        self, tenant: str, job_id: int, cancel_running: bool, *, version: int | None = None
    ) -> Changed | None:
        """Remove the job and what it would still run; None when there is no such job.

        Conflict while other jobs follow it; Outdated where it is not at this version.
        """
        ...

    async def get_job(self, tenant: str, job_id: int) -> Job | None:
        """One job."""
        ...

    async def find_jobs(self, tenant: str, text: str, limit: int) -> list[Job]:
        """The job with this key, else at most `limit` with this name; a limit of 0 asks for the key alone."""
        ...

    async def list_jobs(self, tenant: str, query: JobQuery) -> JobPage:
        """A page of jobs, newest first."""
        ...

    async def count_jobs(self, tenant: str, query: JobQuery) -> JobCount:
        """How many jobs of a tenant are in a set, have a name's beginning or are paused; of one filter or none."""
        ...

    async def versions(self, tenant: str, job_id: int) -> list[Version]:
        """All versions of a job, oldest first."""
        ...

    async def missed(self, tenant: str, job_id: int) -> list[MissedTimes]:
        """What a job missed while nobody planned, newest first, as long as history is kept."""
        ...

    async def tend_jobs(self, limit: int) -> int | None:
        """Resume jobs whose pause ends, skip paused one-time jobs whose time has passed, drop old ones.

        Answers when the next job wants tending, None when none does.
        """
        ...

    # --- planning
    async def due_clocks(self, segments: Sequence[int], before_at: int, limit: int) -> list[Clock]:
        """Clocks of these segments with `next_at` before an instant, the most overdue first."""
        ...

    async def next_clock_at(self, segments: Sequence[int]) -> int | None:
        """The earliest `next_at` of these segments."""
        ...

    async def plan(self, plans: Sequence[ClockPlan]) -> int:
        """Write the members' runs and move each clock on by compare-and-set; says how many runs.

        A plan made under another fence than its segment has now changes nothing.
        """
        ...

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
        """A manual run, due now; the same request key gives the same run. None when there is no such job.

        With `downstream` all that follow the job get a run after it. Outdated where the job is not at this version.
        """
        ...

    async def claim(self, request: ClaimRequest) -> Claim:
        """Take runs for a worker with a live lease; judges lateness and overlap of what it meets.

        With `named` runs these are looked at instead of the lanes, by the same rules; `next_at` then says nothing,
        and `left` tells which of them still wait (for their time, a slot, an earlier run, or another claim).
        """
        ...

    async def settle(self, worker: str, settlements: Sequence[Settlement]) -> list[Settlement]:
        """Commit outcomes, hand slots on, and answer those that were refused by slot or fence."""
        ...

    async def held_runs(self, node_id: int) -> list[HeldRun]:
        """What a node holds according to the store."""
        ...

    async def cancel_asked(self, node_id: int) -> list[HeldRun]:
        """Those of a node's runs that somebody wants cancelled."""
        ...

    async def cancel_run(self, tenant: str, key: RunKey) -> RunView | None:
        """Cancel at once where nobody executes it, also where its report is awaited, else ask its worker.

        None when there is no such run.
        """
        ...

    # --- reports
    async def report_key(self, job_id: int) -> bytes | None:
        """The key that tokens of a job's attempts are made with; None where no database could have the job.

        Drawn once, and the same for every process on that database for ever.
        """
        ...

    async def find_attempt(self, key: RunKey, attempt: int) -> AttemptFacts:
        """One attempt of a run, of whatever tenant, also of a deleted job's: whoever has its token may ask."""
        ...

    async def note_progress(self, notes: Sequence[ProgressNote]) -> list[ProgressNote]:
        """Keep how far attempts are, the latest of each, and move deadlines that are to be later.

        Answers those that were refused, since their attempt is no longer under way in that slot.
        """
        ...

    # --- repair
    async def stray_runs(self, slack_us: int, limit: int) -> list[StrayRun]:
        """Runs of nodes without a live lease, runs that a node holds past their deadline by more than the
        slack, and accepted ones whose deadline has passed without a report."""
        ...

    async def judge_late(self, cursors: dict[int, Cursor], limit: int) -> LatePage:
        """Apply the misfire policy to late runs that nobody claims, a page of each lane; where to go on."""
        ...

    async def hand_on_slots(self, limit: int) -> int:
        """Give free slots to blocked runs that nobody handed one; says how many."""
        ...

    async def descend(self, limit: int) -> int:
        """Tell children how runs of their parents ended, one level of the graph; says of how many runs.

        A child whose parents have all ended goes if all succeeded and is skipped otherwise, naming the parent.
        Repeated and side by side it comes to the same.
        """
        ...

    async def judge_waits(self, limit: int) -> int:
        """Look at runs that wait for parents: who will never come counts as missing, and deadlines end waits."""
        ...

    async def purge(self, history_before_at: int, dead_before_at: int, limit: int) -> bool:
        """Drop old history, deeds, dead letters and progress of attempts that are over; True while there is more."""
        ...

    async def tidy(self) -> None:
        """Clean up behind the hot tables, where the backend does not do it by itself in time."""
        ...

    # --- nodes
    async def renew_node(self, node_id: int, kind: str, name: str, lease_us: int) -> None:
        """Register a node or prolong its lease; LeaseLost when it had run out."""
        ...

    async def end_node(self, node_id: int) -> None:
        """Declare a node gone."""
        ...

    async def hold_segments(self, node_id: int, kind: str, name: str, lease_us: int) -> Mapping[int, int]:
        """Renew a node and its even share of the segments among the live nodes of its kind.

        Answers what it holds, each segment with its fence; LeaseLost when the lease had run out.
        """
        ...

    async def hold_allotted(
        self, node_id: int, kind: str, name: str, lease_us: int, allotted: Mapping[int, int]
    ) -> Mapping[int, int]:
        """Renew a node and have it hold of the segments just those that somebody else allotted to it.

        `allotted` names for each segment the node that it is the heir of, 0 for none: a segment is taken if
        nobody holds it, a node without a live lease does, or the named one, whatever its lease says. What is
        held by others stays theirs. Every change of hands raises the fence. Answers as `hold_segments`.
        """
        ...

    async def tell_served(self, node_id: int, serves: Serves) -> None:
        """Keep what a worker can run, for those who ask why a run waits; nothing depends on it."""
        ...

    async def nodes(self) -> list[NodeInfo]:
        """All nodes known."""
        ...

    async def segments(self) -> list[SegmentInfo]:
        """All segments that were ever shared out, in order, with who was last given each."""
        ...

    # --- reading
    async def job_runs(
        self, tenant: str, job_id: int, nominals: Sequence[int], before_at: int | None, limit: int
    ) -> list[RunView]:
        """A job's runs, newest first, live ones included; `nominals` are the times it may be planned for."""
        ...

    async def look_at_job(self, tenant: str, job_id: int, want: WantRuns) -> JobLook | None:
        """A job and those of its runs that `want(job, versions, skips)` asks for, as of one moment.

        None when there is no such job.
        """
        ...

    async def get_run(self, tenant: str, key: RunKey) -> RunView | None:
        """One run, wherever it is."""
        ...

    async def run_facts(self, tenant: str, key: RunKey) -> RunFacts | None:
        """Everything that is kept about one nominal time of a job, as of one moment; of deleted jobs too.

        None when there is and was no such job.
        """
        ...

    async def list_runs(self, tenant: str, query: RunQuery) -> RunPage:
        """Finished runs of a tenant in a window of time, newest first."""
        ...

    async def job_marks(self, tenant: str, job_ids: Sequence[int], limit: int) -> list[JobMarks]:
        """The last `limit` runs that ended of each of these jobs; those of the tenant, in that order."""
        ...

    # --- logs
    async def append_log(self, chunks: Sequence[LogChunk]) -> None:
        """Keep what attempts wrote. A chunk that is there already stays as it is, so this may be repeated.

        Asks nobody whether the run exists: what an attempt says that was given up belongs to that attempt. Kept
        as long as history.
        """
        ...

    async def read_log(
        self, key: RunKey, after: LogPlace, last_attempt: int | None, limit: int
    ) -> list[LogChunk]:
        """What the attempts of a run wrote, in order, behind a place; up to and with one attempt where it is given."""
        ...

    async def graph(self, tenant: str, job_id: int) -> list[GraphJob]:
        """A job with all jobs that hang together with it; empty when there is no such job."""
        ...

    async def peek_jobs(self, tenant: str, ids: Sequence[int]) -> list[GraphJob]:
        """What a graph needs to know of some jobs, in their order; those that there are."""
        ...

    async def glance(self, tenant: str, ids: Sequence[int], at: int | None) -> list[RunGlance]:
        """Of each of some jobs its run for a nominal time, else the newest that waits for something, runs or ended.

        Jobs without such a run are left out, and so are those of other tenants.
        """
        ...

    # --- dead letters
    async def dead_letters(self, tenant: str, query: DeadQuery) -> DeadPage:
        """A page of dead letters."""
        ...

    async def dead_groups(self, tenant: str, by: str, limit: int) -> list[DeadGroup]:
        """Dead letters counted by `error` or `job`, the largest first."""
        ...

    async def requeue(self, tenant: str, keys: Sequence[RunKey], *, downstream: bool = False) -> list[RunKey]:
        """Send dead letters back as the same runs, tries reset, fence kept; says which were there.

        With `downstream` the runs that were skipped because of them wait for their parents again.
        """
        ...

    async def discard(self, tenant: str, keys: Sequence[RunKey]) -> list[RunKey]:
        """Remove dead letters; history keeps them; says which were there."""
        ...
