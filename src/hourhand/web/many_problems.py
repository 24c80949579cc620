"""The problems of many documents in one answer, within bounds: what is wrong with a request must not outgrow it.

Of each document a few faults are told; once a thousand were refused, of the others status and code alone. They are kept
as the bytes that go out.
"""

import msgspec

from hourhand.errors import HourhandError
from hourhand.web.problems import problem_of

MOST_TOLD = 1_000  # documents of a request
MOST_FAULTS = 5  # of each


class ManyProblems:
    """The problems of one answer."""

    def __init__(self, request_id: str | None) -> None:
        self._request_id = request_id
        self._told = 0
        self._untold: dict[tuple[int, str], msgspec.Raw] = {}

    def told(self, error: HourhandError) -> msgspec.Raw:
        """The problem of the next document, encoded."""
        self._told += 1
        if self._told <= MOST_TOLD:
            problem = problem_of(error, self._request_id)
            return _encoded({**problem, "errors": problem["errors"][:MOST_FAULTS]})
        kind = (error.status, error.code)
        if kind not in self._untold:
            detail = f"refused like {MOST_TOLD:,} documents before it, whose problems are told whole"
            problem = problem_of(error, self._request_id)
            self._untold[kind] = _encoded({**problem, "detail": detail, "errors": []})
        return self._untold[kind]


def _encoded(problem: dict[str, object]) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(problem))
