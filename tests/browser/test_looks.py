"""Every view: nothing for axe to find in either theme, and no scrolling sideways from a phone to a wall."""

from collections.abc import Callable
from typing import Literal

import pytest
from playwright.sync_api import Page, expect

from tests.browser.axe import violations
from tests.browser.server import Server
from tests.browser.tab import Tab

WIDTHS = (360, 768, 1440, 3840)
THEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
# A message may have gone by itself before anybody can press its button.
DISMISS = "document.querySelectorAll('.toast [aria-label=Dismiss]').forEach((one) => one.click())"
STICKING_OUT = """() => { const root = document.documentElement; if (root.scrollWidth <= root.clientWidth) return [];
  return [...document.querySelectorAll('body *')].filter((one) => one.getBoundingClientRect().right > root.clientWidth + 1)
    .map((one) => one.outerHTML.slice(0, 100)).slice(0, 5).concat(`${root.scrollWidth} > ${root.clientWidth}`); }"""


@pytest.fixture(scope="module")
def views(server: Server) -> dict[str, tuple[str, str]]:
    """Every view's address, and what it shows once it is there."""
    job = server.job(
        "seen everywhere", tags=["a", "b"], cron="30 2 * * *", tz="Europe/Berlin", payload={"a": [1, 2]}
    )
    runs = [server.run(job) for _ in range(3)]
    failed = server.dead_letter("seen failing", "the other side hung up")
    paused = server.job("seen paused", paused=True, note="for a reason")
    cause = server.api.expect(200, "GET", "/dead-letters?group_by=error")["data"][0]["value"]
    return {
        "now": ("/", ".figures"),
        "jobs": ("/jobs?name=seen", "tbody tr svg.strip"),
        "nothing": ("/jobs?name=nobody-has-this", ".nothing"),
        "job": (f"/jobs/{job}", ".chart canvas"),
        "paused": (f"/jobs/{paused}", ".note.warn"),
        "create": ("/jobs/new", ".preview .times"),
        "edit": (f"/jobs/{job}/edit", ".preview .words"),
        "run": (f"/runs/{runs[0]}", ".timeline"),
        "failed run": (f"/runs/{failed}", ".note.fail"),
        "dead letters": ("/dead-letters", ".groups"),
        "one cause": (f"/dead-letters?error={cause}", "table.letters"),
        "lost": ("/jobs/a/b/c", "h1"),
    }


NAMES = ["now", "jobs", "nothing", "job", "paused", "create", "edit", "run", "failed run", "dead letters", "one cause", "lost"]  # fmt: skip


def look_at(tab: Tab, view: tuple[str, str]) -> Page:
    page = tab.open(view[0])
    expect(page.locator(view[1]).first).to_be_visible()
    return page


def assert_axe_finds_nothing(page: Page) -> None:
    """In either theme."""
    for theme in THEMES:
        page.emulate_media(color_scheme=theme)
        assert violations(page) == [], theme


def assert_nothing_scrolls_sideways(page: Page) -> None:
    """From a phone to a wall."""
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate(STICKING_OUT) == [], f"at {width} px"


@pytest.mark.parametrize("name", NAMES)
def test_axe_finds_nothing_and_nothing_scrolls_sideways(
    tab: Tab, views: dict[str, tuple[str, str]], name: str
) -> None:
    page = look_at(tab, views[name])
    assert_axe_finds_nothing(page)
    assert_nothing_scrolls_sideways(page)


def test_axe_finds_nothing_in_dialogs_and_messages(tab: Tab, server: Server) -> None:
    job = server.job("asked about")
    page = tab.open(f"/jobs/{job}")
    for key in ("?", "p"):
        expect(page.get_by_role("heading", name="asked about")).to_be_visible()
        tab.press(key)
        expect(page.get_by_role("dialog")).to_be_visible()
        assert_axe_finds_nothing(page)
        tab.press("Escape")
        expect(page.get_by_role("dialog")).to_have_count(0)
    for theme in THEMES:  # a message goes by itself, so that each theme has its own
        page.emulate_media(color_scheme=theme)
        tab.press("r")
        tab.toast("Started")
        assert violations(page) == [], theme
        page.evaluate(DISMISS)
        expect(page.locator(".toast")).to_have_count(0)
    page = tab.open("/jobs?name=asked")
    page.get_by_label("Select all on this page").check()
    expect(page.get_by_role("region", name="Selected jobs")).to_be_visible()
    assert_axe_finds_nothing(page)
    tab.guard.allow("422")
    page = tab.open("/jobs/new")
    page.get_by_text("Policies and limits").click()
    page.get_by_role("button", name="Create the job").click()
    expect(page.locator(".field.wrong").first).to_be_visible()
    assert_axe_finds_nothing(page)


def test_the_themes_differ_and_the_switch_is_remembered(tab: Tab) -> None:
    page = tab.open("/")
    shade = "() => getComputedStyle(document.body).backgroundColor"
    page.emulate_media(color_scheme="dark")
    dark = page.evaluate(shade)
    page.emulate_media(color_scheme="light")
    assert page.evaluate(shade) != dark
    page.get_by_role("button", name="System theme").click()
    page.get_by_role("button", name="Light theme").click()
    assert page.evaluate(shade) == dark
    page.reload()
    expect(page.get_by_role("button", name="Dark theme")).to_be_visible()
    assert page.evaluate(shade) == dark


def test_on_a_phone_one_finds_every_view_and_action(make_tab: Callable[..., Tab], server: Server) -> None:
    job = server.job("by thumb")
    tab = make_tab(server, viewport={"width": 360, "height": 740}, has_touch=True, is_mobile=True)
    page = tab.open("/")
    below = page.get_by_role("navigation", name="Views, below")
    below.get_by_role("link", name="Jobs").tap()
    row = page.locator(f'tr[data-row="{job}"]')
    row.get_by_role("button", name="Run").tap()
    page.get_by_role("dialog").get_by_role("button", name="Run").tap()
    tab.toast("Started by thumb.")
    row.get_by_role("button", name="Pause").tap()
    page.get_by_role("dialog").get_by_role("button", name="Pause").tap()
    expect(row).to_contain_text("paused")
    below.get_by_role("link", name="Dead letters").tap()
    expect(page).to_have_url(f"{server.url}/dead-letters")
    small = page.evaluate(
        """() => [...document.querySelectorAll('nav.bottom a, main button')].filter((one) => one.getBoundingClientRect().height < 24)
        .map((one) => one.outerHTML.slice(0, 100))"""
    )
    assert small == []


def test_who_wants_little_motion_gets_none(make_tab: Callable[..., Tab], server: Server) -> None:
    moving = """() => [...document.querySelectorAll('*')].filter((one) => getComputedStyle(one).animationName !== 'none'
      || parseFloat(getComputedStyle(one).transitionDuration) > 0).length"""
    run = server.start_run(server.job("keeps running", "hangs"))
    server.await_state(run, "RUNNING")
    tab = make_tab(server, reduced_motion="reduce")
    page = tab.open("/jobs?name=keeps")
    expect(page.locator("svg.strip").first).to_be_visible()
    assert page.evaluate(moving) == 0
    server.api.expect(202, "POST", f"/runs/{run}/cancel")
