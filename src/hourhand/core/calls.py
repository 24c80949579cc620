"""The headers of a call as its receiver holds them: every framework has a kind of its own, in any case.

Pure, and shared by those who verify a call and those who report on it.
"""

from collections.abc import Iterable
from typing import Protocol

RUN_HEADER = "webhook-id"  # what the signature covers; Idempotency-Key says the same without proof
ATTEMPT_HEADER = "hourhand-attempt"


class Headers(Protocol):
    """Names and values: a dict, or the headers of a request in any framework."""

    def items(self) -> Iterable[tuple[str, str]]:
        """Every name with its value."""
        ...


def by_lower_name(headers: Headers) -> dict[str, str]:
    """The same by names in lower case."""
    return {name.lower(): value for name, value in headers.items()}
