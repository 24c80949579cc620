"""`import celery-beat` and `import apscheduler`: tell what is lost, and write the jobs as a file to look at, or apply them."""

import sys
from dataclasses import dataclass
from typing import IO, Any

from hourhand.cli.failures import FINDINGS, Usage
from hourhand.cli.files.applying import Wish, apply_wanted
from hourhand.cli.files.documents import MAX_JOBS, FileJob, Wanted
from hourhand.cli.files.exporting import opened
from hourhand.cli.files.foreign.databases import shown
from hourhand.cli.files.foreign.found import Found
from hourhand.cli.files.refusals import refused_by_limits, refused_by_server
from hourhand.cli.files.yaml_text import yaml_block
from hourhand.cli.options import Call
from hourhand.cli.output import Form
from hourhand.cli.progress import Progress
from hourhand.cli.text import clean, plural, shortened


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanting:
    """What the command line asks for, of whichever scheduler."""

    source: str
    set_name: str
    output: str | None = None
    apply: bool = False
    lenient: bool = False


def import_celery_beat(call: Call, asked: Wanting, via_celery: str | None) -> int:
    """Read the entries of a beat, and write or apply them; the exit code."""
    from hourhand.cli.files.foreign.celery_entries import carry_entries
    from hourhand.cli.files.foreign.celery_sources import read_entries

    found = Found(source=shown(asked.source))
    with Progress("read", wanted=call.out.form is Form.PEOPLE) as progress:
        entries = read_entries(asked.source, call.tz, found)
        carry_entries(progress.each(entries), found, asked.set_name, via_celery)
    return _finish(call, asked, found)


def import_apscheduler(call: Call, asked: Wanting, table: str) -> int:
    """Read the jobs of a job store, and write or apply them; the exit code."""
    from hourhand.cli.files.foreign.apscheduler import carry_jobs

    found = Found(source=shown(asked.source))
    with Progress("read", wanted=call.out.form is Form.PEOPLE) as progress:
        carry_jobs(asked.source, table, asked.set_name, found, progress)
    return _finish(call, asked, found)


def _finish(call: Call, asked: Wanting, found: Found) -> int:
    if asked.apply and asked.output:
        raise Usage("give either --output or --apply")
    if len(found.jobs) > MAX_JOBS:
        raise Usage(f"there are {len(found.jobs):,} jobs; at most {MAX_JOBS:,} can be imported at once")
    found.keep_first()
    if not asked.apply:
        found.leave_out(refused_by_limits(_wanted(asked, found), told=call.out.form is Form.PEOPLE))
    elif asked.lenient or not found.losses:
        found.leave_out(refused_by_server(call.client, _wanted(asked, found)))
    for loss in found.losses if asked.apply or call.out.form is not Form.JSON else ():
        sys.stderr.write(clean(str(loss)) + "\n")
    blocked = bool(found.losses) and not asked.lenient
    if asked.apply:
        if blocked:
            sys.stderr.write("nothing was applied; --lenient applies the others\n")
            return FINDINGS
        wanted, wish = _wanted(asked, found), Wish(set_name=asked.set_name)
        return apply_wanted(call, wanted, wish, dry_run=call.dry_run)
    if call.out.form in (Form.JSON, Form.LINES):
        call.out.document(_document(asked, found), None, lambda: None)
    elif call.out.form is Form.IDS and not asked.output:
        for job in found.jobs:
            call.out.line(str(job.document["key"]))
    else:
        with opened(asked.output) as file:
            _write(file, asked, found)
    call.out.note(f"{plural(len(found.jobs), 'job')}, {plural(len(found.losses), 'finding')}")
    return FINDINGS if blocked else 0


def _wanted(asked: Wanting, found: Found) -> Wanted:
    wanted = Wanted(sets={asked.set_name: found.source})
    for job in found.jobs:
        key = str(job.document["key"])
        document = {**job.document, "set": asked.set_name}
        wanted.jobs[key] = FileJob(key=key, document=document, file=job.place, line=0)
    return wanted


def _write(file: IO[str], asked: Wanting, found: Found) -> None:
    """Jobs with the entry that each was, to be looked at."""
    file.writelines(yaml_block({"set": asked.set_name}))
    file.write("jobs:\n" if found.jobs else "jobs: []\n")
    for job in found.jobs:
        file.write(f"# {clean(shortened(job.place, 200))}\n")
        file.writelines(yaml_block([dict(job.document)]))


def _document(asked: Wanting, found: Found) -> dict[str, Any]:
    return {
        "set": asked.set_name,
        "jobs": [dict(job.document) for job in found.jobs],
        "findings": [
            {"place": one.place, "reason": one.reason, "left_out": one.left_out} for one in found.losses
        ],
    }
