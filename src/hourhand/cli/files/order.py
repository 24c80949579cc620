"""The order in which jobs are applied: parents before those that run after them. Pure."""

from collections.abc import Iterable, Mapping, Sequence

from hourhand.cli.files.documents import FileJob
from hourhand.cli.files.faults import FileFault


def levels(jobs: Mapping[str, FileJob]) -> tuple[list[list[FileJob]], list[FileFault]]:
    """Jobs in levels, each after all its parents of the same files; cycles as faults that name them."""
    waits = {key: parents_of(job, jobs) for key, job in jobs.items()}
    children: dict[str, list[str]] = {}
    for key, parents in waits.items():
        for parent in parents:
            children.setdefault(parent, []).append(key)
    open_parents = {key: len(parents) for key, parents in waits.items()}
    found: list[list[FileJob]] = []
    ready = [key for key, count in open_parents.items() if not count]
    while ready:
        found.append([jobs[key] for key in ready])
        following = []
        for key in ready:
            for child in children.get(key, ()):
                open_parents[child] -= 1
                if not open_parents[child]:
                    following.append(child)
        ready = following
    placed = {job.key for level in found for job in level}
    return found, _cycles(jobs, waits, placed)


def groups(jobs: Mapping[str, FileJob]) -> tuple[list[list[FileJob]], list[FileFault]]:
    """Jobs that hang together by whom they follow, parents first, in the order of the files; cycles as faults.

    Most groups are one job. They stay together on their way, so that the server sees a graph as a whole.
    """
    ordered, faults = levels(jobs)
    names: dict[str, str] = {key: key for key in jobs}

    def name_of(key: str) -> str:
        while names[key] != key:
            names[key] = names[names[key]]
            key = names[key]
        return key

    for key, job in jobs.items():
        for parent in parents_of(job, jobs):
            names[name_of(parent)] = name_of(key)
    found: dict[str, list[FileJob]] = {}
    for key in jobs:
        found.setdefault(name_of(key), [])
    for level in ordered:
        for job in level:
            found[name_of(job.key)].append(job)
    return list(found.values()), faults


def parents_of(job: FileJob, jobs: Mapping[str, FileJob]) -> set[str]:
    """Keys of the same files that a job runs after."""
    after = job.document.get("after")
    return (
        {one for one in after if isinstance(one, str) and one in jobs} if isinstance(after, list) else set()
    )


def children_first(documents: Iterable[Mapping[str, object]]) -> list[Mapping[str, object]]:
    """Stored jobs so that each comes before those that it runs after, as deleting needs it."""
    by_id = {str(document["job_id"]): document for document in documents}
    placed: dict[str, Mapping[str, object]] = {}
    for start in by_id:
        stack = [start]
        while stack:
            job_id = stack[-1]
            parents = by_id[job_id].get("after")
            open_parents = [
                str(one)
                for one in (parents if isinstance(parents, Sequence) and not isinstance(parents, str) else ())
                if one in by_id and one not in placed and one not in stack
            ]
            if open_parents:
                stack += open_parents
            else:
                placed.setdefault(job_id, by_id[job_id])
                stack.pop()
    return list(reversed(placed.values()))


def _cycles(jobs: Mapping[str, FileJob], waits: Mapping[str, set[str]], placed: set[str]) -> list[FileFault]:
    """One fault per cycle; what merely runs after a cycle is not named."""
    faults: list[FileFault] = []
    seen = set(placed)
    for start in jobs:
        path: list[str] = []
        key = start
        while key not in seen and key not in path:
            path.append(key)
            key = min(parent for parent in waits[key] if parent not in placed)
        if key in path:
            circle = [*path[path.index(key) :], key]
            words = "closes a cycle: " + " after ".join(circle)
            faults.append(jobs[key].fault("/after", words))
        seen.update(path)
    return faults
