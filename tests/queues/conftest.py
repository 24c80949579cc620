"""A fresh world per test, as the services have it."""

import pytest

from tests.services.world import World


@pytest.fixture
def world() -> World:
    return World()
