"""`import crontab`: reads crontabs where they are, writes the jobs as a file to look at, or applies them."""

import getpass
import os
import pwd
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from hourhand.cli.failures import FINDINGS, Usage
from hourhand.cli.files.applying import Wish, apply_wanted
from hourhand.cli.files.crontab import Crontab, Reading, read_crontab
from hourhand.cli.files.documents import FileJob, Wanted
from hourhand.cli.files.exporting import opened
from hourhand.cli.files.refusals import refused_by_limits, refused_by_server
from hourhand.cli.files.yaml_text import yaml_block
from hourhand.cli.options import Call
from hourhand.cli.output import Form
from hourhand.cli.progress import Progress
from hourhand.cli.text import clean, plural, shortened

MAX_BYTES = 16 * 1024 * 1024
SYSTEM = (Path("/etc/crontab"), Path("/etc/cron.d"))
_LISTING_S = 30
_USUAL_USERS = ("root", "www-data", "nobody")


@dataclass(frozen=True, slots=True, kw_only=True)
class Import:
    """What the command line asks for."""

    file: str | None = None
    user: bool = False
    system: bool = False
    as_user: str | None = None
    tz: str | None = None
    set_name: str = "crontab"
    output: str | None = None
    apply: bool = False
    lenient: bool = False


def run_import(call: Call, asked: Import) -> int:
    """Read, tell what cannot be carried over, and write or apply the rest; the exit code."""
    if sum((asked.file is not None, asked.user, asked.system and asked.file is None)) != 1:
        raise Usage(
            "say what to import: a FILE or -, --user for your own crontab, or --system for /etc/crontab"
        )
    if asked.apply and asked.output:
        raise Usage("give either --output or --apply")
    told = call.out.form is Form.PEOPLE
    crontab = _read(asked, told=told)
    if not asked.apply:
        crontab.leave_out(refused_by_limits(_wanted(asked, crontab), told=told))
    elif asked.lenient or not crontab.findings:
        crontab.leave_out(refused_by_server(call.client, _wanted(asked, crontab)))
    for finding in crontab.findings if asked.apply or call.out.form is not Form.JSON else ():
        sys.stderr.write(clean(str(finding)) + "\n")
    blocked = bool(crontab.findings) and not asked.lenient
    if asked.apply:
        if blocked:
            sys.stderr.write("nothing was applied; --lenient applies the others\n")
            return FINDINGS
        wanted, wish = _wanted(asked, crontab), Wish(set_name=asked.set_name)
        return apply_wanted(call, wanted, wish, dry_run=call.dry_run)
    if call.out.form in (Form.JSON, Form.LINES):
        call.out.document(_document(asked, crontab), None, lambda: None)
    elif call.out.form is Form.IDS and not asked.output:
        for job in crontab.jobs:
            call.out.line(str(job.document["key"]))
    else:
        with opened(asked.output) as file:
            _write(file, asked, crontab)
    call.out.note(f"{plural(len(crontab.jobs), 'job')}, {plural(len(crontab.findings), 'finding')}")
    return FINDINGS if blocked else 0


def _read(asked: Import, *, told: bool) -> Crontab:
    crontab = Crontab()
    user = asked.as_user or getpass.getuser()
    reading = Reading(
        tz=asked.tz or local_zone(),
        prefix=asked.set_name,
        user=user if asked.system else None,
        home=_home(user) if asked.user or asked.system or asked.as_user else None,
        is_user=None if asked.user or asked.system else looks_like_user,
    )
    with Progress("read", wanted=told) as progress:
        for name, text in _texts(asked):
            read_crontab(name, progress.each(text.split("\n")), reading, crontab)
    return crontab


def _texts(asked: Import) -> list[tuple[str, str]]:
    if asked.user:
        return [("crontab", _own_crontab(asked.as_user))]
    if asked.file == "-":
        return [("stdin", _decoded(sys.stdin.buffer.read(MAX_BYTES + 1), "stdin"))]
    if asked.file is not None:
        return [(asked.file, _file(Path(asked.file)))]
    single, folder = SYSTEM
    found = [single] if single.exists() else []
    # cron itself passes over names with a dot, such as those that packages leave behind
    found += sorted(one for one in folder.glob("*") if one.is_file() and "." not in one.name)
    if not found:
        raise Usage(f"there is neither {single} nor a file in {folder}")
    return [(str(path), _file(path)) for path in found]


def _own_crontab(user: str | None) -> str:
    of = ["-u", user] if user else []
    try:
        listed = subprocess.run(["crontab", *of, "-l"], capture_output=True, timeout=_LISTING_S, check=False)  # noqa: S603, S607 -- the person's own
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Usage(f"cannot run crontab -l: {error}") from None
    if listed.returncode:
        raise Usage(f"crontab -l: {listed.stderr.decode(errors='replace').strip() or 'failed'}")
    return _decoded(listed.stdout, "crontab")


def _file(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return _decoded(file.read(MAX_BYTES + 1), str(path))
    except OSError as error:
        raise Usage(f"cannot read {path}: {error.strerror}") from None


def _decoded(data: bytes, name: str) -> str:
    if len(data) > MAX_BYTES:
        raise Usage(f"{name} is larger than {MAX_BYTES:,} bytes")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise Usage(f"{name}:{line}: is not UTF-8") from None


def local_zone() -> str:
    """The zone of this machine, in which cron reads times; UTC where it cannot be told."""
    named = os.environ.get("TZ", "").removeprefix(":")
    if not named:
        target = os.path.realpath("/etc/localtime")
        named = target.partition("/zoneinfo/")[2].removeprefix("posix/")
    from hourhand.core.schedule import ScheduleError, parse_cron

    try:
        parse_cron("0 0 * * *", tz=named or "UTC")
    except ScheduleError:
        return "UTC"
    return "UTC" if named in ("", "Etc/UTC", "UCT", "Zulu") else named


def looks_like_user(word: str) -> bool:
    """Whether a command's first word is surely a user, as in /etc/crontab; others may well be called like a command."""
    return word in _USUAL_USERS


def _home(user: str) -> str | None:
    try:
        return pwd.getpwnam(user).pw_dir
    except KeyError:
        return None


def _wanted(asked: Import, crontab: Crontab) -> Wanted:
    wanted = Wanted(sets={asked.set_name: "crontab"})
    for job in crontab.jobs:
        key = str(job.document["key"])
        document = {**job.document, "set": asked.set_name}
        wanted.jobs[key] = FileJob(key=key, document=document, file=job.file, line=job.line)
    return wanted


def _write(file: IO[str], asked: Import, crontab: Crontab) -> None:
    """Jobs with the line that each was, to be looked at."""
    file.writelines(yaml_block({"set": asked.set_name}))
    file.write("jobs:\n" if crontab.jobs else "jobs: []\n")
    for job in crontab.jobs:
        file.write(f"# line {job.line}: {clean(shortened(job.text, 200))}\n")
        file.writelines(yaml_block([dict(job.document)]))


def _document(asked: Import, crontab: Crontab) -> dict[str, Any]:
    return {
        "set": asked.set_name,
        "jobs": [dict(job.document) for job in crontab.jobs],
        "findings": [
            {"file": one.file, "line": one.line, "text": one.text, "reason": one.reason}
            for one in crontab.findings
        ],
    }
