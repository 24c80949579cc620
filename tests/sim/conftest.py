"""Machines die in these tests; what they leave behind goes with each."""

from pathlib import Path

import pytest

from tests.sim.burying import buried, excuse

__all__ = ["buried"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    excuse(items, Path(__file__).parent)
