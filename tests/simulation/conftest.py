"""What a simulated machine leaves behind when it dies goes here, with the test that killed it."""

import gc
import warnings
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def _buried() -> Iterator[None]:
    """A machine that dies at an await never awaits the rest; that is no fault of whichever test comes next."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        gc.collect()
