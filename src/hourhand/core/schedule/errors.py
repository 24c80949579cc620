"""What is wrong with a schedule, said so that a person can mend it.

Each error names the part, what was got, what is allowed and, where it is easy, what was probably meant.
"""

from collections.abc import Iterable
from difflib import get_close_matches


class ScheduleError(ValueError):
    """A schedule that cannot be accepted."""

    def __init__(self, field: str, value: object, allowed: str, hint: str | None = None) -> None:
        self.field = field
        self.value = value
        self.allowed = allowed
        self.hint = hint
        message = f"{field}: got {shorten(value)}, expected {allowed}"
        super().__init__(f"{message}; {hint}" if hint else message)


class NeverMatchesError(ScheduleError):
    """Every part is well formed, but no date has them all."""


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that was probably meant, whatever the case it was written in."""
    by_lower = {name.lower(): name for name in known}
    found = get_close_matches(word.lower(), by_lower, n=1, cutoff=0.6)
    return by_lower[found[0]] if found else None


def shorten(value: object) -> str:
    """A value as it may be shown in a message."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
