"""A clock that stands still, and whoever knows people by it."""

import pytest

from hourhand.clock import ManualClock
from hourhand.identity.jwks import Keyring
from hourhand.identity.jwt import JwtAuthenticator
from tests.identity.issuer import Published, authenticator


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def published() -> Published:
    return Published()


@pytest.fixture
def people(clock: ManualClock, published: Published) -> JwtAuthenticator:
    """Takes tokens of the secret and of three published keys."""
    return authenticator(clock, ring=Keyring(published, clock))
