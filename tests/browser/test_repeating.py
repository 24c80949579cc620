"""A coming time that is left out, a job that is copied, a run that is run again; by mouse and by keyboard."""

from playwright.sync_api import expect

from tests.browser.server import Server
from tests.browser.tab import Tab


def test_a_coming_time_is_skipped(tab: Tab, server: Server) -> None:
    job = server.job("skips-one", every="1h")
    page = tab.open(f"/jobs/{job}")
    first = page.locator(".times li").first.locator("time")
    at = first.get_attribute("datetime")
    page.get_by_role("button", name="Skip").first.click()
    page.get_by_label("Note").fill("not this one")
    page.get_by_role("dialog").get_by_role("button", name="Skip it").click()
    tab.toast("skips-one will skip")
    coming = server.api.expect(200, "GET", f"/jobs/{job}/next?n=1")["data"]
    assert at not in [one["at"] for one in coming if one["fires"]]


def test_a_time_is_skipped_by_keyboard(tab: Tab, server: Server) -> None:
    job = server.job("skips-by-keys", every="1h")
    page = tab.open(f"/jobs/{job}")
    button = page.get_by_role("button", name="Skip").first
    button.focus()
    tab.press("Enter")
    expect(page.get_by_role("dialog")).to_be_visible()
    tab.press("Enter")
    tab.toast("skips-by-keys will skip")


def test_a_job_is_cloned_and_the_copy_is_paused(tab: Tab, server: Server) -> None:
    job = server.job("cloned")
    page = tab.open(f"/jobs/{job}")
    page.get_by_role("button", name="Clone").click()
    tab.toast("Cloned cloned; the copy is paused.")
    expect(page).not_to_have_url(f"{server.url}/jobs/{job}")
    expect(page.locator(".under")).to_contain_text("paused")


def test_a_run_is_run_again_by_mouse_and_by_keyboard(tab: Tab, server: Server) -> None:
    run = server.run(server.job("again"))
    page = tab.open(f"/runs/{run}")
    page.get_by_role("button", name="Run again").click()
    tab.toast("A new run of the same was started.").get_by_role("link", name="Open it").click()
    expect(page.locator(".under")).to_contain_text("again of")
    expect(page.locator(".under")).to_contain_text("succeeded")
    page.keyboard.press("r")
    tab.toast("A new run of the same was started.")
