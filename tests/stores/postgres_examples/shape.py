"""What an example is, and the keys that many examples ask for."""

from collections.abc import Sequence
from typing import Any, NamedTuple

FEW = 500  # by key, or a page; rows that earlier examples left behind are met too
PAGE = 50
JOB = 100_002
JOB_IDS = list(range(JOB, JOB + 100))
FOREVER = (1 << 63) - 1
PLACES = list(range(100))
HELD = [n * 3 for n in range(201, 301)]  # jobs with a run in slot 0, most of them executing
LANES = list(range(128, 192))


class Example(NamedTuple):
    """Parameters as the store gives them, and the most rows that any part of the plan may handle."""

    parameters: Sequence[Any] | dict[str, Any] = ()
    most: int = FEW
    why: str = ""  # it may handle more than a few


A_CLASS = "a hundred of each of 64 lanes"
