"""A receiver's database, and each driver that it may be reached by."""

from pathlib import Path

import pytest

from tests.receiver.receivers import ON_POSTGRES, ON_SQLITE, Receiver, prepare

KINDS = [*(("sqlite", name) for name in ON_SQLITE), *(("postgres", name) for name in ON_POSTGRES)]


@pytest.fixture(params=KINDS, ids=lambda kind: f"{kind[0]}: {kind[1]}")
def kind(request: pytest.FixtureRequest) -> tuple[str, str]:
    return request.param


@pytest.fixture
def url(kind: tuple[str, str], request: pytest.FixtureRequest, tmp_path: Path) -> str:
    on_sqlite = kind[0] == "sqlite"
    found = str(tmp_path / "receiver.db") if on_sqlite else request.getfixturevalue("postgres_url")
    prepare(found)
    return found


@pytest.fixture
def receive(kind: tuple[str, str]) -> Receiver:
    return (ON_SQLITE if kind[0] == "sqlite" else ON_POSTGRES)[kind[1]]
