"""Keys: ways through the page, the list of them, focus that is seen, kept in dialogs and given back."""

from playwright.sync_api import Page, expect

from tests.browser.server import Server
from tests.browser.tab import Tab


def test_keys_lead_through_the_page(tab: Tab, server: Server) -> None:
    page = tab.open("/")
    tab.press("g", "j")
    expect(page).to_have_url(f"{server.url}/jobs")
    tab.press("g", "d")
    expect(page).to_have_url(f"{server.url}/dead-letters")
    tab.press("g", "n")
    expect(page).to_have_url(f"{server.url}/")
    tab.press("/")
    expect(page.get_by_label("Name begins with")).to_be_focused()
    page.keyboard.type("gjx?")
    expect(page.get_by_label("Name begins with")).to_have_value("gjx?")
    tab.press("Escape")
    expect(page.get_by_label("Name begins with")).not_to_be_focused()
    tab.press("c")
    expect(page).to_have_url(f"{server.url}/jobs/new")
    expect(page).to_have_title("Create a job · hourhand")


def test_the_list_of_keys_opens_closes_and_can_turn_them_off(tab: Tab, server: Server) -> None:
    page = tab.open("/jobs")
    tab.press("?")
    dialog = page.get_by_role("dialog", name="Keys")
    expect(dialog).to_contain_text("Next and previous row")
    tab.press("Escape")
    expect(dialog).to_have_count(0)
    page.get_by_role("button", name="Keys", exact=True).click()
    dialog.get_by_label("Keys of one letter are commands").uncheck()
    dialog.get_by_role("button", name="Close").click()
    tab.press("g", "n")
    expect(page).to_have_url(f"{server.url}/jobs")


def test_j_and_k_walk_the_rows_and_enter_opens(tab: Tab, server: Server) -> None:
    jobs = [server.job(f"walked-{number}") for number in range(3)]
    page = tab.open("/jobs?name=walked-")
    expect(page.locator("tbody tr")).to_have_count(3)
    tab.press("j", "j", "j", "j")
    assert focused_row(page) == jobs[0]
    tab.press("k")
    assert focused_row(page) == jobs[1]
    tab.press("Enter")
    expect(page).to_have_url(f"{server.url}/jobs/{jobs[1]}")


def focused_row(page: Page) -> str:
    return str(page.evaluate("() => document.activeElement.closest('[data-row]')?.dataset.row"))


def test_every_stop_of_the_keyboard_is_seen(tab: Tab, server: Server) -> None:
    server.job("stops", tags=["stop"])
    page = tab.open("/jobs?name=stops")
    expect(page.locator("tbody tr")).to_have_count(1)
    stops = []
    for _ in range(30):
        tab.press("Tab")
        stop = page.evaluate(
            """() => { const one = document.activeElement; const style = getComputedStyle(one);
            if (one === document.body) return null;
            const box = one.getBoundingClientRect();
            return { what: one.outerHTML.slice(0, 120), outline: style.outlineStyle, width: parseFloat(style.outlineWidth),
              inside: box.width > 0 && box.bottom > 0 && box.top < innerHeight }; }"""
        )
        if stop is None:
            break
        stops.append(stop)
    assert len(stops) > 12
    assert [one for one in stops if one["outline"] == "none" or one["width"] < 2 or not one["inside"]] == []


def test_the_first_stop_leads_past_the_navigation(tab: Tab) -> None:
    page = tab.open("/jobs")
    tab.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    tab.press("Enter")
    expect(page.locator("#main")).to_be_focused()


def test_a_dialog_keeps_the_focus_and_gives_it_back(tab: Tab, server: Server) -> None:
    server.job("trapped")
    page = tab.open("/jobs?name=trapped")
    opener = page.get_by_role("button", name="Pause trapped")
    opener.focus()
    tab.press("Enter")
    expect(page.get_by_role("dialog")).to_be_visible()
    for _ in range(12):
        tab.press("Tab")
        assert page.evaluate(
            "() => document.activeElement === document.body || !!document.activeElement.closest('dialog')"
        )
    tab.press("g", "j")  # no command while a question is open
    tab.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(opener).to_be_focused()
    opener.click()
    expect(page.get_by_role("dialog")).to_be_visible()
    page.mouse.click(5, 5)  # beside it
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(opener).to_be_focused()


def test_a_key_right_after_esc_is_meant_for_the_page(tab: Tab, server: Server) -> None:
    page = tab.open(f"/jobs/{server.job('pressed soon')}")
    expect(page.get_by_role("heading", name="pressed soon")).to_be_visible()
    tab.press("p")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.evaluate(  # before the browser has told that the dialog is closed
        """() => {
            document.querySelector("dialog").close();
            document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "r", bubbles: true }));
        }"""
    )
    tab.toast("Started")
    expect(page.locator("dialog")).to_have_count(0)


def test_a_new_view_takes_the_focus_and_the_title(tab: Tab) -> None:
    page = tab.open("/")
    page.get_by_role("navigation", name="Views", exact=True).get_by_role("link", name="Dead letters").focus()
    tab.press("Enter")
    expect(page).to_have_title("Dead letters · hourhand")
    expect(page.locator("#main")).to_be_focused()


def test_a_key_right_after_a_dialog_is_meant_for_the_page(tab: Tab, server: Server) -> None:
    """The browser moves the focus out of a closed dialog a moment after it is gone; a quick hand is not typing then."""
    page = tab.open(f"/jobs/{server.job('quickly')}")
    expect(page.get_by_role("heading", name="quickly")).to_be_visible()
    tab.press("p")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.evaluate(
        """() => {
            const field = document.querySelector("dialog input, dialog textarea");
            field.focus();
            field.closest("dialog").close();
            field.dispatchEvent(new KeyboardEvent("keydown", { key: "r", bubbles: true }));
        }"""
    )
    tab.toast("Started")
