"""`export`: jobs as a file that `apply` takes back without a change.

Jobs come page by page and wait in a temporary file; in memory there is only where each lies, so that they can be
written in one order, by set and key. Jobs without a key cannot be applied: they are named and left out.
"""

import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from typing import IO, Any, NamedTuple

import msgspec

from hourhand.cli.failures import FINDINGS, Usage
from hourhand.cli.files.compact import compact
from hourhand.cli.files.defaults import Defaults
from hourhand.cli.files.listing import all_jobs
from hourhand.cli.files.yaml_text import yaml_block
from hourhand.cli.options import Call
from hourhand.cli.output import Form
from hourhand.cli.progress import Progress
from hourhand.cli.text import clean, plural
from hourhand.errors import Conflict, Invalid, NotFound

MOST_TOLD = 20
_FORMATS = {Form.JSON: "json", Form.LINES: "jsonl"}  # where --format does not say


class _Place(NamedTuple):
    """Where a job waits, in the order in which jobs are written."""

    set_name: str
    key: str
    job_id: str
    offset: int


def run_export(
    call: Call, filters: Mapping[str, str | None], output: str | None, form: str | None, *, assign_keys: bool
) -> int:
    """Write all jobs that the filters choose, or with -q and no file just their ids; the exit code."""
    form = form or _FORMATS.get(call.out.form, "yaml")
    if form not in _WRITERS:
        raise Usage(f"--format: expected one of {', '.join(_WRITERS)}, got {form!r}")
    with tempfile.TemporaryFile() as spool:
        places, keyless = _gather(call, filters, spool, assign_keys=assign_keys)
        if filters.get("set") and not filters.get("tag") and not places and not keyless:
            raise NotFound(f"no job belongs to the set {filters['set']!r}")
        places.sort()
        if call.out.form is Form.IDS and output is None:
            for place in places:
                call.out.line(place.job_id)
            return _tell_keyless(call, keyless)
        keys = {place.job_id: place.key for place in places}
        defaults = Defaults(call.client)

        def documents(found: Iterator[_Place] | list[_Place]) -> Iterator[dict[str, Any]]:
            for place in found:
                spool.seek(place.offset)
                job = msgspec.json.decode(spool.readline())
                yield compact(job, defaults, _parent_keys(call, keys))

        with opened(output) as file:
            _WRITERS[form](file, places, documents)
    call.out.note(f"{plural(len(places), 'job')} exported" + (f" to {output}" if output else ""))
    return _tell_keyless(call, keyless)


def _gather(
    call: Call, filters: Mapping[str, str | None], spool: IO[bytes], *, assign_keys: bool
) -> tuple[list[_Place], list[str]]:
    places: list[_Place] = []
    keyless: list[str] = []
    with Progress("read", wanted=call.out.form is Form.PEOPLE) as progress:
        for job in all_jobs(call.client, **filters):
            progress.add(1)
            if job["key"] is None and assign_keys and not call.dry_run:
                job = _with_key(call, job)
            if job["key"] is None:
                keyless.append(f"{job['job_id']} {job['name']}".rstrip())
                continue
            places.append(_Place(job["set"] or "", job["key"], job["job_id"], spool.tell()))
            spool.write(msgspec.json.encode(job) + b"\n")
    return places, keyless


def _with_key(call: Call, job: dict[str, Any]) -> dict[str, Any]:
    """The job after it was given a key: its name, or with its id where that is taken or missing."""
    name = re.sub(r"\s+", "-", job["name"].strip())[:150]
    for key in (name, f"{name or 'job'}-{job['job_id']}"):
        if key:
            try:
                return call.client.jobs.update(job, {"key": key}, version=job["version"])
            except (Conflict, Invalid):
                continue  # taken, or of another database
    return job


def _parent_keys(call: Call, keys: dict[str, str]) -> Callable[[str], str]:
    def key_of(job_id: str) -> str:
        if job_id not in keys:
            keys[job_id] = call.client.jobs.get(job_id)["key"] or job_id
        return keys[job_id]

    return key_of


Documents = Callable[[Iterator[_Place]], Iterator[dict[str, Any]]]


def _write_yaml(file: IO[str], places: list[_Place], documents: Documents) -> None:
    """A document for each set; jobs of no set are a plain list."""
    first = True
    for set_name, found in groupby(places, key=lambda place: place.set_name):
        if not first:
            file.write("---\n")
        first = False
        if set_name:
            file.writelines(yaml_block({"set": set_name}))
            file.write("jobs:\n")
        for document in documents(found):
            document.pop("set", None)
            file.writelines(yaml_block([document]))


def _write_json(file: IO[str], places: list[_Place], documents: Documents) -> None:
    """One list; each job names its set."""
    for index, document in enumerate(documents(iter(places))):
        file.write("[\n" if index == 0 else ",\n")
        file.write(msgspec.json.format(msgspec.json.encode(document), indent=2).decode())
    file.write("\n]\n" if places else "[]\n")


def _write_lines(file: IO[str], places: list[_Place], documents: Documents) -> None:
    """One job on each line."""
    for document in documents(iter(places)):
        file.write(msgspec.json.encode(document).decode() + "\n")


_WRITERS = {"yaml": _write_yaml, "json": _write_json, "jsonl": _write_lines}


@contextmanager
def opened(output: str | None) -> Iterator[IO[str]]:
    """stdout; or a file that takes the place of the old one only when it is whole."""
    if output is None or output == "-":
        yield sys.stdout
        sys.stdout.flush()  # before words about it
        return
    path = Path(output)
    try:
        with tempfile.NamedTemporaryFile(
            "w", encoding="utf-8", dir=path.parent, prefix=f".{path.name}.", delete=False
        ) as file:
            try:
                yield file
                file.flush()
                if path.exists():  # else it is for its owner only: headers may hold secrets
                    Path(file.name).chmod(path.stat().st_mode & 0o777)
                os.replace(file.name, path)
            except BaseException:
                Path(file.name).unlink(missing_ok=True)
                raise
    except OSError as error:
        raise Usage(f"cannot write {output}: {error.strerror}") from None


def _tell_keyless(call: Call, keyless: list[str]) -> int:
    if not keyless:
        return 0
    sys.stderr.write(f"left out: {plural(len(keyless), 'job')} without a key, which apply needs\n")
    for words in keyless[:MOST_TOLD]:
        sys.stderr.write(f"  {clean(words)}\n")
    if len(keyless) > MOST_TOLD:
        sys.stderr.write(f"  and {len(keyless) - MOST_TOLD:,} more\n")
    sys.stderr.write(
        "give them one: hourhand jobs update JOB --key KEY, or all: hourhand export --assign-keys\n"
    )
    return FINDINGS
