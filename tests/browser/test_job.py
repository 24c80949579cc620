"""A job: what comes and what was, and everything that one does to it, by mouse and by keyboard."""

from playwright.sync_api import Page, expect

from tests.browser.server import Server
from tests.browser.tab import Tab


def actions(page: Page):
    return page.get_by_role("group", name="Actions")


def test_it_shows_the_schedule_in_words_and_the_coming_times_with_dst_marks(tab: Tab, server: Server) -> None:
    job = server.job("words", cron="30 2 28 3 *", tz="Europe/Berlin", tags=["night"], payload={"a": 1})
    page = tab.open(f"/jobs/{job}")
    expect(page.get_by_role("heading", name="words", level=1)).to_be_visible()
    expect(page.locator(".under")).to_contain_text("02:30")
    times = page.locator(".times li")
    expect(times).to_have_count(10)
    expect(times.first).to_contain_text("28 Mar 2027")
    expect(times.locator(".dst").first).not_to_be_empty()  # that night has no 02:30
    expect(page.get_by_role("link", name="night")).to_have_attribute("href", "/jobs?tag=night")


def test_runs_appear_in_list_and_strip_as_they_end(tab: Tab, server: Server) -> None:
    job = server.job("strip", payload={"text": "fine"})
    page = tab.open(f"/jobs/{job}")
    expect(page.locator(".run-strip")).to_have_count(0)
    runs = [server.run(job) for _ in range(2)]
    expect(page.locator(".run-strip a")).to_have_count(2)
    expect(page.locator(f'tr[data-row="{runs[0]}"]')).to_contain_text("succeeded")
    expect(page.locator(".chart canvas").first).to_be_visible()
    last = page.locator(".run-strip a").last
    last.focus()
    tab.press("ArrowLeft")
    expect(page.locator(".run-strip a").first).to_be_focused()
    tab.press("Enter")
    expect(page).to_have_url(f"{server.url}/runs/{runs[0]}")


def test_run_pause_and_resume_by_mouse(tab: Tab, server: Server) -> None:
    job = server.job("by-mouse")
    page = tab.open(f"/jobs/{job}")
    actions(page).get_by_role("button", name="Run now").click()
    tab.toast("Started by-mouse.").get_by_role("link", name="Open the run").click()
    expect(page.locator(".under")).to_contain_text("succeeded")
    page.go_back()
    actions(page).get_by_role("button", name="Pause").click()
    page.get_by_label("Note").fill("INC-42")
    page.get_by_label("Until").fill("2031-01-01T12:00:00")
    page.get_by_role("dialog").get_by_role("button", name="Pause").click()
    expect(page.locator(".note.warn")).to_contain_text("INC-42")
    expect(page.locator(".note.warn")).to_contain_text("2031")
    assert server.document(job)["paused_until"] == "2031-01-01T11:00:00Z"  # it was typed in Berlin
    actions(page).get_by_role("button", name="Resume").click()
    expect(page.locator(".under")).to_contain_text("active")


def test_a_pause_can_be_undone_where_it_is_told(tab: Tab, server: Server) -> None:
    job = server.job("undone")
    page = tab.open(f"/jobs/{job}")
    actions(page).get_by_role("button", name="Pause").click()
    page.get_by_role("dialog").get_by_role("button", name="Pause").click()
    tab.toast("Paused undone.").get_by_role("button", name="Undo").click()
    tab.toast("Resumed undone.")
    expect(page.locator(".under")).to_contain_text("active")


def test_run_pause_resume_and_edit_by_keyboard(tab: Tab, server: Server) -> None:
    job = server.job("by-keys")
    page = tab.open(f"/jobs/{job}")
    expect(page.get_by_role("heading", name="by-keys")).to_be_visible()
    tab.press("r")
    tab.toast("Started by-keys.")
    tab.press("p")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.type("a note by keys")
    tab.press("Enter")
    expect(page.locator(".note.warn")).to_contain_text("a note by keys")
    tab.press("p")
    expect(page.locator(".under")).to_contain_text("active")
    tab.press("e")
    expect(page).to_have_url(f"{server.url}/jobs/{job}/edit")


def test_a_job_is_deleted_and_said_to_be_gone(tab: Tab, server: Server) -> None:
    job = server.job("deleted-by-mouse")
    page = tab.open(f"/jobs/{job}")
    actions(page).get_by_role("button", name="Delete").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Cancel what runs now").check()
    dialog.get_by_role("button", name="Delete the job").click()
    expect(page).to_have_url(f"{server.url}/jobs")
    tab.guard.allow("404")
    page = tab.open(f"/jobs/{job}")
    expect(page.get_by_role("alert")).to_contain_text("There is no such thing.")
    expect(page.locator(".versions")).to_contain_text("deleted")


def test_a_job_is_deleted_by_keyboard_and_not_when_one_thinks_again(tab: Tab, server: Server) -> None:
    job = server.job("deleted-by-keys")
    page = tab.open(f"/jobs/{job}")
    tab.guard.allow("404")  # it may look once more at what is gone
    delete = actions(page).get_by_role("button", name="Delete")
    delete.focus()
    tab.press("Enter")
    expect(page.get_by_role("dialog")).to_be_visible()
    tab.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(delete).to_be_focused()
    tab.press("Enter")
    page.get_by_role("button", name="Delete the job").focus()
    tab.press("Enter")
    expect(page).to_have_url(f"{server.url}/jobs")
    assert server.api.call("GET", f"/jobs/{job}").status == 404


def test_a_dialog_that_is_opened_before_the_last_one_has_told_that_it_closed_stays(
    tab: Tab, server: Server
) -> None:
    """The browser tells of it a moment later, which a quick Enter after Esc comes before."""
    page = tab.open(f"/jobs/{server.job('asked-twice')}")
    delete = actions(page).get_by_role("button", name="Delete")
    delete.click()
    told = page.get_by_role("dialog").evaluate_handle(
        "dialog => ({closed: new Promise(tell => dialog.addEventListener('close', () => setTimeout(tell, 100)))})"
    )
    delete.evaluate("button => { document.querySelector('dialog').close(); button.click(); }")
    told.evaluate("told => told.closed")
    page.get_by_role("dialog").get_by_role("button", name="Keep it as it is").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(delete).to_be_focused()


def test_versions_say_what_differs(tab: Tab, server: Server) -> None:
    job = server.job("versions")
    server.api.expect(200, "PATCH", f"/jobs/{job}", {"timeout": "7m"})
    page = tab.open(f"/jobs/{job}")
    expect(page.locator(".versions li").first).to_contain_text("timeout")


def test_no_secret_of_a_target_is_shown(tab: Tab, server: Server) -> None:
    target = {"type": "http", "url": "https://ann:canary@a.example/", "headers": {"X-Api-Key": "canary"}}
    job = server.job("secretive", target=target)
    for changed in ({"headers": {"X-Api-Key": "canary, too"}}, {"url": "https://ann:canary@b.example/"}):
        server.api.expect(200, "PATCH", f"/jobs/{job}", {"target": changed})
    page = tab.open(f"/jobs/{job}")
    newest, headers = (page.locator(".versions li").nth(place) for place in (0, 1))
    expect(newest).to_contain_text(
        "target: POST https://ann:***@a.example/ → POST https://ann:***@b.example/"
    )
    expect(headers).to_contain_text("target")
    assert "canary" not in page.locator("body").inner_text()


def test_the_zone_switch_shows_the_same_instant_elsewhere(tab: Tab, server: Server) -> None:
    job = server.job("zones", cron="0 9 1 1 *", tz="Asia/Tokyo")
    page = tab.open(f"/jobs/{job}")
    run = server.run(job)
    cell = page.locator(f'tr[data-row="{run}"] time')
    expect(cell).to_contain_text("GMT+9")
    switch = page.locator(".zone-switch")
    switch.click()
    expect(cell).to_contain_text("CET")
    switch.focus()
    tab.press("Enter")
    expect(cell).to_contain_text("UTC")
    expect(cell).to_have_attribute(
        "title", page.locator(f'tr[data-row="{run}"] time').get_attribute("title") or ""
    )
    page.reload()
    expect(cell).to_contain_text("UTC")
