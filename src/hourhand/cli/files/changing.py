"""What applying would do, asked of the server in parts, and doing it: parents first, what is unchanged not at all.

Nothing is sent to be stored before the server has found every document right. Interrupted, it is simply run
again: what was done is then unchanged.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any

import msgspec

from hourhand.cli.files.documents import FileJob, Wanted
from hourhand.cli.files.faults import FileFault, FileFaults, words_of
from hourhand.cli.files.fires import fires_that_go
from hourhand.cli.files.newcomers import awaits_new, with_parents, without_parents
from hourhand.cli.files.order import groups
from hourhand.cli.files.pruning import left_behind, surplus
from hourhand.cli.progress import Progress
from hourhand.errors import Conflict, NotFound, Unavailable

if TYPE_CHECKING:
    from hourhand.client import Client

BATCH_JOBS = 500
REQUEST_JOBS = 1_000  # a graph that needs it goes as one: the server must see it whole to say what would be
BATCH_BYTES = 8 * 1024 * 1024
_ENCODER = msgspec.json.Encoder()
_AS_OPTION = ("apply with take_over", "apply with --take-over")  # the server has no options

Result = dict[str, Any]


@dataclass(slots=True)
class Plan:
    """What there is to do: what the server says of each by key, and jobs of the sets that no file has."""

    groups: list[list[FileJob]]
    results: dict[str, Result] = field(default_factory=dict)
    surplus: list[Mapping[str, Any]] = field(default_factory=list)
    fires: dict[str, Mapping[str, Any] | None] = field(default_factory=dict)  # by key, or id of one that goes

    @property
    def jobs(self) -> Iterator[FileJob]:
        """All jobs of the files."""
        return chain.from_iterable(self.groups)

    def count(self, action: str) -> int:
        """How many jobs of one fate."""
        return sum(result["action"] == action for result in self.results.values())

    @property
    def changes(self) -> bool:
        """Whether there is anything to do."""
        return bool(self.surplus) or any(differs(one) for one in self.results.values())


def make_plan(client: "Client", wanted: Wanted, *, prune: bool, take_over: bool, told: bool = True) -> Plan:
    """Ask what would become of all; FileFaults with everything that is wrong."""
    found, faults = groups(wanted.jobs)
    if faults:
        raise FileFaults(faults)
    plan = Plan(groups=found)
    with Progress("checked", len(wanted.jobs), wanted=told) as progress:
        for part in parts(plan.groups):
            faults += _send(client, part, plan.results, take_over=take_over, dry_run=True)
            progress.add(len(part))
    if faults:
        raise FileFaults(faults)
    if prune:
        plan.surplus = surplus(client, wanted)
        faults = left_behind(client, wanted, plan.surplus)
        if faults:
            raise FileFaults(faults)
        with Progress("looked at", len(plan.surplus), wanted=told) as progress:
            for job in plan.surplus:
                plan.fires[str(job["job_id"])] = fires_that_go(client, job)
                progress.add(1)
    # By themselves, since applying answers anew, and by then nothing is to come any more.
    plan.fires |= {key: fires for key, one in plan.results.items() if (fires := one.pop("fires", None))}
    return plan


def would_fail(client: "Client", wanted: Wanted) -> dict[str, Mapping[str, Any]]:
    """The problem of each job, by its key, that the server would refuse as it is."""
    results: dict[str, Result] = {}
    for part in parts(groups(wanted.jobs)[0]):
        _send(client, part, results, take_over=False, dry_run=True)
    return {key: result["error"] for key, result in results.items() if result["action"] == "failed"}


def carry_out(client: "Client", plan: Plan, *, take_over: bool, told: bool = True) -> list[FileFault]:
    """Store what differs, then delete what is surplus; faults are what the server refused after all."""
    todo = [[job for job in group if differs(plan.results[job.key])] for group in plan.groups]
    faults: list[FileFault] = []
    with Progress("applied", sum(map(len, todo)), wanted=told) as progress:
        for part in parts(todo):
            faults += _send(client, part, plan.results, take_over=take_over, dry_run=False)
            progress.add(len(part))
    if faults:
        return faults  # a child may rest on what failed, so nothing is deleted either
    with Progress("pruned", len(plan.surplus), wanted=told) as progress:
        for job in plan.surplus:
            with suppress(NotFound):  # somebody else was faster
                try:
                    if client.jobs.get(str(job["job_id"]))["set"] == job["set"]:  # still
                        client.jobs.delete(job)
                except Conflict as error:  # such as one that others still follow
                    faults.append(
                        FileFault(file="prune", line=None, field=str(job["key"]), words=error.message)
                    )
            progress.add(1)
    return faults


def differs(result: Result) -> bool:
    """Whether there is something to do about it."""
    return result["action"] not in ("unchanged", "passed")


def _send(
    client: "Client", part: Sequence[FileJob], results: dict[str, Result], *, take_over: bool, dry_run: bool
) -> list[FileFault]:
    orphans = {job.key for job in part if dry_run and awaits_new(job, results)}
    documents = [without_parents(job.document) if job.key in orphans else job.document for job in part]
    answer = client.jobs.apply(documents, take_over=take_over, dry_run=dry_run)
    faults: list[FileFault] = []
    for job, result in zip(part, answer["results"], strict=True):
        result["key"] = job.key
        results[job.key] = with_parents(job.document, result) if job.key in orphans else result
        if result["status"] == Unavailable.status:
            raise Unavailable(f"{result['error'].get('detail')}; apply it again: what was done stays")
        if result["action"] == "failed":
            told = words_of(result["error"])
            faults += [job.fault(pointer, words.replace(*_AS_OPTION)) for pointer, words in told]
    return faults


def parts(found: Iterable[Sequence[FileJob]]) -> Iterator[list[FileJob]]:
    """As many at a time as one request takes; a group is torn apart only where it is larger than that."""
    part: list[FileJob] = []
    size_bytes = 0
    for group in found:
        sizes_bytes = [len(_ENCODER.encode(job.document)) for job in group]
        whole = len(group) <= REQUEST_JOBS and sum(sizes_bytes) <= BATCH_BYTES
        if part and whole and not _fits(len(part) + len(group), size_bytes + sum(sizes_bytes)):
            yield part
            part, size_bytes = [], 0
        for job, own_bytes in zip(group, sizes_bytes, strict=True):
            if part and not whole and not _fits(len(part) + 1, size_bytes + own_bytes):
                yield part
                part, size_bytes = [], 0
            part.append(job)
            size_bytes += own_bytes
    if part:
        yield part


def _fits(count: int, size_bytes: int) -> bool:
    return count <= BATCH_JOBS and size_bytes <= BATCH_BYTES
