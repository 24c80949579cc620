"""Jobs: filters, pages, what one does to one row and to many, by mouse and by keyboard."""

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.server import Server
from tests.browser.tab import Tab
from tests.chaos.process import wait_for


def row_of(page: Page, job: str) -> Locator:
    return page.locator(f'tr[data-row="{job}"]')


def rows(page: Page) -> Locator:
    return page.locator("tbody tr[data-row]")


@pytest.fixture(scope="session")
def many(server: Server) -> list[str]:
    """More than a page of jobs; the newest last."""
    return [server.job(f"many-{number:02}", tags=["crowd"]) for number in range(60)]


# --- what is shown


def test_filters_narrow_the_list_and_are_in_the_address(tab: Tab, server: Server) -> None:
    paused = server.job("filtered-paused", tags=["green"], paused=True)
    active = server.job("filtered-active", tags=["blue"])
    page = tab.open("/jobs")
    search = page.get_by_label("Name begins with")
    search.fill("filtered-")
    expect(rows(page)).to_have_count(2)
    expect(page).to_have_url(f"{server.url}/jobs?name=filtered-")
    page.get_by_label("State").select_option("paused")
    expect(rows(page)).to_have_count(1)
    expect(row_of(page, paused)).to_contain_text("paused")
    page.get_by_label("State").select_option("")
    expect(rows(page)).to_have_count(2)
    page.get_by_label("Tag").fill("blue")
    expect(row_of(page, paused)).to_have_count(0)
    expect(row_of(page, active)).to_contain_text("filtered-active")
    page.reload()
    expect(rows(page)).to_have_count(1)
    search.fill("filtered-nothing")
    expect(page.get_by_role("heading", name="Nothing matches")).to_be_visible()


def test_failing_jobs_are_those_with_dead_letters(tab: Tab, server: Server) -> None:
    run = server.dead_letter("fails-for-good", "broken for good")
    well = server.job("fails-never")
    page = tab.open("/jobs?name=fails-")
    expect(rows(page)).to_have_count(2)
    page.get_by_label("Failing").check()
    expect(row_of(page, run.split("@")[0])).to_be_visible()
    expect(row_of(page, well)).to_have_count(0)
    strip = row_of(page, run.split("@")[0]).locator("svg.strip")
    expect(strip).to_have_attribute("aria-label", "last 1 run: 1 failed")


def test_a_tag_in_a_row_is_a_filter(tab: Tab, server: Server) -> None:
    server.job("tagged", tags=["only-this-one"])
    page = tab.open("/jobs?name=tagged")
    page.get_by_role("button", name="only-this-one").click()
    expect(page).to_have_url(f"{server.url}/jobs?name=tagged&tag=only-this-one")


def test_pages_go_forward_and_back(tab: Tab, many: list[str]) -> None:
    page = tab.open("/jobs?name=many-")
    expect(rows(page)).to_have_count(50)
    expect(row_of(page, many[-1])).to_be_visible()
    page.get_by_role("button", name="Next").click()
    expect(rows(page)).to_have_count(10)
    expect(row_of(page, many[0])).to_be_visible()
    page.get_by_role("button", name="Previous").click()
    expect(rows(page)).to_have_count(50)
    page.go_back()
    expect(rows(page)).to_have_count(10)
    page.get_by_role("button", name="First page").click()
    expect(row_of(page, many[-1])).to_be_visible()


def test_rows_stay_where_they_are_when_jobs_come_and_runs_end(tab: Tab, server: Server) -> None:
    job = server.job("stays-put")
    page = tab.open("/jobs?name=stays-")
    row = row_of(page, job)
    row.hover()
    before = row.bounding_box()
    server.job("stays-out")
    server.run(job)
    expect(row.locator("svg.strip")).to_have_attribute("aria-label", "last 1 run: 1 succeeded")
    fresh = page.get_by_role("button", name="new job")
    expect(fresh).to_be_visible()
    assert row.bounding_box() == before
    fresh.click()
    expect(rows(page)).to_have_count(2)


def test_selecting_moves_no_row(tab: Tab, server: Server) -> None:
    job = server.job("selected-in-place")
    page = tab.open("/jobs?name=selected-in-place")
    before = row_of(page, job).bounding_box()
    row_of(page, job).get_by_role("checkbox").check()
    expect(page.get_by_role("region", name="Selected jobs")).to_be_visible()
    assert row_of(page, job).bounding_box() == before


def test_a_job_that_somebody_else_pauses_is_shown_so(tab: Tab, server: Server) -> None:
    job = server.job("paused-elsewhere")
    page = tab.open("/jobs?name=paused-elsewhere")
    expect(row_of(page, job)).to_contain_text("active")
    server.api.expect(200, "POST", f"/jobs/{job}/pause", {"note": "by another"})
    expect(row_of(page, job)).to_contain_text("paused")
    expect(row_of(page, job)).to_contain_text("by another")


# --- one row


def test_run_pause_and_resume_in_a_row_by_mouse(tab: Tab, server: Server) -> None:
    job = server.job("row-by-mouse")
    page = tab.open("/jobs?name=row-by-mouse")
    page.get_by_role("button", name="Run row-by-mouse now").click()
    tab.toast("Started row-by-mouse.")
    page.get_by_role("button", name="Pause row-by-mouse").click()
    page.get_by_label("Note").fill("a reason")
    page.get_by_role("dialog").get_by_role("button", name="Pause").click()
    expect(row_of(page, job)).to_contain_text("a reason")
    page.get_by_role("button", name="Resume row-by-mouse").click()
    expect(row_of(page, job)).to_contain_text("active")
    assert server.document(job)["state"] == "active"


def test_run_pause_and_resume_in_a_row_by_keyboard(tab: Tab, server: Server) -> None:
    job = server.job("row-by-keys")
    page = tab.open("/jobs?name=row-by-keys")
    expect(row_of(page, job)).to_be_visible()
    tab.press("j", "r")
    tab.toast("Started row-by-keys.")
    tab.press("p")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.type("by keys")
    tab.press("Enter")
    expect(row_of(page, job)).to_contain_text("by keys")
    expect(page.get_by_role("dialog")).to_have_count(0)
    tab.press("p")
    expect(row_of(page, job)).to_contain_text("active")
    tab.press("Enter")
    expect(page).to_have_url(f"{server.url}/jobs/{job}")


# --- many


def test_some_are_selected_and_paused_by_keyboard(tab: Tab, server: Server) -> None:
    jobs = [server.job(f"keyed-{number}") for number in range(3)]
    page = tab.open("/jobs?name=keyed-")
    expect(rows(page)).to_have_count(3)
    tab.press("j", "x", "j", "x")
    selected = page.get_by_role("region", name="Selected jobs")
    expect(selected).to_contain_text("2 jobs selected")
    tab.press("k", "x")
    expect(selected).to_contain_text("1 job selected")
    tab.press("Escape")
    expect(selected).to_have_count(0)
    tab.press("x")
    selected.get_by_role("button", name="Pause").focus()
    tab.press("Enter")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.type("together")
    tab.press("Enter")
    tab.toast("Paused 1 job.")
    assert server.document(jobs[2])["note"] == "together"


def test_a_page_is_selected_and_deleted_by_mouse(tab: Tab, server: Server) -> None:
    jobs = [server.job(f"swept-{number}") for number in range(3)]
    page = tab.open("/jobs?name=swept-")
    page.get_by_label("Select all on this page").check()
    selected = page.get_by_role("region", name="Selected jobs")
    expect(selected).to_contain_text("3 jobs selected")
    selected.get_by_role("button", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    tab.toast("Deleted 3 jobs.")
    assert {server.api.call("GET", f"/jobs/{job}").status for job in jobs} == {404}


def test_all_that_match_are_more_than_the_page(tab: Tab, server: Server, many: list[str]) -> None:
    page = tab.open("/jobs?name=many-")
    page.get_by_label("Select all on this page").check()
    page.get_by_role("button", name="Select all that match").click()
    selected = page.get_by_role("region", name="Selected jobs")
    expect(selected).to_contain_text("Selected every job that matches the filter")
    selected.get_by_role("button", name="Pause").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("button", name="Pause")).to_be_disabled()
    dialog.get_by_label("Type").fill("pause")
    dialog.get_by_role("button", name="Pause").click()
    tab.toast("Paused 60 jobs.")
    assert {server.document(job)["state"] for job in (many[0], many[-1])} == {"paused"}


# --- errors


def test_a_server_that_fails_is_said_and_can_be_asked_again(tab: Tab, server: Server) -> None:
    server.job("after-failure")
    tab.guard.allow("503")
    problem = {"status": 503, "content_type": "application/problem+json"}
    body = (
        '{"title": "x", "detail": "<b>The store</b> is away.", "code": "unavailable", "request_id": "r-17"}'
    )
    tab.page.route("**/api/v1/jobs?*", lambda route: route.fulfill(**problem, body=body))
    page = tab.open("/jobs?name=after-failure")
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text("<b>The store</b> is away.")
    expect(alert).to_contain_text("r-17")
    page.unroute("**/api/v1/jobs?*")
    alert.get_by_role("button", name="Try again").click()
    expect(rows(page)).to_have_count(1)
    expect(alert).to_have_count(0)


def test_an_answer_that_is_no_json_is_an_error_like_others(tab: Tab) -> None:
    tab.guard.allow("502")
    tab.page.route("**/api/v1/jobs?*", lambda route: route.fulfill(status=502, body="<html>proxy</html>"))
    page = tab.open("/jobs?name=nothing-to-see")
    expect(page.get_by_role("alert")).to_contain_text("502 with something that is not JSON")


def test_a_refused_action_is_said_where_it_was_asked(tab: Tab, server: Server) -> None:
    job = server.job("gone-meanwhile")
    page = tab.open("/jobs?name=gone-meanwhile")
    expect(row_of(page, job)).to_be_visible()
    page.get_by_role("button", name="Pause gone-meanwhile").click()
    server.api.expect(200, "DELETE", f"/jobs/{job}")
    tab.guard.allow("404")
    page.get_by_role("dialog").get_by_role("button", name="Pause").click()
    expect(page.get_by_role("dialog").get_by_role("alert")).to_contain_text("there is no such job")
    tab.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_every_action_is_sent_once_however_often_it_is_clicked(tab: Tab, server: Server) -> None:
    job = server.job("clicked-twice")
    page = tab.open("/jobs?name=clicked-twice")
    page.get_by_role("button", name="Pause clicked-twice").click()
    page.get_by_role("dialog").get_by_role("button", name="Pause").dblclick()
    tab.toast("Paused clicked-twice.")
    wait_for("the pause", lambda: server.document(job)["version"] == 2)
    assert [one for one in tab.guard.requests if one.endswith("/pause")] == [f"POST /api/v1/jobs/{job}/pause"]
