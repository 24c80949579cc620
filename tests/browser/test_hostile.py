"""Names, notes, tags, payloads, errors and answers are text, whatever they look like and however long they are."""

import json
from urllib.parse import quote

import pytest
from playwright.sync_api import Route, expect

from tests.browser.server import Server
from tests.browser.tab import Tab

SCRIPT = "<script>alert(1)</script><img src=x onerror=alert(2)>"
NAMES = {
    "script": SCRIPT,
    "template": "${alert(1)} {{alert(2)}} `<!--",
    "address": "javascript:alert(1)",
    "quotes": "\"'><svg onload=alert(1)> \\ ' OR 1=1 --",
    "right to left": "invoice \u202egnp.exe\u202c \u05e9\u05dc\u05d5\u05dd",
    "emoji": "👩‍👩‍👧‍👦🧨 naïve café 日本語",
    "long": "n" * 200,
    "long words": "word " * 40,
}


def failing_job(server: Server, name: str) -> str:
    return server.job(
        name,
        "breaks",
        payload={"text": f"error of {name}"},
        retry={"max": 0},
        tags=[name.strip()[:50], "hostile"],
    )


def test_names_are_text_in_views_of_many(tab: Tab, server: Server) -> None:
    jobs = {failing_job(server, name): name.strip() for name in NAMES.values()}
    page = tab.open_now()
    for run in [server.run(job) for job in jobs]:
        expect(page.locator(f'.feed li[data-row="{run}"]')).to_be_visible()
    for job in jobs:
        expect(page.locator(f'.feed li[data-row="{job}"]')).to_be_visible()
    assert_fits(tab)
    page = tab.open("/jobs?tag=hostile")
    for job, name in jobs.items():
        row = page.locator(f'tr[data-row="{job}"]')
        expect(row.locator(".row-link")).to_have_text(name, use_inner_text=False)
        row.get_by_role("button", name="Pause").click()
        expect(page.get_by_role("dialog")).to_be_visible()
        assert_fits(tab)
        page.keyboard.press("Escape")
        expect(page.get_by_role("dialog")).to_have_count(0)
    page = tab.open("/dead-letters")
    for name in jobs.values():
        expect(page.locator("ul.groups > li").filter(has_text=name[:60]).first).to_be_visible()
    assert_fits(tab)


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES.keys())
def test_a_name_is_text_in_views_of_one(tab: Tab, server: Server, name: str) -> None:
    job = failing_job(server, name)
    run = server.run(job)
    page = tab.open(f"/jobs?tag={quote(name.strip()[:50])}")
    page.locator(f'tr[data-row="{job}"] .row-link').click()
    expect(page.get_by_role("heading", level=1)).to_have_text(name.strip())
    row = page.locator(f'tr[data-row="{run}"]')
    expect(row).to_be_visible()
    assert_fits(tab)
    page.keyboard.press("e")
    expect(page.get_by_label("Name", exact=True)).to_have_value(name)
    page.go_back()
    row.locator(".row-link").click()
    expect(page.locator(".note.fail")).to_contain_text(name.strip()[:60])
    assert_fits(tab)


def test_notes_answers_and_payloads_are_text_and_may_be_long(tab: Tab, server: Server) -> None:
    text = SCRIPT + "x" * 100_000
    job = server.job("said", payload={"text": text})
    run = server.run(job)
    server.api.expect(200, "POST", f"/jobs/{job}/pause", {"note": SCRIPT})
    page = tab.open(f"/jobs/{job}")
    expect(page.locator(".note.warn")).to_contain_text(SCRIPT)
    page.get_by_text("Payload", exact=True).first.click()
    expect(page.locator("details pre")).to_contain_text("<script>alert(1)")
    assert_fits(tab)
    page = tab.open(f"/runs/{run}")
    expect(page.get_by_label("What the target answered")).to_contain_text(SCRIPT)
    assert_fits(tab)


def test_a_long_error_is_cut_and_stays_inside(tab: Tab, server: Server) -> None:
    run = server.dead_letter("long-error", "e" * 10_000 + SCRIPT)
    page = tab.open(f"/runs/{run}")
    expect(page.locator(".note.fail")).to_contain_text("e" * 500)
    assert_fits(tab)
    page = tab.open(f"/jobs/{run.split('@')[0]}")
    expect(page.locator(f'tr[data-row="{run}"]')).to_contain_text("e" * 100)
    assert_fits(tab)


def test_what_the_stream_says_is_text(tab: Tab, server: Server) -> None:
    """Even if the server were not to be trusted."""
    event = {
        "at": "2026-11-16T08:00:00Z",
        "job_id": "J-0",
        "run_id": "J-0@x",
        "data": {"name": SCRIPT, "state": SCRIPT, "error": SCRIPT},
    }
    body = f"id: 1-1\nevent: run.failed\ndata: {json.dumps(event)}\n\n" + "event: x\ndata: {not json\n\n"
    tab.guard.allow("ERR_|503")
    server.job("keeps the first look away")
    asked: list[Route] = []

    def answer(route: Route) -> None:
        asked.append(route)
        if len(asked) > 1:
            route.fulfill(status=503, content_type="text/event-stream", body=body)

    tab.page.route("**/api/v1/events", answer)
    page = tab.open("/", live=False)
    expect(page.get_by_role("heading", name="Just now")).to_be_visible()  # what comes earlier, nobody hears
    asked[0].fulfill(status=200, content_type="text/event-stream", body=body)
    expect(page.locator(".feed")).to_contain_text([SCRIPT])


def test_an_address_of_nothing_is_said_so(tab: Tab) -> None:
    tab.guard.allow("404|422")
    page = tab.open("/jobs/%3Cscript%3Ealert(1)%3C%2Fscript%3E")
    expect(page.get_by_role("alert")).to_be_visible()


def test_the_policy_is_there_and_holds(tab: Tab) -> None:
    tab.guard.allow("policy: |Content Security Policy|TrustedHTML|TrustedScript|Refused to")
    answer = tab.page.goto(tab.server.url + "/jobs")
    assert answer is not None
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    added = """() => { const script = document.createElement('script'); try { script.textContent = 'window.broken = 1'; } catch { return 'refused'; }
      document.body.append(script); return window.broken ? 'ran' : 'refused'; }"""
    assert tab.page.evaluate(added) == "refused"
    html = "() => { try { document.body.innerHTML = '<b>x</b>'; return 'set'; } catch { return 'refused'; } }"
    assert tab.page.evaluate(html) == "refused"


def assert_fits(tab: Tab) -> None:
    """Nothing sticks out to the side, and nothing was made an element."""
    assert tab.page.evaluate(
        "() => document.documentElement.scrollWidth <= document.documentElement.clientWidth"
    )
    assert (
        tab.page.evaluate(
            "() => document.querySelectorAll('main script, main img, main [onload], main [onerror]').length"
        )
        == 0
    )
