"""Dead letters: by cause, sent back at a pace or discarded, by mouse and by keyboard."""

from playwright.sync_api import Locator, Page, Route, expect

from tests.browser.server import Server
from tests.browser.tab import Tab


def group_of(page: Page, error: str) -> Locator:
    return page.locator("ul.groups > li").filter(has_text=error)


def letters(server: Server, name: str, error: str, count: int) -> list[str]:
    job = server.job(name, "breaks", payload={"text": error}, retry={"max": 0})
    return [server.run(job) for _ in range(count)]


def test_one_cause_is_one_group(tab: Tab, server: Server) -> None:
    letters(server, "grouped", "the disk of the printer is full", 2)
    page = tab.open("/dead-letters")
    group = group_of(page, "the disk of the printer is full")
    expect(group).to_have_count(1)
    expect(group).to_contain_text("2 runs")
    group.get_by_role("link").first.click()
    expect(page.get_by_role("heading", name="One cause")).to_be_visible()
    expect(page.locator("table.letters tbody tr")).to_have_count(2)
    page.go_back()
    expect(group).to_be_visible()


def test_a_group_is_requeued_at_a_pace(tab: Tab, server: Server) -> None:
    runs = letters(server, "paced", "a cause that went away", 2)
    page = tab.open("/dead-letters")
    group = group_of(page, "a cause that went away")
    group.get_by_role("button", name="Requeue all").click()
    group.get_by_label("Runs a second").select_option("50")
    group.get_by_role("button", name="Requeue 2").click()
    tab.toast("Sent 2 runs back.")
    for run in runs:
        assert len(server.api.expect(200, "GET", f"/runs/{run}")["attempts"]) >= 1


def test_a_group_is_discarded_only_after_a_word_is_typed(tab: Tab, server: Server) -> None:
    letters(server, "discarded", "nobody wants these", 2)
    page = tab.open("/dead-letters")
    group = group_of(page, "nobody wants these")
    group.get_by_role("button", name="Discard all").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("button", name="Discard all")).to_be_disabled()
    page.keyboard.type("discard")
    dialog.get_by_role("button", name="Discard all").click()
    tab.toast("Discarded 2 dead letters")
    expect(group).to_have_count(0)


def test_letters_are_chosen_sent_back_and_discarded_by_keyboard(tab: Tab, server: Server) -> None:
    runs = letters(server, "chosen", "only some of these", 3)
    page = tab.open("/dead-letters")
    group_of(page, "only some of these").get_by_role("link").first.focus()
    tab.press("Enter")
    expect(page.locator("table.letters tbody tr")).to_have_count(3)
    tab.press("j", "r")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.get_by_role("dialog").get_by_role("button", name="Requeue").focus()
    tab.press("Enter")
    tab.toast("Sent back: the same run goes on.")
    row = page.locator(f'tr[data-row="{runs[0]}"]')
    row.locator(".row-link").focus()
    tab.press("x")
    selected = page.get_by_role("region", name="Selected dead letters")
    expect(selected).to_contain_text("1 run selected")
    selected.get_by_role("button", name="Discard").focus()
    tab.press("Enter")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.get_by_role("dialog").get_by_role("button", name="Discard").focus()
    tab.press("Enter")
    tab.toast("Discarded; its history stays.")
    expect(row).to_have_count(0)


def test_what_is_picked_while_the_list_is_read_again_stays_picked(tab: Tab, server: Server) -> None:
    job = server.job("kept", "breaks", payload={"text": "picked too early"}, retry={"max": 0})
    picked = server.run(job)
    page = tab.open("/dead-letters")
    group_of(page, "picked too early").get_by_role("link").first.click()
    expect(page.locator("table.letters tbody tr")).to_have_count(1)
    server.run(job)
    held: list[Route] = []
    page.route("**/api/v1/dead-letters?*", lambda route: held.append(route))
    page.get_by_role("button", name="new dead letter").click()
    expect(page.locator(".table-wrap")).to_have_attribute("aria-busy", "true")
    page.locator(f'tr[data-row="{picked}"]').get_by_role("checkbox").check()
    while not held:
        page.wait_for_timeout(10)
    held.pop().continue_()
    expect(page.locator("table.letters tbody tr")).to_have_count(2)
    expect(page.get_by_role("region", name="Selected dead letters")).to_contain_text("1 run selected")


def test_some_letters_are_sent_back_by_mouse(tab: Tab, server: Server) -> None:
    letters(server, "by-mouse-back", "picked by mouse", 2)
    page = tab.open("/dead-letters")
    group_of(page, "picked by mouse").get_by_role("link").first.click()
    page.get_by_label("Select all on this page").check()
    selected = page.get_by_role("region", name="Selected dead letters")
    expect(selected).to_contain_text("2 runs selected")
    selected.get_by_role("button", name="Requeue").click()
    page.get_by_role("dialog").get_by_role("button", name="Requeue").click()
    tab.toast("Sent 2 back.")


def test_new_ones_are_offered_and_move_nothing(tab: Tab, server: Server) -> None:
    letters(server, "first-of-two", "it was here before", 1)
    page = tab.open("/dead-letters")
    group = group_of(page, "it was here before")
    group.hover()
    before = group.bounding_box()
    letters(server, "second-of-two", "it came later", 1)
    fresh = page.get_by_role("button", name="new dead letter")
    expect(fresh).to_be_visible()
    assert group.bounding_box() == before
    expect(group_of(page, "it came later")).to_have_count(0)
    fresh.click()
    expect(group_of(page, "it came later")).to_have_count(1)
