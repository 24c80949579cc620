"""Crontabs as jobs: which lines there are, what each becomes, and by line what cannot be carried over. Pure.

Follows Debian's cron: variables hold for the lines below them, a comment right above a line is its name, `%` ends
the command and begins its stdin. What is lost is never lost silently: it is a `Finding`.
"""

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from hourhand.cli.text import shortened
from hourhand.core.schedule import ScheduleError, parse_cron
from hourhand.core.specification import MAX_NAME

MAX_LINES = 100_000
_VARIABLE = re.compile(r"""\s*(?:"([^"]+)"|'([^']+)'|([A-Za-z_][A-Za-z0-9_]*))\s*=\s*(.*?)\s*""")
_FIELDS = re.compile(r"\s*(?:(@\S+)|(-?\S+(?:\s+\S+){4}))\s+(\S.*?)\s*")
_FIELDS_ONLY = re.compile(r"\s*(?:@\S+|-?\S+(?:\s+\S+){0,4})\s*")
_POSIX_SHELLS = ("sh", "bash", "dash", "ash", "ksh", "mksh", "zsh")
_OF_CRON = {
    "MAILTO": "hourhand sends no mail: what a run prints is in its log, and dead letters keep what failed",
    "MAILFROM": "hourhand sends no mail",
    "CONTENT_TYPE": "hourhand sends no mail",
    "CONTENT_TRANSFER_ENCODING": "hourhand sends no mail",
    "RANDOM_DELAY": "give the jobs a jitter of up to 30s instead",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A line that cannot be carried over, or not all of it, and why."""

    file: str
    line: int
    text: str
    reason: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {shortened(self.text, 200)}: {self.reason}"


@dataclass(frozen=True, slots=True, kw_only=True)
class CronJob:
    """A line that became a job."""

    file: str
    line: int
    text: str
    document: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How a crontab is to be read: the zone of its times, and for /etc/crontab's form, whose lines count."""

    tz: str
    prefix: str = "crontab"
    user: str | None = None  # only lines of this user; None: there is no column for it
    home: str | None = None
    is_user: Callable[[str], bool] | None = (
        None  # names that tell a column for the user where none is expected
    )


@dataclass(slots=True)
class Crontab:
    """What became of a crontab."""

    jobs: list[CronJob] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)

    def leave_out(self, refused: Mapping[str, str]) -> None:
        """Note why jobs, by their key, are refused, and carry them no further."""
        for job in self.jobs:
            reason = refused.get(job.document["key"])
            if reason is not None:
                self.findings.append(Finding(file=job.file, line=job.line, text=job.text, reason=reason))
        self.jobs = [job for job in self.jobs if job.document["key"] not in refused]


def read_crontab(file: str, lines: Iterable[str], reading: Reading, found: Crontab | None = None) -> Crontab:
    """Each line as a job, or as a finding; `found` collects over several files."""
    crontab = found or Crontab()
    reader = _Reader(file, reading, crontab)
    for number, line in enumerate(lines, 1):
        reader.take(number, line.rstrip("\r\n"))
    return crontab


def split_command(text: str) -> tuple[str, str | None]:
    """A command and its stdin: an unescaped % ends the one, and is a new line in the other."""
    parts = re.split(r"(?<!\\)%", text)
    command, *rest = (part.replace("\\%", "%") for part in parts)
    return command.rstrip(), "\n".join(rest).removesuffix("\n") or None


class _Reader:
    def __init__(self, file: str, reading: Reading, crontab: Crontab) -> None:
        self._file = file
        self._reading = reading
        self._crontab = crontab
        self._env: dict[str, str] = {}
        self._tz = reading.tz
        self._comment: list[str] = []
        self._keys = {str(job.document["key"]) for job in crontab.jobs}

    def take(self, number: int, line: str) -> None:
        """The next line."""
        text = line.strip(" \t")
        if not text:
            self._comment = []
        elif text.startswith("#"):
            self._note(text.lstrip("# \t"))
        elif number > MAX_LINES:
            self._finding(number, text, f"only {MAX_LINES:,} lines are read")
        elif variable := _VARIABLE.fullmatch(line):
            self._set(number, text, variable)
            self._comment = []
        else:
            self._line(number, text)
            self._comment = []

    def _note(self, words: str) -> None:
        """A comment may name the line below; a line that was switched off does not."""
        fields = _FIELDS.fullmatch(words)
        if fields is not None and _expression_fault(_expression(fields), self._tz) is None:
            self._comment = []
        elif words:
            self._comment.append(words)

    def _set(self, number: int, text: str, variable: re.Match[str]) -> None:
        name = variable[1] or variable[2] or variable[3]
        value = variable[4]
        if len(value) >= 2 and value[0] == value[-1] and value[0] in "\"'":
            value = value[1:-1]
        if name == "CRON_TZ":
            if fault := _expression_fault("0 0 * * *", value):
                self._finding(number, text, fault)
            else:
                self._tz = value
        elif name in _OF_CRON:
            if value:
                self._finding(number, text, _OF_CRON[name])
        else:
            self._env[name] = value

    def _line(self, number: int, text: str) -> None:
        fields = _FIELDS.fullmatch(text)
        if fields is None:
            few = "there is no command" if _FIELDS_ONLY.fullmatch(text) else "this is no line of a crontab"
            self._finding(number, text, few)
            return
        expression, command = _expression(fields), fields[3]
        if expression == "@reboot":
            self._finding(number, text, "hourhand's jobs run at times, not at boot; start it as a service")
            return
        if self._reading.user is not None:
            user, *rest = command.split(None, 1)
            if not rest:
                self._finding(number, text, "there is no command after the user")
                return
            command = rest[0]
            if user != self._reading.user:
                self._finding(number, text, _another_user(user))
                return
        elif self._looks_like_user(command):
            self._finding(number, text, _column_for_user(command.split()[0]))
            return
        if fault := _expression_fault(expression, self._tz):
            self._finding(number, text, fault)
            return
        self._job(number, text, expression, command.strip())

    def _looks_like_user(self, command: str) -> bool:
        word, *rest = command.split(None, 1)
        return bool(rest) and self._reading.is_user is not None and self._reading.is_user(word)

    def _job(self, number: int, text: str, expression: str, command: str) -> None:
        program, stdin = split_command(command)
        shell = self._env.get("SHELL", "/bin/sh")
        if not program:
            self._finding(number, text, "there is no command")
            return
        if stdin is not None and shell.rsplit("/", 1)[-1] not in _POSIX_SHELLS:
            self._finding(
                number, text, f"what follows % is its stdin, and {shell} has no here-document to give it"
            )
            return
        script = program if stdin is None else _with_stdin(program, stdin)
        env = {name: value for name, value in self._env.items() if name != "SHELL"}
        target: dict[str, Any] = {"type": "shell", "argv": [shell, "-c", script]}
        if env:
            target["env"] = env
        home = self._env.get("HOME", self._reading.home)
        if home:
            target["cwd"] = home
        document: dict[str, Any] = {
            "key": self._key(command),
            "name": self._name(program),
            "cron": expression,
        }
        if self._tz != "UTC":
            document["tz"] = self._tz
        document["target"] = target
        self._crontab.jobs.append(CronJob(file=self._file, line=number, text=text, document=document))

    def _key(self, command: str) -> str:
        """By the command, so that it stays when lines move or their times change."""
        words = re.findall(r"[A-Za-z0-9_.-]+", command.split()[0].rsplit("/", 1)[-1])
        word = "-".join(words)[:40] or "job"
        digest = hashlib.sha256(command.encode("utf-8", "surrogateescape")).hexdigest()[:8]
        key = base = f"{self._reading.prefix}/{word}-{digest}"
        again = 1
        while key in self._keys:
            again += 1
            key = f"{base}-{again}"
        self._keys.add(key)
        return key

    def _name(self, program: str) -> str:
        words = re.sub(r"[\x00-\x1f\x7f]", " ", " ".join(self._comment) or program)
        return words if len(words) <= MAX_NAME else words[: MAX_NAME - 1] + "…"

    def _finding(self, number: int, text: str, reason: str) -> None:
        self._crontab.findings.append(Finding(file=self._file, line=number, text=text, reason=reason))


def _expression(fields: re.Match[str]) -> str:
    """The five fields, or the nickname; a minus in front only keeps cron from logging."""
    return fields[1] or " ".join(fields[2].removeprefix("-").split())


def _expression_fault(expression: str, tz: str) -> str | None:
    try:
        parse_cron(expression, tz=tz)
    except ScheduleError as error:
        return str(error)
    return None


def _another_user(user: str) -> str:
    return f"it is {user}'s, and a worker runs commands as its own user; import it with --as {user} for a worker of theirs"


def _column_for_user(user: str) -> str:
    return f"{user} is a user, no command; a crontab with a column for the user is imported with --system"


def _with_stdin(program: str, stdin: str) -> str:
    """The command with its stdin as a here-document, whose end is no line of it."""
    end = "END_OF_STDIN"
    while end in stdin.split("\n"):
        end += "_"
    return f"{{ {program}\n}} <<'{end}'\n{stdin}\n{end}\n"
