"""A run: its way, its attempts, and what one does to it, by mouse and by keyboard."""

from playwright.sync_api import expect

from tests.browser.server import Server
from tests.browser.tab import Tab


def test_it_shows_the_way_of_a_run_and_what_came_back(tab: Tab, server: Server) -> None:
    run = server.run(server.job("told", payload={"text": "the answer"}))
    page = tab.open(f"/runs/{run}")
    expect(page.locator(".under")).to_contain_text("succeeded")
    expect(page.locator(".timeline li")).to_have_count(4)
    expect(page.locator(".timeline")).to_contain_text("Finished")
    expect(page.locator("table.attempts tbody tr")).to_have_count(1)
    expect(page.get_by_label("What the target answered")).to_contain_text("the answer")
    page.get_by_role("link", name="told").click()
    expect(page.get_by_role("heading", name="told")).to_be_visible()


def test_its_log_is_text_a_line_below_the_other(tab: Tab, server: Server) -> None:
    run = server.run(server.job("logged", "logs"))
    page = tab.open(f"/runs/{run}")
    log = page.get_by_role("log")
    expect(log).to_contain_text("<b>line</b> 2")
    assert [line.split("<b>")[1] for line in log.inner_text().splitlines() if line] == [
        f"line</b> {number}" for number in range(3)
    ]
    framed = "(log) => [...log.children].map((piece) => getComputedStyle(piece).borderTopWidth)"
    assert set(log.evaluate(framed)) == {"0px"}


def test_a_run_under_way_is_followed_to_its_end_and_cancelled_by_mouse(tab: Tab, server: Server) -> None:
    job = server.job("hanging-by-mouse", "hangs")
    run = server.start_run(job)
    server.await_state(run, "RUNNING")
    page = tab.open(f"/runs/{run}")
    expect(page.locator(".under")).to_contain_text("running")
    expect(page.locator(".progress")).to_contain_text("40 % waiting for the end")
    page.get_by_role("button", name="Cancel").click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel the run").click()
    expect(page.locator(".under")).to_contain_text("cancelled")
    expect(page.get_by_role("button", name="Cancel")).to_have_count(0)


def test_a_run_is_cancelled_by_keyboard(tab: Tab, server: Server) -> None:
    run = server.start_run(server.job("hanging-by-keys", "hangs"))
    server.await_state(run, "RUNNING")
    page = tab.open(f"/runs/{run}")
    page.get_by_role("button", name="Cancel").focus()
    tab.press("Enter")
    page.get_by_role("button", name="Cancel the run").focus()
    tab.press("Enter")
    expect(page.locator(".under")).to_contain_text("cancelled")
    server.await_state(run, "CANCELLED")


def test_a_dead_letter_is_sent_back_from_its_run(tab: Tab, server: Server) -> None:
    run = server.dead_letter("sent-back", "try me again")
    page = tab.open(f"/runs/{run}")
    expect(page.locator(".note.fail")).to_contain_text("try me again")
    page.get_by_role("button", name="Requeue").click()
    page.get_by_role("dialog").get_by_role("button", name="Requeue").click()
    tab.toast("Sent back: the same run goes on.")
    expect(page.locator("table.attempts tbody tr")).to_have_count(2)


def test_the_same_call_can_be_copied_as_curl(make_tab, server: Server) -> None:
    tab = make_tab(server, permissions=["clipboard-read", "clipboard-write"])
    target = {"type": "http", "url": "http://127.0.0.1:9/it's", "headers": {"X-Quote": "it's"}}
    job = server.api.create(
        name="curled", cron="0 0 1 1 *", target=target, payload={"a": "b'c"}, retry={"max": 0}
    )
    run = server.run(job)
    page = tab.open(f"/runs/{run}")
    page.get_by_role("button", name="Copy as curl").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    copied = page.evaluate("() => navigator.clipboard.readText()")
    assert copied.startswith("curl -X POST 'http://127.0.0.1:9/it'\\''s'")
    assert f"-H 'Idempotency-Key: {run}'" in copied


def test_a_run_that_never_was_is_said_to_be_none(tab: Tab, server: Server) -> None:
    tab.guard.allow("404")
    job = server.job("never-ran")
    page = tab.open(f"/runs/{job}@20200101T000000Z")
    expect(page.get_by_role("alert")).to_contain_text("There is no such thing.")
