"""Create and edit: the form, what it would mean, what is wrong with it and where."""

import pytest
from playwright.sync_api import Page, expect

from tests.browser.server import FUNCTIONS, Server
from tests.browser.tab import Tab

WELL = f"{FUNCTIONS}:well"


def test_a_job_is_created_by_mouse(tab: Tab, server: Server) -> None:
    page = tab.open("/jobs")
    page.get_by_role("link", name="Create a job").click()
    page.get_by_label("Name", exact=True).fill("made by mouse")
    page.get_by_label("Cron expression").fill("15 7 * * mon")
    page.get_by_label("Zone", exact=True).fill("America/New_York")
    expect(page.locator(".preview .words")).to_contain_text("07:15")
    expect(page.locator(".preview .times li").first).to_contain_text("07:15:00")
    page.get_by_label("Python function").check()
    page.get_by_label("Function", exact=True).fill(WELL)
    page.get_by_label("Payload").fill('{"text": "hi"}')
    page.get_by_text("Policies and limits").click()
    page.get_by_label("Tags").fill("one, two")
    page.get_by_label("Priority").select_option("HIGH")
    page.get_by_role("button", name="Create the job").click()
    expect(page.get_by_role("heading", name="made by mouse")).to_be_visible()
    made = server.document(page.url.rsplit("/", 1)[1])
    assert (made["cron"], made["tz"], made["tags"]) == ("15 7 * * mon", "America/New_York", ["one", "two"])
    assert (made["payload"], made["priority"]) == ({"text": "hi"}, "HIGH")


def test_a_job_is_created_by_keyboard(tab: Tab, server: Server) -> None:
    page = tab.open("/")
    tab.press("c")
    name = page.get_by_label("Name", exact=True)
    name.focus()
    page.keyboard.type("made by keys")
    tab.press("Tab")
    tab.press("ArrowRight")  # from cron to an interval
    page.get_by_label("Every", exact=True).last.focus()
    tab.press("ControlOrMeta+a")
    page.keyboard.type("45m")
    expect(page.locator(".preview .words")).to_contain_text("every 45 minutes")
    page.get_by_label("URL", exact=True).focus()
    page.keyboard.type("http://127.0.0.1:9/nobody")
    tab.press("Enter")
    expect(page.get_by_role("heading", name="made by keys")).to_be_visible()
    assert server.document(page.url.rsplit("/", 1)[1])["every"] == "45m"


def test_the_preview_marks_what_dst_does(tab: Tab) -> None:
    page = tab.open("/jobs/new")
    page.get_by_label("Cron expression").fill("30 2 * * *")
    page.get_by_label("Zone", exact=True).fill("Europe/Berlin")
    expect(page.locator(".preview .change")).to_contain_text("UTC+1 to UTC+2")
    expect(page.locator(".preview .dst").first).not_to_be_empty()


def test_a_schedule_that_means_nothing_is_said_while_typing(tab: Tab) -> None:
    tab.guard.allow("422")
    page = tab.open("/jobs/new")
    page.get_by_label("Cron expression").fill("61 * * * *")
    expect(page.locator(".preview [role=alert]")).not_to_be_empty()
    page.get_by_label("Cron expression").fill("1 * * * *")
    expect(page.locator(".preview .times li").first).to_be_visible()


def test_an_edit_shows_the_difference_and_sends_only_that(tab: Tab, server: Server) -> None:
    job = server.job("edited", cron="0 9 * * *", tz="Europe/Berlin", payload={"keep": "me"}, timeout="3m")
    page = tab.open(f"/jobs/{job}/edit")
    expect(page.get_by_label("Cron expression")).to_have_value("0 9 * * *")
    page.get_by_label("Cron expression").fill("0 10 * * *")
    expect(page.locator(".diff .minus").first).to_contain_text("09:00:00")
    expect(page.locator(".diff .plus").first).to_contain_text("10:00:00")
    with page.expect_request(lambda request: request.method == "PATCH") as sent:
        page.get_by_role("button", name="Save").click()
    assert sent.value.post_data_json == {
        "cron": "0 10 * * *",
        "tz": "Europe/Berlin",
        "dst": {"gap": "after", "fold": "auto"},
    } or (sent.value.post_data_json == {"cron": "0 10 * * *"})
    expect(page.get_by_role("heading", name="edited", exact=True)).to_be_visible()
    after = server.document(job)
    assert (after["cron"], after["payload"], after["timeout"]) == ("0 10 * * *", {"keep": "me"}, "3m")


def test_an_edit_by_keyboard_can_be_left(tab: Tab, server: Server) -> None:
    job = server.job("left-alone")
    page = tab.open(f"/jobs/{job}")
    expect(page.get_by_role("heading", name="left-alone")).to_be_visible()
    tab.press("e")
    leave = page.get_by_role("link", name="Leave it")
    leave.focus()
    tab.press("Enter")
    expect(page).to_have_url(f"{server.url}/jobs/{job}")
    assert server.document(job)["version"] == 1


def test_an_edit_of_something_changed_meanwhile_is_refused(tab: Tab, server: Server) -> None:
    job = server.job("raced")
    tab.guard.allow("412")
    page = tab.open(f"/jobs/{job}/edit")
    page.get_by_label("Name", exact=True).fill("mine")
    server.api.expect(200, "PATCH", f"/jobs/{job}", {"name": "theirs"})
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("changed the job meanwhile")).to_be_visible()
    assert server.document(job)["name"] == "theirs"


WRONG = [
    ("Cron expression", "every day"),
    ("Zone", "Mars/Olympus"),
    ("URL", "javascript:alert(1)"),
    ("Name", "n" * 10_000),
]


@pytest.mark.parametrize(("label", "text"), WRONG, ids=[one[0] for one in WRONG])
def test_what_is_wrong_is_said_at_its_field(tab: Tab, label: str, text: str) -> None:
    tab.guard.allow("422")
    page = tab.open("/jobs/new")
    page.get_by_label("Name", exact=True).fill("wrong")
    page.get_by_label("URL", exact=True).fill("http://127.0.0.1:9/nobody")
    field = page.get_by_label(label, exact=True)
    field.evaluate("(input) => input.removeAttribute('maxlength')")
    field.fill(text)
    page.get_by_role("button", name="Create the job").click()
    expect(
        page.locator(".field", has=page.get_by_label(label, exact=True)).locator(".error")
    ).to_contain_text("xpected")
    expect(field).to_have_attribute("aria-invalid", "true")
    expect(page.get_by_role("alert").first).to_be_focused()
    assert described(page, label)


def described(page: Page, label: str) -> str:
    """What a screen reader adds to the field."""
    return str(
        page.get_by_label(label, exact=True).evaluate(
            "(input) => (input.getAttribute('aria-describedby') || '').split(' ').map((id) => document.getElementById(id)?.textContent || '').join(' ')"
        )
    )


def test_a_payload_that_is_no_json_never_leaves_the_page(tab: Tab) -> None:
    page = tab.open("/jobs/new")
    page.get_by_label("URL", exact=True).fill("http://127.0.0.1:9/nobody")
    page.get_by_label("Payload").fill("{not json")
    page.get_by_role("button", name="Create the job").click()
    expect(page.locator(".field.wrong .error")).to_contain_text("not JSON")
    assert "POST /api/v1/jobs" not in tab.guard.requests
