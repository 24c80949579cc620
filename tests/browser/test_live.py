"""Live: a state that is seen, a stream that comes back by itself, and nothing missed meanwhile."""

from playwright.sync_api import expect

from tests.browser.server import Server
from tests.browser.tab import Tab

# It may come back by itself before anybody can press the button, which is then gone.
TRY_NOW = (
    "[...document.querySelectorAll('.banner button')].find((one) => one.textContent === 'Try now')?.click()"
)


def test_a_server_that_goes_and_comes_back(own_tab: Tab, own_server: Server) -> None:
    job = own_server.job("survivor")
    own_tab.guard.allow("net::ERR_")
    page = own_tab.open(f"/jobs/{job}")
    row = page.locator(".title h1")
    before = row.bounding_box()
    own_server.kill()
    expect(page.locator(".live")).to_have_text("Reconnecting")
    banner = page.locator(".banner")
    expect(banner).to_contain_text("The connection is lost")
    expect(row).to_have_text("survivor")  # what was read stays
    assert row.bounding_box() == before
    own_server.start()
    page.evaluate(TRY_NOW)
    expect(page.locator(".live")).to_have_text("Live")
    expect(banner).to_have_count(0)
    run = own_server.run(job)
    expect(page.locator(f'tr[data-row="{run}"]')).to_contain_text("succeeded")


def test_updates_are_paused_and_followed_again(tab: Tab, server: Server) -> None:
    job = server.job("held")
    page = tab.open(f"/jobs/{job}")
    page.get_by_role("button", name="Live. Pause updates").click()
    expect(page.locator(".live")).to_have_text("Paused")
    run = server.run(job)
    expect(page.locator(f'tr[data-row="{run}"]')).to_have_count(0)
    page.get_by_role("button", name="Paused. Follow again").focus()
    tab.press("Enter")
    expect(page.locator(".live")).to_have_text("Live")
    expect(page.locator(f'tr[data-row="{run}"]')).to_contain_text(
        "succeeded"
    )  # the stream is resumed where it was


def test_without_the_server_an_action_says_so(own_tab: Tab, own_server: Server) -> None:
    job = own_server.job("unreachable")
    own_tab.guard.allow("net::ERR_")
    page = own_tab.open(f"/jobs/{job}")
    button = page.get_by_role("button", name="Run now")
    expect(button).to_be_visible()  # the stream may be live before the job was read
    own_server.kill()
    button.click()
    own_tab.toast("The server cannot be reached.")
