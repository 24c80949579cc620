"""What is wrong with the graphs in files, as far as one can tell without a server. Pure.

Parents named by id may be anywhere; a key that no file has is a finding, since apply would need it to be there.
"""

from collections.abc import Mapping

from hourhand.cli.files.documents import FileJob
from hourhand.cli.files.faults import FileFault
from hourhand.cli.files.order import groups, parents_of
from hourhand.core.dag import MAX_DEPTH, MAX_GRAPH, MAX_PARENTS
from hourhand.core.identity import parse_job_id

_BELONG = {"cron": ("tz", "dst"), "every": ("phase",), "at": ()}


def findings_in(jobs: Mapping[str, FileJob]) -> list[FileFault]:
    """Everything that stands against the graphs of some files."""
    found, cycles = groups(jobs)
    findings = [*cycles]
    for job in jobs.values():
        findings += _unknown(job, jobs)
    for group in found:
        if len(group) > 1:
            findings += _mixed(group)
            findings += _too_large(group, jobs)
    return sorted(findings, key=lambda fault: (fault.file, fault.line or 0))


def _unknown(job: FileJob, jobs: Mapping[str, FileJob]) -> list[FileFault]:
    after = job.document.get("after")
    if after is None:
        return []
    if not isinstance(after, list) or not all(isinstance(one, str) for one in after):
        return [job.fault("/after", "expected a list of ids and keys")]
    if not 1 <= len(after) <= MAX_PARENTS:
        return [job.fault("/after", f"expected 1 to {MAX_PARENTS} jobs, got {len(after)}")]
    return [
        job.fault(f"/after/{index}", f"no job in these files has the key {one!r}")
        for index, one in enumerate(after)
        if one not in jobs and not _is_id(one)
    ]


def _mixed(group: list[FileJob]) -> list[FileFault]:
    """Roots whose times differ from those of the first."""
    roots = [job for job in group if job.document.get("after") is None]
    findings = []
    for root in roots[1:]:
        if _schedule(root) != _schedule(roots[0]):
            told = f"{roots[0].key!r} has {_told(roots[0])}, {root.key!r} has {_told(root)}"
            findings.append(
                root.fault(_pointer(root), f"all roots of a graph need the same schedule: {told}")
            )
        elif "every" in root.document and root.document.get("phase") is None:
            words = "roots that share an interval need the same phase, or each counts from its creation"
            findings.append(root.fault("/every", words))
    return findings


def _too_large(group: list[FileJob], jobs: Mapping[str, FileJob]) -> list[FileFault]:
    if len(group) > MAX_GRAPH:
        return [group[0].fault("", f"at most {MAX_GRAPH:,} jobs may hang together, got {len(group):,}")]
    depth: dict[str, int] = {}
    for job in group:  # parents come first
        depth[job.key] = max((depth[parent] + 1 for parent in parents_of(job, jobs)), default=0)
        if depth[job.key] == MAX_DEPTH + 1:
            return [job.fault("/after", f"jobs may follow each other {MAX_DEPTH} levels deep, not more")]
    return []


def _schedule(job: FileJob) -> tuple[object, ...]:
    document = job.document
    for name, beside in _BELONG.items():
        if document.get(name) is not None:
            values = {one: document.get(one) for one in beside}
            if name == "cron":
                values = {"tz": values["tz"] or "UTC", "dst": _dst(values["dst"])}
            return name, " ".join(str(document[name]).split()), tuple(values.values())
    return ()


def _dst(dst: object) -> tuple[object, object]:
    given = dst if isinstance(dst, Mapping) else {}
    return given.get("gap") or "after", given.get("fold") or "auto"


def _told(job: FileJob) -> str:
    name, *rest = _schedule(job) or ("none",)
    if name == "cron":
        return f"{rest[0]!r} in {job.document.get('tz') or 'UTC'}"
    phase = job.document.get("phase")
    return " ".join([str(name), *map(str, rest[:1])]) + (f" counted from {phase}" if phase else "")


def _pointer(job: FileJob) -> str:
    return f"/{next((name for name in _BELONG if job.document.get(name) is not None), '')}"


def _is_id(text: str) -> bool:
    try:
        parse_job_id(text)
    except ValueError:
        return False
    return True
