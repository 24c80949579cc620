"""A real Chromium on one `hourhand up`: the command for the whole run, the browser for a module, a context for a test.

The browser lives as long as a module and no longer: playwright's plain interface keeps a loop in this thread, which
would be in the way of other folders' tests.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, expect, sync_playwright

from tests.browser.chromium import launch_options
from tests.browser.server import Server
from tests.browser.tab import WAIT_MS, Tab
from tests.servers.machine import Unavailable, skip_or_fail

CONTEXT = {
    "viewport": {"width": 1440, "height": 900},
    "locale": "en-GB",
    "timezone_id": "Europe/Berlin",
    "reduced_motion": "reduce",
}

expect.set_options(timeout=WAIT_MS)


@pytest.fixture(scope="module")
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


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The command that all tests share; each makes jobs of its own."""
    running = Server(tmp_path_factory.mktemp("browser")).start()
    yield running
    running.kill()


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[Server]:
    """A command without jobs, for one test to stop and start."""
    running = Server(tmp_path).start()
    yield running
    running.kill()


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


@pytest.fixture
def tab(make_tab: Callable[..., Tab], server: Server) -> Tab:
    """One tab on the shared server."""
    return make_tab(server)


@pytest.fixture
def own_tab(own_server: Server, make_tab: Callable[..., Tab]) -> Tab:
    """One tab on a server of its own, which outlives it."""
    return make_tab(own_server)
