"""What a simulated machine leaves behind when it dies is buried with the test that killed it.

A machine that dies at an await never awaits the rest: that is no fault of the test, nor of whichever comes next.
"""

import gc
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

_NEVER_AWAITED = "ignore:coroutine .* was never awaited:RuntimeWarning"


def excuse(items: Iterable[pytest.Item], folder: Path) -> None:
    """Let the tests of a folder leave coroutines unfinished."""
    for item in items:
        if item.path.parent == folder:
            item.add_marker(pytest.mark.filterwarnings(_NEVER_AWAITED))


@pytest.fixture(autouse=True)
def buried() -> Iterator[None]:
    """Collect what is left right after each test."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        gc.collect()
