"""What was found at another scheduler: jobs that can be carried over, and by name what cannot, or not all of it."""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hourhand.core.specification import MAX_NAME

MAX_DEPTH = 60
_KEY_WORD = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Carried:
    """An entry that became a job."""

    place: str
    document: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """What of an entry is lost; `left_out`: there is no job of it at all."""

    place: str
    reason: str
    left_out: bool = False

    def __str__(self) -> str:
        return f"{self.place}: {'left out: ' if self.left_out else ''}{self.reason}"


@dataclass(slots=True)
class Found:
    """Everything that was found in one place."""

    source: str
    jobs: list[Carried] = field(default_factory=list)
    losses: list[Loss] = field(default_factory=list)

    def lose(self, place: str, reason: str, *, left_out: bool = False) -> None:
        """Note what is lost of an entry."""
        self.losses.append(Loss(place=place, reason=reason, left_out=left_out))

    def keep_first(self) -> None:
        """Of entries with the same key only the first becomes a job."""
        first: dict[str, Carried] = {}
        for job in self.jobs:
            kept = first.setdefault(str(job.document["key"]), job)
            if kept is not job:
                self.lose(job.place, f"{kept.place} has the same key and is imported", left_out=True)
        self.jobs = list(first.values())

    def leave_out(self, refused: Mapping[str, str]) -> None:
        """Note why jobs, by their key, are refused, and carry them no further."""
        for job in self.jobs:
            if job.document["key"] in refused:
                self.lose(job.place, refused[job.document["key"]], left_out=True)
        self.jobs = [job for job in self.jobs if job.document["key"] not in refused]


class LeftOut(Exception):
    """An entry of which no job can be made, and why."""


def key_of(set_name: str, name: str) -> str:
    """A key that stays the same from one import to the next, and differs where names do."""
    word = re.sub(r"[^A-Za-z0-9_.:-]+", "-", name).strip("-")
    if word == name and len(word) <= _KEY_WORD:
        return f"{set_name}/{word}"
    digest = hashlib.sha256(name.encode("utf-8", "surrogateescape")).hexdigest()[:8]
    return f"{set_name}/{word[:_KEY_WORD] or 'job'}-{digest}"


def label_of(name: str) -> str:
    """A name as a job may have it."""
    words = re.sub(r"[\x00-\x1f\x7f]", " ", name)
    return words if len(words) <= MAX_NAME else words[: MAX_NAME - 1] + "…"


def plain(value: Any, what: str, depth: int = 0) -> Any:
    """A value that JSON has, tuples as lists; LeftOut names what is none."""
    if depth > MAX_DEPTH:
        raise LeftOut(f"{what} is nested deeper than {MAX_DEPTH} levels")
    match value:
        case None | bool() | int() | str():
            return value
        case float() if value == value and abs(value) != float("inf"):
            return value
        case list() | tuple():
            return [plain(one, what, depth + 1) for one in value]
        case dict() if all(isinstance(name, str) for name in value):
            return {name: plain(one, what, depth + 1) for name, one in value.items()}
    kind = getattr(value, "made_of", None) or f"{type(value).__module__}.{type(value).__qualname__}"
    raise LeftOut(f"{what} holds {kind.removeprefix('builtins.')}, which JSON has not")
