"""What a simulated machine leaves behind when it dies goes here, with the test that killed it."""

import gc
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

_NEVER_AWAITED = "ignore:coroutine .* was never awaited:RuntimeWarning"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Nor is it a fault of the test itself."""
    for item in items:
        if item.path.parent == Path(__file__).parent:
            item.add_marker(pytest.mark.filterwarnings(_NEVER_AWAITED))


@pytest.fixture(autouse=True)
def _buried() -> Iterator[None]:
    """A machine that dies at an await never awaits the rest; that is no fault of whichever test comes next."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        gc.collect()
