"""A fresh world per test."""

import pytest

from tests.services.world import World


@pytest.fixture
def world() -> World:
    return World()
