"""What is wrong in files: each fault with its file, line and field, all of them told at once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hourhand.cli.text import plural
from hourhand.errors import Invalid

MOST_TOLD = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class FileFault:
    """One thing that is wrong, and where."""

    file: str
    line: int | None
    field: str
    words: str

    def __str__(self) -> str:
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        return f"{place}: {self.field}: {self.words}" if self.field else f"{place}: {self.words}"


class FileFaults(Invalid):
    """Everything that is wrong in some files."""

    def __init__(self, faults: Sequence[FileFault], done: str = "nothing was applied") -> None:
        faults = sorted(faults, key=lambda fault: (fault.file, fault.line or 0))
        told = [f"  {fault}" for fault in faults[:MOST_TOLD]]
        if len(faults) > MOST_TOLD:
            told.append(f"  and {len(faults) - MOST_TOLD:,} more")
        super().__init__("\n".join([f"{plural(len(faults), 'fault')}; {done}", *told]))
        self.found = tuple(faults)
        self.problem = {
            "type": "about:blank",
            "title": "Invalid",
            "status": self.status,
            "code": self.code,
            "detail": f"{plural(len(faults), 'fault')}; {done}",
            "retryable": False,
            "errors": [
                {"file": one.file, "line": one.line, "field": one.field, "detail": one.words}
                for one in faults
            ],
        }


def words_of(error: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Pointer and words of each fault in a problem of the API."""
    faults = error.get("errors") or ()
    found = []
    for fault in faults:
        got = f", got {fault['got']}" if fault.get("got") else ""
        hint = f"; {fault['hint']}" if fault.get("hint") else ""
        found.append((fault.get("pointer") or "", f"expected {fault['expected']}{got}{hint}"))
    return found or [("", str(error.get("detail") or error.get("title")))]
