"""A real Chromium on one `hourhand up`: the command for the whole run, the browser and its first tab for this folder.

The browser lives as long as tests of this folder follow each other and no longer: playwright's plain interface keeps
a loop in this thread, which would be in the way of other folders' tests. That is why the folder is a package.

Most tests take turns at one tab, since a context of its own for each would start with an empty cache: it would load
and compile the whole page again. Between two of them the tab is made as new.
"""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, expect, sync_playwright

from tests.browser.chromium import launch_options
from tests.browser.server import Server
from tests.browser.tab import VIEWPORT, WAIT_MS, Tab
from tests.servers.machine import Unavailable, skip_or_fail

CONTEXT = {
    "viewport": VIEWPORT,
    "locale": "en-GB",
    "timezone_id": "Europe/Berlin",
    "reduced_motion": "reduce",
}

expect.set_options(timeout=WAIT_MS)


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """A Chromium."""
    try:
        options: dict[str, Any] = launch_options()
    except Unavailable as error:
        skip_or_fail(str(error))
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(**options)
        yield chromium
        chromium.close()


@contextlib.contextmanager
def serving(folder: Path) -> Iterator[Server]:
    """The command until it is no longer needed; one that does not get ready in time is ended as well."""
    running = Server(folder)
    try:
        yield running.start()
    finally:
        running.kill()


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The command that all tests share; each makes jobs of its own."""
    with serving(tmp_path_factory.mktemp("browser")) as running:
        yield running


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[Server]:
    """A command without jobs, for one test to stop and start."""
    with serving(tmp_path) as running:
        yield running


@pytest.fixture
def make_tab(browser: Browser) -> Iterator[Callable[..., Tab]]:
    """Makes tabs, each in a context of its own with what is special about it; none may have gone wrong."""
    made: list[tuple[BrowserContext, Tab]] = []

    def make(server: Server, **more: Any) -> Tab:
        context = browser.new_context(**{**CONTEXT, **more})
        made.append((context, Tab(context, server)))
        return made[-1][1]

    yield make
    for context, _ in made:
        context.close()
    for _, tab in made:
        tab.guard.check()


@pytest.fixture(scope="package")
def common_tab(browser: Browser, server: Server) -> Iterator[Tab]:
    """The tab that tests take turns at."""
    context = browser.new_context(**CONTEXT)
    yield Tab(context, server)
    context.close()


@pytest.fixture
def tab(common_tab: Tab) -> Iterator[Tab]:
    """A tab on the shared server, as new; nothing may have gone wrong in it."""
    common_tab.guard.renew()
    yield common_tab
    common_tab.leave()
    common_tab.guard.check()


@pytest.fixture
def own_tab(own_server: Server, make_tab: Callable[..., Tab]) -> Tab:
    """One tab on a server of its own, which outlives it."""
    return make_tab(own_server)
