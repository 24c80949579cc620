"""Files, folders, stdin and modules as wanted jobs: sets, defaults, and what is wrong before anybody is asked.

A document is a list of jobs, one job, or `{set, defaults, jobs}`. What a job may be is the server's to say; here
only what it cannot see: keys that come twice, sets that disagree, graphs that close a cycle.
"""

import difflib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from hourhand.cli.files.faults import FileFault, FileFaults
from hourhand.cli.files.sources import Source, texts
from hourhand.cli.files.values import LinedDict, LinedList, line_at

MAX_JOBS = 100_000
_SET_FIELDS = ("set", "defaults", "jobs")
_ONE_JOB_FIELDS = ("key", "cron", "every", "at", "after", "target", "callback_url")
_NOT_FOR_ALL = ("key", "cron", "every", "at", "after", "set")  # of a job alone, never a default
_KINDS = {"function": "python", "argv": "shell"}  # targets that may leave out their type
_BESIDE = {"tz": "cron", "dst": "cron", "phase": "every", "wait": "after"}


@dataclass(frozen=True, slots=True, kw_only=True)
class FileJob:
    """A job that a file wants, and where it stands."""

    key: str
    document: Mapping[str, Any]
    file: str
    line: int  # 0 where it was made of something without lines
    written: Any = None  # the values as written, which know their lines

    def fault(self, pointer: str, words: str) -> FileFault:
        """Something wrong with it."""
        name = pointer.removeprefix("/").replace("/", ".")
        line = line_at(self.written, pointer) or self.line or None
        return FileFault(
            file=self.file, line=line, field=f"{self.key}: {name}" if name else self.key, words=words
        )


@dataclass(slots=True)
class Wanted:
    """Everything that some sources want."""

    jobs: dict[str, FileJob] = field(default_factory=dict)
    sets: dict[str, str] = field(default_factory=dict)  # each set, and the first file that names it
    faults: list[FileFault] = field(default_factory=list)


def read_sources(sources: Iterable[Source], set_name: str | None = None) -> Wanted:
    """All jobs of all sources; FileFaults with everything that is wrong."""
    wanted = Wanted()
    if set_name is not None:
        wanted.sets[set_name] = "--set"
    for source in sources:
        try:
            _take_all(source, wanted, set_name)
        except FileFaults as error:
            wanted.faults += error.found
    if len(wanted.jobs) > MAX_JOBS:
        raise FileFaults(
            [
                FileFault(
                    file="all files",
                    line=None,
                    field="",
                    words=f"more than {MAX_JOBS:,} jobs; apply them in parts",
                )
            ]
        )
    if wanted.faults:
        raise FileFaults(wanted.faults)
    return wanted


def _take_all(source: Source, wanted: Wanted, set_name: str | None) -> None:
    """All documents of a source. One without any is wrong: else a program that failed would empty a set."""
    found = [(value, line) for value, line in texts(source, wanted.faults) if value is not None]
    for value, line in found:
        _Document(source, wanted, set_name).take(value, line)
    if not found:
        words = "holds no jobs, not even an empty list; a set is emptied by `set: NAME` with `jobs: []`"
        wanted.faults.append(FileFault(file=source.name, line=None, field="", words=words))


class _Document:
    """Reads one document of a source into what is wanted."""

    def __init__(self, source: Source, wanted: Wanted, set_name: str | None) -> None:
        self._source = source
        self._wanted = wanted
        self._set_name = set_name or source.set_name

    def take(self, value: Any, line: int) -> None:
        """Add its jobs."""
        if isinstance(value, LinedList):
            self._jobs(value, {}, self._set_name)
        elif isinstance(value, LinedDict) and ("jobs" in value or value.keys().isdisjoint(_ONE_JOB_FIELDS)):
            self._set(value)
        elif isinstance(value, LinedDict):
            self._job(value, line, {}, self._set_name)
        else:
            self._fault(line, "", "expected a list of jobs, or a mapping with jobs")

    def _set(self, value: LinedDict) -> None:
        for name in value.keys() - set(_SET_FIELDS):
            near = difflib.get_close_matches(name, _SET_FIELDS, n=1)
            hint = f"; did you mean {near[0]}?" if near else f"; expected {', '.join(_SET_FIELDS)}"
            self._fault(value.lines[name], name, f"there is no such field here{hint}")
        set_name = self._set_of(value)
        defaults = value.get("defaults") or {}
        if not isinstance(defaults, dict):
            self._fault(value.lines["defaults"], "defaults", "expected fields of a job")
            return
        for field_name in defaults.keys() & set(_NOT_FOR_ALL):
            self._fault(line_at(defaults, field_name), f"defaults.{field_name}", "belongs to each job alone")
        jobs = value.get("jobs")
        if isinstance(jobs, LinedList):
            self._jobs(jobs, defaults, set_name)
        elif jobs is not None or "jobs" not in value:
            self._fault(value.lines.get("jobs", value.line), "jobs", "expected a list of jobs")

    def _set_of(self, value: LinedDict) -> str | None:
        named = value.get("set")
        if named is None:
            return self._set_name
        if not isinstance(named, str) or not named:
            self._fault(value.lines["set"], "set", "expected a text")
            return None
        if self._set_name not in (None, named):
            self._fault(value.lines["set"], "set", f"is {named!r} here, but {self._set_name!r} was asked for")
        self._wanted.sets.setdefault(named, self._source.name)
        return named

    def _jobs(self, jobs: LinedList, defaults: Mapping[str, Any], set_name: str | None) -> None:
        for job, line in zip(jobs, jobs.lines, strict=True):
            self._job(job, line, defaults, set_name)

    def _job(self, job: Any, line: int, defaults: Mapping[str, Any], set_name: str | None) -> None:
        if not isinstance(job, LinedDict):
            self._fault(line, "", "expected a job, with its fields")
            return
        line = self._source.line or line
        key = job.get("key")
        if not isinstance(key, str) or not key:
            what = f"the job {job['name']!r}" if isinstance(job.get("name"), str) else "the job"
            self._fault(job.lines.get("key", line), "key", f"{what} needs a key, a text that is its own")
            return
        before = self._wanted.jobs.get(key)
        if before is not None:
            self._fault(job.lines["key"], "key", f"{key!r} is in {before.file}:{before.line} already")
            return
        own = job.get("set", set_name)
        if set_name is not None and own not in (None, set_name):
            self._fault(job.lines["set"], f"{key}: set", f"is {own!r}, but the file's set is {set_name!r}")
        document = with_defaults(job, defaults)
        if own is not None or set_name is not None:
            document["set"] = own or set_name
        if isinstance(document.get("set"), str):
            self._wanted.sets.setdefault(document["set"], self._source.name)
        self._wanted.jobs[key] = FileJob(
            key=key,
            document=document,
            file=self._source.name,
            line=line,
            written=None if self._source.line else job,
        )

    def _fault(self, line: int | None, field_name: str, words: str) -> None:
        fault = FileFault(file=self._source.name, line=line, field=field_name, words=words)
        self._wanted.faults.append(fault)


def with_defaults(job: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """A job over the defaults of its file: mappings field by field, a payload whole."""
    document = dict(job)
    fitting = {
        name: value
        for name, value in defaults.items()
        if name not in _BESIDE or job.get(_BESIDE[name]) is not None
    }
    if isinstance(fitting.get("target"), dict):
        url = document.pop("callback_url", None) if "target" not in job else None
        if isinstance(document.get("target"), str):
            url = document["target"]
        if url is not None:
            document["target"] = {"url": url}
        elif document.get("target") is not None and _kind(document["target"]) != _kind(fitting["target"]):
            del fitting["target"]  # what all calls have says nothing about another kind of target
    return dict(_over(fitting, document))


def _over(defaults: Mapping[str, Any], document: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name in (*document, *(name for name in defaults if name not in document)):
        if name not in document:
            yield name, defaults[name]
            continue
        own, common = document[name], defaults.get(name)
        if name != "payload" and isinstance(own, dict) and isinstance(common, dict):
            yield name, dict(_over(common, own))
        else:
            yield name, own


def _kind(target: Any) -> Any:
    if not isinstance(target, dict):
        return "http"
    return target.get("type") or next((kind for name, kind in _KINDS.items() if name in target), "http")
