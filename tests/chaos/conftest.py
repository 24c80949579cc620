"""Fixtures of the chaos tests: a sink, and lives of the real command; a failure shows what they said."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.chaos.process import SinkProcess, Up

_SHOWN = 4_000  # of each log, when a test fails


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Put the ends of all logs beside a failure, and say where the whole of them is."""
    report = yield
    folder = getattr(item, "funcargs", {}).get("tmp_path")
    if report.failed and isinstance(folder, Path):
        for log in sorted(folder.rglob("*.log")):
            report.sections.append((f"end of {log}", log.read_text(errors="replace")[-_SHOWN:]))
    return report


@pytest.fixture
def sink(tmp_path: Path) -> Iterator[SinkProcess]:
    """A sink of the test's own."""
    process = SinkProcess(tmp_path).start()
    yield process
    process.kill()


@pytest.fixture
def make_up(tmp_path: Path) -> Iterator[Callable[..., Up]]:
    """Makes commands that are gone when the test is over."""
    made: list[Up] = []

    def make(folder: Path = tmp_path, **options: object) -> Up:
        made.append(Up(folder, **options))
        return made[-1]

    yield make
    for up in made:
        up.kill()


@pytest.fixture
def up(make_up: Callable[..., Up]) -> Up:
    """One command with everything at its default, not yet started."""
    return make_up()


@pytest.fixture(scope="module")
def shared_up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """One running command for all tests of a module that do it no harm."""
    up = Up(tmp_path_factory.mktemp("shared")).start()
    yield up
    up.kill()


@pytest.fixture(scope="module")
def shared_sink(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SinkProcess]:
    """One sink beside the shared command."""
    process = SinkProcess(tmp_path_factory.mktemp("sink")).start()
    yield process
    process.kill()
