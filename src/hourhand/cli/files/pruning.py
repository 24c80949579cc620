"""Which jobs of a set no file has any more, and whether all of them can go: nobody who stays may follow one of them."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hourhand.cli.files.documents import Wanted
from hourhand.cli.files.faults import FileFault
from hourhand.cli.files.listing import all_jobs
from hourhand.cli.files.order import children_first
from hourhand.errors import NotFound

if TYPE_CHECKING:
    from hourhand.client import Client


def surplus(client: "Client", wanted: Wanted) -> list[Mapping[str, Any]]:
    """Jobs of the wanted sets that no file has; of a job only what deleting and telling needs."""
    found = [
        {name: job.get(name) for name in ("job_id", "key", "name", "set", "after")}
        for name in wanted.sets
        for job in all_jobs(client, set=name)
        if job["key"] not in wanted.jobs
    ]
    return children_first(found)


def left_behind(client: "Client", wanted: Wanted, pruned: Sequence[Mapping[str, Any]]) -> list[FileFault]:
    """Jobs that would follow one that is to go: those of the files as they are written, others as they are stored."""
    going = {str(job["job_id"]): str(job["key"] or job["name"] or job["job_id"]) for job in pruned}
    faults = list(_of_files(wanted, pruned))
    for parent, child in _edges(client, going):
        if child["job_id"] in going or child["key"] in wanted.jobs:
            continue
        words = (
            f"{child['key'] or child['name']!r} follows it and would stay; delete or change that one first"
        )
        faults.append(FileFault(file="prune", line=None, field=going[parent], words=words))
    return faults


def _of_files(wanted: Wanted, pruned: Sequence[Mapping[str, Any]]) -> Iterator[FileFault]:
    names = {str(job[name]) for job in pruned for name in ("job_id", "key") if job[name] is not None}
    for job in wanted.jobs.values() if names else ():
        after = job.document.get("after")
        for index, parent in enumerate(after if isinstance(after, list) else ()):
            if parent in names:
                words = f"{parent!r} would be pruned: no file has it, and it belongs to the set"
                yield job.fault(f"/after/{index}", words)


def _edges(client: "Client", going: Mapping[str, str]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Who follows those that go, as stored; each graph is asked for once, as long as an answer has all of it."""
    seen: set[str] = set()
    for job_id in going:
        if job_id in seen:
            continue
        try:
            graph = client.jobs.graph(job_id)
        except NotFound:  # somebody else was faster
            continue
        known = {job_id} if graph["truncated"] else {one["job_id"] for one in graph["jobs"]}
        seen |= known
        for child in graph["jobs"]:
            for parent in child["after"]:
                if parent in going and parent in known:
                    yield parent, child
