"""Now: the verdict, what just ran, what changed; and a first look at a server without jobs."""

import re

from playwright.sync_api import expect

from tests.browser.server import Server
from tests.browser.tab import Tab


def test_a_run_appears_by_itself(tab: Tab, server: Server) -> None:
    job = server.job("appears-now")
    page = tab.open_now()
    run = server.run(job)
    row = page.locator(f'.feed li[data-row="{run}"]')
    expect(row).to_contain_text("succeeded")
    expect(row.get_by_role("link", name="appears-now")).to_have_attribute("href", f"/runs/{run}")
    expect(page.locator(".verdict")).not_to_be_empty()


def test_a_change_appears_by_itself(tab: Tab, server: Server) -> None:
    page = tab.open_now()
    job = server.job("changed-now")
    row = page.locator(f'.feed li[data-row="{job}"]')
    expect(row).to_contain_text("created")
    row.get_by_role("link").click()
    expect(page).to_have_url(f"{server.url}/jobs/{job}")


def test_what_just_ran_does_not_move_under_the_pointer(tab: Tab, server: Server) -> None:
    job = server.job("does-not-move")
    page = tab.open_now()
    first = server.run(job)
    row = page.locator(f'.feed li[data-row="{first}"]')
    row.hover()
    before = row.bounding_box()
    second = server.run(job)
    expect(page.locator(".figures")).to_be_visible()
    with page.expect_response("**/overview"):
        third = server.run(job)
    assert row.bounding_box() == before
    expect(page.locator(f'.feed li[data-row="{second}"]')).to_have_count(0)
    page.mouse.move(5, 5)
    expect(page.locator(f'.feed li[data-row="{third}"]')).to_be_visible()


def test_a_dead_letter_is_the_verdict_and_leads_there(own_tab: Tab, own_server: Server) -> None:
    own_server.dead_letter("gives-up", "no more")
    page = own_tab.open("/")
    verdict = page.locator(".verdict")
    expect(verdict).to_contain_text(re.compile(r"1 run of 1 gave up in the .+ since it started"))
    verdict.get_by_role("link").click()
    expect(page).to_have_url(f"{own_server.url}/dead-letters")


def test_without_jobs_each_view_says_so_and_the_first_is_made_here(own_tab: Tab, own_server: Server) -> None:
    page = own_tab.open("/dead-letters")
    expect(page.get_by_role("heading", name="Nothing here")).to_be_visible()
    page = own_tab.open("/jobs?name=nobody")
    expect(page.get_by_role("heading", name="Nothing matches")).to_be_visible()
    page.get_by_role("button", name="Clear the filter").click()
    expect(page.get_by_role("heading", name="No jobs yet")).to_be_visible()
    page = own_tab.open("/")
    expect(page.get_by_role("heading", name="No jobs yet")).to_be_visible()
    expect(page.locator("pre", has_text=f"curl -X POST {own_server.url}/api/v1/jobs")).to_be_visible()
    expect(page.locator("pre", has_text="from hourhand import Client")).to_be_visible()
    page.get_by_label("Name", exact=True).fill("the first")
    page.get_by_label("URL", exact=True).fill("http://127.0.0.1:9/nobody")
    page.get_by_role("button", name="Create the job").click()
    expect(page.get_by_role("heading", name="the first")).to_be_visible()
